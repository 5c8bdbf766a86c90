"""The main job in one minute: from a table to a page that tells what is in it.

The table holds thirteen measurements of 178 wines, which scikit-learn carries. A decimal point has slipped in two of
its rows, and one cell in twenty is lost. The page finds the three kinds of wine, both slips, and tells how well the
lost cells can be guessed.
"""

import os
import sys
import webbrowser
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

import unmix

wine = load_wine()
X = np.where(np.random.default_rng(0).random(wine.data.shape) < 0.05, np.nan, wine.data)
columns = dict(zip(wine.feature_names, X.T, strict=True))
columns["alcohol"][41], columns["hue"][41] = 132.4, 10.7
columns["ash"][120], columns["magnesium"][120] = 23.2, 1010.0

report = unmix.report(columns, title="178 wines")
page = report.save(Path("wine-report.html")).resolve()
print(f"\n{report}\n\nthe page, with the evidence:  {page}")
print("of your own table:  unmix report table.csv\n")

if sys.stdout.isatty() and (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
    webbrowser.open(page.as_uri())
