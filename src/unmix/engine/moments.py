"""The moments of a block of rows: n, Σ x, Σ x xᵀ about one fixed origin.

For CSR rows the centring is implicit:  Σ w (x−s)(x−s)ᵀ = Σ w x xᵀ − s aᵀ − a sᵀ + n s sᵀ  with  a = Σ w x.  Dense rows
are centred first, so that no digits cancel.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from unmix.engine import layout
from unmix.engine.block import Block
from unmix.maths.moments import Moments

ROOM = 1 << 22  # bytes
rooms = threading.local()


def is_sparse(x: Any) -> bool:
    """Whether rows are CSR."""
    return bool(sp.issparse(x))


def room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Room for an array, this thread's own: memory that the system gives anew costs more than the sum it is for."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes > ROOM:
        return np.empty(shape, dtype)
    if not hasattr(rooms, "own"):
        rooms.own = np.empty(ROOM, np.uint8)
    out: np.ndarray = rooms.own[:nbytes].view(dtype).reshape(shape)
    return out


def moments(b: Block, shift: np.ndarray) -> Moments:
    """Moments of a complete block about `shift`; a block that already is moments comes back as it is."""
    if isinstance(b.x, Moments):
        return b.x
    x = b.x
    if is_sparse(x):
        x = x.astype(np.float64, copy=False)  # about zero: float32 would cancel
        xw = x if b.w is None else sp.diags_array(b.w) @ x
        total = np.asarray(xw.sum(axis=0, dtype=np.float64)).ravel()
        return Moments(b.total, total, (x.T @ xw).toarray().astype(np.float64)).about(shift.astype(np.float64))
    if shift.any():
        x = np.subtract(x, shift, out=room(x.shape, x.dtype))
    if b.w is None:
        total = np.ones(len(x), x.dtype) @ x  # of centred rows, by BLAS: twice as fast as sum()
    else:
        total = b.w.astype(x.dtype) @ x
        x = x * np.sqrt(b.w).astype(x.dtype)[:, None]
    return Moments(b.total, total, x.T @ x)  # NumPy recognises a product with its own transpose: half the work


def block_rows(shape: layout.Shape) -> int | None:
    """Rows of a block whose moments are wanted: enough that adding d×d numbers costs little compared with making them.

    Sixteen times d is enough; of wide rows, which would not fit, four times d.
    """
    fit = (16 << 20) // (shape.d * shape.dtype.itemsize)
    return None if shape.sparse else max(layout.block_rows(shape), 4 * shape.d, min(16 * shape.d, fit))
