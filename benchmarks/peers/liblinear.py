"""LIBLINEAR through its own Python interface: linear models of sparse rows.

Its users pay for the conversion of the rows to LIBLINEAR's nodes, so it is inside `fit`. It penalises an intercept (only
its primal solvers can be told not to), so workloads with LIBLINEAR fit none. It has no softmax model, and dense rows
have to be made sparse first.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contender import Peer

PEER = Peer("liblinear", distribution="liblinear-official", module="liblinear")


class Linear:
    """A linear model of two classes without an intercept, at one C or at several.

    `solver` is LIBLINEAR's -s. Logistic: 0 is L2 in the primal, 7 is L2 in the dual, 6 is L1. Support vector machines: 3 is the
    hinge, 1 the squared hinge in the dual, 2 in the primal. `tol` is its -e.
    """

    def __init__(self, solver: int, tol: float, C: float = 1.0) -> None:
        self.solver, self.tol, self.C = solver, tol, C

    def fit(self, X: Any, y: Any) -> Linear:
        self.coef_ = self.path(X, y, [self.C])
        self.intercept_ = 0.0
        return self

    def path(self, X: Any, y: Any, Cs: Any) -> Any:
        """The coefficients at each of `Cs`, a row each; the rows of X are converted once."""
        import numpy as np
        import scipy.sparse as sp

        library = import_module("liblinear.liblinearutil")
        problem = library.problem(y.astype(np.float64), sp.csr_matrix(X))
        coefs = np.empty((len(Cs), X.shape[1]))
        for coef, C in zip(coefs, Cs, strict=True):
            model = library.train(problem, f"-s {self.solver} -c {float(C)!r} -e {self.tol!r} -q")
            # The weights are those of the label that was met first.
            sign = 1.0 if model.get_labels()[0] == y.max() else -1.0
            coef[:] = sign * np.ctypeslib.as_array(model.w, (X.shape[1],))
        return coefs
