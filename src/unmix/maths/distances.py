"""Distances of rows to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

FAR = 2.0**48  # of the largest ‖u‖²


def squared_distances(x: Any, observed: Any, centers: np.ndarray, own: np.ndarray | None = None) -> np.ndarray:
    """‖x_i − u_k‖² over the observed cells, the others being 0 in x; `own` is ‖x_i‖² where that is known."""
    square = centers**2
    out = x @ (-2 * centers.T)
    out += (squares(x) if own is None else own)[:, None]
    out += square.sum(axis=1) if observed is None else observed @ square.T
    return np.maximum(out, 0.0, out=out)


def beyond(own: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """‖x‖² of rows so far out that ‖x − u‖² has no digits left that tell centres apart, and 0 of all others.

    Less this, ‖x − u‖² is ‖u‖² − 2⟨x, u⟩, which orders the centres. `centers` are ‖u‖².
    """
    return np.where(own > FAR * centers.max(initial=0.0), own, 0.0)


def squares(x: Any) -> np.ndarray:
    """‖x_i‖²."""
    return np.asarray(x.power(2).sum(axis=1)).ravel() if sp.issparse(x) else np.einsum("ij,ij->i", x, x)


def about_one(x: np.ndarray) -> np.ndarray:
    """The rows in units of their largest cell, a power of two: nothing is rounded, and no length is too small."""
    return np.asarray(np.ldexp(x, -np.frexp(np.abs(x).max(axis=1, initial=0.0, keepdims=True))[1]))


def dense(x: Any) -> np.ndarray:
    """A few rows as an array."""
    return x.toarray() if sp.issparse(x) else x


def differences(x: np.ndarray, y: np.ndarray, seen: Any = None, seen_y: Any = None) -> np.ndarray:
    """Squared euclidean distances of rows, of differences, over the cells that both show."""
    from unmix.kernels import medoids

    tiles, d = medoids.tiled(y), x.shape[1]
    out = np.empty((len(x), tiles.shape[0] * tiles.shape[2]))
    if seen is None:
        medoids.squares(x.reshape(-1), tiles.reshape(-1), d, out.reshape(-1))
    else:
        known = medoids.tiled(seen_y).reshape(-1)
        medoids.squares_where_seen(x.reshape(-1), seen.reshape(-1), tiles.reshape(-1), known, d, out.reshape(-1))
    return out[:, : len(y)]
