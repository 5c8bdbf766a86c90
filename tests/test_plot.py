"""The pictures: what is drawn is right, names are shown as they are, and Matplotlib is imported only for them."""

import importlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA as TheirPCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

import unmix
from unmix.model.capabilities import Components, Groups

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

HOSTILE = ["$x$ & $y$", "<script>alert(1)</script>", "_hidden", r"$\frac{$ \n $" + 40 * "long "]


@pytest.fixture(autouse=True)
def closed():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # of Matplotlib's layout, say
        yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def wine():
    table = unmix.Table(load_wine(as_frame=True).data)
    return table, unmix.KMeans(3, n_init=5, random_state=0).fit(table)


def drawn(ax):
    """The figure of the axes, once all of it was drawn."""
    figure = np.atleast_1d(np.asarray(ax, dtype=object))[0].figure
    figure.canvas.draw()
    return figure


def texts(ax):
    """What is written in the axes."""
    drawn(ax)
    return [t.get_text() for t in ax.findobj(plt.Text) if t.get_text()]


def outside(ax):
    """Whether a figure cuts something off."""
    figure = drawn(ax)
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return not (box.x0 > -0.03 and box.y0 > -0.03 and box.x1 < width + 0.03 and box.y1 < height + 0.03)


def code_of(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


# ---------------------------------------------------------------- the room


def test_the_room_is_there_and_matplotlib_only_when_a_picture_is_drawn():
    seen = "import sys, unmix; assert 'unmix.plot' not in sys.modules; unmix.plot.scree; import unmix.plot\n"
    seen += "assert not [m for m in sys.modules if m.startswith('matplotlib')]\n"
    seen += "assert 'plot' in dir(unmix) and unmix.plot is sys.modules['unmix.plot']"
    found = code_of(seen)
    assert found.returncode == 0, found.stderr


def test_without_matplotlib_the_error_names_the_extra(monkeypatch, iris):
    pca = unmix.PCA(2).fit(iris[0])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"unmix\[plot\]"):
        unmix.plot.scree(pca)
    with pytest.raises(ImportError, match=r"unmix\[plot\]"):
        unmix.plot.choice(None)


def test_every_function_is_told_and_takes_axes():
    assert set(unmix.plot.__all__) == {
        "biplot", "choice", "missing", "profiles", "scores", "scree", "silhouettes", "trace",
    }  # fmt: skip
    module = importlib.import_module("unmix.plot")
    for name in module.__all__:
        assert "Returns" in getattr(module, name).__doc__
        assert "Examples" in getattr(module, name).__doc__


def test_axes_that_are_given_are_drawn_into(iris, wine):
    X, kind = iris
    table, model = wine
    _, axes = plt.subplots(2, 4, figsize=(24, 12))
    a = axes.ravel()
    pca = unmix.PCA(2).fit(X)
    assert unmix.plot.scree(pca, a[0]) is a[0]
    assert unmix.plot.biplot(pca, X, kind, a[1]) is a[1]
    assert unmix.plot.scores(pca, X, kind, ax=a[2]) is a[2]
    assert unmix.plot.profiles(unmix.explain(model, table), a[3]) is a[3]
    assert unmix.plot.silhouettes(table, model.labels_, a[4]) is a[4]
    assert unmix.plot.trace(model, a[5]) is a[5]
    assert unmix.plot.missing(X, [a[6], a[7]]).tolist() == [a[6], a[7]]
    drawn(a)
    _, one = plt.subplots()
    assert {ax.figure for ax in unmix.plot.missing(X, one)} == {one.figure}
    with pytest.raises(TypeError, match=r"ax is a list: give Matplotlib's Axes"):
        unmix.plot.scree(pca, [1])
    with pytest.raises(ValueError, match="ax holds 3 axes: give one, or 2"):
        unmix.plot.missing(X, a[:3])


# ---------------------------------------------------------------- components


