"""Many steps for a logistic regression on sparse rows, and the gaps between them, in one call.

Newton's method with conjugate gradients, whose parts are in newton.py; before it, where it is asked for, steps of
`SWEEPS` sweeps over the dual variables (dual_logistic.py), as long as each lowers the gap to a fraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.dual_logistic import sweep
from separatrix.kernels.gaps import gap_at
from separatrix.kernels.sparse.newton import conjugate_gradients, sparse_derivatives, weighted_size
from separatrix.kernels.sparse.rows import add_transposed

_HALVINGS, _MOST_PRODUCTS = 40, 200
# The share of gᵀD⁻¹g that a step may leave: little where the one before left little, since then the model is good.
_LEAST_LEFT, _MOST_LEFT = 1e-4, 0.1
# A gradient is brought to this share of what the proof asks for: the model is not the objective.
_BELOW = 0.1
# Sweeps per step, and the share of the gap that they may leave.
SWEEPS, _GAIN = 3, 0.3
# A sum of positive terms times this is no less than the exact one.
_NO_LESS = 1.0001
_EPS = float(np.finfo(np.float64).eps)
_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST, error_model="numpy")
def _point(
    data: Any,
    indices: Any,
    indptr: Any,
    signs: Any,
    weights: Any,
    offset: Any,
    ones: Any,
    quadratic: Any,
    theta: Any,
    gradient: Any,
    bends: Any,
    sums: Any,
) -> Any:
    """F at θ and (Σ s ℓ, Σ s a², max |η|, Σ s h); `gradient` takes g, `bends` s h, `sums` those of sparse_derivatives."""
    d = len(quadratic)
    sums[:] = 0.0
    b = theta[d] if ones else 0.0
    loss, squares, steepest, slope, bend = sparse_derivatives(
        data, indices, indptr, signs, weights, offset, theta, b, bends, sums
    )
    pulled = 0.0
    for j in range(d):
        pulled += quadratic[j] * theta[j] * theta[j]
        gradient[j] = sums[j, 0] + quadratic[j] * theta[j]
    if ones:
        gradient[d] = slope
    return loss + 0.5 * pulled, (loss, squares, steepest, bend)


@compiled(fastmath=_FAST, error_model="numpy")
def _reduced(gradient: Any, sums: Any, quadratic: Any, ones: Any, bend: Any, diagonal: Any, left: Any) -> Any:
    """g̃ᵀD⁻¹g̃; `diagonal` takes that of H̃, and `left` g̃: see solvers/at_hand/sparse_newton.py."""
    energy = 0.0
    for j in range(len(quadratic)):
        diagonal[j], left[j] = sums[j, 2] + quadratic[j], gradient[j]
        if ones:
            diagonal[j] = max(diagonal[j] - sums[j, 1] * sums[j, 1] / bend, quadratic[j])
            left[j] -= gradient[len(quadratic)] / bend * sums[j, 1]
        energy += left[j] * left[j] / diagonal[j]
    return energy


@compiled(error_model="numpy")
def _shuffle(order: Any, seed: Any) -> Any:
    """Put the numbers in an order that a seed decides; the next seed."""
    for i in range(len(order) - 1, 0, -1):
        seed = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = np.int64((seed >> np.uint64(33)) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return seed


@compiled(fastmath=_FAST, error_model="numpy")
def _swept(
    data: Any,
    indices: Any,
    indptr: Any,
    signs: Any,
    s: Any,
    offset: Any,
    inverse: Any,
    order: Any,
    seed: Any,
    alpha: Any,
    w: Any,
) -> Any:
    """`w` (d + 1,) takes the coefficients of the dual variables after a few sweeps, which change them; the next seed."""
    w[:] = 0.0
    add_transposed(data, indices, indptr, signs * alpha, w)
    for j in range(len(w)):
        w[j] *= inverse[j]
    shift = offset if len(offset) > 0 else np.zeros(len(signs))
    for _ in range(SWEEPS):
        seed = _shuffle(order, seed)
        sweep(data.reshape(1, -1), indices, indptr, signs, s, shift, order, inverse, alpha, w)
    return seed


@compiled(fastmath=_FAST, error_model="numpy")
def sparse_steps(
    data: Any,
    indices: Any,
    indptr: Any,
    signs: Any,
    weights: Any,
    offset: Any,
    ones: Any,
    total: Any,
    quadratic: Any,
    tol: Any,
    unit: Any,
    energy: Any,
    alpha: Any,
    theta: Any,
    gradient: Any,
    border: Any,
    trail: Any,
) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """(F, (Σ s ℓ, Σ s a², max |η|, Σ s h), Σ_ij s x_ij²/q_j or more, g̃ᵀD⁻¹g̃ where the last step began, steps, passes, whether
    none led on).

    θ moves in its place, until the gap is at most `tol` times max(`unit`, F) or the rows of `trail` (steps + 1, 2) are used
    up, which take F and the gap of every point; `gradient` takes g and `border` (d,) Σ s h x. Without an intercept sweeps
    begin at `alpha` (n,) where that is not empty.
    """
    n, d = len(signs), len(quadratic)
    bends, next_bends, sums, next_sums = np.empty(n), np.empty(n), np.empty((d, 3)), np.empty((d, 3))
    next_gradient, moved, step = np.empty(len(theta)), np.empty(len(theta)), np.zeros(len(theta))
    diagonal, reduced = np.empty(d), np.empty(d)
    sweeping, seed, order = len(alpha) > 0, np.uint64(1), np.arange(len(alpha))
    s, inverse = np.ones(len(alpha)), np.zeros(d + 1 if sweeping else 0)
    w, fresh = np.zeros(len(inverse)), alpha.copy()
    if sweeping:
        if len(weights) > 0:
            s[:] = weights
        for j in range(d):
            inverse[j] = 1.0 / quadratic[j]
    value, gap, promise, t, halvings = np.inf, np.inf, 0.0, 1.0, 0
    facts = (0.0, 0.0, 0.0, 0.0)
    taken, passes, by_sweeps, size = -1, 0, False, 0.0
    while True:
        for j in range(len(theta)):
            moved[j] = w[j] if by_sweeps else theta[j] + t * step[j]
        next_value, next_facts = _point(
            data, indices, indptr, signs, weights, offset, ones, quadratic, moved, next_gradient, next_bends, next_sums
        )
        passes += 1
        if taken < 0:
            if len(offset) > 0 or np.any(theta):
                size = weighted_size(data, indices, indptr, weights, quadratic)
            else:
                for j in range(d):
                    size += _NO_LESS * 4.0 * next_sums[j, 2] / quadratic[j]  # h is ¼ in every row
        too_high = not next_value <= value + 1e-4 * t * promise + 4.0 * _EPS * abs(value)
        if taken >= 0 and not by_sweeps and too_high:
            t, halvings = 0.5 * t, halvings + 1
            if halvings < _HALVINGS:
                continue
            return value, facts, size, energy, taken, passes, True
        next_gap = gap_at(next_value, next_facts, next_gradient, next_sums[:, 1], quadratic, d, total, size)
        if by_sweeps and not next_gap <= _GAIN * min(gap, value):
            sweeping = False  # the steps below go on from the point before
        else:
            if taken >= 0 and not by_sweeps and next_value >= value and not next_gap < 0.5 * gap:
                return value, facts, size, energy, taken, passes, True  # rounding is all that is left
            theta[:], gradient[:], border[:] = moved, next_gradient, next_sums[:, 1]
            bends, next_bends, sums, next_sums = next_bends, bends, next_sums, sums
            value, gap, facts, taken = next_value, next_gap, next_facts, taken + 1
            alpha[:] = fresh
            trail[taken, 0], trail[taken, 1] = value, gap
            if gap <= tol * max(unit, abs(value)) or not np.isfinite(value) or taken + 1 == len(trail):
                return value, facts, size, energy, taken, passes, False
        by_sweeps = sweeping
        if by_sweeps:
            seed = _swept(data, indices, indptr, signs, s, offset, inverse, order, seed, fresh, w)
            passes += SWEEPS
            continue
        if not facts[3] > 0.0:
            return value, facts, size, energy, taken, passes, True
        before, energy = energy, _reduced(gradient, sums, quadratic, ones, facts[3], diagonal, reduced)
        # Where weights differ by 10¹⁶, the step before may have begun where g̃ was exactly 0 and moved the intercept alone.
        left = min(max(energy / before, _LEAST_LEFT), _MOST_LEFT) if before > 0.0 else _MOST_LEFT
        target = _BELOW * tol * max(unit, abs(value))
        passes += conjugate_gradients(
            data,
            indices,
            indptr,
            bends,
            quadratic,
            reduced,
            border,
            diagonal,
            ones,
            left,
            target,
            _MOST_PRODUCTS,
            step[:d],
        )
        promise, t, halvings = 0.0, 1.0, 0
        if ones:
            step[d] = -gradient[d]
            for j in range(d):
                step[d] -= border[j] * step[j]
            step[d] /= facts[3]
        for j in range(len(theta)):
            promise += gradient[j] * step[j]
