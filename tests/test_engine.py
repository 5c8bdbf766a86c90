"""The loop, its settings, its record and its guards, on the skeleton model."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import skeleton
from sklearn.exceptions import ConvergenceWarning

import unmix
from unmix.engine import layout, tree
from unmix.engine.accelerate import Accelerator
from unmix.engine.block import Block, Local
from unmix.engine.config import Settings
from unmix.engine.layout import Shape
from unmix.engine.passes import flat, unflat
from unmix.engine.runners import Store
from unmix.engine.sample import distinct
from unmix.io import pack
from unmix.testing import check_model
from unmix.testing.ends import At

Prototypes = skeleton.Prototypes


@pytest.fixture
def problem():
    return Prototypes.example(np.random.default_rng(0))


class Spy:
    """A callback that counts, and may stop or break."""

    def __init__(self, stop_at=None):
        self.stop_at, self.passes, self.seen, self.events = stop_at, 0, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if context.task_name != "pass":
            self.events.append("fit")
            return False
        self.passes += 1
        self.seen.append(fitted_estimator)
        return self.passes == self.stop_at


def test_the_skeleton_is_a_model(problem):
    model, X, check = problem
    check(model.fit(X))
    assert model.result_ == "converged"
    assert model.labels_.shape == (300,)
    assert np.array_equal(model.labels_, model.predict(X))
    assert {verdict for _, verdict in check_model(Prototypes)} == {"holds"}


def test_callbacks_see_the_model_of_a_second_fit(problem):
    model, X, _ = problem
    for estimator in (
        model,
        unmix.KMeans(3, random_state=0),
        unmix.GaussianMixture(2, warm_start=True, random_state=0),
    ):
        estimator.fit(X)
        spy = Spy()
        estimator.set_callbacks(spy).fit(2 * X)
        assert all(np.isfinite(seen.transform(X)).all() for seen in spy.seen if hasattr(seen, "transform"))
        assert spy.passes
        estimator.set_callbacks()


def test_parts_reach_local_in_the_precision_of_the_rows():
    class Single(Prototypes):
        """Makes parts in float32, whatever the rows are."""

        def start(self, before, data, rng):
            return tree.map(np.float32, super().start(before, data, rng))

        def update(self, U, stats):
            return tree.map(np.float32, super().update(U, stats))

        def local(self, U, b):
            assert all(v.dtype == b.x.dtype for v in tree.leaves(U) if v.ndim)
            return super().local(U, b)

    X = np.random.default_rng(0).normal(size=(60, 3))
    for dtype in (np.float64, np.float32):
        model = Single(2, random_state=0).fit(X.astype(dtype))
        model.score(X.astype(dtype))
        model.partial_fit(X.astype(dtype))


def test_blocks_and_runs_cover_every_row_once():
    for n, rows, batch in [(1, 5, None), (1000, 7, None), (100_000, 13, None), (1000, 64, 128), (10, 64, 3)]:
        shape = Shape(n, 3, np.dtype(float))
        edges = [b for runs in layout.batches(shape, rows, batch) for r in runs for b in pairwise(r.bounds)]
        assert edges[0][0] == 0
        assert edges[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(edges))
        assert max(b - a for a, b in edges) <= rows
        index = [r.number for runs in layout.batches(shape, rows, batch) for r in runs]
        assert index == list(range(len(index)))


def test_runs_stay_small_enough_to_load():
    shape = Shape(10**9, 100, np.dtype(float))
    runs = layout.batches(shape._replace(n=10**7), layout.block_rows(shape))[0]
    assert max(r.stop - r.start for r in runs) * 800 <= layout.RUN_BYTES


def test_closing_pass_makes_labels_loss_and_parts_agree(problem):
    model, X, _ = problem
    model.set_params(max_iter=2, n_init=1, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two passes do not converge
        model.fit(X)
    gaps = ((X[:, None] - model.components_) ** 2).sum(2)
    assert np.array_equal(model.labels_, gaps.argmin(1))
    assert model.score(X) == pytest.approx(-gaps.min(1).mean())


def test_restarts_share_passes_and_the_best_wins():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 0.3, size=(100, 2)) for c in [(0, 0), (20, 0), (0, 20), (20, 20), (40, 40)]])
    alone = [Prototypes(5, random_state=s, tol=0).fit(X).score(X) for s in range(5)]
    many = Prototypes(5, n_init=20, random_state=0, tol=0).fit(X)
    assert many.score(X) > np.mean(alone)
    assert many.score(X) == pytest.approx(-2 * 0.09, rel=0.2)


def test_a_hopeless_start_is_dropped_early():
    seen = []

    class Watched(Prototypes):
        def update(self, U, stats):
            seen.append(U)
            return super().update(U, stats)

    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 0.3, size=(100, 2)) for c in [(0, 0), (20, 0), (0, 20), (20, 20), (40, 40)]])
    model = Watched(5, n_init=20, random_state=0, tol=0.0).fit(X)
    assert len(seen) < 20 * model.n_iter_


def test_a_fit_that_will_not_beat_another_is_given_up(problem):
    from unmix.model import fit_together

    _, X, _ = problem
    seen = []

    class Watched(Prototypes):
        def local(self, U, b):
            seen.append(self.random_state)
            return super().local(U, b)

    best = Watched(3, random_state=0, tol=0).fit(X)
    goal = -best.score(X)
    seen.clear()
    easy, hard = Watched(3, random_state=1, tol=0), Watched(2, random_state=2, tol=0)
    fits = fit_together([easy, hard], X, [None] * 2, [0] * 2, beat=[np.inf, goal * 0.5])
    assert fits[1] is None
    assert not hasattr(hard, "components_")
    assert easy.score(X) == pytest.approx(-fits[0].objective)
    assert seen.count(1) > seen.count(2)


def test_weights_count_in_the_fit(problem):
    _, X, _ = problem
    w = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    init = X[:3]

    class Fixed(Prototypes):
        def start(self, before, data, rng):
            return skeleton.Parts(init)

    weighted = Fixed(3).fit(X, sample_weight=w).components_
    repeated = Fixed(3).fit(np.repeat(X, w.astype(int), axis=0)).components_
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


def test_callbacks_see_each_pass_and_stop_the_fit(problem):
    model, X, _ = problem
    spy = Spy(stop_at=2)
    with pytest.warns(ConvergenceWarning, match="stopped by a callback after pass 2"):
        model.set_params(n_init=1).set_callbacks(spy).fit(X)
    assert model.result_ == "stopped"
    assert spy.passes == 2
    assert spy.events[0] == "setup"
    assert spy.events[-1] == "teardown"
    assert spy.seen[0].transform(X).shape == (300, 3)
    assert len(model.trace_) == 2


def test_progress_bar_is_silent_unless_asked_for(problem, capfd):
    model, X, _ = problem
    model.fit(X)
    assert capfd.readouterr() == ("", "")
    with unmix.config(progress=True):
        model.fit(X)


def test_a_fit_that_does_not_converge_says_so(problem):
    model, X, _ = problem
    with pytest.warns(ConvergenceWarning, match="not converged after 1 pass: raise max_iter"):
        model.set_params(max_iter=1).fit(X)
    assert model.result_ == "max_iter"


class Explodes(Prototypes):
    """Its parts turn infinite in the third pass."""

    def update(self, U, stats):
        new = super().update(U, stats)
        self.count = getattr(self, "count", 0) + 1
        return skeleton.Parts(new.prototypes * np.inf) if self.count == 3 else new


def test_nonfinite_parts_are_dropped_and_the_last_good_ones_kept(problem):
    _, X, _ = problem
    with pytest.warns(ConvergenceWarning, match=r"prototypes was not finite in pass 3; the last good parts were kept"):
        model = Explodes(3, tol=0.0, random_state=0).fit(X)
    assert model.result_ == "nonfinite"
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()


class LossExplodes(Prototypes):
    def local(self, U, b):
        out = super().local(U, b)
        return out._replace(loss=np.nan) if U.prototypes[0, 0] == 77.0 else out

    def update(self, U, stats):
        self.count = getattr(self, "count", 0) + 1
        new = super().update(U, stats).prototypes.copy()
        if self.count == 2:
            new[0, 0] = 77.0
        return skeleton.Parts(new)


def test_a_nonfinite_objective_brings_back_the_parts_before(problem):
    _, X, _ = problem
    with pytest.warns(ConvergenceWarning, match="the objective was not finite in pass 3"):
        model = LossExplodes(3, tol=0.0, random_state=0).fit(X)
    assert model.components_[0, 0] != 77.0


def test_a_failed_fit_leaves_the_estimator_as_it_was(problem):
    model, X, _ = problem
    model.fit(X)
    before = pickle.dumps(vars(model))
    bad = X.copy()
    bad[7, 2] = np.inf
    with pytest.raises(ValueError, match="row 7, column 2 holds inf"):
        model.fit(bad)
    with pytest.raises(ValueError, match="n_components=3 is more than"):
        model.fit(X[:2])
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(np.zeros((5, 4)))
    assert pickle.dumps(vars(model)) == before


def test_ctrl_c_keeps_the_best_parts_so_far(problem):
    _, X, _ = problem

    class Interrupted(Prototypes):
        def update(self, U, stats):
            self.count = getattr(self, "count", 0) + 1
            if self.count == 3:
                raise KeyboardInterrupt
            return super().update(U, stats)

    with pytest.warns(ConvergenceWarning, match="interrupted after pass 3: the best parts so far were kept"):
        model = Interrupted(3, tol=0.0, random_state=0).fit(X)
    assert model.result_ == "stopped"
    assert model.predict(X).shape == (300,)


def test_a_real_ctrl_c_in_the_middle_of_a_pass():
    code = """
        import sys; sys.path.insert(0, "examples")
        import numpy as np, signal, skeleton, warnings
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is born deaf to it
        class Slow(skeleton.Prototypes):
            def local(self, U, b):
                import time; time.sleep(0.02)
                return super().local(U, b)
        X = np.random.default_rng(0).normal(size=(200_000, 3))
        print("go", flush=True)
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            m = Slow(3, tol=0.0, max_iter=10_000, random_state=0).fit(X)
        print(m.result_, w[0].message)
    """
    root = Path(__file__).parents[1]
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=root, stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.startswith("stopped Slow interrupted after pass")


def test_settings_are_checked_and_nest():
    with unmix.config(n_jobs=1, block_rows=10):
        with unmix.config(n_jobs=2):
            assert (unmix.get_config().jobs, unmix.get_config().block_rows) == (2, 10)
        assert unmix.get_config().jobs == 1
    unmix.set_config(block_rows=77)
    try:
        seen = []
        thread = threading.Thread(target=lambda: seen.append(unmix.get_config().block_rows))
        thread.start()
        thread.join()
        assert seen == [77]
    finally:
        unmix.set_config(block_rows=None)
    for bad in ({"runner": "cloud"}, {"n_jobs": 0}, {"block_rows": 0}, {"memory_budget": -1}, {"progress": "yes"}):
        with pytest.raises(ValueError, match=next(iter(bad))), unmix.config(**bad):
            pass
    with pytest.raises(TypeError, match="'thread' is not a setting"), unmix.config(thread=1):
        pass


class Remembers(Prototypes):
    """Keeps something beside each block, and needs it back."""

    stateful = True

    def local(self, U, b):
        out = super().local(U, b)
        before = np.zeros(len(b.x)) if b.z is None else b.z
        return Local(before + 1 + b.start, out.stats, out.loss + b.sum(before * 1e-6))


@pytest.mark.parametrize("budget", [1, 10**9])
def test_z_is_kept_beside_its_block_in_memory_or_on_disk(problem, budget):
    _, X, _ = problem
    with unmix.config(block_rows=20, memory_budget=budget), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five passes do not converge
        model = Remembers(3, max_iter=5, tol=0.0, random_state=0)
        z = model.fit(X).labels_
    start = (np.arange(300) // 20) * 20
    passes = model.n_iter_ + 1
    np.testing.assert_array_equal(z, passes * (1 + start))


def test_store_spills_and_forgets(tmp_path):
    store, other = Store(Settings(memory_budget=100)), Store(Settings(memory_budget=10**6))
    store.put((0, 0), [np.arange(5.0)])
    store.put((0, 1), [np.arange(50.0)])
    assert isinstance(store.items[0, 1], Path)
    np.testing.assert_array_equal(store.get((0, 1))[0], np.arange(50.0))
    other.move(store, 0)
    assert not store.items
    assert other.held == 55 * 8
    other.forget(0)
    assert other.held == 0
    store.clear()


def test_checkpoint_of_another_fit_is_refused(problem, tmp_path):
    model, X, _ = problem
    path = tmp_path / "state"
    with unmix.config(checkpoint=path, checkpoint_seconds=0.0):
        with pytest.raises(ZeroDivisionError):
            model.set_callbacks(Breaks()).fit(X)
        model.set_callbacks()
        with pytest.raises(ValueError, match="belongs to another fit \\(other data\\): remove the file"):
            model.fit(X + 1)
        with pytest.raises(ValueError, match="other parameters"):
            Prototypes(2).fit(X)
    with unmix.config(checkpoint=tmp_path / "no" / "state"), pytest.raises(ValueError, match="does not exist"):
        model.fit(X)
    path.write_bytes(path.read_bytes()[:100])
    with unmix.config(checkpoint=path), pytest.raises(ValueError, match="damaged"):
        model.fit(X)


class Breaks(Spy):
    def on_fit_task_end(self, estimator, context):
        if context.task_name == "pass":
            self.passes += 1
            if self.passes == 2:
                raise ZeroDivisionError


@pytest.mark.slow
def test_kill_nine_and_resume_gives_the_same_bits(tmp_path):
    code = """
        import sys; sys.path.insert(0, "examples")
        import numpy as np, unmix, time
        X = np.random.default_rng(0).normal(size=(20_000, 8))
        class Slow(unmix.NMF):
            def local(self, U, b):
                time.sleep(float(sys.argv[2]))
                return super().local(U, b)
        with unmix.config(checkpoint=sys.argv[1], checkpoint_seconds=0.0, block_rows=2000):
            m = Slow(4, init="random", tol=0.0, max_iter=30, random_state=0).fit(np.abs(X))
        np.save(sys.argv[1] + ".npy", m.components_)
    """
    root = Path(__file__).parents[1]

    def run(path, pause):
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(path), str(pause)], cwd=root
        )

    assert run(tmp_path / "a", 0).wait(120) == 0
    child = run(tmp_path / "b", 0.01)
    while not (tmp_path / "b").exists():
        time.sleep(0.05)
        assert child.poll() is None
    time.sleep(0.3)
    child.kill()
    child.wait()
    assert (tmp_path / "b").exists()
    assert not (tmp_path / "b.npy").exists()
    assert run(tmp_path / "b", 0).wait(120) == 0
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_a_dask_worker_that_dies_costs_a_recomputation_and_no_bit(problem):
    distributed = pytest.importorskip("distributed")
    X = np.abs(np.random.default_rng(0).normal(size=(4000, 20)))
    model = unmix.NMF(4, init="random", tol=0.0, max_iter=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tol=0 does not converge
        with unmix.config(block_rows=100):
            truth = pickle.loads(pickle.dumps(model)).fit(X)
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
            distributed.Client(local, set_as_default=False) as client,
        ):
            killed = []

            class Killer(Spy):
                def on_fit_task_end(self, estimator, context):
                    if context.task_name == "pass":
                        self.passes += 1
                        if self.passes == 4:
                            killed.append(next(iter(client.run(os.getpid).values())))
                            os.kill(killed[0], signal.SIGKILL)

            with unmix.config(block_rows=100, runner=client):
                survived = pickle.loads(pickle.dumps(model)).set_callbacks(Killer()).fit(X)
    assert killed
    assert np.array_equal(truth.components_, survived.components_)


def test_online_steps_come_close_to_the_batch_fit(problem):
    model, X, check = problem
    rng = np.random.default_rng(0)
    model.set_params(n_init=1, random_state=1)
    model.partial_fit(X[:50])
    for _ in range(30):
        model.partial_fit(X[rng.choice(300, 50, replace=False)])
    check(model)
    assert len(model.trace_) == 31
    with pytest.raises(ValueError, match="rate=2"):
        model.partial_fit(X, rate=2)


def test_partial_fit_goes_on_from_a_fit(problem):
    model, X, check = problem
    model.fit(X)
    check(model.partial_fit(X[:100]))


def test_a_pass_after_a_rejected_extrapolation_is_a_step_to_extrapolate_from(monkeypatch):
    told = []

    def reject(self):
        told.append(None)
        return forget(self)

    def propose(self, s, g):
        told.append((s.copy(), g.copy()))
        return look(self, s, g)

    forget, look = Accelerator.reject, Accelerator.propose
    monkeypatch.setattr(Accelerator, "reject", reject)
    monkeypatch.setattr(Accelerator, "propose", propose)
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(c, 1.0, size=(100, 2)) for c in rng.normal(0, 1.2, size=(4, 2))])
    model = unmix.GaussianMixture(4, random_state=0, tol=1e-7, max_iter=500).fit(X)
    assert not all(s.accepted for s in model.trace_)
    rejected = [i for i, pair in enumerate(told[:-1]) if pair is None]
    for i in rejected:
        np.testing.assert_array_equal(told[i + 1][0], told[i - 1][1])


def test_what_a_tree_shares_with_another_is_not_looked_at():
    old = (np.ones(3), (np.full(2, np.nan), 1.0), np.zeros((2, 2)))
    new = (np.ones(3), *old[1:])
    assert tree.finite(new, like=old)  # the NaN is the other's, who was looked at
    assert not tree.finite(new)
    assert tree.finite(new, like=old[:2])  # a tuple may have grown
    assert not tree.finite((*old, np.full(1, np.nan)), like=old)
    assert not tree.finite(new, like=list(old))
    bad = (np.asfortranarray(np.ones((2, 3))), *old[1:])
    put = tree.settle(bad, like=old)
    assert put[0].flags.c_contiguous
    assert put[1] is old[1]
    assert len(put) == 3
    assert tree.settle(bad, like=old[:1])[0].flags.c_contiguous
    assert len(tree.settle(bad, like=old[:1])) == 3
    assert tree.settle(new, like=old) is new


def test_parameters_are_checked_as_scikit_learn_does():
    for wrong in ({"n_clusters": 0}, {"n_clusters": 2.5}, {"tol": -1.0}, {"algorithm": "best"}, {"init": "warm"}):
        with pytest.raises(ValueError, match=rf"The {next(iter(wrong))!r} parameter of KMeans must be"):
            unmix.KMeans(**wrong).fit(np.eye(5))

    class Own(unmix.PCA):
        """Has a parameter that nobody says anything of, and another default."""

        def __init__(self, n_components=1, *, colour="red"):
            super().__init__(n_components)
            self.colour = colour

    assert Own(colour=object()).fit(np.eye(5)).n_components_ == 1
    with pytest.raises(ValueError, match="The 'n_components' parameter of Own must be"):
        Own(n_components=-3).fit(np.eye(5))


def test_trees():
    U = skeleton.Stats(np.arange(3.0), np.ones((2, 2)))
    pair = (U, 2.0)
    assert tree.nbytes(pair) == 56
    back = unflat(flat(pair), pair)
    assert isinstance(back[0], skeleton.Stats)
    assert back[1] == 2.0
    first, more = np.arange(3.0), np.arange(4.0, dtype=np.float32)
    mine = tree.double((first, first, more, more[::2]))
    assert mine[0] is first  # statistics are handed over
    total = tree.add_into(mine, (first.copy(), first.copy(), more, more[::2]))
    for new, old in zip(total, (np.arange(3), np.arange(3), more, more[::2]), strict=True):
        np.testing.assert_array_equal(new, 2 * old)
        assert new.dtype == np.float64
    np.testing.assert_array_equal(more, np.arange(4))
    assert not tree.finite((np.array([np.nan]), 1.0))
    assert tree.blend(pair, pair, 1.0) is pair


def test_model_files_execute_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, ("echo evil > evil",)

    with pytest.raises(pack.PackError, match="is a Evil"):
        pack.write(tmp_path / "a", {"x": Evil()})
    assert list(tmp_path.iterdir()) == []
    pack.write(tmp_path / "a", {"x": [1, 2.5, None, "s", np.arange(3), (1, 2)], "y": {"z": np.float32(2)}})
    back = pack.read(tmp_path / "a")
    assert back["x"][:4] == [1, 2.5, None, "s"]
    with pytest.raises(pack.PackError, match="not part of unmix"):
        pack.find("os:system", object)
    with pytest.raises(pack.PackError, match="is not a tuple"):
        pack.find("unmix.model:load", tuple)
    (tmp_path / "b").write_bytes(b"nonsense")
    with pytest.raises(pack.PackError, match="damaged"):
        pack.read(tmp_path / "b")
    with pytest.raises(pack.PackError, match="does not hold a model"):
        unmix.load(tmp_path / "a")


def test_import_is_light():
    heavy = "{'numba', 'dask', 'pyarrow', 'rich', 'matplotlib', 'sklearn'}"
    code = f"import sys, unmix; print({heavy} & set(sys.modules) or '')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == ""
    code = "import sys, unmix; unmix.models(); print({'numba', 'dask', 'matplotlib'} & set(sys.modules) or '')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == ""


def test_budget():
    assert Settings(memory_budget=100).budget == 100
    assert Settings(memory_budget=0.25).budget < Settings().budget


def test_partial_fit_after_fit_keeps_what_the_fit_found():
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, size=(100, 1)) for c in (0.0, 10.0, 20.0)])
    model = unmix.KMeans(3, random_state=0).fit(X)
    model.partial_fit(np.array([[3.0], [3.1], [2.9]]))  # fewer rows than a first batch would need are fine later
    assert np.sort(model.cluster_centers_.ravel())[2] == pytest.approx(20, abs=0.5)
    whole, online = unmix.PCA(1).fit(X), unmix.PCA(1)
    for part in np.array_split(X, 5):
        online.partial_fit(part)
    np.testing.assert_allclose(online.explained_variance_, whole.explained_variance_)
    assert not hasattr(unmix.RobustPCA(), "partial_fit")
    with pytest.raises(ValueError, match="beta_loss"):
        unmix.NMF(2, beta_loss="foo").partial_fit(np.abs(X))
    with pytest.raises(ValueError, match="NaN only in column 0"):
        unmix.PCA(1).partial_fit(np.full((5, 1), np.nan))


def test_a_checkpoint_keeps_its_seed(problem, tmp_path):
    model, X, _ = problem
    with unmix.config(checkpoint=tmp_path / "state", checkpoint_seconds=0.0):
        with pytest.raises(ZeroDivisionError):
            model.set_params(random_state=0).set_callbacks(Breaks()).fit(X)
        with pytest.raises(ValueError, match="other parameters"):
            model.set_params(random_state=1).set_callbacks().fit(X)


def test_rows_without_weight_are_no_rows(problem):
    model, X, _ = problem
    X = X.copy()
    X[1:, 2] = np.nan
    w = np.ones(len(X))
    w[0] = 0
    with pytest.raises(ValueError, match="NaN only in column 2"):
        model.fit(X, sample_weight=w)


def test_new_rows_must_have_the_names_of_the_old(problem):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    model, X, _ = problem
    frame = pd.DataFrame(X, columns=list("abc"))
    model.fit(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(dd.from_pandas(frame[["c", "b", "a"]], npartitions=2))
    with pytest.raises(ValueError, match="same columns in the same order"):
        model.fit(lambda: iter([frame[:100], frame[["c", "b", "a"]][100:]]))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_distinct_rows_are_those_of_numpy_where_rounding_hides_a_column(kind):
    rng = np.random.default_rng(0)
    X = np.c_[np.full(200, 1.7e12), rng.integers(0, 9, 200) * 1e-5, rng.integers(0, 2, 200) * 1e-7]
    rows, counts = np.unique(X, axis=0, return_counts=True)
    found = [distinct(Block(kind(X[rng.permutation(200)]))) for _ in range(3)]
    for b in found:
        x = b.x if isinstance(b.x, np.ndarray) else b.x.toarray()
        assert np.array_equal(x, found[0].x if isinstance(b.x, np.ndarray) else found[0].x.toarray())
        order = np.lexsort(x.T[::-1])
        np.testing.assert_array_equal(x[order], rows)
        np.testing.assert_array_equal(b.w[order], counts)


def test_while_a_fit_runs_other_threads_ask_the_model_of_the_last_one():
    X = np.random.default_rng(0).normal(size=(5000, 4))
    model = unmix.KMeans(5, random_state=0).fit(X)
    old, asked = model.predict(X[:50]), []

    def ask():
        thread = threading.Thread(target=lambda: asked.append(model.predict(X[:50])))
        thread.start()
        thread.join()
        return False

    model.set_params(n_clusters=7).set_callbacks(At(1, ask)).fit(X)
    assert asked
    np.testing.assert_array_equal(asked[0], old)


@pytest.mark.parametrize("weights", [None, 2.0])
def test_few_rows_in_memory_are_cut_into_blocks_once(problem, weights):
    """Those of a stream anew in every pass."""
    held = []

    class Watched(Prototypes):
        def local(self, U, b):
            held.append(b.x)
            return super().local(U, b)

    model, X, _ = problem
    params, w = model.get_params(), None if weights is None else np.full(len(X), weights)
    cuts = {}
    for name, rows in (("memory", X), ("stream", lambda: iter([X]))):
        held.clear()
        with unmix.config(block_rows=len(X) // 3, n_jobs=1):
            Watched(**params).fit(rows, sample_weight=w)
        cuts[name] = len({id(x) for x in held})
    assert cuts["memory"] == -(-len(X) // (len(X) // 3))
    assert cuts["stream"] >= 3 * cuts["memory"]  # passes
