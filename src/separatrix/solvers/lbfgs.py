"""L-BFGS for smooth objectives, in the metric of a sampled Hessian where one is affordable.

    direction = −B g,   B the inverse Hessian built from the last pairs (s, y) on top of B₀

B₀ = (n/n_S · H_S + ∇²P)⁻¹ with H_S from a few per cent of the rows, so that most of the curvature is right from the first
step and each pass over the data removes most of the error that is left; the pairs correct the rest. Where H would be too
large, B₀ is the inverse of the diagonal.

The proof: H_S without the factor is below ∇²F, which is all that curvature.py asks for.

Reference: Nocedal and Wright (2006), Numerical Optimization, algorithm 7.4; Byrd et al. (2011), SIAM J. Optimization 21.

**Complexity** O(n m p) a pass. **Passes over the data** one a step, plus those of a line search that fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.solvers.bounds import strong_convexity
from separatrix.solvers.curvature import Curvature, LargestRow, flat_directions, gap_bound, rounding, without_gauge
from separatrix.solvers.newton import Sample, Start, sample_rows
from separatrix.solvers.state import Callback, Solution, Trace, column_squares

_EPS = float(np.finfo(np.float64).eps)
_MEMORY = 10
# Moved this far a Hessian proves less than it could, and this far it may not be of use for steps either.
_FAR, _MUCH_TOO_FAR = 0.5, 20.0
# Hessians of more parameters than this are not formed.
LARGEST_HESSIAN = 3000


class _Sampled:
    """H of a sample: a metric for the steps when scaled to all rows, a lower bound when not."""

    def __init__(self, sample: Sample) -> None:
        self._source, self._objective, self._share = sample.source, sample.objective, sample.share
        self.spread = np.inf

    def at(self, theta: Float, loss: Float | None = None) -> None:
        """Take H at θ; that of the sample's `loss` may be known."""
        shape, objective = (theta.shape[0], theta.shape[1]), self._objective
        if loss is None:
            hessian = objective.evaluate(theta, self._source, 2).hessian
            assert hessian is not None
            loss = hessian - objective.penalty.add_hessian(np.zeros_like(hessian))
        lower = objective.penalty.add_hessian(loss.copy())
        whole = objective.penalty.add_hessian(loss / self._share)
        self.lower = Curvature(without_gauge(lower, objective), shape)
        self.metric = Curvature(without_gauge(whole, self._objective), shape) if self._share < 1 else self.lower
        self.theta = theta
        # Directions that the sample does not see, all rows may.
        self.unresolved = self.lower.deficient and (
            self._share < 1 or not flat_directions(self._objective, self._source, self.lower)
        )

    def drift(self, theta: Float, concordance: float | None) -> float:
        """a with ∇²F(θ) ⪰ e^{−a}H."""
        return (concordance or 0.0) * self.spread * self.lower.length(theta - self.theta)

    def due(self, evaluation: Evaluation, theta: Float, objective: LinearObjective, tol: float) -> bool:
        """Whether H is worth taking again: far from where it was, or too far to prove what seems to be reached."""
        drift = self.drift(theta, objective.loss.concordance)
        reached = 0.5 * self.lower.decrement(evaluation.gradient) ** 2 <= objective.target(tol, evaluation.value)
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


def minimise_lbfgs(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    started: bool = False,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|); a point that is good already is `started`."""
    trace, status, iterations = Trace(callback), Status.MAX_ITER, 0
    sampled, interrupted = None, False
    if theta.size <= LARGEST_HESSIAN and objective.loss.smooth:
        sample = Sample.of(objective, source, sample_rows(source.n_rows, theta.size))
        if sample is None:
            sample = Sample(source, objective, 1.0)
        start = Start(theta)
        try:
            if sample.share < 1 and not started:
                start = sample.optimum(theta, max_iter)
        except KeyboardInterrupt:  # evaluate once, to say how good this is
            max_iter, interrupted = 0, True
        sampled, theta = _Sampled(sample), start.theta
        sampled.at(theta if start.at is None else start.at, start.hessian)
    base = _diagonal(objective, source) if sampled is None else sampled.metric.solve
    evaluation = objective.evaluate(theta, source, 1, None if sampled is None else sampled.lower.metric)
    if sampled is not None:
        largest = LargestRow(evaluation.largest_row, sampled.lower.metric)
        sampled.spread = largest.spread(sampled.lower)
    gap = _gap(objective, evaluation, theta, sampled)
    pairs: deque[tuple[Float, Float]] = deque(maxlen=_MEMORY)
    try:
        while True:
            trace.add(objective=evaluation.value, gap=gap, passes=source.passes)
            if gap <= objective.target(tol, evaluation.value):
                status = Status.CONVERGED
                break
            if iterations >= max_iter:
                break
            iterations += 1
            step = -_two_loop(evaluation.gradient, pairs, base if sampled is None else sampled.metric.solve)
            moved, new = _search(objective, source, theta, step, evaluation)
            if moved is None or new is None:
                if pairs:  # the pairs may have gone stale: once more from the metric alone
                    pairs.clear()
                    continue
                status = Status.STALLED
                break
            change, difference = moved - theta, new.gradient - evaluation.gradient
            if float((change * difference).sum()) > 1e-12 * float(np.square(difference).sum()) ** 0.5:
                pairs.append((change, difference))
            theta, evaluation = moved, new
            if sampled is not None and sampled.due(evaluation, theta, objective, tol):
                sampled.at(theta)
                sampled.spread = largest.spread(sampled.lower)
            gap = _gap(objective, evaluation, theta, sampled)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    status = Status.INTERRUPTED if interrupted else status
    method = "Newton decrement of a sample's Hessian" if sampled is not None else "strong convexity of the penalty"
    certificate = Certificate(
        gap, evaluation.value, method, stationarity=float(np.abs(evaluation.gradient).max(initial=0.0))
    )
    return Solution(theta, status, certificate, iterations, trace.entries, evaluation.total, evaluation.steepest)


def _gap(objective: LinearObjective, evaluation: Evaluation, theta: Float, sampled: _Sampled | None) -> float:
    gap = min(evaluation.value, strong_convexity(objective, evaluation.gradient))
    if sampled is not None:
        gap = min(gap, sampled.gap(evaluation, theta, objective.loss.concordance))
    return gap


def _diagonal(objective: LinearObjective, source: Source) -> Callable[[Float], Float]:
    """The inverse of a diagonal above that of ∇²F: it makes the units of the columns irrelevant."""
    steepest = min(objective.loss.steepest, 4.0)
    diagonal = steepest * column_squares(source) + objective.penalty.quadratic
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    return lambda v: v / diagonal


def _two_loop(gradient: Float, pairs: deque[tuple[Float, Float]], base: Callable[[Float], Float]) -> Float:
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


def _search(
    objective: LinearObjective, source: Source, theta: Float, step: Float, evaluation: Evaluation
) -> tuple[Float | None, Evaluation | None]:
    """A step along which F falls and its slope flattens: bisection between too long and too short."""
    slope = float((evaluation.gradient * step).sum())
    if not slope < 0:
        return None, None
    short, long, t = 0.0, np.inf, 1.0
    for _ in range(40):
        moved = theta + t * step
        if np.array_equal(moved, theta):
            break
        new = objective.evaluate(moved, source, 1)
        if new.value > evaluation.value + 1e-4 * t * slope + 4.0 * _EPS * abs(evaluation.value):
            long = t
        elif float((new.gradient * step).sum()) < 0.9 * slope:
            short = t
        else:
            return moved, new
        t = 0.5 * (short + long) if np.isfinite(long) else 2.0 * t
    return None, None
