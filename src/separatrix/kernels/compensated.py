"""Residuals and gradients of least squares in twice the working precision.

    rᵢ = yᵢ − b − wᵀxᵢ,    g₀ = Σ sᵢrᵢ,    g_j = Σ sᵢrᵢxᵢⱼ,    q = Σ sᵢrᵢ²

Every number is held as high + low, two doubles that add up to about 32 digits: sums by Knuth's exact addition, products by
Dekker's exact product. References: Dekker (1971), Numerische Mathematik 18; Ogita, Rump and Oishi (2005), SIAM Journal on
Scientific Computing 26, algorithms 3.1 to 3.3. Exact only without contraction into fused operations, so never `fastmath`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_SPLIT = 134217729.0  # 2²⁷ + 1


@compiled(inline="always")
def double_product(a: float, b: float) -> tuple[float, float]:
    """a·b as high + low, exactly."""
    high = a * b
    c = _SPLIT * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLIT * b
    b_high = c - (c - b)
    b_low = b - b_high
    return high, a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)


@compiled(inline="always")
def double_sum(high: float, low: float, other_high: float, other_low: float) -> tuple[float, float]:
    """The sum of two numbers of twice the precision."""
    total = high + other_high
    part = total - high
    rest = ((high - (total - part)) + (other_high - part)) + (low + other_low)
    result = total + rest
    return result, rest - (result - total)


@compiled()
def add_gradient(X: Any, y: Any, weights: Any, coef: Any, intercept: Any, gradient: Any, squares: Any) -> None:
    """Add the rows to `gradient` (m, d + 1, 2), whose first column is g₀, and to `squares` (m, 2), the sums q.

    An empty `weights` means that every row counts once.
    """
    n, d = X.shape
    for k in range(coef.shape[0]):
        w, out = coef[k], gradient[k]
        for i in range(n):
            high, low = double_sum(y[i, k], 0.0, -intercept[k], 0.0)
            for j in range(d):
                p, q = double_product(-w[j], X[i, j])
                high, low = double_sum(high, low, p, q)
            s = weights[i] if len(weights) else 1.0
            p, q = double_product(s, high)
            r, rest = double_sum(p, q + s * low, 0.0, 0.0)
            out[0, 0], out[0, 1] = double_sum(out[0, 0], out[0, 1], r, rest)
            for j in range(d):
                p, q = double_product(r, X[i, j])
                out[j + 1, 0], out[j + 1, 1] = double_sum(out[j + 1, 0], out[j + 1, 1], p, q + rest * X[i, j])
            p, q = double_product(r, high)
            squares[k, 0], squares[k, 1] = double_sum(squares[k, 0], squares[k, 1], p, q + r * low + rest * high)


@compiled()
def add_pairs(total: Any, other: Any) -> None:
    """total += other, arrays (…, 2) of high and low parts seen as (p, 2)."""
    for p in range(len(total)):
        total[p, 0], total[p, 1] = double_sum(total[p, 0], total[p, 1], other[p, 0], other[p, 1])


def shifted(gradient: Any, centre: Any) -> Any:
    """g_j − c_j g₀ for columns less their centre, rounded to doubles: (m, d + 1) with g₀ first."""
    result = gradient[:, :, 0].copy()
    _shift(gradient, np.asarray(centre, dtype=np.float64), result)
    return result


@compiled()
def _shift(gradient: Any, centre: Any, out: Any) -> None:
    for k in range(gradient.shape[0]):
        for j in range(len(centre)):
            p, q = double_product(-centre[j], gradient[k, 0, 0])
            high, low = double_sum(gradient[k, j + 1, 0], gradient[k, j + 1, 1], p, q - centre[j] * gradient[k, 0, 1])
            out[k, j + 1] = high + low
