"""B11: probabilities of a Gaussian naive Bayes whose classes share their variances, which makes it linear.

scikit-learn has no such option; its model is given the same variances for every class.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.contender import OURS
from benchmarks.data import Data, gaussian_classes
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.prediction import TOLERANCE, Prediction, check_scores, given, sample_fit
from benchmarks.workload import Check, FitWorkload

ROWS = gaussian_classes(1_000_000, 100, 10)


@lru_cache(maxsize=1)
def fitted() -> Any:
    return sample_fit("separatrix:GaussianNB", {"shared_variance": True}, ROWS)


def check(data: Data) -> Check:
    model = fitted()
    distances = [
        (np.square(data.probe - mean) / variance).sum(axis=1)
        for mean, variance in zip(model.theta_, model.var_, strict=True)
    ]
    return check_scores(np.log(model.class_prior_) - 0.5 * np.column_stack(distances))


WORKLOAD = FitWorkload(
    module=__name__,
    id="B11",
    title="predict_proba, Gaussian naive Bayes with shared variances, 10 classes",
    goals=(Faster(2),),
    data=ROWS,
    contenders=(
        OURS.contender("GaussianNB", lambda: Prediction(fitted())),
        SKLEARN.contender(
            "GaussianNB",
            lambda: given("sklearn.naive_bayes:GaussianNB", fitted(), "theta_", "var_", "class_prior_"),
            default=True,
        ),
    ),
    check=check,
    quality="relative error of the probabilities on 2 000 rows",
    tolerance=TOLERANCE,
)