def test_scree_draws_the_shares(iris, wine):
    pca = unmix.PCA().fit(iris[0])
    ax = unmix.plot.scree(pca)
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], pca.explained_variance_ratio_)
    assert ax.get_title(loc="left") == "4 components describe 100%"
    assert "92.5%" in texts(ax)
    k = unmix.PCA("parallel", random_state=0).fit(wine[0]).n_components_
    ax = unmix.plot.scree(unmix.PCA().fit(wine[0]), more_than_chance=k)
    colours = [to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert 0 < k < 13
    assert [colours.index(c) for c in colours] == [0] * k + [k] * (13 - k)
    assert (
        len({to_hex(bar.get_facecolor()) for bar in unmix.plot.scree(unmix.PCA("parallel").fit(wine[0])).patches}) == 1
    )
    assert len(unmix.plot.scree(unmix.PCA().fit(wine[0]), most=5).patches) == 5


def test_scree_of_nothing_and_of_what_has_no_shares(iris):
    rng = np.random.default_rng(0)
    ax = unmix.plot.scree(unmix.PCA("parallel", random_state=0).fit(rng.normal(size=(200, 6))))
    assert ax.get_title(loc="left") == "No component is more than chance"
    drawn(ax)
    with pytest.raises(NotFittedError):
        unmix.plot.scree(unmix.PCA())
    with pytest.raises(TypeError, match="NMF have no shares of the variance; fit PCA"):
        unmix.plot.scree(unmix.NMF(2).fit(iris[0]))
    with pytest.raises(TypeError, match="KMeans is no model of components"):
        unmix.plot.scree(unmix.KMeans(2).fit(iris[0]))
    with pytest.raises(TypeError, match="PCA is no model of components; fit unmix's"):
        unmix.plot.scree(TheirPCA().fit(iris[0]))
    pca = unmix.PCA().fit(iris[0])
    for wrong in ({"more_than_chance": -1}, {"more_than_chance": 1.5}, {"most": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            unmix.plot.scree(pca, **wrong)


def test_biplot_draws_rows_and_arrows(iris):
    X, kind = iris
    pca = unmix.PCA(3).fit(X)
    ax = unmix.plot.biplot(pca, X, labels=kind, axes=(2, 0))
    picture = pca.biplot(X, axes=(2, 0))
    rows = np.concatenate([points.get_offsets() for points in ax.collections])
    np.testing.assert_allclose(rows, picture.rows[np.argsort(kind, kind="stable")])
    ends = np.array([t.xy for t in ax.texts if not t.get_text()])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert ends.shape == (4, 2)
    longest = picture.columns[np.argsort(-np.linalg.norm(picture.columns, axis=1))]
    np.testing.assert_allclose(ends / np.linalg.norm(ends), longest / np.linalg.norm(longest), atol=1e-12)
    assert ax.get_xlabel().startswith("component 3 (")
    assert set(X.columns) < set(texts(ax))
    assert not outside(ax)
    alone = unmix.plot.biplot(pca)
    ends = np.array([t.xy for t in alone.texts if not t.get_text()])
    loadings = pca.loadings()[:2].T
    np.testing.assert_allclose(ends, loadings[np.argsort(-np.linalg.norm(loadings, axis=1))])


def test_biplot_of_many_columns_draws_the_longest():
    X = np.random.default_rng(0).normal(size=(100, 50))
    ax = unmix.plot.biplot(unmix.PCA(2).fit(X), X, most=7)
    assert sum(not t.get_text() for t in ax.texts) == 7
    assert ax.get_title(loc="left") == "The 7 longest of 50 arrows"


def test_biplot_refuses_what_has_no_two_axes(iris):
    X = iris[0]
    with pytest.raises(ValueError, match="model has 1: fit PCA with n_components=2"):
        unmix.plot.biplot(unmix.PCA(1).fit(X), X)
    with pytest.raises(TypeError, match=r"NMF has no principal axes; fit unmix\.PCA"):
        unmix.plot.biplot(unmix.NMF(2).fit(X), X)
    with pytest.raises(ValueError, match=r"axes=\(0, 5\): give two of the 2 components, from 0 to 1"):
        unmix.plot.biplot(unmix.PCA(2).fit(X), X, axes=(0, 5))
    with pytest.raises(ValueError, match="labels without X"):
        unmix.plot.biplot(unmix.PCA(2).fit(X), labels=iris[1])


def test_scores_draws_every_row_by_group(iris):
    X, kind = iris
    pca = unmix.PCA(2).fit(X)
    z = np.asarray(pca.transform(X))
    names = np.array(["setosa", "versicolor", "virginica"])[kind]
    ax = unmix.plot.scores(pca, X, labels=names)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["setosa", "versicolor", "virginica"]
    for g, points in enumerate(ax.collections):
        np.testing.assert_allclose(points.get_offsets(), z[kind == g])
    assert len({to_hex(p.get_facecolor()[0][:3]) for p in ax.collections}) == 3
    assert len({p.get_paths()[0].vertices.tobytes() for p in ax.collections}) == 3  # symbols
    assert not outside(ax)
    (every,) = unmix.plot.scores(pca, X).collections
    np.testing.assert_allclose(every.get_offsets(), z)


@pytest.mark.parametrize("model", [unmix.NMF(2), unmix.KernelPCA(2), unmix.FastICA(2, random_state=0)])
def test_scores_of_other_models(model, iris):
    X = iris[0].to_numpy()
    ax = unmix.plot.scores(model.fit(X), X)
    np.testing.assert_allclose(ax.collections[0].get_offsets(), model.transform(X)[:, :2])


def test_scores_without_labels_of_some_rows_and_with_holes(iris):
    X, kind = iris[0].copy(), iris[1].to_numpy()
    X.iloc[::5, 1] = np.nan
    pca = unmix.PCA(2).fit(X)
    for labels in (np.where(kind == 2, np.nan, kind), np.where(kind == 2, None, kind.astype(str)).astype(object)):
        ax = unmix.plot.scores(pca, X, labels=labels)
        assert [t.get_text() for t in ax.get_legend().get_texts()] == ["no label", "0", "1"]
        assert [len(p.get_offsets()) for p in ax.collections] == [50, 50, 50]
    ax = unmix.plot.scores(pca, X, labels=pd.Series(kind).astype("category"))
    assert len(ax.collections) == 3
    with pytest.raises(ValueError, match=r"labels has the shape \(3,\), but X has 150 rows"):
        unmix.plot.scores(pca, X, labels=[1, 2, 3])
    with pytest.raises(ValueError, match=r"150 different values, beyond the 70 .* cut numbers into ranges"):
        unmix.plot.scores(pca, X, labels=np.linspace(0, 1, 150))
    ax = unmix.plot.scores(pca, X, labels=np.arange(150) % 60)
    assert ax.get_legend().get_texts()[-1].get_text() == "… and 40 more"


def test_scores_of_one_component_is_a_histogram(iris):
    X, kind = iris
    pca = unmix.PCA(1).fit(X)
    assert sum(bar.get_height() for bar in unmix.plot.scores(pca, X).patches) == 150
    ax = unmix.plot.scores(pca, X, labels=kind)
    assert sum(bar.get_height() for bar in ax.patches) == 150
    assert len(ax.get_legend().get_texts()) == 3
    one = unmix.plot.scores(pca, X, labels=np.zeros(150))
    assert [t.get_text() for t in one.get_legend().get_texts()] == ["0"]
    drawn(one)


def test_many_rows_are_drawn_by_how_densely_they_lie():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3)) * [3.0, 2.0, 1.0]
    pca = unmix.PCA(2).fit(X)
    ax = unmix.plot.scores(pca, X)
    assert ax.collections[0].get_array().sum() == 20_000
    ax = unmix.plot.scores(pca, X, labels=np.arange(20_000) % 2)
    z = np.asarray(pca.transform(X))[::2]
    outer = ax.collections[1].get_paths()[0]
    held = [np.mean(p.contains_points(z)) for p in (outer, *ax.collections[0].get_paths())]
    assert held[0] == pytest.approx(0.9, abs=0.03)
    assert held[1] == pytest.approx(0.5, abs=0.05)
    assert len(unmix.plot.scores(pca, X, density=False).collections[0].get_offsets()) == 20_000
    few = unmix.plot.scores(pca, X[:40], labels=[0] * 35 + [1] * 5, density=True)
    drawn(few)  # contours, and points of a group too small for them


def test_densities_of_few_rows_are_drawn_below_their_points(iris):
    X, kind = iris
    pca = unmix.PCA(2).fit(X)
    alone = unmix.plot.scores(pca, X, density=True)
    assert alone.get_title(loc="left") == "Contours hold half and 90% of the rows"
    groups = unmix.plot.scores(pca, X, labels=kind, density=True)
    for ax, k in ((alone, 1), (groups, 3)):
        points = [c for c in ax.collections if len(c.get_offsets()) > 1]
        outlines = [c for c in ax.collections if len(c.get_offsets()) <= 1]
        assert sum(len(c.get_offsets()) for c in points) == 150
        assert len(points) == k
        assert len(outlines) == 2 * k  # a shade, and two lines
        assert max(c.get_zorder() for c in outlines) < min(c.get_zorder() for c in points)
    assert [t.get_text() for t in groups.get_legend().get_texts()] == ["0", "1", "2"]
    assert not unmix.plot.scores(pca, X, labels=kind).get_title(loc="left")


# ---------------------------------------------------------------- groups


def test_profiles_are_those_of_the_report(wine):
    table, model = wine
    found = unmix.explain(model, table)
    ax = unmix.plot.profiles(found)
    shown = ax.images[0].get_array()
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert len(names) == 12
    from unmix.reporting.groups import _effects

    for cell in _effects(found).values["cells"]:
        column = [unit.name for unit in found.units].index(cell["column"])
        group = [g.name for g in found.groups].index(cell["group"])
        assert shown[column, group] == pytest.approx(cell["value"], abs=0.006)
    low, high = ax.images[0].get_clim()
    assert -low == high == pytest.approx(np.abs(shown).max())
    assert [t.get_text().split("\n")[0] for t in ax.get_xticklabels()] == ["group 1", "group 2", "group 3"]
    assert not outside(ax)


def test_profiles_name_the_level_of_a_category():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": np.r_[rng.normal(30, 3, 40), rng.normal(60, 3, 40)], "town": ["Ulm"] * 40 + ["Bonn"] * 40}
    )
    table = unmix.Table(frame)
    ax = unmix.plot.profiles(unmix.explain(unmix.KMeans(2, random_state=0).fit(table), table))
    assert any(text.endswith("\nUlm") or text.endswith("\nBonn") for text in texts(ax))


