"""The laws that every model obeys, found and run by discovery on its own `example`."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import unmix
from unmix.engine import loop, tree
from unmix.engine.draws import generator
from unmix.engine.layout import Run
from unmix.engine.rows import Rows, Rules
from unmix.engine.runners import Runner

MODELS = unmix.models()
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # laws are asked after few passes


def laws(law):
    """Every model, those exempt from the law skipped with the reason that the docs show."""
    marks = {n: [pytest.mark.skip(reason=c.exempt[law])] if law in c.exempt else [] for n, c in MODELS.items()}
    return pytest.mark.parametrize("cls", [pytest.param(c, id=n, marks=marks[n]) for n, c in MODELS.items()])


def example(cls):
    model, X, check = cls.example(np.random.default_rng(0))
    return model, np.asarray(X, dtype=np.float64), check


def blocks(cls, X, edges=None, w=None):
    """X as blocks that end at the edges."""
    n = X.shape[0]
    run = Run(0, tuple(edges or (0, n)))
    rules = Rules(cls.missing, cls.nonnegative, cls.__name__)
    return list(Rows(run, X, w, rules, {}).blocks())


def prepared(cls, X, w=None):
    """A working copy of the model, and typical parts: those of a fit that ended early."""
    model, _, _ = example(cls)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=2)
    model.fit(X, sample_weight=w)
    return model.at(model.shape), model.parts


def copied(model):
    return pickle.loads(pickle.dumps(model))


def total(outs):
    out = tree.double((outs[0].stats, outs[0].loss))
    for o in outs[1:]:
        out = tree.add_into(out, (o.stats, o.loss))
    return out


def assert_close(a, b, rtol=1e-7, of=None):
    """Leaf by leaf, to a tolerance relative to the leaf's largest entry (or, since sums may cancel, the tree's)."""
    largest = max((np.abs(v).max(initial=0) for v in tree.leaves(a)), default=0)
    for u, v in zip(tree.leaves(a), tree.leaves(b), strict=True):
        u, v = np.asarray(u, dtype=float), np.asarray(v, dtype=float)
        scale = max(np.abs(u).max(initial=0), np.abs(v).max(initial=0), 1e-6 * largest)
        np.testing.assert_allclose(u, v, rtol=0, atol=rtol * scale, err_msg=of or "")


def same_bits(a, b):
    return all(np.array_equal(u, v) for u, v in zip(tree.leaves(a), tree.leaves(b), strict=True))


@laws("additive")
def test_statistics_add(cls):
    _, X, _ = example(cls)
    model, U = prepared(cls, X)
    n = len(X)
    whole = total([model.local(U, b) for b in blocks(cls, X)])
    parts = total([model.local(U, b) for b in blocks(cls, X, (0, 1, n // 3, n // 2, n))])
    assert_close(whole, parts)


@laws("same bits")
def test_same_bits_on_threads_and_streams(cls, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    model, X, _ = example(cls)
    folder = tmp_path / "folder"
    folder.mkdir()
    names = [f"c{j}" for j in range(X.shape[1])]
    for i, part in enumerate(np.array_split(X, 3)):
        table = pa.table({c: part[:, j] for j, c in enumerate(names)})
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=37)
    np.save(tmp_path / "x.npy", X)

    def fit(data, **settings):
        with unmix.config(block_rows=32, **settings):
            return copied(model).fit(data).parts

    truth = fit(X, runner="serial")
    assert same_bits(truth, fit(X, n_jobs=2))
    assert same_bits(truth, fit(X, n_jobs=3))
    assert same_bits(truth, fit(folder, n_jobs=2))
    assert same_bits(truth, fit(tmp_path / "x.npy", n_jobs=2))
    assert same_bits(truth, fit(lambda: iter(np.array_split(X, 7)), n_jobs=2))
    with unmix.config(block_rows=10**6):
        assert_close(truth, copied(model).fit(X).parts, rtol=1e-3)


@laws("same bits")
def test_same_bits_on_dask(cls, cluster):
    import dask.array as da

    model, X, _ = example(cls)
    with unmix.config(block_rows=32, runner="serial"):
        truth = copied(model).fit(X)
    with unmix.config(block_rows=32, runner=cluster):
        one = copied(model).fit(X)
        two = copied(model).fit(da.from_array(X, chunks=(50, -1)))
        assert same_bits(truth.parts, one.parts)
        assert same_bits(truth.parts, two.parts)
        assert np.array_equal(truth.transform(X), one.transform(X))


@laws("weights")
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(cls):
    _, X, _ = example(cls)
    w = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    twice = np.repeat(X, w.astype(int), axis=0)
    model, U = prepared(cls, twice)
    weighted = total([model.local(U, b) for b in blocks(cls, X, w=w)])
    repeated = total([model.local(U, b) for b in blocks(cls, twice)])
    assert_close(weighted, repeated)


@laws("weights")
def test_a_weighted_fit_is_a_fit_of_repeated_rows(cls):
    model, X, _ = example(cls)
    w = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    order = np.random.default_rng(2).permutation(int(w.sum()))
    if "max_iter" in model.get_params():
        model.set_params(max_iter=20)
    weighted = copied(model).fit(X, sample_weight=w)
    repeated = copied(model).fit(np.repeat(X, w.astype(int), axis=0)[order])
    assert_close(weighted.parts, repeated.parts, rtol=1e-4)


@laws("sparse")
def test_dense_is_csr(cls):
    model, X, _ = example(cls)
    S = sp.csr_array(X)
    if not cls.sparse:
        with pytest.raises(TypeError, match="toarray"):
            model.fit(S)
        return
    with unmix.config(block_rows=64):
        dense = copied(model).fit(X)
        sparse = copied(model).fit(S)
    assert_close(dense.parts, sparse.parts, rtol=1e-5)
    assert_close(dense.transform(X), sparse.transform(S), rtol=1e-5)


@laws("monotone")
@pytest.mark.parametrize("acceleration", [False, True])
def test_the_objective_never_gets_worse(cls, acceleration):
    model, X, _ = example(cls)
    if "tol" in model.get_params():
        model.set_params(tol=0.0)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=40)
    with unmix.config(acceleration=acceleration):
        model.fit(X)
    for trace in [model.trace_, *(stage.trace for stage in model.stages_)]:
        objective = np.array([s.objective for s in trace if s.accepted and not np.isnan(s.objective)])
        assert (np.diff(objective) <= 1e-9 * np.abs(objective[:-1]) + 1e-12).all()


@laws("pure")
def test_nothing_passed_in_is_changed(cls):
    _, X, _ = example(cls)
    model, U = prepared(cls, X)
    w = np.full(len(X), 2.0)
    b = blocks(cls, X, w=w)[0]
    before = pickle.dumps((U, b, model.__dict__))
    out = model.local(U, b)
    again = b._replace(z=out.z)
    held = pickle.dumps((U, again, out.stats, model.__dict__))
    model.local(U, again)
    if model in model.stages(model.shape):
        model.update(U, out.stats)
    model.encode(U, b)
    assert pickle.dumps((U, b, model.__dict__)) == before
    assert pickle.dumps((U, again, out.stats, model.__dict__)) == held
    for stage in model.stages(model.shape):
        if stage.over in ("sample", "whole"):
            pure_rounds(stage, b)
    copy, frozen = X.copy(), X.copy()
    frozen.setflags(write=False)
    model.fit(frozen)
    assert np.array_equal(frozen, copy)


def pure_rounds(stage, b):
    """Rounds change neither the parts nor what the engine holds for them, but for a field `room` to work in."""
    before = pickle.dumps((stage, b))
    data = stage.open(b, generator(0, "open"))
    told = lambda: pickle.dumps(data._replace(room=None) if hasattr(data, "room") else data)  # noqa: E731
    opened = told()
    U = stage.start(None, data, generator(0, "init"))
    for step in range(2 if stage.most is None else min(2, stage.most)):
        held = pickle.dumps(U)
        new, _ = stage.step(U, data, generator(0, "step", step))
        assert pickle.dumps(U) == held
        U = new
    stage.hand(U, data)
    assert told() == opened
    assert pickle.dumps((stage, b)) == before


@laws("online")
def test_online_with_rate_one_on_all_rows_is_a_batch_step(cls):
    model, X, _ = example(cls)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=1)
    if "n_init" in model.get_params():
        model.set_params(n_init=1)
    with unmix.config(acceleration=False):
        batch = copied(model).fit(X)
        online = copied(model).partial_fit(X, rate=1.0)
    assert_close(batch.parts, online.parts, rtol=1e-6)
    before = online.parts
    online.partial_fit(X, rate=1.0)
    step = model.at(online.shape)
    b = blocks(cls, X)[0]
    assert_close(step.update(before, step.local(before, b).stats), online.parts, rtol=1e-6)


@laws("missing")
def test_nan_is_not_observed(cls):
    model, X, check = example(cls)
    rng = np.random.default_rng(2)
    holes = X.copy()
    holes[rng.random(X.shape) < 0.03] = np.nan
    if not cls.missing:
        with pytest.raises(ValueError, match=r"contains NaN.*row \d+, column \d+"):
            model.fit(holes)
        return
    fitted = copied(model).fit(holes)
    check(fitted)
    assert all(stage.result != "nonfinite" for stage in fitted.stages_)
    empty_row = holes.copy()
    empty_row[3] = np.nan
    fitted = copied(model).fit(empty_row)
    assert np.isfinite(fitted.transform(empty_row)).all()
    empty_column = holes.copy()
    empty_column[:, 1] = np.nan
    with pytest.raises(ValueError, match="NaN only in column 1"):
        model.fit(empty_column)
    # an unobserved row has no say: the other rows' statistics and the loss stay as they are
    prepared_model, U = prepared(cls, X)
    alone = prepared_model.local(U, blocks(cls, X)[0])
    joined = prepared_model.local(U, blocks(cls, np.vstack([X, np.full((1, X.shape[1]), np.nan)]))[0])
    np.testing.assert_allclose(joined.loss, alone.loss, rtol=1e-9)


@laws("float32")
def test_float32_in_float32_out(cls):
    model, X, check = example(cls)
    double = copied(model).fit(X)
    single = copied(model).fit(X.astype(np.float32))
    check(single)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    for name, value in vars(single).items():
        if (
            name.endswith("_")
            and not name.startswith("_")
            and isinstance(value, np.ndarray)
            and value.dtype.kind == "f"
        ):
            assert value.dtype == np.float32, name
    assert_close(double.trace_[-1].objective, single.trace_[-1].objective, rtol=1e-2)


@laws("planted")
def test_the_planted_parts_are_found(cls):
    model, X, check = example(cls)
    check(model.fit(X))
    assert model.result_ in ("converged", "solved", "max_iter")
    assert len(model.trace_) <= model.n_iter_
    assert [s.number for s in model.trace_] == list(range(1, len(model.trace_) + 1))


@laws("files")
def test_save_load_and_pickle_give_the_same_output(cls, tmp_path):
    model, X, _ = example(cls)
    Z = model.fit(X).transform(X)
    model.save(tmp_path / "model.unmix")
    for back in (
        unmix.load(tmp_path / "model.unmix"),
        cls.load(tmp_path / "model.unmix"),
        copied(model),
    ):
        assert np.array_equal(back.transform(X), Z)
        assert back.get_params().keys() == model.get_params().keys()
        assert back.trace_ == model.trace_


class Killed(Exception):
    pass


class At:
    """A callback that does something after so many steps, whatever stage they are of."""

    def __init__(self, steps, what):
        self.left, self.what, self.stages = steps, what, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        if context.task_name not in ("fit", "pass", "round"):
            self.stages.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        if context.task_name in ("pass", "round"):
            self.left -= 1
            if self.left == 0:
                return self.what()
        return False


def kill():
    raise Killed


def interrupt():
    raise KeyboardInterrupt


def steps_of(model):
    """How many steps a fitted model made in all stages."""
    return len(model.trace_) + sum(len(stage.trace) for stage in model.stages_)


@laws("resume")
def test_killed_and_resumed_is_never_killed(cls, tmp_path):
    """At every step of every stage."""
    model, X, _ = example(cls)
    with unmix.config(block_rows=50):
        truth = copied(model).fit(X)
    for step in range(1, steps_of(truth) + 1):
        path = tmp_path / f"state {step}"
        killed = copied(model).set_callbacks(At(step, kill))
        with unmix.config(block_rows=50, checkpoint=path, checkpoint_seconds=0.0):
            with pytest.raises(Killed):
                killed.fit(X)
            assert path.exists() == (step > 1)
            assert not hasattr(killed, "trace_")
            resumed = copied(model).fit(X)
            assert not path.exists()
        assert same_bits(truth.parts, resumed.parts)
        for a, b in zip([truth, *truth.stages_], [resumed, *resumed.stages_], strict=True):
            old, new = (m.trace if hasattr(m, "trace") else m.trace_ for m in (a, b))
            assert np.array_equal([s.objective for s in old], [s.objective for s in new], equal_nan=True)


@laws("stop")
@pytest.mark.parametrize("how", ["callback", "interrupt", "amid"])
def test_a_fit_can_be_stopped(cls, how, monkeypatch):
    """After every step of every stage, by a callback or by Ctrl-C, and by Ctrl-C amid a step: parts are there."""
    model, X, _ = example(cls)
    truth = copied(model).fit(X)
    names = [stage.name for stage in truth.stages_]
    for step in range(1, steps_of(truth) + 1):
        watch = At(step, {"callback": lambda: True, "interrupt": interrupt, "amid": lambda: False}[how])
        stopped = copied(model).set_callbacks(watch)
        if how == "amid":
            begun, record = set(), loop.Loop.record

            def amid(self, s, *rest, record=record, step=step, begun=begun):
                begun.add((self.index, len(s.trace)))
                if len(begun) == step:
                    raise KeyboardInterrupt
                record(self, s, *rest)

            monkeypatch.setattr(loop.Loop, "record", amid)
        stopped.fit(X)
        monkeypatch.undo()
        assert stopped.result_ == "stopped" or (how != "amid" and step == steps_of(truth))  # it was over
        assert steps_of(stopped) == step - (how == "amid")
        assert watch.stages[: len(names)] == names
        assert np.isfinite(np.asarray(stopped.transform(X), dtype=float)).all()
        assert stopped.n_iter_ == max(1, len(stopped.trace_))


@laws("stop")
def test_ctrl_c_in_the_closing_pass_keeps_the_parts(cls, monkeypatch):
    model, X, _ = example(cls)
    truth, sweeps, told = copied(model).fit(X), Runner.sweeps, []

    def closing(self, asks):
        if any(ask.closing for _, ask in asks):
            told.append(True)
            raise SystemError("a kernel") from KeyboardInterrupt()  # as the compiler's dispatcher has it
        return sweeps(self, asks)

    monkeypatch.setattr(Runner, "sweeps", closing)
    stopped = copied(model).fit(X)
    monkeypatch.undo()
    assert same_bits(truth.parts, stopped.parts)
    assert stopped.result_ == ("stopped" if told else truth.result_)
    assert np.array_equal(truth.transform(X), stopped.transform(X))


@laws("resume")
@pytest.mark.parametrize("amid", [False, True])
def test_ctrl_c_leaves_a_checkpoint(cls, amid, tmp_path, monkeypatch):
    """Between steps always, amid a step where it has left nothing behind; the same call goes on to the same bits."""
    model, X, _ = example(cls)
    with unmix.config(block_rows=50):
        truth = copied(model).fit(X)
    for step in {2, steps_of(truth) // 2, steps_of(truth)} - {0}:
        path, record = tmp_path / f"state {step}", loop.Loop.record
        with unmix.config(block_rows=50, checkpoint=path):
            if amid:
                begun = set()

                def broken(self, s, *rest, begun=begun, record=record, step=step):
                    begun.add((self.index, len(s.trace)))
                    if len(begun) == step and s.index == max(self.model.starts() - 1, 0):
                        raise KeyboardInterrupt
                    record(self, s, *rest)

                monkeypatch.setattr(loop.Loop, "record", broken)
            copied(model).set_callbacks(*([] if amid else [At(step, interrupt)])).fit(X)
            monkeypatch.undo()
            assert amid or path.exists() or step >= steps_of(truth)
            assert same_bits(truth.parts, copied(model).fit(X).parts)
            assert not path.exists()


@pytest.mark.slow
def test_same_bits_from_code_compiled_now_and_from_code_in_the_cache(tmp_path):
    script = """
import hashlib, numpy as np, scipy.sparse as sp, unmix
from unmix.engine import loop, tree
for name, cls in unmix.models().items():
    model, X, _ = cls.example(np.random.default_rng(0))
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    for data in [X] + [holes] * cls.missing + [sp.csr_array(X)] * cls.sparse:
        leaves = tree.leaves(model.fit(data).parts)
        print(name, hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in leaves)).hexdigest())
"""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    now, cached = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script], env=env, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    )
    assert len(now.stdout.splitlines()) > len(unmix.models())
    assert now.stdout == cached.stdout
