"""Which rows and cells are strange? Scores from any model, and p-values for them."""

from unmix.outlier.conformal import OutlierDetector, benjamini_hochberg
from unmix.outlier.density import RowDensity
from unmix.outlier.scores import cell_scores, scores

__all__ = ["OutlierDetector", "RowDensity", "benjamini_hochberg", "cell_scores", "scores"]
