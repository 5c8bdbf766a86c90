"""What "near" and "centre" mean in k-means: one file for each metric, one interface for all (`base.py`)."""

from unmix.cluster.metrics.base import Metric
from unmix.cluster.metrics.cosine import Cosine
from unmix.cluster.metrics.euclidean import Euclidean
from unmix.cluster.metrics.hamming import Hamming
from unmix.cluster.metrics.mahalanobis import Mahalanobis
from unmix.cluster.metrics.manhattan import Manhattan

METRICS: dict[str, Metric] = {m.name: m for m in (Euclidean(), Cosine(), Mahalanobis(), Manhattan(), Hamming())}

__all__ = ["METRICS", "Metric"]
