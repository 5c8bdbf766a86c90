"""Hostile arrays to every model: a ValueError or TypeError in a sentence, or a finite answer. No crash, no hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from attack.harness import Child, Report, example, names, spoken
from unmix.engine import tree

SHARE = 2.0
PATIENCE = 60.0


def holed(X: np.ndarray, rows: Any, columns: Any, value: float) -> np.ndarray:
    """Some cells hold another value."""
    X = X.copy()
    X[rows, columns] = value
    return X


def masked(X: np.ndarray, rng: np.random.Generator) -> Any:
    """Some cells are masked."""
    return np.ma.masked_array(X, rng.random(X.shape) < 0.1)


HOSTILE: dict[str, Callable[[np.ndarray, np.random.Generator], Any]] = {
    "infinite": lambda X, rng: holed(X, rng.integers(len(X)), 0, np.inf),
    "NaN": lambda X, rng: holed(X, rng.integers(len(X), size=5), 0, np.nan),
    "all NaN": lambda X, rng: np.full_like(X, np.nan),
    "row of NaN": lambda X, rng: holed(X, rng.integers(len(X)), slice(None), np.nan),
    "column of NaN": lambda X, rng: holed(X, slice(None), 0, np.nan),
    "constant": lambda X, rng: np.full_like(X, 3.0),
    "zeros": lambda X, rng: np.zeros_like(X),
    "negative": lambda X, rng: -np.abs(X),
    "one row": lambda X, rng: X[:1],
    "one column": lambda X, rng: X[:, :1],
    "no rows": lambda X, rng: X[:0],
    "no columns": lambda X, rng: X[:, :0],
    "one axis": lambda X, rng: X[:, 0],
    "three axes": lambda X, rng: X[None],
    "duplicates": lambda X, rng: np.repeat(X[: 1 + rng.integers(4)], 40, axis=0),
    "outlier": lambda X, rng: holed(X, 0, 0, 1e12),
    "objects": lambda X, rng: X.astype(object),
    "mixed objects": lambda X, rng: np.where(np.median(X) < X, "a", X.astype(object)),
    "texts": lambda X, rng: X.astype("U8"),
    "bytes": lambda X, rng: X.astype("S8"),
    "complex": lambda X, rng: X + 1j,
    "truth values": lambda X, rng: np.median(X) < X,
    "whole numbers": lambda X, rng: X.astype(np.int16),
    "unsigned": lambda X, rng: np.abs(X).astype(np.uint8),
    "half precision": lambda X, rng: X.astype(np.float16),
    "long double": lambda X, rng: X.astype(np.longdouble),
    "big-endian": lambda X, rng: X.astype(">f8"),
    "dates": lambda X, rng: np.abs(X).astype("M8[s]"),
    "read-only": lambda X, rng: np.frombuffer(X.tobytes()).reshape(X.shape),
    "Fortran": lambda X, rng: np.asfortranarray(X),
    "strided": lambda X, rng: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::-3],
    "broadcast": lambda X, rng: np.broadcast_to(X[0], X.shape),
    "unaligned": lambda X, rng: np.frombuffer(b"x" + X.tobytes(), offset=1).reshape(X.shape),
    "masked": masked,
    "matrix": lambda X, rng: np.asmatrix(X),
    "lists": lambda X, rng: X.tolist(),
    "ragged": lambda X, rng: [[1.0], [1.0, 2.0]],
    "COO": lambda X, rng: sp.coo_array(X),
    "CSC": lambda X, rng: sp.csc_matrix(np.abs(X)),
    "DOK": lambda X, rng: sp.dok_array(X[:40]),
    "CSR, doubled": lambda X, rng: sp.csr_array((np.ones(4), ([0, 0, 1, 1], [0, 0, 1, 1])), shape=X.shape),
    "CSR, out of range": lambda X, rng: forged(X, X.shape[1] + 10**6),
    "CSR, negative": lambda X, rng: forged(X, -7),
    "CSR of NaN": lambda X, rng: sp.csr_array(holed(X, 0, 0, np.nan)),
    "huge": lambda X, rng: X * 1e200,
    "large": lambda X, rng: X * 1e40,
    "tiny": lambda X, rng: X * 1e-200,
    "small": lambda X, rng: X * 1e-40,
    "large float32": lambda X, rng: (X * 1e19).astype(np.float32),
    "subnormal": lambda X, rng: np.abs(X) * 5e-324,
}


def forged(X: np.ndarray, index: int) -> Any:
    """CSR rows, one of whose columns does not exist."""
    x = sp.csr_array(np.abs(X))
    x.indices[len(x.indices) // 2] = index
    return x


def use(name: str, kind: str, seed: int, fitted: bool) -> str:
    """Fit a model to hostile rows, or ask a fitted one about them: what went wrong, or nothing."""
    model, X = example(name)
    rng = np.random.default_rng(seed)
    try:
        rows = HOSTILE[kind](X.astype(np.float64), rng)
    except Exception as e:
        return f"the attack itself: {e!r}"
    try:
        model = known(name) if fitted else model.fit(rows)
        z = model.transform(rows)
    except (ValueError, TypeError) as e:
        return "" if spoken(e) else f"a raw error: {e!r}"
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:150]}"
    if not tree.finite(model._parts_):
        return "its parts are not finite"
    return "" if np.isfinite(np.asarray(z)).all() else "its answer is not finite"


@cache
def known(name: str) -> Any:
    """A model that is fitted to its own rows."""
    model, X = example(name)
    return model.fit(X)


def several(name: str, cases: list[tuple[str, int, bool]]) -> list[str]:
    """The same for several kinds of rows."""
    return [use(name, *case) for case in cases]


def run(report: Report, rng: np.random.Generator, until: float) -> None:
    """Every kind to every model, fitted and not, then again with other numbers."""
    while time.monotonic() < until:
        for name in rng.permutation(names()):
            cases = [(kind, int(rng.integers(2**31)), fitted) for kind in HOSTILE for fitted in (False, True)]
            if time.monotonic() >= until:
                return
            word, value = Child(several, str(name), cases).answer(PATIENCE)
            if word != "value":  # one by one, to see which
                value = [f"{a[0]} {a[1]}" if a[0] != "value" else a[1]
                         for a in (Child(use, str(name), *case).answer(PATIENCE) for case in cases)]  # fmt: skip
            for case, what in zip(cases, value, strict=True):
                report.count(case[0])
                if what:
                    report.found(f"{name}, {case[0]}{' to a fitted model' * case[2]}: {what}",
                                 f"attack.arrays.use{(str(name), *case)}")  # fmt: skip
