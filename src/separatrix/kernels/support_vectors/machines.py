"""Many small soft-margin machines on one kernel matrix, each from β = 0 to its proof, without a return to Python.

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0,   βᵢ = ỹᵢαᵢ,  0 ≤ αᵢ ≤ Cᵢ              f = Kβ,  v = ỹ − f

Pairs of rows (smo.py) take turns with Newton's steps on the free rows, 0 < α < C: with the last of them, r, eliminated,

    (Kᵢⱼ − Kᵢᵣ − Kᵣⱼ + Kᵣᵣ) d = vᵢ − vᵣ,   d_r = −Σd,        as far as the first bound

which keeps the sum to rounding however singular K is. After every turn the scores are computed afresh; turns end when rounding
leaves nothing to gain, so that the answer does not depend on the path to it.

**Complexity** O(q) per pair, O(f³) per Newton step on f free rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.smo import need, neighbours, smo
from separatrix.kernels.support_vectors.soft_margin import margin_intercept, soft_gap

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# Terms of a score that are added one after the other before they are added to the others.
_RUN = 32
# Steps of pairs per row between two turns of Newton's, turns until the tolerance is met, and turns in all.
_STEPS_A_ROW, _TURNS, _ALL_TURNS = 20, 4, 24
_NEWTON_STEPS, _FREE = 40, 1000
# The violation from which Newton's steps are tried first, where one of them costs less than the pairs that led there.
_EARLY = 0.02
# Multiplications that a turn of pairs, and one of Newton's steps, may take: an interrupt waits for the end of a machine.
_PAIRS_WORK, _NEWTON_WORK = 4e7, 4e8


@compiled(error_model="numpy")
def _scores(values: Any, beta: Any, scores: Any, part: Any) -> Any:
    """scores = Kβ in runs of few additions; how many support vectors there are. Their rows of `values` must be known."""
    scores[:] = 0.0
    part[:] = 0.0
    support = 0
    for j in range(len(beta)):
        if beta[j] != 0.0:
            b, row = beta[j], values[j]
            for t in range(len(scores)):
                part[t] += b * row[t]
            support += 1
            if support % _RUN == 0:
                for t in range(len(scores)):
                    scores[t] += part[t]
                    part[t] = 0.0
    for t in range(len(scores)):
        scores[t] += part[t]
    return support


@compiled()
def _violation(v: Any, beta: Any, low: Any, high: Any) -> Any:
    top, bottom = -np.inf, np.inf
    for t in range(len(v)):
        if beta[t] < high[t]:
            top = max(top, v[t])
        if beta[t] > low[t]:
            bottom = min(bottom, v[t])
    return top - bottom


@compiled(fastmath={"reassoc", "contract"}, error_model="numpy")
def _substituted(factor: Any, right: Any) -> Any:
    """x with LLᵀx = `right`; L is stored by columns."""
    f = len(right)
    x = right.copy()
    for a in range(f):
        column = factor[:, a]
        x[a] /= column[a]
        own = x[a]
        for b in range(a + 1, f):
            x[b] -= own * column[b]
    for a in range(f - 1, -1, -1):
        column, total = factor[:, a], 0.0
        for b in range(a + 1, f):
            total += column[b] * x[b]
        x[a] = (x[a] - total) / column[a]
    return x


@compiled(error_model="numpy")
def _free_matrix(K: Any, rows: Any, values: Any, known: Any, cut: Any, free: Any) -> Any:
    """Kᵢⱼ − Kᵢᵣ − Kᵣⱼ + Kᵣᵣ of the free rows, the last of which is r, with rounding added to the diagonal."""
    f, last, trace = len(free), free[-1], 0.0
    need(last, K, rows, values, known, cut)
    corner, away, matrix = values[last], np.empty(f - 1), np.empty((f - 1, f - 1))
    for a in range(f - 1):
        away[a] = corner[free[a]]
    for a in range(f - 1):
        need(free[a], K, rows, values, known, cut)
        row, out = values[free[a]], matrix[a]
        shift = corner[last] - away[a]
        for b in range(f - 1):
            out[b] = row[free[b]] - away[b] + shift
        trace += out[a]
    for a in range(f - 1):
        size = abs(values[free[a], free[a]]) + abs(corner[last])
        matrix[a, a] += 1e-12 * min(trace / (f - 1), size) + _TINY
    return matrix


@compiled(error_model="numpy")
def free_steps(
    K: Any,
    rows: Any,
    values: Any,
    known: Any,
    cut: Any,
    v: Any,
    beta: Any,
    low: Any,
    high: Any,
    limit: Any,
    held: Any,
    factor: Any,
) -> tuple[Any, Any]:
    """Newton's steps on the free rows, at most `limit`, each as far as the first bound; how many. Changes `v` and `beta`.

    `factor` is that of the rows in `held`, which both become those of the last step: while the same rows are free it serves.
    """
    q = len(v)
    free = np.empty(q, np.intp)
    for taken in range(min(_NEWTON_STEPS, limit)):
        f = 0
        for t in range(q):
            if low[t] < beta[t] < high[t]:
                free[f] = t
                f += 1
        if f < 2 or f > _FREE or (taken > 0 and taken * float(f) ** 3 > _NEWTON_WORK):
            return taken, factor
        shortest = f - 1
        for a in range(f - 2, -1, -1):
            if abs(K[rows[free[a]], rows[free[a]]]) < abs(K[rows[free[shortest]], rows[free[shortest]]]):
                shortest = a
        last = free[shortest]
        for a in range(shortest, f - 1):
            free[a] = free[a + 1]
        free[f - 1] = last
        if len(factor) != f - 1 or not np.array_equal(held[:f], free[:f]):
            try:
                factor = np.linalg.cholesky(_free_matrix(K, rows, values, known, cut, free[:f]))
            except Exception:  # a matrix that is not positive definite: compiled code knows no other name for it
                return taken, factor
            held[:f] = free[:f]
        right = np.empty(f - 1)
        for a in range(f - 1):
            right[a] = v[free[a]] - v[last]
        step = _substituted(factor, right)
        total, slope, length, first = 0.0, 0.0, 1.0, -1
        for a in range(f - 1):
            total -= step[a]
            slope += step[a] * right[a]
        if not (np.isfinite(slope) and slope > 0.0):
            return taken, factor
        for a in range(f):
            d, i = (step[a] if a < f - 1 else total), free[a]
            if d != 0.0:
                room = ((high[i] if d > 0.0 else low[i]) - beta[i]) / d
                if room < length:
                    length, first = room, a
        for a in range(f):
            d, i = (step[a] if a < f - 1 else total), free[a]
            moved = min(max(beta[i] + length * d, low[i]), high[i])
            if a == first:
                moved = high[i] if d > 0.0 else low[i]
            change, row = moved - beta[i], values[i]
            beta[i] = moved
            for t in range(q):
                v[t] -= change * row[t]
        if first < 0:
            return taken + 1, factor
    return min(_NEWTON_STEPS, limit), factor


@compiled(error_model="numpy")
def solve_machine(
    K: Any,
    rows: Any,
    values: Any,
    known: Any,
    cut: Any,
    signs: Any,
    low: Any,
    high: Any,
    beta: Any,
    scores: Any,
    size: Any,
    rule: Any,
) -> tuple[Any, Any, Any]:
    """(steps, violation, support vectors) of one machine, whose β and scores are filled in."""
    tol, limit, polished = rule[0], int(rule[1]), rule[2] > 0.0
    q = len(signs)
    v, point, part, fresh = signs.copy(), np.zeros(q), np.empty(q), np.zeros(q)
    best, before, steps, support, goal = np.inf, np.inf, 0, 0, 0.5 * tol
    most = min(_STEPS_A_ROW * q, max(q, int(_PAIRS_WORK / q)))
    held, factor = np.empty(q, np.intp), np.empty((0, 0)).T
    if goal < _EARLY:
        steps, _ = smo(K, rows, values, known, cut, v, point, low, high, _EARLY, min(most, limit))
        free = 0
        for t in range(q):
            free += low[t] < point[t] < high[t]
        if polished and float(free) ** 3 <= float(steps) * q:
            taken, factor = free_steps(K, rows, values, known, cut, v, point, low, high, limit - steps, held, factor)
            steps += taken
    for turn in range(_ALL_TURNS):
        taken, left = smo(K, rows, values, known, cut, v, point, low, high, goal, min(most, limit - steps))
        steps += taken
        if polished or left > goal:
            taken, factor = free_steps(K, rows, values, known, cut, v, point, low, high, limit - steps, held, factor)
            steps += taken
        for j in range(q):
            room = 4.0 * _EPS * (high[j] - low[j])  # rounding alone keeps such a variable from its bound
            if point[j] != low[j] and point[j] - low[j] <= room:
                point[j] = low[j]
            elif point[j] != high[j] and high[j] - point[j] <= room:
                point[j] = high[j]
            if point[j] != 0.0:
                need(j, K, rows, values, known, cut)
        used = _scores(values, point, fresh, part)
        largest = 0.0
        for t in range(q):
            v[t] = signs[t] - fresh[t]
            largest = max(largest, size[rows[t]])
        found = _violation(v, point, low, high)
        if not found > best or turn == 0:
            best, support = found, used
            beta[:] = point
            scores[:] = fresh
        # No violation is known to more digits than the sums it is made of.
        weight = 0.0
        for t in range(q):
            weight += size[rows[t]] * abs(point[t])
        least = 16.0 * _EPS * max(1.0, largest * weight)
        if steps >= limit or not found > least or (best <= tol and (not polished or found > 0.5 * before)):
            break
        if best > tol and turn + 1 >= _TURNS:
            break
        before, goal = found, 0.5 * tol if found > 0.5 * tol else max(least, 0.01 * found)
    return steps, best, support


@compiled(error_model="numpy")
def solve_machines(
    K: Any,
    rows: Any,
    starts: Any,
    signs: Any,
    bound: Any,
    rho: Any,
    reach: Any,
    size: Any,
    rule: Any,
    first: Any,
    last: Any,
    beta: Any,
    scores: Any,
    errors: Any,
    found: Any,
) -> None:
    """Fill in β, scores, their errors and `found` of the machines first … last, of which m has starts[m] … starts[m + 1].

    `rule` is (tol, limit on steps, whether to polish); `rho` (p,), `reach` (p, n) and `size` (n,) are those of
    dual/rounding.py. found[m] is (steps, violation, intercept, gap, primal objective, |Σβ|, complementary slackness, βᵀf).
    """
    widest = 0
    for m in range(first, last):
        if starts[m + 1] - starts[m] < len(K):
            widest = max(widest, starts[m + 1] - starts[m])
    room = np.empty(widest * widest)
    for m in range(first, last):
        a, z = starts[m], starts[m + 1]
        q, here, y = z - a, rows[a:z], signs[a:z]
        # Machines on all rows read them where they are.
        values, known = room[: q * q].reshape(q, q) if q < len(K) else K, np.full(q, q == len(K))
        low, high, price = np.zeros(q), np.zeros(q), np.empty(q)
        for t in range(q):
            price[t] = bound[here[t]]
            if y[t] > 0.0:
                high[t] = price[t]
            else:
                low[t] = -price[t]
        b, f, e = beta[a:z], scores[a:z], errors[a:z]
        steps, violation, support = solve_machine(
            K, here, values, known, neighbours(here), y, low, high, b, f, size, rule
        )
        weight, largest = 0.0, 0.0
        for t in range(q):
            weight += size[here[t]] * abs(b[t])
            largest = max(largest, size[here[t]] ** 2)
        additions = _RUN + support // _RUN + 3
        for t in range(q):
            e[t] = additions * _EPS * weight * size[here[t]]
        for p in range(len(rho)):
            total = 0.0
            for t in range(q):
                total += reach[p, here[t]] * abs(b[t])
            for t in range(q):
                e[t] += rho[p] * total * reach[p, here[t]]
        intercept = margin_intercept(b, y - f, low, high)
        gap, primal, excess, complementary, length = soft_gap(y, price, b, f, e, intercept, largest)
        found[m, 0], found[m, 1], found[m, 2], found[m, 3] = steps, violation, intercept, gap
        found[m, 4], found[m, 5], found[m, 6], found[m, 7] = primal, excess, complementary, length
