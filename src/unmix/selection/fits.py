"""A fit for every k: from the model's own starts, then from the parts of its neighbours, cut in two or joined.

A component of a Gaussian mixture that sits on a few equal values has any likelihood. Where that happened, every k is
fitted again with a larger `reg_covar`, so that all can be compared; where columns vary less than `reg_covar` itself, a
smaller one is taken before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmix.engine.draws import generator
from unmix.engine.start import gain_of
from unmix.model import fit_together
from unmix.model.capabilities import Imputes
from unmix.selection.columns import dominant
from unmix.selection.question import LIKENESS_ROWS, Question

ROUNDS = 3  # of cutting parts in two and joining them
THIN = 1e-4  # share of the variance within components, in some direction, below which one has collapsed
POINT = 1e-7  # the same of the variance of all rows
ROUNDING = 1e-9  # of correlations
FEWEST_ROWS = 1.0  # of a component that has not
HIDING = 0.1  # share of a column's variance from which on a ridge hides it
RIDGE = 1e-2  # `reg_covar` that keeps components from it, as a share of a column's variance


def fitting(q: Question, shape: Any) -> tuple[list[int], str]:
    """The k that the data and the other parameters allow; a sentence on those that they do not."""
    possible, refused = [], {}
    for k in q.ks:
        try:
            q.sized(k).check_parameters(shape)
            possible.append(k)
        except ValueError as error:
            refused[k] = error
    if not possible:
        raise next(iter(refused.values()))
    return possible, f" Not possible: k = {', '.join(map(str, refused))}." if refused else ""


def all_fits(q: Question, tell: Callable[[str], None]) -> None:
    """Fit the k that have no fit yet; then all from one part fewer cut in two, and from one part more joined."""
    w, seed = q.w, q.seed
    new = [k for k in q.ks if k not in q.known]
    tell(f"fitting k = {new[0]} to {new[-1]}")
    models = [q.sized(k) for k in new]
    fits = fit_together(models, q.source, [w] * len(new), [seed] * len(new))
    q.known.update(zip(new, zip(models, fits, strict=True), strict=True))
    fresh = {"grow": {*new, new[0] - 1}, "merge": {*new}}  # fits that were not yet a start of their neighbours
    for name, step in (("grow", 1), ("merge", -1)) * ROUNDS:
        first = {}
        for i, k in enumerate(q.ks):
            if k - step in fresh[name] and k - step in q.known and not collapsed(*q.known[k - step]):
                parts = q.known[k][0].neighbour(q.known[k - step][1], name == "grow", generator(seed, name, i))
                if parts is not None:
                    first[k] = parts
        fresh[name].clear()
        if not first:
            continue
        tell(f"{len(first)} fits from neighbours' parts")
        again = [q.sized(k) for k in first]
        beat = [np.inf if collapsed(*q.known[k]) else q.known[k][1].objective for k in first]
        found = fit_together(again, q.source, [w] * len(again), [seed] * len(again), list(first.values()), beat)
        for k, model, fit, before in zip(first, again, found, beat, strict=True):
            if fit is None or rank(model, fit) >= rank(*q.known[k]):
                continue
            if before - fit.objective > gain_of(model.goal(fit.U, fit.trace[0].objective)):  # less is the same optimum
                fresh["grow"].add(k)
                fresh["merge"].add(k)
            q.known[k] = model, fit


def rank(model: Any, fit: Any) -> tuple[bool, float]:
    """Low is good: a fit of which something collapsed may have any likelihood, and comes last."""
    return collapsed(model, fit), fit.objective


def ridged(model: Any) -> bool:
    """Whether it is a mixture of Gaussians whose covariances have a ridge."""
    return "reg_covar" in model.get_params(deep=False) and isinstance(model, Imputes)


def collapsed(model: Any, fit: Any) -> bool:
    """Whether something of a fit collapsed.

    Of Gaussians with covariances C_k: one holds no row, or the least eigenvalue of W^{−½} C_k W^{−½} is below `THIN`,
    or that of T^{−½} C_k T^{−½} below `POINT`, where W = Σ_k π_k C_k is the covariance within components, and T that of
    all rows. So neither units nor columns that never vary matter. Other models say it themselves.
    """
    if not ridged(model):
        return bool(model.notes(fit.U))
    weights, means, C = model.gaussians()
    if weights.min() * fit.weight < FEWEST_ROWS:
        return True
    W, apart = np.tensordot(weights, C, 1), means - weights @ means
    if C.ndim == 2:
        return bool((C / W).min() < THIN or (C / (W + weights @ apart**2)).min() < POINT)
    return _thinnest(C, W) < THIN or _thinnest(C, W + (apart.T * weights) @ apart) < POINT


def _thinnest(C: np.ndarray, among: np.ndarray) -> float:
    """The least variance of covariances C in any direction, as a share of that of another."""
    unit = np.sqrt(np.maximum(np.diag(among), 1e-300))
    floor = ROUNDING * np.eye(len(among))  # of columns that follow from others
    among, C = among / np.outer(unit, unit) + floor, C / np.outer(unit, unit) + floor
    inverse = np.linalg.solve(np.linalg.cholesky(among), np.eye(len(among)))
    return float(np.linalg.eigvalsh(inverse @ C @ inverse.T).min())


def settle_ridge(q: Question) -> str:
    """Take a smaller `reg_covar` where the usual one would hide columns; what was done, in a sentence."""
    if not (ridged(q.model) and _usual_ridge(q)):
        return ""
    v, usual = variances(q), q.model.get_params(deep=False)["reg_covar"]
    if not len(v) or usual <= HIDING * v.min() or (dominant(v) is None and usual <= HIDING * v.mean()):
        return ""
    return _ridge(q, RIDGE * float(v.min()), "because some columns vary hardly more than that")


def raise_ridge(q: Question) -> str:
    """Take a larger `reg_covar` where something collapsed, and forget the fits; what was done, in a sentence."""
    bad = [str(k) for k in q.ks if collapsed(*q.known[k])]
    if not (bad and ridged(q.model) and _usual_ridge(q)):
        return ""
    v = within(q)
    larger = RIDGE * float(v.mean() if dominant(variances(q)) is None else v.min()) if len(v) else 0.0
    if larger <= q.model.get_params(deep=False)["reg_covar"]:
        return ""
    return _ridge(q, larger, f"because components collapsed (at k = {', '.join(bad)})")


def _usual_ridge(q: Question) -> bool:
    """Whether nobody chose `reg_covar`."""
    return bool(q.model.get_params(deep=False)["reg_covar"] == type(q.model)().get_params(deep=False)["reg_covar"])


def _ridge(q: Question, value: float, why: str) -> str:
    before = q.model.get_params(deep=False)["reg_covar"]
    q.model.set_params(reg_covar=value)
    q.known.clear()
    return f" All k were fitted with reg_covar={value:.2g} instead of {before:.2g}, {why}."


def variances(q: Question) -> np.ndarray:
    """Variances of the columns that vary, of some rows."""
    x = q.rows(LIKENESS_ROWS)[0].astype(np.float64)
    v = np.nanvar(x[:, ~np.isnan(x).all(axis=0)], axis=0)
    return np.asarray(v[v > 0])


def within(q: Question) -> np.ndarray:
    """Variances within the components of the largest sound fit; those of all rows where none is sound."""
    sound = [k for k in q.ks if not collapsed(*q.known[k])]
    if not sound:
        return variances(q)
    weights, _, C = q.known[sound[-1]][0].gaussians()
    v = weights @ (C if C.ndim == 2 else np.diagonal(C, axis1=1, axis2=2))
    return np.asarray(v[v > 2 * q.model.get_params(deep=False)["reg_covar"]])


def fitted(q: Question, k: int) -> Any:
    """The fitted model of k parts."""
    if k in q.known:
        return q.known[k][0]
    model = q.sized(k).set_params(**q.free)
    fit_together([model], q.source, [q.w], [q.seed])
    return model
