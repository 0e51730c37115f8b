"""Inference for ordered classes: errors of coefficients and thresholds, and whether one score does for all thresholds.

    (ŵ, θ̂) ≈ N((w, θ), H⁻¹),    H the Hessian of −log L at the maximum
    Brant: K − 1 logistic regressions of [y > k] have coefficients b_k that estimate the same w if odds are proportional.
        X² = (Db)ᵀ(DVDᵀ)⁻¹Db ~ χ² with (K − 2)d degrees of freedom,    Db = (b_0 − b_k)_k
        V_kl = A_k⁻¹ A_kl A_l⁻¹,   A_kl = Σ s π_l(1 − π_k) xxᵀ for k ≤ l,   π_k = P(y > k | x) of its own fit

References: McCullagh (1980), J. Royal Statistical Society B 42; Brant (1990), Biometrics 46.

**Complexity** O(K² n d²). **Passes over the data** the test: K − 1 fits, and one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, xlogy

from separatrix.data import Source
from separatrix.data.affine import Intercept
from separatrix.data.block import Block, Codes, Float
from separatrix.data.labels import shown
from separatrix.data.views import Regrouped
from separatrix.inference.coefficient_table import number, probability
from separatrix.inference.estimates import REFUSALS, Inference, log_chi_square_tail
from separatrix.inference.maximum_likelihood import gather
from separatrix.inference.summary import Summary
from separatrix.objectives.cumulative_problem import CumulativeProblem
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Fit, Status
from separatrix.solvers.curvature import Curvature
from separatrix.solvers.registry import minimise

_NEAR, _AT_THE_OPTIMUM = 1e-4, 1e-9


@dataclass(frozen=True)
class OrderedInference(Inference):
    """The estimates of a cumulative logit: coefficients (1, d), then thresholds (K − 1,) with their names."""

    thresholds: Float = field(default_factory=lambda: np.zeros(0))
    threshold_names: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        d = self.coef.shape[1]
        columns = [f"x{j}" for j in range(d)] if self.feature_names is None else list(self.feature_names)
        return [*columns, *self.threshold_names]

    @property
    def estimates(self) -> Float:
        """(1, d + K − 1)."""
        return np.concatenate([self.coef[0], self.thresholds])[None, :]


@dataclass(frozen=True, repr=False)
class OrderedSummary(Summary):
    """What `OrderedLogisticRegression.summary` returns; odds ratios are those of being above any threshold."""

    headline: ClassVar[str] = "Cumulative logit (proportional odds), maximum likelihood"

    def _title(self, score: Any) -> str:
        return "Log-odds of being above a threshold; thresholds below the columns"


def gather_ordered(
    problem: CumulativeProblem, beta: Float, labels: list[Any], names: Any, fit: Fit
) -> OrderedInference:
    """Estimates with their covariance at the maximum, or why there is none; Newton steps from β while they gain."""
    coef, thresholds = problem.coefficients(beta)
    between = tuple(f"{shown(low)}|{shown(high)}" for low, high in pairwise(labels))
    given = None if names is None else tuple(map(str, names))
    own: dict[str, Any] = {"thresholds": thresholds, "threshold_names": between}
    blank = OrderedInference(coef[None, :], np.zeros(1), (labels[-1],), labels[0], given, False, **own)
    refusal = _refusal(problem, fit)
    if refusal:
        return _refused(blank, refusal)
    evaluation = problem.evaluate(beta, 2)
    left = np.inf
    for _ in range(12):
        assert evaluation.hessian is not None
        curvature = Curvature(evaluation.hessian.copy(), problem.shape)
        left = curvature.decrement(evaluation.gradient)
        if left <= _AT_THE_OPTIMUM or curvature.deficient:
            break
        moved = beta - curvature.solve(evaluation.gradient)
        there = problem.evaluate(moved, 2)
        if (
            there.hessian is None
            or not Curvature(there.hessian.copy(), problem.shape).decrement(there.gradient) < 0.5 * left
        ):
            break
        beta, evaluation = moved, there
    if curvature.deficient or not left <= _NEAR:
        return _refused(blank, "There are no standard errors: the likelihood is flat in some direction. Drop columns.")
    coef, thresholds = problem.coefficients(beta)
    jacobian, counts = problem.jacobian, problem.objective.counts
    with np.errstate(over="ignore", invalid="ignore"):  # columns of extreme size
        covariance = jacobian @ curvature.inverse() @ jacobian.T
    total = float(counts.sum())
    return OrderedInference(
        coef[None, :],
        np.zeros(1),
        (labels[-1],),
        labels[0],
        given,
        False,
        covariance=covariance,
        log_likelihood=-evaluation.loss,
        null_log_likelihood=_null_log_likelihood(problem),
        n_observations=total,
        thresholds=thresholds,
        threshold_names=between,
    )


def _null_log_likelihood(problem: CumulativeProblem) -> float:
    """That of the thresholds alone: Σ n_k log n_k/n, or by Newton's method with an offset."""
    counts, last = problem.objective.counts, problem.objective.n_thresholds
    if problem.objective.offset is None:
        return float(xlogy(counts, counts / counts.sum()).sum())
    beta = problem.start()
    at = problem.evaluate(beta, 2)
    for _ in range(50):
        assert at.hessian is not None
        slope = at.gradient[0, -last:]
        step = np.linalg.solve(at.hessian[-last:, -last:], slope)
        if float(slope @ step) <= 1e-18 * (1.0 + abs(at.loss)):
            break
        length = 1.0
        while length > 1e-12:
            moved = beta.copy()
            moved[0, -last:] -= length * step
            there = problem.evaluate(moved, 2)
            if there.loss <= at.loss:
                break
            length *= 0.5
        if length <= 1e-12:
            break
        beta, at = moved, there
    return -at.loss


