"""B4, first half: L1 logistic regression of sparse documents at λ_max/20, with an intercept that nobody penalises.

celer fits no intercept and scikit-learn's liblinear penalises it: neither is entered; LIBLINEAR itself, the same algorithm, can
leave it free. Everyone pays for λ_max, one product with Xᵀ, inside `fit`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.contender import OURS, construct
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.optimum import l1_optimum, relative_gap, strongest
from benchmarks.peers import liblinear, skglm
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"
FRACTION = 20.0
AT = f"{__name__}:AtFraction"


class AtFraction:
    """The model called `path`, fitted with the C of λ_max/20."""

    def __init__(self, path: str, **parameters: Any) -> None:
        self.path, self.parameters = path, parameters

    def fit(self, X: Any, y: Any) -> AtFraction:
        model = construct(self.path, {**self.parameters, "C": FRACTION / strongest(X, y, True)}).fit(X, y)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        return self


def check(data: Data) -> Check:
    C = FRACTION / strongest(data.X, data.y, True)
    return relative_gap(data, l1_optimum(data, C, fit_intercept=True), C, l1_ratio=1.0)


OURS_AT = {"path": "separatrix:LogisticRegression", "l1_ratio": 1.0}
LIBLINEAR_AT = {"path": "benchmarks.peers.liblinear:Linear", "solver": 6, "intercept": "free"}
SAGA_AT = {"path": LOGISTIC, "l1_ratio": 1.0, "solver": "saga", "random_state": 0, "max_iter": 1000}
SKGLM_AT = {"path": "benchmarks.peers.skglm:LogisticL1", "fit_intercept": True}
WORKLOAD = FitWorkload(
    module=__name__,
    id="B4",
    title="sparse L1 logistic regression at λ_max/20",
    goals=(Faster(2),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("LogisticRegression", AT, OURS_AT, rungs=OUR_RUNGS),
        liblinear.PEER.contender("L1", AT, LIBLINEAR_AT, rungs=DECADES, note="with its conversion"),
        SKLEARN.contender("saga", AT, SAGA_AT, rungs=DECADES[1:6]),
        skglm.PEER.contender("SparseLogisticRegression", AT, SKGLM_AT, rungs=DECADES[3:]),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