def test_profiles_need_groups_that_differ(iris):
    X = iris[0]
    with pytest.raises(TypeError, match="found is a FoundComponents: give groups"):
        unmix.plot.profiles(unmix.explain(unmix.PCA(2).fit(X)))
    with pytest.raises(ValueError, match="most=0: give a whole number of at least 1"):
        unmix.plot.profiles(unmix.explain(unmix.KMeans(2, random_state=0).fit(X), X), most=0)
    with pytest.raises(ValueError, match="compares at least two groups"):
        unmix.plot.profiles(unmix.explain(unmix.KMeans(1).fit(X), X))


def test_silhouettes_are_sorted_within_each_cluster(iris):
    X = iris[0]
    labels = unmix.KMeans(3, n_init=3, random_state=0).fit_predict(X)
    found = unmix.validate.silhouette(X, labels, per_row=True)
    ax = unmix.plot.silhouettes(X, labels)
    for k, band in enumerate(ax.patches):
        np.testing.assert_allclose(band.get_data().values, np.sort(found.per_row[labels == k])[::-1])
    told = [t.get_text().split() for t in ax.get_yticklabels()]
    assert told == [[str(k), f"{m:.2f}"] for k, m in enumerate(found.per_cluster)]
    assert ax.get_title(loc="left") == f"Mean silhouette {found.score:.2f}"
    assert not outside(ax)
    ax = unmix.plot.silhouettes(X, labels, sample=50, random_state=0)
    assert sum(len(band.get_data().values) for band in ax.patches) == 50
    assert "±" in ax.get_title(loc="left")
    with pytest.raises(ValueError, match="one cluster"):
        unmix.plot.silhouettes(X, np.zeros(150, int))


