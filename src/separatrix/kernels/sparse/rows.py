"""Sums and products of sparse rows, one pass over the stored entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

_EPS = float(np.finfo(np.float64).eps)


@compiled(fastmath={"reassoc", "contract"})
def add_curved(data: Any, indices: Any, indptr: Any, weights: Any, v: Any, constant: Any, out: Any) -> Any:
    """out += Xᵀ (weights · (X v + constant)) for the rows of a CSR matrix; Σ weights · (X v + constant)."""
    ones = 0.0
    for i in range(len(weights)):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * v[np.uint64(indices[p])]  # unsigned: no test for an index that counts from the end
        total = weights[i] * (total + constant)
        ones += total
        for p in range(indptr[i], indptr[i + 1]):
            out[np.uint64(indices[p])] += total * data[p]
    return ones


@compiled()
def add_gram(data: Any, indices: Any, indptr: Any, place: Any, weights: Any, out: Any) -> None:
    """Lower triangle of out += Xᵀ diag(weights) X over some columns of a CSR matrix with sorted rows.

    place[j] is where column j goes, −1 if it does not; places grow with j.
    """
    found, values = np.empty(len(out), dtype=np.int64), np.empty(len(out))
    for i in range(len(weights)):
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            at = place[np.uint64(indices[p])]
            if at >= 0:
                found[count], values[count] = at, data[p]
                count += 1
        for a in range(count):
            scaled = weights[i] * values[a]
            row = out[found[a]]
            for b in range(a + 1):
                row[found[b]] += scaled * values[b]


@compiled()
def add_squares(data: Any, indices: Any, indptr: Any, weights: Any, out: Any) -> None:
    """out += Σ_i weights_i x_ij² for the rows of a CSR matrix."""
    for i in range(len(weights)):
        for p in range(indptr[i], indptr[i + 1]):
            value = float(data[p])
            out[np.uint64(indices[p])] += weights[i] * value * value


@compiled()
def add_transposed(data: Any, indices: Any, indptr: Any, r: Any, out: Any) -> None:
    """out += Xᵀ r for a vector r and the rows of a CSR matrix."""
    for i in range(len(r)):
        value = r[i]
        for p in range(indptr[i], indptr[i + 1]):
            out[np.uint64(indices[p])] += value * data[p]


@compiled()
def add_transposed_columns(data: Any, indices: Any, indptr: Any, r: Any, out: Any) -> None:
    """out += Xᵀ r for the columns of a matrix r."""
    for i in range(len(r)):
        for p in range(indptr[i], indptr[i + 1]):
            row, value = out[np.uint64(indices[p])], data[p]
            for k in range(r.shape[1]):
                row[k] += value * r[i, k]


@compiled()
def add_rows_by_class(data: Any, indices: Any, indptr: Any, codes: Any, weights: Any, out: Any) -> Any:
    """out[codes[i], j] += weights[i] · x[i, j] over the stored entries of a CSR matrix; the least of them, or 0."""
    least = 0.0
    for i in range(len(codes)):
        row = out[codes[i]]
        weight = weights[i]
        for p in range(indptr[i], indptr[i + 1]):
            row[indices[p]] += weight * data[p]
            least = min(least, data[p])
    return least


@compiled()
def add_deviations(
    data: Any, indices: Any, indptr: Any, codes: Any, weights: Any, means: Any, stored: Any, squares: Any, sums: Any
) -> None:
    """With v = x[i, j] − means[k, j] over the stored entries: stored[k, j] += s, squares[k, j] += s·v², sums[k, j] += s·v."""
    for i in range(len(codes)):
        k, weight = codes[i], weights[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[p])
            deviation = data[p] - means[k, j]
            stored[k, j] += weight
            squares[k, j] += weight * deviation * deviation
            sums[k, j] += weight * deviation


@compiled()
def fill_dots(data: Any, indices: Any, indptr: Any, other: Any, rows: Any, starts: Any, out: Any) -> None:
    """out = XZᵀ for X in CSR and Z in CSC, its entries `other` in the `rows` of each column from starts[j] on."""
    for i in range(len(indptr) - 1):
        line = out[i]
        line[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x, j = np.float64(data[p]), np.uint64(indices[p])  # unsigned: no test for an index that counts from the end
            for q in range(starts[j], starts[j + 1]):
                line[np.uint64(rows[q])] += x * other[q]


@compiled()
def fill_exponents(dots: Any, left: Any, right: Any, gamma: Any) -> None:
    """−γ‖x − z‖² in the place of the inner products, from squared lengths; rows that differ by rounding alone are the same."""
    for i in range(len(left)):
        line, own = dots[i], left[i]
        for k in range(len(right)):
            both = own + right[k]
            distance = both - 2.0 * line[k]
            line[k] = -gamma * distance if distance > 4.0 * _EPS * both else 0.0
