"""Pictures of the pages: each page's own code is run, and what it made is drawn, so text and picture cannot differ."""

import contextlib
import io
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse
from scipy.optimize import linear_sum_assignment

import unmix

HERE = Path(__file__).parent
STYLE = {
    "figure.constrained_layout.use": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "font.size": 10,
    "svg.hashsalt": "unmix",
}
COLOURS = np.array(["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#333333", "#ee9944", "#99bbaa"])


def blocks(page):
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def outputs(page):
    """What the page shows below each of them as text, or ""."""
    fenced = r"^```python\n.*?^```\n(?:\n```text\n(.*?)^```)?"
    return re.findall(fenced, page.read_text(), re.MULTILINE | re.DOTALL)


def run(page):
    """Run the blocks of a page in order; the names that they made, and what each printed."""
    names, printed = {"__name__": page.stem}, []
    for i, code in enumerate(blocks(page)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page.name}, block {i + 1}", "exec"), names)
        printed.append(out.getvalue())
    plt.close("all")
    return names, printed


def scatter(ax, X, labels, title=None, **more):
    ax.scatter(*X.T, c=COLOURS[labels], s=9, lw=0, alpha=0.8, **more)
    ax.set(xticks=[], yticks=[], title=title)
    ax.set_aspect("equal", adjustable="datalim")
    ax.spines[:].set_visible(False)


def figure(width, height, *layout, **more):
    return plt.subplots(*layout, figsize=(width, height), **more)


# ---------------------------------------------------------------- How many clusters?


def seven(ns):
    fig, (left, right) = figure(8.4, 3.6, 1, 2, width_ratios=[1, 1.25])
    scatter(left, ns["X"], ns["answer"].model.labels_, "the rows")
    ns["answer"].plot(right)
    return fig


def noise(ns):
    rows, answer = ns["noise"], ns["nothing"]
    fig, (left, middle, right) = figure(10.5, 3.6, 1, 3, width_ratios=[1, 1.25, 1.1])
    scatter(
        left, rows, unmix.KMeans(answer.votes["silhouette"], random_state=0).fit_predict(rows), "noise, cut in three"
    )
    answer.plot(middle)
    rng = np.random.default_rng(0)
    for at, (X, k) in enumerate([(rows, 3), (ns["X"], 7)]):
        like = [gain(rng.uniform(X.min(axis=0), X.max(axis=0), X.shape), k) for _ in range(30)]
        right.plot(like, at + rng.uniform(-0.15, 0.15, 30), "o", ms=4, color="0.6", mew=0, label="rows without groups")
        right.plot([gain(X, k)] * 2, [at - 0.3, at + 0.3], color=COLOURS[1], lw=2.5, label="the data")
    right.set(yticks=[0, 1], yticklabels=["noise\nk = 3", "7 groups\nk = 7"], ylim=(-0.6, 1.9))
    right.set(xlabel="g = log D(1) − log D(k)", title="what k parts gain")
    right.legend(
        *(v[:2] for v in right.get_legend_handles_labels()), frameon=False, loc="upper left", ncols=2, fontsize=9
    )
    return fig


def gain(X, k):
    one, many = (unmix.KMeans(j, n_init=3, random_state=0).fit(X).inertia_ for j in (1, k))
    return np.log(one / many)


def nested(ns):
    Y, answer = ns["Y"], ns["split"]
    fig, (left, middle, right) = figure(10.5, 3.6, 1, 3, width_ratios=[1, 1, 1.3])
    for ax, name in ((left, "silhouette"), (middle, "bic")):
        k = answer.votes[name]
        scatter(ax, Y, unmix.GaussianMixture(k, n_init=20, random_state=0).fit(Y).labels_, f"{name}: {k}")
    answer.plot(right)
    return fig


# ---------------------------------------------------------------- How sure is a clustering?


