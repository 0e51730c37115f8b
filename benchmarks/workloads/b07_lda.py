"""B7: linear discriminant analysis."""

from __future__ import annotations

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.reference import centred_scores, class_moments, discriminant_scores, relative_error
from benchmarks.workload import Check, FitWorkload

LDA = "sklearn.discriminant_analysis:LinearDiscriminantAnalysis"


def check(data: Data) -> Check:
    reference = discriminant_scores(class_moments(data), alpha=0.0, gamma=1.0, rows=data.probe)
    return lambda model: relative_error(centred_scores(model.decision_function(data.probe)), reference)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B7",
    title="LDA",
    goals=(Faster(8),),
    data=gaussian_classes(400_000, 100, 10),
    contenders=(
        OURS.contender("LDA", "separatrix:LinearDiscriminantAnalysis"),
        SKLEARN.contender("LDA lsqr", LDA, {"solver": "lsqr"}),
        SKLEARN.contender("LDA eigen", LDA, {"solver": "eigen"}),
        SKLEARN.contender("LDA svd", LDA, default=True),
    ),
    check=check,
    quality="relative error of the decision values (up to a term common to all classes) on 2 000 rows",
)
