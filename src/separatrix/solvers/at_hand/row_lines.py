"""What Newton's method needs of a logistic regression with few rows, in one compiled call per point.

    Σ s ℓ,   Σ s a x,   Σ s h x,   Σ s h xxᵀ            a, h as in rows.py, x with the intercept's 1

X is read where it lies, in either order and precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.lazy import compiled_pays_by_now
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.solvers.at_hand.rows import RowsAtHand, SummedLosses

_NOTHING, _NO_MATRIX = np.empty(0), np.empty((0, 0))
# Seconds that a fit is about to lose without numba: per point, per row and by the size of the Hessian.
_POINTS, _CALLS, _ROW, _PRODUCT = 5, 3e-5, 1.5e-8, 1e-11


def lines_pay(n_rows: int, n_parameters: int) -> bool:
    """Whether the compiled loop is there, or worth its import by now."""
    return compiled_pays_by_now(_POINTS * (_CALLS + n_rows * (_ROW + _PRODUCT * n_parameters**2)))


@dataclass(frozen=True)
class RowLines:
    """X as it is stored, whether a 1 follows each row, and q with a 0 for the intercept."""

    rows: RowsAtHand
    X: NDArray[Any]
    ones: bool
    codes: NDArray[Any]
    quadratic: Float
    held: int

    @classmethod
    def of(cls, problem: LinearProblem) -> RowLines:
        rows = RowsAtHand.of(problem)
        X, ones = rows.block.plain_rows(any_order=True) or (rows.block.dense(), False)
        return cls(rows, X, ones, rows.block.codes, problem.objective.penalty.quadratic[0], len(problem.scale))

    def size(self) -> float:
        """At least Σ_ij s x_ij²/q_j."""
        metric = np.zeros(len(self.quadratic))
        metric[: self.held] = 1.0 / self.quadratic[: self.held]
        return self.rows.total * self._looked(np.zeros(len(metric)), metric, np.zeros(len(metric)))[3]

    def look(self, theta: Float, curved: bool) -> tuple[SummedLosses, Float, Float, Float | None]:
        """The sums of the losses at θ; (p,) Σ s a x and Σ s h x; and (p, p) Σ s h xxᵀ where it is asked for."""
        gradient, border, p = np.zeros(len(theta)), np.zeros(len(theta)), len(theta)
        hessian = np.zeros((side := -(-p // 4) * 4, side)) if curved else _NO_MATRIX
        value, residual, steepest, _, bend = self._looked(theta, _NOTHING, gradient, hessian, border)
        slope = float(gradient[-1]) if self.held < p else np.nan  # it belongs to the intercept
        sums = SummedLosses(value, residual, steepest, slope, bend)
        return sums, gradient, border, hessian[:p, :p] if curved else None

    def _looked(
        self, theta: Float, metric: Float, gradient: Float, hessian: Float = _NO_MATRIX, border: Float = _NOTHING
    ) -> Any:
        from separatrix.kernels.lines.logistic_lines import logistic_lines

        weights, offset = (_NOTHING if one is None else one for one in (self.rows.weights, self.rows.offset))
        return logistic_lines(
            self.X, self.ones, self.codes, weights, offset, theta, metric, gradient, hessian, _NOTHING, border
        )
