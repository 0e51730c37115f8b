"""Small machines of the hinge by interior points, all at once: the steps of interior.py, with one call for K machines.

    min ½ Σ ρ_j θ_j² + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)        z − q = m − 1,  m = ỹ(Xθ),    αz = μ,  (C − α)q = μ,    μ → 0

With u = dα/α and v = dα/(C − α) of the first direction (μ = 0), dz = −z(1 + u) and dq = −q(1 − v): what its square adds to the
second one is s = zu(1 + u) and t = qv(1 − v), and

    r = 1 − m + μ(1/α − 1/(C − α)) + s + t,      (diag ρ + XᵀΘ⁻¹X) dθ = Xᵀ(ỹα) − ρθ + XᵀΘ⁻¹ỹr,      Θ = z/α + q/(C − α)
    dα = Θ⁻¹(r − ỹX dθ),      dz = μ/α − z + s − (z/α)dα,      dq = μ/(C − α) − q − t + (q/(C − α))dα

Nothing is proven here. The gap is about Σ αz + Σ (C − α)q once the equations hold, and that says when to stop.

**Complexity** O(K(n p² + p³)) per step; memory O(K(n + p²)).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from separatrix.data.block import Float

# The share of the way to the nearest bound that a step goes; products of two columns that are kept.
_SHARE, _PAIRS = 0.99, 200_000
# What is added to a unit diagonal until there is a factor.
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)


def interior_optima(
    X: Float, rho: Float, signs: Float, price: Float, tol: float, most: int, stop: Event
) -> tuple[Float, Float, NDArray[np.int64]]:
    """θ (K, p), α (K, n) with gaps of about `tol` of the objectives, and the steps to each; not a number where a machine found
    no way.

    X (n, p) with the column of the intercept, rho its penalties, signs (K, n) = ±1 with a row for each machine.
    """
    (n, p), K = X.shape, len(signs)
    pairs = (X[:, :, None] * X[:, None, :]).reshape(n, p * p) if n * p * p <= _PAIRS else None
    ends, duals, steps = np.full((K, p), np.nan), np.full((K, n), np.nan), np.zeros(K, dtype=np.int64)
    live, own = np.arange(K), signs
    theta, margins, z, q = np.zeros((K, p)), np.zeros((K, n)), np.full((K, n), 0.5), np.full((K, n), 1.5)
    alpha = np.tile(0.5 * price, (K, 1))
    room = price - alpha
    down, up = alpha * z, room * q
    for count in range(1, most + 1):
        mu = (down.sum(axis=1) + up.sum(axis=1)) / (2 * n)
        short, force = 1.0 - margins, (own * alpha) @ X - rho * theta
        by_alpha, by_room = 1.0 / alpha, 1.0 / room
        z_alpha, q_room = z * by_alpha, q * by_room
        weights = 1.0 / (z_alpha + q_room)
        solve = _solver(X, pairs, rho, weights)
        if stop.is_set():
            break
        d_alpha = (short - own * (solve(force + (own * short * weights) @ X) @ X.T)) * weights
        u, v = d_alpha * by_alpha, d_alpha * by_room
        length = _length(1.0, -u.min(axis=1), v.max(axis=1), 1.0 + u.max(axis=1), 1.0 - v.min(axis=1))
        s, t = u * (1.0 + u), v * (1.0 - v)
        squared = length**2 * (_rows_dot(up, t) - _rows_dot(down, s)) / (2 * n)
        goal = (mu * np.clip(1.0 - length + squared / mu, 0.0, 1.0) ** 3)[:, None]
        s *= z
        t *= q
        by_alpha *= goal
        by_room *= goal
        r = short + by_alpha - by_room + s + t
        d_theta = solve(force + (own * r * weights) @ X)
        turns = own * (d_theta @ X.T)
        d_alpha = (r - turns) * weights
        d_z, d_q = by_alpha - z + s - z_alpha * d_alpha, by_room - q - t + q_room * d_alpha
        nearest = [(d_alpha / alpha).min(axis=1), -(d_alpha / room).max(axis=1), (d_z / z).min(axis=1)]
        length = _length(_SHARE, *(-each for each in nearest), -(d_q / q).min(axis=1))
        far = length[:, None]
        left = (1.0 - length) * (np.abs(z - q + short) @ price + np.abs(force * theta).sum(axis=1))
        theta, margins = theta + far * d_theta, margins + far * turns
        alpha, z, q = alpha + far * d_alpha, z + far * d_z, q + far * d_q
        room = price - alpha
        down, up = alpha * z, room * q
        gap = down.sum(axis=1) + up.sum(axis=1) + left
        ended = ~(gap > tol * (0.5 * np.square(theta) @ rho + q @ price))
        if ended.any():
            at, keep = live[ended], ~ended
            ends[at], duals[at], steps[at] = theta[ended], alpha[ended], count
            if not keep.any():
                break
            live, own, theta, margins = live[keep], own[keep], theta[keep], margins[keep]
            alpha, z, q, room, down, up = alpha[keep], z[keep], q[keep], room[keep], down[keep], up[keep]
    return ends, duals, steps


def hinge_gaps(X: Float, rho: Float, signs: Float, price: Float, theta: Float, alpha: Float) -> Float:
    """(m,) about how far m points (θ, α) of one machine are from optimal: ½ Σ ρ(θ − Σαỹx/ρ)² + Σ αz + Σ (C − α)q."""
    held = rho > 0
    margins, pulled = signs * (theta @ X.T) - 1.0, ((signs * alpha) @ X)[:, held]
    off = np.square(theta[:, held] * rho[held] - pulled) @ (0.5 / rho[held])
    found: Float = off + (alpha * np.maximum(margins, 0.0) + (price - alpha) * np.maximum(-margins, 0.0)).sum(axis=1)
    return found


def _rows_dot(one: Float, two: Float) -> Float:
    """(K,) inner products of the rows of two matrices."""
    found: Float = np.einsum("ij,ij->i", one, two)
    return found


def _length(share: float, *rates: Float) -> Float:
    """(K,) `share` of the longest steps, but at most 1, where values fall at these rates."""
    found: Float = share / np.maximum(np.maximum.reduce(rates), share)
    return found


def _solver(X: Float, pairs: Float | None, rho: Float, weights: Float) -> Callable[[Float], Float]:
    """r ↦ (diag ρ + Xᵀ diag(weights) X)⁻¹r for K rows of weights, scaled to unit diagonals and refined; not a number where a
    matrix has no factor.
    """
    p = X.shape[1]
    if pairs is not None:
        matrix = (weights @ pairs).reshape(-1, p, p)
    else:
        matrix = np.empty((len(weights), p, p))
        for k, root in enumerate(np.sqrt(weights)):
            rows = X * root[:, None]
            matrix[k] = rows.T @ rows  # half the arithmetic of two different factors
    at = np.arange(p)
    matrix[:, at, at] += rho
    unit = 1.0 / np.sqrt(matrix[:, at, at])
    matrix *= unit[:, :, None]
    matrix *= unit[:, None, :]
    factors = [_factor(each, at) for each in matrix]

    def solve(r: Float) -> Float:
        r = unit * r
        found = np.array([dpotrs(factor, own, lower=1)[0] for factor, own in zip(factors, r, strict=True)])
        r -= (matrix @ found[:, :, None])[:, :, 0]
        found += [dpotrs(factor, own, lower=1)[0] for factor, own in zip(factors, r, strict=True)]
        return unit * found

    return solve


def _factor(matrix: Float, at: NDArray[np.intp]) -> Float:
    """The lower factor of a matrix with a unit diagonal, which it may need more of."""
    for shift in _SHIFTS:
        shifted = matrix.copy() if shift else matrix
        shifted[at, at] = 1.0 + shift
        factor, failed = dpotrf(shifted, lower=1)
        if failed == 0:
            break
    else:
        factor = np.full_like(matrix, np.nan)
    found: Float = factor
    return found
