"""scikit-learn: the library we are a drop-in for, and so the peer of every workload."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("scikit-learn", distribution="scikit-learn", module="sklearn")


class LogisticPath:
    """L1 logistic regression without an intercept along a path, by its liblinear, each point from nothing."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        """The coefficients at each of `Cs`, a row each."""
        import numpy as np

        model = import_module("sklearn.linear_model").LogisticRegression(
            l1_ratio=1.0, solver="liblinear", tol=self.tol, max_iter=1000, fit_intercept=False, random_state=0
        )
        return np.vstack([model.set_params(C=C).fit(X, y).coef_.copy() for C in Cs])
