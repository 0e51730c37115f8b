"""B11: probabilities of a logistic regression of two classes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.prediction import TOLERANCE, Prediction, check_linear, given, sample_fit
from benchmarks.workload import Check, FitWorkload

ROWS = logistic_rows(1_000_000, 100, 2)


@lru_cache(maxsize=1)
def fitted() -> Any:
    return sample_fit("separatrix:LogisticRegression", {}, ROWS)


def check(data: Data) -> Check:
    return check_linear(data, fitted().coef_, fitted().intercept_)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B11",
    title="predict_proba, logistic regression, 2 classes",
    goals=(Faster(2),),
    data=ROWS,
    contenders=(
        OURS.contender("LogisticRegression", lambda: Prediction(fitted())),
        SKLEARN.contender(
            "LogisticRegression",
            lambda: given("sklearn.linear_model:LogisticRegression", fitted(), "coef_", "intercept_"),
            default=True,
        ),
    ),
    check=check,
    quality="relative error of the probabilities on 2 000 rows",
    tolerance=TOLERANCE,
)