def test_silhouettes_of_many_rows_and_of_rows_that_weigh_nothing():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(3000, 2)), np.arange(3000) % 2
    ax = unmix.plot.silhouettes(X, labels)
    assert [len(band.get_data().values) for band in ax.patches] == [1000, 1000]
    assert ax.patches[0].get_data().edges[-1] == 1500
    w = np.ones(60)
    w[:20] = 0
    ax = unmix.plot.silhouettes(X[:60], labels[:60], sample_weight=w)
    assert sum(len(band.get_data().values) for band in ax.patches) == 40


# ---------------------------------------------------------------- fits


def test_choice_is_the_picture_of_the_selection(iris):
    X = iris[0].to_numpy()
    answer = unmix.select(unmix.KMeans(), X, k=range(1, 5), criterion=["icl", "silhouette"], random_state=0)
    axes = unmix.plot.choice(answer)
    assert len(axes) == len(answer.votes) == 2
    chosen = unmix.Select("KMeans", k=range(1, 4), random_state=0).fit(X)
    drawn(unmix.plot.choice(chosen))
    with pytest.raises(TypeError, match=r"selection is a KMeans: give what unmix\.select"):
        unmix.plot.choice(chosen.model_)


def test_trace_draws_every_step_and_marks_the_rejected(iris):
    model = unmix.GaussianMixture(3, random_state=0).fit(iris[0])
    good = [s for s in model.trace_ if s.accepted]
    bad = [s for s in model.trace_ if not s.accepted]
    assert bad
    ax = unmix.plot.trace(model)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), [[s.number, s.objective] for s in good])
    assert ax.lines[1].get_xdata().tolist() == [s.number for s in bad]
    top = max(s.objective for s in good)
    assert (ax.lines[1].get_ydata() <= top + 0.1 * abs(top)).all()
    assert ax.get_title(loc="left") == f"GaussianMixture: converged, {len(model.trace_)} steps"
    assert "after k-means" in ax.get_xlabel()
    ax = unmix.plot.trace(model, gap=True)
    assert ax.get_yscale() == "log"
    assert np.nanmin(ax.lines[0].get_ydata()) > 0
    drawn(ax)


