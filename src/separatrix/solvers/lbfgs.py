"""L-BFGS for smooth objectives, in the metric of a sampled Hessian where one is affordable.

    direction = −B g,   B the inverse Hessian built from the last pairs (s, y) on top of B₀

B₀ = (n/n_S · H_S + ∇²P)⁻¹ with H_S from a few per cent of the rows, so that most of the curvature is right from the first
step and each pass over the data removes most of the error that is left; the pairs correct the rest. Where H would be too
large, B₀ is the inverse of the diagonal.

The proof: H_S without the factor is below ∇²F, which is all that curvature.py asks for.

Reference: Nocedal and Wright (2006), Numerical Optimization, algorithm 7.4; Byrd et al. (2011), SIAM J. Optimization 21.

**Complexity** O(n m p) per pass. **Passes over the data** one per step, plus those of a line search that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.bounds import Bound, least_bound, strong_convexity
from separatrix.solvers.curvature import (
    Curvature,
    LargestRow,
    blurred,
    flat_directions,
    gap_bound,
    rounding,
    without_gauge,
)
from separatrix.solvers.line_search import line_search
from separatrix.solvers.method import Budget, Method, Start, State
from separatrix.solvers.sample import Sample, SampleOptimum, column_squares

_MEMORY = 10
# Moved this far a Hessian proves less than it could, and this far it may not be of use for steps either.
_FAR, _MUCH_TOO_FAR = 0.5, 20.0
# Hessians of more parameters than this are not formed.
LARGEST_HESSIAN = 3000

Pair = tuple[Float, Float]


@dataclass(frozen=True)
class _SampledHessian:
    """H of a sample at a point: a metric for the steps when scaled to all rows, a lower bound when not."""

    sample: Sample
    theta: Float
    lower: Curvature
    metric: Curvature
    unresolved: bool
    spread: float = np.inf

    @classmethod
    def at(cls, sample: Sample, theta: Float, loss: Float | None = None) -> _SampledHessian:
        """H at θ; that of the sample's `loss` may be known."""
        problem, objective = sample.problem, sample.problem.objective
        loss = sample.loss_hessian(theta) if loss is None else loss
        lower = Curvature(without_gauge(objective.penalty.add_hessian(loss.copy()), objective), problem.shape)
        metric = lower
        if sample.share < 1:
            scaled = objective.penalty.add_hessian(loss / sample.share)
            metric = Curvature(without_gauge(scaled, objective), problem.shape)
        # Directions that the sample does not resolve, all rows may.
        unresolved = lower.deficient and (sample.share < 1 or not flat_directions(problem, lower))
        return cls(sample, theta, lower, metric, unresolved)

    def drift(self, theta: Float, concordance: float | None) -> float:
        """a with ∇²F(θ) ⪰ e^{−a}H."""
        return (concordance or 0.0) * self.spread * self.lower.length(theta - self.theta)

    def due(self, problem: LinearProblem, evaluation: Evaluation, theta: Float, tol: float) -> bool:
        """Whether H is worth taking again: far from where it was, or too far to prove what seems to be reached."""
        drift = self.drift(theta, problem.objective.loss.concordance)
        reached = 0.5 * self.lower.decrement(evaluation.gradient) ** 2 <= problem.target(tol, evaluation.value)
        return drift > _MUCH_TOO_FAR or (reached and drift > _FAR)

    def gap(self, evaluation: Evaluation, theta: Float, concordance: float | None) -> float:
        """The bound of curvature.py, H taken at another point being loosened by the distance."""
        if concordance is None or not np.isfinite(self.spread) or self.unresolved:
            return np.inf
        drift = self.drift(theta, concordance)
        if drift > 50.0:
            return np.inf
        loosened = float(np.exp(0.5 * drift))
        spread = self.spread * loosened
        decrement = loosened * self.lower.decrement(evaluation.gradient)
        decrement += rounding(spread, evaluation, self.lower.diagonal_length(theta), theta.shape[1])
        return gap_bound(decrement, concordance * spread)


@dataclass(frozen=True)
class LBFGSState(State):
    """B₀, the sampled Hessian it may come from, and the last pairs of steps and gradients."""

    base: Callable[[Float], Float]
    sampled: _SampledHessian | None = None
    largest: LargestRow | None = None
    pairs: tuple[Pair, ...] = ()


