"""Small machines of the hinge by interior points, all at once: the steps of interior.py, with one call for K machines.

    min ½ Σ ρ_j θ_j² + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)        z − q = ỹ(Xθ) − 1,    αz = μ,  (C − α)q = μ,    μ → 0

Nothing is proven here. The gap is about Σ αz + Σ (C − α)q once the equations hold, and that says when to stop.

**Complexity** O(K(n p² + p³)) per step; memory O(K(n + p²)).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float

# The share of the way to the nearest bound that a step goes; products of two columns that are kept.
_SHARE, _PAIRS = 0.99, 200_000
# Of the objective: where it is plain which rows are on the margin.
_PLAIN = 1e-9


def interior_optima(
    X: Float, rho: Float, signs: Float, price: Float, most: int, stop: Event
) -> tuple[Float, Float, NDArray[np.int64]]:
    """θ (K, p), α (K, n) near the optima and the steps to each; not a number where a machine found no way.

    X (n, p) with the column of the intercept, rho its penalties, signs (K, n) = ±1 with a row for each machine.
    """
    (n, p), K = X.shape, len(signs)
    pairs = (X[:, :, None] * X[:, None, :]).reshape(n, p * p) if n * p * p <= _PAIRS else None
    ends, duals, steps = np.full((K, p), np.nan), np.full((K, n), np.nan), np.zeros(K, dtype=np.int64)
    live, own = np.arange(K), signs
    theta, z, q, alpha = np.zeros((K, p)), np.full((K, n), 0.5), np.full((K, n), 1.5), np.tile(0.5 * price, (K, 1))
    for count in range(1, most + 1):
        room = price - alpha
        down, up = alpha * z, room * q
        mu = (down.sum(axis=1) + up.sum(axis=1)) / (2 * n)
        residual = z - q - own * (theta @ X.T) + 1.0
        force = (own * alpha) @ X - rho * theta
        curvature = z / alpha + q / room
        solve = _solver(X, pairs, rho, 1.0 / curvature)
        if solve is None or stop.is_set():
            break
        state = (X, own, alpha, z, room, q, curvature, residual, force, solve)
        _, d_alpha, d_z, d_q = _direction(*state, -down, -up)
        length = _longest(alpha, d_alpha, z, d_z, room, q, d_q, 1.0)
        after = (alpha + length * d_alpha) * (z + length * d_z) + (room - length * d_alpha) * (q + length * d_q)
        goal = (mu * np.clip(after.sum(axis=1) / (2 * n) / mu, 0.0, 1.0) ** 3)[:, None]
        d_theta, d_alpha, d_z, d_q = _direction(*state, goal - down - d_alpha * d_z, goal - up + d_alpha * d_q)
        length = _longest(alpha, d_alpha, z, d_z, room, q, d_q, _SHARE)
        theta, alpha, z, q = theta + length * d_theta, alpha + length * d_alpha, z + length * d_z, q + length * d_q
        left = (1.0 - length[:, 0]) * (np.abs(residual) @ price + np.abs(force * theta).sum(axis=1))
        gap = (alpha * z + (price - alpha) * q).sum(axis=1) + left
        ended = ~(gap > _PLAIN * (0.5 * np.square(theta) @ rho + q @ price))
        if ended.any():
            at, keep = live[ended], ~ended
            ends[at], duals[at], steps[at] = theta[ended], alpha[ended], count
            live, own, theta, alpha, z, q = live[keep], own[keep], theta[keep], alpha[keep], z[keep], q[keep]
            if len(live) == 0:
                break
    return ends, duals, steps


def hinge_gaps(X: Float, rho: Float, signs: Float, price: Float, theta: Float, alpha: Float) -> Float:
    """(m,) about how far m points (θ, α) of one machine are from optimal: ½ Σ ρ(θ − Σαỹx/ρ)² + Σ αz + Σ (C − α)q."""
    held = rho > 0
    margins, pulled = signs * (theta @ X.T) - 1.0, ((signs * alpha) @ X)[:, held]
    off = np.square(theta[:, held] * rho[held] - pulled) @ (0.5 / rho[held])
    found: Float = off + (alpha * np.maximum(margins, 0.0) + (price - alpha) * np.maximum(-margins, 0.0)).sum(axis=1)
    return found


def _direction(
    X: Float,
    signs: Float,
    alpha: Float,
    z: Float,
    room: Float,
    q: Float,
    curvature: Float,
    residual: Float,
    force: Float,
    solve: Callable[[Float], Float],
    down: Float,
    up: Float,
) -> tuple[Float, Float, Float, Float]:
    """dθ, dα, dz, dq for z dα + α dz = down and −q dα + (C − α) dq = up."""
    r = down / alpha - up / room + residual
    d_theta = solve(force + (signs * r / curvature) @ X)
    d_alpha = (r - signs * (d_theta @ X.T)) / curvature
    return d_theta, d_alpha, (down - z * d_alpha) / alpha, (up + q * d_alpha) / room


def _longest(
    alpha: Float, d_alpha: Float, z: Float, d_z: Float, room: Float, q: Float, d_q: Float, share: float
) -> Float:
    """(K, 1) `share` of the longest steps, but at most 1, that keep α, z, C − α and q positive."""
    fastest = np.maximum(np.maximum(-d_alpha / alpha, d_alpha / room), np.maximum(-d_z / z, -d_q / q)).max(axis=1)
    found: Float = (share / np.maximum(fastest, share))[:, None]
    return found


def _solver(X: Float, pairs: Float | None, rho: Float, weights: Float) -> Callable[[Float], Float] | None:
    """r ↦ (diag ρ + Xᵀ diag(weights) X)⁻¹r for K rows of weights, scaled to unit diagonals and refined."""
    p = X.shape[1]
    if pairs is not None:
        matrix = (weights @ pairs).reshape(-1, p, p)
    else:
        matrix = np.array([(X * own[:, None]).T @ X for own in weights])
    at = np.arange(p)
    matrix[:, at, at] += rho
    unit = 1.0 / np.sqrt(matrix[:, at, at])
    matrix *= unit[:, :, None]
    matrix *= unit[:, None, :]
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None

    def solve(r: Float) -> Float:
        r = (unit * r)[:, :, None]
        found = inverse @ r
        found = found + inverse @ (r - matrix @ found)
        return unit * found[:, :, 0]

    return solve
