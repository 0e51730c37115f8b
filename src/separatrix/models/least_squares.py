"""From normal equations or a source to coefficients and the record of the fit: what Ridge and RidgeClassifier share."""

from __future__ import annotations

import numpy as np

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.views import Standardised
from separatrix.models.base import Stopwatch
from separatrix.objectives.least_squares import LeastSquares
from separatrix.result import Fit, Status
from separatrix.solvers.choose import choose_least_squares
from separatrix.solvers.conjugate_gradient import minimise_ridge
from separatrix.solvers.normal_equations import Solution, refine, solve_nonnegative, solve_ridge
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.moments import ClassMoments

SOLVERS = {"auto", "gram", "cg", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}
_DEFAULT_MAX_ITER = 1000
# Above this the rounding of the statistic costs more than 1e-10 in the coefficients: a second pass takes it out.
_ILL_CONDITIONED = 1e6


def wants_cg(solver: str, n_rows: int | None, n_features: int) -> bool:
    """Whether to iterate. Names of scikit-learn's solvers mean "auto": every one of them has the same optimum."""
    if solver in ("gram", "cg"):
        return solver == "cg"
    return choose_least_squares(n_rows, n_features) == "cg"


def fit_equations(
    equations: NormalEquations, alpha: Float, positive: bool, source: Source | None, watch: Stopwatch
) -> tuple[Float, Float, tuple[Fit, int]]:
    """Coefficients (m, d), intercepts (m,), and the record of the fit with the rank."""
    solution = solve_nonnegative(equations, alpha) if positive else solve_ridge(equations, alpha)
    if source is not None and not positive and solution.condition > _ILL_CONDITIONED and not solution.rank_deficient:
        solution = _refine_from_data(solution, equations, alpha, source)
    fit = describe(solution, 0 if source is None else source.passes, watch)
    return solution.coef, equations.intercept(solution.coef), (fit, solution.rank)


def _refine_from_data(solution: Solution, equations: NormalEquations, alpha: Float, source: Source) -> Solution:
    objective = LeastSquares(alpha, equations.y_mean)
    centred = Standardised(source, centre=equations.x_mean)
    for _ in range(2):
        at = objective.evaluate(solution.coef, centred, order=1)
        assert at.gradient is not None
        solution = refine(solution, equations, alpha, at.gradient, float(at.value.sum()))
    return solution


def describe(solution: Solution, passes: int, watch: Stopwatch) -> Fit:
    """The record of a closed-form fit."""
    if not solution.rank_deficient:
        return watch.fit(Status.EXACT, passes, certificate=solution.certificate)
    detail = f"{solution.rank} of {solution.coef.shape[1]} columns are independent."
    return watch.fit(Status.RANK_DEFICIENT, passes, detail, solution.certificate)


def fit_by_cg(
    source: Source, alpha: Float, fit_intercept: bool, tol: float, max_iter: int | None, watch: Stopwatch
) -> tuple[Float, Float, Fit]:
    """Coefficients (m, d), intercepts (m,) and the record of an iterative fit on a valued source."""

    def of_block(block: Block) -> ClassMoments:
        assert block.y is not None
        return ClassMoments.of_block(block.join(block.y), 1, "diagonal")

    moments = source.reduce(of_block, ClassMoments.merge)
    moments.check(source)
    d = source.n_features
    mean, squares = moments.means[0], moments.variances()[0] * moments.total
    if not fit_intercept:
        squares, mean = squares + moments.total * np.square(mean), np.zeros_like(mean)
    view = Standardised(source, centre=mean[:d])
    coef, status, certificate, steps, trace = minimise_ridge(
        LeastSquares(alpha, mean[d:]), view, squares[:d], tol=tol, max_iter=max_iter or _DEFAULT_MAX_ITER
    )
    fit = watch.fit(status, source.passes, certificate=certificate, iterations=steps)
    fit.trace.extend(trace)
    return coef, mean[d:] - coef @ mean[:d], fit
