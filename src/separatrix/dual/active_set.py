"""The squared hinge by Newton's method on the rows inside the margin: exact after a few steps, for several machines at once.

    F(θ) = ½ Σ ρ_j θ_j² + Σ cᵢ max(0, 1 − ỹᵢθᵀxᵢ)²,      S = {i: ỹᵢθᵀxᵢ < 1}
    g = ρθ − 2Σ_S cᵢ(ỹᵢ − θᵀxᵢ)xᵢ,   H = diag ρ + 2Σ_S cᵢxᵢxᵢᵀ,   θ ← θ − tH⁻¹g

The intercept is the last column, of ones. The slope of F is piecewise linear: a step of t = 1 that leaves S as it was ends
at the optimum itself. t is cut where the slope along the step has turned. A large C with rows that can be separated would
take many short steps: c begins at the size at which penalty and loss weigh alike and grows to C by factors, a step or two at
each.

The dual point is αᵢ = 2Cᵢ max(0, 1 − ỹᵢθᵀxᵢ); with q = Σ αᵢỹᵢxᵢ/ρ − θ = −g/ρ the gap between them is ½ Σ ρ q².

Reference: Keerthi and DeCoste (2005), JMLR 6, section 2.

**Complexity** O(np + |S| p² + p³) per step and machine. **Passes over the data** three per step; memory O(np).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from separatrix.data.block import Float

Flags = NDArray[np.bool_]
# A step is short enough where the slope along it has risen to no more than this share of what it was, downhill.
_RISEN, _CUTS = 0.1, 30
# c grows by this factor once a step would lower F by no more than this share of it.
_GROWTH, _NEAR = 100.0, 0.1
# Up to this many products of two columns of a row they are kept, so that H is one product for all machines.
_PAIRS = 40_000
# Of F: what rounding leaves of a gap; and what is added to a unit diagonal until there is a factor.
_DIGITS, _SHIFTS = 1e-13, (0.0, 1e-14, 1e-12, 1e-10)


@dataclass(frozen=True)
class NewtonPoint:
    """Where the machines stand."""

    theta: Float  # (K, p)
    alpha: Float  # (K, n)
    steps: NDArray[np.int64]  # (K,)


def newton_steps(X: Float, rho: Float, signs: Float, price: Float, tol: float) -> Iterator[NewtonPoint]:
    """The machines after every step, until each is at its optimum, or its gap within `tol` of F.

    X (n, p) with the column of the intercept, rho its penalties, signs (K, n) = ±1 with a row for each machine.
    """
    (n, p), K, costs = X.shape, len(signs), 2.0 * price
    held = rho > 0
    inverse = np.where(held, 1.0 / np.where(held, rho, 1.0), 0.0)
    behind = np.full((K, 1), max(1.0, float(costs @ (np.square(X) @ inverse)) / n))  # C/c
    pairs = (X[:, :, None] * X[:, None, :]).reshape(n, p * p) if n * p * p <= _PAIRS else None
    theta, margins, steps = np.zeros((K, p)), np.zeros((K, n)), np.zeros(K, dtype=np.int64)
    inside = np.zeros((K, n), dtype=bool)
    done = whole = refined = np.zeros(K, dtype=bool)
    while True:
        slack = np.maximum(1.0 - margins, 0.0)
        pulls, now = costs * slack, slack > 0.0
        pulled, half = (signs * pulls) @ X, 0.5 * _rows_dot(pulls, slack)
        while True:
            g = rho * theta - pulled / behind
            value = 0.5 * np.square(theta) @ rho + half / behind[:, 0]
            step = -_solved(_hessians(X, pairs, rho, costs, now, behind, done), g)
            promise = -_rows_dot(g, step)
            early = (behind[:, 0] > 1.0) & ~(promise > _NEAR * value)
            if not early.any():
                break
            behind = np.where(early[:, None], np.maximum(1.0, behind / _GROWTH), behind)
        yield NewtonPoint(theta, pulls, steps)
        gap = 0.5 * np.square(g) @ inverse + np.abs(g) @ ~held
        # A whole step within one set of rows ends at the optimum up to rounding, and another one refines it.
        exact = whole & (now == inside).all(axis=1)
        there = (gap <= tol * value) | (exact & ((gap <= _DIGITS * value) | refined))
        done, refined = done | (there & (behind[:, 0] == 1.0)), exact
        if done.all() or not np.isfinite(step).all():
            return
        step[done] = 0.0
        turns = signs * (step @ X.T)
        t = _cut(rho, (theta, margins), (step, turns), costs / behind, promise)
        far = t[:, None]
        theta, margins, steps = theta + far * step, margins + far * turns, steps + ~done
        whole, inside = (t == 1.0) & (behind[:, 0] == 1.0), now


def _rows_dot(one: Float, two: Float) -> Float:
    """(K,) inner products of the rows of two matrices."""
    found: Float = np.einsum("ij,ij->i", one, two)
    return found


def _hessians(
    X: Float, pairs: Float | None, rho: Float, costs: Float, inside: Flags, behind: Float, done: Flags
) -> Float:
    """(K, p, p) H of each machine; of those that are done, the penalty alone."""
    p = X.shape[1]
    if pairs is not None:
        found: Float = ((inside * (costs / behind)) @ pairs).reshape(-1, p, p)
    else:
        found = np.zeros((len(inside), p, p))
        for k in np.flatnonzero(~done):
            own = inside[k]
            rows = X[own] * np.sqrt(costs[own] / behind[k])[:, None]
            found[k] = rows.T @ rows  # half the arithmetic of two different factors
    at = np.arange(p)
    found[:, at, at] += rho
    return found


def _solved(matrices: Float, right: Float) -> Float:
    """The solutions of K systems, each scaled to a unit diagonal; not a number where a matrix has no factor."""
    at = np.arange(right.shape[1])
    size = matrices[:, at, at]
    unit = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))
    matrices *= unit[:, :, None]
    matrices *= unit[:, None, :]
    matrices[:, at, at] = 1.0
    right = unit * right
    found = np.full_like(right, np.nan)
    for k, matrix in enumerate(matrices):
        for shift in _SHIFTS:
            if shift:
                matrix[at, at] = 1.0 + shift
            _, solution, failed = dposv(matrix, right[k], lower=1)
            if failed == 0:
                found[k] = solution
                break
    return unit * found


def _cut(rho: Float, point: tuple[Float, Float], step: tuple[Float, Float], costs: Float, promise: Float) -> Float:
    """(K,) how far to go: 1, or less where the slope along the step, at first −`promise`, has turned upwards before."""
    (theta, margins), (change, turns) = point, step
    fixed, bent = _rows_dot(theta * rho, change), np.square(change) @ rho

    def slope(t: Float) -> Float:
        pulls = costs * np.maximum(1.0 - margins - t[:, None] * turns, 0.0)
        return fixed + t * bent - _rows_dot(pulls, turns)

    t = np.ones(len(theta))
    downhill, found = _RISEN * np.abs(promise), slope(t)
    if (found <= downhill).all():
        return t
    low, high = 0.0 * t, t
    for _ in range(_CUTS):
        off = (np.abs(found) > downhill) & ((t < 1.0) | (found > 0.0))
        if not off.any():
            break
        high, low = np.where(off & (found > 0.0), t, high), np.where(off & (found <= 0.0), t, low)
        t = np.where(off, 0.5 * (low + high), t)
        found = np.where(off, slope(t), found)
    return t
