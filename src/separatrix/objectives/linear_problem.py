"""One problem for all linear models: parameters become an objective on a view of the rows, and its minimiser coefficients.

    Σ s ℓ(y, o + Wx + b) + P(W)         C and l1_ratio, or a Gaussian prior N(m₀, S₀): P = ½(w − m₀)ᵀS₀⁻¹(w − m₀)

Columns without a penalty that are linear combinations of others are left out (see statistics/dependence.py); their
coefficients are 0. Columns far from the origin, or of extreme size, are seen through a standardising view while the solver
works; the penalty is rewritten for it, so it is the one that was asked for. Solvers minimise the objective divided by C;
what is published is in the units that scikit-learn writes it in, C Σ ℓ + ….
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from separatrix.data.affine import Intercept, Standardised
from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.data.views import Selected
from separatrix.objectives.column_units import column_units
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.objectives.losses import Loss, Softmax
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.parameters import bounded, by_column, checked_offset, gaussian
from separatrix.objectives.penalties import Penalty
from separatrix.objectives.rounding import ROUNDING, exact_dot, score_rounding
from separatrix.objectives.solution import Published, Solution
from separatrix.result import History, Status
from separatrix.statistics.dependence import Dependence, dependent_columns

# Among more columns than this dependent ones are not looked for.
_MOST_COLUMNS = 3000
_NAMED = 8
# Scores that are held at once where F is asked for at many points.
_SCORES = 1 << 20


@dataclass(frozen=True)
class LinearProblem:
    """An objective and the rows it is summed over, as a solver sees them, with the way back to the user's units."""

    objective: LinearObjective
    source: Source
    fit_intercept: bool
    centre: Float
    scale: Float
    sizes: Float
    """(p,) about the root mean squares of the columns, as the solver sees them."""
    units: float = 1.0
    """The user's objective divided by the one that is minimised: C, or 1."""
    dependent: Dependence | None = None
    """Columns without a penalty that are combinations of others: they are left out while the solver works."""

    @classmethod
    def of(
        cls,
        source: Source,
        loss: Loss | None = None,
        *,
        C: float = 1.0,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        baseline: int | None = None,
        penalty_factors: ArrayLike | None = None,
        prior: tuple[ArrayLike, ArrayLike] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        offset: Float | None = None,
        pivoted: bool = False,
        as_given: bool = False,
    ) -> LinearProblem:
        """The problem of a labelled source; `pivoted` asks that dependent columns without a penalty be left out.

        `as_given` asks that the solver see the columns in their own units, whatever these are.

        Without a `loss` it is the logistic one, or the softmax of several classes.
        """
        assert source.classes is not None, "label the source first"
        source.lay_in_rows()
        n_classes, d = len(source.classes), source.n_features
        if loss is None:
            loss = Logistic() if n_classes == 2 else Softmax(n_classes, baseline)
        m, p = loss.n_scores, d + fit_intercept
        factors = np.zeros((m, p))
        factors[:, :d] = by_column(penalty_factors, m, d, "penalty_factors", 1.0)
        if not ((factors >= 0) & np.isfinite(factors)).all():
            raise ValueError(
                "penalty_factors has negative or infinite values; give finite factors ≥ 0, 0 for a column without a "
                "penalty."
            )
        penalty, units = Penalty.of_scikit_learn(C, l1_ratio, factors), 1.0 if np.isinf(C) else float(C)
        if prior is not None:
            if penalty_factors is not None or l1_ratio:
                raise ValueError("prior takes the place of C, l1_ratio and penalty_factors; give one or the other.")
            penalty, units = gaussian(prior, m, d, p), 1.0
        if bounds is not None:
            penalty = bounded(penalty, bounds, m, d)
        if offset is not None:
            offset = checked_offset(offset, source, m)
        dependent = _dependence(source, penalty, fit_intercept) if pivoted else None
        centre, scale, sizes = column_units(source, fit_intercept)
        if as_given:
            centre, scale = np.zeros(d), np.ones(d)
        if centre.any() or (scale != 1.0).any():
            source = Standardised(source, centre, scale)
            penalty = penalty.rescaled(np.append(scale, 1.0) if fit_intercept else scale)
        rows = Intercept(source) if fit_intercept else source
        objective = LinearObjective(loss, penalty, offset, min(1.0, 1.0 / units), ones=fit_intercept)
        return cls(objective, rows, fit_intercept, centre, scale, sizes, units, dependent)

    @classmethod
    def plain(cls, objective: LinearObjective, source: Source) -> LinearProblem:
        """An objective on the columns of a source as they are; the last one is the intercept where the objective has ones."""
        p, d = source.n_features, source.n_features - objective.ones
        return cls(objective, source, objective.ones, np.zeros(d), np.ones(d), np.zeros(p))

    @property
    def detail(self) -> str:
        """The columns that were left out, and why; empty when there are none."""
        return "" if self.dependent is None else _left_out(self.dependent, self.source)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, p) of θ."""
        m, p = self.objective.penalty.quadratic.shape
        return m, p

    @property
    def offers(self) -> frozenset[str]:
        """What a method can be given: see `separatrix.solvers.method.Method`."""
        penalty, d = self.objective.penalty, len(self.scale)
        held = penalty.matrix is not None or not penalty.free[:, :d].any()
        ridge = (penalty.quadratic[:, :d] > 0).all() and penalty.matrix is None and not penalty.mean.any()
        found = {
            "gradient": True,
            "hessian": True,
            "products": True,
            "curved": self.objective.loss.concordance is not None,
            "smooth": penalty.smooth,
            "held": held or not penalty.smooth,
            "prox": penalty.matrix is None or penalty.smooth,
            "coordinates": penalty.matrix is None,
            "dual": bool(ridge and penalty.smooth and isinstance(self.objective.loss, Logistic)),
        }
        return frozenset(name for name, present in found.items() if present)

    @property
    def holds_ones(self) -> bool:
        """Whether the rows end in a column of ones that is under the penalty: not the intercept that it is in stored rows."""
        block = None if self.fit_intercept else self.source.one_block(any_order=True)
        stored = None if block is None else block.sparse_rows() or block.plain_rows(any_order=True)
        return stored is not None and stored[1]

    def evaluate(self, theta: Float, order: int = 1, **asked: Any) -> Evaluation:
        """F and its derivatives at θ. One pass."""
        return self.objective.evaluate(theta, self.source, order, **asked)

    def values(self, thetas: Float) -> Float:
        """(n,) F at many points (n, m, p), some of them in every pass."""
        at_once = max(1, _SCORES // (max(1, self.source.n_rows or 1) * max(1, thetas.shape[1])))
        parts = [thetas[start : start + at_once] for start in range(0, len(thetas), at_once)]
        return np.concatenate([self.objective.values(part, self.source) for part in parts])

    def target(self, tol: float, value: float) -> float:
        """The gap that `tol` asks for at a point with this value of F."""
        return self.objective.target(tol, value)

    def with_objective(self, **changes: Any) -> LinearProblem:
        """The same rows under an objective with another loss, penalty, offset or unit."""
        return replace(self, objective=replace(self.objective, **changes))

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

    def coefficients(self, theta: Float) -> tuple[Float, Float]:
        """Coefficients (m, d) and intercepts (m,) in the units of the data."""
        d = len(self.scale)
        coef = theta[:, :d] / self.scale + 0.0  # no negative zeros
        if not self.fit_intercept:
            return coef, np.zeros(len(theta))
        intercept = theta[:, d].copy()
        if self.centre.any():
            intercept = np.array([exact_dot(-w, self.centre, b) for w, b in zip(coef, theta[:, d], strict=True)])
        gauge = self.objective.loss.gauge()
        if gauge is not None:  # no score differs along it: the intercepts are those that have no part of it
            intercept = intercept - gauge * intercept.mean()
        return coef, intercept

    def publish(self, solution: Solution, tol: float) -> Published:
        """The coefficients, and status and certificate of just these: rounding counts, in F and in the intercept.

        Scores are known to p ε Σ_j |θ_jx_j|, which moves F by Σ s|a| times that, where a² ≤ 4ℓ for the smooth losses here
        and |a| ≤ 1 for the others but the exponential, whose Σ s a² is known. Where columns are centred, b = β − wᵀc is
        rounded: in the solver's view the published point has the intercept β' = b + wᵀc, and F(β') − F* is at most
        F(β') − F(β) and the gap at β.
        """
        certificate, loss = solution.certificate, self.objective.loss
        gap, value = certificate.gap, certificate.objective
        coef, intercept = self.coefficients(solution.theta)
        if self.centre.any() and self.fit_intercept:
            last = [exact_dot(w, self.centre, b) for w, b in zip(coef, intercept, strict=True)]
            theta = np.column_stack([coef * self.scale, last])
            if not np.array_equal(theta, solution.theta):
                value = self.evaluate(theta).value
                gap += max(0.0, value - certificate.objective) + ROUNDING * abs(certificate.objective)
        squares = 4.0 * abs(value) if np.isfinite(loss.steepest) else max(solution.total, solution.residual)
        magnitude = float((np.abs(solution.theta) * self.sizes).sum()) * float(np.sqrt(squares * solution.total))
        gap += ROUNDING * abs(value) + score_rounding(self.shape[1]) * magnitude
        missed = solution.status is Status.CONVERGED and gap > self.target(tol, value)
        status = Status.ROUNDED if missed else solution.status
        return Published(coef, intercept, status, replace(certificate, gap=gap, objective=value).times(self.units))

    def history(self, solution: Solution, coef: Float, intercept: Float) -> History | None:
        """The recorded way to a solution in the units of the data, which ends at the coefficients that are published."""
        if not solution.path:
            return None
        points = [self.coefficients(theta) for theta, _ in solution.path]
        points[-1] = coef, intercept
        values = np.array([value for _, value in solution.path])
        unknown = np.flatnonzero(np.isnan(values))  # points between the steps were not evaluated on the way
        if len(unknown):
            values[unknown] = self.values(np.stack([solution.path[i][0] for i in unknown]))
        coefs, intercepts = (np.stack([point[part] for point in points]) for part in (0, 1))
        return History(self.units * values, coefs, intercepts)

    def reduced(self) -> LinearProblem:
        """The problem without the dependent columns.

        Where the dependence is proven, the others reach every score that all of them reach, so a proof for them is one for
        all.
        """
        kept = self.kept
        columns = kept[kept < len(self.scale)]
        if isinstance(self.source, Intercept):
            source: Source = Intercept(Selected(self.source.source, columns))
        else:
            source = Selected(self.source, columns)
        objective = replace(self.objective, penalty=self.objective.penalty.of_columns(kept))
        centre, scale, sizes = self.centre[columns], self.scale[columns], self.sizes[kept]
        return LinearProblem(objective, source, self.fit_intercept, centre, scale, sizes, self.units)

    def expanded(self, solution: Solution) -> Solution:
        """The pivoted solution: that of `reduced`, with coefficients of 0 for the dependent columns.

        Where the dependence is not proven, nothing is known but F* ≥ 0.
        """
        assert self.dependent is not None

        def with_zeros(reduced: Float) -> Float:
            theta = np.zeros(self.shape)
            theta[:, self.kept] = reduced
            return theta

        status, certificate = solution.status, solution.certificate
        if self.dependent.nearly:
            status = Status.UNPROVEN if status is Status.CONVERGED else status
            method = "the objective is nowhere negative; columns were left out"
            certificate = replace(certificate, gap=certificate.objective, method=method, kind="proven")
        theta, path = with_zeros(solution.theta), [(with_zeros(point), value) for point, value in solution.path]
        return replace(solution, theta=theta, status=status, certificate=certificate, loss_gradient=None, path=path)

    @property
    def kept(self) -> NDArray[np.intp]:
        """The columns of θ that are not left out."""
        every = np.arange(self.shape[1])
        return every if self.dependent is None else np.setdiff1d(every, self.dependent.columns)


def _dependence(source: Source, penalty: Penalty, fit_intercept: bool) -> Dependence | None:
    """The dependent ones among the columns that nothing holds back in any score."""
    d = source.n_features
    if not penalty.free[:, :d].any():
        return None
    loose = penalty.free & ~np.isfinite(penalty.low) & ~np.isfinite(penalty.high)
    which = np.flatnonzero(loose[:, :d].all(axis=0))
    return dependent_columns(source, which, fit_intercept) if 0 < len(which) <= _MOST_COLUMNS else None


def _left_out(dependent: Dependence, source: Source) -> str:
    """Which columns were left out, and why."""
    inner = source.source if isinstance(source, Intercept) else source

    def names(columns: tuple[int, ...]) -> str:
        shown = [inner.column_name(j) for j in columns[:_NAMED]]
        return ", ".join(shown) + (f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else "")

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
