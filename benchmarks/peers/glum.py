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
    """L2 logistic regression of two classes, C=1; its objective is a mean over rows."""

    def fit(self, X: Any, y: Any) -> Logistic:
        model = import_module("glum").GeneralizedLinearRegressor(family="binomial", alpha=1.0 / len(y), l1_ratio=0.0)
        model.fit(X, y)
        self.coef_, self.intercept_ = model.coef_[None, :], model.intercept_
        return self
