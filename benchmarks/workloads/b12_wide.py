"""B12, wide rows: posteriors of 5 000 coefficients without a 5 000 × 5 000 matrix."""

from __future__ import annotations

import numpy as np

from benchmarks.contender import OURS
from benchmarks.data import Data
from benchmarks.goals import AtMostMemory
from benchmarks.workload import MemoryWorkload

BAYESIAN = "separatrix:BayesianLogisticRegression"
ROWS, COLUMNS = 10_000, 5_000


def wide_rows(scale: float) -> Data:
    """Independent columns, a hundred of which matter."""
    generator = np.random.default_rng(0)
    n = max(round(ROWS * scale), 200)
    X = generator.standard_normal((n, COLUMNS))
    y = (X[:, :100] @ generator.standard_normal(100) / 5 + generator.logistic(size=n) > 0).astype(np.int64)
    return Data(
        X, y, f"{n:,} × {COLUMNS:,} float64, 2 classes, {X.nbytes / 1e6:.1f} MB, seed 0".replace(",000", " 000")
    )


WORKLOAD = MemoryWorkload(
    module=__name__,
    id="B12",
    title="memory of posteriors of 5 000 columns",
    goals=(AtMostMemory(0.25),),
    data=wide_rows,
    contenders=(
        OURS.contender("low rank (the default here)", BAYESIAN, {"prior_precision": 1.0}),
        OURS.contender("diagonal", BAYESIAN, {"prior_precision": 1.0, "covariance": "diagonal"}),
    ),
)
