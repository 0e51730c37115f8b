"""Rows relative to a guess of their class mean, with their sums and squares, in one sweep over a piece.

    v = x − g_k,   sums_k += s·v,   and either √s·v (for a scatter) or squares_k += s·v²

An empty `weights` means that every row counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled


@compiled()
def centre_rows(X: Any, codes: Any, weights: Any, guess: Any, sums: Any, out: Any) -> None:
    """out[i] = √s·(x[i] − g), sums[k] += s·(x[i] − g)."""
    for i in range(len(codes)):
        row, mean, total = out[i], guess[codes[i]], sums[codes[i]]
        if len(weights) == 0:
            for j in range(X.shape[1]):
                row[j] = X[i, j] - mean[j]
                total[j] += row[j]
        else:
            root = np.sqrt(weights[i])
            for j in range(X.shape[1]):
                row[j] = root * (X[i, j] - mean[j])
                total[j] += root * row[j]


@compiled()
def add_squares(X: Any, codes: Any, weights: Any, guess: Any, sums: Any, squares: Any) -> None:
    """sums[k] += s·v, squares[k] += s·v²."""
    for i in range(len(codes)):
        mean, total, square = guess[codes[i]], sums[codes[i]], squares[codes[i]]
        weight = 1.0 if len(weights) == 0 else weights[i]
        for j in range(X.shape[1]):
            deviation = X[i, j] - mean[j]
            total[j] += weight * deviation
            square[j] += weight * deviation * deviation


@compiled()
def add_counts(codes: Any, weights: Any, counts: Any) -> None:
    """counts[k] += s."""
    for i in range(len(codes)):
        counts[codes[i]] += 1.0 if len(weights) == 0 else weights[i]


@compiled()
def add_rows_by_class(X: Any, codes: Any, weights: Any, sums: Any) -> Any:
    """sums[k] += s·x for C-ordered rows; how many entries are negative."""
    negative = 0
    for i in range(len(codes)):
        total = sums[codes[i]]
        weight = 1.0 if len(weights) == 0 else weights[i]
        for j in range(X.shape[1]):
            total[j] += weight * X[i, j]
            negative += X[i, j] < 0.0
    return negative


@compiled()
def add_columns_by_class(X: Any, codes: Any, weights: Any, sums: Any) -> Any:
    """The same column by column, for Fortran order; `sums` is (d, K)."""
    negative = 0
    for j in range(X.shape[1]):
        total = sums[j]
        for i in range(len(codes)):
            weight = 1.0 if len(weights) == 0 else weights[i]
            total[np.uint64(codes[i])] += weight * X[i, j]
            negative += X[i, j] < 0.0
    return negative


@compiled()
def guess_means(X: Any, codes: Any, step: Any, guess: Any, seen: Any) -> Any:
    """guess[k] and seen[k] = mean and number of every `step`-th row by class; whether a mean is large against its spread.

    Then the last digits of the means could matter.
    """
    d, spread, drawn = X.shape[1], np.zeros(X.shape[1]), 0
    for i in range(0, len(codes), step):
        total = guess[codes[i]]
        seen[codes[i]] += 1
        for j in range(d):
            total[j] += X[i, j]
    for k in range(len(seen)):
        for j in range(d):
            guess[k, j] /= max(seen[k], 1)
    for i in range(0, len(codes), step):
        mean = guess[codes[i]]
        drawn += 1
        for j in range(d):
            spread[j] += (X[i, j] - mean[j]) ** 2
    for k in range(len(seen)):
        for j in range(d):
            if guess[k, j] ** 2 * drawn > 1e4 * spread[j]:
                return True
    return False