def test_trace_of_stages_of_closed_forms_and_of_others(iris):
    X = iris[0]
    ax = unmix.plot.trace(unmix.PCA(2).fit(X))
    assert "a closed form: no objective" in texts(ax)
    both = unmix.KMeans(3, random_state=0).fit(X)
    from unmix.engine.trace import Ended

    both.stages_ = [Ended("first", "solved", both.trace_), Ended("silent", "solved", [])]
    axes = unmix.plot.trace(both)
    assert [a.get_title(loc="left").split(":")[0] for a in axes] == ["first", "KMeans"]
    _, one = plt.subplots()
    assert len(unmix.plot.trace(both, one)) == 2
    drawn(one)
    single = unmix.KMeans(3, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single.fit(X)
    for gap in (False, True):
        drawn(unmix.plot.trace(single, gap=gap))
    with pytest.raises(NotFittedError):
        unmix.plot.trace(unmix.KMeans())
    with pytest.raises(TypeError, match="PCA keeps no trace"):
        unmix.plot.trace(TheirPCA().fit(X))


@pytest.mark.parametrize("name", unmix.models())
def test_every_model_has_a_trace_to_draw(name):
    model, X, _ = unmix.models()[name].example(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    drawn(unmix.plot.trace(model))
    if isinstance(model, Components):
        drawn(unmix.plot.scores(model, X))


# ---------------------------------------------------------------- missing cells


def test_missing_counts_every_cell():
    X = np.arange(4000.0).reshape(1000, 4)
    X[100:300, 1:3] = np.nan
    X[::10, 0] = np.nan
    left, right = unmix.plot.missing(X)
    shades = left.images[0].get_array()
    assert shades.shape == (4, 200)
    np.testing.assert_allclose(shades[1], np.isnan(X[:, 1]).reshape(200, 5).mean(axis=1))
    np.testing.assert_allclose(shades.mean(axis=1), np.isnan(X).mean(axis=0))
    assert left.get_title(loc="left") == "12% of the cells are empty"
    assert [t.get_text() for t in left.get_yticklabels()] == ["x0  10%", "x1  20%", "x2  20%", "x3  ·"]
    assert [t.get_text() for t in right.get_xticklabels()] == ["72%", "18%", "8.0%", "2.0%"]
    marked = [sorted(line.get_ydata()) for line in right.lines[1::2]]
    assert marked == [[], [1, 2], [0], [0, 1, 2]]
    assert not outside(left)


def test_missing_takes_what_has_rows(tmp_path):
    frame = pd.DataFrame(
        {"who": ["ann", None, "cid"], "when": pd.to_datetime(["2020-01-01", None, None]), "age": [1.0, np.nan, 3.0]}
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    np.save(tmp_path / "a.npy", frame[["age"]].to_numpy())
    words = pd.DataFrame({"who": ["ann", None, "cid"] * 40})
    for X, empty in (
        (frame, [1, 2, 1]), (str(tmp_path / "a.csv"), [1, 2, 1]), (unmix.Table(frame), [1, 2, 1]),
        (tmp_path / "a.npy", [1]), (lambda: iter([np.array([[np.nan, 1.0]]), np.array([[2.0, 3.0]])]), [1, 0]),
        (sp.csr_array(np.eye(3)), [0, 0, 0]), (words, [40]),
        (unmix.as_source(sp.csr_array(np.eye(3)), absent="unobserved"), [2, 2, 2]),
    ):  # fmt: skip
        left, _ = unmix.plot.missing(X)
        shades = left.images[0].get_array()
        np.testing.assert_allclose(shades.sum(axis=1), empty)
        drawn(left)


def test_missing_of_many_columns_has_bins_and_the_emptiest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 250))
    X[:, 200:220][rng.random((500, 20)) < 0.5] = np.nan
    X[:100, 7] = np.nan
    left, right = unmix.plot.missing(X, patterns=3)
    assert left.images[0].get_array().shape == (100, 200)
    assert left.images[0].get_array().mean() == pytest.approx(np.isnan(X).mean(), rel=1e-3)
    assert [t.get_text().split()[0] for t in right.get_yticklabels()] == [f"x{j}" for j in range(200, 220)]
    assert right.get_title(loc="left").startswith("20 emptiest columns: 3 of ")
    assert not outside(left)
    with pytest.raises(ValueError, match="patterns=0"):
        unmix.plot.missing(X, patterns=0)


# ---------------------------------------------------------------- hostile names


def test_names_are_shown_as_they_are():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)) + 5 * (np.arange(60) % 2)[:, None], columns=HOSTILE)
    labels = np.array(HOSTILE)[np.arange(60) % 4]
    pca, model = unmix.PCA(2).fit(X), unmix.KMeans(2, random_state=0).fit(X)
    ax = unmix.plot.biplot(pca, X, labels=labels)
    assert len(ax.get_legend().get_texts()) == 4  # a line below at the start hides nothing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (
            ax, unmix.plot.scores(pca, X, labels=labels), unmix.plot.profiles(unmix.explain(model, X)),
            unmix.plot.silhouettes(X, labels), unmix.plot.missing(X)[0],
        ):  # fmt: skip
            shown = [t for t in texts(one) if r"x\$" in t]
            assert shown
            assert all(matplotlib.cbook.is_math_text(t) is False for t in shown)
            assert not outside(one)


