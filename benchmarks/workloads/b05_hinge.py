"""B5, first half: a linear support vector machine of sparse documents, hinge loss.

Nobody fits an intercept: LIBLINEAR would penalise it. The tolerances of the peers are those that reach the quality.
"""

from __future__ import annotations

from typing import Any

from benchmarks.contender import OURS
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.margins import linear_gap
from benchmarks.peers import liblinear
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload


def check(data: Data) -> Check:
    return linear_gap(data, 1.0, power=1)


def settings(tol: float, **parameters: Any) -> dict[str, Any]:
    return {"loss": "hinge", "fit_intercept": False, "tol": tol, "max_iter": 10_000, **parameters}


WORKLOAD = FitWorkload(
    module=__name__,
    id="B5",
    title="sparse linear SVM, hinge, C=1, no intercept",
    goals=(Faster(2),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("LinearSVC", "separatrix:LinearSVC", settings(1e-6)),
        liblinear.PEER.contender(
            "dual", lambda: liblinear.Linear(solver=3, tol=1e-4), note="with its conversion, -e 1e-4"
        ),
        SKLEARN.contender("LinearSVC", "sklearn.svm:LinearSVC", settings(1e-4, random_state=0), default=True),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
