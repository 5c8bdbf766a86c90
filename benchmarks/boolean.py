"""Boolean algebra: the product of packed bits, and exact covers of planted roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Case, Quality, Target, contestant


def planted(n: int, d: int, k: int, p: float) -> tuple[np.ndarray, np.ndarray]:
    """Who has which of k roles (one to three), and what is in them."""
    rng = np.random.default_rng(0)
    Z, U = np.zeros((n, k), bool), rng.random((k, d)) < p
    Z[np.repeat(np.arange(n), 3), rng.integers(k, size=3 * n)] = True
    return Z, U


@dataclass
class Product(Case):
    """All cells of Z ⊗ U, each in the form that the contestant works with."""

    shape: tuple[int, int, int] = (0, 0, 0)  # users, permissions, roles

    def data(self, size: str) -> Any:
        n, d, k = self.shape
        n, d = {"full": (n, d), "quick": (n // 5, d // 5), "warm": (500, 500)}[size]
        return planted(n, d, k, 0.01 / 3)

    def score(self, data: Any, result: dict[str, Any]) -> float:
        """How many cells differ from the definition."""
        Z, U = data
        return float((result["cells"] != (Z.astype(np.float32) @ U.astype(np.float32) > 0)).sum())

    @contestant("unmix", note="packed bits in and out")
    def ours(self, data, goal):
        from unmix.kernels import bits

        (Z, U), d = (bits.pack(a) for a in data), data[1].shape[1]
        return lambda: bits.product(Z, U), lambda X: {"cells": bits.unpack(X, d)}

    @contestant("SciPy CSR", needs="scipy", note="counts in place of truth values")
    def scipy(self, data, goal):
        import scipy.sparse as sp

        Z, U = (sp.csr_array(a.astype(np.int32)) for a in data)
        return lambda: Z @ U, lambda X: {"cells": X.toarray() > 0}

    @contestant("NumPy float32", note="counts of a dense product")
    def numpy(self, data, goal):
        Z, U = (a.astype(np.float32) for a in data)
        return lambda: Z @ U > 0, lambda X: {"cells": X}


CASES = [
    Product(
        "boolean-product-10k",
        "Boolean product, 10k×10k at 1 %, 200 roles",
        Quality("wrong cells", goal=0.0),
        (Target(1, ("SciPy CSR", "NumPy float32")),),
        None,
        (),
        (10_000, 10_000, 200),
    )
]