def silhouette(ns):
    labels, found = ns["model"].labels_, ns["found"]
    fig, (left, right) = figure(8.4, 3.6, 1, 2)
    scatter(left, ns["X"], labels, "the rows")
    order = np.lexsort((found.per_row, labels))
    for k in range(len(found.clusters)):
        rows = np.flatnonzero(labels[order] == k)
        right.fill_betweenx(rows, found.per_row[order][rows], color=COLOURS[k], step="mid", lw=0)
    right.axvline(found.score, color="black", ls=":", lw=1)
    right.annotate(f" mean {found.score:.2f}", (found.score, len(order)), va="bottom")
    right.set(yticks=[], xlabel="silhouette of the row", ylim=(0, 1.08 * len(order)))
    return fig


def stability(ns):
    fig, ax = figure(5.6, 3.2)
    for name in ("pairs", "transfer"):
        ax.errorbar(ns["ks"], [s.score for s in ns[name]], [s.se for s in ns[name]], marker="o", capsize=3, label=name)
    ax.set(xlabel="k", ylabel="stability", xticks=list(ns["ks"]), ylim=(0, 1.05))
    ax.legend(frameon=False, loc="lower left")
    return fig


# ---------------------------------------------------------------- Which rows are strange?


def outliers(ns):
    X, new = ns["X"], ns["new"]
    fig, axes = figure(9, 3.1, 1, 2, sharex=True, sharey=True)
    x, y = np.meshgrid(np.linspace(-10, 8, 181), np.linspace(-6, 6, 121))
    grid = np.column_stack([x.ravel(), y.ravel()])
    for ax, model in zip(axes, (unmix.GaussianMixture(2), unmix.KMeans(2)), strict=True):
        detector = unmix.OutlierDetector(model, random_state=0).fit(X)
        p = detector.p_values(grid).reshape(x.shape)
        levels = [0.01, 0.05, 0.25, 0.5, 1.0]
        shades = ax.contourf(x, y, p, levels, colors=["#dce8f2", "#b5d0e6", "#84b2d6", "#4f8fc0"])
        ax.scatter(*X.T, s=3, color="black", lw=0, alpha=0.5)
        strange = detector.p_values(new) <= 0.01
        ax.scatter(*new[strange].T, marker="X", s=60, color=COLOURS[1], ec="white", lw=0.6)
        ax.scatter(*new[~strange].T, marker="o", s=55, color=COLOURS[2], ec="white", lw=0.6)
        ax.set(title=type(model).__name__, aspect="equal", xticks=range(-8, 9, 4))
    fig.colorbar(shades, ax=axes, label="p-value of a new row", shrink=0.85)
    return fig


# ---------------------------------------------------------------- Holes in your table


def holes(ns):
    frame, filled, std, truth = ns["frame"], ns["filled"], ns["std"], ns["truth"]
    fig, (a, b) = figure(9, 3.4, 1, 2, sharex=True, sharey=True)
    gone = (frame["income"].isna() & frame["age"].notna()).to_numpy()
    age = frame["age"][gone]
    for ax in (a, b):
        ax.scatter(frame["age"], frame["income"], s=6, lw=0, color="#bbbbbb")
        ax.set(xlabel="age")
    a.errorbar(age, filled["income"][gone], 1.645 * std["income"][gone], fmt="o", ms=4, lw=0.8, color=COLOURS[0])
    a.plot(age, truth["income"][gone], "x", ms=5, color=COLOURS[1])
    seen = frame[["age", "income"]].dropna()
    line = np.polyfit(seen["age"], seen["income"], 1)
    a.plot([20, 70], np.polyval(line, [20, 70]), "--", lw=1, color="#777777")
    a.set(ylabel="income", title="conditional means, and 90 %")
    for d, colour in zip(ns["draws"][:3], COLOURS[2:5], strict=True):
        b.plot(age, d["income"][gone], "o", ms=3.5, color=colour)
    b.set(title="three draws")
    return fig


# ---------------------------------------------------------------- Which clustering?


