"""Limits of a profile likelihood: {b : 2(L(θ̂) − max L(θ with aᵀθ = b)) ≤ z²}, which need not be symmetric about the estimate.

The root √(2ΔL) is nearly a straight line in b, so Newton's method on it, safeguarded by bisection, takes a handful of values of
b; its slope comes with the fit. Every value is a fit of its own, begun where the tangent of the profile leads,

    dθ/db = H⁻¹a / aᵀH⁻¹a,   the step within the plane aᵀθ = b   −H⁻¹(g − μa),   μ = gᵀ dθ/db

A fit that has not converged proves only that L is at least so large: its b may be known to be inside, never outside.

Reference: Venzon and Moolgavkar (1988), Applied Statistics 37, eq. 2.

**Complexity** O(n q²) per step, q coefficients. **Passes over the data** about eight for a limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from separatrix.data.block import Float
from separatrix.inference.expansion import Expansion
from separatrix.objectives.linear_problem import LinearProblem
from separatrix.settings import outside

_EPS = float(np.finfo(np.float64).eps)
# What a step may still promise, as a share of F, where rounding ends a fit.
_SETTLED = 1e-9


class HeldFit(NamedTuple):
    """A fit with a coefficient held: √(2ΔL), the slope of L by its distance (0 if unknown), and whether it converged."""

    drop: float
    slope: float
    settled: bool


@dataclass(frozen=True)
class Limit:
    """Where a search for a limit ended: the last distance with its drop, and the interval that holds the limit."""

    distance: float
    last: HeldFit
    inside: float
    outside: float
    found: bool


def search_limit(
    hold: Callable[[float], HeldFit], goal: float, first: float, *, tolerance: float, max_fits: int
) -> Limit:
    """Find the distance from the estimate at which the drop √(2ΔL) is `goal`, to within `tolerance`.

    `hold` is the fit with the coefficient held at a distance from its estimate; `first` is the distance to begin with.
    """
    inside, beyond, distance, guess = 0.0, math.inf, first, first
    for _ in range(max_fits):
        distance = guess
        last = hold(distance)
        if last.settled and abs(last.drop - goal) <= tolerance:
            return Limit(distance, last, inside, beyond, True)
        guess = 0.5 * (inside + distance)
        if last.settled or last.drop < goal:
            inside, beyond = (distance, beyond) if last.drop < goal else (inside, distance)
            slope = last.slope / last.drop if last.drop > 0.1 * goal else 0.0
            guess = min(distance + (goal - last.drop) / slope, 4.0 * distance) if slope > 0 else 2.0 * distance
            if not inside < guess < beyond:
                guess = 0.5 * (inside + beyond)
        if guess in (inside, beyond):
            break
    return Limit(distance, last, inside, beyond, False)


def profile_limit(best: Expansion, k: int, i: int, error: float, goal: float) -> float:
    """The limit of coefficient i of score k on the side of the sign of `goal`, in standard errors from the estimate.

    Infinite when the likelihood does not fall that far.
    """
    normal = np.zeros(best.problem.shape)
    normal[k] = best.jacobian[i] / error
    side, goal = math.copysign(1.0, goal), abs(goal)
    theta, tangent, here = best.theta, _tangent(best, normal), 0.0

    def hold(distance: float) -> HeldFit:
        nonlocal theta, tangent, here
        held, settled = minimise_held(best.problem, theta + side * (distance - here) * tangent, normal)
        drop, along = math.sqrt(2.0 * max(0.0, held.evaluation.value - best.evaluation.value)), _tangent(held, normal)
        if settled or drop < goal:
            theta, tangent, here = held.theta, along, distance
        return HeldFit(drop, side * float((held.evaluation.gradient * along).sum()), settled)

    tolerance = max(1e-10, 256 * _EPS * abs(best.evaluation.value))
    limit = search_limit(hold, goal, goal, tolerance=tolerance, max_fits=60)
    if not limit.last.settled:
        warnings.warn(
            f"A profile limit of coefficient {i} was not found: fits with it held at {goal:.2g} standard errors and beyond did "
            "not converge. The nearest value known to be outside is given, which may be infinite.",
            ConvergenceWarning,
            stacklevel=outside(),
        )
        return side * limit.outside
    # Rounding of F may keep the last digits out of reach; only a fall that never comes is infinite.
    return side * (limit.outside if limit.last.drop < goal * (1.0 - 1e-6) else limit.distance)


def _tangent(point: Expansion, normal: Float) -> Float:
    """dθ/db along the profile."""
    direction = point.curvature.solve(normal)
    return direction / float((normal * direction).sum())


def minimise_held(problem: LinearProblem, theta: Float, normal: Float) -> tuple[Expansion, bool]:
    """The least F with aᵀθ as it is, by Newton's method within that plane.

    And whether it is the least: whether a further step would promise next to nothing.
    """
    point, slack, promise = Expansion.at(problem, theta), 4.0 * _EPS, np.inf
    for _ in range(50):
        gradient = point.evaluation.gradient
        slope = float((gradient * _tangent(point, normal)).sum())
        step = point.curvature.solve(slope * normal - gradient)
        promise = -float((gradient * step).sum())
        if promise <= 1e-13:  # F is at most half of that too high
            break
        for halvings in range(40):
            new = Expansion.at(problem, point.theta + 0.5**halvings * step)
            if new.evaluation.value <= point.evaluation.value * (1.0 + slack):
                break
        else:
            break
        point = new
    return point, promise <= _SETTLED * max(1.0, abs(point.evaluation.value))
