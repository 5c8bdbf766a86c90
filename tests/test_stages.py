"""Stages: toy models whose fits are not passes of one kind, and what the engine promises of all stages."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import unmix
from unmix.engine.block import Local
from unmix.engine.stage import Sizes, Stage
from unmix.model import Model, fit_together
from unmix.testing.compare import same_bits
from unmix.testing.ends import At, Killed, interrupt, kill
from unmix.testing.problem import steps_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # fits are broken off


# ---------------------------------------------------------------- moments, then rows


class Whiten(Stage):
    """Hands on the mean and the whitening of the covariance: one round over moments."""

    name, over, most = "whiten", "moments", 1

    def start(self, before, data, rng):
        return np.zeros(data.x.shape[1]), np.eye(data.x.shape[1])

    def step(self, U, data, rng):
        shift, scatter = data.centred()
        values, axes = np.linalg.eigh(scatter / data.n)
        return (shift, axes / np.sqrt(values) @ axes.T), None

    def hand(self, U, data):
        return U


class Direction(NamedTuple):
    origin: np.ndarray
    shift: np.ndarray
    white: np.ndarray
    v: np.ndarray


class Skewest(Model):
    """The direction of whitened rows with the largest E|z|³ of positive sign: v ← E[y (vᵀy)²], as in ICA."""

    collect = True

    def __init__(self, max_iter=200, tol=1e-9, n_init=1, random_state=None):
        self.max_iter, self.tol, self.n_init, self.random_state = max_iter, tol, n_init, random_state

    def stages(self, shape):
        return [Whiten(), self]

    def start(self, before, data, rng):
        v = rng.standard_normal(data.x.shape[1])
        origin = (np.ones(len(data.x)) if data.w is None else data.w) @ data.x / data.total
        return Direction(origin.astype(data.x.dtype).astype(float), *before, v / np.linalg.norm(v))

    def _z(self, U, b):
        y = (b.x - U.origin - U.shift) @ U.white
        return y, y @ U.v

    def local(self, U, b):
        y, z = self._z(U, b)
        return Local(z, b.weighted(y * (z**2)[:, None]).sum(axis=0), -b.sum(z**3))

    def update(self, U, stats):
        return U._replace(v=stats / np.linalg.norm(stats))

    def encode(self, U, b):
        return self._z(U, b)[1][:, None]

    def publish(self, fit):
        self.components_ = (fit.U.white @ fit.U.v)[None]
        if fit.z is not None:
            self.z_ = fit.z


def skewed():
    rng = np.random.default_rng(0)
    S = np.column_stack([rng.exponential(size=2000), rng.standard_normal((2000, 2))])
    return S @ np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 2]]) + 100.0, S[:, 0]


# ---------------------------------------------------------------- rounds on all rows whose objective may rise


class Order(NamedTuple):
    at: np.ndarray
    tries: int


class Anneal(Stage):
    """Turns pieces of an order round at random; now and then it also takes a longer way."""

    name, over, most = "anneal", "whole", 100
    may_rise = "longer ways are taken on purpose"

    def open(self, data, rng):
        return data.x.astype(float)

    def start(self, before, data, rng):
        return Order(rng.permutation(len(data)), 0)

    def length(self, at, x):
        return float(np.linalg.norm(np.diff(x[at], axis=0), axis=1).sum())

    def step(self, U, data, rng):
        at, now = U.at, self.length(U.at, data)
        for _ in range(30):
            i, j = np.sort(rng.choice(len(at), 2, replace=False))
            new = np.concatenate([at[:i], at[i : j + 1][::-1], at[j + 1 :]])
            if self.length(new, data) < self.length(at, data) or rng.random() < 0.1 * np.exp(-U.tries / 5):
                at = new
        return Order(at, U.tries + 1), now / len(data)

    def goal(self, U, first):
        return False


class Tour(Model):
    """A short way through all rows; a row's z is how far it is from the nearest end."""

    exempt = {"online": "a way is through all rows"}

    def __init__(self, random_state=None):
        self.random_state = random_state

    def stages(self, shape):
        return [Anneal()]

    def local(self, U, b):
        z = np.zeros((len(b.x), 1))
        return Local(z, 0.0, 0.0)

    def publish(self, fit):
        self.order_, self.components_ = fit.U.at, np.zeros((1, 1))


# ---------------------------------------------------------------- nothing to learn


