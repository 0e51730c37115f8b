"""The one line search: a step is halved until F falls by a share of what its slope promises.

    F(θ + tΔ) ≤ F(θ) + 1e-4 t · promise            and, where asked for,   ∇F(θ + tΔ)ᵀΔ ≥ 0.9 ∇F(θ)ᵀΔ

The second condition (Wolfe's) is met by bisection between lengths that are too short and too long. No objective here is
negative, so F cannot fall by more than F(θ): lengths of which the first condition asks for more are passed over. Where all rows
are far out on the flat side of the loss, the curvature is next to nothing and Newton's step longer than any row of halvings.

Reference: Nocedal and Wright (2006), Numerical Optimization, section 3.1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.objectives.linear import Evaluation
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.objectives.rounding import EPS

_HALVINGS, _SHARE = 40, 1e-4


def line_search(
    problem: LinearProblem,
    theta: Float,
    step: Float,
    before: Evaluation,
    *,
    moved: Float | None = None,
    promise: float | None = None,
    flatten: bool = False,
    stay: bool = False,
    **asked: Any,
) -> tuple[Float, float, Evaluation] | None:
    """The point, the length t and what was `asked` of the evaluation there; ``None`` where no length lowers F.

    `moved` is θ + Δ where that is known more exactly, `promise` the directional derivative where F has kinks, `flatten` asks
    for Wolfe's condition, `stay` allows a point that does not differ from θ.
    """
    slope = float((before.gradient * step).sum()) if promise is None else promise
    if flatten and not slope < 0:
        return None
    if before.precision > EPS and -slope < before.precision * abs(before.value):
        return None  # what a step can gain is lost in the rounding of single precision
    short, long, t = 0.0, np.inf, _first_length(before.value, slope)
    for _ in range(_HALVINGS):
        point = moved if moved is not None and t == 1.0 else theta + t * step
        if not stay and np.array_equal(point, theta):
            break
        new = problem.evaluate(point, **asked)
        if not new.value <= before.value + _SHARE * t * slope + 4.0 * before.precision * abs(before.value):
            long = t
        elif flatten and float((new.gradient * step).sum()) < 0.9 * slope:
            short = t
        else:
            return point, t, new
        t = 0.5 * (short + long) if np.isfinite(long) else 2.0 * t
    return None


def _first_length(value: float, slope: float) -> float:
    """The largest power of ½ that can lower F as far as is asked for: 1 for all steps but absurd ones."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        excess = float(np.float64(-_SHARE * slope) / value)
    return 2.0 ** -math.ceil(math.log2(excess)) if 1.0 < excess < np.inf else 1.0
