"""B11: probabilities of a linear discriminant analysis of ten classes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.prediction import TOLERANCE, Prediction, check_linear, given, sample_fit
from benchmarks.workload import Check, FitWorkload

ROWS = gaussian_classes(1_000_000, 100, 10)


@lru_cache(maxsize=1)
def fitted() -> Any:
    return sample_fit("separatrix:LinearDiscriminantAnalysis", {}, ROWS)


def check(data: Data) -> Check:
    return check_linear(data, fitted().coef_, fitted().intercept_)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B11",
    title="predict_proba, LDA, 10 classes",
    goals=(Faster(2),),
    data=ROWS,
    contenders=(
        OURS.contender("LDA", lambda: Prediction(fitted())),
        SKLEARN.contender(
            "LDA",
            lambda: given("sklearn.discriminant_analysis:LinearDiscriminantAnalysis", fitted(), "coef_", "intercept_"),
            default=True,
        ),
    ),
    check=check,
    quality="relative error of the probabilities on 2 000 rows",
    tolerance=TOLERANCE,
)