def clustering(ns):
    fig, axes = figure(10, 5.2, 2, 4)
    (a, b, c, d), (e, f, g, h) = axes
    X = ns["X"]
    scatter(a, X, ns["kmeans"].labels_, "KMeans")
    a.plot(*ns["kmeans"].cluster_centers_.T, "kx", ms=8, mew=2)
    scatter(b, X, np.zeros(len(X), int), "SoftKMeans")
    rgb = np.array([to_rgb(v) for v in COLOURS[:3]])
    b.collections[0].set_facecolor(ns["soft"].transform(X) @ rgb)
    b.plot(*ns["soft"].cluster_centers_.T, "kx", ms=8, mew=2)
    scatter(c, ns["rings"], ns["kernel"].labels_, "KernelKMeans")
    near = ns["wild"][:, 0] < 20
    scatter(d, ns["wild"][near], ns["medoids"].labels_[near], "KMedoids")
    d.plot(*ns["medoids"].cluster_centers_.T, "ks", ms=6, mfc="none", mew=1.5)
    scatter(e, ns["cross"], ns["mixture"].predict(ns["cross"]), "GaussianMixture")
    ellipses(e, ns["mixture"])
    scatter(f, X, ns["bayes"].labels_, "BayesianGaussianMixture")
    ellipses(f, ns["bayes"])
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(ns["table"]))
    scatter(
        g,
        np.column_stack([ns["table"][:, 0] + jitter, ns["table"][:, 2]]),
        ns["mixed"].labels_,
        "Mixture: mixed columns",
    )
    scatter(h, np.sqrt(ns["waits"]), ns["own"].labels_, "Mixture: your own")
    for ax, xlabel, ylabel in ((g, "visits", "spent"), (h, "√ wait 1", "√ wait 2")):
        ax.set(xlabel=xlabel, ylabel=ylabel, aspect="auto")
    return fig


def ellipses(ax, model):
    """Two standard deviations of each component that holds rows."""
    for k, (mean, C) in enumerate(zip(model.means_, model.covariances_, strict=True)):
        if (model.labels_ == k).any():
            value, vector = np.linalg.eigh(C)
            turn = np.degrees(np.arctan2(*vector[::-1, 1]))
            ax.add_patch(Ellipse(mean, *4 * np.sqrt(value[::-1]), angle=turn, fill=False, lw=1.2))


# ---------------------------------------------------------------- Denoise pictures


