"""`check_model` on models that break one law each: every law can fail, and the error says which one did."""

import importlib.util
import subprocess
import sys
import threading
from typing import ClassVar, NamedTuple
from unittest import SkipTest

import numpy as np
import pytest
import scipy.sparse as sp
from skeleton import Parts, Prototypes

import unmix
from unmix.engine.block import Local
from unmix.model.capabilities import Imputes
from unmix.testing import BrokenLaws, Report, Verdict, check_model, law, laws
from unmix.testing.cases import LAWS
from unmix.testing.compare import Broken, CtrlC, close, demand, refuses


class FindsNothing(Prototypes):
    """Breaks "planted"."""

    def update(self, U, stats):
        return U


class Climbs(Prototypes):
    """Breaks "monotone"."""

    def update(self, U, stats):
        return Parts(1.3 * U.prototypes)


class ReadsCsrWrongly(Prototypes):
    """Breaks "sparse": it forgets the last entry."""

    sparse = True

    def local(self, U, b):
        return super().local(U, dense(b))

    def encode(self, U, b):
        return super().encode(U, dense(b))


def dense(b):
    if not sp.issparse(b.x):
        return b
    x = b.x.toarray()
    x[:, -1] = 0
    return b._replace(x=x)


class RefusesCsrDarkly(Prototypes):
    """Breaks "sparse": it does not say what to do."""

    def fit(self, X, y=None, sample_weight=None):
        if sp.issparse(X):
            raise TypeError("no")
        return super().fit(X, y, sample_weight)


class ReadsNanAsZero(Prototypes):
    """Breaks "missing"."""

    def local(self, U, b):
        return super().local(U, b._replace(observed=None))


class AnswersInDouble(Prototypes):
    """Breaks "float32"."""

    def encode(self, U, b):
        return super().encode(U, b).astype(np.float64)


class Columns(NamedTuple):
    """Means and variances of columns."""

    mean: np.ndarray
    variance: np.ndarray


class Normals(Imputes, unmix.Model):
    """A Gaussian for each column: holds the laws of imputation."""

    missing = True

    def start(self, before, data, rng):
        return Columns(np.zeros(data.x.shape[1]), np.ones(data.x.shape[1]))

    def local(self, U, b):
        seen = np.ones_like(b.x) if b.observed is None else b.observed.astype(b.x.dtype)
        w = b.weighted(seen)
        return Local(b.x, (w.sum(axis=0), (w * b.x).sum(axis=0), (w * b.x**2).sum(axis=0)), 0.0)

    def update(self, U, stats):
        N, A, B = stats
        return Columns(A / N, B / N - (A / N) ** 2)

    def publish(self, fit):
        self.mean_ = fit.U.mean

    def conditional(self, U, b):
        return np.broadcast_to(U.mean, b.x.shape), np.broadcast_to(np.sqrt(U.variance), b.x.shape)

    def drawn(self, U, b):
        return U.mean + self.given.generator(b).standard_normal(b.x.shape) * np.sqrt(U.variance)

    @classmethod
    def example(cls, rng):
        return cls(), rng.normal(size=(400, 5)) + np.arange(5), lambda model: None


class TooSure(Normals):
    """Breaks "imputation": half of the truth is outside."""

    def conditional(self, U, b):
        mean, deviation = super().conditional(U, b)
        return mean, 0.4 * deviation


class DrawsMeans(Normals):
    """Breaks "imputation": draws do not vary."""

    def drawn(self, U, b):
        return np.broadcast_to(U.mean, b.x.shape)


class DrawsElsewhere(Normals):
    """Breaks "imputation": draws are about something else."""

    def drawn(self, U, b):
        return super().drawn(U, b) + np.sqrt(U.variance)


class Smooths(Normals):
    """Breaks "imputation": what was observed is imputed, too."""

    def fill(self, U, b):
        return b.x if b.observed is None else self.conditional(U, b)[0]


class KnowsItsUnit(Prototypes):
    """Breaks "scale": what is small is taken for nothing."""

    def update(self, U, stats):
        new = super().update(U, stats).prototypes
        return Parts(np.where(np.abs(new) < 1e-3, 0.0, new))


class SureInItsUnit(Normals):
    """Breaks "scale": no cell is surer than a thousandth."""

    degrees: ClassVar = {"mean_": 1, "transform": 1}

    def conditional(self, U, b):
        mean, deviation = super().conditional(U, b)
        return mean, np.maximum(deviation, 1e-3)


class KnowsItsThread(Prototypes):
    """Breaks "same bits" on threads."""

    def local(self, U, b):
        out = super().local(U, b)
        return out._replace(stats=jolted(out.stats, threading.current_thread() is not threading.main_thread()))


