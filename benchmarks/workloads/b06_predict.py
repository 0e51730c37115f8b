"""B6: predictions of a radial machine with many support vectors.

Ours is fitted on a share of the rows; the peers are fitted there too, to the same tolerance, so that all have nearly the same
support vectors. The quality is the accuracy of each machine's own scores, against a sum by differences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.contender import OURS, construct
from benchmarks.data import PROBE_ROWS, Data, curved_classes
from benchmarks.goals import Faster
from benchmarks.margins import scores
from benchmarks.peers import intelex
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import relative_error
from benchmarks.workload import Check, FitWorkload

ROWS = curved_classes(100_000, 30)
SHARE = 0.1


class Decision:
    """A fitted machine whose `fit(X, y)` computes the scores of X."""

    def __init__(self, path: str) -> None:
        self.model = machine(path)

    def fit(self, X: Any, y: Any) -> Decision:
        self.scores_ = self.model.decision_function(X)
        return self


@lru_cache(maxsize=4)
def machine(path: str) -> Any:
    sample = ROWS(SHARE)
    return construct(path, {"gamma": 1.0 / sample.X.shape[1]}).fit(sample.X, sample.y)


def check(data: Data) -> Check:
    probe = Data(data.probe, data.y[:PROBE_ROWS], "")

    def error(decision: Any) -> float:
        model = decision.model
        coefficients = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
        exact = scores(probe, np.asarray(model.support_vectors_), coefficients, 1.0 / data.X.shape[1])
        return relative_error(decision.scores_[:PROBE_ROWS], exact + float(np.ravel(model.intercept_)[0]))

    return error


WORKLOAD = FitWorkload(
    module=__name__,
    id="B6",
    title="decision_function, RBF SVM fitted on 10 000 rows",
    goals=(Faster(3),),
    data=ROWS,
    contenders=(
        OURS.contender("SVC", lambda: Decision("separatrix:SVC")),
        SKLEARN.contender("SVC", lambda: Decision("sklearn.svm:SVC"), default=True),
        intelex.PEER.contender("SVC", lambda: Decision("sklearnex.svm:SVC")),
    ),
    check=check,
    quality="relative error of the scores on 2 000 rows",
    tolerance=1e-9,
)
