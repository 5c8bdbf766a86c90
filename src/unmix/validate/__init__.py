"""Questions asked of clusterings: are clusters apart, do they come back, do two agree? Of rows: how many dimensions?"""

from unmix.validate.clusterings import Variation, clustering_distance, match, variation
from unmix.validate.dimension import Dimension, Estimate, dimension
from unmix.validate.silhouette import Silhouette, silhouette
from unmix.validate.stability import Stability, stability

__all__ = [
    "Dimension",
    "Estimate",
    "Silhouette",
    "Stability",
    "Variation",
    "clustering_distance",
    "dimension",
    "match",
    "silhouette",
    "stability",
    "variation",
]