class Cosines(Model):
    """A fixed basis: z = x Cᵀ with C the discrete cosine transform; the data are never read."""

    exempt = {"online": "there is nothing to learn"}

    def __init__(self, n_components=4):
        self.n_components = n_components

    def stages(self, shape):
        return []

    def start(self, before, data, rng):
        k, j = np.arange(self.n_components)[:, None], np.arange(self.shape.d)
        C = np.cos(np.pi * (j + 0.5) * k / self.shape.d) * np.sqrt(2 / self.shape.d)
        C[0] /= np.sqrt(2)
        return (C,)

    def local(self, U, b):
        z = b.x @ U[0].T
        return Local(z, 0.0, b.sum((b.x**2).sum(axis=1) - (z**2).sum(axis=1)))

    def decode(self, U, z):
        return z @ U[0]

    def publish(self, fit):
        self.components_ = fit.U[0]


# ---------------------------------------------------------------- what they find


def test_moments_then_rows():
    X, source = skewed()
    model = Skewest(random_state=0).fit(X)
    z = model.transform(X)[:, 0]
    assert abs(np.corrcoef(z, source)[0, 1]) > 0.99
    assert np.array_equal(z, model.z_)
    assert model.result_ == "converged"
    assert [(s.name, s.result, len(s.trace)) for s in model.stages_] == [("whiten", "solved", 1)]
    assert np.isnan(model.stages_[0].trace[0].objective)
    many = Skewest(n_init=5, random_state=0).fit(X)  # the starts share the moments
    assert many.trace_[-1].objective <= model.trace_[-1].objective + 1e-9
    with unmix.config(block_rows=100, n_jobs=2):
        blocks = Skewest(random_state=0).fit(X)
    np.testing.assert_allclose(blocks.components_, model.components_, rtol=1e-6)


def test_online_steps_begin_with_the_earlier_stages_of_the_first_batch():
    X, source = skewed()
    model = Skewest(random_state=0).partial_fit(X[:500])
    white = model.parts.white.copy()
    assert model.result_ == "running"
    for i in range(500, 2000, 100):
        model.partial_fit(X[i : i + 100])
    assert np.array_equal(model.parts.white, white)
    assert len(model.trace_) == 16
    assert abs(np.corrcoef(model.transform(X)[:, 0], source)[0, 1]) > 0.95


def test_the_best_is_kept_where_the_objective_may_rise():
    X = np.random.default_rng(1).random((60, 2))
    model = Tour(random_state=0).fit(X)
    objective = np.array([s.objective for s in model.trace_])
    assert (np.diff(objective) > 0).any()
    kept = np.array([s.accepted for s in model.trace_])
    assert (np.diff(objective[kept]) <= 0).all()
    length = Anneal().length(model.order_, X) / 60
    assert length <= objective.min() + 1e-12
    assert objective.min() < 0.6 * objective[0]
    assert sorted(model.order_) == list(range(60))


def test_a_stage_that_finds_nothing_better_ends():
    X = np.random.default_rng(1).random((4, 2))
    with pytest.warns(ConvergenceWarning, match="nothing better in 10 rounds; .* longer ways are taken on purpose"):
        model = Tour(random_state=0).fit(X)
    assert model.result_ == "stopped"
    assert len(model.trace_) < 100


def test_nothing_to_learn_reads_nothing(monkeypatch):
    X = np.random.default_rng(0).standard_normal((50, 16))
    X[3, 3] = np.inf  # nobody looks
    model = Cosines(16).fit(X)
    assert (model.result_, model.trace_, model.n_iter_) == ("solved", [], 1)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X[:3])), X[:3])
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(16), atol=1e-12)


# ---------------------------------------------------------------- what the engine promises


