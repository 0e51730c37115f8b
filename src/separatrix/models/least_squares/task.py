"""From normal equations or a source to coefficients and the record of the fit: what Ridge and RidgeClassifier share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from separatrix.data import Block, Source
from separatrix.data.affine import Standardised
from separatrix.data.block import Float
from separatrix.models.stopwatch import Stopwatch
from separatrix.objectives.least_squares import LeastSquares
from separatrix.result import Fit, Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.least_squares.choose import GRAM_LIMIT, affordable_steps, choose_least_squares
from separatrix.solvers.least_squares.conjugate_gradient import minimise_ridge
from separatrix.solvers.least_squares.dual_factor import solve_dual_ridge
from separatrix.solvers.least_squares.dual_gradient import minimise_dual_ridge
from separatrix.solvers.least_squares.nonnegative import solve_nonnegative
from separatrix.solvers.least_squares.norm_ball import solve_norm_ball
from separatrix.solvers.least_squares.normal_equations import LeastSquaresSolution, solve_ridge
from separatrix.solvers.least_squares.primal_gradient import expected_steps, minimise_primal_ridge
from separatrix.solvers.least_squares.refinement import refine
from separatrix.solvers.least_squares.weighted_rows import (
    DenseRows,
    FewDenseRows,
    FewSparseRows,
    GramRows,
    SparseRows,
    WeightedRows,
)
from separatrix.statistics.gram import Gram, NormalEquations, check_targets
from separatrix.statistics.moments import ClassMoments
from separatrix.statistics.triangular import Triangular

SOLVERS = {"auto", "gram", "cg", "svd", "cholesky", "lsqr", "sparse_cg", "sag", "saga", "lbfgs"}
NO_STATISTIC = "A fit that reads its rows several times keeps no statistic to {verb}; use solver='gram'."
_DEFAULT_MAX_ITER = 1000


def method_for(solver: str, X: Any, penalised: bool, n_targets: int = 1) -> str:
    """How a fit to X, a source or what becomes one, is made: "gram" is one pass, the others keep no statistic.

    Names of scikit-learn's solvers mean "auto": every one of them has the same optimum.
    """
    if solver in ("gram", "cg"):
        return solver
    if isinstance(X, Source):
        n_rows, n_features, entries, dense = X.n_rows, X.n_features, X.entries, X.array() is not None
    elif len(getattr(X, "shape", ())) == 2:
        (n_rows, n_features), entries, dense = X.shape, getattr(X, "nnz", None), isinstance(X, np.ndarray)
    else:
        return "gram"
    if not penalised:
        return choose_least_squares(n_rows, n_features)
    return choose_least_squares(n_rows, n_features, entries=entries, n_targets=n_targets, dense=dense)


class StepCount:
    """`n_iter_` of a model that iterates or has a closed form."""

    fit_: Fit

    @property
    def n_iter_(self) -> int:
        """Steps of "cg"; 1 for a closed form."""
        if not hasattr(self, "fit_"):
            raise AttributeError("n_iter_ is there after fit.")
        return max(1, self.fit_.iterations)


@dataclass(frozen=True)
class LeastSquaresTask:
    """What is minimised, whatever the statistic it is read from."""

    alpha: Float
    fit_intercept: bool = True
    positive: bool = False
    max_norm: float | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009  # immutable

    def solve(self, equations: NormalEquations) -> LeastSquaresSolution:
        """The answer from one statistic."""
        if self.positive:
            return solve_nonnegative(equations, self.alpha, self.dtype)
        if self.max_norm is not None:
            return solve_norm_ball(equations, self.max_norm, self.dtype)
        return solve_ridge(equations, self.alpha, self.dtype)

    def read(self, statistic: Gram | Triangular) -> NormalEquations:
        """The normal equations of a statistic, about the mean or the origin."""
        return statistic.normal_equations() if self.fit_intercept else statistic.normal_equations().without_intercept()

    @property
    def plain(self) -> bool:
        """Whether the optimum is that of a linear system."""
        return not self.positive and self.max_norm is None


def polish(
    task: LeastSquaresTask, solution: LeastSquaresSolution, equations: NormalEquations, source: Source
) -> LeastSquaresSolution:
    """The answer after steps of refinement with gradients from the data in twice the precision: see `refine`."""
    if not task.plain or solution.rank_deficient:
        return solution
    return refine(solution, equations, task.alpha, source, task.fit_intercept, task.dtype)


def describe(solution: LeastSquaresSolution, passes: int, watch: Stopwatch) -> Fit:
    """The record of a closed-form fit."""
    status, detail = verdict(solution)
    return watch.fit(status, passes, detail, solution.certificate)


def verdict(solution: LeastSquaresSolution) -> tuple[Status, str]:
    """What a closed form achieved, judged at the coefficients that are published."""
    d = solution.coef.shape[1]
    if solution.rank_deficient and solution.established:
        # Nothing but F ≥ 0 bounds the gap, but what the last rounding added to F is known.
        if not solution.exact(solution.certificate.gap - solution.gap_before_rounding):
            return Status.ROUNDED, f"{solution.rank} of {d} columns are independent."
        return Status.RANK_DEFICIENT, f"{solution.rank} of {d} columns are independent."
    if solution.rank_deficient:
        return Status.UNPROVEN, (
            f"The sums that parts leave behind resolve {solution.rank} of {d} columns; whether the others depend on them can "
            "only be seen in the rows: fit on all of them at once."
        )
    if solution.exact():
        return Status.EXACT, ""
    if solution.exact(solution.gap_before_rounding):
        return Status.ROUNDED, ""
    return (Status.STALLED if solution.certificate.gap < solution.certificate.objective else Status.UNPROVEN), ""


def fit_by_cg(
    source: Source,
    alpha: Float,
    fit_intercept: bool,
    tol: float,
    max_iter: int | None,
    watch: Stopwatch,
    dtype: np.dtype[Any],
    solver: str = "cg",
) -> tuple[Float, Float, Fit] | None:
    """Coefficients (m, d), intercepts (m,) and the record of an iterative fit on a valued source.

    None where another `solver` than "cg" is meant and the problem is too ill-conditioned for it: the closed form is left.
    """
    penalised, array = bool((alpha > 0).all()), source.array()
    if method_for(solver, source, penalised, len(alpha)) == "dual":
        return _fit_by_dual(source, alpha, fit_intercept, tol, 0, watch, dtype)
    if penalised and (source.entries is not None or (array is not None and solver != "cg")):
        n, d = source.n_rows or 0, source.n_features
        steps = most = max_iter or _DEFAULT_MAX_ITER
        if solver != "cg":
            steps = int(min(most, affordable_steps(n, d, source.entries, len(alpha))))
            tall = array if d <= min(n, GRAM_LIMIT) else None
            if tall is not None and expected_steps(tall, float(alpha.min()), tol) > steps:
                return None
        found = _fit_by_dual(source, alpha, fit_intercept, tol, steps, watch, dtype, hopeless=steps < most)
        if found is not None and (steps == most or found[2].status is not Status.STALLED):
            return found
        return _fit_by_dual(source, alpha, fit_intercept, tol, 0, watch, dtype) if n < min(d, GRAM_LIMIT) else None

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
    unit = 4.0 * float(np.finfo(dtype).eps)
    # The means are as exact as the values they are of.
    spread = np.abs(mean) + 4.0 * float(np.finfo(np.float64).eps) / unit * np.sqrt(squares / moments.total)

    def of_intercept(coef: Float) -> float:
        error = unit * (spread[d:] + np.abs(coef) @ spread[:d])
        return float(np.sqrt(moments.total) * np.linalg.norm(error)) if fit_intercept else 0.0

    with one_blas_thread():
        coef, status, certificate, steps, trace = minimise_ridge(
            LeastSquares(alpha, mean[d:]),
            view,
            squares[:d],
            moments.total,
            tol=tol,
            max_iter=max_iter or _DEFAULT_MAX_ITER,
            dtype=dtype,
            extra=of_intercept,
        )
    fit = watch.fit(status, source.passes, certificate=certificate, iterations=steps)
    fit.trace.extend(trace)
    return coef, mean[d:] - coef @ mean[:d], fit


def _fit_by_dual(
    source: Source,
    alpha: Float,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    watch: Stopwatch,
    dtype: np.dtype[Any],
    hopeless: bool = False,
) -> tuple[Float, Float, Fit] | None:
    """The same with a bound from the dual, on rows that are in memory; every target has a penalty.

    Without steps the Gram matrix of few rows is factored. `hopeless` as for `minimise_dual_ridge`.
    """
    sparse = source.array() is None
    kind = (SparseRows if sparse else DenseRows) if max_iter else FewSparseRows if sparse else FewDenseRows
    with one_blas_thread():
        rows: WeightedRows = kind(source, fit_intercept)
        target_squares = np.square(rows.targets).sum(axis=0)
        check_targets(target_squares)
        rows.check_sums()
        if isinstance(rows, GramRows):
            rows.check_squares()
            return fit_few_rows(rows, alpha, fit_intercept, watch, dtype)
        of_intercept = partial(_intercept_rounding, rows, fit_intercept, dtype)
        # The system of the columns where there are more rows: it is the smaller and better conditioned one.
        by_columns = len(rows.targets) >= source.n_features
        if by_columns:
            rows.check_squares()
        method = minimise_primal_ridge if by_columns else minimise_dual_ridge
        solved = method(rows, alpha, tol=tol, max_iter=max_iter, dtype=dtype, extra=of_intercept, hopeless=hopeless)
        if solved is None:
            return None
        rows.check_squares()
    coef, status, certificate, steps, trace = solved
    fit = watch.fit(status, source.passes, certificate=certificate, iterations=steps)
    fit.trace.extend(trace)
    return coef, rows.target_mean - coef @ rows.centre, fit


def fit_few_rows(
    rows: GramRows, alpha: Float, fit_intercept: bool, watch: Stopwatch, dtype: np.dtype[Any]
) -> tuple[Float, Float, Fit] | None:
    """The same from the Gram matrix of few rows; None where rounding does not allow it."""
    solution = solve_dual_ridge(rows, alpha, dtype, partial(_intercept_rounding, rows, fit_intercept, dtype))
    if solution is None:
        return None
    return solution.coef, solution.intercept, describe(solution, rows.source.passes, watch)


def _intercept_rounding(rows: WeightedRows, fit_intercept: bool, dtype: np.dtype[Any], coef: Float) -> float:
    """√ of what F gains because the intercept is rounded. The means are as exact as the values they are of."""
    if not fit_intercept:
        return 0.0
    unit = 4.0 * float(np.finfo(dtype).eps)
    part = 4.0 * float(np.finfo(np.float64).eps) / unit
    height = np.abs(rows.target_mean) + part * np.sqrt(np.square(rows.targets).sum(axis=0) / rows.total)
    spread = np.abs(rows.centre) + part * np.sqrt(rows.squares / rows.total)
    error = unit * (height + np.abs(coef) @ spread)
    return float(np.sqrt(rows.total) * np.linalg.norm(error))
