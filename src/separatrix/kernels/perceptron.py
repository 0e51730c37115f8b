"""The perceptron's visits to a run of rows, and keys of rows by what they hold.

    f = c·vᵀx + b,  w = c·v        t f ≤ 0:   v ← v + (η s t / c) x,   b ← b + η s t ℓ²
    before it, c ← c·shrink        (L2: shrink = 1 − (1−ρ)ηα)
    after it, for every entry of the row: |w_j| is lowered to where a penalty of a = ρηα a visit has by now (L1)

    Σ_visits s w = m + A v,        A = Σ s c,   m ← m − A Δv whenever v changes: O(entries of the row)

c, b and the sums are fields of the record `state`, see `separatrix.online.perceptron`. Dense rows come as one flat array,
sparse ones as the three arrays of a CSR matrix. Sums run in a fixed order, so answers have the same bits each time.

Reference: Tsuruoka, Tsujii, Ananiadou (2009), ACL, figure 2 (L1 by cumulative penalties); Freund and Schapire (1999),
Machine Learning 37 (averages); Gallant (1990), IEEE Transactions on Neural Networks 1 (runs of correct rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# Below this scale it is put back into the vector. Sums over visits lose the digits that v = w/c has more than w.
_TINY, _SMALL = 1e-9, 1e-3
_EXPONENT_AND_FRACTION = np.uint64(0x7FFFFFFFFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled(fastmath={"reassoc", "contract"})
def _dense_product(v: Any, data: Any, first: Any) -> Any:
    """vᵀx of a dense row; its terms may be added in any order, the same each time."""
    total = 0.0
    for j in range(len(v)):
        total += v[j] * data[first + j]
    return total


@compiled()
def visit(rows: Any, order: Any, code: int, factors: Any, rule: Any, vectors: Any, record: Any) -> None:
    """Visit the rows in order once each.

    `rows` are the stored arrays, and of every visit which row it is of, its code and its weight; `rule` is η, ℓ²,
    shrink and a; `vectors` are v, what was paid of L1, m and the longest run's: empty where the rule does not
    need them.
    """
    data, indices, indptr, which, codes, weights = rows
    eta, lift_squared, shrink, absolute = rule
    v, paid, summed, longest = vectors
    width, dense = len(v), len(indptr) == 0
    averaging, pocketing = len(summed) > 0, len(longest) > 0
    least_scale = _SMALL if averaging else _TINY
    state = record[0]
    # Numbers that change with every visit are kept out of memory until the end.
    scale, intercept, due, scales, run = state.scale, state.intercept, state.due, state.scales, state.run
    visits, mistakes, loss, seen, summed_intercept = 0.0, 0.0, 0.0, 0.0, 0.0
    for at in order:
        i = which[at]
        sign = 1.0 if codes[at] == code else -1.0
        weight = factors[1] * weights[at] if sign > 0.0 else factors[0] * weights[at]
        if weight == 0.0:
            continue
        first = i * width if dense else indptr[i]
        last = first + width if dense else indptr[i + 1]
        score = 0.0
        if dense:
            score = _dense_product(v, data, first)
        else:
            for p in range(first, last):
                score += v[indices[p]] * data[p]
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
            if dense:
                for j in range(width):
                    v[j] += data[first + j] * change
                if averaging:
                    for j in range(width):
                        summed[j] -= scales * (data[first + j] * change)
            else:
                for p in range(first, last):
                    v[indices[p]] += data[p] * change
                    if averaging:
                        summed[indices[p]] -= scales * (data[p] * change)
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
    state.scale, state.intercept, state.due, state.scales, state.run = scale, intercept, due, scales, run
    state.visits += visits
    state.mistakes += mistakes
    state.loss += loss
    state.seen += seen
    state.summed_intercept += summed_intercept


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
