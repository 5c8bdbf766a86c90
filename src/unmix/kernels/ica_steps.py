"""Independent component analysis on k×k matrices: for few components NumPy's calls cost more than the sums.

The symbols are those of `linear/_unmixing.py` and `linear/_reliable.py`.
"""

from __future__ import annotations

from unmix.kernels import inlined, kernel


@inlined()
def _told(n, gram, sums, measures, s):
    for i in range(len(gram)):
        for a in range(3):
            measures[a, i] = sums[i, a] / n
        measures[3, i] = gram[i, i] / n
        s[i] = -1.0 if measures[0, i] > 0.0 else 1.0


@kernel()
def told(n, gram, sums, measures, s):
    """Means per row of G − E[G(ν)], g′, g² and g y of each component, and its sign."""
    _told(n, gram, sums, measures, s)


@kernel()
def slopes(n, gram, sums, least, measures, s, A, h):
    """The same, A and h, none below `least`; of the rows of D = A/h half the largest squared length: ~ 1 − |cos|."""
    _told(n, gram, sums, measures, s)
    k, most = len(gram), 0.0
    slope, own = measures[1], measures[3]
    for i in range(k):
        square = 0.0
        for j in range(k):
            A[i, j] = 0.5 * (s[i] * gram[i, j] - s[j] * gram[j, i]) / n
            h[i, j] = max(0.5 * (s[i] * (slope[i] - own[i]) + s[j] * (slope[j] - own[j])), least)
            square += (A[i, j] / h[i, j]) ** 2
        most = max(most, square)
    return 0.5 * most


@kernel()
def fixed_point(n, gram, slope, C):
    """diag ρ − E, no row with a negative diagonal."""
    for i in range(len(gram)):
        sign = -1.0 if slope[i] < gram[i, i] / n else 1.0
        for j in range(len(gram)):
            C[i, j] = sign * ((slope[i] if i == j else 0.0) - gram[i, j] / n)


@inlined()
def inner(a, b):
    """⟨a, b⟩ of two matrices."""
    out = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out += a[i, j] * b[i, j]
    return out


@inlined()
def add(a, c, b):
    """a + c b, in the place of a."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] += c * b[i, j]


@kernel()
def quasi_newton(A, h, steps, turns, longest, D):
    """D = −H⁻¹A by the two loops of L-BFGS, shortened to rows of Σ|D| ≤ `longest`; False: it is −A/h, for that went up.

    `steps` were made before, the last at the end, and changed A by `turns`.
    """
    m, k = len(steps), len(A)
    along = [0.0] * (m + 1)
    D[:] = A
    for i in range(m - 1, -1, -1):
        along[i] = inner(steps[i], D) / inner(steps[i], turns[i])
        add(D, -along[i], turns[i])
    D /= h
    for i in range(m):
        add(D, along[i] - inner(turns[i], D) / inner(steps[i], turns[i]), steps[i])
    down = inner(D, A) >= 0.0
    if not down:
        D[:] = A / h
    most = longest
    for i in range(k):
        size = 0.0
        for j in range(k):
            size += abs(D[i, j])
        most = max(most, size)
    D *= -longest / most
    return down


@kernel()
def interference(measures, one_by_one, most, out):
    """Σ_j V_ij of each component, no V_ij above `most`, nor NaN."""
    k = measures.shape[1]
    for i in range(k):
        out[i] = 0.0
        gamma_i = max(measures[2, i] - measures[3, i] ** 2, 0.0)
        tau_i = abs(measures[3, i] - measures[1, i])
        for j in range(k):
            gamma_j = max(measures[2, j] - measures[3, j] ** 2, 0.0)
            tau_j = abs(measures[3, j] - measures[1, j])
            if not one_by_one:
                v = (gamma_i + gamma_j + tau_j**2) / (tau_i + tau_j) ** 2
            elif j > i:
                v = gamma_i / tau_i**2
            else:
                v = gamma_j / tau_j**2 + 1.0
            if j != i:
                out[i] += v if v < most else most
