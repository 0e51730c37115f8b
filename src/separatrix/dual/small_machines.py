"""Machines whose kernel values are all at hand: each in one compiled call, with its proof, side by side on the threads.

A machine that is not solved within its steps is left to the working sets (working_set.py), which begin where it ended. While
the machines of a process are few and small, they are solved in NumPy, by the same steps, for which the formulas are in
kernels/support_vectors/machines.py: importing numba takes longer than they do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.duality_gap import margin_intercept, soft_gap
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.many_machines import KernelDuals
from separatrix.lazy import compiled_pays_by_now

# Rows of a machine that is solved whole, and of those that one call solves: an interrupt waits for the end of a call.
WHOLE, _CALL = 6000, 2000
# Products of rows below which a second thread is not worth waking.
_ALONE = 100_000
# What a machine takes longer in NumPy than compiled: seconds, seconds a row (about one step) and a product.
_A_MACHINE, _A_ROW, _A_PRODUCT = 3e-4, 1.2e-5, 4e-9
# In NumPy: steps of pairs per row, Newton's steps, turns of both; terms of a score that are added in one run; a flat curvature.
_STEPS_A_ROW, _NEWTON_STEPS, _TURNS, _RUN, _FLAT = 10, 40, 12, 32, 1e-14
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def solve_together(
    matrix: KernelMatrix, bound: Float, duals: KernelDuals, one: int | None, *, tol: float, max_steps: int | None
) -> NDArray[np.bool_]:
    """Fill in the machines on the rows of the matrix, all of whose values are at hand, as far as they come; which were not
    left without a step by an interrupt. `bound` is C of all rows of the matrix; with `one` it is the matrix of the rows of
    that machine.
    """
    values, (terms, size) = matrix.values, matrix.sizes
    assert values is not None
    splits = duals.splits
    part = slice(None) if one is None else splits.part(one)
    numbers = duals.numbers if one is None else duals.numbers[one : one + 1]
    rows = splits.rows if one is None else np.arange(part.stop - part.start)
    starts = splits.starts if one is None else np.array([0, len(rows)])
    reach = np.array([t for _, t in terms]).reshape(len(terms), len(size))
    rule = np.array([tol, 1e18 if max_steps is None else max_steps, bool(duals.sure)])
    given = (values, rows, starts, splits.signs[part], bound, np.array([rho for rho, _ in terms]), reach, size, rule)
    filled = (duals.beta[part], duals.scores[part], duals.errors[part], numbers)
    done = np.zeros(len(numbers), dtype=np.bool_)
    q = np.diff(starts)
    if not compiled_pays_by_now(float((_A_MACHINE + q * (_A_ROW + _A_PRODUCT * q)).sum())):
        try:
            for m in range(len(numbers)):
                done[m] = _solve_plainly(*given, m, *filled)
                if not done[m]:
                    break
        except KeyboardInterrupt:
            return done
        if done.all():
            return done
    from separatrix.kernels.support_vectors.machines import solve_machines  # numba takes a while to import

    def solve(call: tuple[int, int]) -> None:
        solve_machines(*given, *call, *filled)
        done[call[0] : call[1]] = True

    try:
        if float(np.square(np.diff(starts)).sum()) < _ALONE:
            solve((0, len(numbers)))
        else:
            in_parallel(solve, _calls(starts))
    except KeyboardInterrupt:
        pass
    return done


def _calls(starts: Index) -> list[tuple[int, int]]:
    """Machines from … to for each call."""
    calls, first, ends = [], 0, starts.tolist()
    for m in range(1, len(ends)):
        if m + 1 == len(ends) or ends[m + 1] - ends[first] > _CALL:
            calls.append((first, m))
            first = m
    return calls


def _solve_plainly(
    K: Float,
    rows: Index,
    starts: Index,
    signs: Float,
    bound: Float,
    rho: Float,
    reach: Float,
    size: Float,
    rule: Float,
    m: int,
    beta: Float,
    scores: Float,
    errors: Float,
    found: Float,
) -> bool:
    """Fill in machine m as the compiled loop does; whether it met the tolerance, without which nothing is filled in."""
    part = slice(int(starts[m]), int(starts[m + 1]))
    here, y, (tol, limit, polished) = rows[part], signs[part], rule.tolist()
    values, price, sizes = K[np.ix_(here, here)], bound[here], size[here]
    low, high = np.where(y > 0, 0.0, -price), np.where(y > 0, price, 0.0)
    q, point, steps, best, before, goal = len(y), np.zeros(len(y)), 0, np.inf, np.inf, 0.5 * tol
    v = y.copy()
    for _ in range(_TURNS):
        steps += _pairs(values, v, point, low, high, goal, int(min(_STEPS_A_ROW * q, limit - steps)))
        if polished:
            steps += _free_steps(values, v, point, low, high, int(min(_NEWTON_STEPS, limit - steps)))
        room = 4.0 * _EPS * (high - low)  # rounding alone keeps such a variable from its bound
        point = np.where(point - low <= room, low, np.where(high - point <= room, high, point))
        fresh, support = _scores(values, point)
        v = y - fresh
        violation = float(v[point < high].max(initial=-np.inf) - v[point > low].min(initial=np.inf))
        if violation <= best:
            best, b, f, used = violation, point, fresh, support
        least = 16.0 * _EPS * max(1.0, float(sizes.max()) * float(sizes @ np.abs(point)))
        if steps >= limit or violation <= least or (best <= tol and (not polished or violation > 0.5 * before)):
            break
        before, goal = violation, 0.5 * tol if violation > 0.5 * tol else max(least, 0.01 * violation)
        point = point.copy()
    if not best <= tol:
        return False
    weight = float(sizes @ np.abs(b))
    e = (_RUN + used // _RUN + 3) * _EPS * weight * sizes
    for p in range(len(rho)):
        e = e + rho[p] * float(reach[p, here] @ np.abs(b)) * reach[p, here]
    intercept = margin_intercept(b, y - f, low, high)
    proof: tuple[Any, ...] = soft_gap(y, price, b, f, e, intercept, float(np.square(sizes).max()))
    beta[part], scores[part], errors[part] = b, f, e
    found[m, :8] = (steps, best, intercept, *proof)
    return True


def _scores(values: Float, beta: Float) -> tuple[Float, int]:
    """Kβ in runs of few additions, and how many support vectors there are."""
    support = np.flatnonzero(beta)
    scores = np.zeros(len(beta))
    for at in range(0, len(support), _RUN):
        run = support[at : at + _RUN]
        scores += beta[run] @ values[run]
    return scores, len(support)


def _pairs(values: Float, v: Float, beta: Float, low: Float, high: Float, tol: float, limit: int) -> int:
    """Steps of pairs of rows, as in kernels/support_vectors/smo.py; how many. Changes `v` and `beta`."""
    diagonal = values.diagonal().copy()
    flat = max(_FLAT * float(np.abs(diagonal).max()), 1e-300)
    up, down = np.where(beta < high, 0.0, -np.inf), np.where(beta > low, 0.0, -np.inf)
    for taken in range(limit):
        rising, falling = v + up, down - v
        i = int(rising.argmax())
        best = rising[i]
        if not best + falling.max() > tol:
            return taken
        room, first = best + falling, values[i]
        gains = room * np.abs(room) / (np.maximum(diagonal + (diagonal[i] - 2.0 * first), 0.0) + flat)
        j = int(gains.argmax())
        if not gains[j] > 0.0:
            return taken
        above, below = float(high[i] - beta[i]), float(beta[j] - low[j])
        step = min(float(room[j]) / max(float(diagonal[i] + diagonal[j] - 2.0 * first[j]), flat), above, below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta[i] = high[i] if step == above else beta[i] + step
        beta[j] = low[j] if step == below else beta[j] - step
        for t in (i, j):
            up[t] = 0.0 if beta[t] < high[t] else -np.inf
            down[t] = 0.0 if beta[t] > low[t] else -np.inf
        v -= step * (first - values[j])
    return limit


def _free_steps(values: Float, v: Float, beta: Float, low: Float, high: Float, limit: int) -> int:
    """Newton's steps on the free rows, each as far as the first bound; how many. Changes `v` and `beta`."""
    for taken in range(limit):
        free = np.flatnonzero((beta > low) & (beta < high))
        if len(free) < 2:
            return taken
        rest, last = free[:-1], free[-1]
        away = values[last, rest]
        matrix = values[np.ix_(rest, rest)] - away + (values[last, last] - away)[:, None]
        matrix[np.diag_indices(len(rest))] += 1e-12 * np.trace(matrix) / len(rest) + _TINY
        right = v[rest] - v[last]
        try:
            step = cho_solve(cho_factor(matrix, lower=True, check_finite=False), right, check_finite=False)
        except np.linalg.LinAlgError:
            return taken
        slope = float(step @ right)
        if not (np.isfinite(slope) and slope > 0.0):
            return taken
        d = np.append(step, -step.sum())
        bounds = np.where(d > 0.0, high[free], low[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(d == 0.0, np.inf, (bounds - beta[free]) / d)
        first = int(lengths.argmin())
        length = min(1.0, float(lengths[first]))
        moved = np.clip(beta[free] + length * d, low[free], high[free])
        if length < 1.0:
            moved[first] = bounds[first]
        v -= (moved - beta[free]) @ values[free]
        beta[free] = moved
        if length == 1.0:
            return taken + 1
    return limit
