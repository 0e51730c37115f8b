"""Bounds on F − F* that hold for every convex loss with a conjugate: a point of the dual problem.

    F* ≥ D(a) = −Σᵢ sᵢ (ℓ*(aᵢ) − aᵢᵀoᵢ) − P*(−Σᵢ sᵢ aᵢxᵢᵀ)             for every a

At a = ∇ℓ the two sides differ by what is left of the gradient alone. A coefficient that nothing holds back (the intercept)
demands Σ s a x_j = 0; to first order a shift of the scores does that: a = ∇ℓ − ∇²ℓ·c. What it leaves, and what exceeds an
absolute penalty, is removed by shrinking a: −ℓ* is concave and ℓ*(0) ≤ 0 for the losses here, so D(κa) ≥ κ·(−Σ s ℓ*(a)).

Reference: Boyd and Vandenberghe (2004), section 5.2; El Ghaoui, Viallon, Rabbani (2012), Pacific J. Optimization 8.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import Source
from separatrix.objectives.linear import Evaluation, LinearObjective


def strong_convexity(objective: LinearObjective, gradient: Float) -> float:
    """‖g‖²/2q, a bound without another pass where every coefficient has a quadratic penalty."""
    quadratic = objective.penalty.quadratic
    if objective.penalty.smooth and objective.penalty.matrix is None and (quadratic > 0).all():
        with np.errstate(over="ignore"):  # columns of extreme size: no bound
            return 0.5 * float((np.square(gradient) / quadratic).sum())
    return np.inf


def intercept_shift(gradient: Float, curvature: Float) -> Float:
    """c (m,) with ∇²F_b·c = ∂F/∂b for the (m, m) second derivatives by the intercepts."""
    values, vectors = np.linalg.eigh(curvature)
    kept = values > 1e-12 * max(values[-1], np.finfo(np.float64).tiny)
    shift: Float = vectors[:, kept] @ ((vectors[:, kept].T @ gradient) / values[kept])
    return shift


def dual_gap(
    objective: LinearObjective, source: Source, theta: Float, evaluation: Evaluation, shift: Float, intercept: bool
) -> float:
    """F(θ) − D(a) ≥ F(θ) − F*. One pass; infinite when no dual point is near."""
    value, product = objective.dual(theta, shift, source)
    if not np.isfinite(value):
        return np.inf
    penalty = objective.penalty
    if intercept:
        # The shift made these vanish to second order; what is left is the coefficient of a move that may be far.
        left = product[:, -1]
        slack = np.abs(left).max(initial=0.0) * (1.0 + np.abs(theta[:, -1]).max(initial=0.0))
        product = product.copy()
        product[:, -1] = 0.0
    else:
        slack = 0.0
    strict = (penalty.quadratic == 0) & (penalty.absolute > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(strict & (np.abs(product) > 0), penalty.absolute / np.abs(product), np.inf)
    kappa = min(1.0, float(ratio.min(initial=1.0)))
    lower = -kappa * value - penalty.conjugate(-kappa * product)
    # Both sides are sums of the size of F: their difference is known to so many digits and no more.
    noise = 8.0 * float(np.finfo(np.float64).eps) * (abs(evaluation.value) + abs(lower))
    return max(0.0, float(evaluation.value - lower)) + 2.0 * slack + noise
