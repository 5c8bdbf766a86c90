"""Linear models of real numbers: principal components, factors, and a low rank beneath gross errors."""

from unmix.linear.factor_analysis import FactorAnalysis
from unmix.linear.pca import PCA
from unmix.linear.probabilistic_pca import ProbabilisticPCA
from unmix.linear.robust_pca import RobustPCA

__all__ = ["PCA", "FactorAnalysis", "ProbabilisticPCA", "RobustPCA"]
