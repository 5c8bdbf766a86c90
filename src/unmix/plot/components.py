"""Pictures of components: what each describes, where rows and columns lie among them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from unmix.explanation.words import percent, plural
from unmix.linear.pca import PCA
from unmix.model.adapter import adapt
from unmix.model.capabilities import Components, Reconstructs
from unmix.plot.canvas import FILL, MARK, NAME, PALE, SMALL, at_least, bare, canvas, look, plain, titled
from unmix.plot.cloud import cloud, legend, named

LABELLED = 12  # bars that have their share written above
TICKED = 20  # bars that have their number below
REACH = 0.75  # of the rows' extent, to which the longest arrow goes
LETTER = 0.6  # width of a letter, of its height
ROOM = 0.28  # of the width of a picture, for names on one side
LINE = 0.055  # of the height of a picture that a name needs
BINS = 40


def scree(model: Any, ax: Any = None, *, more_than_chance: int | None = None, most: int = 20) -> Any:
    """Draw the share of the variance that each component describes.

    Parameters
    ----------
    model : estimator
        A fitted model whose components describe shares of the variance: `PCA`, `ProbabilisticPCA`, `TruncatedSVD`,
        `FastICA`.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    more_than_chance : int, optional
        How many components are more than chance, as `PCA("parallel").fit(X).n_components_` tells: these are filled, the
        others pale. Those of a `PCA("parallel")` all are.
    most : int, default=20
        Components that are shown.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> ax = unmix.plot.scree(unmix.PCA().fit(X), more_than_chance=1)
    >>> [round(float(bar.get_height()), 2) for bar in ax.patches]
    [0.92, 0.05, 0.02, 0.01]
    """
    model = of_components(model, "scree")
    shares = model.explained()
    if shares is None:
        raise TypeError(
            f"scree: the components of {type(model).__name__} have no shares of the variance; fit PCA, "
            "ProbabilisticPCA, TruncatedSVD or FastICA"
        )
    at_least(1, most=most)
    shares = np.asarray(shares, dtype=np.float64)
    known = more_than_chance
    if known is None and model.get_params(deep=False).get("n_components") == "parallel":
        known = len(shares)
    if known is not None:
        at_least(0, more_than_chance=known)
    k = min(len(shares), int(most))
    ax, _ = canvas(ax, min(4.0 + 0.2 * max(k - 6, 0), 8.0), 3.2)
    at = np.arange(1, k + 1)
    bars = ax.bar(at, shares[:k], width=0.8, color=[FILL if known is None or i < known else PALE for i in range(k)])
    if k <= LABELLED:
        ax.bar_label(bars, [percent(v) for v in shares[:k]], fontsize=SMALL, padding=2)
    ax.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.3g}%")
    ax.margins(y=0.12)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("share of the variance")
    ax.set_xlabel("component" + ("" if known is None else "   (filled: more than chance)"))
    if k <= TICKED:
        ax.set_xticks(at)
    ax.set_xlim(0.3, max(k, 1) + 0.7)
    bare(ax, "left", "bottom")
    told = len(shares) if known is None else min(int(known), len(shares))
    more = f" (the first {k} shown)" if k < len(shares) else ""
    said = f"{plural(told, 'component')} {'describes' if told == 1 else 'describe'} "
    said += f"{percent(round(float(shares[:told].sum()), 9))}{more}"
    titled(ax, said if told else "No component is more than chance")
    return ax


def biplot(
    model: Any, X: Any = None, labels: Any = None, ax: Any = None, *,
    axes: tuple[int, int] = (0, 1), scale: float = 1.0, most: int = 15, density: bool | None = None,
) -> Any:  # fmt: skip
    r"""Draw rows and columns among two principal components: a point for each row, an arrow for each column.

    An arrow points to where rows have more of its column; long ones are well described, and those of columns that vary
    together point the same way (`scale=1`).

    Parameters
    ----------
    model : PCA
        A fitted one, of two components or more.
    X : anything with rows, optional
        The rows, as for `fit`; without them the arrows alone, :math:`\sqrt{λ_a} v_{aj}`.
    labels : array of shape (n,), optional
        The group of each row: colours and symbols.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    axes : tuple of two int, default=(0, 1)
        The components, from 0 on.
    scale : float, default=1.0
        As for `PCA.biplot`: 1 for angles of arrows that are correlations, 0 for distances of rows as they are.
    most : int, default=15
        Arrows that are drawn, the longest first.
    density : bool, optional
        As for `scores`.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> X, kind = load_iris(return_X_y=True, as_frame=True)
    >>> ax = unmix.plot.biplot(unmix.PCA(2).fit(X), X, labels=kind)
    >>> ax.get_xlabel()
    'component 1 (92.5%)'
    """
    model = of_components(model, "biplot")
    if not isinstance(model, PCA):
        raise TypeError(f"biplot: {type(model).__name__} has no principal axes; fit unmix.PCA, or draw its scores")
    if (k := len(model.components_)) < 2:
        raise ValueError(f"biplot shows two components, but model has {k}: fit PCA with n_components=2 or more")
    if X is None and labels is not None:
        raise ValueError("labels without X: give the rows that they belong to")
    at_least(0, most=most)
    two = chosen(axes, k)
    rows = np.zeros((0, 2))
    if X is None:
        ends, names = model.loadings()[two].T, model.column_names or [f"x{j}" for j in range(model.n_features_in_)]
    else:
        rows, ends, names, _ = model.biplot(X, axes=(two[0], two[1]), scale=scale)
    ax, own = canvas(ax, 6.6 if labels is not None else 5.6, 4.8)
    told = cloud(ax, rows, labels, density, own) if len(rows) else ""
    length = np.linalg.norm(ends, axis=1)
    longest = np.argsort(-length, kind="stable")[:most]
    longest = longest[length[longest] > 0]
    if len(rows) and len(longest):
        seen = rows[np.isfinite(rows).all(axis=1)]
        ends = ends * REACH * np.quantile(np.abs(seen), 0.995, axis=0).max() / np.abs(ends[longest]).max()
    for x, y in ends[longest]:
        ax.annotate(
            "", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": MARK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
        )
    ax.update_datalim(np.vstack([ends[longest], np.zeros((1, 2))]))
    ax.margins(0.07)
    ax.autoscale_view()
    for at in (ax.axhline, ax.axvline):
        at(0, color="0.85", lw=0.8, zorder=0)
    beside(ax, ends[longest], [names[j] for j in longest])
    bare(ax)
    ax.set(xlabel=title(model, two[0]), ylabel=title(model, two[1]), xticks=[], yticks=[])
    left = len(names) - len(longest)
    told = "; ".join(filter(None, [told, f"the {len(longest)} longest of {len(names)} arrows" if left > 0 else ""]))
    titled(ax, told[:1].upper() + told[1:])
    return ax


def scores(
    model: Any, X: Any, labels: Any = None, density: bool | None = None, ax: Any = None, *,
    axes: tuple[int, int] = (0, 1),
) -> Any:  # fmt: skip
    """Draw where the rows lie on two components.

    Parameters
    ----------
    model : estimator
        A fitted one that makes components: `PCA`, `FactorAnalysis`, `FastICA`, `KernelPCA`, `NMF` … Of a single
        component the picture is a histogram.
    X : anything with rows
        As for `fit`.
    labels : array of shape (n,), optional
        The group of each row, by number or name: colours and symbols. Rows without a label (None, NaN) are grey.
    density : bool, optional
        Whether to draw how densely rows lie: contours that hold half and 90 % of each group's rows, below the points;
        of more than 10 000 rows, whose points would cover each other, these alone, or shades where there are no
        labels. By default only of so many rows.
    ax : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.
    axes : tuple of two int, default=(0, 1)
        The components, from 0 on.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import unmix
    >>> from sklearn.datasets import load_iris
    >>> X, kind = load_iris(return_X_y=True)
    >>> ax = unmix.plot.scores(unmix.PCA(2).fit(X), X, labels=kind)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '1', '2']
    """
    model = of_components(model, "scores", (Components, Reconstructs))
    z = np.asarray(model.transform(X), dtype=np.float64)
    k = z.shape[1]
    if k == 0:
        raise ValueError(f"scores: {type(model).__name__} found no component; fit one with n_components=2")
    if k == 1:
        return _along_one(model, z[:, 0], labels, ax)
    two = chosen(axes, k)
    z = z[:, two]
    ax, own = canvas(ax, 5.4 + 0.8 * (labels is not None), 4.0)
    titled(ax, (told := cloud(ax, z, labels, density, own))[:1].upper() + told[1:])
    ax.set(xlabel=title(model, two[0]), ylabel=title(model, two[1]))
    bare(ax, "left", "bottom")
    return ax


def _along_one(model: Any, z: np.ndarray, labels: Any, ax: Any) -> Any:
    """Rows on the only component: how many lie where, by group."""
    ax, own = canvas(ax, 5.4, 3.2)
    groups = None if labels is None else named(labels, len(z))
    seen = np.isfinite(z)
    edges = np.histogram_bin_edges(z[seen], BINS)
    if groups is None:
        ax.hist(z[seen], edges, color=FILL)
    else:
        shown = [-1] * bool((groups.code < 0).any()) + list(range(len(groups.names)))
        some = [z[seen & (groups.code == g)] for g in shown]
        drawn = ax.hist(some, edges, stacked=True, color=[look(g)["color"] for g in shown])[2]
        names = ["no label" if g < 0 else plain(groups.names[g]) for g in shown]
        legend(ax, list(drawn) if len(shown) > 1 else [drawn], names, own)
    ax.set(xlabel=title(model, 0), ylabel="rows")
    ax.yaxis.get_major_locator().set_params(integer=True)
    bare(ax, "left", "bottom")
    return ax


def of_components(model: Any, what: str, kinds: tuple[type, ...] = (Components,)) -> Any:
    """The model where it is a fitted one of components."""
    known = adapt(model)
    if not isinstance(known, kinds):
        raise TypeError(f"{what}: {type(known).__name__} is no model of components; fit unmix's PCA, NMF or another")
    check_is_fitted(known)
    return known


def chosen(axes: Any, k: int) -> list[int]:
    """Two of k components."""
    two = list(axes) if isinstance(axes, (tuple, list)) else []
    if len(two) != 2 or not all(isinstance(a, Integral) and 0 <= int(a) < k for a in two):
        raise ValueError(f"axes={axes!r}: give two of the {k} components, from 0 to {k - 1}")
    return [int(a) for a in two]


def title(model: Any, a: int) -> str:
    """A component, and the share of the variance that it describes."""
    shares = model.explained() if isinstance(model, Components) else None
    return f"component {a + 1}" + ("" if shares is None else f" ({percent(float(shares[a]))})")


def beside(ax: Any, ends: np.ndarray, names: list[str]) -> None:
    """Names at the ends of arrows, those of one side apart from each other; the picture is made wide enough."""
    from matplotlib.patheffects import withStroke

    low, high = ax.get_ylim()
    letter = LETTER * SMALL / 72 * ax.figure.dpi / ax.get_window_extent().width  # share of the width
    names = [plain(name, int(np.clip(ROOM / letter, 8, NAME))) for name in names]
    wide = letter * np.array([len(name) for name in names])
    left, right = ax.get_xlim()
    for x, share in zip(ends[:, 0], np.minimum(wide + 0.03, 0.6), strict=True):
        if x >= 0:  # x + share · (right − left) is to be within
            right = max(right, (x - share * left) / (1 - share))
        else:
            left = min(left, (x - share * right) / (1 - share))
    ax.set(xlim=(left, right), ylim=(low, high))
    least, reach = LINE * (high - low), 0.015 * (right - left)
    halo = [withStroke(linewidth=2.5, foreground=ax.get_facecolor(), alpha=0.8)]
    for side in (-1, 1):
        mine = np.flatnonzero((ends[:, 0] >= 0) == (side > 0))
        order = mine[np.argsort(ends[mine, 1], kind="stable")]
        for j, y in zip(order, spread(ends[order, 1], least), strict=True):
            ax.annotate(
                names[j], ends[j], (ends[j, 0] + side * reach, y), ha="left" if side > 0 else "right",
                va="center", fontsize=SMALL, color=MARK, path_effects=halo, zorder=4,
                arrowprops={"arrowstyle": "-", "color": "0.6", "lw": 0.6, "shrinkA": 0, "shrinkB": 0},
            )  # fmt: skip


def spread(y: np.ndarray, least: float) -> np.ndarray:
    """Rising places, moved as little as need be to be `least` apart: isotonic regression of y_i − i·least."""
    from sklearn.isotonic import isotonic_regression

    steps = least * np.arange(len(y))
    return np.asarray(isotonic_regression(y - steps) + steps) if len(y) else y
