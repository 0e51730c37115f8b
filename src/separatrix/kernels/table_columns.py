"""Columns of a table in one sweep: what a run of numbers holds, its sums, and rows of an encoded matrix.

    facts     holes, extremes, whether the numbers are whole, and whether each is more than the one before, by 1 or at all
    sums      Σ u, Σ(u − m)², Σ h(row) over holes, Σ h(row)·bits(x)          u = x/unit, the unit a power of two
    texts     rows and Σ h(row) of every text
    encode    (x − centre)/scale, holes filled, and a one at the place of each row's category
    moments   n, mean and Σ(x − m)² of every class

Each loop does little, so that the compiler runs it in the lanes of the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# Sums in any order, so that they run in the lanes of the processor; a hole stays one.
_IN_LANES = {"reassoc", "nsz", "contract"}
_TOP, _BOTTOM = np.int64(2**63 - 1), np.int64(-(2**63))
# Rows whose encoded features stay in cache while the columns are written one after another.
_TILE = 256
# Rows that give a guess of a mean, sums that rows take turns in, and how far off a guess may be, squared, in deviations.
_SAMPLE, _LANES, _NEAR = 256, 4, 4.0


@compiled()
def number_facts(x: Any, bits: Any) -> Any:
    """(holes, least, largest, whole, increasing, counting) of numbers, NaN a hole; `bits` are those of x, as signed integers.

    Numbers are compared as integers of the same order.
    """
    holes, low, high = 0, _TOP, _BOTTOM
    for i in range(len(x)):
        seen = x[i] == x[i]
        holes += not seen
        key = bits[i] ^ ((bits[i] >> 63) & _TOP)
        low = min(low, key if seen else _TOP)
        high = max(high, key if seen else _BOTTOM)
    whole, increasing, counting = True, True, True
    for i in range(len(x)):
        if x[i] == x[i] and np.floor(x[i]) != x[i]:
            whole = False
            break
    for i in range(1, len(x)):
        if not x[i] > x[i - 1]:
            increasing = False
            break
    for i in range(1, len(x)):
        if x[i] - x[i - 1] != 1.0:
            counting = False
            break
    ends = np.array([low ^ ((low >> 63) & _TOP), high ^ ((high >> 63) & _TOP)]).view(np.float64)
    return holes, ends[0], ends[1], whole, increasing, counting


@compiled(fastmath=_IN_LANES)
def _total(x: Any, per_unit: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * per_unit if x[i] == x[i] else 0.0
    return total


@compiled(fastmath=_IN_LANES)
def _squares(x: Any, per_unit: Any, mean: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        gap = x[i] * per_unit - mean
        total += gap * gap if gap == gap else 0.0
    return total


@compiled()
def number_sums(x: Any, bits: Any, marks: Any, per_unit: Any, observed: Any) -> Any:
    """(mean of u, Σ(u − mean)², Σ marks of holes, Σ marks·bits) of numbers u = x·per_unit, of which so many are no holes."""
    holes, values = np.uint64(0), np.uint64(0)
    for i in range(len(x)):
        seen = x[i] == x[i]
        holes += np.uint64(0) if seen else marks[i]
        values += marks[i] * bits[i] if seen else np.uint64(0)
    mean = _total(x, per_unit) / observed
    return mean, _squares(x, per_unit, mean), holes, values


@compiled()
def text_sums(places: Any, marks: Any, counts: Any, sums: Any) -> None:
    """counts and sums (L + 1,) gain the rows of each of L texts and Σ marks of these, those of no text (−1) first."""
    for i in range(len(places)):
        at = np.uint64(places[i] + 1)
        counts[at] += 1
        sums[at] += marks[i]


@compiled()
def encode_rows(
    values: Any, places: Any, value_at: Any, hole_at: Any, fill: Any, centre: Any, scale: Any, out: Any
) -> None:
    """out (n, d): features of numbers `values` (p, n) and of categories, whose feature is `places` (q, n), −1 for none.

    `value_at` and `hole_at` (p,) are the features of a number and of its mark of a hole, −1 for none.
    """
    base, ones = (0.0 - centre) / scale, (1.0 - centre) / scale
    n = len(out)
    for start in range(0, n, _TILE):
        stop = min(n, start + _TILE)
        for i in range(start, stop):
            out[i] = base
        for p in range(len(values)):
            j, mark = value_at[p], hole_at[p]
            for i in range(start, stop):
                v = values[p, i]
                out[i, j] = ((v if v == v else fill[p]) - centre[j]) / scale[j]
            if mark >= 0:
                for i in range(start, stop):
                    out[i, mark] = ones[mark] if values[p, i] != values[p, i] else base[mark]
        for q in range(len(places)):
            for i in range(start, stop):
                j = places[q, i]
                if j >= 0:
                    out[i, j] = ones[j]


@compiled()
def class_moments(x: Any, codes: Any, weights: Any, counts: Any, mean: Any, square: Any) -> None:
    """counts (K,) Σ s, mean Σ s·x/Σ s and square Σ s(x − mean)² of the numbers of every class that are no holes.

    One sweep about a guess of the means, from a few rows; another where the guess was more than some deviations off.
    """
    n, classes = len(x), len(counts)
    guess, drawn = np.zeros(classes), np.zeros(classes)
    for i in range(0, n, max(1, n // _SAMPLE)):
        if x[i] == x[i]:
            drawn[codes[i]] += 1.0
            guess[codes[i]] += (x[i] - guess[codes[i]]) / drawn[codes[i]]
    sums = np.empty((_LANES, classes, 3))
    for _ in range(2):
        sums[:] = 0.0
        whole = n - n % _LANES
        for i in range(0, whole, _LANES):
            for lane in range(_LANES):  # rows of one class need not wait for each other
                _add_deviation(x[i + lane], codes[i + lane], weights[i + lane], guess, sums, lane)
        for i in range(whole, n):
            _add_deviation(x[i], codes[i], weights[i], guess, sums, 0)
        near = True
        for k in range(classes):
            weight, shift, squares = 0.0, 0.0, 0.0
            for lane in range(_LANES):
                weight += sums[lane, k, 0]
                shift += sums[lane, k, 1]
                squares += sums[lane, k, 2]
            shift = shift / weight if weight > 0.0 else 0.0
            counts[k], mean[k], square[k] = weight, guess[k] + shift, squares - weight * shift * shift
            near = near and weight * shift * shift <= _NEAR * square[k]
            guess[k] = mean[k]
        if near:
            break
    for k in range(classes):
        square[k] = max(0.0, square[k]) if square[k] == square[k] else square[k]


@compiled(inline="always")
def _add_deviation(x: Any, k: Any, weight: Any, guess: Any, sums: Any, lane: Any) -> None:
    k, seen = np.uint64(k), x == x  # which no loop has to count from the end
    gap = x - guess[k] if seen else 0.0
    counted = weight if seen else 0.0
    sums[lane, k, 0] += counted
    sums[lane, k, 1] += counted * gap
    sums[lane, k, 2] += counted * gap * gap
