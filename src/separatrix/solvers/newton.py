"""Newton's method for smooth objectives, from a sample to the whole: a certified optimum in about three passes.

    θ ← θ − t H⁻¹g,      H = ∇²F(θ) = Σ s ∇²ℓ ⊗ xxᵀ + ∇²P        (for the logistic loss: iteratively reweighted least squares)

First on a few per cent of the rows, where a step is almost free and whose optimum is within a fraction of a standard
error of the answer; then on all rows. H is kept while the step proves that it has hardly changed (see curvature.py), so
late passes evaluate gradients alone. t = 1 unless the objective would not fall.

Reference: Boyd and Vandenberghe (2004), Convex Optimization, section 9.5; Bach (2010), Electronic J. Statistics 4.

**Complexity** O(n m² p²) for a pass with H, O(n m p) for one without, O((mp)³) a factorisation.
**Passes over the data** about three at the usual tolerances, each an evaluation of F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import dual_cost, dual_gap, strong_convexity
from separatrix.solvers.curvature import Curvature, LargestRow, flat_directions, gap_bound, rounding, without_gauge
from separatrix.solvers.state import Callback, Solution, Trace

_EPS = float(np.finfo(np.float64).eps)
# H is kept while its relative change is proven to stay below this.
_HARDLY_CHANGED = 0.25
_SAMPLE_SHARE = 1 / 16
_ROWS_A_PARAMETER = 24
_LAST_DIGITS, _CHEAP = 1e-7, 2_000_000
# The share of the tolerance that a dual point should cost before it is asked for a proof instead.
_FAR_BELOW = 0.01
# A sample is solved to this fraction of its own statistical error.
_SAMPLE_ACCURACY = 0.05
_SAMPLE_STEPS, _FAR_OUT = 30, 30.0


@dataclass
class _Second:
    """A Hessian with the point it belongs to, and how far θ has moved from there."""

    curvature: Curvature
    spread: float = np.inf
    drift: float = 0.0
    unresolved: bool = False
    """Whether H lacks directions in which F is not flat: then it proves nothing."""

    def bound(self, evaluation: Evaluation, theta: Float, concordance: float) -> float:
        """The gap at a point that has drifted from where H was taken."""
        if self.unresolved:
            return np.inf
        loosened = float(np.exp(0.5 * min(self.drift, 100.0)))
        spread = self.spread * loosened
        decrement = loosened * self.curvature.decrement(evaluation.gradient)
        if np.isfinite(spread):
            length = self.curvature.diagonal_length(theta)
            decrement += rounding(spread, evaluation, length, theta.shape[1])
        return gap_bound(decrement, concordance * spread)


def minimise_newton(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    sampled: bool = True,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|)."""
    trace = Trace(callback)
    try:
        if sampled:
            theta = start_on_sample(objective, source, theta, max_iter)
    except KeyboardInterrupt:  # evaluate once, to say how good this is
        return replace(_iterate(objective, source, theta, tol, 0, trace), status=Status.INTERRUPTED)
    return _iterate(objective, source, theta, tol, max_iter, trace)


def sample_rows(n_rows: int | None, n_parameters: int) -> int:
    """How many rows a first solution is taken from; 0 when all are few enough."""
    if n_rows is None:
        return 0
    rows = max(_ROWS_A_PARAMETER * n_parameters, int(_SAMPLE_SHARE * n_rows), 2000)
    return rows if 4 * rows <= n_rows else 0


@dataclass(frozen=True)
class Sample:
    """Some of the rows, with the objective of theirs alone."""

    source: Source
    objective: LinearObjective
    share: float

    @classmethod
    def of(cls, objective: LinearObjective, source: Source, rows: int) -> Sample | None:
        """A sample in which every class has rows; ``None`` when there is none."""
        drawn = source.sample(rows) if rows else None
        if drawn is None:
            return None
        sample, which = drawn
        present = np.zeros(len(source.classes) if source.classes is not None else 0, dtype=bool)
        for block in sample.blocks():
            present[block.codes if block.weights is None else block.codes[block.weights > 0]] = True
        if not present.all():  # without one of the classes the optimum is at infinity
            return None
        return cls(sample, objective.restricted(which, 1.0), len(which) / float(source.n_rows or 1))

    def optimum(self, theta: Float, max_iter: int) -> Start:
        """The optimum of the sample, its penalty smaller by its share, to a fraction of its own statistical error.

        Nothing is proven here. A sample whose optimum is far out (separable, perhaps) says nothing: θ is returned.
        """
        objective = replace(self.objective, penalty=self.objective.penalty.scaled(self.share))
        first = start_on_sample(objective, self.source, theta, max_iter)
        point, before, step = first, np.inf, np.zeros_like(theta)
        for _ in range(min(max_iter, _SAMPLE_STEPS)):
            evaluation = objective.evaluate(point, self.source, 2)
            assert evaluation.hessian is not None
            if evaluation.value > before:
                point, step = point - 0.5 * step, 0.5 * step
                continue
            if evaluation.steepest > _FAR_OUT:
                break
            curvature = Curvature(without_gauge(evaluation.hessian.copy(), objective), (theta.shape[0], theta.shape[1]))
            before, step = evaluation.value, -curvature.solve(evaluation.gradient)
            if 0.5 * curvature.length(step) ** 2 <= _SAMPLE_ACCURACY * theta.size:
                loss = evaluation.hessian - objective.penalty.add_hessian(np.zeros_like(evaluation.hessian))
                return Start(point + step, loss, point)
            point = point + step
        return Start(first)


