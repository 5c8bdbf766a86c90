"""Linear models of real numbers: principal components, of kernels too, factors, a low rank beneath gross errors."""

from unmix.linear.factor_analysis import FactorAnalysis
from unmix.linear.kernel_pca import KernelPCA
from unmix.linear.pca import PCA
from unmix.linear.robust_pca import RobustPCA

__all__ = ["PCA", "FactorAnalysis", "KernelPCA", "RobustPCA"]
