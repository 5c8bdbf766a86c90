"""The product of the rows' second moments with a few directions, a block at a time: what passes for axes add up.

stats    n, Σ (x − s), Σ |x − s|², Σ (x − s)(x − s)ᵀQ        [s: a fixed origin, near the mean of dense rows]
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.layout import Shape, block_rows
from unmix.engine.moments import is_sparse
from unmix.engine.stage import Sizes
from unmix.maths.arrays import Array

ORIGIN_ROWS = 1024  # that tell where to measure rows from
LEAST, MOST = 8, 16  # directions that the kernel for CSR rows takes
LINE = 64  # bytes of a cache line
MANY_ROWS = 256  # of a dense block, so that adding d×a numbers costs little compared with making them


class Image(NamedTuple):
    """Statistics of a pass: n, Σ (x−s), Σ |x−s|² and Σ (x−s)(x−s)ᵀQ, a column for each direction."""

    n: float
    sum: Annotated[np.ndarray, Array("d")]
    square: float
    image: Annotated[np.ndarray, Array("d a")]

    def moved(self, Q: np.ndarray, delta: np.ndarray) -> Image:
        """The same about the origin s − delta; directions are columns of Q."""
        if not delta.any():
            return self
        s = self.sum + self.n * delta
        product = self.image + np.outer(delta, self.sum @ Q) + np.outer(s, delta @ Q)
        return Image(self.n, s, self.uncentred(delta), product)

    def uncentred(self, delta: np.ndarray) -> float:
        """Σ |x − s + delta|²."""
        return self.square + float((2.0 * self.sum + self.n * delta) @ delta)

    def centred(self, Q: np.ndarray) -> np.ndarray:
        """The covariance times Q."""
        centre = self.sum / self.n
        return self.image / self.n - np.outer(centre, centre @ Q)


def image(b: Block, Q: np.ndarray, centre: np.ndarray) -> tuple[Image, np.ndarray]:
    """The statistics of a block about `centre`, and Σ ((x − centre)Q)² of each direction.

    CSR rows are centred implicitly. Q has a direction in each column.
    """
    centre = centre.astype(np.float64, copy=False)
    if is_sparse(b.x):
        offset = centre @ Q if centre.any() else np.zeros(Q.shape[1])
        s, product, square, norm = sparse_product(b, Q, offset)
        if not centre.any():
            return Image(b.total, s, norm, product), square
        s = s - b.total * centre
        norm = norm - 2.0 * float(s @ centre) - b.total * float(centre @ centre)
        return Image(b.total, s, norm, product - np.outer(centre, s @ Q)), square
    x = b.x - centre.astype(b.x.dtype) if centre.any() else b.x
    y = x @ Q
    s = np.ones(len(x), x.dtype) @ x if b.w is None else b.w.astype(x.dtype) @ x
    norm = b.sum(np.einsum("ij,ij->i", x, x))
    square = np.einsum("ia,ia->a", b.weighted(y), y, dtype=np.float64)
    return Image(b.total, s.astype(np.float64), norm, x.T @ b.weighted(y)), square


def sparse_product(b: Block, Q: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Σ w x, Σ w x yᵀ, Σ w y² and Σ w |x|² of CSR rows, y = xQ − offset: some directions at a time."""
    from unmix.kernels.csr_image import add_image

    x, (d, a) = b.x, Q.shape
    w = np.ones(x.shape[0], x.dtype) if b.w is None else b.w.astype(x.dtype)
    products, squares, norm = [], [], 0.0
    for i in range(0, max(a, 1), MOST):
        here = min(MOST, a - i)
        wide = LEAST if here <= LEAST else MOST
        part, c = Q, np.zeros(wide, x.dtype)
        c[:here] -= offset[i : i + here].astype(x.dtype, copy=False)
        if (a, Q.ctypes.data % LINE, Q.flags.carray) != (wide, 0, True):
            part = aligned((d, wide), x.dtype)
            part[:, :here] = Q[:, i : i + here]
        out, square, total = aligned((d, wide), x.dtype), np.zeros(wide), np.zeros(d)
        norm = float(add_image(x.data, x.indices, x.indptr, w, part, c, out, square, total))
        products.append(out if here == wide else out[:, :here])
        squares.append(square[:here])
    return total, products[0] if len(products) == 1 else np.hstack(products), np.concatenate(squares), norm


def aligned(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Zeros that begin with a cache line."""
    memory = bytearray(shape[0] * shape[1] * np.dtype(dtype).itemsize + LINE)
    skip = -np.frombuffer(memory, np.uint8).ctypes.data % LINE
    return np.ndarray(shape, dtype, memory, skip)


def image_sizes(shape: Shape) -> Sizes:
    """Blocks long enough that adding up d×a numbers costs little compared with making them; the sample gives s."""
    return Sizes(max(block_rows(shape), shape.d // 3 if shape.sparse else MANY_ROWS), ORIGIN_ROWS)