def _refused(blank: OrderedInference, reason: str) -> OrderedInference:
    return replace(blank, refusal=reason)


def _refusal(problem: CumulativeProblem, fit: Fit) -> str:
    if problem.objective.penalty.quadratic.any():
        return REFUSALS["penalty"].partition(" An L2")[0]
    if fit.status is Status.SEPARATED:
        return f"There are no standard errors of infinite coefficients. {fit.detail or fit.status}"
    if fit.status is Status.INTERRUPTED:
        return REFUSALS["interrupted"]
    if len(problem.kept) < problem.n_features:
        return (
            f"There are no standard errors: {problem.n_features - len(problem.kept)} of the columns are linear combinations of "
            "the others, so coefficients are not determined. Drop columns until none is."
        )
    return ""


@dataclass(frozen=True)
class ColumnProportionality:
    """The test of one column."""

    name: str
    statistic: float
    degrees: int

    @property
    def log_p_value(self) -> float:
        """log p."""
        return log_chi_square_tail(self.statistic, self.degrees)

    @property
    def p_value(self) -> float:
        """P(χ² > statistic) if the odds of this column were proportional."""
        return float(np.exp(self.log_p_value))


@dataclass(frozen=True, repr=False)
class ProportionalityTest:
    """What `OrderedLogisticRegression.proportionality_test` returns: Brant's test, of all columns and of each.

    Parameters
    ----------
    statistic : float
    degrees : int
    columns : sequence of ColumnProportionality
    coef : ndarray of shape (K − 1, d)
        Of the separate logistic regressions.
    """

    statistic: float
    degrees: int
    columns: Sequence[ColumnProportionality]
    coef: Float

    @property
    def log_p_value(self) -> float:
        """log p."""
        return log_chi_square_tail(self.statistic, self.degrees)

    @property
    def p_value(self) -> float:
        """P(χ² > statistic) if one score did for all thresholds."""
        return float(np.exp(self.log_p_value))

    def __str__(self) -> str:
        lines = [
            ("", "χ²", "df", "P(>χ²)"),
            ("all", number(self.statistic), f"{self.degrees}", probability(self.log_p_value)),
        ]
        lines += [(c.name, number(c.statistic), f"{c.degrees}", probability(c.log_p_value)) for c in self.columns]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        drawn = [
            "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        ]
        return "\n".join(["Brant's test of proportional odds", "", *drawn])

    def __repr__(self) -> str:
        return str(self)


def brant_test(source: Source, ranks: Codes, names: Sequence[str]) -> ProportionalityTest:
    """Brant's test on a labelled source; `ranks` (K,) is the rank of every code."""
    K, d = len(ranks), source.n_features
    if K < 3:
        raise ValueError("Two classes have one threshold: there is nothing to be proportional to.")
    theta = np.empty((K - 1, d + 1))
    inverses = []
    for k in range(K - 1):
        sides = Regrouped(source, (ranks > k).astype(np.intp))
        problem = LinearProblem.of(sides, C=np.inf)
        solution = minimise(problem, tol=1e-12, max_iter=100)
        fit = Fit(solution.status, 0, 0.0, solution.iterations)
        known = gather(problem, solution.theta, sides, fit=fit)
        if known.refusal or solution.steepest > 30.0:
            reason = known.refusal or "its classes can be separated, or nearly so."
            raise ValueError(
                f"The logistic regression of threshold {k + 1} of {K - 1} has no standard errors: {reason}"
            )
        theta[k], known_inverse = known.estimates[0], known.covariance
        inverses.append(known_inverse)

    def of_block(block: Block) -> Float:
        total = np.zeros((K - 1, K - 1, d + 1, d + 1))
        for piece in block.pieces(1 << 20):
            rows = piece.counted()
            weights = np.ones(rows.n) if rows.weights is None else rows.weights
            above = expit(rows.matvec(theta.T))
            for k in range(K - 1):
                for l in range(k, K - 1):  # noqa: E741  # name of the formula
                    total[k, l] += rows.gram(weights * above[:, l] * (1.0 - above[:, k]))
        return total

    bent = Intercept(source).reduce(of_block, np.add)
    covariance = np.empty((K - 1, d, K - 1, d))
    for k in range(K - 1):
        for l in range(k, K - 1):  # noqa: E741  # name of the formula
            block = (inverses[k] @ bent[k, l] @ inverses[l])[:d, :d]
            covariance[k, :, l], covariance[l, :, k] = block, block.T
    contrast = np.hstack([np.ones((K - 2, 1)), -np.eye(K - 2)])
    apart = contrast @ theta[:, :d]
    spread = np.einsum("ak,kilj,bl->aibj", contrast, covariance, contrast)
    flat = apart.ravel()
    statistic = float(flat @ np.linalg.solve(spread.reshape(flat.size, flat.size), flat))
    each = [
        ColumnProportionality(name, float(apart[:, j] @ np.linalg.solve(spread[:, j, :, j], apart[:, j])), K - 2)
        for j, name in enumerate(names)
    ]
    return ProportionalityTest(statistic, flat.size, each, theta[:, :d].copy())
