"""Small machines solved in NumPy, while a process has had too few of them for numba to pay.

The steps are those of kernels/support_vectors/machines.py, where the formulas are. What they cost is the number of calls, not
the arithmetic. Many machines take their first steps side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from separatrix.data.block import Float
from separatrix.dual.duality_gap import margin_intercept, soft_gap
from separatrix.dual.kernel_matrix import Index
from separatrix.dual.plain.free_rows import newton_on_free_rows
from separatrix.lazy import took_longer

# What a machine takes longer than compiled: seconds, seconds a step and a product of two rows. Side by side the rows of the
# largest count, and the entries of its step in all machines. Before the steps are known they are as many as rows.
_A_MACHINE, _A_STEP, _A_PRODUCT = 2e-4, 6e-6, 4e-9
_A_STEP_OF_ALL, _AN_ENTRY = 4e-5, 6e-9
# So many machines are solved side by side, with kernel values that are copied for it.
_SEVERAL, _COPIED = 20, 4_000_000
# Values that are copied by rows, then by columns, in half the time.
_FEW = 16_000
# Steps of pairs per row, turns of these and Newton's; terms of a score that are added in one run; a flat curvature.
_STEPS_A_ROW, _TURNS, _RUN, _FLAT = 10, 12, 32, 1e-14
# Guesses of which rows are free, rows up to which they are cheap, what is added to a diagonal of 1 for them; the least gain.
_GUESSES, _GUESSED, _RIDGE = 8, 300, 1e-10
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)

Given = tuple[Float, Index, Index, Float, Float, Float, Float, Float, Float]
"""K, rows, starts, signs, bounds, what rounding is reckoned by (`KernelMatrix.sizes`), and the rule of `solve_machines`."""
Filled = tuple[Float, Float, Float, Float]
"""β, scores, their errors, and numbers by machine."""


def expected_seconds(q: Index) -> float:
    """By how much machines of so many rows are likely to take longer than compiled."""
    return _seconds_more(q, q)


def solve_in_numpy(given: Given, filled: Filled, done: NDArray[np.bool_]) -> None:
    """Fill in the machines, from the first to one that does not meet the tolerance, and say which are `done`."""
    q, numbers = np.diff(given[2]), filled[3]
    begun = _begin_together(*given)
    for m in range(len(q)):
        done[m] = _solve_plainly(*given, m, *filled, None if begun is None else begun.of(m))
        if not done[m]:
            return
    took_longer(_seconds_more(q, numbers[:, 0]) - expected_seconds(q))


def _seconds_more(q: Index, steps: Float | Index) -> float:
    """By how much machines of so many rows, and steps, take longer than compiled."""
    seconds = float((_A_MACHINE + _A_PRODUCT * q * q).sum())
    if _beside(q):
        return seconds + float(steps.max()) * (_A_STEP_OF_ALL + _AN_ENTRY * float(q.sum()))
    return seconds + _A_STEP * float(steps.sum())


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
    values, v, point, steps = begun or _guessed(_values(K, here), y, low, high, polished)
    roots = _Roots(values)
    for _ in range(_TURNS):
        for _ in range(_STEPS_A_ROW):  # Newton's steps in between: each costs less than the pairs it saves
            taken = int(min(q if polished else _STEPS_A_ROW * q, limit - steps))
            steps += (done := _pairs(values, roots, v, point, low, high, goal, taken))
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


def _values(K: Float, rows: Index) -> Float:
    """Those of some rows; machines on all of them read them where they are."""
    if len(rows) == len(K):
        return K
    few = len(rows) * len(K) <= _FEW
    return K.take(rows, 0).take(rows, 1) if few else K[rows[:, None], rows]


def _guessed(values: Float, y: Float, low: Float, high: Float, positive: float) -> tuple[Float, Float, Float, int]:
    """Kernel values, y − Kβ, β and the steps to it: the rows at their bounds and the free ones are guessed and the guess
    corrected for all rows at once, as long as it gains (Hintermüller, Ito and Kunisch, 2002); β = 0 where it never does.
    """
    q, diagonal = len(y), values.diagonal() + _TINY
    v, beta, best, b, steps = y.copy(), np.zeros(q), 0.0, 0.0, 0
    v_, beta_ = v, beta
    # Where nearly all would begin at their bounds there is nothing to guess from.
    begun = positive and q <= _GUESSED and np.count_nonzero((high - low) * diagonal > 1.0 + _RIDGE) >= 2
    for _ in range(_GUESSES if begun else 0):
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


def _pairs(values: Float, roots: _Roots, v: Float, beta: Float, low: Float, high: Float, tol: float, limit: int) -> int:
    """Steps of pairs of rows, as in kernels/support_vectors/smo.py; how many. Changes `v` and `beta`.

    Of the rows that can rise v is kept, of those that can fall −v, and −∞ of the others: a step is a handful of calls, which
    is what it costs. The second row has the largest gain room²/curvature, hence the largest room over its root.
    """
    rising, falling = np.where(beta < high, v, -np.inf), np.where(beta > low, -v, -np.inf)
    b, lows, highs, taken = beta.tolist(), low.tolist(), high.tolist(), 0
    while taken < limit:
        i = int(rising.argmax())
        root, best = roots[i], float(rising[i])
        j = int(((falling + best) / root).argmax())
        room = best + float(falling[j])
        if not room > tol and not (room > 0.0 and best + float(falling.max()) > tol):
            break
        at, to, most, least = b[i], b[j], highs[i], lows[j]
        above, below = most - at, to - least
        step = min(room / float(root[j]) ** 2, above, below)
        change = values[i] - values[j]
        change *= step
        rising -= change
        falling += change
        # A variable that reaches its bound is put there exactly: whether it is free is decided by equality.
        b[i], b[j] = most if step == above else at + step, least if step == below else to - step
        if at == lows[i]:
            falling[i] = -rising[i]
        if to == highs[j]:
            rising[j] = -falling[j]
        if b[i] == most:
            rising[i] = -np.inf
        if b[j] == least:
            falling[j] = -np.inf
        taken += 1
    beta[:] = b
    np.copyto(v, rising, where=rising > -np.inf)
    np.copyto(v, -falling, where=(rising == -np.inf) & (falling > -np.inf))
    return taken


class _Roots(dict[int, Float]):
    """Of the curvatures Kᵢᵢ + Kⱼⱼ − 2Kᵢⱼ along the steps of a row and any other, made when it first moves."""

    def __init__(self, values: Float) -> None:
        super().__init__()
        self._values, self._diagonal = values, values.diagonal().copy()
        self._flat = max(_FLAT * float(np.abs(self._diagonal).max()), 1e-300)

    def __missing__(self, i: int) -> Float:
        curved = self._values[i] * -2.0
        curved += self._diagonal
        curved += self._diagonal[i]
        self[i] = found = np.sqrt(np.maximum(curved, self._flat, out=curved), out=curved)
        return found
