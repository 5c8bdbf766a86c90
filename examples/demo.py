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

wine = load_wine(as_frame=True).data
rng = np.random.default_rng(0)
wine = wine.mask(rng.random(wine.shape) < 0.05)
wine.loc[41, ["alcohol", "hue"]] = [132.4, 10.7]
wine.loc[120, ["ash", "magnesium"]] = [23.2, 1010.0]

report = unmix.report(wine, title="178 wines")
page = report.save(Path("wine-report.html")).resolve()
print(f"\n{report}\n\nthe page, with the evidence:  {page}")
print("of your own table:  unmix report table.csv\n")

if sys.stdout.isatty() and (sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)):
    webbrowser.open(page.as_uri())
