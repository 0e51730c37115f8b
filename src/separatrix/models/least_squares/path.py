"""A grid of ridge penalties in one call: one pass over the data, one spectrum S_xx = VΛVᵀ for all of them.

w(α) = V(Λ + αI)⁻¹VᵀS_xy,      b(α) = ȳ − w(α)ᵀx̄
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from separatrix.data import as_source
from separatrix.data.block import Float
from separatrix.models.least_squares.ridge import penalty_grid
from separatrix.models.least_squares.task import LeastSquaresTask, polish
from separatrix.settings import one_blas_thread
from separatrix.solvers.least_squares.normal_equations import ONE_SPECTRUM, Spectrum
from separatrix.statistics.gram import Gram
from separatrix.statistics.triangular import Triangular


@dataclass(frozen=True)
class RidgePath:
    """Ridge regressions along a grid of α.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        In the order they were given.
    coefs : ndarray of shape (n_alphas, n_targets, n_features)
    intercepts : ndarray of shape (n_alphas, n_targets)
    passes : int
        Passes over the data for the whole grid.
    """

    alphas: Float
    coefs: Float
    intercepts: Float
    passes: int


@one_blas_thread()
def ridge_path(
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    alphas: ArrayLike,
    fit_intercept: bool = True,
) -> RidgePath:
    """Ridge coefficients for a grid of penalties, from one pass over the data.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame or Source of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    sample_weight : array-like of shape (n_samples,), optional
    alphas : array-like of shape (n_alphas,)
        Penalties ≥ 0.
    fit_intercept : bool, default=True

    Returns
    -------
    RidgePath

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from separatrix import ridge_path
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = ridge_path(X, y, alphas=[0.1, 1.0, 10.0])
    >>> path.coefs.shape, path.intercepts.shape
    ((3, 1, 10), (3, 1))
    """
    grid = penalty_grid(alphas)
    source = as_source(X, y, sample_weight).valued()
    first = source.passes
    gram = Gram.of_source(source)
    plain = LeastSquaresTask(np.zeros(gram.n_targets), fit_intercept)
    equations = plain.read(gram)
    spectrum, rows = Spectrum(equations), None
    coefs, intercepts = [], []
    for alpha in grid:
        if alpha > 0 and spectrum.condition(alpha) < ONE_SPECTRUM:
            coefs.append(spectrum.coef(float(alpha)))
            intercepts.append(equations.intercept(coefs[-1]))
            continue
        # One spectrum serves all penalties, but it is in the user's units and has the digits of a Gram matrix: the others
        # are fits of their own.
        task = replace(plain, alpha=np.full(gram.n_targets, alpha))
        solution = task.solve(equations)
        if not solution.resolved:
            if rows is None:
                thin = equations.scatter.thin
                rows = equations if thin else task.read(Triangular.of_source(source, gram.mean()))
            solution = polish(task, task.solve(rows), rows, source)
        coefs.append(solution.coef)
        intercepts.append(solution.intercept)
    return RidgePath(grid, np.stack(coefs), np.stack(intercepts), source.passes - first)