@dataclass(frozen=True)
class Start:
    """Where to begin: θ, and the Hessian of a sample's loss with the point it was taken at."""

    theta: Float
    hessian: Float | None = None
    at: Float | None = None


def start_on_sample(objective: LinearObjective, source: Source, theta: Float, max_iter: int) -> Float:
    """The optimum of a few per cent of the rows, itself found from fewer."""
    sample = Sample.of(objective, source, sample_rows(source.n_rows, theta.size))
    return theta if sample is None else sample.optimum(theta, max_iter).theta


def _worth_a_pass(source: Source, theta: Float, tol: float) -> bool:
    """Whether a last step is taken beyond the tolerance: where it costs little, or the last digits are asked for."""
    return tol <= _LAST_DIGITS or (source.n_rows is not None and source.n_rows * theta.shape[1] <= _CHEAP)


def _one_more(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    evaluation: Evaluation,
    gap: float,
    second: _Second,
    rate: float,
) -> tuple[Float, Evaluation, float]:
    """A last step with the same H: near the optimum it squares the error, and its gradient is evaluated."""
    step = -second.curvature.solve(evaluation.gradient)
    new = objective.evaluate(theta + step, source, 1)
    second.drift += rate * second.spread * second.curvature.length(step) if rate else 0.0
    better = _gap(objective, new, theta + step, second, rate)
    return (theta + step, new, better) if better < gap else (theta, evaluation, gap)


def _iterate(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    tol: float,
    max_iter: int,
    trace: Trace,
) -> Solution:
    concordance = objective.loss.concordance
    rate = np.inf if concordance is None else concordance
    status, iterations = Status.MAX_ITER, 0
    evaluation = objective.evaluate(theta, source, 2)
    second = _second(objective, source, evaluation, theta)
    largest: LargestRow | None = None
    gap = _gap(objective, evaluation, theta, second, rate)
    try:
        while True:
            target = objective.target(tol, evaluation.value)
            cost = dual_cost(objective, theta, evaluation.gradient, objective.free_intercept)
            if gap > target and cost <= _FAR_BELOW * target:
                # Where the reach of self-concordance is too short: rows far out, curvature that rounding blurs.
                shift = np.zeros(len(theta))
                gap = min(gap, dual_gap(objective, source, theta, evaluation, shift, objective.free_intercept).gap)
            trace.add(objective=evaluation.value, gap=gap, passes=source.passes)
            if gap <= target:
                status = Status.CONVERGED
                if _worth_a_pass(source, theta, tol):
                    theta, evaluation, gap = _one_more(objective, source, theta, evaluation, gap, second, rate)
                break
            if iterations >= max_iter:
                break
            iterations += 1
            step = -second.curvature.solve(evaluation.gradient)
            length = second.curvature.length(step)
            fresh = not rate * second.spread * length + second.drift < _HARDLY_CHANGED
            metric = None if np.isfinite(second.spread) else second.curvature.metric
            asked = {"order": 2 if fresh else 1, "metric": metric}
            found = backtrack(objective, source, theta, step, evaluation, **asked)
            if found is None:
                status = Status.STALLED
                break
            theta, t, new = found
            if metric is not None:
                largest = LargestRow(new.largest_row, metric)
                second.spread = largest.spread(second.curvature)
            if new.hessian is not None:
                second = _second(objective, source, new, theta)
                second.spread = np.inf if largest is None else largest.spread(second.curvature)
            else:
                second.drift += rate * second.spread * t * length if rate else 0.0
            evaluation = new
            gap = _gap(objective, evaluation, theta, second, rate)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    certificate = Certificate(
        gap,
        evaluation.value,
        "Newton decrement, self-concordance" if concordance is not None else "strong convexity of the penalty",
        stationarity=float(np.abs(evaluation.gradient).max(initial=0.0)),
    )
    return Solution(theta, status, certificate, iterations, trace.entries, evaluation.total, evaluation.steepest)


def _second(objective: LinearObjective, source: Source, evaluation: Evaluation, theta: Float) -> _Second:
    assert evaluation.hessian is not None
    shape = (theta.shape[0], theta.shape[1])
    curvature = Curvature(without_gauge(evaluation.hessian.copy(), objective), shape)
    return _Second(curvature, unresolved=not flat_directions(objective, source, curvature))


def _gap(objective: LinearObjective, evaluation: Evaluation, theta: Float, second: _Second, rate: float) -> float:
    """The least of three bounds: self-concordance, strong convexity, and losses being nowhere negative."""
    gap = min(evaluation.value, strong_convexity(objective, evaluation.gradient))  # F* ≥ 0
    if rate == 0.0 or (np.isfinite(rate) and np.isfinite(second.spread)):
        gap = min(gap, second.bound(evaluation, theta, rate))
    return gap


def backtrack(
    objective: LinearObjective, source: Source, theta: Float, step: Float, evaluation: Evaluation, **asked: Any
) -> tuple[Float, float, Evaluation] | None:
    """The step, its length and what was `asked` of the evaluation there, halved until F falls by a share of its slope."""
    slope = float((evaluation.gradient * step).sum())
    t = 1.0
    for _ in range(40):
        moved = theta + t * step
        if np.array_equal(moved, theta):
            break
        new = objective.evaluate(moved, source, **asked)
        if new.value <= evaluation.value + 1e-4 * t * slope + 4.0 * _EPS * abs(evaluation.value):
            return moved, t, new
        t *= 0.5
    return None
