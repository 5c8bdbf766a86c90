"""Clustering: each row belongs to one part."""

from unmix.cluster.kernel_kmeans import KernelKMeans
from unmix.cluster.kmeans import KMeans
from unmix.cluster.kmedoids import KMedoids
from unmix.cluster.soft_kmeans import SoftKMeans

__all__ = ["KMeans", "KMedoids", "KernelKMeans", "SoftKMeans"]