def _init(problem: LinearProblem, start: Start, budget: Budget) -> LBFGSState:
    theta, last = start.theta, start.last
    if isinstance(last, LBFGSState) and last.sampled is not None:
        # The last gradient was rounded, but most of it is true: a step before the same point is looked at again.
        theta = theta - _two_loop(last.evaluation.gradient, last.pairs, last.base)
        return LBFGSState(theta, problem.evaluate(theta), last.base, last.sampled, last.largest)
    if theta.size > LARGEST_HESSIAN or not problem.objective.loss.smooth:
        return LBFGSState(theta, problem.evaluate(theta), _diagonal(problem))
    sample = Sample.usual(problem) or Sample(problem, 1.0)
    first = SampleOptimum(theta)
    if sample.share < 1 and not start.near:
        first = sample.optimum(theta, budget.left)
    sampled = _SampledHessian.at(sample, first.theta if first.at is None else first.at, first.hessian)
    metric = sampled.lower.metric
    evaluation = problem.evaluate(first.theta, metric=metric)
    largest = LargestRow(evaluation.largest_row, metric)
    sampled = replace(sampled, spread=largest.spread(sampled.lower))
    return LBFGSState(first.theta, evaluation, sampled.metric.solve, sampled, largest)


def _bound(problem: LinearProblem, state: LBFGSState, budget: Budget) -> LBFGSState:
    bounds = [state.trivial, strong_convexity(problem, state.evaluation.gradient)]
    if state.sampled is not None:
        gap = state.sampled.gap(state.evaluation, state.theta, problem.objective.loss.concordance)
        bounds.append(Bound(gap, method="Newton decrement of a sample's Hessian"))
        sampled = state.sampled
        if gap > budget.target and blurred(sampled.lower, sampled.spread, state.evaluation, state.theta, budget.target):
            state = replace(state, verdict=Status.ROUNDED)
    return replace(state, bound=least_bound(*bounds))


def _step(problem: LinearProblem, state: LBFGSState, budget: Budget) -> LBFGSState:
    before, pairs, sampled, base = state.evaluation, state.pairs, state.sampled, state.base
    step = -_two_loop(before.gradient, pairs, base)
    found = line_search(problem, state.theta, step, before, flatten=True)
    if found is None:  # the pairs may have gone stale: once more from the metric alone
        return replace(state, pairs=(), verdict=None if pairs else Status.STALLED)
    theta, _, evaluation = found
    change, difference = theta - state.theta, evaluation.gradient - before.gradient
    if float((change * difference).sum()) > 1e-12 * float(np.square(difference).sum()) ** 0.5:
        pairs = (*pairs, (change, difference))[-_MEMORY:]
    if sampled is not None and state.largest is not None and sampled.due(problem, evaluation, theta, budget.tol):
        sampled = _SampledHessian.at(sampled.sample, theta)
        sampled = replace(sampled, spread=state.largest.spread(sampled.lower))
        base = sampled.metric.solve
    return LBFGSState(theta, evaluation, base, sampled, state.largest, pairs)


def _diagonal(problem: LinearProblem) -> Callable[[Float], Float]:
    """The inverse of a diagonal above that of ∇²F: it makes the units of the columns irrelevant."""
    steepest = min(problem.objective.loss.steepest, 4.0)
    diagonal = steepest * column_squares(problem.source) + problem.objective.penalty.quadratic
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    return lambda v: v / diagonal


def _two_loop(gradient: Float, pairs: tuple[Pair, ...], base: Callable[[Float], Float]) -> Float:
    """B g by the two loops of algorithm 7.4."""
    q = gradient.copy()
    shares = []
    for s, y in reversed(pairs):
        share = float((s * q).sum()) / float((s * y).sum())
        q -= share * y
        shares.append(share)
    if pairs:  # the metric times the scale that the last pair shows
        s, y = pairs[-1]
        q = base(q) * float((s * y).sum()) / float((y * base(y)).sum())
    else:
        q = base(q)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float((y * q).sum()) / float((s * y).sum())) * s
    return q


LBFGS = Method("lbfgs", frozenset({"gradient", "smooth"}), _init, _step, _bound)
