"""From the parameters of a logistic regression to an objective, and back from its minimiser to coefficients.

    Σ s ℓ(y, o + Wx + b) + P(W)         C and l1_ratio, or a Gaussian prior N(m₀, S₀): P = ½(w − m₀)ᵀS₀⁻¹(w − m₀)

Columns without a penalty that are linear combinations of others are left out (see statistics/dependence.py); their
coefficients are 0. Columns far from the origin, or of extreme size, are seen through a standardising view while the solver
works; the penalty is rewritten for it, so it is the one that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Source
from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Float
from separatrix.data.views import Selected
from separatrix.dual.centred_rows import exact_dot
from separatrix.models.logistic.parameters import bounded, by_column, checked_offset, gaussian
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Logistic, Loss, Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.result import Certificate, Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.bounds import ROUNDING, score_rounding
from separatrix.solvers.choose import NEWTON_PARAMETERS, choose_solver
from separatrix.solvers.dual_ascent import minimise_dual
from separatrix.solvers.gradient import minimise_gradient
from separatrix.solvers.lbfgs import minimise_lbfgs
from separatrix.solvers.newton import minimise_newton
from separatrix.solvers.newton_cg import minimise_newton_cg
from separatrix.solvers.prox_newton import minimise_prox_newton
from separatrix.solvers.sgd import minimise_sgd
from separatrix.solvers.state import Callback, Solution
from separatrix.statistics.dependence import Dependence, dependent_columns

# A mean this much larger than the spread would cost the Hessian more digits than it can spare.
_FAR_FROM_ORIGIN = 1e3
_EXTREME, _FURTHEST = 1e60, 500
_SAMPLE = 1000
_SMALL_HESSIAN = 1000
_NAMED = 8


@dataclass(frozen=True)
class Problem:
    """What a solver needs: an objective and the rows it is summed over, as the solver sees them."""

    objective: LinearObjective
    source: Source
    fit_intercept: bool
    centre: Float
    scale: Float
    sizes: Float
    """(p,) about the root mean squares of the columns, as the solver sees them."""
    dependent: Dependence | None = None
    """Columns without a penalty that are combinations of others: they are left out while the solver works."""

    @property
    def detail(self) -> str:
        """What is to be said about the columns; empty when there is nothing."""
        return "" if self.dependent is None else _left_out(self.dependent, self.source)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, p) of θ."""
        m, p = self.objective.penalty.quadratic.shape
        return m, p

    def start(self, coef: Float | None = None, intercept: Float | None = None) -> Float:
        """θ for given coefficients; zeros without."""
        theta = np.zeros(self.shape)
        if coef is None:
            return theta
        d = coef.shape[1]
        theta[:, :d] = coef * self.scale
        if self.fit_intercept and intercept is not None:
            theta[:, d] = intercept + coef @ self.centre
        return theta

    def finish(self, theta: Float) -> tuple[Float, Float]:
        """Coefficients (m, d) and intercepts (m,) in the units of the data."""
        d = len(self.scale)
        coef = theta[:, :d] / self.scale + 0.0  # no negative zeros
        if not self.fit_intercept:
            return coef, np.zeros(len(theta))
        intercept = np.array([exact_dot(-w, self.centre, b) for w, b in zip(coef, theta[:, d], strict=True)])
        if isinstance(self.objective.loss, Softmax) and self.objective.loss.baseline is None:
            intercept = intercept - intercept.mean()  # only differences between classes mean anything
        return coef, intercept

    def published(self, solution: Solution, tol: float) -> tuple[Status, Certificate]:
        """Status and certificate of the coefficients as they are published: rounding counts, in F and in the intercept.

        Scores are known to p ε Σ_j |θ_jx_j|, which moves F by Σ s|a| times that, where a² ≤ 4ℓ for the smooth losses here
        and |a| ≤ 1 for the others. Where columns are centred, b = β − wᵀc is rounded: in the solver's view the published
        point has the intercept β' = b + wᵀc, and F(β') − F* is at most F(β') − F(β) and the gap at β.
        """
        certificate, loss = solution.certificate, self.objective.loss
        gap, value = certificate.gap, certificate.objective
        if self.centre.any() and self.fit_intercept:
            coef, intercept = self.finish(solution.theta)
            last = [exact_dot(w, self.centre, b) for w, b in zip(coef, intercept, strict=True)]
            theta = np.column_stack([coef * self.scale, last])
            if not np.array_equal(theta, solution.theta):
                value = self.objective.evaluate(theta, self.source).value
                gap += max(0.0, value - certificate.objective) + ROUNDING * abs(certificate.objective)
        squares = 4.0 * abs(value) if np.isfinite(loss.steepest) else solution.total
        magnitude = float((np.abs(solution.theta) * self.sizes).sum()) * float(np.sqrt(squares * solution.total))
        gap += ROUNDING * abs(value) + score_rounding(self.shape[1]) * magnitude
        missed = solution.status is Status.CONVERGED and gap > self.objective.target(tol, value)
        return Status.ROUNDED if missed else solution.status, replace(certificate, gap=gap, objective=value)

    @one_blas_thread()
    def solve(
        self,
        solver: str,
        theta: Float,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        previous: Solution | None = None,
    ) -> Solution:
        """Minimise with the solver of that name; `previous` is the solution for another penalty that θ comes from.

        What ends without a proof is handed to Newton's method where its Hessian is small: it may prove more.
        """
        if self.dependent is not None:
            return self._solve_without(self.dependent, solver, theta, tol, max_iter, callback)
        found = self._run(solver, theta, tol, max_iter, callback, previous)
        small = found.theta.size <= _SMALL_HESSIAN and self.objective.penalty.smooth
        if not (small and found.status is Status.UNPROVEN and self.objective.loss.concordance is not None):
            return found
        left = max(1, max_iter - found.iterations)
        more = minimise_newton(self.objective, self.source, found.theta, tol=tol, max_iter=left, sampled=False)
        return replace(more, iterations=found.iterations + more.iterations, trace=found.trace + more.trace)

    def _run(
        self, solver: str, theta: Float, tol: float, max_iter: int, callback: Callback | None, previous: Solution | None
    ) -> Solution:
        arguments: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "callback": callback}
        name = self.solver(solver)
        if name == "newton":
            return minimise_newton(self.objective, self.source, theta, sampled=previous is None, **arguments)
        if name == "lbfgs":
            return minimise_lbfgs(self.objective, self.source, theta, started=previous is not None, **arguments)
        arguments["intercept"] = self.fit_intercept
        if name == "prox_newton":
            gradient = None if previous is None else previous.loss_gradient
            return minimise_prox_newton(self.objective, self.source, theta, loss_gradient=gradient, **arguments)
        if name == "newton-cg":
            return minimise_newton_cg(self.objective, self.source, theta, sampled=previous is None, **arguments)
        iterative = {
            "gradient": minimise_gradient,
            "sgd": minimise_sgd,
            "dual": minimise_dual,
        }
        return iterative[name](self.objective, self.source, theta, **arguments)

    def _solve_without(
        self, dependent: Dependence, solver: str, theta: Float, tol: float, max_iter: int, callback: Callback | None
    ) -> Solution:
        """The pivoted solution: dependent columns have the coefficient 0.

        Where the dependence is proven, the others reach every score that all of them reach, so a proof for them is one
        for all. Where it is not, nothing is known but F* ≥ 0.
        """
        d, p = len(self.scale), self.shape[1]
        kept = np.setdiff1d(np.arange(p), dependent.columns)
        columns = kept[kept < d]
        if isinstance(self.source, Intercept):
            source: Source = Intercept(Selected(self.source.source, columns))
        else:
            source = Selected(self.source, columns)
        objective = replace(self.objective, penalty=self.objective.penalty.of_columns(kept))
        without = Problem(
            objective, source, self.fit_intercept, self.centre[columns], self.scale[columns], self.sizes[kept]
        )
        found = without.solve(self.solver(solver), theta[:, kept], tol, max_iter, callback)
        whole = np.zeros_like(theta)
        whole[:, kept] = found.theta
        status, certificate = found.status, found.certificate
        if dependent.nearly:
            status = Status.UNPROVEN if status is Status.CONVERGED else status
            method = "the objective is nowhere negative; columns were left out"
            certificate = replace(certificate, gap=certificate.objective, method=method, kind="proven")
        return replace(found, theta=whole, status=status, certificate=certificate, loss_gradient=None)

    def solver(self, asked: str) -> str:
        """The solver that is used when `asked` for."""
        smooth = self.objective.penalty.smooth
        penalised = (
            self.objective.penalty.matrix is not None or not self.objective.penalty.free[:, : len(self.scale)].any()
        )
        best = choose_solver(self.source.n_rows, self.shape[1], self.shape[0], smooth=smooth, penalised=bool(penalised))
        if asked in ("gradient", "sgd"):
            return asked
        if smooth and not penalised and asked == "prox_newton":
            return best  # without a penalty its quadratic models may have no minimum
        if not smooth or asked == "prox_newton":
            return "prox_newton" if self.objective.penalty.matrix is None else best
        if asked == "dual" and not self._has_dual():
            raise ValueError(
                "solver='dual' needs two classes and an L2 penalty of every coefficient about zero; use solver='auto'."
            )
        return asked if asked in ("newton", "lbfgs", "newton-cg", "dual") else best

    def _has_dual(self) -> bool:
        penalty, d = self.objective.penalty, len(self.scale)
        held = (penalty.quadratic[:, :d] > 0).all() and penalty.matrix is None and not penalty.mean.any()
        return bool(held and isinstance(self.objective.loss, Logistic))


