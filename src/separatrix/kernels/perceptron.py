"""The perceptron's visits to a run of rows, and keys of rows by what they hold.

    f = c·vᵀx + b,  w = c·v        t f ≤ 0:   v ← v + (η s t / c) x,   b ← b + η s t ℓ²
    before it, c ← c·shrink        (L2: shrink = 1 − (1−ρ)ηα)
    after it, for every entry of the row: |w_j| is lowered to where a penalty of a = ρηα a visit has by now (L1)

    Σ_visits s w = m + A v,        A = Σ s c,   m ← m − A Δv whenever v changes: O(entries of the row)

c, b and the sums are fields of the record `state`, see `separatrix.online.machine`. Dense rows come as one flat array,
sparse ones as the three arrays of a CSR matrix. Scores are summed in an order that the compiler fixes, so answers have the same
bits each time.

Reference: Tsuruoka, Tsujii, Ananiadou (2009), ACL, figure 2 (L1 by cumulative penalties); Freund and Schapire (1999),
Machine Learning 37 (averages); Gallant (1990), IEEE Transactions on Neural Networks 1 (runs of correct rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.support_vectors.prefetch import fetch_row

# Below this scale it is put back into the vector. Sums over visits lose the digits that v = w/c has more than w.
_TINY, _SMALL = 1e-9, 1e-3
# A score decides by its sign: the order of its sum, and products rounded once with it, make no difference that matters.
REORDERED = {"reassoc", "contract", "nsz"}
"""Options of loops that sum scores."""
# A sparse row is asked for while so many before it are visited, unless so few entries are in cache anyway: then to ask takes
# longer than the visit.
_AHEAD, _IN_CACHE = 2, 500_000
_EXPONENT_AND_FRACTION = np.uint64(0x7FFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled(fastmath=REORDERED)
def _dense_score(row: Any, v: Any) -> Any:
    score = 0.0
    for j in range(len(row)):
        score += v[j] * row[j]
    return score


@compiled()
def _sparse_score(data: Any, indices: Any, first: Any, last: Any, v: Any) -> Any:
    """In the order of the entries: a compiler that may change it gathers entries of v, which takes longer."""
    score = 0.0
    for p in range(first, last):
        score += v[np.uint64(indices[p])] * data[p]
    return score


@compiled()
def shuffle(order: Any, salt: Any) -> None:
    """Put things in the random order of `shuffled`."""
    state = salt
    for i in range(len(order) - 1, 0, -1):
        state += _GOLDEN
        z = (state ^ (state >> np.uint64(30))) * _ONE
        z = (z ^ (z >> np.uint64(27))) * _TWO
        j = np.int64(((z ^ (z >> np.uint64(31))) >> np.uint64(32)) * np.uint64(i + 1) >> np.uint64(32))
        order[i], order[j] = order[j], order[i]


@compiled()
def shuffled(n: int, salt: Any) -> Any:
    """A random order of n things (Fisher and Yates), given by 64 bits of salt."""
    order = np.arange(n)
    shuffle(order, salt)
    return order


@compiled()
def visit(rows: Any, order: Any, code: int, factors: Any, rule: Any, vectors: Any, record: Any) -> None:
    """Visit the rows in order once each.

    `rows` are the stored arrays, which of their rows there are, the codes of all and the weights of these; `rule` is η, ℓ²,
    shrink and a; `vectors` are v, what was paid of L1, m and the longest run's: empty where the rule does not need them.
    """
    data, indices, indptr, which, codes, weights = rows
    eta, lift_squared, shrink, absolute = rule
    v, paid, summed, longest = vectors
    width, dense = len(v), len(indptr) == 0
    averaging, pocketing = len(summed) > 0, len(longest) > 0
    least_scale = _SMALL if averaging else _TINY
    state = record[0]
    scale, intercept, due, visits, mistakes, loss = (
        state.scale,
        state.intercept,
        state.due,
        state.visits,
        state.mistakes,
        state.loss,
    )
    scales, seen, summed_intercept, run = state.scales, state.seen, state.summed_intercept, state.run
    far = not dense and len(indices) > _IN_CACHE
    for turn in range(len(order)):
        at = order[turn]
        i = which[at]
        if far and turn + _AHEAD < len(order):
            fetch_row(data, indices, indptr, which[order[turn + _AHEAD]])
        sign = 1.0 if codes[i] == code else -1.0
        weight = factors[1] * weights[at] if sign > 0.0 else factors[0] * weights[at]
        if weight == 0.0:
            continue
        first = i * width if dense else indptr[i]
        last = first + width if dense else indptr[i + 1]
        score = _dense_score(data[first:last], v) if dense else _sparse_score(data, indices, first, last, v)
        margin = sign * (score * scale + intercept)
        wrong = margin <= 0.0
        visits += 1.0
        if wrong:
            mistakes += 1.0
            loss -= margin
            if pocketing and run > state.longest_run:
                state.longest_run, state.longest_intercept = run, intercept
                for j in range(width):
                    longest[j] = scale * v[j]
            run = 0.0
        else:
            run += weight
        if shrink < 1.0:
            scale *= shrink
            if scale < least_scale:
                for j in range(width):
                    if averaging:
                        summed[j] += scales * v[j]
                    v[j] *= scale
                scale, scales = 1.0, 0.0
        if wrong:
            step = eta * sign * weight
            change = step / scale
            if averaging:
                for p in range(first, last):
                    summed[p - first if dense else indices[p]] -= scales * (data[p] * change)
            if dense:
                row = data[first:last]
                for j in range(len(row)):
                    v[j] += row[j] * change
            else:
                for p in range(first, last):
                    v[np.uint64(indices[p])] += data[p] * change
            intercept += step * lift_squared
        if absolute > 0.0:
            due += absolute
            for p in range(first, last):
                j = p - first if dense else indices[p]
                before = v[j]
                if before > 0.0:
                    v[j] = max(0.0, before - (due + paid[j]) / scale)
                elif before < 0.0:
                    v[j] = min(0.0, before + (due - paid[j]) / scale)
                paid[j] += scale * (v[j] - before)
                if averaging:
                    summed[j] -= scales * (v[j] - before)
        scales += weights[at] * scale
        seen += weights[at]
        summed_intercept += weights[at] * intercept
    state.scale, state.intercept, state.due = scale, intercept, due
    state.visits, state.mistakes, state.loss, state.run = visits, mistakes, loss, run
    state.scales, state.seen, state.summed_intercept = scales, seen, summed_intercept


@compiled()
def epochs(
    rows: Any, salts: Any, code: int, factors: Any, rule: Any, vectors: Any, record: Any, stop: Any, trace: Any
) -> tuple[int, float, int]:
    """Epochs until the loss has not fallen by tol for a while, one per salt at most; 0 for a salt is the order given.

    `stop` is α, ρ, whether there is a tol, tol, the epochs to wait, the best loss so far and the epochs waited; `trace` takes
    mistakes and loss of every epoch. Returns epochs made, the best loss and the epochs waited.
    """
    alpha, l1_ratio, bounded, tol, patience, best, waited = stop
    state, v, given = record[0], vectors[0], np.arange(len(rows[3]))
    for epoch in range(len(salts)):
        mistakes, loss, visits = state.mistakes, state.loss, state.visits
        order = given if salts[epoch] == np.uint64(0) else shuffled(len(given), salts[epoch])
        visit(rows, order, code, factors, rule, vectors, record)
        value = (state.loss - loss) / max(1.0, state.visits - visits)
        if alpha > 0.0:
            squares, absolutes = 0.0, 0.0
            for j in range(len(v)):
                squares += v[j] * v[j]
                absolutes += abs(v[j])
            value += alpha * ((1.0 - l1_ratio) * 0.5 * squares * state.scale**2 + l1_ratio * absolutes * state.scale)
        trace[epoch, 0], trace[epoch, 1] = state.mistakes - mistakes, value
        waited = waited + 1 if bounded and value > best - tol else 0
        best = min(best, value)
        if (state.mistakes == mistakes and alpha == 0.0) or waited >= patience:
            return epoch + 1, best, waited
    return len(salts), best, waited


@compiled()
def plain_epochs(
    rows: Any, salts: Any, code: int, factors: Any, rule: Any, v: Any, sums: Any, stop: Any, trace: Any
) -> tuple[int, float, int]:
    """`epochs` of the plain rule without a penalty, where all visits have one weight: nothing is carried along but v and b.

    `rule` is η and ℓ²; `sums` are visits, mistakes, loss, the weight of the last run of right rows, and b; `stop` begins with
    whether there is a tol.
    """
    data, indices, indptr, which, codes, weights = rows
    eta, lift_squared = rule
    bounded, tol, patience, best, waited = stop
    width, dense, count = len(v), len(indptr) == 0, len(which)
    far = not dense and len(indices) > _IN_CACHE
    order, right = np.empty_like(which), codes == code
    below, above = factors[0] * weights[0], factors[1] * weights[0]
    visits, mistakes, loss, run, b = sums[0], sums[1], sums[2], sums[3], sums[4]
    made = len(salts)
    for epoch in range(len(salts)):
        mistakes_before, loss_before = mistakes, loss
        order[:] = which
        if salts[epoch] != np.uint64(0):
            shuffle(order, salts[epoch])
        for turn in range(count):
            i = order[turn]
            if far and turn + _AHEAD < count:
                fetch_row(data, indices, indptr, order[turn + _AHEAD])
            first = i * width if dense else indptr[i]
            last = first + width if dense else indptr[i + 1]
            score = _dense_score(data[first:last], v) if dense else _sparse_score(data, indices, first, last, v)
            margin = score + b if right[i] else -(score + b)
            if margin > 0.0:
                run += above if right[i] else below
                continue
            mistakes += 1.0
            loss -= margin
            run = 0.0
            step = eta * above if right[i] else -eta * below
            if dense:
                row = data[first:last]
                for j in range(len(row)):
                    v[j] += row[j] * step
            else:
                for p in range(first, last):
                    v[np.uint64(indices[p])] += data[p] * step
            b += step * lift_squared
        visits += count
        value = (loss - loss_before) / max(1.0, count)
        trace[epoch, 0], trace[epoch, 1] = mistakes - mistakes_before, value
        waited = waited + 1 if bounded and value > best - tol else 0
        best = min(best, value)
        if mistakes == mistakes_before or waited >= patience:
            made = epoch + 1
            break
    sums[0], sums[1], sums[2], sums[3], sums[4] = visits, mistakes, loss, run, b
    return made, best, waited


@compiled()
def row_keys(bits: Any, indices: Any, indptr: Any, width: int, keys: Any) -> None:
    """A 64-bit key of every row, from the columns and the bits of its entries that are not zero: Σ_j h(x_ij, j)."""
    dense = len(indptr) == 0
    for i in range(len(keys)):
        first = i * width if dense else indptr[i]
        last = first + width if dense else indptr[i + 1]
        key = np.uint64(0)
        for p in range(first, last):
            if bits[p] & _EXPONENT_AND_FRACTION == np.uint64(0):
                continue
            j = p - first if dense else indices[p]
            z = bits[p] ^ (np.uint64(j + 1) * _GOLDEN)
            z = (z ^ (z >> np.uint64(30))) * _ONE
            z = (z ^ (z >> np.uint64(27))) * _TWO
            key += z ^ (z >> np.uint64(31))
        keys[i] = key
