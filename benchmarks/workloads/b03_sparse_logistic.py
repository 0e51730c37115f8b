"""B3: logistic regression of sparse documents, L2.

Nobody fits an intercept: LIBLINEAR's dual solver would penalise it. scikit-learn's defaults stop at a relative gap of
2e-2 here, so its tolerances are those that reach the quality.
"""

from __future__ import annotations

from typing import Any

from benchmarks.contender import OURS
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.optimum import relative_gap, smooth_optimum
from benchmarks.peers import liblinear, skglm
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"


def check(data: Data) -> Check:
    return relative_gap(data, smooth_optimum(data, 1.0, "newton-cg", fit_intercept=False), 1.0)


def stopping(tol: float, **parameters: Any) -> dict[str, Any]:
    return {"tol": tol, "fit_intercept": False, **parameters}


WORKLOAD = FitWorkload(
    module=__name__,
    id="B3",
    title="sparse logistic regression, C=1, no intercept",
    goals=(Faster(2),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("LogisticRegression", "separatrix:LogisticRegression", stopping(1e-6)),
        liblinear.PEER.contender("dual", lambda: liblinear.Linear(solver=7, tol=0.1), note="with its conversion"),
        liblinear.PEER.contender("primal", lambda: liblinear.Linear(solver=0, tol=1e-3), note="with its conversion"),
        SKLEARN.contender("lbfgs", LOGISTIC, stopping(1e-6), default=True, note="but for tol=1e-6"),
        SKLEARN.contender("newton-cg", LOGISTIC, stopping(1e-5, solver="newton-cg"), note="tol=1e-5"),
        SKLEARN.contender("sag", LOGISTIC, stopping(3e-3, solver="sag", random_state=0), note="tol=3e-3"),
        SKLEARN.contender("liblinear dual", LOGISTIC, stopping(0.1, solver="liblinear", dual=True), note="tol=0.1"),
        skglm.PEER.contender("L-BFGS", lambda: skglm.LogisticL2(tol=1e-6)),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