class KnowsItsWorker(Prototypes):
    """Breaks "same bits" on Dask."""

    def local(self, U, b):
        from distributed import get_worker

        out = super().local(U, b)
        try:
            get_worker()
        except ValueError:
            return out
        return out._replace(stats=jolted(out.stats, True))


def jolted(stats, much):
    return stats._replace(A=stats.A * (1 + 1e-12 * much))


class Forgets(Prototypes):
    """Breaks "files": a pickle holds other parts."""

    def __getstate__(self):
        state = super().__getstate__().copy()
        if "_parts_" in state:
            state["_parts_"] = Parts(state["_parts_"].prototypes.round(2))
        return state


class Slow(NamedTuple):
    prototypes: np.ndarray
    steps: int


class UnusableAtFirst(Prototypes):
    """Breaks "stop": there is no output before the third step."""

    def start(self, before, data, rng):
        return Slow(*super().start(before, data, rng), 0)

    def update(self, U, stats):
        return Slow(*super().update(U, stats), U.steps + 1)

    def encode(self, U, b):
        return super().encode(U, b) * (1 if U.steps > 2 else np.nan)


class DiesOfCtrlC(Prototypes):
    """Breaks "stop": what stops a fit leaves it as an error."""

    def publish(self, fit):
        if fit.result == "stopped":
            raise CtrlC
        super().publish(fit)


class NeedsTheClosingPass(Prototypes):
    """Breaks "stop": its parts come from the last look at the rows."""

    def publish(self, fit):
        super().publish(fit)
        if fit.z is None:
            self._parts_ = Parts(fit.U.prototypes.round(2))


class Remembers(Prototypes):
    """Breaks "resume": what it knows is not in its parts."""

    updates = 0

    def at(self, shape):
        Remembers.updates = 0
        return super().at(shape)

    def update(self, U, stats):
        Remembers.updates += 1
        return Parts(super().update(U, stats).prototypes + 1e-9 * Remembers.updates)


class Averages(Prototypes):
    """Breaks "additive": means do not add up."""

    def local(self, U, b):
        out = super().local(U, b)
        return out._replace(stats=type(out.stats)(out.stats.N / len(b.x), out.stats.A / len(b.x)))


class IgnoresWeights(Prototypes):
    """Breaks "weights" in the local step."""

    def local(self, U, b):
        return super().local(U, b._replace(w=None))


class CountsRows(Prototypes):
    """Breaks "weights" in the fit: it shrinks by the number of rows, not by their weight."""

    def update(self, U, stats):
        n = self.shape.n
        return Parts(super().update(U, stats).prototypes * n / (n + 5))


class LearnsOtherwise(Prototypes):
    """Breaks "online"."""

    def update(self, U, stats):
        return Parts(super().update(U, stats).prototypes + self.shape.online)


class WritesIntoParts(Prototypes):
    """Breaks "pure"."""

    def update(self, U, stats):
        U.prototypes[:] = super().update(U, stats).prototypes
        return U


class WritesIntoRows(Prototypes):
    """Breaks "pure"."""

    def local(self, U, b):
        out = super().local(U, b)
        b.x[0, 0] += 1
        return out


BREAKS = {
    "the_planted_parts_are_found": [FindsNothing],
    "the_objective_never_gets_worse": [Climbs],
    "dense_is_csr": [ReadsCsrWrongly, RefusesCsrDarkly],
    "nan_is_not_observed": [ReadsNanAsZero],
    "imputation_knows_how_sure_it_is": [TooSure, DrawsMeans, DrawsElsewhere, Smooths],
    "float32_in_float32_out": [AnswersInDouble],
    "scaling_the_data_scales_the_parts": [KnowsItsUnit, SureInItsUnit],
    "same_bits_on_threads_and_streams": [KnowsItsThread],
    "same_bits_on_dask": [KnowsItsWorker],
    "save_load_and_pickle_give_the_same_output": [Forgets],
    "a_fit_can_be_stopped": [UnusableAtFirst, DiesOfCtrlC],
    "ctrl_c_in_the_closing_pass_keeps_the_parts": [NeedsTheClosingPass],
    "killed_and_resumed_is_never_killed": [Remembers],
    "ctrl_c_leaves_a_checkpoint": [Remembers],
    "statistics_add": [Averages],
    "weight_two_is_the_row_twice_and_weight_zero_is_no_row": [IgnoresWeights],
    "a_weighted_fit_is_a_fit_of_repeated_rows": [CountsRows],
    "online_with_rate_one_on_all_rows_is_a_batch_step": [LearnsOtherwise],
    "nothing_passed_in_is_changed": [WritesIntoParts, WritesIntoRows],
}


