"""From the parameters of a logistic regression to an objective, and back from its minimiser to coefficients.

    Σ s ℓ(y, o + Wx + b) + P(W)         C and l1_ratio, or a Gaussian prior N(m₀, S₀): P = ½(w − m₀)ᵀS₀⁻¹(w − m₀)

Columns far from the origin, or of extreme size, are seen through a standardising view while the solver works; the penalty is
rewritten for it, so it is the one that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data import Source
from separatrix.data.block import Float
from separatrix.data.checks import real_numbers
from separatrix.data.views import Intercept, Standardised
from separatrix.objectives.linear import LinearObjective
from separatrix.objectives.losses import Logistic, Loss, Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.result import Certificate
from separatrix.solvers.choose import choose_solver
from separatrix.solvers.dual_ascent import minimise_dual
from separatrix.solvers.gradient import minimise_gradient
from separatrix.solvers.lbfgs import minimise_lbfgs
from separatrix.solvers.newton import minimise_newton
from separatrix.solvers.newton_cg import minimise_newton_cg
from separatrix.solvers.prox_newton import minimise_prox_newton
from separatrix.solvers.sgd import minimise_sgd
from separatrix.solvers.state import Callback, Solution

# A mean this much larger than the spread would cost the Hessian more digits than it can spare.
_FAR_FROM_ORIGIN = 1e3
_EXTREME = 1e60
_SAMPLE = 1000


@dataclass(frozen=True)
class Problem:
    """What a solver needs: an objective and the rows it is summed over, as the solver sees them."""

    objective: LinearObjective
    source: Source
    fit_intercept: bool
    centre: Float
    scale: Float

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
        intercept = theta[:, d] - coef @ self.centre
        if isinstance(self.objective.loss, Softmax) and self.objective.loss.baseline is None:
            intercept = intercept - intercept.mean()  # only differences between classes mean anything
        return coef, intercept

    def published(self, solution: Solution) -> Certificate:
        """The certificate of the coefficients as they are published: `finish` rounds the intercept of centred columns."""
        certificate = solution.certificate
        if not self.centre.any() or not self.fit_intercept:
            return certificate
        coef, intercept = self.finish(solution.theta)
        shift = 2.0 * float(np.finfo(np.float64).eps) * (np.abs(intercept) + np.abs(coef) @ np.abs(self.centre))
        moved = float(shift.sum()) * certificate.stationarity + 0.5 * solution.total * float(np.square(shift).sum())
        return replace(certificate, gap=certificate.gap + moved)

    def solve(
        self,
        solver: str,
        theta: Float,
        tol: float,
        max_iter: int,
        callback: Callback | None = None,
        previous: Solution | None = None,
    ) -> Solution:
        """Minimise with the solver of that name; `previous` is the solution for another penalty that θ comes from."""
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
) -> Problem:
    """The objective of a labelled source."""
    assert source.classes is not None, "label the source first"
    n_classes, d = len(source.classes), source.n_features
    loss: Loss = Logistic() if n_classes == 2 else Softmax(n_classes, baseline)
    m, p = loss.n_scores, d + fit_intercept
    factors = np.zeros((m, p))
    factors[:, :d] = _by_column(penalty_factors, m, d, "penalty_factors", 1.0)
    if not ((factors >= 0) & np.isfinite(factors)).all():
        raise ValueError(
            "penalty_factors has negative or infinite values; give finite factors ≥ 0, 0 for a column without a penalty."
        )
    penalty = Penalty.of_scikit_learn(C, l1_ratio, factors)
    if prior is not None:
        if penalty_factors is not None or l1_ratio:
            raise ValueError("prior takes the place of C, l1_ratio and penalty_factors; give one or the other.")
        penalty = _gaussian(prior, m, d, p)
    if bounds is not None:
        penalty = _bounded(penalty, bounds, m, d)
    if offset is not None:
        offset = _checked_offset(offset, source, m)
    centre, scale = _conditioning(source, fit_intercept)
    if centre.any() or (scale != 1.0).any():
        source = Standardised(source, centre, scale)
        penalty = penalty.rescaled(np.append(scale, 1.0) if fit_intercept else scale)
    whole = Intercept(source) if fit_intercept else source
    unit = 1.0 if np.isinf(C) or prior is not None else min(1.0, 1.0 / C)
    return Problem(LinearObjective(loss, penalty, offset, unit), whole, fit_intercept, centre, scale)


def _by_column(values: ArrayLike | None, m: int, d: int, name: str, default: float) -> Float:
    """A number, (d,) or (m, d), as (m, d)."""
    given = np.asarray(default if values is None else values, dtype=np.float64)
    if np.isnan(given).any():
        raise ValueError(f"{name} contains NaN; give a number for every column.")
    if given.shape not in ((), (d,), (m, d)):
        raise ValueError(f"{name} has shape {given.shape}; give one number, or one for each of the {d} columns.")
    return np.broadcast_to(given, (m, d))


def _gaussian(prior: tuple[ArrayLike, ArrayLike], m: int, d: int, p: int) -> Penalty:
    try:
        mean, covariance = prior
    except (TypeError, ValueError):
        raise ValueError("prior should be a pair (mean, covariance) of the coefficients.") from None
    empty = Penalty.none((m, p))
    centre = np.zeros((m, p))
    centre[:, :d] = _by_column(mean, m, d, "The mean of prior", 0.0)
    if not np.isfinite(centre).all():
        raise ValueError("The mean of prior has infinite values; give a finite number for every column.")
    spread = np.asarray(covariance, dtype=np.float64)
    if spread.shape in ((), (d,)):
        if not (spread > 0).all():
            raise ValueError("The covariance of prior has variances that are not positive.")
        quadratic = np.zeros((m, p))
        quadratic[:, :d] = 1.0 / spread
        return replace(empty, mean=centre, quadratic=quadratic)
    size = spread.shape[0]
    if spread.shape not in ((d, d), (m * d, m * d)):
        raise ValueError(
            f"The covariance of prior has shape {spread.shape}; give a number, one variance a column, or a matrix "
            f"({d}, {d})."
        )
    if not np.allclose(spread, spread.T, rtol=1e-10, atol=0.0):
        raise ValueError("The covariance of prior is not symmetric.")
    try:
        np.linalg.cholesky(spread)
    except np.linalg.LinAlgError:
        raise ValueError("The covariance of prior is not positive definite.") from None
    precision = np.linalg.inv(spread)
    blocks = np.kron(np.eye(m), precision) if size == d and m * d != size else precision
    matrix = np.zeros((m * p, m * p))
    at = (np.arange(m)[:, None] * p + np.arange(d)).ravel()
    matrix[np.ix_(at, at)] = blocks
    return replace(empty, mean=centre, matrix=matrix)


def _bounded(penalty: Penalty, bounds: tuple[ArrayLike, ArrayLike], m: int, d: int) -> Penalty:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError("bounds should be a pair (lower, upper) of numbers or arrays, one a column.") from None
    lower, upper = penalty.low.copy(), penalty.high.copy()
    lower[:, :d] = _by_column(-np.inf if low is None else low, m, d, "The lower bounds", -np.inf)
    upper[:, :d] = _by_column(np.inf if high is None else high, m, d, "The upper bounds", np.inf)
    if (lower == np.inf).any() or (upper == -np.inf).any():
        raise ValueError(
            "bounds has a lower bound of infinity or an upper one of minus infinity: no number lies between."
        )
    if (lower > upper).any():
        j = int(np.flatnonzero((lower > upper).any(axis=0))[0])
        raise ValueError(f"The lower bound of column {j} is above its upper bound; exchange them.")
    if penalty.matrix is not None:
        raise ValueError("bounds cannot be combined with a full covariance in prior; give variances.")
    return replace(penalty, low=lower, high=upper)


def _checked_offset(offset: Any, source: Source, m: int) -> Float:
    values = real_numbers(offset, "offset")
    wanted = (source.n_rows,) if m == 1 else (source.n_rows, m)
    if values.shape != wanted:
        raise ValueError(f"offset has shape {values.shape}, expected {wanted}: one number a row and score.")
    if not np.isfinite(values).all():
        raise ValueError("offset contains NaN or infinity; give a finite number for every row.")
    return values


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
            scale = np.where(extreme, 2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0))), 1.0)
        scaled = rows / scale
        mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
        far = (np.abs(mean) > _FAR_FROM_ORIGIN * spread) & (spread > 0)
    if fit_intercept and far.any() and np.isfinite(mean).all():
        centre = np.where(far, mean * scale, 0.0)
    return centre, scale


def _some_rows(source: Source) -> NDArray[np.float64] | None:
    """A few dense rows; ``None`` for sparse ones with very many columns, whose means are small against their spread."""
    if source.n_features > 20_000:
        return None
    drawn = source.sample(_SAMPLE)
    for block in (source if drawn is None else drawn[0]).blocks():
        part = block.part(slice(0, min(block.n, _SAMPLE))).counted()
        return part.dense() if part.n else None
    return None
