"""Clustering: each row belongs to one part."""

from unmix.cluster.kmeans import KMeans

__all__ = ["KMeans"]
