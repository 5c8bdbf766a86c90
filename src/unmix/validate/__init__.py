"""Questions asked of clusterings (are they apart, do they come back, do two agree?), of rows, and of roles."""

from unmix.validate.clusterings import Variation, clustering_distance, match, variation
from unmix.validate.dimension import Dimension, Estimate, dimension
from unmix.validate.roles import (
    Generalisation,
    RoleErrors,
    RoleMatch,
    match_roles,
    role_errors,
    role_generalisation,
    role_stability,
)
from unmix.validate.silhouette import Silhouette, silhouette
from unmix.validate.stability import Stability, stability

__all__ = [
    "Dimension",
    "Estimate",
    "Generalisation",
    "RoleErrors",
    "RoleMatch",
    "Silhouette",
    "Stability",
    "Variation",
    "clustering_distance",
    "dimension",
    "match",
    "match_roles",
    "role_errors",
    "role_generalisation",
    "role_stability",
    "silhouette",
    "stability",
    "variation",
]
