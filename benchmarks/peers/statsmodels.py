"""statsmodels: generalised linear models, penalised by `fit_regularized`. No softmax with a penalty, no sparse rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("statsmodels", distribution="statsmodels", module="statsmodels")


class Logistic:
    """L2 logistic regression of two classes, C=1, the intercept free; its objective is a mean over rows."""

    def fit(self, X: Any, y: Any) -> Logistic:
        import numpy as np

        api = import_module("statsmodels.api")
        penalties = np.full(X.shape[1] + 1, 1.0 / len(y))
        penalties[0] = 0.0
        model = api.GLM(y, api.add_constant(X), family=api.families.Binomial())
        coef = model.fit_regularized(alpha=penalties, L1_wt=0.0).params
        self.coef_, self.intercept_ = coef[None, 1:], coef[0]
        return self
