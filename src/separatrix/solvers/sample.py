"""The same problem on some of its rows: where a step is almost free, and whose optimum is near that of all rows.

    F_S(θ) = Σ_{i ∈ S} sᵢ ℓᵢ + (n_S/n) P(θ)           its optimum is within a fraction of a standard error of the answer

The rows are spread over the data; a sample in which a class is missing, or whose optimum is far out, is of no use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.choose import MANY_ROWS, first_rows, sample_rows
from separatrix.solvers.curvature import Curvature, without_gauge

# A sample is solved to this fraction of its own statistical error.
_ACCURACY = 0.05
# The same of rows on a device that only say where a larger sample begins, and a step after which Newton's error falls
# with the square of its length: there an evaluation of few rows takes as long as one of many.
_ROUGH, _QUADRATIC = 0.25, 0.25
_STEPS = 30
# Scores beyond this are a sign of classes that can be separated.
FAR_OUT = 30.0


@dataclass(frozen=True)
class SampleOptimum:
    """Where to begin: θ, and the Hessian of a sample's loss with the point it was taken at."""

    theta: Float
    hessian: Float | None = None
    at: Float | None = None


@dataclass(frozen=True)
class Sample:
    """Some of the rows, under the penalty of all."""

    problem: LinearProblem
    share: float

    @classmethod
    def of(cls, problem: LinearProblem, rows: int) -> Sample | None:
        """A sample in which every class has rows; ``None`` when there is none."""
        source, shifts = problem.source, problem.objective.shifts
        drawn = source.sample(rows) if rows and (shifts is None or shifts.here) else None
        if drawn is None:
            return None
        sample, which = drawn
        n_classes = len(source.classes) if source.classes is not None else 0
        present = sum((block.class_weight(n_classes) for block in sample.blocks()), np.zeros(n_classes))
        if not present.all():  # without one of the classes the optimum is at infinity
            return None
        part = replace(problem, source=sample, objective=problem.objective.restricted(which))
        return cls(part, len(which) / float(source.n_rows or 1))

    @classmethod
    def usual(cls, problem: LinearProblem) -> Sample | None:
        """A sample of the usual size; ``None`` where the rows are few."""
        return cls.of(problem, sample_rows(*_size(problem)))

    @classmethod
    def first(cls, problem: LinearProblem) -> Sample | None:
        """A sample of a sample, to begin from; ``None`` where the rows are few."""
        return cls.of(problem, first_rows(*_size(problem)))

    def uncopied(self) -> Sample:
        """The same rows for later, without the memory of their copies."""
        return replace(self, problem=replace(self.problem, source=self.problem.source.uncopied()))

    def scaled(self) -> LinearProblem:
        """The problem of the sample with a penalty smaller by its share, whose optimum is near that of all rows."""
        return self.problem.with_objective(penalty=self.problem.objective.penalty.scaled(self.share))

    def loss_hessian(self, theta: Float) -> Float:
        """∇²Σsℓ over the sample at θ."""
        hessian = self.problem.evaluate(theta, 2).hessian
        assert hessian is not None
        loss: Float = hessian - self.problem.objective.penalty.add_hessian(np.zeros_like(hessian))
        return loss

    def optimum(self, theta: Float, max_iter: int, accuracy: float = _ACCURACY) -> SampleOptimum:
        """The optimum of the sample, to a fraction of its own statistical error. Nothing is proven here."""
        problem, there = self.scaled(), self.problem.source.device is not None
        fewer = Sample.first(problem)
        begun = (
            SampleOptimum(theta) if fewer is None else fewer.optimum(theta, max_iter, _ROUGH if there else _ACCURACY)
        )
        first = begun.theta if fewer is None else _nearer(problem, begun, fewer)
        point, before, step = first, np.inf, np.zeros_like(theta)
        for _ in range(min(max_iter, _STEPS)):
            evaluation = problem.evaluate(point, 2)
            assert evaluation.hessian is not None
            if not evaluation.value <= before:  # no fall, or an overflow
                point, step = point - 0.5 * step, 0.5 * step
                continue
            if evaluation.steepest > FAR_OUT:
                break
            curvature = Curvature(without_gauge(evaluation.hessian.copy(), problem.objective), problem.shape)
            before, step = evaluation.value, -curvature.solve(evaluation.gradient)
            if _left_by(curvature.length(step) ** 2, evaluation, there) <= accuracy * theta.size:
                zeros = np.zeros_like(evaluation.hessian)
                loss = evaluation.hessian - problem.objective.penalty.add_hessian(zeros)
                return SampleOptimum(point + step, loss, point)
            point = point + step
        return SampleOptimum(first)


def _left_by(squared: float, evaluation: Evaluation, quadratic: bool) -> float:
    """About what a Newton step of this squared length leaves of F_S, or what it gains, which is more, unless `quadratic`.

    Scores that are moved by t move second derivatives by t at most times themselves: ν' ≈ ½ν·√(mean t⁴/mean t²), the means
    weighted by these, of which the first is 3(mean t²)² for scores of a normal distribution, and mean t² = ν²/Σsh.
    """
    bends = 0.0 if evaluation.total_curvature is None else float(np.trace(evaluation.total_curvature))
    fall = 0.75 * squared / bends if bends > 0 else 1.0
    return 0.5 * squared * (fall if quadratic and fall <= _QUADRATIC else 1.0)


def _size(problem: LinearProblem) -> tuple[int | None, int, bool]:
    return problem.source.n_rows, int(np.prod(problem.shape)), problem.source.device is not None


def _nearer(problem: LinearProblem, begun: SampleOptimum, fewer: Sample) -> Float:
    """A step from the optimum of fewer rows in the metric of their Hessian, where it is a good one: one gradient."""
    if begun.hessian is None or (fewer.problem.source.n_rows or 0) < MANY_ROWS * begun.theta.size:
        return begun.theta
    objective = problem.objective
    scaled = without_gauge(objective.penalty.add_hessian(begun.hessian / fewer.share), objective)
    evaluation = problem.evaluate(begun.theta)
    moved: Float = begun.theta - Curvature(scaled, problem.shape).solve(evaluation.gradient)
    return moved if np.isfinite(evaluation.value) and np.isfinite(moved).all() else begun.theta


def start_on_sample(problem: LinearProblem, theta: Float, max_iter: int) -> Float:
    """The optimum of a few per cent of the rows, itself found from fewer."""
    sample = Sample.usual(problem)
    return theta if sample is None else sample.optimum(theta, max_iter).theta


def column_squares(source: Source) -> Float:
    """(p,) Σ s x_j². One pass."""

    def of_block(block: Block) -> Float:
        total = np.zeros(block.shape[1])
        for piece in block.pieces(1 << 20):
            counted = piece.counted()
            total += counted.column_squares(counted.weights)
        return total

    return source.reduce(of_block, np.add)
