"""skglm: sparse generalised linear models by working sets and prox-Newton steps.

For the smooth L2 penalty it hands SciPy's L-BFGS its compiled loss, without an intercept: in B3, not in B1. It has no
softmax model. It works on columns; the conversion from rows is inside `fit`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("skglm", distribution="skglm", module="skglm")


class LogisticL2:
    """L2 logistic regression by its LBFGS, C=1, no intercept; its objective is a mean over rows."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def fit(self, X: Any, y: Any) -> LogisticL2:
        import scipy.sparse as sp

        loss = import_module("skglm.datafits").Logistic()
        penalty = import_module("skglm.penalties").L2(1.0 / len(y))
        solver = import_module("skglm.solvers").LBFGS(max_iter=1000, tol=self.tol)
        coef, *_ = solver.solve(sp.csc_matrix(X), 2.0 * y - 1.0, loss, penalty)
        self.coef_, self.intercept_ = coef[None, :], 0.0
        return self


class LogisticL1:
    """L1 logistic regression at one C, or along a path, each point from the one before."""

    def __init__(self, tol: float, C: float = 1.0, fit_intercept: bool = False) -> None:
        self.tol, self.C, self.fit_intercept = tol, C, fit_intercept

    def fit(self, X: Any, y: Any) -> LogisticL1:
        import numpy as np
        import scipy.sparse as sp

        model = (
            import_module("skglm")
            .SparseLogisticRegression(
                alpha=1.0 / (self.C * len(y)), tol=self.tol, max_iter=100, fit_intercept=self.fit_intercept
            )
            .fit(sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X), y)
        )
        self.coef_, self.intercept_ = np.reshape(model.coef_, (1, -1)), model.intercept_
        return self

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        """The coefficients, and the intercept after them, at each of `Cs`, a row each."""
        import numpy as np
        import scipy.sparse as sp

        model = import_module("skglm").SparseLogisticRegression(
            tol=self.tol, max_iter=100, fit_intercept=self.fit_intercept, warm_start=True
        )
        columns = sp.csc_matrix(X)
        coefs = []
        for C in Cs:
            model.set_params(alpha=1.0 / (C * len(y))).fit(columns, y)
            coefs.append(np.append(model.coef_, model.intercept_ if self.fit_intercept else []))
        return np.vstack(coefs)
