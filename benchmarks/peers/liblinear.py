"""LIBLINEAR through its own Python interface: linear models of sparse rows.

Its users pay for the conversion of the rows to LIBLINEAR's nodes, so it is inside `fit`. It penalises an intercept as the
weight of a column of ones; its primal solvers and the L1 ones can be told not to. It has no softmax model, and dense rows
have to be made sparse first.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("liblinear", distribution="liblinear-official", module="liblinear")


class Linear:
    """A linear model of two classes, at one C or at several.

    `solver` is LIBLINEAR's -s. Logistic: 0 is L2 in the primal, 7 is L2 in the dual, 6 is L1. Support vector machines: 3 is the
    hinge, 1 the squared hinge in the dual, 2 in the primal. `tol` is its -e. `intercept`: none, "penalised", or "free".
    """

    def __init__(self, solver: int, tol: float, C: float = 1.0, intercept: str = "") -> None:
        self.solver, self.tol, self.C, self.intercept = solver, tol, C, intercept

    def fit(self, X: Any, y: Any) -> Linear:
        whole = self.path(X, y, [self.C])
        self.coef_, self.intercept_ = whole[:, : X.shape[1]], whole[0, X.shape[1] :] if self.intercept else 0.0
        return self

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        """The coefficients, and the intercept after them, at each of `Cs`, a row each; X is converted once."""
        import numpy as np
        import scipy.sparse as sp

        library = import_module("liblinear.liblinearutil")
        problem = library.problem(y.astype(np.float64), sp.csr_matrix(X))
        bias = {"": "", "penalised": "-B 1", "free": "-B 1 -R"}[self.intercept]
        width = X.shape[1] + bool(bias)
        coefs = np.empty((len(Cs), width))
        for coef, C in zip(coefs, Cs, strict=True):
            model = library.train(problem, f"-s {self.solver} -c {float(C)!r} -e {self.tol!r} {bias} -q")
            # The weights are those of the label that was met first.
            sign = 1.0 if model.get_labels()[0] == y.max() else -1.0
            coef[:] = sign * np.ctypeslib.as_array(model.w, (width,))
        return coefs
