"""Seeded data for the workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

PROBE_ROWS = 2_000


@dataclass(frozen=True)
class Data:
    """What is fitted; answers are compared on the first rows, `probe`."""

    X: Any
    y: NDArray[Any]
    description: str

    @property
    def probe(self) -> Any:
        return self.X[:PROBE_ROWS]

    @property
    def x_bytes(self) -> int:
        if hasattr(self.X, "indptr"):
            return int(self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes)
        return int(self.X.nbytes)


def gaussian_classes(rows: int, columns: int, classes: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: Gaussian classes with separated means and correlated columns, float64."""
    return partial(_gaussian_classes, rows, columns, classes, seed)


def _gaussian_classes(rows: int, columns: int, classes: int, seed: int, scale: float) -> Data:
    """Row i is m + s·z L: z standard normal, L Lᵀ the correlations 0.7^|i−j|; m and s are its class's own.

    However small the scale, two rows a class and column are left, enough for every class's covariance.
    """
    generator = np.random.default_rng(seed)
    n = max(round(rows * scale), 2 * columns * classes)
    lags = np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    mixing = np.linalg.cholesky(0.7**lags).T
    means = 3.0 + 0.5 * generator.standard_normal((classes, columns))
    spreads = np.linspace(0.8, 1.25, classes)
    y = generator.integers(classes, size=n)
    X = np.empty((n, columns))
    for start in range(0, n, 10_000):
        block = slice(start, start + 10_000)
        z = generator.standard_normal(X[block].shape)
        X[block] = means[y[block]] + spreads[y[block], None] * (z @ mixing)
    size = f"{n:,} × {columns}".replace(",", " ")
    return Data(X, y, f"{size} {X.dtype}, {classes} classes, {X.nbytes / 1e6:.1f} MB, seed {seed}")


def documents(rows: int, columns: int, words: int, classes: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: sparse counts, `words` different ones a row, frequent words in narrow bands."""
    return partial(_documents, rows, columns, words, classes, seed)


def _documents(rows: int, columns: int, words: int, classes: int, seed: int, scale: float) -> Data:
    """One word of each band in every row; the bands widen geometrically, so that low columns are frequent words."""
    generator = np.random.default_rng(seed)
    n = max(round(rows * scale), 100 * classes)
    edges = np.unique(np.geomspace(1, columns, words + 1).astype(np.int64) + np.arange(words + 1))
    edges = np.minimum(edges - edges[0], columns - (words - np.arange(words + 1)))
    y = generator.integers(classes, size=n)
    indices = np.empty((n, words), dtype=np.int32)
    for band in range(words):
        width = edges[band + 1] - edges[band]
        lean = generator.random(n) * (0.5 + 0.5 * (y + 1) / classes)  # classes prefer some words of a band
        indices[:, band] = edges[band] + (lean * width).astype(np.int32)
    counts = generator.integers(1, 4, size=indices.size).astype(np.float64)
    pointers = np.arange(0, indices.size + 1, words, dtype=np.int64)
    X = sp.csr_array((counts, indices.ravel(), pointers.astype(np.int32)), shape=(n, columns))
    size = f"{n:,} × {columns:,}".replace(",", " ")
    return Data(X, y, f"{size} sparse, {words} a row, {classes} classes, seed {seed}")


def categories(rows: int, columns: int, classes: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: whole numbers, 2 to 20 categories a column, int64."""
    return partial(_categories, rows, columns, classes, seed)


def _categories(rows: int, columns: int, classes: int, seed: int, scale: float) -> Data:
    generator = np.random.default_rng(seed)
    n = max(round(rows * scale), 100 * classes)
    y = generator.integers(classes, size=n)
    widths = generator.integers(2, 21, size=columns)
    X = np.empty((n, columns), dtype=np.int64)
    for j, width in enumerate(widths):
        X[:, j] = (generator.integers(width, size=n) + (generator.random(n) < 0.3) * y) % width
    size = f"{n:,} × {columns}".replace(",", " ")
    return Data(X, y, f"{size} {X.dtype}, 2 to 20 categories a column, {classes} classes, seed {seed}")
