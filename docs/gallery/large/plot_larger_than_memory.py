"""
A file, not an array
====================

``fit`` takes a path. Rows are read block by block in every pass and need not fit in memory; the result is the same,
to the bit, as from the array.
"""

# %%
import tempfile
from pathlib import Path

import numpy as np

import unmix

rng = np.random.default_rng(0)
centres = rng.normal(size=(5, 8)) * 4
rows = (centres[rng.integers(5, size=100_000)] + rng.normal(size=(100_000, 8))).astype(np.float32)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
np.save(path, rows)

from_file = unmix.GaussianMixture(5, covariance_type="diag", random_state=0).fit(path)
from_memory = unmix.GaussianMixture(5, covariance_type="diag", random_state=0).fit(rows)
print("the same bits:", bool((from_file.means_ == from_memory.means_).all()))

# %%
# The same call on threads, on one thread, or on a Dask cluster gives these bits, too.
with unmix.config(runner="serial"):
    alone = unmix.GaussianMixture(5, covariance_type="diag", random_state=0).fit(path)
print("the same bits:", bool((alone.means_ == from_memory.means_).all()))

# %%
# So many points would cover each other: pictures of them are of how densely they lie.
_ = unmix.plot.scores(unmix.PCA(2).fit(path), path, labels=from_file.predict(path) + 1)
folder.cleanup()

# %%
# With a checkpoint, a fit that was killed goes on where it was: the same call, the same bits in the end. See
# :doc:`../../larger_than_memory`.
