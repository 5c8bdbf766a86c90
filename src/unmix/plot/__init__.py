"""Pictures for notebooks, drawn by Matplotlib: what a fit found, how it went, how sure it is, and what is missing.

Each function takes `ax`, axes of your own to draw into, and returns the axes. Matplotlib is imported when a picture is
drawn, not before; `pip install 'unmix[plot]'` brings it. Names of columns and labels are shown as they are.

Examples
--------
>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import unmix
>>> from sklearn.datasets import load_iris
>>> ax = unmix.plot.scree(unmix.PCA(3).fit(load_iris().data))
>>> len(ax.patches)
3
"""

from unmix.plot.cells import missing
from unmix.plot.components import biplot, scores, scree
from unmix.plot.fits import choice, trace
from unmix.plot.groups import profiles, silhouettes

__all__ = ["biplot", "choice", "missing", "profiles", "scores", "scree", "silhouettes", "trace"]
