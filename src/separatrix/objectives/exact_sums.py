"""What kernels/compensated.py computes, for few rows and without numba: products split exactly, sums rounded once.

    a·b = p + q exactly (Dekker);   Σ of such parts by `math.fsum`, which rounds the exact sum;   low = fsum(terms − high)

References: Dekker (1971), Numerische Mathematik 18; Shewchuk (1997), Discrete and Computational Geometry 18.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from separatrix.data.block import Float

_SPLIT = 134217729.0  # 2²⁷ + 1


def _products(a: Float, b: Float) -> tuple[Float, Float]:
    """a·b as p + q, exactly, entry by entry."""
    high = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    return high, a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _pair(*parts: Float) -> tuple[float, float]:
    """The sum of all entries as high + low."""
    terms = [value for part in parts for value in part.tolist()]
    high = fsum(terms)
    return high, fsum([*terms, -high])


def _pairs_of_rows(*columns: Float) -> tuple[Float, Float]:
    """The sums of rows as high + low."""
    terms = np.column_stack(columns).tolist()
    high = [fsum(row) for row in terms]
    low = [fsum([*row, -total]) for row, total in zip(terms, high, strict=True)]
    return np.array(high), np.array(low)


def add_gradient(
    X: Float, y: Float, weights: Float, coef: Float, intercept: Float, gradient: Float, squares: Float
) -> None:
    """As the kernel of this name."""
    n = len(X)
    for k in range(len(coef)):
        p, q = _products(np.broadcast_to(-coef[k], X.shape), X)
        high, low = _pairs_of_rows(y[:, k], np.full(n, -intercept[k]), p, q)
        r, rest = high, low
        if len(weights):
            r, rest = _products(weights, high)
            rest = rest + weights * low
        found = [_pair(r, rest)]
        p, q = _products(np.broadcast_to(r[:, None], X.shape), X)
        extra = rest[:, None] * X
        found += [_pair(p[:, j], q[:, j], extra[:, j]) for j in range(X.shape[1])]
        add_pairs(gradient[k], np.array(found))
        p, q = _products(r, high)
        add_pairs(squares[k : k + 1], np.array([_pair(p, q, r * low, rest * high)]))


def add_pairs(total: Float, other: Float) -> None:
    """total += other, arrays (p, 2) of high and low parts."""
    if not total.any():
        total[:] = other  # each a sum that was rounded already
        return
    for mine, theirs in zip(total, other, strict=True):
        mine[:] = _pair(mine, theirs)


def shifted(gradient: Float, centre: Float) -> Float:
    """g_j − c_j g₀ for columns less their centre, rounded to doubles: (m, d + 1) with g₀ first."""
    result: Float = gradient[:, :, 0].copy()
    for k, sums in enumerate(gradient):
        p, q = _products(-np.asarray(centre, dtype=np.float64), np.full(len(centre), sums[0, 0]))
        high, _ = _pairs_of_rows(sums[1:, 0], sums[1:, 1], p, q, -centre * sums[0, 1])
        result[k, 1:] = high
    return result
