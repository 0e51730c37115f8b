"""Penalties on the coefficients: Gaussian and Laplace priors, per coefficient, and bounds.

    P(θ) = Σ_j ½ q_j (θ_j − μ_j)² + l_j |θ_j|   for low ≤ θ ≤ high,     or   ½ (θ − μ)ᵀ Q (θ − μ)  with a matrix Q

    scikit-learn's     C Σ ℓ + (1−ρ)/2 ‖w‖² + ρ‖w‖₁          q = (1−ρ)/C,  l = ρ/C        (after division by C)
    glmnet's           (1/n) Σ ℓ + λ((1−ρ)/2 ‖w‖² + ρ‖w‖₁)   C = 1/(nλ)

`of_scikit_learn` is the one place where C, l1_ratio and penalty factors become q and l.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float


@dataclass(frozen=True)
class Penalty:
    """Arrays of the shape of θ, (m, p); `matrix` is (mp, mp) and excludes everything else but the mean."""

    quadratic: Float
    absolute: Float
    mean: Float
    low: Float
    high: Float
    matrix: Float | None = None

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Penalty:
        """No penalty, no bounds."""
        zeros = np.zeros(shape)
        return cls(zeros, zeros, zeros, np.full(shape, -np.inf), np.full(shape, np.inf))

    @classmethod
    def of_scikit_learn(cls, C: float, l1_ratio: float, factors: Float) -> Penalty:
        """λ = 1/C times the elastic net, times the factor of each coefficient (0 for the intercept)."""
        strength = (0.0 if np.isinf(C) else 1.0 / C) * factors
        none = np.zeros_like(strength)
        return cls(
            (1.0 - l1_ratio) * strength,
            l1_ratio * strength,
            none,
            np.full_like(none, -np.inf),
            np.full_like(none, np.inf),
        )

    @property
    def smooth(self) -> bool:
        """Whether gradients say everything: no absolute values, no bounds."""
        return self._smooth

    @cached_property
    def _smooth(self) -> bool:
        return not (self.absolute.any() or np.isfinite(self.low).any() or np.isfinite(self.high).any())

    @property
    def free(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Which coefficients nothing holds back."""
        held = (self.quadratic > 0) | (self.absolute > 0) | (np.isfinite(self.low) & np.isfinite(self.high))
        if self.matrix is not None:
            held = held | self.matrix.any(axis=1).reshape(held.shape)
        return ~held

    def scaled(self, factor: float) -> Penalty:
        """factor · P."""
        return replace(
            self,
            quadratic=factor * self.quadratic,
            absolute=factor * self.absolute,
            matrix=None if self.matrix is None else factor * self.matrix,
        )

    def of_columns(self, which: NDArray[np.intp]) -> Penalty:
        """That of some of the columns."""
        m, p = self.mean.shape
        at = (np.arange(m)[:, None] * p + which).ravel()
        matrix = None if self.matrix is None else self.matrix[np.ix_(at, at)]
        quadratic, absolute, mean = self.quadratic[:, which], self.absolute[:, which], self.mean[:, which]
        return Penalty(quadratic, absolute, mean, self.low[:, which], self.high[:, which], matrix)

    def rescaled(self, scale: Float) -> Penalty:
        """The same penalty on θ·scale, (p,) one factor per column."""
        tiled = np.tile(scale, len(self.mean))
        return replace(
            self,
            quadratic=self.quadratic / scale / scale,  # the square of a scale may be 0 or infinite
            absolute=self.absolute / scale,
            mean=self.mean * scale,
            low=self.low * scale,
            high=self.high * scale,
            matrix=None if self.matrix is None else self.matrix / np.outer(tiled, tiled),
        )

    def value(self, theta: Float) -> float:
        """P(θ), for θ within the bounds."""
        return self.smooth_value(theta) + (0.0 if self.smooth else float((self.absolute * np.abs(theta)).sum()))

    def smooth_value(self, theta: Float) -> float:
        """The quadratic part."""
        deviation = theta - self.mean
        if self.matrix is not None:
            return 0.5 * float(deviation.ravel() @ self.matrix @ deviation.ravel())
        return 0.5 * float((self.quadratic * np.square(deviation)).sum())

    def gradient(self, theta: Float) -> Float:
        """Of the quadratic part."""
        deviation = theta - self.mean
        if self.matrix is not None:
            return (self.matrix @ deviation.ravel()).reshape(theta.shape)
        return self.quadratic * deviation

    def add_hessian(self, hessian: Float) -> Float:
        """`hessian` (mp, mp) plus that of the quadratic part, in place."""
        if self.matrix is not None:
            hessian += self.matrix
        else:
            hessian.flat[:: len(hessian) + 1] += self.quadratic.ravel()
        return hessian

    def times(self, v: Float) -> Float:
        """Hessian of the quadratic part times v."""
        return self.quadratic * v if self.matrix is None else (self.matrix @ v.ravel()).reshape(v.shape)

    def residual(self, theta: Float, gradient: Float) -> Float:
        """The least element of the subdifferential at θ, given the gradient of everything smooth."""
        if self.smooth:
            return gradient
        sign = np.sign(theta)
        at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - self.absolute, 0.0)
        least = np.where(sign == 0, at_zero, gradient + self.absolute * sign)
        least = np.where((theta <= self.low) & (least > 0), 0.0, least)
        return np.where((theta >= self.high) & (least < 0), 0.0, least)

    def unheld(self, v: Float) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where sup_θ vᵀθ − P(θ) is infinite: a coefficient that nothing holds back on the side that v points to."""
        bounded = np.where(v > 0, np.isfinite(self.high), np.isfinite(self.low))
        result: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = (
            ~bounded & (np.abs(v) > self.absolute) & (self.quadratic == 0)
        )
        if self.matrix is not None:
            result = result & ~self.matrix.any(axis=1).reshape(v.shape)
        return result

    def maximiser(self, v: Float) -> Float:
        """θ at which vᵀθ − P(θ) is largest, infinite where there is none: the derivative of the conjugate."""
        if self.matrix is not None:
            return self.mean + np.linalg.lstsq(self.matrix, v.ravel(), rcond=None)[0].reshape(v.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            pulled = v + self.quadratic * self.mean
            soft = np.sign(pulled) * np.maximum(np.abs(pulled) - self.absolute, 0.0)
            best = np.where(self.quadratic > 0, soft / self.quadratic, np.where(soft == 0, 0.0, np.sign(soft) * np.inf))
        return np.clip(best, self.low, self.high)

    def conjugate(self, v: Float) -> float:
        """P*(v) = sup_θ vᵀθ − P(θ); infinite where a coefficient that nothing holds back has v ≠ 0."""
        best = self.maximiser(v)
        if self.matrix is not None:
            missed = self.matrix @ (best - self.mean).ravel() - v.ravel()
            if np.abs(missed).max(initial=0.0) > 1e-10 * (1.0 + np.abs(v).max(initial=0.0)):
                return np.inf
            return float((v * (0.5 * (best - self.mean) + self.mean)).sum())
        if not np.isfinite(best).all():
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # columns of extreme size
            supremum = float((v * best).sum()) - self.value(best)
        return supremum if np.isfinite(supremum) else np.inf
