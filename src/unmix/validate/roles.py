"""How good are roles: what they lose and grant too much, do they return, are they the planted ones, what of new users?

deviation       ‖X − Z ⊗ U‖₁ / (n d)            over the observed cells
coverage        Σ x (Z ⊗ U) / Σ x               the share of grants that roles give
over-grants     Σ (1 − x)(Z ⊗ U) / Σ x          what they give beyond, per grant
complexity      K + Σ z + Σ u                   roles, roles given to users, permissions in roles
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils import check_random_state


class RoleErrors(NamedTuple):
    """How far roles are from a list of grants.

    Attributes
    ----------
    deviation : float
        The share of observed cells that differ.
    coverage : float
        The share of grants that roles give.
    over_grants : float
        Grants that roles give and X does not have, per grant of X.
    n_roles : int
        How many roles somebody has.
    complexity : int
        Roles, roles given to users, and permissions in roles, added up.

    Examples
    --------
    >>> from unmix.validate import role_errors
    >>> role_errors([[1, 1, 0], [0, 1, 1]], [[1, 1, 0]], [[1], [0]]).n_roles
    1
    """

    deviation: float
    coverage: float
    over_grants: float
    n_roles: int
    complexity: int


class RoleMatch(NamedTuple):
    """Roles beside planted ones, matched so that as few cells as possible differ.

    Attributes
    ----------
    found : ndarray of int of shape (k,)
        The role that each planted one is matched with, −1 where there are too few.
    distance : ndarray of float of shape (k,)
        The share of permissions that differ; of a planted role without a match, from none.
    mismatch : float
        The mean of these over as many roles as the larger of both has; one too many counts from none.

    Examples
    --------
    >>> from unmix.validate import match_roles
    >>> match_roles([[0, 1, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]]).distance.round(2).tolist()
    [0.0, 0.33]
    """

    found: np.ndarray
    distance: np.ndarray
    mismatch: float


class Generalisation(NamedTuple):
    """What roles say of cells that they were not shown.

    Attributes
    ----------
    error : float
        The share of hidden cells that are wrong.
    found : float
        The share of hidden grants that roles give.
    precision : float
        The share of what roles give among hidden cells that is granted.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RoleCover
    >>> from unmix.validate import role_generalisation
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    >>> role_generalisation(RoleCover().fit(X), X, random_state=0).precision
    1.0
    """

    error: float
    found: float
    precision: float


def role_errors(X: Any, roles: Any, assignments: Any) -> RoleErrors:
    """Return how far roles and who has them are from a list of grants.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        1 where a user has a permission, 0 where not, NaN where nobody knows.
    roles : array of shape (k, d)
        1 where a role holds a permission.
    assignments : array of shape (n, k)
        1 where a user has a role.

    Returns
    -------
    errors : RoleErrors

    Examples
    --------
    >>> from unmix.validate import role_errors
    >>> found = role_errors([[1, 1, 0], [0, 1, 1]], [[1, 1, 0]], [[1], [0]])
    >>> found.coverage, found.over_grants, found.complexity
    (0.5, 0.0, 4)
    """
    from unmix.kernels import bits

    ones, known = truth(X)
    U, Z = _truth_of(roles, "roles"), _truth_of(assignments, "assignments")
    if Z.shape != (ones.shape[0], U.shape[0]) or U.shape[1] != ones.shape[1]:
        raise ValueError(
            f"X is {ones.shape}, roles {U.shape} and assignments {Z.shape}: give (n, d), (k, d) and (n, k), a row of "
            "assignments for each user"
        )
    given = bits.product(bits.pack(Z), bits.pack(U))
    lost, extra = bits.errors(bits.pack(ones), given if known is None else given & bits.pack(known))
    cells = ones.shape[0] * ones.shape[1] if known is None else int(known.sum())
    grants, used = max(int(ones.sum()), 1), Z.any(axis=0)
    return RoleErrors(
        float(lost.sum() + extra.sum()) / max(cells, 1),
        1.0 - float(lost.sum()) / grants,
        float(extra.sum()) / grants,
        int(used.sum()),
        int(used.sum() + Z.sum() + U[used].sum()),
    )


def match_roles(found: Any, planted: Any) -> RoleMatch:
    """Return the best one-to-one matching of roles with planted ones.

    Parameters
    ----------
    found : array of shape (k, d)
        Roles of a fit.
    planted : array of shape (k', d)
        The true ones.

    Returns
    -------
    match : RoleMatch

    Examples
    --------
    >>> from unmix.validate import match_roles
    >>> match_roles([[0, 1, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]]).found.tolist()
    [1, 0]
    """
    U, truth_ = _truth_of(found, "found"), _truth_of(planted, "planted")
    if U.shape[1] != truth_.shape[1]:
        raise ValueError(
            f"found has {U.shape[1]} columns, planted {truth_.shape[1]}: give the same permissions in both"
        )
    size, d = max(len(U), len(truth_)), U.shape[1]
    a, b = (np.vstack([r, np.zeros((size - len(r), d), bool)]) for r in (truth_, U))
    gap = (a[:, None] != b).sum(axis=2) if size * size * d < 1 << 24 else _gaps(a, b)
    row, column = linear_sum_assignment(gap)
    share = gap[row, column] / d
    which = np.where(column < len(U), column, -1)[: len(truth_)]
    return RoleMatch(which, share[: len(truth_)], float(share.mean()) if size else 0.0)


def role_generalisation(model: Any, X: Any, *, seen: float = 0.5, random_state: Any = None) -> Generalisation:
    """Return how well the roles of a fitted model tell the cells of new users, of whom it sees a part.

    Parameters
    ----------
    model : fitted model
        One that takes missing cells and rebuilds rows, as `RoleCover`.
    X : array of shape (n, d)
        Users that the model was not fitted to.
    seen : float, default=0.5
        The share of each user's cells that the model is shown.
    random_state : int, RandomState or None
        Which cells.

    Returns
    -------
    generalisation : Generalisation

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RoleCover
    >>> from unmix.validate import role_generalisation
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    >>> round(role_generalisation(RoleCover().fit(X), X, seen=0.75, random_state=0).found, 2)
    0.89
    """
    if not 0 < seen < 1:
        raise ValueError(f"seen={seen!r}: give a share between 0 and 1")
    ones, known = truth(X)
    known = np.ones_like(ones) if known is None else known
    hidden = known & (check_random_state(random_state).random_sample(ones.shape) >= seen)
    rows = np.where(known & ~hidden, ones.astype(float), np.nan)
    told = np.asarray(model.reconstruct(rows)) > 0.5
    wrong, right = (told != ones) & hidden, told & ones & hidden
    return Generalisation(
        float(wrong.sum()) / max(int(hidden.sum()), 1),
        float(right.sum()) / max(int((ones & hidden).sum()), 1),
        float(right.sum()) / max(int((told & hidden).sum()), 1),
    )


def role_stability(
    model: Any, X: Any, *, n_resamples: int = 10, share: float = 0.8, random_state: Any = None
) -> np.ndarray:
    """Return for each role of a fitted model how surely it comes back from other users like these.

    The model is fitted anew to some of the users, again and again; a role's stability is the mean overlap (Jaccard
    index) with the role of those fits that is most like it.

    Parameters
    ----------
    model : fitted model with `roles_`
        It is not changed.
    X : array or CSR matrix of shape (n, d)
        The users of its fit.
    n_resamples : int, default=10
        How many fits.
    share : float, default=0.8
        The share of the users that each sees.
    random_state : int, RandomState or None
        Which users.

    Returns
    -------
    stability : ndarray of shape (k,)
        1 where a role was found in every fit.

    Examples
    --------
    >>> import numpy as np
    >>> from unmix import RoleCover
    >>> from unmix.validate import role_stability
    >>> X = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 20, axis=0)
    >>> role_stability(RoleCover().fit(X), X, n_resamples=3, random_state=0).tolist()
    [1.0, 1.0]
    """
    if n_resamples < 1 or not 0 < share <= 1:
        raise ValueError(f"n_resamples={n_resamples!r}, share={share!r}: give a number from 1 on and a share up to 1")
    rng, rows = check_random_state(random_state), sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    U, total = _truth_of(model.roles_, "roles_"), np.zeros(len(model.roles_))
    for _ in range(n_resamples):
        some = np.sort(rng.permutation(rows.shape[0])[: max(1, round(share * rows.shape[0]))])
        V = _truth_of(clone(model).fit(rows[some]).roles_, "roles_").astype(float)
        both = U.astype(float) @ V.T
        either = U.sum(axis=1)[:, None] + V.sum(axis=1) - both
        total += (both / np.maximum(either, 1)).max(axis=1, initial=0.0)
    return total / n_resamples


def truth(X: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Cells as truth values, and which are known (None: all)."""
    if sp.issparse(X):
        return _truth_of(X, "X"), None
    cells = np.asarray(X)
    if cells.dtype.kind == "f" and np.isnan(cells).any():
        known = ~np.isnan(cells)
        return _truth_of(np.where(known, cells, 0.0), "X"), known
    return _truth_of(cells, "X"), None


def _truth_of(X: Any, name: str) -> np.ndarray:
    """A table of 0 and 1 as truth values."""
    cells = X.toarray() if sp.issparse(X) else np.asarray(X)
    if cells.ndim != 2:
        raise ValueError(f"{name} is an array of shape {cells.shape}: give a table of 0 and 1")
    if cells.dtype != bool and (bad := cells[(cells != 0) & (cells != 1)]).size:
        raise ValueError(f"{name} holds {bad[0]}: give 1 where it is granted and 0 where it is not")
    return cells.astype(bool)


def _gaps(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many cells of each pair of rows differ."""
    from unmix.kernels import bits

    both = bits.shared(bits.pack(a), bits.pack(b)).astype(np.int64)
    return np.asarray(a.sum(axis=1)[:, None] + b.sum(axis=1) - 2 * both)
