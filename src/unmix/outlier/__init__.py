"""Which rows and cells are strange? Scores from any model, and p-values for them."""

from unmix.outlier.conformal import OutlierDetector
from unmix.outlier.density import RowDensity
from unmix.outlier.reasons import Reason
from unmix.outlier.scores import cell_scores, scores
from unmix.outlier.tail import benjamini_hochberg

__all__ = ["OutlierDetector", "Reason", "RowDensity", "benjamini_hochberg", "cell_scores", "scores"]