@pytest.mark.parametrize(("law", "cls"), [(law, cls) for law, toys in BREAKS.items() for cls in toys])
def test_a_broken_law_is_named(law, cls):
    said = law.replace("_", " ")
    with pytest.raises(BrokenLaws, match=f"{cls.__name__} breaks .* laws:\n- .*: {said}") as caught:
        check_model(cls, laws=[law])
    asked = [case for case in laws(cls) if case.law.check.__name__ == law]
    assert len(caught.value.report) == len(asked)
    assert caught.value.__cause__ is not None


def test_every_law_has_a_model_that_breaks_it():
    assert set(BREAKS) == {law.check.__name__ for law in LAWS}
    assert all(law.check.__doc__ for law in LAWS)


def test_laws_that_hold_are_not_called_broken():
    with pytest.raises(BrokenLaws, match="breaks 2 of 4 laws") as caught:
        check_model(IgnoresWeights, laws=["additive", "pure", "weights"])
    told = [verdict.split(":")[0] for _, verdict in caught.value.report]
    assert told == ["holds", "broken", "broken", "holds"]
    assert [verdict for _, verdict in check_model(Normals, laws=["imputation"])] == ["holds"]


class Excused(IgnoresWeights):
    exempt = {"weights": "rows are what it counts"}


def test_exemptions_and_skips_are_told_with_their_reasons(monkeypatch):
    report = check_model(Excused, laws=["weights", "additive", "same_bits_on_dask"], skip={"additive": "another day"})
    assert isinstance(report, Report)
    assert Verdict("additive: statistics add", "skipped: another day") in report
    assert [v for law, v in report if "weight" in law] == ["exempt: rows are what it counts"] * 2
    assert ("same bits: same bits on dask", "holds") in report
    assert str(report).splitlines()[0] == "same bits: same bits on dask: holds"
    case = laws(Excused, laws=["weights"])[0]
    with pytest.raises(SkipTest, match="rows are what it counts"):
        case()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (told,) = check_model(Excused, laws=["same_bits_on_dask"])
    assert told.verdict == "skipped: it needs the package distributed, which is not installed"


class NoExample(Prototypes):
    example = unmix.Model.example


def test_what_cannot_be_asked_is_said():
    with pytest.raises(TypeError, match=r"NoExample has no example .* write the class method example\(rng\)"):
        check_model(NoExample)
    with pytest.raises(TypeError, match="derives from unmix"):
        check_model(Prototypes())
    with pytest.raises(ValueError, match=r"laws=\['adds'\] is no law: the laws are additive, .*weights"):
        check_model(Prototypes, laws=["adds"])
    with pytest.raises(ValueError, match=r"skip=\['adds'\]"):
        laws(Prototypes, skip=["adds"])


def test_a_new_law_is_a_function(monkeypatch):
    monkeypatch.setattr("unmix.testing.cases.LAWS", own := [])

    @law("short", most=(1, 1000))
    def few_steps_are_enough(p, most):
        """A fit takes few steps."""
        demand(p.fitted().n_iter_ <= most, f"it took {p.fitted().n_iter_} steps")

    assert len(own) == 1
    with pytest.raises(BrokenLaws, match=r"1 of 2 laws:\n- short: few steps are enough \(most=1\): broken: it took \d"):
        check_model(Prototypes)
    assert [case.id for case in laws(Prototypes)] == [
        "Prototypes-few_steps_are_enough-1",
        "Prototypes-few_steps_are_enough-1000",
    ]


def test_comparisons_say_what_differs():
    a = Slow(np.ones((2, 2)), 1)
    close((a, 2.0), (a, 2.0))
    with pytest.raises(Broken, match=r"^sums differ in 0\.prototypes by up to 1; the largest entry is 2$"):
        close((a, 2.0), (a._replace(prototypes=2 * a.prototypes), 2.0), what="sums")
    with pytest.raises(Broken, match="shape"):
        close(np.ones(2), np.ones((2, 1)))
    refuses(ValueError, "literal", int, "x")
    with pytest.raises(Broken, match="should say 'toarray'"):
        refuses(ValueError, "toarray", int, "x")
    with pytest.raises(Broken, match="should have been raised"):
        refuses(ValueError, "toarray", int, "1")


def test_the_laws_are_light_to_import():
    code = """
import sys, unmix
assert "unmix.testing" not in sys.modules
import unmix.testing
print(*{"pytest", "dask", "distributed", "numba"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
