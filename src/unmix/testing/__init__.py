"""The laws that every model obeys, for models of your own: `check_model(MyModel)`.

A law is a function of a `Problem` with the decorator `@law(name)`, in one of the modules imported below.
"""

from unmix.testing import answers, bits, ends, scale, sums  # noqa: F401  which put their laws on the list
from unmix.testing.cases import law
from unmix.testing.check import BrokenLaws, Report, Verdict, check_model, laws
from unmix.testing.problem import Problem

__all__ = ["BrokenLaws", "Problem", "Report", "Verdict", "check_model", "law", "laws"]