# ---------------------------------------------------------------- the HTML of models


@pytest.mark.parametrize("name", unmix.models())
def test_the_html_of_a_model_says_what_it_found(name):
    model, X, _ = unmix.models()[name].example(np.random.default_rng(0))
    before = model._repr_html_()
    assert "group" not in before.partition("<style>")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    page = model._repr_html_()
    assert len(page) > len(before) / 2
    if isinstance(model, Groups):
        k = model.get_params().get("n_clusters") or model.get_params()["n_components"]
        sizes = ", ".join(f"{n:,}" for n in np.bincount(model.labels_, minlength=k))
        assert f"{k} groups" in page
        assert f"of {sizes} rows" in page
    if isinstance(model, Components):
        assert "component 1" in page
    assert ("weights 0" in page) == ("weights_" in vars(model))
    assert model.findings() or name == "GaussianImputer"
    assert estimator_html_repr(make_pipeline(StandardScaler(), model))


def test_the_html_says_what_sets_groups_of_a_table_apart(wine):
    table, model = wine
    lines = model.findings()
    found = unmix.explain(model, table)
    for g, group in enumerate(found.groups):
        more = next(line for line in lines if line.startswith(f"group {g + 1}: "))
        named = re.findall(r"[\w/]+", more.partition(": ")[2].replace("more", "").replace("less", ""))
        away = {name: value - found.centre[name] for name, value in group.centre.items()}
        for name in named:
            high = name in more.partition("less")[0]
            assert (away[name] > 0) == high, (more, name)
    assert all(line in model._repr_html_() for line in lines)
    assert (
        len(unmix.KMeans(3, random_state=0).fit(load_wine().data).findings()) == 1
    )  # in no units that can be compared
    frame = pd.DataFrame({"town": ["Ulm"] * 40 + ["Bonn"] * 40 + ["Jena"] * 2, "age": [30.0] * 40 + [60.0] * 42})
    told = "; ".join(unmix.KMeans(2, random_state=0).fit(unmix.Table(frame)).findings())
    assert "town = Ulm" in told


