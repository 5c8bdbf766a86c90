"""The Gaussian (radial) kernel of rows from their inner products: K_ij = exp(−γ (‖x_i‖² + ‖y_j‖² − 2⟨x_i, y_j⟩))."""

from __future__ import annotations

from unmix.kernels import inlined, kernel
from unmix.kernels.special import exponential


@inlined()
def away(own, other, inner):
    """A squared distance, 0 where rounding made it negative; of numbers beyond float64 it is none, and e^−that 0."""
    s = own + other - 2.0 * inner
    return 0.0 if s <= 0.0 else s


@kernel()
def radial(inner, own, other, gamma):
    """K in the place of the inner products (n, m); `own` and `other` are the squared lengths of the rows."""
    for i in range(inner.shape[0]):
        row, here = inner[i], own[i]
        for j in range(inner.shape[1]):
            row[j] = exponential(-gamma * away(here, other[j], row[j]))
