"""glum: generalised linear models by iteratively reweighted least squares.

It has no softmax model. On a fifth of the sparse rows of B3 its L-BFGS took twenty times as long as scikit-learn's, and
its least squares would solve 47 000 equations; so only in B1.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("glum", distribution="glum", module="glum")


class Logistic:
    """Logistic regression of two classes, L2 unless told otherwise; its objective is a mean over rows."""

    def __init__(self, C: float = 1.0, **parameters: Any) -> None:
        self.C, self.parameters = C, parameters

    def fit(self, X: Any, y: Any) -> Logistic:
        alpha = 1.0 / (self.C * len(y))
        parameters = {"family": "binomial", "alpha": alpha, "l1_ratio": 0.0, **self.parameters}
        model = import_module("glum").GeneralizedLinearRegressor(**parameters)
        model.fit(X, y)
        self.coef_, self.intercept_ = model.coef_[None, :], model.intercept_
        return self
