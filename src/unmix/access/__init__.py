"""Access lists: who may do what, the roles behind it, and the grants that do not fit."""

from unmix.access.analysis import Analysis, analysis
from unmix.access.grants import FEWEST, Review, review
from unmix.access.listing import AccessList, access_list, is_access_list

__all__ = ["FEWEST", "AccessList", "Analysis", "Review", "access_list", "analysis", "is_access_list", "review"]
