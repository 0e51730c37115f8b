"""Products with the columns of a matrix: those of a CSC matrix, or of a dense one in Fortran's order, which has no `rows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_FAST = {"reassoc", "contract"}


@compiled(fastmath=_FAST)
def column_dot(data: Any, rows: Any, first: Any, last: Any, v: Any) -> Any:
    """x_jᵀv for the column whose entries are `first` … `last`."""
    total = 0.0
    if rows is None:
        for p in range(last - first):
            total += data[first + p] * v[p]
    else:
        for p in range(first, last):
            total += data[p] * v[np.uint64(rows[p])]  # unsigned: no test for an index that counts from the end
    return total


@compiled(fastmath=_FAST)
def column_bent(data: Any, rows: Any, first: Any, last: Any, bends: Any, z: Any) -> Any:
    """Σ s h z x_j for that column."""
    total = 0.0
    if rows is None:
        for p in range(last - first):
            total += data[first + p] * bends[p] * z[p]
    else:
        for p in range(first, last):
            i = np.uint64(rows[p])
            total += data[p] * bends[i] * z[i]
    return total


@compiled(fastmath=_FAST)
def add_column(data: Any, rows: Any, first: Any, last: Any, change: Any, z: Any) -> None:
    """Z += change · x_j."""
    if rows is None:
        for p in range(last - first):
            z[p] += change * data[first + p]
    else:
        for p in range(first, last):
            z[np.uint64(rows[p])] += change * data[p]


@compiled()
def by_columns(data: Any, indices: Any, indptr: Any, d: int) -> tuple[Any, Any, Any]:
    """The three arrays of a CSC matrix from those of a CSR matrix."""
    starts, values, rows = np.zeros(d + 1, np.int64), np.empty(len(data)), np.empty(len(data), np.int32)
    for p in range(len(data)):
        starts[indices[p] + 1] += 1
    for j in range(d):
        starts[j + 1] += starts[j]
    place = starts[:-1].copy()
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            at = place[indices[p]]
            values[at], rows[at] = data[p], i
            place[indices[p]] = at + 1
    return values, rows, starts


@compiled(fastmath=_FAST)
def column_scores(data: Any, rows: Any, starts: Any, w: Any, b: Any, scores: Any) -> None:
    """scores += Xw + b."""
    for i in range(len(scores)):
        scores[i] += b
    for j in range(len(starts) - 1):
        if w[j] != 0.0:
            add_column(data, rows, starts[j], starts[j + 1], w[j], scores)


@compiled(fastmath=_FAST)
def column_products(data: Any, rows: Any, starts: Any, r: Any, out: Any) -> None:
    """Out = Xᵀr."""
    for j in range(len(starts) - 1):
        out[j] = column_dot(data, rows, starts[j], starts[j + 1], r)


@compiled(fastmath=_FAST)
def column_squares(data: Any, rows: Any, starts: Any, weights: Any, out: Any) -> None:
    """Out = Σ s x_j²; an empty array of weights stands for ones."""
    for j in range(len(starts) - 1):
        first, total = starts[j], 0.0
        for p in range(first, starts[j + 1]):
            square = data[p] * data[p]
            if len(weights) > 0:
                square *= weights[p - first if rows is None else rows[p]]
            total += square
        out[j] = total


@compiled(fastmath=_FAST)
def logistic_losses(
    scores: Any, z: Any, t: Any, signs: Any, weights: Any, slopes: Any, bends: Any
) -> tuple[Any, Any, Any]:
    """(Σ s ℓ, Σ s a², max |η|) at η + tz; `slopes` and `bends` take s a and s h."""
    loss, squares, steepest = 0.0, 0.0, 0.0
    for i in range(len(signs)):
        eta = scores[i] + t * z[i]
        weight = 1.0 if len(weights) == 0 else weights[i]
        small = np.exp(-abs(eta))
        high = 1.0 / (1.0 + small)
        wrong = eta * signs[i] < 0.0
        loss += weight * (np.log1p(small) + (abs(eta) if wrong else 0.0))
        slope = high if wrong else small * high  # 1 − σ is small·high, not a difference that would cancel
        squares += weight * slope * slope
        slopes[i] = -signs[i] * weight * slope
        bends[i] = weight * small * high * high
        steepest = max(steepest, abs(eta))
    return loss, squares, steepest