def test_the_html_of_questions_says_what_was_found():
    frame = load_wine(as_frame=True).data
    assert unmix.OutlierDetector().findings() == unmix.Imputer().findings() == unmix.Select("KMeans").findings() == []
    slip = frame.copy()
    slip.loc[17, "alcohol"] = 138.3
    judge = unmix.OutlierDetector(random_state=0)
    odd = judge.fit_predict(slip) == -1
    (told,) = judge.findings()
    assert told.startswith(f"{odd.sum()} of 178 rows are odd at alpha=")
    assert told.endswith("; the strangest: 17")
    assert told in judge._repr_html_()
    chosen = unmix.Select("KMeans", range(1, 5), random_state=0).fit(unmix.Table(frame))
    assert chosen.findings()[0] == chosen.selection_.sentence
    assert chosen.findings()[1:] == chosen.model_.findings() != []
    filled = unmix.Imputer(random_state=0).fit(frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1))
    assert filled.findings() == [filled.reason_]


def test_the_html_shows_names_as_they_are(iris):
    X = iris[0].set_axis(HOSTILE, axis=1)
    pca = unmix.PCA(2).fit(X)
    page = pca._repr_html_()
    assert "<script>alert" not in page
    assert "component 1 (92.5%): _hidden" in page
    assert "text/html" in pca._repr_mimebundle_()
    online = unmix.KMeans(2, random_state=0).partial_fit(X)._repr_html_()
    assert "of rows" not in online.partition("<style>")[0]  # behind it scikit-learn explains the parameters
