"""Newton's method with conjugate gradients for a logistic regression on sparse rows, one call of compiled code per step.

    η = o + b + wᵀx,    a = −ỹσ(−ỹη),   h = σ(η)σ(−η);    sums over the rows of s a x, s h x and s h x²

The intercept is free: a direction (v, c) is best at c = −Σsh(vᵀx)/Σsh, so the Hessian of F with b eliminated has the products

    H̃v = Σ s h z x − z̄k + qv,      z = vᵀx,   z̄ = Σ s h z / Σ s h,   k = Σ s h x         (z̄ = 0 without an intercept)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponential, log_one_plus

LINE = 128  # rows whose exponentials are taken side by side
_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST, inline="always")
def dot(data: Any, indices: Any, first: Any, last: Any, v: Any) -> Any:
    """Σ x_j v_j over a row's entries, in four sums: no product waits for the sum before it."""
    a, b, c, d, whole = 0.0, 0.0, 0.0, 0.0, last - (last - first) % 4
    for p in range(first, whole, 4):  # unsigned: no test for an index that counts from the end
        a += data[p] * v[np.uint64(indices[p])]
        b += data[p + 1] * v[np.uint64(indices[p + 1])]
        c += data[p + 2] * v[np.uint64(indices[p + 2])]
        d += data[p + 3] * v[np.uint64(indices[p + 3])]
    for p in range(whole, last):
        a += data[p] * v[np.uint64(indices[p])]
    return (a + b) + (c + d)


@compiled(fastmath=_FAST)
def sparse_derivatives(
    data: Any,
    indices: Any,
    indptr: Any,
    signs: Any,
    weights: Any,
    offset: Any,
    w: Any,
    b: Any,
    bends: Any,
    sums: Any,
) -> tuple[Any, Any, Any, Any, Any]:
    """(Σ s ℓ, Σ s a², max |η|, Σ s a, Σ s h); `bends` takes s h, `sums` (d, 3) gain those of s a x, s h x and s h x².

    Empty arrays of weights and offsets stand for ones and zeros.
    """
    n, loss, squares, steepest, slopes, total = len(signs), 0.0, 0.0, 0.0, 0.0, 0.0
    eta, small, slope, bend = np.empty(LINE), np.empty(LINE), np.empty(LINE), np.empty(LINE)
    for first in range(0, n, LINE):
        m = min(LINE, n - first)
        for t in range(m):
            i = first + t
            eta[t] = b + dot(data, indices, indptr[i], indptr[i + 1], w)
            if len(offset) > 0:
                eta[t] += offset[i]
        for t in range(m):
            small[t] = falling_exponential(-abs(eta[t]))
        for t in range(m):
            weight = 1.0 if len(weights) == 0 else weights[first + t]
            sign, low = signs[first + t], small[t]
            high = 1.0 / (1.0 + low)
            wrong = eta[t] * sign < 0.0
            loss += weight * (log_one_plus(low) + (abs(eta[t]) if wrong else 0.0))
            size = high if wrong else low * high  # 1 − σ is low·high, not a difference that would cancel
            squares += weight * size * size
            slope[t], bend[t] = -sign * weight * size, weight * low * high * high
            slopes += slope[t]
            total += bend[t]
            steepest = max(steepest, abs(eta[t]))
        for t in range(m):
            i, up, curved = first + t, slope[t], bend[t]
            bends[i] = curved
            for p in range(indptr[i], indptr[i + 1]):
                j, x = np.uint64(indices[p]), data[p]
                sums[j, 0] += up * x
                sums[j, 1] += curved * x
                sums[j, 2] += curved * x * x
    return loss, squares, steepest, slopes, total


@compiled()
def mark(indices: Any, seen: Any) -> None:
    """`seen` is true of the columns that have an entry."""
    for p in range(len(indices)):
        seen[np.uint64(indices[p])] = True


@compiled(fastmath=_FAST)
def weighted_size(data: Any, indices: Any, indptr: Any, weights: Any, quadratic: Any) -> Any:
    """Σ_ij s_i x_ij²/q_j."""
    total = 0.0
    for i in range(len(indptr) - 1):
        row = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(data[p])
            row += x * x / quadratic[np.uint64(indices[p])]
        total += row if len(weights) == 0 else weights[i] * row
    return total


@compiled(fastmath=_FAST)
def conjugate_gradients(
    data: Any,
    indices: Any,
    indptr: Any,
    bends: Any,
    quadratic: Any,
    gradient: Any,
    border: Any,
    diagonal: Any,
    free: Any,
    left: Any,
    target: Any,
    most: int,
    step: Any,
) -> Any:
    """`step` takes v with H̃v ≈ −gradient; how many products it took.

    Ends when gᵀD⁻¹g of what is left of the gradient is below `left` times that at the beginning, or ½Σg²/q below `target`.
    """
    d, n = len(gradient), len(bends)
    residual, direction, product = np.empty(d), np.empty(d), np.empty(d)
    total = 0.0
    for i in range(n):
        total += bends[i]
    energy = 0.0
    for j in range(d):
        step[j] = 0.0
        residual[j] = -gradient[j]
        direction[j] = residual[j] / diagonal[j]
        energy += residual[j] * direction[j]
    first = energy
    for taken in range(1, most + 1):
        for j in range(d):
            product[j] = quadratic[j] * direction[j]
        moved = 0.0
        for i in range(n):
            z = bends[i] * dot(data, indices, indptr[i], indptr[i + 1], direction)
            moved += z
            for p in range(indptr[i], indptr[i + 1]):
                product[np.uint64(indices[p])] += z * data[p]
        mean = moved / total if free and total > 0.0 else 0.0
        curvature = 0.0
        for j in range(d):
            product[j] -= mean * border[j]
            curvature += direction[j] * product[j]
        if not (curvature > 0.0 and curvature < np.inf):
            return taken
        length, fresh, cost = energy / curvature, 0.0, 0.0
        for j in range(d):
            step[j] += length * direction[j]
            r = residual[j] - length * product[j]
            residual[j] = r
            fresh += r * r / diagonal[j]
            cost += r * r / quadratic[j]
        if 0.5 * cost <= target or (fresh <= left * first and first > target):
            return taken
        ratio = fresh / energy
        for j in range(d):
            direction[j] = residual[j] / diagonal[j] + ratio * direction[j]
        energy = fresh
    return most
