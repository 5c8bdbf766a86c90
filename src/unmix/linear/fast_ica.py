"""Independent component analysis:  x = A s + μ with independent sources s, none of them Gaussian but one at most.

Rows are made white, v = K(x − μ), by their moments; what is left is a rotation W that makes y = W v least Gaussian:

    J(W) = −Σ_j |mean G(y_j) − E[G(ν)]|                         ν Gaussian;  G = log cosh, −e^(−y²/2), y⁴/4 or your own

local    y = W K (x − μ)
stats    n,  Σ g(y) yᵀ,  Σ G(y),  Σ g′(y),  Σ g(y)²               g = G′
update   a safe step of W; if the next pass confirms it, a bolder one, quasi-Newton

A safe step never makes J worse for "logcosh" and "exp"; g′ of "cube" has no bound, nor that of a function of your own
which is steeper beyond 8 standard deviations than within, and there it may. (The steps are in `_unmixing.py`;
whitening, and steps on a sample of many rows before the passes, in `_held.py`.) The fixed points are those of FastICA
(Hyvärinen 1999), and so is the stopping rule; that each step is checked makes it converge where the plain iteration
runs in circles.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, Options, StrOptions

from unmix.engine.block import Block, Local
from unmix.engine.described import Described
from unmix.engine.layout import Shape
from unmix.engine.moments import block_rows, is_sparse
from unmix.engine.stage import Sizes, Stage
from unmix.engine.trace import Fit
from unmix.linear._contrasts import Contrast, contrast
from unmix.linear._covariance import Covariance
from unmix.linear._direct import Direct
from unmix.linear._held import Frame, Images, Sampled, Whitening
from unmix.linear._look import look
from unmix.linear._reliable import agreement, doubts, interference
from unmix.linear._unmixing import Parts, Stats, bold, first_parts, nothing_known, on, safe, seen, solved, turned
from unmix.maths.arrays import Array
from unmix.maths.order import signs
from unmix.model import Model
from unmix.model.capabilities import Components, Reconstructs
from unmix.model.peer import Peer

SHARE = 8  # of the rows, one in so many, are a sample on which the first steps are made
MANY = 4  # times the sample: rows that are worth one
SAMPLE = (1 << 11, 1 << 14)  # its least and its largest size
SAMPLE_PER_PAIR = 16  # rows of it for each pair of components, if that is more


class FastICA(Reconstructs, Components, Model):
    """Independent sources whose mixtures were measured: independent component analysis.

    Parameters
    ----------
    n_components : int or None, default=None
        How many sources; None for as many as there are columns (or rows, if these are fewer), which is also the most
        that can be told apart: fewer sensors than sources cannot be unmixed by any rotation.
    algorithm : {"parallel", "deflation"}, default="parallel"
        All components at once, or one after the other.
    whiten : {"unit-variance", "arbitrary-variance"} or False, default="unit-variance"
        Sources of variance 1; of variance 1/n; or rows that are white already, which are taken as they are.
    fun : {"logcosh", "exp", "cube"} or callable, default="logcosh"
        The contrast G: for all sources; for very heavy tails, or a few rows that are wrong; the kurtosis. Or a function
        that returns g = G′ and its derivative, the latter at each number or averaged over the last axis.
    fun_args : dict or None, default=None
        Arguments of `fun`: {"alpha": a} of "logcosh", 1 ≤ a ≤ 2.
    max_iter : int, default=200
        Maximum number of passes; with "deflation", of each component.
    tol : float, default=1e-4
        The fit ends when no component turns by more than an angle whose cosine is 1 − tol.
    w_init : array of shape (k, k) or None, default=None
        First rotation of the white rows; None for one drawn at random.
    whiten_solver : {"eigh", "svd"}, default="svd"
        No effect here: the covariance is collected in one pass and decomposed.
    random_state : int, RandomState or None, default=None
        Seed of the first rotations.
    n_init : int, default=1
        How many first rotations; they share every pass, and the best is kept. How far the others agree with it is told
        by `stability_`.
    architecture : {"rows", "columns"}, default="rows"
        What is independent. "rows": the sources, from row to row, as time goes on; of images, how much of each part
        is in a picture. "columns": the parts themselves (the columns of `mixing_`), from column to column; of images,
        parts that are small and do not overlap. Take "rows" for signals, and for features that tell pictures apart as
        wholes; "columns" for local features, given many more columns (pixels) than components.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Unmixing matrix: sources are (x − mean_) components_ᵀ.
    mixing_ : ndarray of shape (d, k)
        Its pseudo-inverse, by which sources become rows. The largest entry of each column is positive; columns are in
        the order of `contrast_`, from the least Gaussian on (with "deflation", in the order in which they were found).
    mean_ : ndarray of shape (d,)
        Mean of each column; not with whiten=False.
    whitening_ : ndarray of shape (k, d)
        Whitening matrix K/√n, with n as for `PCA`; not with whiten=False.
    contrast_ : ndarray of shape (k,)
        mean G(y) − E[G(ν)]: for "logcosh" and "exp" below 0 where a source has heavier tails than a Gaussian, above 0
        where it has lighter ones; for "cube" the other way round.
    stability_ : ndarray of shape (k,)
        The squared correlation to expect of each component with the true source, 1/(1 + v) of independent rows, v being
        its asymptotic variance (Tichavský, Koldovský & Oja 2006), times the mean squared correlation with what is most
        like it in the other starts (Himberg, Hyvärinen & Esposito 2004, "Icasso"), if there are any. Components below
        0.9 are named in a warning.
    n_components_ : int
        Components found: no more than there are directions in which X varies.

    Notes
    -----
    Sources come without their order, sign and scale. Two Gaussian sources look alike in every direction: no method can
    tell them apart, and a warning names components that may be such.

    References
    ----------
    Hyvärinen (1999), Fast and robust fixed-point algorithms for independent component analysis, IEEE Trans. Neural
    Networks 10(3).
    Ablin, Cardoso & Gramfort (2018), Faster ICA under orthogonal constraint, ICASSP.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import FastICA
    >>> t = np.linspace(0, 8, 2000)
    >>> S = np.column_stack([np.sign(np.sin(9 * t)), np.sin(14 * t), (3 * t) % 1])
    >>> X = S @ np.array([[1.0, 1, 1], [0.5, 2, 1], [1.5, 1, 2]]).T
    >>> found = FastICA(random_state=0).fit_transform(X)
    >>> np.abs(np.corrcoef(found.T, S.T)[:3, 3:]).max(axis=0).round(2).tolist()
    [1.0, 1.0, 1.0]
    """

    sparse = True
    peer = Peer(
        "sklearn.decomposition",
        "components_ mixing_ mean_ whitening_",
        more=lambda model: {"_unmixing": model.components_ @ model.whitener()},
    )
    tied = ("w_init",)
    exempt: ClassVar[dict[str, str]] = {
        "online": "statistics of a rotation are of rows that were made white, and what makes them white changes with "
        "every batch",
    }
    degrees: ClassVar[dict[str, int | None]] = {"components_": -1, "whitening_": -1, "mixing_": 1, "mean_": 1}

    components_: Annotated[np.ndarray, Array("k d")]
    mixing_: Annotated[np.ndarray, Array("d k")]
    mean_: Annotated[np.ndarray, Array("d", maybe=True)]
    whitening_: Annotated[np.ndarray, Array("k d", maybe=True)]
    contrast_: Annotated[np.ndarray, Array("k")]
    stability_: Annotated[np.ndarray, Array("k", low=0.0, high=1.0)]
    n_components_: Annotated[int, Array(kind="i", name="k")]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "algorithm": [StrOptions({"parallel", "deflation"})],
        "whiten": [StrOptions({"arbitrary-variance", "unit-variance"}), Options(bool, {False})],
        "fun": [StrOptions({"logcosh", "exp", "cube"}), callable],
        "fun_args": [dict, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "w_init": ["array-like", None],
        "whiten_solver": [StrOptions({"eigh", "svd"})],
        "random_state": ["random_state"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "architecture": [StrOptions({"rows", "columns"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        algorithm: str = "parallel",
        whiten: str | bool = "unit-variance",
        fun: Any = "logcosh",
        fun_args: dict[str, Any] | None = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        w_init: Any = None,
        whiten_solver: str = "svd",
        random_state: Any = None,
        n_init: int = 1,
        architecture: str = "rows",
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.whiten = whiten
        self.fun = fun
        self.fun_args = fun_args
        self.max_iter = max_iter
        self.tol = tol
        self.w_init = w_init
        self.whiten_solver = whiten_solver
        self.random_state = random_state
        self.n_init = n_init
        self.architecture = architecture

    # -- which way --

    def check(self, shape: Shape) -> None:
        """Refuse a single row, an alpha that is no contrast, a function that is none, rotations of another size."""
        if shape.n < 2:
            raise ValueError(f"FastICA needs rows that vary, but n_samples={shape.n}: give at least 2")
        alpha = (self.fun_args or {}).get("alpha", 1.0)
        if self.fun == "logcosh" and not 1 <= alpha <= 2:
            raise ValueError(f"alpha must be in [1,2], and fun_args={self.fun_args!r} says {alpha!r}")
        k = self.most_components(shape)
        if self.w_init is not None and np.shape(self.w_init) != (k, k):
            raise ValueError(
                f"w_init has invalid shape {np.shape(self.w_init)} -- should be {(k, k)}, a number for each pair of "
                "components"
            )
        if self.architecture == "columns" and self.whiten is False:
            raise ValueError("whiten=False does not go with architecture='columns': leave whiten as it is")
        _ = self._contrast

    def most_components(self, shape: Shape) -> int:
        """How many components are wanted of such data."""
        if self.whiten is False:
            return shape.d
        narrow = min(shape.n, shape.d)
        return narrow if self.n_components is None else min(self.n_components, narrow)

    @property
    def _contrast(self) -> Contrast:
        return contrast(self.fun, self.fun_args)

    @property
    def most(self) -> int | None:  # type: ignore[override]
        """One by one, every component has `max_iter` passes, and at last it is done."""
        return None if self.algorithm == "parallel" else self.max_iter * self.shape.d

    def stages(self, shape: Shape) -> list[Stage]:
        """Whitening; where rows are many, steps on a sample; passes."""
        k = self.most_components(shape)
        if self.architecture == "columns":
            axes = Direct(k, "auto", 0.0) if shape.in_memory and shape.d > shape.n else Covariance(k, shape)
            return [axes, Images(self)]
        rows = max(min(max(shape.n // SHARE, SAMPLE[0]), SAMPLE[1]), SAMPLE_PER_PAIR * k * k)
        sampled = [Sampled(self, rows)] if self.algorithm == "parallel" and shape.n >= MANY * rows else []
        return [*([] if self.whiten is False else [Whitening(k, shape)]), *sampled, self]

    def sizes(self, shape: Shape) -> Sizes:
        """Larger blocks where the d×d moments are large; no rows are needed for the first rotation."""
        return Sizes(block_rows(shape), 0)

    def starts(self) -> int:
        """A given rotation is one start."""
        return self.n_init if self.w_init is None else 1

    # -- the model --

    def start(self, before: Any, data: Any, rng: np.random.Generator) -> Parts:
        """A random rotation of the white rows, unless one is known already."""
        if isinstance(before, Parts):
            return before
        d = self.shape.d
        frame = before or Frame(np.zeros(d), np.eye(d), np.array(float(d)), 0)
        k = len(frame.whitening)
        turn = rng.standard_normal((k, k)) if self.w_init is None else np.asarray(self.w_init, dtype=np.float64)
        if turn.shape != (k, k):
            raise ValueError(f"w_init has shape {turn.shape}, but X varies in {k} directions only: give {(k, k)}")
        one_by_one = self.algorithm == "deflation"
        return first_parts(frame.mean, frame.whitening, float(frame.total), frame.lost, turn, one_by_one)

    def local(self, U: Parts, b: Block) -> Local:
        """Statistics and contrast; where it is the parts that are independent, the squared error."""
        return self.look(U, b) if self.architecture == "rows" else Local(None, b.total, self._error(U, b))

    def look(self, U: Parts, b: Block) -> Local:
        """Statistics and contrast of the components in question."""
        return look(U, b, self._contrast)

    def _error(self, U: Parts, b: Block) -> float:
        """Σ w |x − μ − zA|²."""
        z = self.encode(U, b)
        x = b.x.toarray() if is_sparse(b.x) else b.x
        r = x - self.decode(U, z)
        return b.sum(np.einsum("ij,ij->i", r, r))

    def penalty(self, U: Parts) -> float:
        """J of the components that were found one by one before."""
        if U.active < 1:
            return 0.0
        return -float(np.abs(U.measures[0, : U.active]).sum()) * self.shape.weight

    def update(self, U: Parts, stats: Stats) -> Parts:
        """The bold step where it is so short that the fit ends with it, else the safe one."""
        bend = self._contrast.bend
        if U.active < 0:
            ahead, change = bold(U, stats)
            return ahead._replace(done=True) if change <= self.tol else safe(U, stats, bend)
        ahead, change = turned(U, stats, None)
        tries = U.tries + 1
        if change <= self.tol or tries >= self.max_iter:
            return on(ahead, change <= self.tol)
        return turned(U, stats, bend)[0]._replace(tries=tries)

    def leap(self, U: Parts, stats: Stats) -> Parts | None:
        """The bold step; the last one, if it is as short as `update` would have it."""
        if U.active < 0:
            ahead, change = bold(U, stats)
            return ahead._replace(done=True) if change <= self.tol else ahead
        ahead, change = turned(U, stats, None)
        tries = U.tries + 1
        return None if change <= self.tol or tries >= self.max_iter else ahead._replace(tries=tries)

    def goal(self, U: Parts, first: float) -> bool:
        """Done when no component turns any more."""
        return U.done

    def hand(self, U: Parts, data: Any) -> Parts:
        """Components in their order and with their signs."""
        return self.settled(U)

    def settled(self, U: Parts) -> Parts:
        """From the least Gaussian on, unless they were found one by one; largest entries of the mixing positive."""
        order = np.arange(len(U.rotation))
        if U.active < 0:
            order = np.argsort(-np.abs(U.measures[0]), kind="stable")
        rotation = U.rotation[order]
        rotation *= signs(rotation @ inverse(U.whitening).T)[:, None]
        return U._replace(
            rotation=rotation, signs=U.signs[order], measures=U.measures[:, order], active=-1,
            scratch=nothing_known(len(order)),
        )  # fmt: skip

    def described(self, U: Any, data: Any) -> Described:
        """A rotation and its statistics; with independent parts, only Σ w."""
        return Described(Parts, float if self.architecture == "columns" else Stats)

    # -- what comes out --

    @property
    def _root(self) -> float:
        """√n, by which scikit-learn divides the whitening matrix; 1 where nothing is divided."""
        return float(np.sqrt(max(self.shape.rows, 1.0)))

    @property
    def _counted(self) -> float:
        """How many rows, or columns in their place, the contrasts are means over."""
        return float(self.shape.d if self.architecture == "columns" else self.shape.rows)

    @property
    def _scale(self) -> float:
        """By what sources of variance 1 are multiplied."""
        return 1.0 / self._root if self.whiten == "arbitrary-variance" else 1.0

    def encode(self, U: Parts, b: Block) -> np.ndarray:
        """The sources."""
        B = (U.rotation @ U.whitening) * b.x.dtype.type(self._scale)
        z = b.x @ B.T - B @ U.mean if is_sparse(b.x) else (b.x - U.mean) @ B.T
        return np.asarray(z, dtype=b.x.dtype)

    def decode(self, U: Parts, z: np.ndarray) -> np.ndarray:
        """Rows that sources make."""
        A = U.rotation @ inverse(U.whitening).T
        return np.asarray(z @ (A / self._scale).astype(z.dtype, copy=False) + U.mean)

    def whitener(self) -> np.ndarray:
        """The pseudo-inverse of the whitening matrix; of rows that were white, no change."""
        return np.linalg.pinv(self.whitening_) if self.whiten else np.eye(self.components_.shape[1])

    def publish(self, fit: Fit) -> None:
        """The unmixing and mixing matrices, and what is known of each component."""
        U = fit.U
        self.components_ = (U.rotation @ U.whitening) * self._scale
        self.mixing_ = inverse(U.whitening) @ U.rotation.T / self._scale
        if self.whiten:
            self.mean_, self.whitening_ = U.mean, U.whitening / self._root
        measures = self._measures(fit)
        self.contrast_ = measures[0]
        noise = interference(measures, self._counted, self.algorithm == "deflation")
        self.stability_ = agreement(U.rotation, [self._rotation(V) for V in fit.rivals]) / (1.0 + noise)
        self.n_components_ = len(U.rotation)

    def _measures(self, fit: Fit) -> np.ndarray:
        """Of each component; one by one, those of the closing pass: nobody has looked at the last one before."""
        U, stats = fit.U, fit.stats
        closing = isinstance(stats, Stats) and len(stats.gram) == len(U.rotation)  # else a fit that was broken off
        return seen(U, stats).measures if self.algorithm == "deflation" and closing else U.measures

    def _rotation(self, U: Any) -> np.ndarray:
        """The rotation of a start as it ended."""
        return np.asarray(U.rotation if isinstance(U, Parts) else U.trial.parts.rotation)

    def notes(self, U: Parts) -> list[str]:
        """Components that cannot be relied on, or were not found."""
        k, out, asked = len(U.rotation), [], self.n_components
        if self.whiten is False and asked is not None:
            out.append("Ignoring n_components with whiten=False.")
        elif asked is not None and asked > min(self.shape.n, self.shape.d):
            out.append(f"n_components is too large: it will be set to {min(self.shape.n, self.shape.d)}")
        if U.events.lost:
            varies = min(self.most_components(self.shape), self.shape.n - 1) - U.events.lost
            out.append(
                f"There are some small singular values: X varies in {varies} directions only, so that there are "
                f"{k} component(s), fewer than asked for"
            )
        if U.events.unconverged:
            out.append(f"{U.events.unconverged} component(s) turned on after max_iter={self.max_iter}: raise it")
        if U.signs.any():  # a pass has looked at them
            z = self.contrast_ * np.sqrt(self._counted) / self._contrast.spread
            out += doubts(z, self.stability_)
        return out

    # -- what a user may ask --

    def transform(self, X: Any, copy: bool = True) -> Any:
        """Return the sources of rows.

        Parameters
        ----------
        X : anything with rows
            As for `fit`, with the same columns.
        copy : bool, default=True
            No effect here: X is never changed.

        Returns
        -------
        S : ndarray of shape (n, k)
        """
        return super().transform(X)

    def inverse_transform(self, X: Any, copy: bool = True) -> np.ndarray:
        """Return the rows that sources make.

        Parameters
        ----------
        X : array of shape (n, k)
            Sources, as `transform` returns them.
        copy : bool, default=True
            No effect here: X is never changed.

        Returns
        -------
        X : ndarray of shape (n, d)
        """
        return super().inverse_transform(X)

    def loadings(self) -> np.ndarray:
        """What sources do to columns: the columns of `mixing_`, for sources of variance 1."""
        return np.asarray(self.mixing_.T * self._scale, dtype=np.float64)

    def explained(self) -> np.ndarray | None:
        """Shares of the variance of X; of independent parts not known."""
        total = float(self.parts.total)
        if self.architecture == "columns" or not total > 0:
            return None
        return np.asarray((self.loadings() ** 2).sum(axis=1) / total)

    @classmethod
    def example(cls, rng: np.random.Generator) -> tuple[FastICA, np.ndarray, Callable[[Any], None]]:
        """Four sources of different shapes in five columns."""
        n = 1500
        S = np.column_stack([
            rng.laplace(size=n) / np.sqrt(2), rng.uniform(-1, 1, size=n) * np.sqrt(3), rng.choice([-1.0, 1.0], size=n),
            rng.standard_t(3, size=n) / np.sqrt(3),
        ])  # fmt: skip
        A = rng.normal(size=(5, 4))
        X = S @ A.T + 0.01 * rng.normal(size=(n, 5)) + rng.normal(size=5)

        def check(fitted: Any) -> None:
            found = np.abs(np.asarray(fitted.components_, dtype=float) @ A) * S.std(axis=0)
            found /= np.linalg.norm(found, axis=1, keepdims=True)
            assert sorted(found.argmax(axis=1)) == [0, 1, 2, 3]
            assert (found.max(axis=1) > 0.98).all()

        return cls(4, random_state=0), X, check


def inverse(K: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of a matrix whose rows are independent."""
    return solved(K @ K.T, K).T
