"""The squared hinge by Newton's method on the rows inside the margin: exact after a few steps, for several machines at once.

    F(θ) = ½ Σ ρ_j θ_j² + Σ cᵢ max(0, 1 − ỹᵢθᵀxᵢ)²,      S = {i: ỹᵢθᵀxᵢ < 1}
    g = ρθ − 2Σ_S cᵢ(ỹᵢ − θᵀxᵢ)xᵢ,   H = diag ρ + 2Σ_S cᵢxᵢxᵢᵀ,   θ ← θ − tH⁻¹g

The intercept is the last column, of ones. The slope of F is piecewise linear: a step of t = 1 that leaves S as it was ends
at the optimum itself. t is cut where the slope along the step has turned. A large C with rows that can be separated, as few
rows per column can, would take many short steps: c begins at the size at which penalty and loss weigh alike and grows to C by
factors, a step or two at each.

The dual point is αᵢ = 2Cᵢ max(0, 1 − ỹᵢθᵀxᵢ); with q = Σ αᵢỹᵢxᵢ/ρ − θ = −g/ρ the gap between them is ½ Σ ρ q².

Rows that are fewer than the columns: w = Σ γᵢxᵢ, K = XXᵀ, f = Kγ + b, with a penalty ½ pull b² or none of the intercept. The
step ends where

    (K_SS + diag 1/2c)γ_S + b = ỹ_S,   Σγ = pull b,   and γ = 0 outside S

so that only a factor of |S| equations is needed, however the columns are scaled.

Reference: Keerthi and DeCoste (2005), JMLR 6, section 2; Chapelle (2007), Neural Computation 19, section 4.

**Complexity** O(np + |S| p² + p³) per step and machine, on the rows' side O(n|S| + |S|³). **Passes over the data** three per
step; memory O(np), O(n²).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotrs

from separatrix.data.block import Float

Flags = NDArray[np.bool_]
# A step is short enough where the slope along it has risen to no more than this share of what it was, downhill.
_RISEN, _CUTS = 0.1, 30
# c grows by this factor once a step would lower F by no more than this share of it.
_GROWTH, _NEAR = 100.0, 0.1
# Rows of a sample, and per column; so many times as many are worth one; the gap to which it is solved.
_SAMPLE, _TALL, _WORTH_SAMPLING, _ROUGHLY = 1000, 10, 8, 1e-4
# Rows per column from which few problems can be separated.
_APART = 3
# Columns up to which it is dearer to gather the rows inside the margin than to multiply all.
_NARROW = 32
# Up to this many products of two columns of a row they are kept, so that H is one product for all machines.
_PAIRS = 40_000
# Of F: what rounding leaves of a gap; and what is added to a unit diagonal until there is a factor.
_DIGITS, _SHIFTS = 1e-13, (0.0, 1e-14, 1e-12, 1e-10)
_TINY = float(np.finfo(np.float64).tiny)


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
    behind = 1.0 if n >= _APART * p else max(1.0, float(costs @ (np.square(X) @ inverse)) / n)  # C/c
    pairs = (X[:, :, None] * X[:, None, :]).reshape(n, p * p) if n * p * p <= _PAIRS else None
    theta, steps = np.zeros((K, p)), np.zeros(K, dtype=np.int64)
    if (sampled := _of_a_sample(X, rho, signs, price)) is not None:
        theta, behind = sampled, 1.0
    margins = signs * (theta @ X.T)
    slack, inside = np.maximum(1.0 - margins, 0.0), np.zeros((K, n), dtype=bool)
    done = refined = whole = np.zeros(K, dtype=bool)
    while True:
        c, now = costs / behind, slack > 0.0
        pulls = c * slack
        g = rho * theta - (signs * pulls) @ X
        # A whole step within one set of rows ends at the optimum up to rounding, and another one refines it.
        exact = whole & (now == inside).all(axis=1)
        if behind == 1.0:
            yield NewtonPoint(theta, pulls, steps)
            if tol > 0.0 or exact.any():
                value = 0.5 * (np.square(theta) @ rho + _rows_dot(pulls, slack))
                gap = 0.5 * np.square(g) @ inverse + np.abs(g) @ ~held
                done = done | (gap <= tol * value) | (exact & ((gap <= _DIGITS * value) | refined))
                if done.all():
                    return
        step = _solved(_hessians(X, pairs, rho, c, now, done), -g)
        promise = -_rows_dot(g, step)
        if behind > 1.0:
            value = 0.5 * (np.square(theta) @ rho + _rows_dot(pulls, slack))
            if not (promise > _NEAR * value).any():
                behind = max(1.0, behind / _GROWTH)
                continue
            yield NewtonPoint(theta, behind * pulls, steps)
        step[done] = 0.0
        if not np.isfinite(step).all():
            return
        refined, turns = exact, signs * (step @ X.T)
        t = _cut(rho, (theta, margins), (step, turns), c, promise)
        far = 1.0 if t is None else t[:, None]
        whole = np.full(K, behind == 1.0) if t is None else (t == 1.0) & (behind == 1.0)
        theta, margins, steps = theta + far * step, margins + far * turns, steps + ~done
        slack = np.maximum(1.0 - margins, 0.0)
        inside = now


def _of_a_sample(X: Float, rho: Float, signs: Float, price: Float) -> Float | None:
    """(K, p) the optima of some rows at equal distances, each in place of those up to the next, where there are many."""
    apart = len(X) // max(_SAMPLE, _TALL * X.shape[1])
    if apart < _WORTH_SAMPLING:
        return None
    every = slice(None, None, apart)
    *_, last = newton_steps(X[every], rho, signs[:, every], apart * price[every], _ROUGHLY)
    return last.theta if np.isfinite(last.theta).all() else None


def _rows_dot(one: Float, two: Float) -> Float:
    """(K,) inner products of the rows of two matrices."""
    found: Float = np.einsum("ij,ij->i", one, two)
    return found


def _hessians(X: Float, pairs: Float | None, rho: Float, costs: Float, inside: Flags, done: Flags) -> Float:
    """(K, p, p) H of each machine; of those that are done, the penalty alone."""
    p = X.shape[1]
    if pairs is not None:
        found: Float = ((inside * costs) @ pairs).reshape(-1, p, p)
    elif p <= _NARROW:
        found = np.array([(X.T * own) @ X for own in inside * costs])
    else:
        found = np.zeros((len(inside), p, p))
        for k in np.flatnonzero(~done):
            own = inside[k]
            rows = X[own] * np.sqrt(costs[own])[:, None]
            found[k] = rows.T @ rows  # half the arithmetic of two different factors
    _diagonals(found)[:] += rho
    return found


def _diagonals(matrices: Float) -> Float:
    """(K, p) a view."""
    K, p, _ = matrices.shape
    return matrices.reshape(K, p * p)[:, :: p + 1]


def _solved(matrices: Float, right: Float) -> Float:
    """The solutions of K systems, each scaled to a unit diagonal; not a number where a matrix has no factor."""
    diagonals = _diagonals(matrices)
    unit = 1.0 / np.sqrt(np.maximum(diagonals, _TINY))
    matrices *= unit[:, :, None]
    matrices *= unit[:, None, :]
    found = unit * right
    for k, matrix in enumerate(matrices):
        for shift in _SHIFTS:
            if shift:
                diagonals[k] = 1.0 + shift
            _, solution, failed = dposv(matrix, found[k], lower=1)
            if failed == 0:
                break
        found[k] = np.nan if failed else solution
    found *= unit
    return found


def _cut(
    rho: Float, point: tuple[Float, Float], step: tuple[Float, Float], costs: Float, promise: Float
) -> Float | None:
    """(K,) how far to go, where the slope along a step, at first −`promise`, turns upwards before its end; None: to its end."""
    (theta, margins), (change, turns) = point, step
    short, straight, curved = 1.0 - margins, theta * rho, change * rho

    def slope(t: Float) -> Float:
        far = t[:, None]
        return _rows_dot(straight + far * curved, change) - _rows_dot(
            costs * np.maximum(short - far * turns, 0.0), turns
        )

    t = np.ones(len(theta))
    downhill, found = _RISEN * np.abs(promise), slope(t)
    if (found <= downhill).all():
        return None
    low, high = 0.0 * t, t
    for _ in range(_CUTS):
        off = (np.abs(found) > downhill) & ((t < 1.0) | (found > 0.0))
        if not off.any():
            break
        high, low = np.where(off & (found > 0.0), t, high), np.where(off & (found <= 0.0), t, low)
        t = np.where(off, 0.5 * (low + high), t)
        found = np.where(off, slope(t), found)
    return t


def row_newton(gram: Float, signs: Float, price: Float, pull: float | None) -> Iterator[tuple[Float, float, Float]]:
    """(γ, b, α) step by step, until the optimum; `pull` is 0 for a free intercept and None where there is none."""
    n, costs = len(signs), 2.0 * price
    behind = max(1.0, float(costs @ gram.diagonal()) / n)  # C/c
    gamma, b, heights, inside = np.zeros(n), 0.0, np.zeros(n), None  # heights Kγ
    while True:
        margins = signs * (heights + b)
        now = margins < 1.0
        found = _row_solution(gram, np.flatnonzero(now), signs, costs / behind, pull)
        if found is None:
            return
        d_gamma, d_b = found[0] - gamma, found[1] - b
        changed = np.flatnonzero(d_gamma)
        d_heights = gram[:, changed] @ d_gamma[changed]
        turns = signs * (d_heights + d_b)
        # The slope along the step: what is quadratic, and what the rows inside the margin pull.
        fixed = float(gamma @ d_heights) + (pull or 0.0) * b * d_b
        bent = float(d_gamma @ d_heights) + (pull or 0.0) * d_b**2

        slope = partial(_slope, (fixed, bent), 1.0 - margins, turns, costs / behind)
        promise, t = -slope(0.0), 1.0
        value = 0.5 * float(gamma @ heights) + float(costs @ np.square(np.maximum(1.0 - margins, 0.0))) / (2.0 * behind)
        if behind > 1.0 and not promise > _NEAR * value:
            behind = max(1.0, behind / _GROWTH)
            continue
        low, high, there = 0.0, 1.0, slope(1.0)
        for _ in range(_CUTS):
            if abs(there) <= _RISEN * abs(promise) or (t == 1.0 and there <= 0.0):
                break
            low, high = (low, t) if there > 0.0 else (t, high)
            t = 0.5 * (low + high)
            there = slope(t)
        gamma, b, heights = gamma + t * d_gamma, b + t * d_b, heights + t * d_heights
        yield gamma, b, costs * np.maximum(1.0 - signs * (heights + b), 0.0)
        if t == 1.0 and behind == 1.0 and inside is not None and np.array_equal(now, inside):
            return
        inside = now if t == 1.0 and behind == 1.0 else None


def _slope(quadratic: tuple[float, float], short: Float, turns: Float, costs: Float, t: float) -> float:
    """Of F along a step."""
    fixed, bent = quadratic
    return fixed + t * bent - float((costs * np.maximum(short - t * turns, 0.0)) @ turns)


def _row_solution(
    gram: Float, at: NDArray[np.intp], signs: Float, costs: Float, pull: float | None
) -> tuple[Float, float] | None:
    """γ and b of the equations of the rows `at`; ``None`` where their matrix has no factor."""
    gamma, b = np.zeros(len(signs)), 0.0
    if len(at) == 0:
        return gamma, b
    matrix = gram[np.ix_(at, at)]
    diagonal = np.arange(len(at))
    matrix[diagonal, diagonal] += 1.0 / costs[at]
    size = np.sqrt(matrix[diagonal, diagonal])
    matrix /= size
    matrix /= size[:, None]
    for shift in _SHIFTS:
        matrix[diagonal, diagonal] = 1.0 + shift
        factor, failed = dpotrf(matrix, lower=1)
        if failed == 0:
            break
    else:
        return None
    right = np.column_stack([signs[at], np.ones(len(at))]) / size[:, None]
    both = dpotrs(factor, right, lower=1)[0]
    both = (both + dpotrs(factor, right - matrix @ both, lower=1)[0]) / size[:, None]
    if pull is not None:
        b = float(both[:, 0].sum()) / (float(both[:, 1].sum()) + pull)
    gamma[at] = both[:, 0] - b * both[:, 1]
    return gamma, b
