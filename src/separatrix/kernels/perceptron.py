"""The perceptron's visits to a run of rows, and keys of rows by what they hold.

    f = c·vᵀx + b,  w = c·v        t f ≤ 0:   v ← v + (η s t / c) x,   b ← b + η s t ℓ²
    before it, c ← c·shrink        (L2: shrink = 1 − (1−ρ)ηα)
    after it, for every entry of the row: |w_j| is lowered to where a penalty of a = ρηα a visit has by now (L1)

    Σ_visits s w = m + A v,        A = Σ s c,   m ← m − A Δv whenever v changes: O(entries of the row)

c, b and the sums are fields of the record `state`, see `separatrix.online.perceptron`. Dense rows come as one flat array,
sparse ones as the three arrays of a CSR matrix. Sums run in the order of storage, so answers have the same bits each time.

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
    for at in order:
        i = which[at]
        sign = 1.0 if codes[i] == code else -1.0
        weight = factors[1] * weights[at] if sign > 0.0 else factors[0] * weights[at]
        if weight == 0.0:
            continue
        first = i * width if dense else indptr[i]
        last = first + width if dense else indptr[i + 1]
        score = 0.0
        if dense:
            for j in range(width):
                score += v[j] * data[first + j]
        else:
            for p in range(first, last):
                score += v[indices[p]] * data[p]
        margin = sign * (score * state.scale + state.intercept)
        wrong = margin <= 0.0
        state.visits += 1.0
        if wrong:
            state.mistakes += 1.0
            state.loss -= margin
            if pocketing and state.run > state.longest_run:
                state.longest_run, state.longest_intercept = state.run, state.intercept
                for j in range(width):
                    longest[j] = state.scale * v[j]
            state.run = 0.0
        else:
            state.run += weight
        if shrink < 1.0:
            state.scale *= shrink
            if state.scale < least_scale:
                for j in range(width):
                    if averaging:
                        summed[j] += state.scales * v[j]
                    v[j] *= state.scale
                state.scale, state.scales = 1.0, 0.0
        if wrong:
            step = eta * sign * weight
            change = step / state.scale
            for p in range(first, last):
                j = p - first if dense else indices[p]
                v[j] += data[p] * change
                if averaging:
                    summed[j] -= state.scales * (data[p] * change)
            state.intercept += step * lift_squared
        if absolute > 0.0:
            state.due += absolute
            for p in range(first, last):
                j = p - first if dense else indices[p]
                before = v[j]
                if before > 0.0:
                    v[j] = max(0.0, before - (state.due + paid[j]) / state.scale)
                elif before < 0.0:
                    v[j] = min(0.0, before + (state.due - paid[j]) / state.scale)
                paid[j] += state.scale * (v[j] - before)
                if averaging:
                    summed[j] -= state.scales * (v[j] - before)
        state.scales += weights[at] * state.scale
        state.seen += weights[at]
        state.summed_intercept += weights[at] * state.intercept


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
