"""exp, log, ψ and log Γ of positive numbers, without branches, so that loops over them run in vector registers.

ψ(x) and log Γ(x) are moved to y = x + 6 ≥ 6 by the recurrences

    ψ(x) = ψ(y) − Σ_{i<6} 1/(x + i)            log Γ(x) = log Γ(y) − log Π_{i<6} (x + i)

and taken there from their asymptotic series. With a = x(x + 5) the six factors pair up to a (a + 4) (a + 6), and their
reciprocals add up to (2x + 5) (1/a + 1/(a + 4) + 1/(a + 6)). e^ψ needs no logarithm: e^ψ(x) = y · exp(ψ(x) − log y).
Absolute errors are below 1e-11 (ψ, log e^ψ; relative to |ψ| where that is above 1), for 1e-8 < x < 1e40.
They are compiled strictly, whatever their callers allow: re-ordered sums would cancel the rounding in `exponential`.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from unmix.kernels import inlined, kernel

ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to a whole number, kept in the low bits
HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of √½
EXPONENT_FLOOR = -690.0  # e^−690 is still a normal number


@intrinsic
def _bits(_context, x):
    return types.int64(types.float64), lambda c, builder, s, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _number(_context, x):
    return types.float64(types.int64), lambda c, builder, s, args: builder.bitcast(args[0], ir.DoubleType())


@inlined()
def exponential(s):
    """e^s for s ≤ 700; e^−690 for what is below."""
    s = s if s > EXPONENT_FLOOR else EXPONENT_FLOOR
    shifted = s * 1.4426950408889634 + ROUND
    k = shifted - ROUND
    r = (s - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    p = 1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600))
    p = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * p)))
    p = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * p)))))
    return p * _number((_bits(shifted) + 1023) << 52)


@inlined()
def logarithm(x):
    """Log x for normal x > 0."""
    b = _bits(x)
    e = (b - HALF_ROOT) >> 52
    m = _number(b - (e << 52))  # in [√½, √2)
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = 1 / 15 + q * (1 / 17 + q * (1 / 19 + q * (1 / 21)))
    p = 1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q * p)))))
    return np.float64(e) * 0.6931471805599453 + 2.0 * (s + s * q * p)


@inlined()
def _digamma_less_log(x):
    """ψ(x) − log(x + 6)."""
    a = x * (x + 5.0)
    b, c = a + 4.0, a + 6.0
    i = 1.0 / (x + 6.0)
    j = i * i
    series = j * j * (1 / 120 - j * (1 / 252 - j * (1 / 240 - j * (1 / 132 - j * (691 / 32760 - j * (1 / 12))))))
    return -0.5 * i - j * (1 / 12) + series - (2.0 * x + 5.0) * (b * c + a * (b + c)) / (a * b * c)


@inlined()
def exp_digamma(x):
    """e^ψ(x)."""
    return (x + 6.0) * exponential(_digamma_less_log(x))


@inlined()
def digamma(x):
    """ψ(x)."""
    return logarithm(x + 6.0) + _digamma_less_log(x)


@inlined()
def log_gamma(x):
    """Log Γ(x)."""
    a, y = x * (x + 5.0), x + 6.0
    i = 1.0 / y
    j = i * i
    series = i * (1 / 12 - j * (1 / 360 - j * (1 / 1260 - j * (1 / 1680 - j * (1 / 1188 - j * (691 / 360360))))))
    return (y - 0.5) * logarithm(y) - y + 0.9189385332046728 + series - logarithm(a * (a + 4.0) * (a + 6.0))


@kernel()
def digammas(x, out):
    """ψ of each entry of a vector."""
    for i in range(x.size):
        out[i] = digamma(x[i])


@kernel()
def exp_digammas(x, out):
    """e^ψ of each entry of a vector."""
    for i in range(x.size):
        out[i] = exp_digamma(x[i])


@kernel()
def log_gammas(x, out):
    """Log Γ of each entry of a vector."""
    for i in range(x.size):
        out[i] = log_gamma(x[i])
