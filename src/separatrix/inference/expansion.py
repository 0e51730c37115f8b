"""The second-order expansion of a log-likelihood about coefficients: gradient, information, and how far the optimum is.

    I = Σ sᵢ ∇²ℓᵢ ⊗ xᵢxᵢᵀ,    step −I⁻¹g,    √(gᵀI⁻¹g) standard errors from the optimum at most

Scores are contrasts against a baseline class; a symmetric softmax is read against its first class, which deletes the rows and
columns of that class from I. What the solver saw through centred or scaled columns is taken to the user's units by
`LinearProblem.finish`, which is linear.

**Complexity** O(n q²) per pass, O(q³) per factorisation; q coefficients. **Passes over the data** one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.losses import Softmax
from separatrix.objectives.penalties import Penalty
from separatrix.solvers.curvature import Curvature


def against_baseline(problem: LinearProblem, theta: Float) -> tuple[LinearProblem, Float]:
    """The likelihood alone, its scores contrasts against one class: those of a symmetric softmax, against the first."""
    loss, offset = problem.objective.loss, problem.objective.offset
    if isinstance(loss, Softmax) and loss.gauge() is not None:
        loss, theta = Softmax(loss.n_classes, 0), theta[1:] - theta[:1]
        offset = None if offset is None else offset[:, 1:] - offset[:, :1]
    penalty = Penalty.none((loss.n_scores, problem.shape[1]))
    return replace(problem, objective=LinearObjective(loss, penalty, offset)), theta


@dataclass(frozen=True)
class Expansion:
    """One evaluation of second order, factored when asked."""

    problem: LinearProblem
    theta: Float
    evaluation: Evaluation

    @classmethod
    def at(cls, problem: LinearProblem, theta: Float) -> Expansion:
        """One pass."""
        return cls(problem, theta, problem.objective.evaluate(theta, problem.source, 2))

    @cached_property
    def curvature(self) -> Curvature:
        """I, factored."""
        assert self.evaluation.hessian is not None
        return Curvature(self.evaluation.hessian, self.problem.shape)

    @cached_property
    def left(self) -> float:
        """√(gᵀI⁻¹g): no coefficient, and no combination of them, is more standard errors from the optimum."""
        return self.curvature.decrement(self.evaluation.gradient)

    def newton_step(self) -> Float:
        """θ − I⁻¹g."""
        return self.theta - self.curvature.solve(self.evaluation.gradient)

    @cached_property
    def jacobian(self) -> Float:
        """(p, p) of one score's coefficients in the user's units by those of the solver, the intercept last."""
        coef, intercept = self.problem.coefficients(np.eye(self.problem.shape[1]))
        return (np.column_stack([coef, intercept]) if self.problem.fit_intercept else coef).T

    def in_user_units(self, covariance: Float) -> Float:
        """A covariance of θ as one of the coefficients, score by score, the intercept last within each."""
        jacobian = np.kron(np.eye(self.problem.shape[0]), self.jacobian)
        return jacobian @ covariance @ jacobian.T

    def sandwich(self, corrected: bool) -> Float:
        """I⁻¹ (Σ s g gᵀ) I⁻¹ in the user's units, times n/(n − q) if `corrected`. One pass."""
        objective, (m, p) = self.problem.objective, self.problem.shape

        def of_block(block: Block) -> Float:
            total = np.zeros((m, p, m, p))
            for piece in block.pieces(1 << 20):
                rows, own = objective.counted(piece)
                weights = np.ones(rows.n) if rows.weights is None else rows.weights
                slopes = objective.loss.gradient(rows.codes, objective.scores(self.theta, rows, own))
                for k in range(m):
                    for l in range(k + 1):  # noqa: E741  # name of the formula
                        product = slopes[:, k] * slopes[:, l] * weights
                        part = rows.gram(np.maximum(product, 0.0))
                        if k != l:
                            part -= rows.gram(np.maximum(-product, 0.0))
                            total[l, :, k] += part
                        total[k, :, l] += part
            return total

        meat = self.problem.source.reduce(of_block, np.add).reshape(m * p, m * p)
        inverse, n, q = self.curvature.inverse(), self.evaluation.total, m * p
        if corrected and n <= q:
            raise ValueError(f"HC1 divides by n − q, but n is {n:.4g} and there are q = {q} coefficients; use HC0.")
        factor = n / (n - q) if corrected else 1.0
        return factor * self.in_user_units(inverse @ meat @ inverse)
