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


def logistic_rows(rows: int, columns: int, classes: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: correlated columns, labels drawn from a logistic (softmax) model, float64."""
    return partial(_logistic_rows, rows, columns, classes, seed)


def _logistic_rows(rows: int, columns: int, classes: int, seed: int, scale: float) -> Data:
    """Row i is ½ + z L + f A: z and the 5 factors f standard normal, L Lᵀ the correlations 0.7^|i−j|.

    The log odds of two classes have standard deviation 2: the labels are noisy, nothing is separable.
    """
    generator = np.random.default_rng(seed)
    n = max(round(rows * scale), 20 * columns * classes)
    lags = np.abs(np.subtract.outer(np.arange(columns), np.arange(columns)))
    factors = 0.5 * generator.standard_normal((5, columns))
    mixing = np.vstack([np.linalg.cholesky(0.7**lags).T, factors])
    weights = generator.standard_normal((columns, classes))
    weights *= np.sqrt(2) / np.linalg.norm(mixing @ weights, axis=0)
    X = np.empty((n, columns))
    y = np.empty(n, dtype=np.int64)
    for start in range(0, n, 10_000):
        block = slice(start, min(start + 10_000, n))
        centred = generator.standard_normal((len(X[block]), len(mixing))) @ mixing
        X[block] = 0.5 + centred
        y[block] = np.argmax(centred @ weights + generator.gumbel(size=(len(centred), classes)), axis=1)
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


def weighted_documents(rows: int, columns: int, words: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: sparse rows of length 1 as from tf-idf, two noisy classes."""
    return partial(_weighted_documents, rows, columns, words, seed)


def _weighted_documents(rows: int, columns: int, words: int, seed: int, scale: float) -> Data:
    """Counts of `documents` times log(n / rows with the word) + 1; ten words of each band, at most, bear on the label.

    The log odds have standard deviation 3.
    """
    counts = _documents(rows, columns, words, 1, seed, scale).X
    generator = np.random.default_rng(seed + 1)
    frequencies = np.bincount(counts.indices, minlength=columns)
    values = counts.data * (1.0 + np.log(counts.shape[0] / frequencies[counts.indices]))
    lengths = np.linalg.norm(values.reshape(-1, words), axis=1)
    X = sp.csr_array((values / np.repeat(lengths, words), counts.indices, counts.indptr), shape=counts.shape)
    weights = np.zeros(columns)
    chosen = counts.indices[: 10 * words]
    weights[chosen] = generator.standard_normal(len(chosen))
    scores = X @ weights
    scores = 3 * (scores - scores.mean()) / scores.std()
    y = (scores + generator.logistic(size=len(scores)) > 0).astype(np.int64)
    size = f"{X.shape[0]:,} × {columns:,}".replace(",", " ")
    return Data(X, y, f"{size} sparse, {words} a row, rows of length 1, 2 classes, seed {seed}")


def curved_classes(rows: int, columns: int, seed: int = 0) -> Callable[[float], Data]:
    """The function scale → data: two classes divided by a noisy quadratic surface in standard normal columns."""
    return partial(_curved_classes, rows, columns, seed)


def _curved_classes(rows: int, columns: int, seed: int, scale: float) -> Data:
    """The score is linear in all columns, with one product and one square; its noise is half its linear part's size."""
    generator = np.random.default_rng(seed)
    n = max(round(rows * scale), 200)
    X = generator.standard_normal((n, columns))
    direction = generator.standard_normal(columns) / np.sqrt(columns)
    score = X @ direction + 0.5 * X[:, 0] * X[:, 1] + 0.3 * (np.square(X[:, 2]) - 1.0)
    y = (score + 0.5 * generator.standard_normal(n) > 0).astype(np.int64)
    size = f"{n:,} × {columns}".replace(",", " ")
    return Data(X, y, f"{size} {X.dtype}, 2 classes, curved boundary, {X.nbytes / 1e6:.1f} MB, seed {seed}")


def digits(scale: float = 1.0) -> Data:
    """scikit-learn's bundled digits, whatever the scale."""
    return bundled("digits")


def bundled(name: str) -> Data:
    """A data set that comes with scikit-learn: iris, wine, breast_cancer or digits."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return Data(X, y, f"{name.replace('_', ' ')}, {X.shape[0]} × {X.shape[1]} {X.dtype}, {len(np.unique(y))} classes")


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
