"""Machines of the hinge by interior points: small ones all at once, and those of many rows near their margin.

The steps of interior.py, with one call for K machines:

    min ½ Σ ρ_j θ_j² + Σ Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)        z − q = m − 1,  m = ỹ(Xθ),    αz = μ,  (C − α)q = μ,    μ → 0

With u = dα/α and v = dα/(C − α) of the first direction (μ = 0), dz = −z(1 + u) and dq = −q(1 − v): what its square adds to the
second one is s = zu(1 + u) and t = qv(1 − v), and

    r = 1 − m + μ(1/α − 1/(C − α)) + s + t,      (diag ρ + XᵀΘ⁻¹X) dθ = Xᵀ(ỹα) − ρθ + XᵀΘ⁻¹ỹr,      Θ = z/α + q/(C − α)
    dα = Θ⁻¹(r − ỹX dθ),      dz = μ/α − z + s − (z/α)dα,      dq = μ/(C − α) − q − t + (q/(C − α))dα

Nothing is proven here. The gap is about Σ αz + Σ (C − α)q once the equations hold, and that says when to stop.

**Complexity** O(K(n p² + p³)) per step; memory O(K(n + p²)).

Many rows of few columns: at the optimum no more rows than columns lie on the margin; α = C for those inside, α = 0 for those
outside. The optimum of a sample tells for most rows on which side they are: with B those further inside than some width,
k = Σ_B Cᵢỹᵢxᵢ,

    min ½ Σ ρ_j θ_j² − kᵀθ + Σ_band Cᵢ max(0, 1 − ỹᵢθᵀxᵢ)

has the same optimum if nobody outside the band changes sides, which all scores tell: with m = ỹθᵀx the gap is
Σ α max(0, m − 1) + Σ (C − α) max(0, 1 − m). If somebody does, the band is drawn around the new margin.

**Complexity** O(np) per round and O(mp²) per step, m = n/8 rows in the band. **Passes over the data** four per round; memory
O(np).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from separatrix.data.block import Float
from separatrix.lazy import compiled_pays_by_now

# The share of the way to the nearest bound that a step goes; products of two columns that are kept.
_SHARE, _PAIRS = 0.99, 200_000
# A gap of this share of the objective that a step does not halve is nothing but rounding.
_ROUNDING = 1e-9
# What is added to a unit diagonal until there is a factor.
_SHIFTS = (0.0, 1e-14, 1e-12, 1e-10)

# Rows of a sample, and per column; so many times as many are worth one, and a sample is one in so many; its gap.
_SAMPLE, _TALL, WORTH_SAMPLING, _ONE_IN, _ROUGHLY = 2000, 50, 6, 16, 1e-4
# The share of the rows that a band has, and how often one is drawn. The share of the gap that is left to interior points.
BAND, _ROUNDS, _OWN = 0.125, 4, 0.3
# Of that share: enough around a margin that a band has told. Steps of interior points that find a way at all: in a band, ever.
_CLOSER, _STEPS, _MOST = 0.4, 35, 100
# Columns, and products of two in all rows, up to which loops are quicker than calls.
_COLUMNS, _PRODUCTS = 64, 2e7

Optimum = tuple[Float, Float, int]
"""θ (p,), α (n,), and the steps to them."""


def interior_optima(
    X: Any,
    rho: Float,
    signs: Float,
    price: Float,
    tol: float,
    most: int,
    stop: Event,
    pulled: Float | float = 0.0,
    besides: float = 0.0,
) -> tuple[Float, Float, NDArray[np.int64]]:
    """θ (K, p), α (K, n) with gaps of about `tol` of the objectives, and the steps to each; not a number where a machine found
    no way.

    X (n, p), dense or CSR, with the column of the intercept, rho its penalties, signs (K, n) = ±1 with a row for each machine.
    Rows that are not here add `besides` − kᵀθ to the objective, k being what they have `pulled`.
    """
    (n, p), K = X.shape, len(signs)
    few = n * p * p <= _PAIRS and not sp.issparse(X)
    pairs = (X[:, :, None] * X[:, None, :]).reshape(n, p * p) if few else None
    ends, duals, steps = np.full((K, p), np.nan), np.full((K, n), np.nan), np.zeros(K, dtype=np.int64)
    live, own = np.arange(K), signs
    theta, margins, z, q = np.zeros((K, p)), np.zeros((K, n)), np.full((K, n), 0.5), np.full((K, n), 1.5)
    alpha = np.tile(0.5 * price, (K, 1))
    room = price - alpha
    down, up, before = alpha * z, room * q, np.full(K, np.inf)
    for count in range(1, most + 1):
        mu = (down.sum(axis=1) + up.sum(axis=1)) / (2 * n)
        short, force = 1.0 - margins, (own * alpha) @ X - rho * theta + pulled
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
        value = 0.5 * np.square(theta) @ rho - (theta * pulled).sum(axis=1) + q @ price + besides
        ended = ~(gap > tol * value) | ((gap <= _ROUNDING * value) & (gap > 0.5 * before))
        before = gap
        if ended.any():
            at, keep = live[ended], ~ended
            ends[at], duals[at], steps[at] = theta[ended], alpha[ended], count
            if not keep.any():
                break
            live, own, theta, margins, before = live[keep], own[keep], theta[keep], margins[keep], gap[keep]
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


def _solver(X: Any, pairs: Float | None, rho: Float, weights: Float) -> Callable[[Float], Float]:
    """r ↦ (diag ρ + Xᵀ diag(weights) X)⁻¹r for K rows of weights, scaled to unit diagonals and refined; not a number where a
    matrix has no factor.
    """
    p = X.shape[1]
    if pairs is not None:
        matrix = (weights @ pairs).reshape(-1, p, p)
    else:
        matrix = np.empty((len(weights), p, p))
        for k, own in enumerate(weights):
            matrix[k] = weighted_gram(X, own)
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


def weighted_gram(X: Any, weights: Float) -> Float:
    """(p, p) Xᵀ diag(weights) X of dense or CSR rows with sorted indices."""
    if not sp.issparse(X):
        rows = X * np.sqrt(weights)[:, None]
        dense: Float = rows.T @ rows  # half the arithmetic of two different factors
        return dense
    from separatrix.kernels.sparse.rows import add_gram  # numba takes a while to import

    lower = np.zeros((X.shape[1], X.shape[1]))
    add_gram(X.data, X.indices, X.indptr, np.arange(X.shape[1]), weights, lower)
    return lower + np.tril(lower, -1).T


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


def sample_size(n_columns: int) -> int:
    """Rows of a sample that tell where the margin is about."""
    return max(_SAMPLE, _TALL * n_columns)


def is_looped(n_rows: int, n_features: int, saved: float = 0.0) -> bool:
    """Whether `hinge_optimum` is quicker than interior points on all machines and rows at once; compiled, it saves seconds."""
    tall = n_rows >= WORTH_SAMPLING * sample_size(n_features + 1)
    return tall or (n_features < _COLUMNS and compiled_pays_by_now(saved))


def hinge_optimum(
    A: Float, rho: Float, signs: Float, price: Float, tol: float, most: int, stop: Event
) -> Optimum | None:
    """Where the gap is about `tol` of the objective, of one machine; ``None`` where interior points find no way.

    A (n, p) with the column of the intercept, rho its penalties.
    """
    n, p = A.shape
    apart = min(_ONE_IN, n // sample_size(p))
    if apart < WORTH_SAMPLING:
        return interior(A, rho, signs, price, tol, most, stop)
    every, share = slice(None, None, apart), BAND
    sampled = hinge_optimum(
        np.ascontiguousarray(A[every]), rho, signs[every], apart * price[every], _ROUGHLY, most, stop
    )
    if sampled is None:
        return None
    theta, _, steps = sampled
    short = 1.0 - signs * (A @ theta)
    for _ in range(_ROUNDS):
        if stop.is_set():
            return None
        width, size = np.abs(short), min(n - 1, int(share * n))
        near = width <= np.partition(width, size)[size]
        alpha = np.where(near | (short < 0.0), 0.0, price)
        pulled = (signs * alpha) @ A
        band = (A[near], rho, signs[near], price[near])
        if rho[-1] == 0.0 and band[3][band[2] * pulled[-1] < 0.0].sum() <= abs(pulled[-1]):
            share *= 2.0  # too few rows to hold an intercept that the others pull to one side
            continue
        found = interior(*band, _OWN * tol, min(most, _STEPS), stop, pulled, float(alpha.sum()))
        if found is None:
            share *= 2.0
            continue
        theta, alpha[near], steps = found[0], found[1], steps + found[2]
        short = 1.0 - signs * (A @ theta)
        outside, inside = np.maximum(-short, 0.0), np.maximum(short, 0.0)
        value = 0.5 * float(np.square(theta) @ rho) + float(price @ inside)
        if float(alpha @ outside + (price - alpha) @ inside) <= tol * value:
            return theta, alpha, steps
        share *= _CLOSER
    return interior(A, rho, signs, price, tol, most, stop)


def interior(
    A: Float,
    rho: Float,
    signs: Float,
    price: Float,
    tol: float,
    most: int,
    stop: Event,
    pulled: Float | None = None,
    far: float = 0.0,
) -> Optimum | None:
    """Interior points on all these rows, in compiled loops where these are quicker."""
    n, p = A.shape
    pull = np.zeros(p) if pulled is None else pulled
    if p <= _COLUMNS and n * p**2 <= _PRODUCTS and compiled_pays_by_now(0.0):
        from separatrix.kernels.support_vectors.hinge_interior import hinge_interior  # numba takes a while to import

        theta, alpha, limits = np.empty(p), np.empty(n), (tol, min(most, _MOST))
        steps, ended = hinge_interior(A, rho, signs, price, pull, far, *limits, theta, alpha)
        if ended or pulled is not None:
            return (theta, alpha, int(steps)) if ended else None
    with np.errstate(all="ignore"):  # what is not finite is left to other methods
        thetas, alphas, counts = interior_optima(A, rho, signs[None], price, tol, most, stop, pull, far)
    if not (np.isfinite(thetas).all() and np.isfinite(alphas).all()):
        return None
    return thetas[0], alphas[0], int(counts[0])