def build_problem(
    source: Source,
    *,
    C: float,
    l1_ratio: float,
    fit_intercept: bool,
    baseline: int | None = None,
    penalty_factors: ArrayLike | None = None,
    prior: tuple[ArrayLike, ArrayLike] | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    offset: Float | None = None,
    pivoted: bool = False,
) -> Problem:
    """The objective of a labelled source; `pivoted` asks that linearly dependent columns without a penalty be left out."""
    assert source.classes is not None, "label the source first"
    n_classes, d = len(source.classes), source.n_features
    loss: Loss = Logistic() if n_classes == 2 else Softmax(n_classes, baseline)
    m, p = loss.n_scores, d + fit_intercept
    factors = np.zeros((m, p))
    factors[:, :d] = by_column(penalty_factors, m, d, "penalty_factors", 1.0)
    if not ((factors >= 0) & np.isfinite(factors)).all():
        raise ValueError(
            "penalty_factors has negative or infinite values; give finite factors ≥ 0, 0 for a column without a penalty."
        )
    penalty = Penalty.of_scikit_learn(C, l1_ratio, factors)
    if prior is not None:
        if penalty_factors is not None or l1_ratio:
            raise ValueError("prior takes the place of C, l1_ratio and penalty_factors; give one or the other.")
        penalty = gaussian(prior, m, d, p)
    if bounds is not None:
        penalty = bounded(penalty, bounds, m, d)
    if offset is not None:
        offset = checked_offset(offset, source, m)
    dependent = _dependence(source, penalty, fit_intercept) if pivoted else None
    centre, scale = _conditioning(source, fit_intercept)
    if centre.any() or (scale != 1.0).any():
        source = Standardised(source, centre, scale)
        penalty = penalty.rescaled(np.append(scale, 1.0) if fit_intercept else scale)
    whole = Intercept(source) if fit_intercept else source
    unit = 1.0 if np.isinf(C) or prior is not None else min(1.0, 1.0 / C)
    objective = LinearObjective(loss, penalty, offset, unit, ones=fit_intercept)
    return Problem(objective, whole, fit_intercept, centre, scale, _sizes(whole), dependent)


