"""celer: L1 models by working sets and dual extrapolation, without an intercept. Only L1, so only in B4.

It works on columns; the conversion from rows is inside `fit`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("celer", distribution="celer", module="celer")


class LogisticL1:
    """L1 logistic regression without an intercept by celer's prox-Newton, at one C or along a path."""

    def __init__(self, tol: float, C: float = 1.0) -> None:
        self.tol, self.C = tol, C

    def fit(self, X: Any, y: Any) -> LogisticL1:
        self.coef_ = self.path(X, y, [self.C])
        self.intercept_ = 0.0
        return self

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        """The coefficients at each of `Cs`, which ascend, a row each."""
        import numpy as np
        import scipy.sparse as sp

        alphas = 1.0 / np.asarray(Cs)
        solve = import_module("celer").celer_path
        return solve(sp.csc_matrix(X), 2.0 * y - 1.0, "logreg", alphas=alphas, tol=self.tol, use_PN=True)[1].T
