"""B4, second half: L1 logistic regression of sparse documents along 50 points from λ_max to λ_max/20, with an intercept.

The error is that of the worst of six points of the path, spread over it. Everyone pays for λ_max inside `fit`. scikit-learn's
saga would take minutes; the others that fit no free intercept are named in the first half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import OURS, construct
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.optimum import l1_optimum, objective, strongest
from benchmarks.peers import liblinear, skglm
from benchmarks.workload import Check, FitWorkload

POINTS = 50
FRACTION = 20.0
CHECKED = (5, 14, 23, 32, 41, 49)
ALONG = f"{__name__}:AlongPath"


def grid(X: Any, y: Any) -> NDArray[np.float64]:
    """The values of C, ascending."""
    return np.geomspace(1.0, FRACTION, POINTS) / strongest(X, y, True)


class AlongPath:
    """`fit` computes the whole path by the `path(X, y, Cs)` of the adapter called `adapter`."""

    def __init__(self, adapter: str, **parameters: Any) -> None:
        self.adapter, self.parameters = adapter, parameters

    def fit(self, X: Any, y: Any) -> AlongPath:
        self.coefs_ = construct(self.adapter, self.parameters).path(X, y, grid(X, y))
        return self


class OurPath:
    """`separatrix.logistic_path`: the coefficients, and the intercept after them."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        parameters = {"X": X, "y": y, "Cs": Cs, "l1_ratio": 1.0, **self.parameters}
        path = construct("separatrix:logistic_path", parameters)
        coefs = np.reshape(path.coefs, (len(Cs), X.shape[1]))
        return np.column_stack([coefs, np.reshape(path.intercepts, len(Cs))])


def check(data: Data) -> Check:
    Cs = grid(data.X, data.y)
    optima = {at: l1_optimum(data, float(Cs[at]), fit_intercept=True) for at in CHECKED}

    def error(model: Any) -> float:
        if np.shape(model.coefs_) != (POINTS, data.X.shape[1] + 1):
            return float("inf")
        gaps = []
        for at, optimum in optima.items():
            coef = model.coefs_[at]
            gaps.append(objective(data, coef[None, :-1], coef[-1], float(Cs[at]), 1.0) / optimum - 1.0)
        return float(max(gaps))

    return error


LIBLINEAR_PATH = {"adapter": "benchmarks.peers.liblinear:Linear", "solver": 6, "intercept": "free"}
SKGLM_PATH = {"adapter": "benchmarks.peers.skglm:LogisticL1", "fit_intercept": True}
WORKLOAD = FitWorkload(
    module=__name__,
    id="B4",
    title="sparse L1 logistic regression, 50-point path from λ_max to λ_max/20",
    goals=(Faster(3),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("logistic_path", ALONG, {"adapter": f"{__name__}:OurPath"}, rungs=OUR_RUNGS),
        liblinear.PEER.contender("L1", ALONG, LIBLINEAR_PATH, rungs=DECADES[2:5], note="with one conversion"),
        skglm.PEER.contender("SparseLogisticRegression", ALONG, SKGLM_PATH, rungs=DECADES[4:7]),
    ),
    check=check,
    quality="largest relative gap of the objective to the optimum, at six of the points",
    tolerance=1e-6,
)
