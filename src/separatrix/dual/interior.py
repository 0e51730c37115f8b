"""Linear machines by a primal–dual interior-point method: a few dozen steps, whatever the units of the columns.

    min ½ Σ ρ_j θ_j² + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)ᵖ        dual  0 ≤ αᵢ ≤ Uᵢ,  ρθ = Σ αᵢỹᵢxᵢ
    U = C, D = 0 for p = 1;  U = ∞, D = 1/2C for p = 2
    z − q = ỹ(Xθ) − 1 + Dα,    αz = μ,  (U − α)q = μ,    μ → 0

The intercept is the last column, of ones, with ρ = 0 where it is free. Eliminating α, z and q from Newton's equations leaves

    (diag ρ + XᵀΘ⁻¹X) dθ = Xᵀ(ỹα) − ρθ + XᵀΘ⁻¹ỹr,      Θ = D + z/α + q/(U − α)

whose matrix is scaled to a unit diagonal before it is factored: the units of the columns drop out. Every α on the way lies
strictly between its bounds, so every step has a point of the dual to prove something with.

Near the end it is plain which rows of the hinge are on the margin (F), inside (B) or outside. Their equations are linear,

    ρθ = Σ_B Cᵢỹᵢxᵢ + Σ_F λᵢxᵢ,      θᵀxᵢ = ỹᵢ for i ∈ F

and give θ to the last digits, whatever path led there.

Crammer and Singer's machine for K classes:

    min ½ Σ ρ_j Θ_jk² + Σ Cᵢ(ζᵢ − f_{yᵢ}(xᵢ)),   t_ik = ζᵢ − [k ≠ yᵢ] − f_k(xᵢ) ≥ 0        f = XΘ, (n, K)
    dual  λ_ik ≥ 0,  Σ_k λ_ik = Cᵢ,  ρΘ = Xᵀα,  α_ik = Cᵢ[k = yᵢ] − λ_ik;        λt = μ,    μ → 0

The ζ are free: they take Σ_k λ_ik = Cᵢ to be exact. With s = λ/t and Pᵢ = diag sᵢ − sᵢsᵢᵀ/Σsᵢ Newton's equations leave

    ρ dΘ + Xᵀ P(X dΘ) = Xᵀα − ρΘ − Xᵀh̃,       h = μ/t − λ − s(ζ − [k ≠ y] − f − t),  h̃ = h − s Σh/Σs

one system of pK equations. Where intercepts are free, adding one number to all of them changes nothing: their sum stays zero.

Reference: Mehrotra (1992), SIAM J. Optimization 2; Ferris and Munson (2002), SIAM J. Optimization 13.

**Complexity** O(n p²) per step, O(n p²K² + p³K³) for K classes. **Passes over the data** about six per step; memory O(n p),
and O(nK + p²K²).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotrs

from separatrix.data.block import Codes, Float

_TINY = float(np.finfo(np.float64).tiny)
_EPS = float(np.finfo(np.float64).eps)
# The share of the way to the nearest bound that a step goes.
_SHARE = 0.99
_REFINEMENTS, _SHIFTS = 2, 8
# Equations of the rows on the margin that are worth solving.
_EQUATIONS = 500
# A pivot that is this much smaller than another has lost its digits.
_DEPENDENT = 1e-9


def interior_points(
    A: Float, penalty: Float, signs: Float, price: Float, power: int, scaling: float | None
) -> Iterator[tuple[Float, float, Float]]:
    """(θ, intercept, α) step by step, until rounding leaves no step to take.

    A (n, p) are the rows without the column of the intercept, `penalty` is ρ > 0, and the rest is as in `LinearMachine`.
    """
    X, rho = with_intercept(A, penalty, scaling)
    ridge = np.zeros(len(price)) if power == 1 else 0.5 / price
    theta, z = np.zeros(X.shape[1]), np.full(len(price), 0.5)
    alpha, q = (0.5 * price, np.full(len(price), 1.5)) if power == 1 else (3.0 * price, np.zeros(len(price)))
    count = len(price) * (2 if power == 1 else 1)
    while True:
        # Without an upper bound q is zero, and so is its share of everything.
        room = price - alpha if power == 1 else np.ones_like(alpha)
        residual = z - q - (signs * (X @ theta) - 1.0 + ridge * alpha)
        force = X.T @ (signs * alpha) - rho * theta
        mu = float(alpha @ z + room @ q) / count
        curvature = ridge + z / alpha + q / room
        solve = _newton_solver(X.T @ (X / curvature[:, None]), rho)
        if solve is None:
            return
        direction = partial(_direction, X, signs, (alpha, z, room, q), curvature, residual, force, solve)
        _, d_alpha, d_z, d_q = direction(-alpha * z, -room * q)
        pairs = [(alpha, d_alpha), (z, d_z)] + ([(room, -d_alpha), (q, d_q)] if power == 1 else [])
        length = _longest(pairs)
        after = (alpha + length * d_alpha) @ (z + length * d_z) + (room - length * d_alpha) @ (q + length * d_q)
        goal = mu * min(1.0, max(0.0, float(after) / count / mu)) ** 3 if mu > 0 else 0.0
        down, up = goal - alpha * z - d_alpha * d_z, (goal - room * q + d_alpha * d_q if power == 1 else 0.0 * q)
        d_theta, d_alpha, d_z, d_q = direction(down, up)
        pairs = [(alpha, d_alpha), (z, d_z)] + ([(room, -d_alpha), (q, d_q)] if power == 1 else [])
        length = _longest(pairs, _SHARE)
        theta, alpha = theta + length * d_theta, alpha + length * d_alpha
        z, q = z + length * d_z, q + length * d_q
        inside = bool((alpha > 0).all() and (z > 0).all() and (power == 2 or ((alpha < price) & (q > 0)).all()))
        if not inside or not np.isfinite(theta).all():
            return
        yield (theta, 0.0, alpha) if X is A else (theta[:-1], float(theta[-1]), alpha)


def _direction(
    X: Float,
    signs: Float,
    pairs: tuple[Float, Float, Float, Float],
    curvature: Float,
    residual: Float,
    force: Float,
    solve: Callable[[Float], Float],
    down: Float,
    up: Float,
) -> tuple[Float, Float, Float, Float]:
    """dθ, dα, dz, dq for z dα + α dz = down and −q dα + (U − α) dq = up, the pairs being α, z, U − α and q."""
    alpha, z, room, q = pairs
    r = down / alpha - up / room + residual
    d_theta = solve(force + X.T @ (signs * r / curvature))
    d_alpha = (r - signs * (X @ d_theta)) / curvature
    return d_theta, d_alpha, (down - z * d_alpha) / alpha, (up + q * d_alpha) / room


def on_the_margin(
    A: Float, penalty: Float, signs: Float, price: Float, scaling: float | None, point: tuple[Float, float, Float]
) -> tuple[Float, float, Float] | None:
    """The hinge's (θ, intercept, α) from the equations of the rows on the margin, by a point near the optimum; or ``None``.

    It need not be better: that has to be proven.
    """
    X, rho = with_intercept(A, penalty, scaling)
    theta = point[0] if X is A else np.append(point[0], point[1])
    margin, share = signs * (X @ theta) - 1.0, point[2] / price
    inside = -margin > 1.0 - share
    on = np.flatnonzero(~inside & (margin <= share))
    held = np.flatnonzero(rho > 0)
    loose = len(held) < len(rho)
    size = len(held) + len(on) + loose
    if len(on) == 0 or size > _EQUATIONS:
        return None
    root = np.sqrt(rho[held])
    known = X[inside].T @ (signs * price)[inside]
    rows, p = X[np.ix_(on, held)] / root, len(held)
    system, right = np.zeros((size, size)), np.zeros(size)
    system[:p, :p] = np.eye(p)
    system[:p, p : p + len(on)], system[p : p + len(on), :p] = -rows.T, rows
    right[:p], right[p : p + len(on)] = known[held] / root, signs[on]
    if loose:  # the last equation: Σ ỹα = 0
        system[p : p + len(on), -1], system[-1, p : p + len(on)], right[-1] = 1.0, 1.0, -known[-1]
    found = _solution(system, right)
    theta = np.zeros(len(rho))
    theta[held] = found[:p] / root
    alpha = np.where(inside, price, 0.0)
    alpha[on] = np.clip(signs[on] * found[p : p + len(on)], 0.0, price[on])
    if loose:
        theta[-1] = found[-1]
    return (theta, 0.0, alpha) if X is A else (theta[:-1], float(theta[-1]), alpha)


def _solution(system: Float, right: Float) -> Float:
    """By factors, where the system has them; else, where rows on the margin depend on each other, the shortest solution."""
    factors, order, _ = dgetrf(system)
    pivots = np.abs(factors.diagonal())
    if pivots.min() > _DEPENDENT * pivots.max():
        found: Float = dgetrs(factors, order, right)[0]
        return found + dgetrs(factors, order, right - system @ found)[0]
    shortest = np.linalg.lstsq(system, right, rcond=None)[0].astype(np.float64, copy=False)
    return shortest + np.linalg.lstsq(system, right - system @ shortest, rcond=None)[0]


def joint_interior_points(
    A: Float, penalty: Float, codes: Codes, price: Float, n_classes: int, scaling: float | None
) -> Iterator[tuple[Float, Float, Float]]:
    """(Θ (p, K), intercepts (K,), λ (n, K)) step by step, until rounding leaves no step to take."""
    X, rho = with_intercept(A, penalty, scaling)
    (n, p), K = X.shape, n_classes
    own = np.zeros((n, K))
    own[np.arange(n), codes] = 1.0
    theta, zeta, lam = np.zeros((p, K)), np.full(n, 1.5), np.repeat(price[:, None] / K, K, axis=1)
    t = 1.5 - (1.0 - own)
    while True:
        residual = zeta[:, None] - (1.0 - own) - X @ theta - t
        given = lam * (1.0 - own)  # Cᵢ − λ would cancel where λ is nearly Cᵢ
        force = X.T @ (own * given.sum(axis=1, keepdims=True) - given) - rho[:, None] * theta
        s = lam / t
        total = s.sum(axis=1, keepdims=True)
        mu = float((lam * t).sum()) / (n * K)
        solve = _newton_solver(_curvature(X, s, total[:, 0], scaling is None), np.tile(rho, K))
        if solve is None:
            return
        direction = partial(_joint_direction, X, (lam, t), s, total, residual, force, solve)
        _, _, d_lam, d_t = direction(-lam * t)
        length = _longest([(lam, d_lam), (t, d_t)])
        after = float(((lam + length * d_lam) * (t + length * d_t)).sum()) / (n * K)
        goal = mu * min(1.0, max(0.0, after / mu)) ** 3 if mu > 0 else 0.0
        d_theta, d_zeta, d_lam, d_t = direction(goal - lam * t - d_lam * d_t)
        length = _longest([(lam, d_lam), (t, d_t)], _SHARE)
        theta, zeta = theta + length * d_theta, zeta + length * d_zeta
        lam, t = lam + length * d_lam, t + length * d_t
        if not (np.isfinite(theta).all() and (lam > 0).all() and (t > 0).all()):
            return
        yield (theta, np.zeros(K), lam) if X is A else (theta[:-1], theta[-1], lam)


def _joint_direction(
    X: Float,
    pair: tuple[Float, Float],
    s: Float,
    total: Float,
    residual: Float,
    force: Float,
    solve: Callable[[Float], Float],
    right: Float,
) -> tuple[Float, Float, Float, Float]:
    """dΘ, dζ, dλ, dt for λ dt + t dλ = right, the pair being λ and t."""
    lam, t = pair
    h = right / t - s * residual
    even = h - s * (h.sum(axis=1, keepdims=True) / total)
    pushed = force - X.T @ even
    d_theta = solve(pushed.T.ravel()).reshape(pushed.shape[::-1]).T
    d_f = X @ d_theta
    d_zeta = (h + s * d_f).sum(axis=1, keepdims=True) / total
    d_lam = h - s * (d_zeta - d_f)
    return d_theta, d_zeta[:, 0], d_lam, (right - t * d_lam) / lam


def _curvature(X: Float, s: Float, total: Float, free: bool) -> Float:
    """Xᵀ P X, class by class, (pK, pK)."""
    (_, p), K = X.shape, s.shape[1]
    matrix = np.empty((K, p, K, p))
    for k in range(K):
        others = np.delete(s, k, axis=1).sum(axis=1)  # not the total less s_k, which would cancel
        for l in range(k + 1):  # noqa: E741  # a name of the formula
            weights = s[:, k] * (others if l == k else -s[:, l]) / total
            matrix[k, :, l, :] = X.T @ (weights[:, None] * X)
            matrix[l, :, k, :] = matrix[k, :, l, :].T
    if free:
        # The direction in which all intercepts move together: any positive curvature keeps the step out of it.
        matrix[:, -1, :, -1] += float(np.mean([matrix[k, -1, k, -1] for k in range(K)])) / K
    return matrix.reshape(K * p, K * p)


def with_intercept(A: Any, penalty: Float, scaling: float | None) -> tuple[Any, Float]:
    """The rows with their column of ones, and its penalty with the others; both as they are where there is no intercept."""
    if scaling == 0.0:
        return A, penalty
    ones, rho = np.ones((A.shape[0], 1)), np.append(penalty, 0.0 if scaling is None else scaling**-2.0)
    return sp.hstack([A, sp.csr_array(ones)], format="csr") if sp.issparse(A) else np.hstack([A, ones]), rho


def _longest(pairs: list[tuple[Float, Float]], share: float = 1.0) -> float:
    """`share` of the longest step, but at most 1, that keeps every value + step · change positive."""
    least = min(float((change / value).min()) for value, change in pairs)
    return min(1.0, share / -least) if least < 0.0 else 1.0


def _newton_solver(matrix: Float, diagonal: Float) -> Callable[[Float], Float] | None:
    """r ↦ (matrix + diag(diagonal))⁻¹r by a factor of the matrix scaled to a unit diagonal, refined; ``None`` without one."""
    at = np.diag_indices(len(matrix))
    matrix[at] += diagonal
    if not np.isfinite(matrix).all():
        return None
    size = np.sqrt(np.maximum(matrix[at], _TINY))
    matrix = matrix / size / size[:, None]
    shift = 0.0
    for _ in range(_SHIFTS):
        shifted = matrix.copy()
        shifted[at] += shift
        factor, failed = dpotrf(shifted, lower=1)
        if not failed:
            break
        shift = max(10.0 * shift, _EPS * len(matrix))
    else:
        return None

    def solve(r: Float) -> Float:
        r = r / size
        found = dpotrs(factor, r, lower=1)[0]
        for _ in range(_REFINEMENTS):
            found = found + dpotrs(factor, r - matrix @ found, lower=1)[0]
        return found / size

    return solve
