"""The method of small_newton.py in one compiled call for many steps: of few rows the calls between them cost most.

X is read where it lies, in either order and precision. The bound is the closed form of rows.py, at the point that came out.

**Complexity** O(np² + p³) per step. **Passes over the data** one per step, two for the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.lazy import compiled_pays_by_now
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.result import Status
from separatrix.solvers.at_hand.rows import WITHIN, RowsAtHand, SummedLosses, proof
from separatrix.solvers.bounds import least_bound, nowhere_negative
from separatrix.solvers.method import Budget, Method, Start, State

_NOTHING = np.empty(0)
# Seconds that a fit is about to lose without numba: per point, per row and by the size of the Hessian.
_POINTS, _CALLS, _ROW, _PRODUCT = 5, 3e-5, 1.5e-8, 1e-11
# Products in one call, during which no Ctrl-C is heard: about a tenth of a second.
_AT_ONCE, _ROW_PRODUCTS = 2_000_000_000, 400


def lines_pay(n_rows: int, n_parameters: int) -> bool:
    """Whether the compiled loop is there, or worth its import by now."""
    return compiled_pays_by_now(_POINTS * (_CALLS + n_rows * (_ROW + _PRODUCT * n_parameters**2)))


@dataclass(frozen=True)
class RowLines:
    """X as it is stored, whether a 1 follows each row, and q with a 0 for the intercept."""

    rows: RowsAtHand
    X: NDArray[Any]
    ones: bool
    quadratic: Float
    held: int
    unit: float
    """The least F of which the gap is a share."""

    @classmethod
    def of(cls, problem: LinearProblem) -> RowLines:
        rows, objective = RowsAtHand.of(problem), problem.objective
        X, ones = rows.block.plain_rows(any_order=True) or (rows.block.dense(), False)
        return cls(rows, X, ones, objective.penalty.quadratic[0], len(problem.scale), objective.unit)

    def steps(self, most: int) -> int:
        """How many steps a call takes of those that are left."""
        n, p = len(self.X), len(self.quadratic)
        return max(0, min(most, 1 + _AT_ONCE // (n * (p**2 + _ROW_PRODUCTS) + p**3)))


@dataclass(frozen=True)
class LineState(State):
    """What there is to compute with, and at least Σ_ij s x_ij²/q_j."""

    lines: RowLines
    size: float


def _moved(
    problem: LinearProblem, lines: RowLines, theta: Float, size: float, budget: Budget, known: bool
) -> LineState:
    """Where the next steps lead from θ, which is changed; the trace has θ itself already where it is `known`."""
    from separatrix.kernels.lines.newton_lines import newton_lines

    rows, p = lines.rows, len(theta)
    weights, offset = (_NOTHING if one is None else one for one in (rows.weights, rows.offset))
    gradient, border, trail = np.empty(p), np.empty(p), np.empty((1 + lines.steps(budget.left), 2))
    value, sums, size, taken, passes, stuck = newton_lines(
        lines.X,
        lines.ones,
        rows.block.codes,
        weights,
        offset,
        rows.total,
        lines.quadratic,
        lines.held,
        size,
        WITHIN * budget.tol,
        lines.unit,
        theta,
        gradient,
        border,
        trail,
    )
    for _ in range(passes):
        problem.source.count_pass()
    problem.source.check_finite(np.asarray(value), gradient)
    loss, residual, steepest, _, bend = sums
    slope = float(gradient[lines.held]) if lines.held < p else np.nan  # it belongs to the intercept
    evaluation = Evaluation(value, loss, gradient[None, :], residual, rows.total, steepest=steepest)
    at, held = SummedLosses(loss, residual, steepest, slope, bend), lines.held
    beside = border[:held] if held < p else None
    with np.errstate(over="ignore"):
        gap = proof(rows, at, value, gradient[:held], beside, lines.quadratic[:held], size)
    bound, verdict = least_bound(nowhere_negative(value), gap), Status.UNPROVEN if stuck else None
    passed = tuple((value, gap) for value, gap in trail[int(known) : taken].tolist())
    return LineState(
        theta[None, :],
        evaluation,
        lines,
        size,
        bound=bound,
        taken=taken,
        verdict=verdict,
        passed=passed,
    )


def _init(problem: LinearProblem, start: Start, budget: Budget) -> LineState:
    return _moved(problem, RowLines.of(problem), start.theta[0].copy(), np.nan, budget, known=False)


def _step(problem: LinearProblem, state: LineState, budget: Budget) -> LineState:
    return _moved(problem, state.lines, state.theta[0].copy(), state.size, budget, known=True)


def _bound(problem: LinearProblem, state: LineState, budget: Budget) -> LineState:
    return state  # every point comes with its own


LINE_NEWTON = Method("newton", frozenset({"gradient", "hessian", "smooth", "held"}), _init, _step, _bound)
