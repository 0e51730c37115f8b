"""Crammer and Singer's machine by a primal–dual interior-point method: see interior.py.

    min ½ Σ ρ_j Θ_jk² + Σ Cᵢ(ζᵢ − f_{yᵢ}(xᵢ)),   t_ik = ζᵢ − [k ≠ yᵢ] − f_k(xᵢ) ≥ 0        f = XΘ, (n, K)
    dual  λ_ik ≥ 0,  Σ_k λ_ik = Cᵢ,  ρΘ = Xᵀα,  α_ik = Cᵢ[k = yᵢ] − λ_ik;        λt = μ,    μ → 0

The ζ are free: they take Σ_k λ_ik = Cᵢ to be exact. With s = λ/t and Pᵢ = diag sᵢ − sᵢsᵢᵀ/Σsᵢ Newton's equations leave

    ρ dΘ + Xᵀ P(X dΘ) = Xᵀα − ρΘ − Xᵀh̃,       h = μ/t − λ − s(ζ − [k ≠ y] − f − t),  h̃ = h − s Σh/Σs

one system of pK equations. Where intercepts are free, adding one number to all of them changes nothing: their sum stays zero.

**Complexity** O(n p²K² + p³K³) a step; memory O(nK + p²K²).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.dual.interior import longest, newton_solver, with_intercept

_SHARE = 0.99


def joint_interior_points(
    A: Float, penalty: Float, codes: Codes, price: Float, n_classes: int, scaling: float | None
) -> Iterator[tuple[Float, Float, Float]]:
    """(Θ (p, K), intercepts (K,), λ (n, K)) step by step, until rounding leaves no step to take."""
    X, rho = with_intercept(A, penalty, scaling)
    (n, p), K = X.shape, n_classes
    own = np.zeros((n, K))
    own[np.arange(n), codes] = 1.0
    theta, zeta, lam = np.zeros((p, K)), np.full(n, 1.5), np.repeat(price[:, None] / K, K, axis=1)
    t = 1.5 - (1.0 - own)
    while True:
        residual = zeta[:, None] - (1.0 - own) - X @ theta - t
        given = lam * (1.0 - own)  # Cᵢ − λ would cancel where λ is nearly Cᵢ
        force = X.T @ (own * given.sum(axis=1, keepdims=True) - given) - rho[:, None] * theta
        s = lam / t
        total = s.sum(axis=1, keepdims=True)
        mu = float((lam * t).sum()) / (n * K)
        solve = newton_solver(_curvature(X, s, total[:, 0], scaling is None), np.tile(rho, K))
        if solve is None:
            return

        equations = _Equations(X, lam, t, s, total, residual, force, solve)
        _, _, d_lam, d_t = equations.direction(-lam * t)
        length = longest([(lam, d_lam), (t, d_t)])
        after = float(((lam + length * d_lam) * (t + length * d_t)).sum()) / (n * K)
        goal = mu * min(1.0, max(0.0, after / mu)) ** 3 if mu > 0 else 0.0
        d_theta, d_zeta, d_lam, d_t = equations.direction(goal - lam * t - d_lam * d_t)
        length = longest([(lam, d_lam), (t, d_t)], _SHARE)
        theta, zeta = theta + length * d_theta, zeta + length * d_zeta
        lam, t = lam + length * d_lam, t + length * d_t
        if not (np.isfinite(theta).all() and (lam > 0).all() and (t > 0).all()):
            return
        yield (theta, np.zeros(K), lam) if X is A else (theta[:-1], theta[-1], lam)


@dataclass(frozen=True)
class _Equations:
    """Newton's, at one point."""

    X: Float
    lam: Float
    t: Float
    s: Float
    total: Float
    residual: Float
    force: Float
    solve: Callable[[Float], Float]

    def direction(self, right: Float) -> tuple[Float, Float, Float, Float]:
        """dΘ, dζ, dλ, dt for λ dt + t dλ = right."""
        h = right / self.t - self.s * self.residual
        even = h - self.s * (h.sum(axis=1, keepdims=True) / self.total)
        pushed = self.force - self.X.T @ even
        d_theta = self.solve(pushed.T.ravel()).reshape(pushed.shape[::-1]).T
        d_f = self.X @ d_theta
        d_zeta = (h + self.s * d_f).sum(axis=1, keepdims=True) / self.total
        d_lam = h - self.s * (d_zeta - d_f)
        return d_theta, d_zeta[:, 0], d_lam, (right - self.t * d_lam) / self.lam


def _curvature(X: Float, s: Float, total: Float, free: bool) -> Float:
    """Xᵀ P X, class by class, (pK, pK)."""
    (_, p), K = X.shape, s.shape[1]
    matrix = np.empty((K, p, K, p))
    for k in range(K):
        others = np.delete(s, k, axis=1).sum(axis=1)  # not the total less s_k, which would cancel
        for l in range(k + 1):  # noqa: E741  # a name of the formula
            weights = s[:, k] * (others if l == k else -s[:, l]) / total
            matrix[k, :, l, :] = X.T @ (weights[:, None] * X)
            matrix[l, :, k, :] = matrix[k, :, l, :].T
    if free:
        # The direction in which all intercepts move together: any positive curvature keeps the step out of it.
        matrix[:, -1, :, -1] += float(np.mean([matrix[k, -1, k, -1] for k in range(K)])) / K
    return matrix.reshape(K * p, K * p)
