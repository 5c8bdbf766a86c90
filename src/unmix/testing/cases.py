"""What a law is: a function of a `Problem` that raises where the law is broken. `@law` puts it on the list."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import SkipTest

from sklearn.exceptions import ConvergenceWarning

from unmix.engine.config import config
from unmix.testing.compare import Broken, CtrlC
from unmix.testing.problem import Problem


class Law(NamedTuple):
    """One entry of the list of laws.

    Attributes
    ----------
    name : str
        The name under which models are exempt from it; several laws may share one.
    check : callable
        Takes a `Problem`, and raises where the law is broken. Its name and docstring state the law.
    cases : dict
        Further arguments of `check`, each with all the values that it is asked with.
    needs : str
        A package of an extra that it needs, or "".
    """

    name: str
    check: Callable[..., None]
    cases: dict[str, tuple[Any, ...]]
    needs: str


LAWS: list[Law] = []


def law(
    name: str, *, needs: str = "", **cases: tuple[Any, ...]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put a function on the list of laws.

    Parameters
    ----------
    name : str
        The name under which models are exempt from it.
    needs : str
        A package of an extra that it needs.
    **cases
        Further arguments of the function, each with all the values that it is asked with.

    Returns
    -------
    decorator : callable
        For a function that takes a `Problem` and raises where the law is broken; its docstring states the law.
    """

    def add(check: Callable[..., None]) -> Callable[..., None]:
        LAWS.append(Law(name, check, cases, needs))
        return check

    return add


class Case:
    """One law for one model: call it, and it raises where the law is broken, `unittest.SkipTest` where it is not asked.

    Parameters
    ----------
    cls : type
        The class of the model.
    law : Law
        The law.
    arguments : dict
        What `law.check` takes beside the problem.
    problem : callable
        Gives the problem, which all cases of the model share.
    skip : str
        Why it is not asked although the model is not exempt, or "".

    Attributes
    ----------
    id : str
        The name of the case, for pytest.
    """

    def __init__(
        self, cls: Any, law: Law, arguments: dict[str, Any], problem: Callable[[], Problem], skip: str
    ) -> None:
        self.cls, self.law, self.arguments, self.problem, self.skip = cls, law, arguments, problem, skip
        self.id = "-".join([cls.__name__, law.check.__name__, *(str(value) for value in arguments.values())])

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        return f"{self.law.name}: {self.law.check.__name__.replace('_', ' ')}" + (f" ({told})" if told else "")

    def __repr__(self) -> str:
        return f"<{self.cls.__name__}, {self}>"

    @property
    def not_asked(self) -> str:
        """Why this law is not asked of this model, or ""."""
        if self.law.name in self.cls.exempt:
            return f"exempt: {self.cls.exempt[self.law.name]}"
        if self.skip:
            return f"skipped: {self.skip}"
        if self.law.needs and importlib.util.find_spec(self.law.needs) is None:
            return f"skipped: it needs the package {self.law.needs}, which is not installed"
        return ""

    def __call__(self) -> None:
        """Ask. Fits may end early, so that ConvergenceWarning means nothing here."""
        if self.not_asked:
            raise SkipTest(self.not_asked)
        with warnings.catch_warnings(), config(progress=False):
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                self.law.check(self.problem(), **self.arguments)
            except CtrlC as error:
                raise Broken("Ctrl-C ended the fit with an error, where it should stop it") from error


def cases(cls: Any, problem: Callable[[], Problem], laws: Any = None, skip: Any = ()) -> Iterator[Case]:
    """Every law on the list as a case of this model, or those that were named."""
    reasons = skip if isinstance(skip, dict) else dict.fromkeys(skip, "not wanted")
    for given, what in ((laws or (), "laws"), (reasons, "skip")):
        known = {name for law in LAWS for name in names_of(law)}
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"{what}={unknown!r} is no law: the laws are {', '.join(sorted({w.name for w in LAWS}))}")
    for law in LAWS:
        if laws is None or names_of(law) & set(laws):
            why = next((reasons[name] for name in names_of(law) if name in reasons), "")
            for values in itertools.product(*law.cases.values()):
                yield Case(cls, law, dict(zip(law.cases, values, strict=True)), problem, why)


def names_of(law: Law) -> set[str]:
    """A law is called by the name that exemptions use, or by that of its function."""
    return {law.name, law.check.__name__}
