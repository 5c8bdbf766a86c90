"""What a fit found, in the units of the table, for people."""

from unmix.explanation.components import Component, FoundComponents
from unmix.explanation.explain import explain
from unmix.explanation.groups import FoundGroups, Group, Trait

__all__ = ["Component", "FoundComponents", "FoundGroups", "Group", "Trait", "explain"]
