"""Ask every law of a model: at once, or one by one in a test runner."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

from unmix.model import Model
from unmix.testing.cases import Case, cases
from unmix.testing.problem import Problem


class Verdict(NamedTuple):
    """What came of one law: "holds", "exempt: why", "skipped: why" or "broken: how"."""

    law: str
    verdict: str


class Report(list[Verdict]):
    """The verdicts in the order of the laws; printed, one line for each."""

    @property
    def broken(self) -> list[Verdict]:
        """Those of laws that do not hold."""
        return [v for v in self if v.verdict.startswith("broken")]

    def __str__(self) -> str:
        return "\n".join(f"{law}: {verdict}" for law, verdict in self)


class BrokenLaws(AssertionError):  # noqa: N818  it says what is wrong
    """A model breaks laws: the message names them, and `report` has all verdicts."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


def laws(
    model: type[Model],
    *,
    laws: Collection[str] | None = None,
    skip: Collection[str] | dict[str, str] = (),
    random_state: int = 0,
    client: Any = None,
) -> list[Case]:
    """Return the laws as cases for a test runner.

    Calling a case raises where the law is broken, and `unittest.SkipTest`, with the reason, where the law is not asked:
    the model is exempt, or a package is missing. All cases of one call share the example and its fits.

    Parameters
    ----------
    model, laws, skip, random_state, client
        As for `check_model`.

    Returns
    -------
    cases : list of Case
        Functions without arguments; `id` of each is its name.

    Examples
    --------
    With pytest:

    >>> import unmix
    >>> from unmix.testing import laws
    >>> cases = laws(unmix.KMeans, laws=["additive", "monotone"])
    >>> for case in cases:
    ...     print(case.id)
    KMeans-the_objective_never_gets_worse-False
    KMeans-the_objective_never_gets_worse-True
    KMeans-statistics_add
    >>> cases[2]()  # would raise if statistics did not add up

    as in `@pytest.mark.parametrize("law", laws(MyModel), ids=lambda law: law.id)` above `def test_law(law): law()`.
    """
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise TypeError(
            f"{model!r} is no model class: give a class that derives from unmix.Model, not an instance of it"
        )
    problem = cache(lambda: Problem(model, random_state, client))
    return list(cases(model, problem, laws, skip))


def check_model(
    model: type[Model],
    *,
    laws: Collection[str] | None = None,
    skip: Collection[str] | dict[str, str] = (),
    random_state: int = 0,
    client: Any = None,
) -> Report:
    """Ask all laws of a model, on the problem that its `example(rng)` plants.

    Parameters
    ----------
    model : type
        A class that derives from `unmix.Model`, which says from which laws it is exempt, and why, in `exempt`.
    laws : list of str, optional
        Only these, by the name that `exempt` uses ("additive") or that of one function ("statistics_add").
    skip : list of str or dict, optional
        Laws not to ask, perhaps with reasons.
    random_state : int, default=0
        Seed of the generator that `example` gets.
    client : distributed.Client, optional
        Dask workers for the law that needs some; by default those of the active client, else workers in this process.

    Returns
    -------
    report : list of (law, verdict)
        Where no law is broken. A verdict is "holds", "exempt: why" or "skipped: why".

    Raises
    ------
    BrokenLaws
        An AssertionError that names the broken laws and what was found; its `report` has all verdicts.

    Examples
    --------
    >>> import unmix
    >>> from unmix.testing import check_model
    >>> report = check_model(unmix.KMedoids, laws=["additive", "pure", "online"])
    >>> print(report)  # doctest: +ELLIPSIS
    additive: statistics add: holds
    online: online with rate one on all rows is a batch step: exempt: medoids need all pairs of rows: ...
    pure: nothing passed in is changed: holds
    """
    report, first = Report(), None
    for case in _cases(model, laws, skip, random_state, client):
        case.problem()  # a model without an example breaks no law: none can be asked
        verdict = case.not_asked
        if not verdict:
            try:
                case()
                verdict = "holds"
            except Exception as error:
                first = first or error
                kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                verdict = f"broken: {kind}{' '.join(str(error).split())}"
        report.append(Verdict(str(case), verdict))
    if report.broken:
        told = "".join(f"\n- {law}: {verdict}" for law, verdict in report.broken)
        raise BrokenLaws(
            f"{model.__name__} breaks {len(report.broken)} of {len(report)} laws:{told}", report
        ) from first
    return report


def _cases(model: Any, laws: Any, skip: Any, random_state: int, client: Any) -> list[Case]:
    """The cases of a model, which share one problem."""
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise TypeError(f"{model!r} is no class of models: give a class that derives from unmix.Model")
    return list(cases(model, cache(lambda: Problem(model, random_state, client)), laws, skip))