def _dependence(source: Source, penalty: Penalty, fit_intercept: bool) -> Dependence | None:
    """The dependent ones among the columns that nothing holds back in any score."""
    d = source.n_features
    loose = penalty.free & ~np.isfinite(penalty.low) & ~np.isfinite(penalty.high)
    which = np.flatnonzero(loose[:, :d].all(axis=0))
    return dependent_columns(source, which, fit_intercept) if 0 < len(which) <= NEWTON_PARAMETERS else None


def _left_out(dependent: Dependence, source: Source) -> str:
    """Which columns were left out, and why."""
    inner = source.source if isinstance(source, Intercept) else source

    def names(columns: tuple[int, ...]) -> str:
        said = [inner.column_name(j) for j in columns[:_NAMED]]
        return ", ".join(said) + (f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else "")

    parts = []
    if dependent.exact:
        parts.append(
            f"Linear combinations of the columns before them: {names(dependent.exact)}. They were left out, with "
            "coefficients of 0 (the pivoted solution); no other coefficients fit better."
        )
    if dependent.nearly:
        parts.append(
            f"Too near to linear combinations of the columns before them: {names(dependent.nearly)}. They were left out, "
            "with coefficients of 0; what is lost by it is not known. Drop them, or add a penalty."
        )
    return " ".join(parts)


def _conditioning(source: Source, fit_intercept: bool) -> tuple[Float, Float]:
    """Centre and scale under which the columns are harmless; zeros and ones when they are so already."""
    centre, scale = np.zeros(source.n_features), np.ones(source.n_features)
    rows = _some_rows(source)
    if rows is None:
        return centre, scale
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(rows).max(axis=0, initial=0.0)
        extreme = (size > _EXTREME) | ((size > 0) & (size < 1.0 / _EXTREME))
        if np.isfinite(size).all() and extreme.any():
            # A scale whose square overflows would make the penalty infinite or none at all.
            power = np.round(np.log2(np.where(size > 0, size, 1.0))).clip(-_FURTHEST, _FURTHEST)
            scale = np.where(extreme, 2.0**power, 1.0)
        scaled = rows / scale
        mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
        far = (np.abs(mean) > _FAR_FROM_ORIGIN * spread) & (spread > 0)
    if fit_intercept and far.any() and np.isfinite(mean).all():
        centre = np.where(far, mean * scale, 0.0)
    return centre, scale


def _sizes(source: Source) -> Float:
    """(p,) root mean squares of the columns of a few rows, doubled where these are not all; zeros for very many columns."""
    rows = _some_rows(source)
    if rows is None or not len(rows):
        return np.zeros(source.n_features)
    with np.errstate(invalid="ignore"):  # NaN and infinity are found and named by the first evaluation
        largest = np.abs(rows).max(axis=0)
        unit = np.where(largest > 0, largest, 1.0)  # columns of extreme size have no squares
        sizes: Float = unit * np.sqrt(np.square(rows / unit).mean(axis=0))
    return sizes if source.n_rows is not None and source.n_rows <= _SAMPLE else 2.0 * sizes


def _some_rows(source: Source) -> NDArray[np.float64] | None:
    """A few dense rows; ``None`` for sparse ones with very many columns, whose means are small against their spread."""
    if source.n_features > 20_000:
        return None
    drawn = source.sample(_SAMPLE)
    for block in (source if drawn is None else drawn[0]).blocks():
        part = block.part(slice(0, min(block.n, _SAMPLE))).counted()
        return part.dense() if part.n else None
    return None
