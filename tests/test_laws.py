"""The laws (`unmix.testing`) hold for every model, found by discovery, and models that break one are told which."""

import os
import subprocess
import sys

import pytest

import unmix
from unmix.testing import laws

CASES = [case for cls in unmix.models().values() for case in laws(cls)]


def named(cases):
    return [pytest.param(case, id=case.id) for case in cases]


@pytest.mark.parametrize("law", named(case for case in CASES if case.law.needs != "distributed"))
def test_law(law):
    law()  # raises where it is broken, and skips where the model is exempt


@pytest.mark.slow  # the quick tests have the skeleton on Dask
@pytest.mark.parametrize("law", named(case for case in CASES if case.law.needs == "distributed"))
def test_law_on_dask(law, cluster):
    with cluster.as_current():
        law()


@pytest.mark.slow
def test_same_bits_from_code_compiled_now_and_from_code_in_the_cache(tmp_path):
    script = """
import hashlib, numpy as np, scipy.sparse as sp, unmix
from unmix.engine import loop, tree
for name, cls in unmix.models().items():
    model, X, _ = cls.example(np.random.default_rng(0))
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    for data in [X] + [holes] * cls.missing + [sp.csr_array(X)] * cls.sparse:
        leaves = tree.leaves(model.fit(data).parts)
        print(name, hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in leaves)).hexdigest())
"""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    now, cached = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script], env=env, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    )
    assert len(now.stdout.splitlines()) > len(unmix.models())
    assert now.stdout == cached.stdout
