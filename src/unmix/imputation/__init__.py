"""Holes in a table: what was estimated from several fillings, as one answer."""

from unmix.imputation.pool import Pooled, pool

__all__ = ["Pooled", "pool"]
