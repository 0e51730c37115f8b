"""Newton's method with conjugate gradients inside, for smooth objectives of very many parameters.

    H d = −g  to within ‖Hd + g‖ ≤ η‖g‖,   one product with H a step
    preconditioned by (A ⊗ G + q)⁻¹, A = Σ s∇²ℓ/Σ s the mean curvature of the scores, G = XᵀX; by its diagonal when p is large

No H is formed: its products need m numbers a row, kept from the evaluation. The proof is a dual point (see bounds.py).

Reference: Nocedal and Wright (2006), algorithm 7.1; Dembo, Eisenstat, Steihaug (1982), SIAM J. Numerical Analysis 19.

**Complexity** O(nnz · m) a product. **Passes over the data** one a product and one a step; memory O(m(n + p)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective
from separatrix.result import Certificate, Status
from separatrix.settings import one_blas_thread
from separatrix.solvers.bounds import (
    Bound,
    dual_cost,
    dual_gap,
    intercept_price,
    intercept_shift,
    least_bound,
    strong_convexity,
)
from separatrix.solvers.newton import Sample, backtrack
from separatrix.solvers.state import Callback, Solution, Trace, column_squares

# Up to this many columns their Gram matrix is worth its price as a preconditioner, from this many rows.
_KRONECKER_COLUMNS = 1500
_GRAM_ROWS = 20_000
_MOST_PRODUCTS = 200
_ROWS_A_PARAMETER = 10
_FORCING = 1e-2
_CHEAP = 2_000_000


def minimise_newton_cg(
    objective: LinearObjective,
    source: Source,
    theta: Float,
    *,
    tol: float,
    max_iter: int,
    intercept: bool,
    callback: Callback | None = None,
    sampled: bool = True,
) -> Solution:
    """Minimise until the proven gap is at most `tol` times max(1, |F|)."""
    trace, status, iterations = Trace(callback), Status.MAX_ITER, 0
    interrupted = False
    if sampled:
        try:
            theta = _on_sample(objective, source, theta, intercept)
        except KeyboardInterrupt:  # evaluate once, to say how good this is
            max_iter, interrupted = 0, True
    evaluation = objective.evaluate(theta, source, 1, keep=True)
    penalties = objective.penalty.quadratic[:, : theta.shape[1] - intercept]
    even = penalties.max(initial=0.0) <= 1e6 * penalties.min(initial=np.inf)
    dense = even and theta.shape[1] <= _KRONECKER_COLUMNS
    preconditioner = _Kronecker(objective, source) if dense else _Diagonal(objective, source)
    bound = Bound(evaluation.value)
    bounded = bool((objective.penalty.quadratic[:, : theta.shape[1] - intercept] > 0).all())
    try:
        while True:
            target = objective.target(tol, evaluation.value)
            bound = least_bound(bound, Bound(evaluation.value), Bound(_cheap_gap(objective, evaluation, intercept)))
            if (
                intercept
                and bound.gap > target
                and dual_cost(objective, theta, evaluation.gradient, intercept) <= target
            ):
                bound = least_bound(bound, _proof(objective, source, theta, evaluation, target))
            trace.add(objective=evaluation.value, gap=bound.gap, passes=source.passes)
            if bound.gap <= target:
                status = Status.CONVERGED
                break
            if iterations >= max_iter:
                break
            iterations += 1
            step = _solve(objective, theta, evaluation, preconditioner.at(evaluation), target, intercept)
            if not bounded and -0.5 * float((evaluation.gradient * step).sum()) <= 0.01 * target:
                status = Status.UNPROVEN
                break
            evaluation = replace(evaluation, times=None)  # what it keeps of every row makes room for the next
            found = backtrack(objective, source, theta, step, evaluation, order=1, keep=True)
            if found is None:
                status = Status.STALLED
                break
            (theta, _, evaluation), bound = found, Bound(np.inf)
            del found  # or it would hold on to what the evaluation lets go of
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    status = Status.INTERRUPTED if interrupted else status
    bound = least_bound(bound, Bound(evaluation.value))
    certificate = Certificate(
        bound.gap,
        evaluation.value,
        "dual point" if intercept else "strong convexity of the penalty",
        stationarity=float(np.abs(evaluation.gradient).max(initial=0.0)),
        kind=bound.kind,
    )
    return Solution(theta, status, certificate, iterations, trace.entries, evaluation.total, evaluation.steepest)


def _on_sample(objective: LinearObjective, source: Source, theta: Float, intercept: bool) -> Float:
    """The optimum of a twentieth of the rows, roughly; θ where that would be too few."""
    n_rows = source.n_rows or 0
    rows = max(n_rows // 20, _ROWS_A_PARAMETER * theta.size)
    sample = Sample.of(objective, source, rows) if 8 * rows <= n_rows else None
    if sample is None:
        return theta
    part = replace(sample.objective, penalty=sample.objective.penalty.scaled(sample.share))
    tol = 0.1 * theta.size / rows
    found = minimise_newton_cg(part, sample.source, theta, tol=tol, max_iter=20, intercept=intercept, sampled=False)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found.theta if found.steepest < 30.0 else theta


def _cheap_gap(objective: LinearObjective, evaluation: Evaluation, intercept: bool) -> float:
    return np.inf if intercept else strong_convexity(objective, evaluation.gradient)


def _proof(objective: LinearObjective, source: Source, theta: Float, evaluation: Evaluation, target: float) -> Bound:
    """Factors alone meet the intercept's condition where it nearly holds, else after a shift; both where a pass is cheap."""
    assert evaluation.total_curvature is not None
    shift = intercept_shift(evaluation.gradient[:, -1], evaluation.total_curvature)
    shifts = [np.zeros(len(theta))] if intercept_price(theta, evaluation.gradient) <= 0.25 * target else [shift]
    if source.n_rows is not None and source.n_rows * theta.size <= _CHEAP:
        shifts = [np.zeros(len(theta)), shift]
    return least_bound(*(dual_gap(objective, source, theta, evaluation, c, intercept=True) for c in shifts))


