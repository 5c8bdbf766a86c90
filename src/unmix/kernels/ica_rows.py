"""Contrasts of independent component analysis: g of every number, and the sums of G, g′ and g² of each component.

`y` holds a component in each row. With e = e^(−2α|y|)

    tanh αy = ± (1 − e)/(1 + e)          α G(y) = log cosh αy = α|y| + log(1 + e) − log 2

Σ log(1 + e) is the logarithm of a product, taken once for every `CHUNK` factors, none of which is above 2: a
multiplication for each number in place of a logarithm. Where rows have weights, g comes back times the weight, as the
sums do; `w` is empty where every row counts once.
"""

from __future__ import annotations

import numpy as np

from unmix.kernels import SUMS, inlined, kernel
from unmix.kernels.special import exponential, logarithm

CHUNK = 512
LOG_2 = 0.6931471805599453
LOGCOSH, BELL = 0, 1  # what `few` calls them, as `linear/_contrasts.py` does; else it is the cube


@inlined(SUMS)
def _logcosh(y, alpha, out):
    """Σ α G and Σ tanh² of at most `CHUNK` numbers, whose tanh goes to `out`."""
    product, absolute, square = 1.0, 0.0, 0.0
    for j in range(y.size):
        v = alpha * np.float64(y[j])
        u = abs(v)
        e = exponential(-2.0 * u)
        f = 1.0 + e
        t = (1.0 - e) / f
        product *= f
        absolute += u
        square += t * t
        out[j] = t if v > 0.0 else -t
    return absolute + logarithm(product) - LOG_2 * y.size, square


@inlined(SUMS)
def _weighted_logcosh(y, alpha, w, out):
    """The same times weights, and Σ w."""
    total, square, weight = 0.0, 0.0, 0.0
    for j in range(y.size):
        v = alpha * np.float64(y[j])
        u = abs(v)
        e = exponential(-2.0 * u)
        f = 1.0 + e
        t = (1.0 - e) / f
        total += w[j] * (u + logarithm(f) - LOG_2)
        square += w[j] * t * t
        weight += w[j]
        out[j] = w[j] * (t if v > 0.0 else -t)
    return total, square, weight


@inlined(SUMS)
def _logcosh_rows(y, alpha, w, g, sums):
    k, m = y.shape
    for i in range(k):
        total, square, weight = 0.0, 0.0, 0.0
        for a in range(0, m, CHUNK):
            b = min(a + CHUNK, m)
            if w.size:
                more = _weighted_logcosh(y[i, a:b], alpha, w[a:b], g[i, a:b])
                total, square, weight = total + more[0], square + more[1], weight + more[2]
            else:
                one = _logcosh(y[i, a:b], alpha, g[i, a:b])
                total, square, weight = total + one[0], square + one[1], weight + (b - a)
        sums[i, 0], sums[i, 1], sums[i, 2] = total / alpha, alpha * (weight - square), square


@inlined(SUMS)
def _bell_rows(y, w, g, sums):
    k, m = y.shape
    for i in range(k):
        row, out = y[i], g[i]
        total, slope, square = 0.0, 0.0, 0.0
        for j in range(m):
            v = np.float64(row[j])
            e = exponential(-0.5 * v * v)
            weight = w[j] if w.size else 1.0
            total -= weight * e
            slope += weight * (1.0 - v * v) * e
            square += weight * v * v * e * e
            out[j] = weight * v * e
        sums[i, 0], sums[i, 1], sums[i, 2] = total, slope, square


@inlined(SUMS)
def _cube_rows(y, w, g, sums):
    k, m = y.shape
    for i in range(k):
        row, out = y[i], g[i]
        total, slope, square = 0.0, 0.0, 0.0
        for j in range(m):
            v = np.float64(row[j])
            weight = w[j] if w.size else 1.0
            q = v * v
            total += weight * 0.25 * q * q
            slope += weight * 3.0 * q
            square += weight * q * q * q
            out[j] = weight * v * q
        sums[i, 0], sums[i, 1], sums[i, 2] = total, slope, square


@kernel(SUMS)
def logcosh(y, alpha, w, g, sums):
    """G = log cosh(αy)/α,  g = tanh αy,  g′ = α (1 − g²)."""
    _logcosh_rows(y, alpha, w, g, sums)


@kernel(SUMS)
def bell(y, w, g, sums):
    """G = −e^(−y²/2),  g = y e^(−y²/2),  g′ = (1 − y²) e^(−y²/2)."""
    _bell_rows(y, w, g, sums)


@kernel(SUMS)
def cube(y, w, g, sums):
    """G = y⁴/4,  g = y³,  g′ = 3y²."""
    _cube_rows(y, w, g, sums)


@kernel(SUMS)
def few(which, alpha, gauss, x, mean, rotation, whitening, signs, gram, sums):
    """All that a pass wants of few rows, for which a call of NumPy's costs more than the sums; Σ s (G − E[G(ν)])."""
    k, d = whitening.shape
    n = len(x)
    B, y, g, loss = np.zeros((k, d)), np.zeros((k, n)), np.empty((k, n)), 0.0
    for a in range(k):
        for b in range(k):
            for j in range(d):
                B[a, j] += rotation[a, b] * whitening[b, j]
    for i in range(n):
        for j in range(d):
            v = x[i, j] - mean[j]
            for a in range(k):
                y[a, i] += B[a, j] * v
    if which == LOGCOSH:
        _logcosh_rows(y, alpha, g[0, :0], g, sums)
    elif which == BELL:
        _bell_rows(y, g[0, :0], g, sums)
    else:
        _cube_rows(y, g[0, :0], g, sums)
    for a in range(k):
        sums[a, 0] -= gauss * n
        loss += signs[a] * sums[a, 0]
        for b in range(k):
            gram[a, b] = 0.0
            for i in range(n):
                gram[a, b] += g[a, i] * y[b, i]
    return loss
