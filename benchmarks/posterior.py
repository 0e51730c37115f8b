"""The posterior of a logistic regression by importance sampling, from NumPy and SciPy alone.

    p(θ | rows) ∝ exp(Σ yη − log(1 + e^η) − ½‖w‖²),  η = Xw + b          mode θ̂ and Hessian H by Newton's method
    θ_s ~ t_ν(θ̂, H⁻¹),  weights p(θ_s)/t_ν(θ_s)                         E θ ≈ Σ w_s θ_s, errors about sd/√(effective draws)

The proposal has heavier tails than the posterior, so the weights are bounded; their effective number says how good it is.

Reference: Kloek and van Dijk (1978), Econometrica 46.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
FREEDOM = 30.0
BLOCK = 500


@dataclass(frozen=True)
class Posterior:
    """Means and standard deviations of (w, b), and how many independent draws they are worth."""

    mean: Array
    deviations: Array
    effective: float


def mode(rows: Array, y: Array, prior: Array) -> tuple[Array, Array]:
    """θ̂ and H; `prior` are the precisions, 0 for the intercept."""
    theta = np.zeros(rows.shape[1])
    for _ in range(15):
        p = expit(rows @ theta)
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + np.diag(prior)
        theta = theta - np.linalg.solve(hessian, rows.T @ (p - y) + prior * theta)
    return theta, hessian


def importance_sampled(X: Array, y: Array, draws: int, seed: int = 0) -> Posterior:
    """The posterior with precision 1 and a flat intercept."""
    rows = np.column_stack([X, np.ones(len(y))])
    prior = np.append(np.ones(X.shape[1]), 0.0)
    centre, hessian = mode(rows, y, prior)
    root = np.linalg.cholesky(hessian)
    generator = np.random.default_rng(seed)
    z = generator.standard_normal((draws, len(centre)))
    z /= np.sqrt(generator.chisquare(FREEDOM, draws) / FREEDOM)[:, None]
    thetas = centre + np.linalg.solve(root.T, z.T).T
    target = np.concatenate(
        [_log_posterior(rows, y, prior, part) for part in np.array_split(thetas, draws // BLOCK + 1)]
    )
    proposal = -0.5 * (FREEDOM + len(centre)) * np.log1p(np.square(z).sum(axis=1) / FREEDOM)
    weights = np.exp(target - proposal - (target - proposal).max())
    weights /= weights.sum()
    mean = weights @ thetas
    deviations = np.sqrt(weights @ np.square(thetas - mean))
    return Posterior(mean, deviations, float(1.0 / np.square(weights).sum()))


def _log_posterior(rows: Array, y: Array, prior: Array, thetas: Array) -> Array:
    """One value per draw, added up over blocks of rows."""
    total: Array = -0.5 * np.square(thetas) @ prior
    for start in range(0, len(y), 2_000):
        eta = rows[start : start + 2_000] @ thetas.T
        total += y[start : start + 2_000] @ eta - (np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta)))).sum(axis=0)
    return total
