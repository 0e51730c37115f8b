"""B20: far more columns than rows: dense, and a sparse ridge classifier."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.atlas.named import problem, workload
from benchmarks.data import Data
from benchmarks.workload import FitWorkload

N, D = 400, 20_000
SPARSE_N, SPARSE_D, STORED = 1_333, 4_000, 60


def wide_rows(scale: float) -> Data:
    """Standard normal columns, a hundred of which bear on the label."""
    generator = np.random.default_rng(0)
    n, d = max(100, round(N * scale)), max(1_000, round(D * scale))
    X = generator.standard_normal((n, d))
    y = (X[:, :100] @ generator.standard_normal(100) + 3 * generator.logistic(size=n) > 0).astype(np.int64)
    return Data(X, y, f"{n} × {d} float64, 2 classes, seed 0")


def sparse_rows(scale: float) -> Data:
    """Independent stored values, `STORED` per row."""
    generator = np.random.default_rng(0)
    n = max(200, round(SPARSE_N * scale))
    X = sp.random_array((n, SPARSE_D), density=STORED / SPARSE_D, format="csr", rng=generator)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    score = X @ generator.standard_normal(SPARSE_D)
    y = (score + generator.logistic(size=n) > 0).astype(np.int64)
    return Data(X, y, f"{n} × {SPARSE_D} sparse, {STORED} a row, 2 classes, seed 0")


def case(key: str, title: str, estimator: str, strength: float = 1.0, *without: str) -> FitWorkload:
    wide = problem(estimator, N, D, strength=strength)
    return workload(f"{__name__}:{key}", "B20", f"wide: {title}, 400 × 20 000", 2, wide, wide_rows, *without)


RIDGE = problem("RidgeClassifier", SPARSE_N, SPARSE_D, columns="text", nonzeros=STORED)
CASES = {
    "hinge": case("hinge", "LinearSVC, hinge", "hinge"),
    "squared_hinge": case("squared_hinge", "LinearSVC, squared hinge", "squared hinge"),
    "ridge": case("ridge", "RidgeClassifier", "RidgeClassifier"),
    "l1": case("l1", "L1 logistic regression", "logistic L1", 0.1),
    "l2": case("l2", "logistic regression", "logistic"),
    # The covariance matrix of 20 000 columns crashes NumPy's BLAS: scikit-learn's lsqr stays out.
    "lda": case("lda", "LDA", "LDA", 1.0, "lsqr"),
    "sparse_ridge": workload(
        f"{__name__}:sparse_ridge", "B20", "sparse ridge classifier, 1 333 × 4 000", 2, RIDGE, sparse_rows
    ),
}
