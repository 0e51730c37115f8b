"""Friedman's two-parameter family of class covariances, read from class moments.

    Σ_k(α) = αΣ_k + (1−α)Σ                                   "covariance": a mix of covariances
           = (αS_k + (1−α)S) / (αν_k + (1−α)ν)               "scatter": Friedman's mix of scatters and divisors
    Σ_k(α, γ) = γΣ_k(α) + (1−γ)T_k,   T_k = (tr Σ_k(α)/d) I ("trace"),  I ("identity"),  diag Σ_k(α) ("diagonal")

α=1, γ=1 is QDA; α=0, γ=1 is LDA; α=1, γ=0 with the diagonal target is Gaussian naive Bayes.
Reference: Friedman (1989), JASA 84, eqs. 15–18 (his λ is 1−α, his γ is 1−γ).
"""

from __future__ import annotations

from typing import Literal

from separatrix.statistics.moments import ClassMoments, Divisor
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.shrinkage import Covariance, Target, shrunk

Mix = Literal["covariance", "scatter"]


def mixing_coefficients(alpha: float, own: float, pooled: float, mix: Mix) -> tuple[float, float]:
    """(a, p) with Σ_k(α) = a·S_k + p·S, for the divisors ν_k = own and ν = pooled."""
    if mix == "scatter":
        size = alpha * own + (1.0 - alpha) * pooled
        return (alpha / size, (1.0 - alpha) / size) if size > 0 else (0.0, 0.0)
    return (alpha / own if own > 0 else 0.0), ((1.0 - alpha) / pooled if pooled > 0 else 0.0)


def mixed_covariance(
    moments: ClassMoments, pooled: Scatter, k: int, alpha: float, mix: Mix, divisor: Divisor
) -> Scatter:
    """Σ_k(α)."""
    a, p = mixing_coefficients(alpha, moments.class_divisor(k, divisor), moments.pooled_divisor(divisor), mix)
    if pooled.thin:  # every row once, not once for its class and once for the pool
        parts = ((p + (a if j == k else 0.0), moments.of_class(j)) for j in range(moments.n_classes))
        return combine(parts, moments.n_features)
    return combine([(a, moments.of_class(k)), (p, pooled)], moments.n_features)


def regularised(covariance: Scatter, gamma: float, target: Target) -> Covariance:
    """γΣ + (1−γ)T."""
    return shrunk(covariance, 1.0 - gamma, target)
