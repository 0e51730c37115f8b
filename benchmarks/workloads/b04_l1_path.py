"""B4, second half: L1 logistic regression of sparse documents along 50 points from λ_max to λ_max/20.

Nobody fits an intercept: celer has none. Everyone pays for λ_max, one product with Xᵀ, inside `fit`. The error is that of
the worst point of the path. scikit-learn's saga reaches the quality too, but in more than twice LIBLINEAR's time on a
tenth of the rows, minutes on all: it is left out here, not in the first half.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import OURS, construct
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.optimum import l1_optimum, objective, strongest
from benchmarks.peers import celer, liblinear, skglm
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

POINTS = 50
FRACTION = 20.0


def grid(X: Any, y: Any) -> NDArray[np.float64]:
    """The values of C, ascending."""
    return np.geomspace(1.0, FRACTION, POINTS) / strongest(X, y)


class AlongPath:
    """`fit` computes the whole path by the `path(X, y, Cs)` of the adapter called `adapter`."""

    def __init__(self, adapter: str, parameters: dict[str, Any]) -> None:
        self.adapter, self.parameters = adapter, parameters

    def fit(self, X: Any, y: Any) -> AlongPath:
        self.coefs_ = construct(self.adapter, self.parameters).path(X, y, grid(X, y))
        return self


class OurPath:
    """`separatrix.logistic_path`."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        path = construct(
            "separatrix:logistic_path",
            {"X": X, "y": y, "Cs": Cs, "l1_ratio": 1.0, "fit_intercept": False, "tol": self.tol},
        )
        return np.reshape(path.coefs, (len(Cs), X.shape[1]))


def along(adapter: str, **parameters: Any) -> Callable[[], AlongPath]:
    return partial(AlongPath, adapter, parameters)


def check(data: Data) -> Check:
    Cs = [float(C) for C in grid(data.X, data.y)]
    optima = [l1_optimum(data, C) for C in Cs]

    def error(model: Any) -> float:
        if len(model.coefs_) != len(Cs):
            return float("inf")
        values = [objective(data, coef[None, :], 0.0, C, 1.0) for coef, C in zip(model.coefs_, Cs, strict=True)]
        return float(np.max(np.divide(values, optima) - 1.0))

    return error


WORKLOAD = FitWorkload(
    module=__name__,
    id="B4",
    title="sparse L1 logistic regression, 50-point path from λ_max to λ_max/20, no intercept",
    goals=(Faster(2),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("logistic_path", along(f"{__name__}:OurPath", tol=9e-7)),
        liblinear.PEER.contender(
            "L1", along("benchmarks.peers.liblinear:Linear", solver=6, tol=3e-4), note="with one conversion"
        ),
        SKLEARN.contender("liblinear", along("benchmarks.peers.sklearn:LogisticPath", tol=3e-4), note="tol=3e-4"),
        skglm.PEER.contender("SparseLogisticRegression", along("benchmarks.peers.skglm:LogisticL1", tol=1e-6)),
        celer.PEER.contender("celer_path", along("benchmarks.peers.celer:LogisticL1", tol=5e-4)),
    ),
    check=check,
    quality="largest relative gap of the objective to the optimum along the path",
    tolerance=1e-6,
)
