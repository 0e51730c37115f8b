"""From normal equations or a source to coefficients and the record of the fit: what Ridge and RidgeClassifier share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.data.views import Standardised
from separatrix.models.base import Stopwatch
from separatrix.objectives.least_squares import LeastSquares
from separatrix.result import Fit, Status
from separatrix.solvers.choose import choose_least_squares
from separatrix.solvers.conjugate_gradient import minimise_ridge
from separatrix.solvers.nonnegative import solve_nonnegative
from separatrix.solvers.normal_equations import Solution, refine, solve_ridge
from separatrix.statistics.gram import NormalEquations, check_targets
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
    equations: NormalEquations,
    alpha: Float,
    positive: bool,
    source: Source | None,
    watch: Stopwatch,
    dtype: np.dtype[Any] = np.dtype(np.float64),  # noqa: B008  # immutable
) -> tuple[Float, Float, tuple[Fit, int]]:
    """Coefficients (m, d), intercepts (m,), and the record of the fit with the rank."""
    if positive:
        solution = solve_nonnegative(equations, alpha, dtype)
    else:
        solution = solve_ridge(equations, alpha, dtype)
        ill = solution.condition > _ILL_CONDITIONED and not solution.rank_deficient
        if source is not None and ill and dtype == np.float64:
            solution = _refine_from_data(solution, equations, alpha, source)
    fit = describe(solution, 0 if source is None else source.passes, watch)
    return solution.coef, equations.intercept(solution.coef), (fit, solution.rank)


def _refine_from_data(solution: Solution, equations: NormalEquations, alpha: Float, source: Source) -> Solution:
    least_squares = LeastSquares(alpha, equations.y_mean)
    centred = Standardised(source, centre=equations.x_mean)
    best = solution
    for _ in range(2):
        at = least_squares.evaluate(best.coef, centred, order=1)
        assert at.gradient is not None
        better = refine(best, equations, alpha, at.gradient, float(at.value.sum()))
        if best is not solution and better.certificate.gap >= best.certificate.gap:
            break
        best = better
    return best


def describe(solution: Solution, passes: int, watch: Stopwatch) -> Fit:
    """The record of a closed-form fit."""
    if not solution.rank_deficient:
        return watch.fit(Status.EXACT, passes, certificate=solution.certificate)
    detail = f"{solution.rank} of {solution.coef.shape[1]} columns are independent."
    return watch.fit(Status.RANK_DEFICIENT, passes, detail, solution.certificate)


def fit_by_cg(
    source: Source,
    alpha: Float,
    fit_intercept: bool,
    tol: float,
    max_iter: int | None,
    watch: Stopwatch,
    dtype: np.dtype[Any],
) -> tuple[Float, Float, Fit]:
    """Coefficients (m, d), intercepts (m,) and the record of an iterative fit on a valued source."""

    def of_block(block: Block) -> ClassMoments:
        assert block.y is not None
        return ClassMoments.of_block(block.join(block.y), 1, "diagonal")

    moments = source.reduce(of_block, ClassMoments.merge)
    d = source.n_features
    with np.errstate(invalid="ignore", over="ignore"):  # found by the two checks
        mean, squares = moments.means[0], moments.variances()[0] * moments.total
    check_targets(squares[d:])
    moments.check(source)
    if not fit_intercept:
        squares, mean = squares + moments.total * np.square(mean), np.zeros_like(mean)
    view = Standardised(source, centre=mean[:d])
    coef, status, certificate, steps, trace = minimise_ridge(
        LeastSquares(alpha, mean[d:]), view, squares[:d], moments.total, tol=tol, max_iter=max_iter or _DEFAULT_MAX_ITER
    )
    # The certificate is for the coefficients and the intercept as they are published.
    rounded = coef.astype(dtype).astype(np.float64)
    unit = 4.0 * float(np.finfo(dtype).eps)
    shift = unit * (np.abs(mean[d:]) + np.abs(rounded) @ np.abs(mean[:d]))
    moved = np.abs(rounded - coef)
    extra = moments.total * float(np.square(shift).sum())
    extra += float(((moved @ np.sqrt(squares[:d])) ** 2 + alpha * np.square(moved).sum(axis=1)).sum())
    gap = (np.sqrt(certificate.gap) + np.sqrt(extra)) ** 2
    fit = watch.fit(status, source.passes, certificate=replace(certificate, gap=gap), iterations=steps)
    fit.trace.extend(trace)
    return rounded, mean[d:] - rounded @ mean[:d], fit
