"""The rows and labels of a problem.

    random       z, standard normal                correlated   x_j = ρ x_{j−1} + √(1−ρ²) z_j, and five common factors
    smooth       images: cosines of low frequency with amplitudes 1/(1 + f²), a little noise, moved into [0, 1]
    text         rows of length 1 with few words, frequent words first           counts   the same words, counted
    categories   whole numbers, 2 to 20 per column

Labels are drawn from a softmax model of the columns (before these are scaled) with scores of standard deviation `noise`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.signal import lfilter

from benchmarks.atlas.draw import Problem
from benchmarks.data import Data

BLOCK = 10_000
Float = NDArray[np.float64]


def make(problem: Problem) -> Data:
    generator = np.random.default_rng([problem.seed, 1])
    X = _sparse(problem, generator) if problem.columns in ("text", "counts") else _dense(problem, generator)
    scores = _scores(problem, X, generator)
    noisy = scores + generator.gumbel(size=scores.shape)
    y = np.argmax(noisy, axis=1).astype(np.int64)
    if problem.columns == "categories":
        X = np.asarray((X + (generator.random(X.shape) < 0.3) * y[:, None]) % _widths(problem), dtype=np.int64)
    elif problem.columns == "counts" and not problem.sparse:
        X = X.toarray()
    if problem.scales:
        factors = 10.0 ** generator.uniform(-problem.scales, problem.scales, problem.d)
        X = X @ sp.diags_array(factors) if sp.issparse(X) else X * factors
    y[: 2 * problem.classes] = np.arange(2 * problem.classes) % problem.classes  # every class has rows
    if problem.estimator in ("Ridge", "LinearRegression"):
        y = noisy[:, 1] - noisy[:, 0]
    return Data(_stored(problem, X), y, f"{problem.shape}: {problem.kind}")


def _stored(problem: Problem, X: Any) -> Any:
    if sp.issparse(X):
        X = sp.csr_array(X, dtype=problem.dtype)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # as scikit-learn makes them
        return X
    if problem.columns == "categories":
        return np.asarray(X, order=problem.order)
    return np.asarray(X, dtype=problem.dtype, order=problem.order)


def _widths(problem: Problem) -> Any:
    return np.random.default_rng([problem.seed, 2]).integers(2, 21, size=problem.d)


def _dense(problem: Problem, generator: np.random.Generator) -> Any:
    n, d = problem.n, problem.d
    if problem.columns == "categories":
        return generator.integers(_widths(problem), size=(n, d))
    X = np.empty((n, d))
    correlation = generator.choice([0.5, 0.9, 0.99])
    factors = 0.5 * generator.standard_normal((5, d))
    side = math.isqrt(d - 1) + 1
    at = np.arange(d)
    few = 24
    waves = generator.integers(0, 6, size=(few, 2))
    basis = np.cos(np.pi * waves[:, :1] * (at // side) / side) * np.cos(np.pi * waves[:, 1:] * (at % side) / side)
    basis /= 1.0 + np.square(waves).sum(axis=1)[:, None]
    for start in range(0, n, BLOCK):
        block = slice(start, min(start + BLOCK, n))
        z = generator.standard_normal((block.stop - start, d))
        if problem.columns == "correlated":
            z = lfilter([math.sqrt(1 - correlation**2)], [1.0, -correlation], z, axis=1)
            z += generator.standard_normal((len(z), 5)) @ factors
        elif problem.columns == "smooth":
            z = 0.5 + 0.2 * (generator.standard_normal((len(z), few)) @ basis) + 0.02 * z
        X[block] = z
    return X


def _sparse(problem: Problem, generator: np.random.Generator) -> Any:
    """Column j of a row is (d + 1)^u − 1 rounded down, u uniform: the density falls as 1/j. Equal columns are added up."""
    words = problem.nonzeros if problem.sparse else max(1, problem.d // 2)
    u = generator.random((problem.n, words))
    indices = np.minimum((problem.d + 1.0) ** u - 1.0, problem.d - 1).astype(np.int32).ravel()
    pointers = np.arange(0, problem.n * words + 1, words)
    X = sp.csr_array((np.ones(len(indices)), indices, pointers), shape=(problem.n, problem.d))
    X.sum_duplicates()
    if problem.columns == "counts":
        return X
    frequencies = np.bincount(X.indices, minlength=problem.d)
    X.data *= 1.0 + np.log(problem.n / frequencies[X.indices])
    lengths = np.sqrt(np.add.reduceat(np.square(X.data), X.indptr[:-1]))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
    return X


def _scores(problem: Problem, X: Any, generator: np.random.Generator) -> Float:
    """Scores of every class of standard deviation `noise`, from at most 200 columns' worth of weights."""
    weights = generator.standard_normal((problem.d, problem.classes))
    if problem.d > 200:
        weights *= (generator.random(problem.d) < 200 / problem.d)[:, None]
        weights[:5] = generator.standard_normal((5, problem.classes))
    scores = np.asarray(X @ weights)
    spread = scores.std(axis=0)
    scores = (scores - scores.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    lean = 0.5 * generator.standard_normal(problem.classes)
    centred: Float = problem.noise * scores + lean
    return centred
