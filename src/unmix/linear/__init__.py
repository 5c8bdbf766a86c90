"""Linear models of real numbers: components, of kernels too, factors, sources, a low rank beneath gross errors."""

from unmix.linear.factor_analysis import FactorAnalysis
from unmix.linear.fast_ica import FastICA
from unmix.linear.gaussian_imputer import GaussianImputer
from unmix.linear.kernel_pca import KernelPCA
from unmix.linear.pca import PCA
from unmix.linear.probabilistic_pca import ProbabilisticPCA
from unmix.linear.robust_pca import RobustPCA
from unmix.linear.spaces import null_space, range_space, rank
from unmix.linear.truncated_svd import TruncatedSVD

__all__ = [
    "PCA",
    "FactorAnalysis",
    "FastICA",
    "GaussianImputer",
    "KernelPCA",
    "ProbabilisticPCA",
    "RobustPCA",
    "TruncatedSVD",
    "null_space",
    "range_space",
    "rank",
]
