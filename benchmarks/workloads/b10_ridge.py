"""B10: the ridge classifier."""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import Faster, FasterThan
from benchmarks.peers.intelex import PEER as INTELEX
from benchmarks.peers.intelex import RidgeOnLabels
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import class_moments, relative_error, ridge_scores
from benchmarks.workload import Check, FitWorkload

RIDGE = "sklearn.linear_model:RidgeClassifier"


def check(data: Data) -> Check:
    reference = ridge_scores(class_moments(data), penalty=1.0, rows=data.probe)
    return lambda model: relative_error(model.decision_function(data.probe), reference)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B10",
    title="ridge classifier, alpha=1",
    goals=(Faster(3), FasterThan(10, "scikit-learn RidgeClassifier")),
    data=gaussian_classes(400_000, 100, 10),
    contenders=(
        OURS.contender("RidgeClassifier", "separatrix:RidgeClassifier"),
        SKLEARN.contender("RidgeClassifier", RIDGE, default=True),
        SKLEARN.contender("RidgeClassifier cholesky", RIDGE, {"solver": "cholesky"}),
        INTELEX.contender("Ridge", RidgeOnLabels, note="its Ridge on ±1 targets; it has no RidgeClassifier of its own"),
    ),
    check=check,
    quality="relative error of the decision values on 2 000 rows",
)
