"""B1: dense logistic regression of two classes, L2.

LIBLINEAR is not entered: dense rows have to be made sparse for it, and at a quarter of the rows it took five times as
long as glum. skglm is not: its smooth solver fits no intercept.
"""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import Faster
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
    goals=(Faster(5),),
    data=logistic_rows(400_000, 100, 2),
    contenders=(
        OURS.contender("LogisticRegression", "separatrix:LogisticRegression", {"tol": 1e-6}),
        SKLEARN.contender("lbfgs", LOGISTIC, default=True),
        SKLEARN.contender("newton-cholesky", LOGISTIC, {"solver": "newton-cholesky"}),
        SKLEARN.contender("newton-cg", LOGISTIC, {"solver": "newton-cg"}),
        intelex.PEER.contender("lbfgs", lambda: intelex.Logistic(tol=4e-5), note="tolerance 4e-5 a row"),
        glum.PEER.contender("binomial", glum.Logistic, default=True),
        statsmodels.PEER.contender("GLM ridge", statsmodels.Logistic),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
