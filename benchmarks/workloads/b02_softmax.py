"""B2: dense softmax regression, L2. Of the peers only scikit-learn and scikit-learn-intelex have this model."""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.optimum import relative_gap, smooth_optimum
from benchmarks.peers import intelex
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"


def check(data: Data) -> Check:
    return relative_gap(data, smooth_optimum(data, 1.0, "newton-cholesky"), 1.0)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B2",
    title="dense softmax regression, 10 classes, C=1",
    goals=(Faster(4),),
    data=logistic_rows(100_000, 50, 10),
    contenders=(
        OURS.contender("LogisticRegression", "separatrix:LogisticRegression", rungs=OUR_RUNGS),
        SKLEARN.contender("lbfgs", LOGISTIC, {"max_iter": 1000}, default=True, rungs=DECADES),
        SKLEARN.contender("newton-cholesky", LOGISTIC, {"solver": "newton-cholesky"}, rungs=DECADES),
        SKLEARN.contender("newton-cg", LOGISTIC, {"solver": "newton-cg"}, rungs=DECADES),
        intelex.PEER.contender(
            "lbfgs", "benchmarks.peers.intelex:Logistic", rungs=DECADES[1:], note="tolerance per row"
        ),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