class Tree:
    """A callback that writes down the tasks as they end, and whether a fitted model came with them."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        above = None if context.parent is None else context.parent.task_name
        self.told.append(
            (above, context.task_name, fitted_estimator is not None and hasattr(fitted_estimator, "trace_"))
        )


def test_callbacks_see_fit_stage_step_and_a_fitted_model_from_the_last_stage_on():
    X, _ = skewed()
    tree = Tree()
    model = Skewest(max_iter=3, tol=0, random_state=0).set_callbacks(tree).fit(X)
    steps = [("passes", "pass", True)] * len(model.trace_)
    assert tree.told == [
        ("whiten", "round", False), ("fit", "whiten", False), *steps, ("fit", "passes", False), (None, "fit", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "model", [Skewest(max_iter=20, random_state=0), pytest.param(Tour(random_state=0), marks=pytest.mark.slow)]
)
def test_toys_are_stopped_and_resumed_at_every_step(model, tmp_path):
    X = skewed()[0][:60]
    fresh = lambda: pickle.loads(pickle.dumps(model))  # noqa: E731
    truth = fresh().fit(X)
    for step in [*range(1, min(steps_of(truth), 22) + 1), steps_of(truth)]:
        path = tmp_path / f"{step}"
        with unmix.config(checkpoint=path, checkpoint_seconds=0.0), pytest.raises(Killed):
            fresh().set_callbacks(At(step, kill)).fit(X)
        with unmix.config(checkpoint=path):
            assert same_bits(fresh().fit(X).parts, truth.parts)
        stopped = fresh().set_callbacks(At(step, interrupt)).fit(X)
        assert steps_of(stopped) == step


def test_missing_cells_found_on_the_way_begin_the_fit_anew():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 4)) @ rng.standard_normal((4, 4))
    X[-1, 2] = np.nan  # in no sample of a few rows
    pca = unmix.PCA(2).fit(X)
    assert pca.result_ == "converged"  # by EM
    assert not pca.shape.complete
    assert unmix.PCA(2).fit(X[:-1]).result_ == "solved"
    np.testing.assert_allclose(pca.explained_variance_, unmix.PCA(2).fit(X[:-1]).explained_variance_, rtol=1e-3)


def test_given_parts_belong_to_the_last_stage():
    X, _ = skewed()
    truth = Skewest(random_state=0).fit(X)
    (again,) = fit_together([Skewest(random_state=1)], X, [None], [1], first=[truth.parts])
    assert again.stages == []
    assert len(again.trace) <= 2


def test_what_rounds_hold_is_gone_before_the_closing_pass(monkeypatch):
    import gc
    import weakref

    held, alive = [], []

    class Big(Anneal):
        most = 3

        def open(self, data, rng):
            out = super().open(data, rng)
            held.append(weakref.ref(out))
            return out

    class Watched(Tour):
        def stages(self, shape):
            return [Big()]

        def local(self, U, b):
            gc.collect()
            alive.extend(r() is not None for r in held)
            return super().local(U, b)

    Watched(random_state=0).fit(np.random.default_rng(1).random((30, 2)))
    assert alive
    assert not any(alive)


def test_interrupted_in_an_earlier_stage_the_last_one_makes_no_step(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = unmix.GaussianMixture(3, random_state=0).set_callbacks(At(1, interrupt))
    with pytest.warns(ConvergenceWarning, match="interrupted after round 1 of the stage 'k-means'"):
        model.fit(X)
    assert model.result_ == "stopped"
    assert model.trace_ == []
    assert [(s.name, s.result) for s in model.stages_] == [("k-means", "stopped")]
    assert np.isfinite(model.score(X))
    assert model.n_iter_ == 1


def test_starts_draw_from_seed_stage_start_and_step():
    draws = []

    class Draws(Tour):
        def stages(self, shape):
            class Noisy(Anneal):
                most = 2

                def step(self, U, data, rng):
                    draws.append(float(rng.random()))
                    return super().step(U, data, rng)

            second = Noisy()
            second.name = "again"
            return [Noisy(), second]

        def starts(self):
            return 2

    Draws(random_state=0).fit(np.random.default_rng(1).random((30, 2)))
    assert len(draws) == 12 == len(set(draws))  # the last parts of each are looked at once more
    before = [*draws]
    draws.clear()
    Draws(random_state=0).fit(np.random.default_rng(1).random((30, 2)))
    assert draws == before


# ---------------------------------------------------------------- found by readers


class Walk(Stage):
    """Goes through objectives that are given."""

    name, over, most, may_rise = "walk", "nothing", None, "it does"

    def __init__(self, values):
        self.values = values

    def start(self, before, data, rng):
        return (0,)

    def step(self, U, data, rng):
        return (U[0] + 1,), self.values[min(U[0], len(self.values) - 1)]

    def goal(self, U, first):
        return False


class Walker(Model):
    exempt = {"online": "it walks"}

    def __init__(self, values=(5.0, 4.0, 3.0), max_iter=3, rises=True):
        self.values, self.max_iter, self.rises = values, max_iter, rises

    def stages(self, shape):
        walk = Walk(self.values)
        walk.may_rise = "it does" if self.rises else ""
        return [walk]

    def local(self, U, b):
        return Local(np.zeros((len(b.x), 1)), 0.0, 0.0)

    def publish(self, fit):
        self.components_, self.at_ = np.zeros((1, 1)), fit.U[0]


def test_the_last_parts_count_only_if_they_are_better():
    X = np.zeros((3, 2))
    assert Walker((5.0, 4.0, 3.0, 100.0)).fit(X).at_ == 2  # the next would be worth 100
    assert Walker((5.0, 4.0, 3.0, 2.0)).fit(X).at_ == 3
    assert Walker((5.0, 4.0, 9.0, 2.0)).fit(X).at_ == 1


def test_a_round_whose_objective_is_nan_is_not_finite():
    model = Walker((5.0, np.nan, 3.0), max_iter=10, rises=False).fit(np.zeros((3, 2)))
    assert model.result_ == "nonfinite"
    assert model.at_ == 0


class Spoilt(Skewest):
    """Its first stage hands on what is not finite."""

    def stages(self, shape):
        class Bad(Whiten):
            def step(self, U, data, rng):
                return (U[0] * np.nan, U[1]), None

        return [Bad(), self]


def test_a_stage_without_an_objective_names_the_parts_that_are_not_finite():
    fit = fit_together([Spoilt(max_iter=2, random_state=0)], skewed()[0], [None], [0])[0]
    assert fit.stages[0].result == "nonfinite"


def test_ctrl_c_amid_the_first_round_is_after_none():
    class Interrupted(Walk):
        def step(self, U, data, rng):
            raise KeyboardInterrupt

    class Model_(Walker):
        def stages(self, shape):
            return [Interrupted(self.values)]

    with pytest.warns(ConvergenceWarning, match="interrupted after round 0"):
        Model_().fit(np.zeros((3, 2)))


def test_ctrl_c_in_an_early_stage_of_an_online_step_is_heard():
    class Interrupted(Whiten):
        def step(self, U, data, rng):
            raise KeyboardInterrupt

    class Model_(Skewest):
        def stages(self, shape):
            return [Interrupted(), self]

    model = Model_(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(skewed()[0])
    assert not hasattr(model, "trace_")


def test_a_fit_that_ends_by_its_own_rule_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "state"
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0):
        model = Walker((1.0, *[2.0] * 30), max_iter=50).fit(np.zeros((3, 2)))
    assert model.result_ == "stopped"
    assert not path.exists()


def test_solved_counts_as_converged():
    X = np.random.default_rng(0).standard_normal((60, 4))
    assert unmix.PCA(2).fit(X).result_ == "solved"
    answer = unmix.select(unmix.PCA(), X, k=range(1, 4))
    assert answer.columns["converged"].all()
    given = unmix.GaussianMixture.from_parameters([1.0], [[0.0, 0]], [np.eye(2)])
    assert given.converged_


def test_online_steps_keep_the_earlier_stages():
    X, _ = skewed()
    model = Skewest(random_state=0).partial_fit(X[:500])
    assert [s.name for s in model.stages_] == ["whiten"]
    assert [s.name for s in model.partial_fit(X[500:]).stages_] == ["whiten"]


def test_a_hole_outside_the_sample_of_a_first_batch(monkeypatch):
    class Holes(Skewest):
        missing = True

        def local(self, U, b):
            return super().local(U, b if b.observed is None else b._replace(x=np.where(b.observed, b.x, U.origin)))

        def sizes(self, shape):
            return Sizes(sample=100)

        def stages(self, shape):
            return [Whiten(), self] if shape.complete else [Still(), self]

    class Still(Whiten):
        name, over = "still", "sample"

        def open(self, data, rng):
            return data

        def step(self, U, data, rng):
            return U, None

    X = skewed()[0].copy()
    X[-1, 1] = np.nan
    model = Holes(random_state=1).partial_fit(X)
    assert [s.name for s in model.stages_] == ["still"]
    assert not model.shape.complete


def test_moments_of_rows_that_miss_cells_are_refused():
    class Holes(Skewest):
        missing = True

    X = skewed()[0].copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"stage 'whiten' of Holes works on moments.*shape.complete"):
        Holes(random_state=0).fit(X)


def test_an_early_stage_that_is_not_finite_is_loud():
    with pytest.warns(ConvergenceWarning, match="stage 'whiten': a part was not finite in round 1"):
        Spoilt(max_iter=2, random_state=0).fit(skewed()[0])


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (None, "give a list of Stage objects"),
        ([Whiten], "give a list of Stage objects"),
        ([Walk((1.0,)), Walk((2.0,))], "give each a `name` of its own"),
    ],
)
def test_stages_that_are_none_are_refused(stages, message):
    class Model_(Skewest):
        def stages(self, shape):
            return stages

    with pytest.raises((TypeError, ValueError), match=message):
        Model_().fit(skewed()[0])
    odd = Walk((1.0,))
    odd.over = "row"
    stages = [odd]
    with pytest.raises(ValueError, match="is over 'row': choose from rows, moments"):
        Model_().fit(skewed()[0])


def test_a_file_that_is_no_checkpoint(tmp_path):
    X = skewed()[0]
    (tmp_path / "state").write_text("x")
    with unmix.config(checkpoint=tmp_path / "state"), pytest.raises(ValueError, match=r"checkpoint=.*name another"):
        Skewest().fit(X)
    with unmix.config(checkpoint=tmp_path), pytest.raises(ValueError, match="is a folder"):
        Skewest().fit(X)


def test_rounds_are_numbered_from_one():
    X = np.random.default_rng(0).standard_normal((60, 4))
    for model in (unmix.KMedoids(4, random_state=0), unmix.KernelKMeans(4, random_state=0), unmix.FactorAnalysis(1)):
        trace = model.fit(X).trace_
        assert [s.number for s in trace] == list(range(1, len(trace) + 1))


def test_a_model_that_a_callback_keeps_does_not_change():
    class Keep(Tree):
        kept = None

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "pass" and self.kept is None:
                self.kept = fitted_estimator

    keep = Keep()
    model = Skewest(max_iter=5, tol=0, random_state=0).set_callbacks(keep).fit(skewed()[0])
    assert len(model.trace_) == 5
    assert len(keep.kept.trace_) == keep.kept.n_iter_ == 1


def test_who_stops_a_fit_does_not_wait_for_another_round():
    steps = []

    class Counted(Walk):
        def step(self, U, data, rng):
            steps.append(U)
            return super().step(U, data, rng)

    class Model_(Walker):
        def stages(self, shape):
            return [Counted(self.values)]

    model = Model_((5.0, 4.0, 3.0, 2.0), max_iter=4).set_callbacks(At(3, interrupt)).fit(np.zeros((3, 2)))
    assert len(steps) == 3
    assert model.at_ == 2  # the best that was seen


def test_a_stop_is_not_forgotten_where_the_fit_begins_anew():
    class Few:
        def sizes(self, shape):
            return Sizes(sample=100)

    class Early(Few, Whiten):
        name, over = "early", "sample"

        def step(self, U, data, rng):
            return U, None

        def start(self, before, data, rng):
            return np.zeros(data.x.shape[1]), np.eye(data.x.shape[1])

    class Late(Few, Whiten):
        pass

    class Model_(Few, Skewest):
        missing = True

        def stages(self, shape):
            return [Early(), Late(), self] if shape.complete else [Early(), self]

        def local(self, U, b):
            return super().local(U, b._replace(observed=None))

    X = skewed()[0].copy()
    X[1999, 0] = np.nan
    model = Model_(random_state=1).set_callbacks(At(1, lambda: True)).fit(X)
    assert model.result_ == "stopped"
    assert model.trace_ == []


def test_online_steps_where_there_is_nothing_to_learn():
    class Fixed(Cosines):
        exempt = {}

    X = np.random.default_rng(0).standard_normal((50, 16))
    model = Fixed(16).partial_fit(X).partial_fit(X[:3])
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X)


def test_an_online_step_to_parts_that_are_not_finite_is_refused():
    class Bursts(Skewest):
        def update(self, U, stats):
            U = super().update(U, stats)
            return U._replace(v=U.v * np.nan) if abs(stats).max() > 1e6 else U

    X = skewed()[0]
    model = Bursts(random_state=0).partial_fit(X)
    before = pickle.dumps(model.parts)
    with pytest.raises(ValueError, match="parts that are not finite; the model was left as it was"):
        model.partial_fit(1e4 * X, rate=1.0)
    assert pickle.dumps(model.parts) == before


def test_a_step_that_an_extrapolation_made_does_not_end_rounds_on_moments():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(rng.integers(5, 200), rng.integers(3, 12)))
    X[:, 0] += X[:, 1]
    X = np.round(X, 1)
    best = unmix.FactorAnalysis(2, tol=0.0, max_iter=2000, random_state=0).fit(X).score(X)
    assert best - unmix.FactorAnalysis(2, random_state=0).fit(X).score(X) < 3e-4


def test_what_is_over_cannot_be_stopped():
    X = np.random.default_rng(0).standard_normal((60, 4))
    assert unmix.PCA(2).set_callbacks(At(1, lambda: True)).fit(X).result_ == "solved"


def test_a_bar_tells_which_stage_has_begun():
    from unmix.engine.callbacks import Callbacks

    told = []
    watch = Callbacks(Skewest(), None)
    watch.bar = lambda **news: told.append(news)
    watch.stage("em", "pass", 7)
    assert told == [{"completed": 0, "total": 7, "stage": "em", "objective": ""}]


def test_only_models_that_have_a_tol_are_told_to_raise_it():
    X = np.random.default_rng(0).standard_normal((60, 4))
    with pytest.warns(ConvergenceWarning, match="raise max_iter$"):
        unmix.KMedoids(9, init="random", max_iter=1, random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or tol"):
        unmix.KMeans(9, max_iter=1, random_state=0).fit(X)


@pytest.mark.parametrize("model", unmix.models())
def test_weights_whose_sum_is_beyond_the_range_are_refused(model):
    estimator, X, _ = unmix.models()[model].example(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"sample_weight reaches 1.0e\+307, and its sum is beyond float64: divide it"):
        estimator.fit(X, sample_weight=np.full(len(X), 1e307))


# ---------------------------------------------------------------- steps that are confirmed or taken back


class Leaper(Model):
    """The mean, towards which `update` goes halfway; `leap` goes there at once, or `too_far` times as far."""

    exempt = {"online": "a toy"}

    def __init__(self, too_far=1.0, max_iter=50, tol=1e-9):
        self.too_far, self.max_iter, self.tol = too_far, max_iter, tol

    def start(self, before, data, rng):
        return (np.zeros(data.x.shape[1]),)

    def local(self, U, b):
        gap = b.x - U[0]
        return Local(None, gap.sum(axis=0), float((gap**2).sum()))

    def update(self, U, stats):
        return (U[0] + 0.5 * stats / self.shape.n,)

    def leap(self, U, stats):
        return (U[0] + self.too_far * stats / self.shape.n,)

    def encode(self, U, b):
        return b.x - U[0]

    def publish(self, fit):
        self.components_ = fit.U[0][None]


class Jumper(Leaper):
    """Is there after one leap, knows it, and wants no rows to start from."""

    def sizes(self, shape):
        return Sizes(sample=0)

    def start(self, before, data, rng):
        assert data is None
        return np.zeros(self.shape.d), False

    def update(self, U, stats):
        raise AssertionError("nobody wants the plain step")

    def leap(self, U, stats):
        return U[0] + stats / self.shape.n, True

    def goal(self, U, first):
        return U[1]


def test_a_leap_that_is_done_is_the_last_step_and_no_plain_one_is_made():
    X = np.random.default_rng(0).standard_normal((200, 3)) + 5
    model = Jumper().fit(X)
    np.testing.assert_allclose(model.components_[0], X.mean(axis=0))
    assert model.result_ == "converged"
    assert model.n_iter_ == 1


def test_a_leap_is_kept_where_the_next_pass_confirms_it():
    X = np.random.default_rng(0).standard_normal((200, 3)) + 5
    fits = {far: Leaper(far).fit(X) for far in (1.0, 3.0)}
    for model in fits.values():
        np.testing.assert_allclose(model.components_[0], X.mean(axis=0), atol=1e-3)
        kept = [s.objective for s in model.trace_ if s.accepted]
        assert (np.diff(kept) <= 0).all()
    assert fits[1.0].n_iter_ <= 4  # the last step is a plain one, by which it is judged
    assert fits[1.0].result_ == fits[3.0].result_ == "converged"
    assert all(s.accepted for s in fits[1.0].trace_[:2])
    assert sum(not s.accepted for s in fits[3.0].trace_) > 3
    with unmix.config(acceleration=False):
        assert all(s.accepted for s in Leaper(3.0).fit(X).trace_)
