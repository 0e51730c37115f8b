"""B4, first half: L1 logistic regression of sparse documents at λ_max/20.

Nobody fits an intercept: celer has none. Everyone pays for λ_max, one product with Xᵀ, inside `fit`. LIBLINEAR visits the
columns in a random order and at its tolerance 1e-3 sometimes misses the quality, hence 3e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.contender import OURS, construct
from benchmarks.data import Data, weighted_documents
from benchmarks.goals import Faster
from benchmarks.optimum import l1_optimum, relative_gap, strongest
from benchmarks.peers import celer, liblinear, skglm
from benchmarks.peers.sklearn import PEER as SKLEARN
from benchmarks.workload import Check, FitWorkload

LOGISTIC = "sklearn.linear_model:LogisticRegression"
FRACTION = 20.0


class AtFraction:
    """The model called `path`, fitted with the C of λ_max/20."""

    def __init__(self, path: str, parameters: dict[str, Any]) -> None:
        self.path, self.parameters = path, parameters

    def fit(self, X: Any, y: Any) -> AtFraction:
        model = construct(self.path, {**self.parameters, "C": FRACTION / strongest(X, y)}).fit(X, y)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        return self


def own(path: str, **parameters: Any) -> Callable[[], AtFraction]:
    """A peer's adapter, L1 and without an intercept by itself."""
    return partial(AtFraction, path, parameters)


def told(path: str, **parameters: Any) -> Callable[[], AtFraction]:
    """scikit-learn's estimator, or one with its parameters."""
    return own(path, l1_ratio=1.0, fit_intercept=False, **parameters)


def check(data: Data) -> Check:
    C = FRACTION / strongest(data.X, data.y)
    return relative_gap(data, l1_optimum(data, C), C, l1_ratio=1.0)


WORKLOAD = FitWorkload(
    module=__name__,
    id="B4",
    title="sparse L1 logistic regression at λ_max/20, no intercept",
    goals=(Faster(2),),
    data=weighted_documents(100_000, 47_000, 61),
    contenders=(
        OURS.contender("LogisticRegression", told("separatrix:LogisticRegression", tol=9e-7)),
        liblinear.PEER.contender(
            "L1", own("benchmarks.peers.liblinear:Linear", solver=6, tol=3e-4), note="with its conversion"
        ),
        SKLEARN.contender("liblinear", told(LOGISTIC, solver="liblinear", tol=3e-4), note="tol=3e-4"),
        SKLEARN.contender("saga", told(LOGISTIC, solver="saga", tol=3e-3, random_state=0), note="tol=3e-3"),
        skglm.PEER.contender("SparseLogisticRegression", own("benchmarks.peers.skglm:LogisticL1", tol=3e-6)),
        celer.PEER.contender("prox-Newton", own("benchmarks.peers.celer:LogisticL1", tol=5e-4)),
    ),
    check=check,
    quality="relative gap of the objective to the optimum",
    tolerance=1e-6,
)