class _Kronecker:
    """(A ⊗ G + q̄)⁻¹ with A = Σ s∇²ℓ / Σ s and G = Σ s xxᵀ: exact if every row had the mean curvature."""

    def __init__(self, objective: LinearObjective, source: Source) -> None:
        drawn = source.sample(_GRAM_ROWS) if (source.n_rows or 0) > 2 * _GRAM_ROWS else None
        rows = source if drawn is None else drawn[0]
        share = 1.0 if drawn is None else len(drawn[1]) / float(source.n_rows or 1)
        gram = rows.reduce(_gram, np.add) / share
        self._unit = 1.0 / np.sqrt(np.where(gram.diagonal() > 0, gram.diagonal(), 1.0))
        with one_blas_thread():
            values, self._vectors = np.linalg.eigh(gram * np.outer(self._unit, self._unit))
        self._values = np.maximum(values, 0.0)
        self._quadratic = float(np.median(objective.penalty.quadratic * np.square(self._unit)))

    def at(self, evaluation: Evaluation) -> Callable[[Float], Float]:
        """The inverse with the mean curvature of this point."""
        assert evaluation.total_curvature is not None
        values, vectors = np.linalg.eigh(evaluation.total_curvature / evaluation.total)
        denominator = np.multiply.outer(np.maximum(values, 0.0), self._values) + self._quadratic
        denominator = np.maximum(denominator, 1e-10 * denominator.max())

        def apply(v: Float) -> Float:
            turned = vectors.T @ ((v * self._unit) @ self._vectors)
            return (vectors @ (turned / denominator)) @ self._vectors.T * self._unit

        return apply


def _gram(block: Block) -> Float:
    total = np.zeros((block.shape[1], block.shape[1]))
    for piece in block.pieces(1 << 20):
        counted = piece.counted()
        total += counted.gram(counted.weights)
    return total


class _Diagonal:
    """The inverse of the diagonal, every row with the mean curvature."""

    def __init__(self, objective: LinearObjective, source: Source) -> None:
        self._squares, self._quadratic = column_squares(source), objective.penalty.quadratic

    def at(self, evaluation: Evaluation) -> Callable[[Float], Float]:
        """The inverse with the mean curvature of this point."""
        assert evaluation.total_curvature is not None
        mean = evaluation.total_curvature.diagonal()[:, None] / evaluation.total
        diagonal = np.maximum(mean * self._squares + self._quadratic, np.finfo(np.float64).tiny)
        return lambda v: v / diagonal


def _solve(
    objective: LinearObjective,
    theta: Float,
    evaluation: Evaluation,
    precondition: Callable[[Float], Float],
    target: float,
    intercept: bool,
) -> Float:
    """Conjugate gradients on H d = −g, down to what the tolerance or the forcing term asks for."""
    assert evaluation.times is not None
    gradient = evaluation.gradient
    step, residual = np.zeros_like(gradient), -gradient
    white = precondition(residual)
    direction, energy = white.copy(), float((residual * white).sum())
    first = energy
    for _ in range(_MOST_PRODUCTS):
        product = evaluation.times(direction)
        with np.errstate(over="ignore", invalid="ignore"):  # columns of extreme size: what there is so far must do
            curvature = float((direction * product).sum())
        if not 0 < curvature < np.inf:
            return step if step.any() else direction
        length = energy / curvature
        step = step + length * direction
        residual = residual - length * product
        white = precondition(residual)
        fresh = float((residual * white).sum())
        # No more is needed than a gradient whose bound is below the target, or than the quadratic model is good for.
        bound = dual_cost(objective, theta, residual, intercept)
        # A step that is below the target is the last one, where exactness can make it one.
        last = first <= target and np.isfinite(bound)
        if bound <= 0.25 * target or (fresh <= _FORCING * first and not last):
            break
        direction = white + (fresh / energy) * direction
        energy = fresh
    return step
