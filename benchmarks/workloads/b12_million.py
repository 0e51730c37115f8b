"""B12, at size: a posterior of a million rows, beside a plain fit of the same model without one."""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import AtMostMemory, Faster
from benchmarks.optimum import relative_gap, smooth_optimum
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

BAYESIAN = "separatrix:BayesianLogisticRegression"


def check(data: Data) -> Check:
    return relative_gap(data, smooth_optimum(data, 1.0, "newton-cholesky"), 1.0)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B12",
    title="posterior of a million rows, beside scikit-learn's mode alone",
    goals=(Faster(1), AtMostMemory(0.1)),
    data=logistic_rows(1_000_000, 50, 2),
    contenders=(
        OURS.contender("BayesianLogisticRegression", BAYESIAN, {"prior_precision": 1.0}),
        OURS.contender("BayesianLogisticRegression, evidence", BAYESIAN, role="context"),
        SKLEARN.contender("LogisticRegression lbfgs", "sklearn.linear_model:LogisticRegression", default=True),
    ),
    check=check,
    quality="relative gap of the objective of the mode to the optimum (prior precision 1)",
    tolerance=1e-6,
)
