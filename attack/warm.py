"""What every child is forked from: the library, with the kernels that small fits need already loaded."""

from __future__ import annotations

import warnings

import unmix
from attack.harness import example, names

with warnings.catch_warnings(), unmix.config(n_jobs=1):
    warnings.simplefilter("ignore")
    for name in names():
        model, X = example(name)
        model.fit(X).transform(X[:5])
