"""Questions asked of any clustering: are its clusters apart, do they come back, and do two clusterings agree?"""

from unmix.validate.clusterings import Variation, clustering_distance, match, variation
from unmix.validate.silhouette import Silhouette, silhouette
from unmix.validate.stability import Stability, stability

__all__ = [
    "Silhouette",
    "Stability",
    "Variation",
    "clustering_distance",
    "match",
    "silhouette",
    "stability",
    "variation",
]
