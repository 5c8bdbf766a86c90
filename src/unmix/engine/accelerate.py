"""Extrapolation of slow fixed points in the space of statistics.

A pass evaluates the map g(s): statistics s → parts → statistics of all rows given these parts. A fit seeks s = g(s).
With the residuals f_t = g(s_t) − s_t the next statistics are one of

    plain       s' = g(s_t)
    squared     s' = s_{t-1} + 2a f_{t-1} + a² (f_t − f_{t-1}),   a = min(|f_{t-1}| / |f_t − f_{t-1}|, reach),
                where s_t = g(s_{t-1}) was a plain step                                         [Varadhan & Roland 2008]
    Anderson    s' = g(s_t) − ΔG γ,   γ = argmin |f_t − ΔF γ|² + ridge,   over the last `depth` steps
                                                                                                [Walker & Ni 2011]

While the fit still leaves a saddle, residuals grow, and Anderson, which seeks the nearest zero of f, would go back to
the saddle; the squared step always goes forward. Near the end residuals fall from pass to pass, and Anderson, which
sees many slow directions at once, is far ahead. So Anderson is used once residuals have fallen `settle` times in a
row, the squared step (after every second plain one) before that.

`reach` doubles whenever it was what bounded an accepted step and is divided by four when a squared step is rejected.
A rejection forgets all steps. The caller must judge a proposal by the objective: nothing here looks at it.
"""

from __future__ import annotations

import numpy as np

RIDGE = 1e-10  # of the normal equations whose columns have length one
FIRST_REACH = 2.0


class Accelerator:
    """Proposes statistics from the pairs (s, g(s)) seen so far; deterministic, all state in arrays.

    Parameters
    ----------
    depth : int
        How many steps Anderson's least squares sees.
    settle : int
        After how many passes of falling residuals it takes over.
    """

    def __init__(self, depth: int = 5, settle: int = 3) -> None:
        self.depth, self.settle = depth, settle
        self.reach = FIRST_REACH
        self._forget()

    def _forget(self) -> None:
        self.points: list[np.ndarray] = []  # s of the last steps, oldest first
        self.images: list[np.ndarray] = []  # g(s) of the same steps
        self.falling = 0  # passes in a row whose residual was no longer than the one before
        self.fresh = 0  # plain steps since the last proposal, the present one included
        self.bounded = self.squared = False  # the last proposal was cut by reach; was a squared step

    def propose(self, s: np.ndarray, g: np.ndarray) -> np.ndarray | None:
        """Take in the pair (s, g(s)), both flat float64.

        Parameters
        ----------
        s : ndarray of shape (p,)
            The statistics from which the parts of this pass were made.
        g : ndarray of shape (p,)
            The statistics that this pass gave.

        Returns
        -------
        candidate : ndarray of shape (p,) or None
            The statistics to try next; None to take the plain step to g.
        """
        if self.bounded:  # no rejection came: the step that reach cut was a good one
            self.reach *= 2.0
        self.bounded = self.squared = False
        if self.points:
            falls = length(g - s) <= length(self.images[-1] - self.points[-1])
            self.falling = self.falling + 1 if falls else 0
            plain = self.fresh > 0 and np.array_equal(s, self.images[-1])
            self.fresh = self.fresh + 1 if plain else 1
        else:
            self.fresh = 1
        self.points = [*self.points[-self.depth :], s.copy()]
        self.images = [*self.images[-self.depth :], g.copy()]
        if self.falling >= self.settle:
            return self._anderson()
        return self._squared() if self.fresh >= 2 else None

    def _squared(self) -> np.ndarray | None:
        s, f = self.points[-2], self.images[-2] - self.points[-2]
        bend = self.images[-1] - self.points[-1] - f
        curved = length(bend)
        step = length(f) / curved if curved > 0 else 0.0
        self.fresh = 0
        if step <= 1.0:  # shorter than two plain steps
            return None
        self.squared, self.bounded = True, bool(step > self.reach)
        a = min(step, self.reach)
        return np.asarray(s + 2.0 * a * f + a * a * bend)

    def _anderson(self) -> np.ndarray:
        self.fresh = 0
        G = np.array(self.images)
        F = G - np.array(self.points)
        dF, dG = np.diff(F, axis=0), np.diff(G, axis=0)
        lengths = np.array([length(v) or 1.0 for v in dF])
        unit = dF / lengths[:, None]
        normal = unit @ unit.T
        normal[np.diag_indices_from(normal)] += RIDGE
        gamma = np.linalg.solve(normal, unit @ F[-1]) / lengths
        return np.asarray(G[-1] - gamma @ dG)

    def reject(self) -> None:
        """The last proposal made the objective worse or was not feasible: forget the steps."""
        if self.squared:
            self.reach = max(1.0, self.reach / 4.0)
        self._forget()

    def state(self) -> dict[str, np.ndarray]:
        """Return all that `restore` needs, as arrays."""
        flags = [self.reach, self.falling, self.fresh, self.bounded, self.squared]
        return {
            "points": np.array(self.points, dtype=np.float64),
            "images": np.array(self.images, dtype=np.float64),
            "flags": np.array(flags, dtype=np.float64),
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from what `state` returned.

        Parameters
        ----------
        state : dict of arrays
        """
        self.points, self.images = [np.array(a) for a in state["points"]], [np.array(a) for a in state["images"]]
        reach, falling, fresh, bounded, squared = state["flags"]
        self.reach, self.falling, self.fresh = float(reach), int(falling), int(fresh)
        self.bounded, self.squared = bool(bounded), bool(squared)


def length(v: np.ndarray) -> float:
    """Euclidean length; squares of very large or small numbers neither overflow nor vanish."""
    top = float(np.abs(v).max(initial=0.0))
    return top * float(np.linalg.norm(v / top)) if top > 0 else 0.0
