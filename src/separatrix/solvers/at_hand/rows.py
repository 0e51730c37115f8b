"""The logistic loss over few rows that lie in memory at once: what small problems need for steps and proofs, without passes.

    F(w, b) = Σ s log(1 + e^{−ỹη}) + ½ Σ_j q_j w_j²,      η = o + Xw + b,   q > 0,   the intercept b is free
    a = −ỹσ(−ỹη),   h = σ(η)σ(−η),     g = Σ s a x + qw,   β = Σ s a

The proof is the dual point of bounds.py that a shift c = β/Σsh of the scores makes feasible, in its closed form, whose only
unknown is the border k = Σ s h x:

    F − F* ≤ cβ + Σ_j (g_j − ck_j)²/2q_j          for |c| < 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.margin_losses import Logistic
from separatrix.objectives.rounding import ROUNDING
from separatrix.solvers.bounds import Bound

# Compiled loops stop at this share of a target: their gap is that of `proof` but for the order of its sums.
WITHIN = 0.999


class Losses(NamedTuple):
    """At some scores: Σ s ℓ, (n,) s·a and s·h, Σ s a² and max |η|."""

    value: float
    slopes: Float
    bends: Float
    residual: float
    steepest: float

    @property
    def slope(self) -> float:
        """Σ s a."""
        return float(self.slopes.sum())

    @property
    def bend(self) -> float:
        """Σ s h."""
        return float(self.bends.sum())


class SummedLosses(NamedTuple):
    """The same sums where the values of the rows are not kept: Σ s ℓ, Σ s a², max |η|, Σ s a, Σ s h."""

    value: float
    residual: float
    steepest: float
    slope: float
    bend: float


@dataclass(frozen=True)
class RowsAtHand:
    """The rows that count, with their labels as signs, weights and offsets."""

    block: Block
    signs: Float
    weights: Float | None
    offset: Float | None
    total: float
    """Σ s."""

    @classmethod
    def of(cls, problem: LinearProblem) -> RowsAtHand:
        """Of a problem that `offered` said yes to."""
        block = problem.source.one_block(any_order=True)
        assert block is not None, "the rows are not at hand"
        rows, own = problem.objective.counted(block)
        signs = rows.codes.astype(np.float64) * 2.0 - 1.0
        total = float(rows.n) if rows.weights is None else float(rows.weights.sum())
        return cls(rows, signs, rows.weights, None if own is None else own[:, 0], total)

    def losses(self, scores: Float) -> Losses:
        """The loss and its derivatives at scores that the offset is in already."""
        margins = self.signs * scores
        size = np.abs(margins)
        small = np.exp(-size)
        high = 1.0 / (1.0 + small)
        right = small * high
        losses = _log1p(small)
        losses -= np.minimum(margins, 0.0)
        slopes = np.where(margins < 0, high, right)
        bends, squares = right * high, slopes
        if self.weights is not None:
            losses *= self.weights
            bends *= self.weights
            squares = slopes * self.weights
        residual = float(squares @ slopes)
        return Losses(float(losses.sum()), -self.signs * squares, bends, residual, float(size.max(initial=0.0)))


def _log1p(small: Float) -> Float:
    """log(1 + x) for x in [0, 1] to a few units of rounding, by the logarithm that NumPy has vectorised.

    With u = 1 + x as it is rounded, log u is right for u − 1, and log(1 + x)/x hardly differs between the two.
    """
    near = 1.0 + small
    added = near - 1.0
    far = added > 0
    np.log(near, out=near)
    near *= small
    return np.divide(near, added, out=small.copy(), where=far)


def offered(problem: LinearProblem) -> bool:
    """Whether a problem is of this kind: two classes, a quadratic penalty about 0 of everything but a free intercept."""
    objective, d = problem.objective, len(problem.scale)
    penalty = objective.penalty
    plain = type(objective.loss) is Logistic and penalty.smooth and penalty.matrix is None and not penalty.mean.any()
    return bool(plain and (penalty.quadratic[0, :d] > 0).all() and objective.free_intercept == problem.fit_intercept)


def proof(
    rows: RowsAtHand,
    at: Losses | SummedLosses,
    value: float,
    gradient: Float,
    border: Float | None,
    quadratic: Float,
    size: float,
) -> Bound:
    """The bound above from g, k and q; no k without an intercept. `size` is Σ_ij s x_ij²/q_j, or more.

    The exact c meets the intercept's condition and differs from ours by rounding; sums over the rows are known to ROUNDING:
    see bounds.py. Errors e_j ≤ ε√Σsx_j² of g − ck add at most ε√`size` to the norm ‖g − ck‖ in 1/q.
    """
    noise = ROUNDING * math.sqrt(at.residual * rows.total)
    left, bent, missed = gradient, 0.0, 0.0
    if border is not None:
        total, slope = at.bend, at.slope
        shift = slope / total if total > 0 else np.inf
        if not abs(shift) < 1.0:
            return Bound(np.inf, method="dual point")
        left = gradient - shift * border
        missed = noise / total + 4.0 * ROUNDING * abs(shift)
        bent = 1.01 * abs(shift * slope) + 101.0 * noise**2 / total
    error = ROUNDING * math.sqrt(at.residual) + missed * math.sqrt(rows.total)
    length = math.sqrt(float((np.square(left) / quadratic).sum())) + error * math.sqrt(size)
    return Bound(0.5 * length**2 + bent + ROUNDING * abs(value), method="dual point")
