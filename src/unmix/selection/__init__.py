"""How many parts? One call for every model that has a k, with a reason and how sure it is."""

from unmix.selection.choose import select
from unmix.selection.criteria import CRITERIA
from unmix.selection.estimator import Select
from unmix.selection.result import Selection

__all__ = ["CRITERIA", "Select", "Selection", "select"]
