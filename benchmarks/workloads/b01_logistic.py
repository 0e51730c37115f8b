"""B1: dense logistic regression of two classes, L2.

LIBLINEAR is not entered: dense rows have to be made sparse for it, and at a quarter of the rows it took five times as
long as glum. skglm is not: its smooth solver fits no intercept.
"""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import Faster
from benchmarks.ladder import DECADES, OUR_RUNGS
from benchmarks.optimum import relative_gap, smooth_optimum
from benchmarks.peers import glum, intelex, statsmodels
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"


def check(data: Data) -> Check:
    return relative_gap(data, smooth_optimum(data, 1.0, "newton-cholesky"), 1.0)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B1",
    title="dense logistic regression, C=1",
    goals=(Faster(8),),
    data=logistic_rows(400_000, 100, 2),
    contenders=(
        OURS.contender("LogisticRegression", "separatrix:LogisticRegression", rungs=OUR_RUNGS),
        SKLEARN.contender("lbfgs", LOGISTIC, {"max_iter": 1000}, default=True, rungs=DECADES),
        SKLEARN.contender("newton-cholesky", LOGISTIC, {"solver": "newton-cholesky"}, rungs=DECADES),
        SKLEARN.contender("newton-cg", LOGISTIC, {"solver": "newton-cg"}, rungs=DECADES),
        intelex.PEER.contender(
            "lbfgs", "benchmarks.peers.intelex:Logistic", rungs=DECADES[1:], note="tolerance per row"
        ),
        glum.PEER.contender("binomial", glum.Logistic, default=True),
        statsmodels.PEER.contender("GLM ridge", statsmodels.Logistic),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
