"""Newton's method for a logistic regression with few rows: all steps, their proofs and the last correction in one call.

    θ ← θ − t H⁻¹g,     H = Σ s h xxᵀ + diag q = LLᵀ,     g = Σ s a x + qθ

The sums are those of logistic_lines.py. H is laid out with its side filled up to a multiple of four by a unit matrix, and is
factored in blocks of four by four whose sums stay in registers. What the gap is, and why, says solvers/at_hand/rows.py, whose
`proof` is computed of the point that comes out; here the same number decides when to stop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.gaps import gap_at
from separatrix.kernels.lines.logistic_lines import logistic_lines

HALVINGS = 40
# A point whose gap is below this share of the target needs no further step; tolerances below the second ask for last digits.
FAR_BELOW, LAST_DIGITS = 1e-3, 1e-7
_EPS = float(np.finfo(np.float64).eps)
_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST, error_model="numpy")
def factor(H: Any) -> Any:
    """L takes the place of the lower half of H (p, p), p a multiple of four; whether every pivot was positive."""
    for j in range(0, len(H), 4):
        for i in range(j, len(H), 4):
            a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            c0, c1, c2, c3, d0, d1, d2, d3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                a, b, c, d = H[i, k], H[i + 1, k], H[i + 2, k], H[i + 3, k]
                one, two, three, four = H[j, k], H[j + 1, k], H[j + 2, k], H[j + 3, k]
                a0, a1, a2, a3 = a0 + a * one, a1 + a * two, a2 + a * three, a3 + a * four
                b0, b1, b2, b3 = b0 + b * one, b1 + b * two, b2 + b * three, b3 + b * four
                c0, c1, c2, c3 = c0 + c * one, c1 + c * two, c2 + c * three, c3 + c * four
                d0, d1, d2, d3 = d0 + d * one, d1 + d * two, d2 + d * three, d3 + d * four
            for r, row in enumerate(((a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3))):
                for c, total in enumerate(row):
                    left = H[i + r, j + c] - total
                    if i == j and c > r:
                        continue
                    for k in range(j, j + c):
                        left -= H[i + r, k] * H[j + c, k]
                    if i == j and c == r:
                        if not left > 0.0:
                            return False
                        H[j + c, j + c] = np.sqrt(left)
                    else:
                        H[i + r, j + c] = left / H[j + c, j + c]
    return True


@compiled(fastmath=_FAST, error_model="numpy")
def solve(L: Any, x: Any) -> None:
    """(LLᵀ)⁻¹x in the place of x (p,), which may be shorter than L."""
    p = len(x)
    for j in range(p):
        total = 0.0
        for k in range(j):
            total += L[j, k] * x[k]
        x[j] = (x[j] - total) / L[j, j]
    for j in range(p - 1, -1, -1):
        x[j] /= L[j, j]
        for k in range(j):
            x[k] -= x[j] * L[j, k]


@compiled(fastmath=_FAST, error_model="numpy")
def _point(
    X: Any,
    ones: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    theta: Any,
    quadratic: Any,
    metric: Any,
    gradient: Any,
    border: Any,
    hessian: Any,
) -> Any:
    """F at θ and the sums there; the last three take g, Σ s h x and H, of which an empty one is not asked for."""
    gradient[:], border[:], hessian[:] = 0.0, 0.0, 0.0
    nothing = np.empty(0)
    sums = logistic_lines(X, ones, codes, weights, offset, theta, metric, gradient, hessian, nothing, border)
    pulled = 0.0
    for j in range(len(theta)):
        pulled += quadratic[j] * theta[j] * theta[j]
        gradient[j] += quadratic[j] * theta[j]
    for j in range(len(hessian)):
        hessian[j, j] += quadratic[j] if j < len(theta) else 1.0
    return sums[0] + 0.5 * pulled, sums


@compiled(fastmath=_FAST, error_model="numpy")
def newton_lines(
    X: Any,
    ones: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    total: Any,
    quadratic: Any,
    held: Any,
    size: Any,
    tol: Any,
    unit: Any,
    theta: Any,
    gradient: Any,
    border: Any,
    trail: Any,
) -> tuple[Any, Any, Any, Any, Any, Any]:
    """(F, the sums of logistic_lines.py, Σ_ij s x_ij²/q_j or more, steps, passes, whether no step led on) at the last θ.

    θ moves in its place, until the gap is at most `tol` times max(`unit`, F) or the rows of `trail` (steps + 1, 2) are used
    up, which take F and the gap of every point; `gradient` and `border` (p,) take g and Σ s h x. A `size` that is known is no
    NaN. A point at the target takes one more step, with the factor of the last, which costs little and removes most of what is
    left of the error; where last digits are asked for with one of its own, which squares the error.
    """
    p = len(theta)
    nothing, no_matrix = np.empty(0), np.empty((0, 0))
    side = (p + 3) // 4 * 4
    hessian, next_hessian, L = np.empty((side, side)), np.empty((side, side)), np.empty((side, side))
    moved, next_gradient, next_border, step = np.empty(p), np.empty(p), np.empty(p), np.zeros(p)
    metric = np.zeros(p if np.isnan(size) else 0)
    for j in range(min(held, len(metric))):
        metric[j] = 1.0 / quadratic[j]
    value, gap, promise, t, halvings = np.inf, np.inf, 0.0, 1.0, 0
    sums = (0.0, 0.0, 0.0, 0.0, 0.0)
    taken, passes, last, asked = -1, 0, False, tol <= LAST_DIGITS
    while True:
        for j in range(p):
            moved[j] = theta[j] - t * step[j]
        into = no_matrix if last else next_hessian
        next_value, next_sums = _point(
            X, ones, codes, weights, offset, moved, quadratic, metric, next_gradient, next_border, into
        )
        passes += 1
        if taken < 0:
            size, metric = total * next_sums[3] if np.isnan(size) else size, nothing
        elif not last and not next_value <= value + 1e-4 * t * promise + 4.0 * _EPS * abs(value):
            t, halvings = 0.5 * t, halvings + 1
            if halvings < HALVINGS:
                continue
            return value, sums, size, taken, passes, True
        next_gap = gap_at(next_value, next_sums, next_gradient, next_border, quadratic, held, total, size)
        if last:
            better = next_gap < gap
            if asked:  # the bound may be all rounding already, while the gradient still falls
                step[:], left = next_gradient, 0.0
                solve(L, step)
                for j in range(p):
                    left += next_gradient[j] * step[j]
                better = left < -0.5 * promise and next_gap <= tol * max(unit, abs(next_value))
            if better:
                theta[:], gradient[:], border[:] = moved, next_gradient, next_border
                value, sums = next_value, next_sums
            return value, sums, size, taken, passes, False
        if taken >= 0 and next_value >= value and not next_gap < 0.5 * gap:  # rounding is all that is left
            return value, sums, size, taken, passes, True
        theta[:], gradient[:], border[:] = moved, next_gradient, next_border
        hessian, next_hessian = next_hessian, hessian
        value, gap, sums, taken = next_value, next_gap, next_sums, taken + 1
        trail[taken, 0], trail[taken, 1] = value, gap
        target = tol * max(unit, abs(value))
        last = gap <= target
        done = last and not asked and (taken == 0 or gap <= FAR_BELOW * target)
        if done or not np.isfinite(value) or (not last and taken + 1 == len(trail)):
            return value, sums, size, taken, passes, False
        if asked or not last:
            L[:] = hessian
            if not factor(L):
                return value, sums, size, taken, passes, not last
        step[:], promise, t, halvings = gradient, 0.0, 1.0, 0
        solve(L, step)
        for j in range(p):
            promise -= gradient[j] * step[j]