def pixels(ax, image, title, low=0, high=255, colours="gray"):
    ax.imshow(image, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.set(xticks=[], yticks=[], title=title)
    ax.spines[:].set_visible(False)


def denoising(ns):
    fig = plt.figure(figsize=(9.6, 4.9))
    above, below = fig.subfigures(2, 1)
    best = ns["ks"][int(np.argmax(ns["projected"]))]
    shown = {"noisy": ns["noisy"], f"PCA, k = {best}": ns["projection"](best), "ProbabilisticPCA": ns["clean"]}
    for ax, (title, image) in zip(above.subplots(1, 3), shown.items(), strict=True):
        pixels(ax, image, f"{title}: {ns['psnr'](image):.1f} dB")
    left, middle, right = below.subplots(1, 3)
    pixels(left, ns["truth"], "without noise")
    tiles = ns["model"].components_[:24].reshape(4, 6, 8, 8)
    tiles = np.pad(tiles / np.abs(tiles).max(axis=(2, 3), keepdims=True), ((0, 0), (0, 0), (0, 1), (0, 1)))
    pixels(middle, tiles.transpose(0, 2, 1, 3).reshape(36, 54)[:-1, :-1], "the first 24 components", -1, 1, "RdBu")
    for name, values, colour in (("shrunk", ns["shrunk"], COLOURS[0]), ("projected", ns["projected"], COLOURS[1])):
        right.plot(ns["ks"], values, "o-", color=colour, ms=4, label=name)
    right.set(xlabel="components", ylabel="dB")
    right.legend(frameon=False, loc="lower center")
    return fig


# ---------------------------------------------------------------- Part moving things from a still background


def background(ns):
    fig, axes = figure(9.6, 5.6, 3, 4)
    for row, t in zip(axes, (10, 40, 75), strict=True):
        pixels(row[0], ns["film"][t], "film")
        pixels(row[1], ns["ghosts"][t], "PCA")
        pixels(row[2], ns["background"][t], "RobustPCA: background")
        pixels(row[3], ns["moving"][t], "RobustPCA: moving", -150, 150, "RdBu_r")
        row[0].set_ylabel(f"frame {t}")
    for ax in axes[1:].ravel():
        ax.set_title("")
    return fig


# ---------------------------------------------------------------- Kernels


def concentric(ns):
    X, source = ns["X"], ns["source"]
    fig, (a, b, c) = figure(10.5, 3.6, 1, 3)
    scatter(a, X, source, "two concentric sources")
    for ax, z, title in ((b, ns["flat"], "PCA"), (c, ns["curved"], "KernelPCA, rbf, γ = ¼")):
        scatter(ax, z, source, title)
        ax.set(xlabel="first component", ylabel="second component", aspect="auto")
    return fig


def denoised(ns):
    fig, (a, b, c) = figure(10.5, 3.6, 1, 3)
    for ax, name, title in ((a, "noisy", "with noise"), (b, "by_ridge", "ridge"), (c, "by_point", "fixed point")):
        ax.plot(*ns["clean"].T, ".", color="0.8", ms=3)
        scatter(ax, ns[name], np.zeros(len(ns[name]), int), title)
    return fig


# ---------------------------------------------------------------- Unmixing signals


def signals(ax, t, Y, title, colours):
    """Signals above one another, each scaled to its own size."""
    for i, (y, colour) in enumerate(zip(Y.T, colours, strict=True)):
        y = (y - y.mean()) / np.quantile(np.abs(y - y.mean()), 0.999)  # a single click does not make all else small
        ax.plot(t, -i + 0.42 * np.clip(y, -1.1, 1.1), color=colour, lw=0.9)
    ax.set(title=title, yticks=[], xticks=[])
    ax.spines[:].set_visible(False)


def unmixed(ns):
    S, found = ns["S"], ns["found"]
    r = np.corrcoef(found.T, S.T)[:4, 4:]
    order = np.abs(r).argmax(axis=0)
    back = found[:, order] * np.sign(r[order, np.arange(4)])
    few = slice(0, 1000)
    fig, axes = figure(10.5, 3.4, 1, 4)
    shown = {"sources": S, "measured": ns["X"], "principal components": ns["PCA"](4).fit_transform(ns["X"])}
    shown["independent components"] = back
    for ax, (title, Y) in zip(axes, shown.items(), strict=True):
        own = title in ("sources", "independent components")
        signals(ax, ns["t"][few], Y[few], title, COLOURS[:4] if own else ["0.35"] * 4)
    return fig


def architectures(ns):
    fig, axes = figure(9.6, 1.9, 2, 16)
    for row, (title, model) in zip(axes, {"rows": ns["whole"], "columns": ns["local"]}.items(), strict=True):
        for ax, part in zip(row, model.mixing_.T, strict=True):
            top = np.abs(part).max()
            ax.imshow(part.reshape(8, 8), cmap="RdBu_r", vmin=-top, vmax=top)
            ax.set_axis_off()
        named = row[0].text(-0.5, -1.4, f'architecture="{title}"')
        named.set_in_layout(False)  # else the first part gets more room
    fig.get_layout_engine().set(rect=(0, 0, 1, 0.88), hspace=0.35)
    return fig


# ---------------------------------------------------------------- Roles in an access list


def roles_found(ns):
    places = [["truth", "list", "list", "list"], ["mac", "basis", "miner", "svd"]]
    fig, axes = plt.subplot_mosaic(places, figsize=(10.5, 3.6))
    axes["truth"].imshow(np.where(ns["roles"], 0.35, 1.0), cmap="gray", aspect="auto", vmin=0, vmax=1)
    axes["truth"].set(title="the roles")
    axes["list"].imshow(np.where(ns["X"].T > 0, 0.35, 1.0), cmap="gray", aspect="auto", vmin=0, vmax=1)
    axes["list"].set(title="the list: 200 users from left to right, 24 permissions")
    models = {"mac": ns["model"], "basis": ns["basis"], "miner": ns["noisy"], "svd": unmix.RoundedSVD(3).fit(ns["X"])}
    for where, model in models.items():
        found = matched(model.roles_, ns["roles"])
        shade = np.repeat(np.where(found, 0.35, 1.0)[..., None], 3, axis=2)
        shade[found != ns["roles"]] = to_rgb(COLOURS[1])
        axes[where].imshow(shade, aspect="auto")
        axes[where].set(title=type(model).__name__)
    for ax in axes.values():
        ax.set(xticks=[], yticks=[])
    return fig


def matched(found, truth):
    """Roles in the order in which they differ least from the true ones."""
    return found[linear_sum_assignment((truth[:, None] != found).sum(axis=2))[1]]


def roles_noise(ns):
    runs = json.loads((HERE.parent / "benchmarks" / "boolean_noise.json").read_text())["three"]
    fig, axes = figure(9.6, 3.6, 1, 2)
    for ax, what in zip(axes, ("mismatch", "generalisation"), strict=True):
        for i, (name, values) in enumerate(runs["methods"].items()):
            ax.plot(runs["noise"], values[what], "o-", ms=3, lw=2.4 if i == 0 else 1, color=COLOURS[i], label=name)
        ax.set(xlabel="share of noise", ylim=(0, None))
    axes[0].set(title="parameter mismatch, %")
    axes[1].set(title="generalisation error, %")
    axes[0].legend(frameon=False, fontsize=7)
    return fig


# ---------------------------------------------------------------- Which linear model?


def linear(ns):
    fig, (a, b, c, d) = figure(13, 3.2, 1, 4)
    picture = ns["picture"]
    size = 0.7 * np.abs(picture.rows).max() / np.abs(picture.columns).max()
    a.scatter(*picture.rows.T, s=8, lw=0, color="0.7")
    for end in size * picture.columns:
        a.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": COLOURS[0], "lw": 1})
    for j in ns["best"][:2]:
        end = size * picture.columns[j]
        a.text(*end, picture.names[j].split("_")[0], color=COLOURS[0], fontsize=8, ha="left" if end[0] > 0 else "right")
    a.margins(0.15)
    a.set(title="PCA: a biplot", xticks=[], yticks=[], xlabel=picture.titles[0], ylabel=picture.titles[1])
    columns = np.arange(7)
    b.bar(columns - 0.3, np.abs(ns["first"]), 0.28, color="0.7", label="PCA, first")
    for i, W in enumerate(np.abs(ns["factors"].components_)):
        b.bar(columns + 0.3 * i, W, 0.28, color=COLOURS[i], label=f"factor {i + 1}")
    b.set(title="FactorAnalysis: loadings", xlabel="column", xticks=columns, ylim=(0, 1.6))
    b.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    c.plot(*np.nonzero(ns["wrong"]), "o", ms=5, mfc="none", color="0.6", mew=0.8)
    c.plot(*np.nonzero(np.abs(ns["robust"].sparse_) > 1), "o", ms=2, color=COLOURS[1], mew=0)
    c.set(title="RobustPCA: wrong cells", xlabel="row", ylabel="column", xticks=[], yticks=[])
    for i, (part, axis) in enumerate(
        zip(ns["nmf"].components_, unmix.PCA(3).fit(ns["spectra"]).components_, strict=True)
    ):
        d.plot(part / part.max(), color=COLOURS[i], lw=1.6)
        d.plot(axis / np.abs(axis).max() - 2.2, color=COLOURS[i], lw=1.2, ls="--")
    d.axhline(-2.2, color="0.8", lw=0.8, zorder=0)
    d.set(title="NMF (above), PCA (below)", yticks=[], xlabel="column")
    return fig


# ---------------------------------------------------------------- Pictures in a notebook


def plot_components(ns):
    plot, pca, table, group = unmix.plot, ns["pca"], ns["table"], ns["model"].labels_ + 1
    fig, ax = plt.subplot_mosaic([["scree", "scores"], ["biplot", "biplot"]], figsize=(9, 8), height_ratios=[1, 1.3])
    plot.scree(pca, ax["scree"], more_than_chance=ns["k"])
    plot.scores(pca, table, labels=group, density=True, ax=ax["scores"])
    plot.biplot(pca, table, labels=group, ax=ax["biplot"])
    return fig


def plot_density(ns):
    fig, (a, b) = figure(9.6, 3.6, 1, 2, width_ratios=[1.15, 1])
    unmix.plot.scores(ns["wide"], ns["rows"], ax=a)
    unmix.plot.scores(ns["wide"], ns["rows"], labels=ns["kind"], ax=b)
    return fig


def plot_groups(ns):
    fig, (a, b) = figure(10.6, 4.6, 1, 2)
    unmix.plot.profiles(ns["found"], a)
    unmix.plot.silhouettes(ns["table"], ns["model"].labels_ + 1, b)
    return fig


def plot_fits(ns):
    fig, (a, b) = figure(10, 3.4, 1, 2)
    unmix.plot.choice(ns["answer"], a)
    unmix.plot.trace(ns["mixture"], b)
    return fig


def sure(ns):
    mean, deviation, test, train = (ns[name] for name in ("mean", "deviation", "test", "train"))
    fig, (left, right) = figure(9, 3.4, 1, 2, width_ratios=[1.2, 1])
    many = test["user"].map(train["user"].value_counts()).fillna(0).to_numpy()
    left.scatter(many, test["rating"] - mean, s=6, lw=0, color="0.6", alpha=0.7)
    edges = np.quantile(many, np.linspace(0, 1, 9))
    place = np.clip(np.searchsorted(edges, many, side="right") - 1, 0, 7)
    at = [many[place == i].mean() for i in range(8) if (place == i).any()]
    half = np.array([1.645 * deviation[place == i].mean() for i in range(8) if (place == i).any()])
    for sign in (-1, 1):
        left.plot(at, sign * half, color=COLOURS[0])
    left.set(
        xlabel="ratings of the user in the training part",
        ylabel="rating less prediction",
        title="errors, and 90 % intervals",
    )
    busy = test["user"].value_counts().index[0]
    own = (test["user"] == busy).to_numpy()
    order = np.argsort(mean[own])
    x = np.arange(own.sum())
    right.errorbar(x, mean[own][order], 1.645 * deviation[own][order], fmt="none", ecolor=COLOURS[0], elinewidth=1)
    right.plot(x, mean[own][order], "o", ms=3, color=COLOURS[0], label="predicted")
    right.plot(x, test["rating"].to_numpy()[own][order], "x", ms=5, color=COLOURS[1], label="given")
    right.set(title="one user", xlabel="held-out ratings", xticks=[])
    right.legend(frameon=False)
    return fig


def plot_missing(ns):
    return unmix.plot.missing(ns["frame"])[0].figure


def tour(ns):
    fig, ax = figure(6, 3.6)
    unmix.plot.scores(ns["pca"], ns["table"], ax=ax, labels=ns["model"].labels_ + 1, density=True)
    return fig


PAGES = {
    "tour": (tour,),
    "plot": (plot_components, plot_density, plot_groups, plot_fits, plot_missing),
    "how_many": (seven, noise, nested),
    "how_sure": (silhouette, stability),
    "outliers": (outliers,),
    "clustering": (clustering,),
    "denoising": (denoising,),
    "background": (background,),
    "kernels": (concentric, denoised),
    "ica": (unmixed, architectures),
    "roles": (roles_found, roles_noise),
    "which_linear_model": (linear,),
    "holes": (holes,),
    "recommend": (sure,),
}


def draw(names, page, folder):
    """Write the pictures of a page from the names that its code made."""
    folder.mkdir(exist_ok=True)
    with plt.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # vanished components and the like are the page's subject
        for picture in PAGES.get(page, ()):
            fig = picture(names)
            fig.savefig(folder / f"{picture.__name__}.svg", metadata={"Date": None})
            plt.close(fig)
    if page == "how_many":
        (folder / "seven.html").write_text(names["answer"]._repr_html_())
    if page == "index":
        (folder / "wines.html").write_bytes(Path("wines.html").read_bytes())


def draw_all(folder):
    """Run the code of every page, in a folder of its own, and write the pictures of those that have some."""
    folder = Path(folder).resolve()
    sys.path.append(str(HERE.parent / "examples"))
    for page in sorted(HERE.glob("*.md")):
        with tempfile.TemporaryDirectory() as elsewhere, contextlib.chdir(elsewhere):
            draw(run(page)[0], page.stem, folder)


if __name__ == "__main__":
    draw_all(HERE / "_static")
