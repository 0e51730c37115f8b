"""Newton's method for machines of the squared hinge, by conjugate gradients on the rows as they are stored.

    F(θ) = ½ Σ ρ_j θ_j² + Σ cᵢ max(0, 1 − ỹᵢθᵀxᵢ)²,      S = {i: ỹᵢθᵀxᵢ < 1}
    g = ρθ − 2Σ_S cᵢ(ỹᵢ − θᵀxᵢ)xᵢ,   Hs = ρs + 2Σ_S cᵢ(xᵢᵀs)xᵢ = −g,   θ ← θ + ts

The last entry of θ is the weight of a column of ones: the intercept, of penalty ρ = 0 where it is free and 0 where there is
none (`ones` says which). H is scaled to a unit diagonal, so that the columns' units do not matter. t = 1 unless the slope along
s has turned by then.

The gap of αᵢ = 2cᵢ max(0, 1 − ỹᵢθᵀxᵢ) is ½ Σ g²/ρ; a free intercept is to have g = 0 beside it.

Reference: Keerthi and DeCoste (2005), JMLR 6, section 2; Hsia, Chiang and Lin (2018), ACML, for the preconditioner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# A step is short enough where the slope along it has risen to no more than this share of what it was, downhill.
RISEN, _CUTS = 0.1, 30
# Of the residual of the equations of a step: the loosest and the finest share that is left.
_LOOSE, _FINE = 0.1, 1e-9


@compiled(inline="always")
def _score(data: Any, indices: Any, first: Any, last: Any, v: Any, ones: Any) -> Any:
    """xᵢᵀv, with the column of ones."""
    total = ones * v[len(v) - 1]
    for at in range(first, last):
        total += v[indices[at]] * data[at]
    return total


@compiled()
def _slope(rho: Any, theta: Any, step: Any, signs: Any, costs: Any, scores: Any, turns: Any, t: Any) -> Any:
    """Of F along a step, at t."""
    total = 0.0
    for j in range(len(rho)):
        total += rho[j] * (theta[j] + t * step[j]) * step[j]
    for i in range(len(signs)):
        slack = signs[i] - scores[i] - t * turns[i]
        if slack * signs[i] > 0.0:
            total -= costs[i] * slack * turns[i]
    return total


@compiled()
def cut(rho: Any, theta: Any, step: Any, signs: Any, costs: Any, scores: Any, turns: Any, downhill: Any) -> Any:
    """How far to go: to the end, unless the slope has turned upwards there by more than `downhill`."""
    t, low, high = 1.0, 0.0, 1.0
    for _ in range(_CUTS):
        found = _slope(rho, theta, step, signs, costs, scores, turns, t)
        if abs(found) <= downhill or (t == 1.0 and found <= 0.0):
            break
        if found > 0.0:
            high = t
        else:
            low = t
        t = 0.5 * (low + high)
    return t


@compiled(fastmath={"reassoc", "contract"})
def squared_hinge_newton(
    data: Any,
    indices: Any,
    indptr: Any,
    ones: Any,
    rho: Any,
    signs: Any,
    costs: Any,
    tol: Any,
    most: Any,
    theta: Any,
    alpha: Any,
) -> tuple[Any, Any]:
    """(steps, products with H) of one machine from `theta` (p,), which takes the end of the way, as `alpha` (n,) does; `costs`
    are 2c. It ends with a gap of `tol` of F, after `most` products, or where F does not fall any more; what is proven of it is
    for another to say.
    """
    n, p = len(signs), len(rho)
    scores, turns, slack = np.zeros(n), np.zeros(n), np.zeros(n)
    g, unit, step, r, v, Hv = np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p), np.zeros(p)
    inside = np.empty(n, dtype=np.int64)
    for i in range(n):
        scores[i] = _score(data, indices, indptr[i], indptr[i + 1], theta, ones)
    steps, products, last = 0, 0, np.inf
    while True:
        loss, within = 0.0, 0
        for j in range(p):
            g[j], unit[j] = rho[j] * theta[j], rho[j]
        for i in range(n):
            short = signs[i] - scores[i]
            slack[i] = max(0.0, short * signs[i])
            if slack[i] > 0.0:
                inside[within] = i
                within += 1
                loss += costs[i] * short * short
                pull = costs[i] * short
                for at in range(indptr[i], indptr[i + 1]):
                    j, x = indices[at], data[at]
                    g[j] -= pull * x
                    unit[j] += costs[i] * x * x
                g[p - 1] -= pull * ones
                unit[p - 1] += costs[i] * ones
        value, gap = 0.5 * loss, 0.0
        for j in range(p):
            value += 0.5 * rho[j] * theta[j] * theta[j]
            gap += 0.5 * g[j] * g[j] / rho[j] if rho[j] > 0.0 else abs(g[j]) * max(1.0, abs(theta[j]))
        if not gap > tol * value or products >= most or not value < last:
            break
        last = value
        # Conjugate gradients for Hs = −g, from zero, by the diagonal of H.
        first, share = 0.0, max(_FINE, min(_LOOSE, np.sqrt(gap / value)))
        for j in range(p):
            unit[j] = 1.0 / unit[j] if unit[j] > 0.0 else 0.0
            step[j], r[j] = 0.0, -g[j]
            v[j] = unit[j] * r[j]
            first += r[j] * v[j]
        left = first
        while left > share * share * first and products < most:
            for j in range(p):
                Hv[j] = rho[j] * v[j]
            for at in range(within):
                i = inside[at]
                first_at, last_at = indptr[i], indptr[i + 1]
                pull = costs[i] * _score(data, indices, first_at, last_at, v, ones)
                for entry in range(first_at, last_at):
                    Hv[indices[entry]] += pull * data[entry]
                Hv[p - 1] += pull * ones
            products, bent = products + 1, 0.0
            for j in range(p):
                bent += v[j] * Hv[j]
            if not bent > 0.0:
                break
            far, before, left = left / bent, left, 0.0
            for j in range(p):
                step[j] += far * v[j]
                r[j] -= far * Hv[j]
                left += r[j] * unit[j] * r[j]
            for j in range(p):
                v[j] = unit[j] * r[j] + left / before * v[j]
        promise = 0.0
        for j in range(p):
            promise -= g[j] * step[j]
        for i in range(n):
            turns[i] = _score(data, indices, indptr[i], indptr[i + 1], step, ones)
        t = cut(rho, theta, step, signs, costs, scores, turns, RISEN * promise)
        for j in range(p):
            theta[j] += t * step[j]
        for i in range(n):
            scores[i] += t * turns[i]
        steps += 1
    for i in range(n):
        alpha[i] = costs[i] * slack[i]
    return steps, products
