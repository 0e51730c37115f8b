"""Newton's method for one machine of the squared hinge on few columns, by a factor of its Hessian.

    F(θ) = ½ Σ ρ_j θ_j² + Σ cᵢ max(0, 1 − ỹᵢθᵀxᵢ)²,      S = {i: ỹᵢθᵀxᵢ < 1}
    g = ρθ − 2Σ_S cᵢ(ỹᵢ − θᵀxᵢ)xᵢ,   H = diag ρ + 2Σ_S cᵢxᵢxᵢᵀ,   θ ← θ − tH⁻¹g

Steps, ends and gap are those of squared_hinge.py. Near the optimum few rows change sides from one step to the next, and these
alone change H; the optimum of a sample is near enough for that from the first step on.

Reference: Keerthi and DeCoste (2005), JMLR 6, section 2.

**Complexity** O(np + mp² + p³) per step, m rows having changed sides; memory O(np).
**Passes over the data** two per step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.by_columns import SUMS, add_gram, add_sums, combined, factor, substitute
from separatrix.kernels.support_vectors.squared_hinge import RISEN, cut

# What is added to a unit diagonal, so that it has a factor.
_SHIFT = 1e-14
# Rows of a sample, and per column; so many times as many are worth one; the gap to which it is solved, and its steps.
_SAMPLE, _TALL, _WORTH_SAMPLING, _ROUGHLY, _ROUGH_STEPS = 300, 10, 6, 1e-4, 20
# The share of the rows up to which it is quicker to gather those that changed sides than to multiply all.
_FEW = 0.3


@compiled(fastmath=SUMS, error_model="numpy")
def _slacks(
    signs: Any, costs: Any, scores: Any, held: Any, change: Any, alpha: Any, pulls: Any
) -> tuple[Any, Any, Any]:
    """ΣC·slack², how many rows are inside and how many changed sides; the rows' weights in H, by how much they changed, α and
    the pulls ỹα.
    """
    loss, inside, changed = 0.0, 0, 0
    for i in range(len(signs)):
        slack = 1.0 - signs[i] * scores[i]
        slack = slack if slack > 0.0 else 0.0
        now = costs[i] if slack > 0.0 else 0.0
        change[i] = now - held[i]
        held[i] = now
        inside += now != 0.0
        changed += change[i] != 0.0
        alpha[i] = costs[i] * slack
        pulls[i] = signs[i] * alpha[i]
        loss += alpha[i] * slack
    return 0.5 * loss, inside, changed


@compiled(error_model="numpy")
def _add_some(T: Any, weights: Any, count: Any, H: Any) -> None:
    """The lower half of T diag(weights) Tᵀ, added to H, of the `count` rows that have a weight."""
    p, n = T.shape
    rows, own, at, m = np.empty((p, count)), np.empty(count), np.empty(count, dtype=np.int64), 0
    for i in range(n):
        if weights[i] != 0.0:
            at[m], own[m] = i, weights[i]
            m += 1
    for j in range(p):
        column, row = T[j], rows[j]
        for k in range(count):
            row[k] = column[at[k]]
    add_gram(rows, own, H)


@compiled(error_model="numpy")
def _hessian(T: Any, rho: Any, held: Any, inside: Any, change: Any, changed: Any, H: Any) -> None:
    """The lower half of H brought up to date: changed, as long as that leaves most of it, or afresh."""
    n = T.shape[1]
    if changed < min(inside, _FEW * n):
        if changed > 0:
            _add_some(T, change, changed, H)
        return
    H[:] = 0.0
    for j in range(len(rho)):
        H[j, j] = rho[j]
    if inside > _FEW * n:
        add_gram(T, held, H)
    elif inside > 0:
        _add_some(T, held, inside, H)


@compiled(error_model="numpy")
def _steps(T: Any, rho: Any, signs: Any, costs: Any, tol: Any, most: Any, theta: Any, alpha: Any) -> tuple[Any, Any]:
    p, n = T.shape
    scores, turns, held, change, pulls = np.empty(n), np.empty(n), np.zeros(n), np.empty(n), np.empty(n)
    g, unit, step = np.empty(p), np.empty(p), np.empty(p)
    H, factored, last = np.zeros((p, p)), np.empty((p, p)), np.inf
    for j in range(p):
        H[j, j] = rho[j]
    combined(T, theta, scores)
    for steps in range(most):
        value, inside, changed = _slacks(signs, costs, scores, held, change, alpha, pulls)
        g[:] = 0.0
        add_sums(T, 0, pulls, p, g)
        gap = 0.0
        for j in range(p):
            pull = rho[j] * theta[j]
            value += 0.5 * pull * theta[j]
            g[j] = pull - g[j]
            gap += 0.5 * g[j] * g[j] / rho[j] if rho[j] > 0.0 else abs(g[j]) * max(1.0, abs(theta[j]))
        if not gap > tol * value or not value < last:
            return steps, True
        last = value
        _hessian(T, rho, held, inside, change, changed, H)
        factored[:] = H
        for j in range(p):
            unit[j], step[j] = 1.0 / np.sqrt(H[j, j]) if H[j, j] > 0.0 else 0.0, -g[j]
        if not factor(factored, unit, _SHIFT):
            return steps, False
        substitute(factored, unit, step)
        promise = 0.0
        for j in range(p):
            promise -= g[j] * step[j]
        combined(T, step, turns)
        t = cut(rho, theta, step, signs, costs, scores, turns, RISEN * promise)
        for j in range(p):
            theta[j] += t * step[j]
        if t == 1.0:
            combined(T, theta, scores)  # afresh: what the steps before have rounded is gone
        else:
            for i in range(n):
                scores[i] += t * turns[i]
    return most, False


@compiled()
def squared_hinge_factor(
    T: Any, rho: Any, signs: Any, costs: Any, tol: Any, most: Any, theta: Any, alpha: Any
) -> tuple[Any, Any]:
    """(steps, whether it ended by itself) of one machine from zero, on the columns T (p, n), the last of them the intercept's;
    `costs` are 2c.

    θ (p,) and α (n,) take the end of the way: a gap of `tol` of F, or where F does not fall any more. What is proven of it is
    for another to say.
    """
    p, n = T.shape
    apart = n // max(_SAMPLE, _TALL * p)
    if apart >= _WORTH_SAMPLING:
        some = T[:, ::apart].copy()
        own = np.empty(some.shape[1])
        _, ended = _steps(some, rho, signs[::apart].copy(), apart * costs[::apart], _ROUGHLY, _ROUGH_STEPS, theta, own)
        if not (ended and np.isfinite(theta).all()):
            theta[:] = 0.0
    return _steps(T, rho, signs, costs, tol, most, theta, alpha)
