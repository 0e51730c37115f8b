"""B11: probabilities of a softmax regression: a million rows of ten classes, and 300 000 wider ones of four."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from benchmarks.contender import OURS
from benchmarks.data import Data, logistic_rows
from benchmarks.goals import Faster
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.prediction import TOLERANCE, Prediction, check_linear, given, sample_fit
from benchmarks.workload import Check, FitWorkload

ROWS = {"10_classes": logistic_rows(1_000_000, 100, 10), "4_classes": logistic_rows(300_000, 150, 4)}


@lru_cache(maxsize=1)
def fitted(key: str) -> Any:
    return sample_fit("separatrix:LogisticRegression", {}, ROWS[key])


def check(key: str, data: Data) -> Check:
    return check_linear(data, fitted(key).coef_, fitted(key).intercept_)


def theirs(key: str) -> Prediction:
    return given("sklearn.linear_model:LogisticRegression", fitted(key), "coef_", "intercept_")


def case(key: str, title: str) -> FitWorkload:
    def ours() -> Prediction:
        return Prediction(fitted(key))

    return FitWorkload(
        module=f"{__name__}:{key}",
        id="B11",
        title=f"predict_proba, logistic regression, {title}",
        goals=(Faster(2),),
        data=ROWS[key],
        contenders=(
            OURS.contender("LogisticRegression", ours),
            SKLEARN.contender("LogisticRegression", partial(theirs, key), default=True),
        ),
        check=partial(check, key),
        quality="relative error of the probabilities on 2 000 rows",
        tolerance=TOLERANCE,
    )


CASES = {
    "10_classes": case("10_classes", "10 classes"),
    "4_classes": case("4_classes", "300 000 × 150, 4 classes"),
}
