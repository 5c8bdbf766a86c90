"""How many parts? One call for every model that has a k, with a reason and how sure it is."""

from unmix.selection.choose import Selection, select
from unmix.selection.criteria import CRITERIA
from unmix.selection.estimator import Select

__all__ = ["CRITERIA", "Select", "Selection", "select"]
