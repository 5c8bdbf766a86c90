"""The product of the rows' second moments with a few directions, a block at a time: what passes for axes add up.

stats    n, Σ (x − s), Σ |x − s|², Σ (x − s)(x − s)ᵀQ        [s: a fixed origin, near the mean of dense rows]
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from unmix.engine.block import Block
from unmix.engine.layout import Shape, block_rows
from unmix.engine.moments import is_sparse
from unmix.engine.stage import Sizes
from unmix.maths.arrays import Array

ORIGIN_ROWS = 1024  # that tell where to measure rows from
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
    centre = centre.astype(np.float64)
    if is_sparse(b.x):
        product, square, norm = sparse_product(b, Q, centre @ Q.astype(np.float64))
        s = np.asarray(b.x.sum(axis=0, dtype=np.float64) if b.w is None else b.w @ b.x).ravel().astype(np.float64)
        stats = Image(b.total, s, norm, product)
        if not centre.any():
            return stats, square
        s = s - b.total * centre
        norm = norm - 2.0 * float(s @ centre) - b.total * float(centre @ centre)
        return Image(b.total, s, norm, product - np.outer(centre, s @ Q.astype(np.float64))), square
    x = b.x - centre.astype(b.x.dtype) if centre.any() else b.x
    y = x @ Q
    s = np.ones(len(x), x.dtype) @ x if b.w is None else b.w.astype(x.dtype) @ x
    norm = b.sum(np.einsum("ij,ij->i", x, x))
    square = np.einsum("ia,ia->a", b.weighted(y), y, dtype=np.float64)
    return Image(b.total, s.astype(np.float64), norm, x.T @ b.weighted(y)), square


def sparse_product(b: Block, Q: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Σ w x yᵀ, Σ w y² of each direction and Σ w |x|² of CSR rows, y = xQ − offset: some directions at a time."""
    from unmix.kernels.csr_image import LEAST, MOST, add_image

    x, (d, a) = b.x, Q.shape
    w = np.ones(x.shape[0], x.dtype) if b.w is None else b.w.astype(x.dtype)
    products, squares, norm = [], [], 0.0
    for piece in np.array_split(np.arange(a), max(1, -(-a // MOST))):
        wide = max(len(piece), LEAST)
        if (len(piece), Q.flags.carray) == (a, True) and wide == a:
            part, c = Q, -offset.astype(x.dtype)
        else:
            part, c = np.zeros((d, wide), x.dtype), np.zeros(wide, x.dtype)
            part[:, : len(piece)], c[: len(piece)] = Q[:, piece], -offset[piece]
        out, square = np.zeros((d, wide), x.dtype), np.zeros(wide)
        norm = float(add_image(x.data, x.indices, x.indptr, w, part, c, out, square))
        products.append(out[:, : len(piece)])
        squares.append(square[: len(piece)])
    one = len(products) == 1
    return products[0] if one else np.hstack(products), np.concatenate(squares), norm


def image_sizes(shape: Shape) -> Sizes:
    """Blocks long enough that adding up d×a numbers costs little compared with making them; the sample gives s."""
    return Sizes(max(block_rows(shape), shape.d // 4 if shape.sparse else MANY_ROWS), ORIGIN_ROWS)
