"""The metric of gradient steps: the Hessian of a sample of the rows where it can be formed, a diagonal above ∇²F where not.

    Δ = argmin  gᵀΔ + (L/2) ΔᵀMΔ + P₁(θ + Δ)

In M = n/n_S · H_S + ∇²P the units of the columns and their correlations do not matter: near the point it was taken at a step of
length 1/L = 1 removes most of the error, as far as the sample knows the Hessian. The diagonal takes care of the units alone.

Reference: Byrd et al. (2011), SIAM J. Optimization 21, for Hessians of samples; Lee, Sun, Saunders (2014), SIAM J.
Optimization 24, for proximal steps in their metric.

**Complexity** O(n_S m²p²) to take M, O((mp)²) per step. **Passes over the data** one over the sample, or one for the diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.curvature import Curvature, without_gauge
from separatrix.solvers.quadratic import minimise_quadratic
from separatrix.solvers.sample import Sample, column_squares

# Hessians of more parameters than this are not formed.
HESSIAN_PARAMETERS = 3000
# How much below the target an estimate of the gap should be before Newton's method is asked to prove it.
NEARLY = 0.25


def inner_tolerance(target: float, left: float) -> float:
    """To what a quadratic model without a closed form is minimised, when `left` is the gap and `target` the one asked for."""
    return max(1e-2 * target, 1e-4 * min(left, 1e4 * target))


class StepMetric(ABC):
    """M, with what the steps of a proximal gradient method ask of it."""

    exact: bool
    """Whether M is near ∇²F, so that L = 1 is right and what a step gains in the quadratic model estimates the gap."""

    @abstractmethod
    def proximal(self, point: Float, gradient: Float, L: float, tol: float) -> Float:
        """θ + Δ; the quadratic is minimised to within `tol` where it has no closed form."""

    @abstractmethod
    def square(self, v: Float) -> float:
        """vᵀMv."""

    @abstractmethod
    def product(self, v: Float, u: Float) -> float:
        """vᵀMu."""

    def left(self, theta: Float, gradient: Float, tol: float) -> float:
        """About F(θ) − F*, to within `tol` as far as M goes; infinite where M says nothing about it."""
        return np.inf

    def retaken(self, theta: Float, held: float = 0.0) -> StepMetric:
        """M at another point; with `held` times ∇²Σsℓ at θ = 0 in addition, near which the loss is nowhere more curved."""
        return self


def step_metric(problem: LinearProblem, theta: Float) -> StepMetric:
    """The metric for steps from θ."""
    if theta.size > HESSIAN_PARAMETERS or not problem.objective.loss.smooth:
        return _Diagonal(problem)
    return _Hessian(Sample.usual(problem) or Sample(problem, 1.0), theta)


class _Hessian(StepMetric):
    exact = True

    def __init__(self, sample: Sample, theta: Float, held: float = 0.0, steepest: Float | None = None) -> None:
        self._sample, self._penalty = sample, sample.problem.objective.penalty
        self._steepest = steepest
        hessian = self._loss(theta)
        if held:
            if self._steepest is None:
                self._steepest = self._loss(np.zeros_like(theta))
            hessian = hessian + held * self._steepest
        self._matrix = without_gauge(self._penalty.add_hessian(hessian), sample.problem.objective)
        self._curvature = Curvature(self._matrix.copy(), sample.problem.shape) if self._penalty.smooth else None

    def _loss(self, theta: Float) -> Float:
        """∇²Σsℓ at θ, as the sample has it."""
        return self._sample.loss_hessian(theta) / self._sample.share

    def proximal(self, point: Float, gradient: Float, L: float, tol: float) -> Float:
        penalty = self._penalty
        if self._curvature is not None:
            return point - self._curvature.solve(gradient) / L
        moved, slope = point.ravel().copy(), gradient.ravel().copy()
        absolute, low, high = (np.ascontiguousarray(a).ravel() for a in (penalty.absolute, penalty.low, penalty.high))
        minimise_quadratic(L * self._matrix, slope, moved, absolute, low, high, tol)
        return moved.reshape(point.shape)

    def square(self, v: Float) -> float:
        return self.product(v, v)

    def product(self, v: Float, u: Float) -> float:
        return float(v.ravel() @ (self._matrix @ u.ravel()))

    def left(self, theta: Float, gradient: Float, tol: float) -> float:
        if self._curvature is not None:
            return 0.5 * self._curvature.decrement(gradient) ** 2
        moved = self.proximal(theta, gradient, 1.0, tol)
        step, absolute = moved - theta, self._penalty.absolute
        gained = float((gradient * step).sum() + (absolute * (np.abs(moved) - np.abs(theta))).sum())
        return max(0.0, -gained - 0.5 * self.square(step))

    def retaken(self, theta: Float, held: float = 0.0) -> StepMetric:
        return _Hessian(self._sample, theta, held, self._steepest)


class _Diagonal(StepMetric):
    exact = False

    def __init__(self, problem: LinearProblem) -> None:
        self._penalty = penalty = problem.objective.penalty
        steepest = min(problem.objective.loss.steepest, 4.0)
        diagonal = steepest * column_squares(problem.source) + penalty.quadratic
        if penalty.matrix is not None:
            diagonal = diagonal + np.abs(penalty.matrix).sum(axis=1).reshape(problem.shape)
        self._diagonal = np.where(diagonal > 0, diagonal, 1.0)

    def proximal(self, point: Float, gradient: Float, L: float, tol: float) -> Float:
        penalty, metric = self._penalty, L * self._diagonal
        z = point - gradient / metric
        return np.clip(np.sign(z) * np.maximum(np.abs(z) - penalty.absolute / metric, 0.0), penalty.low, penalty.high)

    def square(self, v: Float) -> float:
        return float((self._diagonal * np.square(v)).sum())

    def product(self, v: Float, u: Float) -> float:
        return float((v * self._diagonal * u).sum())
