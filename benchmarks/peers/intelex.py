"""scikit-learn-intelex: scikit-learn's API on oneDAL, for the algorithms it has of its own.

It has no LDA, no QDA and no RidgeClassifier (there it would run scikit-learn's code under another name). It has
Ridge, from which its user gets a ridge classifier by fitting ±1 targets, as scikit-learn's RidgeClassifier does. Of
logistic regression it has the loss and gradient, binary and softmax, of dense rows with an L2 penalty; sparse rows and L1
go to scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("scikit-learn-intelex", distribution="scikit-learn-intelex", module="sklearnex")


class RidgeOnLabels:
    """oneDAL's Ridge on ±1 targets: the same model as RidgeClassifier."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def fit(self, X: Any, y: Any) -> RidgeOnLabels:
        from sklearn.preprocessing import LabelBinarizer

        targets = LabelBinarizer(neg_label=-1, pos_label=1).fit_transform(y).astype(X.dtype)
        self.ridge_ = import_module("sklearnex.linear_model").Ridge(**self.parameters).fit(X, targets)
        self.coef_, self.intercept_ = self.ridge_.coef_, self.ridge_.intercept_
        return self

    def decision_function(self, X: Any) -> Any:
        return self.ridge_.predict(X)


class Logistic:
    """Its LogisticRegression (L-BFGS), `tol` per row: its own tolerance is on the gradient of the sum over rows."""

    def __init__(self, tol: float, **parameters: Any) -> None:
        self.tol, self.parameters = tol, parameters

    def fit(self, X: Any, y: Any) -> Logistic:
        models = import_module("sklearnex.linear_model")
        model = models.LogisticRegression(tol=self.tol * len(y), **{"max_iter": 1000, **self.parameters}).fit(X, y)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        return self
