"""Machines whose kernel values are all at hand: each in one compiled call, with its proof, side by side on the threads.

A machine that is not solved within its steps is left to the working sets (working_set.py), which begin where it ended. While
the machines of a process are few and small, they are solved in NumPy, by the same steps, for which the formulas are in
kernels/support_vectors/machines.py: importing numba takes longer than they do. Several take their first steps side by side.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.duality_gap import margin_intercept, soft_gap
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.many_machines import KernelDuals
from separatrix.lazy import compiled_pays_by_now, took_longer
from separatrix.settings import one_blas_thread

# Rows of a machine that is solved whole, and of those that one call solves: an interrupt waits for the end of a call.
WHOLE, _CALL = 6000, 2000
# Rows for each rank from which one is low, and what the machine of a matrix of low rank costs (low_rank.py): multiplications
# for each row and square of its rank, and what its calls are worth.
_LOW, _LOW_RANK, _LOW_RANK_CALLS = 4, 12.0, 4e6
# Products of rows below which a second thread is not worth waking.
_ALONE = 100_000
# What a machine takes longer in NumPy than compiled: seconds, seconds a row (about one step) and a product. Side by side the
# rows of the largest count, and the entries of its step in all machines.
_A_MACHINE, _A_ROW, _A_PRODUCT = 3e-4, 1.2e-5, 4e-9
_A_ROW_OF_ALL, _AN_ENTRY = 4e-5, 6e-9
# So many machines are solved side by side, with kernel values that are copied for it.
_SEVERAL, _COPIED = 5, 4_000_000
# In NumPy: steps of pairs per row, Newton's steps, turns of both; terms of a score that are added in one run; a flat curvature.
_STEPS_A_ROW, _NEWTON_STEPS, _TURNS, _RUN, _FLAT = 10, 40, 12, 32, 1e-14
# Guesses of which rows are free, rows up to which they are cheap, what is added to a diagonal of 1 for them; the least gain.
_GUESSES, _GUESSED, _RIDGE = 8, 300, 1e-10
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
    limit = min(1e18 if max_steps is None else max_steps, _enough(matrix, int(np.diff(starts).max()), duals.sure))
    rule = np.array([tol, limit, bool(duals.sure)])
    given = (values, rows, starts, splits.signs[part], bound, np.array([rho for rho, _ in terms]), reach, size, rule)
    filled = (duals.beta[part], duals.scores[part], duals.errors[part], numbers)
    done = np.zeros(len(numbers), dtype=np.bool_)
    expected, begin = _seconds_more(np.diff(starts)), time.perf_counter()
    if not compiled_pays_by_now(expected):
        try:
            begun = _begin_together(*given)
            for m in range(len(numbers)):
                done[m] = _solve_plainly(*given, m, *filled, None if begun is None else begun.of(m))
                if not done[m]:
                    break
        except KeyboardInterrupt:
            return done
        took_longer(time.perf_counter() - begin - expected)
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


def _enough(matrix: KernelMatrix, q: int, positive: bool | None) -> float:
    """Steps of a machine of q rows that cost as much as that of a matrix of low rank, where it is known to be low."""
    rank = matrix.rank
    return max(q, _LOW_RANK * rank**2 + _LOW_RANK_CALLS / q) if positive and q >= _LOW * rank else np.inf


def _calls(starts: Index) -> list[tuple[int, int]]:
    """Machines from … to for each call."""
    calls, first, ends = [], 0, starts.tolist()
    for m in range(1, len(ends)):
        if m + 1 == len(ends) or ends[m + 1] - ends[first] > _CALL:
            calls.append((first, m))
            first = m
    return calls


def _seconds_more(q: Index) -> float:
    """By how much machines of so many rows take longer in NumPy than compiled."""
    seconds = float((_A_MACHINE + _A_PRODUCT * q * q).sum())
    return seconds + (float(q.max() * (_A_ROW_OF_ALL + _AN_ENTRY * q.sum())) if _beside(q) else _A_ROW * float(q.sum()))


def _beside(q: Index) -> bool:
    """Whether machines of so many rows are solved side by side."""
    return len(q) >= _SEVERAL and len(q) * int(q.max()) ** 2 <= _COPIED


@dataclass(frozen=True)
class _Begun:
    """Machines after their first steps of pairs: kernel values (M, q, q), y − Kβ and β (M, q), numbers of rows and of steps."""

    values: Float
    v: Float
    beta: Float
    rows: Index
    steps: Index

    def of(self, m: int) -> tuple[Float, Float, Float, int]:
        """One of them."""
        q = int(self.rows[m])
        return self.values[m, :q, :q], self.v[m, :q].copy(), self.beta[m, :q].copy(), int(self.steps[m])


def _begin_together(
    K: Float,
    rows: Index,
    starts: Index,
    signs: Float,
    bound: Float,
    _rho: Float,
    _reach: Float,
    _size: Float,
    rule: Float,
) -> _Begun | None:
    """The first steps of pairs of all machines, side by side; ``None`` where they are few or too large."""
    q = np.diff(starts)
    if not _beside(q):
        return None
    inside = np.arange(q.max()) < q[:, None]
    here, y, price = np.zeros(inside.shape, dtype=np.intp), np.zeros(inside.shape), np.zeros(inside.shape)
    here[inside], y[inside], price[inside] = rows, signs, bound[rows]  # a row of padding has no room to move in
    values, v, beta = K[here[:, :, None], here[:, None, :]], y.copy(), np.zeros(y.shape)
    low, high = np.where(y > 0, 0.0, -price), np.where(y > 0, price, 0.0)
    limits = np.minimum(_STEPS_A_ROW * q, rule[1])
    return _Begun(values, v, beta, q, _pairs_of_all(values, inside, v, beta, low, high, 0.5 * float(rule[0]), limits))


def _pairs_of_all(
    values: Float, inside: NDArray[np.bool_], v: Float, beta: Float, low: Float, high: Float, tol: float, limits: Float
) -> Index:
    """The steps of `_pairs`, a step of every machine at a time; how many each took. Changes `v` and `beta`."""
    diagonal = np.where(inside, values.diagonal(axis1=1, axis2=2), 0.0)
    flat = np.maximum(_FLAT * np.abs(diagonal).max(axis=1), 1e-300)
    taken, left, steps = 0, np.arange(len(v)), np.zeros(len(v), dtype=np.intp)
    own: tuple[Float, ...] = (
        v,
        beta,
        low,
        high,
        diagonal,
        np.where(beta < high, 0.0, -np.inf),
        np.where(beta > low, 0.0, -np.inf),
    )
    while True:
        v_, beta_, low_, high_, diagonal_, up, down = own
        all_, flat_ = np.arange(len(left)), flat[left]
        rising = v_ + up
        i = rising.argmax(axis=1)
        room = rising[all_, i][:, None] + (down - v_)
        first, corner = values[left, i], diagonal_[all_, i]
        curved = np.maximum(diagonal_ + (corner[:, None] - 2.0 * first), 0.0) + flat_[:, None]
        gains = room * np.abs(room) / curved
        j = gains.argmax(axis=1)
        going = (room.max(axis=1) > tol) & (gains[all_, j] > 0.0) & (taken < limits[left])
        if not going.all():
            ended = left[~going]
            steps[ended], v[ended], beta[ended] = taken, v_[~going], beta_[~going]
            left, own = left[going], tuple(array[going] for array in own)
            if not len(left):
                return steps
            continue
        above, below = high_[all_, i] - beta_[all_, i], beta_[all_, j] - low_[all_, j]
        curvature = np.maximum(corner + diagonal_[all_, j] - 2.0 * first[all_, j], flat_)
        step = np.minimum(np.minimum(room[all_, j] / curvature, above), below)
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        beta_[all_, i] = np.where(step == above, high_[all_, i], beta_[all_, i] + step)
        beta_[all_, j] = np.where(step == below, low_[all_, j], beta_[all_, j] - step)
        for t in (i, j):
            up[all_, t] = np.where(beta_[all_, t] < high_[all_, t], 0.0, -np.inf)
            down[all_, t] = np.where(beta_[all_, t] > low_[all_, t], 0.0, -np.inf)
        v_ -= step[:, None] * (first - values[left, j])
        taken += 1


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
    begun: tuple[Float, Float, Float, int] | None,
) -> bool:
    """Fill in machine m as the compiled loop does; whether it met the tolerance, without which nothing is filled in.

    `begun` has its kernel values, y − Kβ and β after the first steps of pairs, and how many they were.
    """
    part = slice(int(starts[m]), int(starts[m + 1]))
    here, y, (tol, limit, polished) = rows[part], signs[part], rule.tolist()
    price, sizes = bound[here], size[here]
    low, high = np.where(y > 0, 0.0, -price), np.where(y > 0, price, 0.0)
    q, best, before, goal = len(y), np.inf, np.inf, 0.5 * tol
    values, v, point, steps = begun or _guessed(K[np.ix_(here, here)], y, low, high, polished)
    for _ in range(_TURNS):
        for _ in range(_STEPS_A_ROW):  # Newton's steps in between: each costs less than the pairs it saves
            taken = int(min(q if polished else _STEPS_A_ROW * q, limit - steps))
            steps += (done := _pairs(values, v, point, low, high, goal, taken))
            if polished:
                steps += newton_on_free_rows(values, v, point, low, high, int(limit - steps))
            if done < taken or steps >= limit or not polished:
                break
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


def _guessed(values: Float, y: Float, low: Float, high: Float, positive: float) -> tuple[Float, Float, Float, int]:
    """Kernel values, y − Kβ, β and the steps to it: the rows at their bounds and the free ones are guessed and the guess
    corrected for all rows at once, as long as it gains (Hintermüller, Ito and Kunisch, 2002); β = 0 where it never does.
    """
    q, diagonal = len(y), values.diagonal() + _TINY
    v, beta, best, b, steps = y.copy(), np.zeros(q), 0.0, 0.0, 0
    v_, beta_ = v, beta
    for _ in range(_GUESSES if positive and q <= _GUESSED else 0):
        reached = beta_ + (v_ - b) / diagonal
        fixed = np.where(reached <= low, low, np.where(reached >= high, high, 0.0))
        free = np.flatnonzero((reached > low) & (reached < high))
        if len(free) < 2:
            break
        matrix = values[np.ix_(free, free)]
        matrix.flat[:: len(free) + 1] *= 1.0 + _RIDGE
        factor, failed = dpotrf(matrix, lower=1)
        if failed:
            break
        right = np.column_stack([(y - values @ fixed)[free], np.ones(len(free))])
        own, ones = dpotrs(factor, right, lower=1)[0].T
        b = float(own.sum() + fixed.sum()) / float(ones.sum())
        fixed[free] = own - b * ones
        beta_ = _balanced(np.clip(fixed, low, high), low, high)
        v_, steps = y - values @ beta_, steps + 1
        gain = float(beta_ @ (y + v_))
        if not gain > best * (1.0 + _RIDGE):
            break
        v, beta, best = v_, beta_.copy(), gain
    return values, v, beta, steps


def _balanced(beta: Float, low: Float, high: Float) -> Float:
    """β with Σβ = 0, by a share of the room that each has."""
    excess = float(beta.sum())
    room = beta - low if excess > 0 else high - beta
    total = float(room.sum())
    return np.clip(beta - excess / total * room, low, high) if total > 0 else beta


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


def newton_on_free_rows(
    K: Float, v: Float, beta: Float, low: Float, high: Float, limit: int, split: int | None = None
) -> int:
    """Newton's steps on the free variables alone, at most `limit`, each as far as the first bound; how many were taken.

    K d + μ1 = v, Σd = 0 on the free rows. With the last of them eliminated, d_r = −Σd, it is
    (K_ij − K_ir − K_rj + K_rr) d = v_i − v_r, whose solution keeps the sum to rounding however singular K is. The objective
    rises along each step. One factorisation, O(q³), for each variable that reaches its bound. `v` and `beta` are changed.
    With `split` the rows before it and those from it on keep their sums each, and the last of each are eliminated.
    """
    for taken in range(most := min(_NEWTON_STEPS, limit)):
        free = np.flatnonzero((beta > low) & (beta < high))
        side = np.zeros(len(free), dtype=np.intp) if split is None else (free >= split).astype(np.intp)
        last = np.flatnonzero(np.diff(side, append=2))
        rest, ends, own = (
            np.delete(free, last),
            free[last],
            np.searchsorted(last, np.delete(np.arange(len(free)), last)),
        )
        if not len(rest):
            return taken
        edge = K[np.ix_(rest, ends)][:, own]
        block = K[np.ix_(rest, rest)] - edge - edge.T + K[np.ix_(ends, ends)][np.ix_(own, own)]
        shift = 1e-12 * float(np.trace(block)) / len(rest) + np.finfo(np.float64).tiny
        block[np.diag_indices(len(rest))] += shift
        with one_blas_thread():
            factor, failed = dpotrf(block, lower=1, overwrite_a=1)
            part = None if failed else dpotrs(factor, v[rest] - v[ends[own]], lower=1)[0]
        if part is None:
            return taken
        step = np.insert(part, last - np.arange(len(last)), -np.bincount(own, part, len(last)))
        if not np.isfinite(step).all() or not float(step @ v[free]) > 0:
            return taken
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(step > 0, high[free], low[free])
            room = np.where(step != 0, (ends - beta[free]) / step, np.inf)
        first = int(np.argmin(room))
        length = min(1.0, float(room[first]))
        moved = np.clip(beta[free] + length * step, low[free], high[free])
        if length < 1.0:
            moved[first] = ends[first]
        v -= K[:, free] @ (moved - beta[free])
        beta[free] = moved
        if length == 1.0:
            return taken + 1
    return max(0, most)
