"""A Gaussian over the coefficients, in four shapes, and the distribution of a row's scores under it.

    θ ~ N(θ̂, S),   a = θφ ~ N(θ̂φ, φᵀSφ)                  θ (m, p), one row per score;  φ a row of the data, (p,)

    full        S = H⁻¹, the inverse of the (mp, mp) precision
    block       scores independent of each other: the inverse of each diagonal block H_kk
    diagonal    coefficients independent of each other: 1/H_jj, never more than the marginal variance under "block"
    low_rank    scores independent; H_kk ≈ Λ + Σ_r λ_r u_r u_rᵀ with the leading directions of the data. The others keep the
                variance of the prior: never less than under "block"

An intercept without a prior is integrated out first in "low_rank": S is then that of the other coefficients with their
columns centred at x̄ = H_xb/H_bb, and b given them has variance 1/H_bb about −x̄ᵀw.

Reference: Bishop (2006), Pattern Recognition and Machine Learning, section 4.5.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg as sla

from separatrix.data.block import Block, Float
from separatrix.settings import one_blas_thread

# Numbers that the products of some rows with a factor may fill.
_AT_ONCE = 1 << 21


class Posterior(ABC):
    """N(θ̂, S); `gauge` directions, which no score notices, have no variance."""

    structure: ClassVar[str]
    mean: Float
    """(m, p)"""

    @abstractmethod
    def spread(self, rows: Block) -> Float:
        """(n, m, m) covariances φᵀS_klφ of the scores of every row."""

    @abstractmethod
    def variances(self) -> Float:
        """(m, p) marginal variances of the coefficients."""

    @abstractmethod
    def covariance(self) -> Float:
        """(mp, mp) S, score by score."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> Float:
        """(n, m, p) draws."""


@dataclass(frozen=True)
class FullPosterior(Posterior):
    """S = FFᵀ with F (mp, mp); `precision` is H, its gauge directions filled so that it can be inverted.

    `log_size` is log |S| without the gauge directions.
    """

    mean: Float
    precision: Float
    factor: Float
    log_size: float
    gauge: Float
    structure: ClassVar[str] = "full"

    @classmethod
    def of_precision(cls, mean: Float, precision: Float, gauge: Float) -> FullPosterior:
        """From H (mp, mp) and orthonormal gauge directions (r, mp), which are eigenvectors of it."""
        with one_blas_thread():
            factor, log_size = inverse_root(precision)
            factor -= gauge.T @ (gauge @ factor)
            log_size += float(np.log(np.einsum("ri,ij,rj->r", gauge, precision, gauge)).sum())
        return cls(mean, precision, factor, log_size, gauge)

    @classmethod
    def of_draws(cls, draws: Float, gauge: Float) -> FullPosterior:
        """The Gaussian with the mean and the covariance of (n, m, p) draws."""
        flat = draws.reshape(len(draws), -1)
        centred = flat - flat.mean(axis=0)
        covariance = centred.T @ centred / (len(draws) - 1)
        filled = covariance + covariance.diagonal().mean() * (gauge.T @ gauge)
        root, _ = inverse_root(filled)
        return cls.of_precision(draws.mean(axis=0), root @ root.T, gauge)

    def spread(self, rows: Block) -> Float:
        m, p = self.mean.shape
        step = max(1, _AT_ONCE // (m * m * p))
        if rows.n > step:  # m vectors of mp numbers per row
            parts = [rows.part(slice(at, min(at + step, rows.n))) for at in range(0, rows.n, step)]
            return np.concatenate([self.spread(part) for part in parts])
        moved = [rows.matvec(part) for part in self.factor.reshape(m, p, -1)]
        if m == 1:
            return np.einsum("iq,iq->i", moved[0], moved[0])[:, None, None]
        spread = np.empty((rows.n, m, m))
        for k in range(m):
            for l in range(k + 1):  # noqa: E741  # name of the formula
                spread[:, k, l] = spread[:, l, k] = np.einsum("iq,iq->i", moved[k], moved[l])
        return spread

    def variances(self) -> Float:
        return np.square(self.factor).sum(axis=1).reshape(self.mean.shape)

    def covariance(self) -> Float:
        return self.factor @ self.factor.T

    def times(self, v: Float) -> Float:
        """S v, of the shape of θ."""
        return (self.factor @ (self.factor.T @ v.ravel())).reshape(self.mean.shape)

    def draw(self, rng: np.random.Generator, n: int) -> Float:
        normal = rng.standard_normal((n, self.factor.shape[1]))
        return self.mean + (normal @ self.factor.T).reshape(n, *self.mean.shape)


@dataclass(frozen=True)
class BlockPosterior(Posterior):
    """One full posterior per score."""

    mean: Float
    scores: tuple[FullPosterior, ...]
    structure: ClassVar[str] = "block"

    def spread(self, rows: Block) -> Float:
        return _diagonal(np.column_stack([score.spread(rows)[:, 0, 0] for score in self.scores]))

    def variances(self) -> Float:
        return np.concatenate([score.variances() for score in self.scores])

    def covariance(self) -> Float:
        return np.asarray(sla.block_diag(*[score.covariance() for score in self.scores]))

    def draw(self, rng: np.random.Generator, n: int) -> Float:
        return np.concatenate([score.draw(rng, n) for score in self.scores], axis=1)


@dataclass(frozen=True)
class DiagonalPosterior(Posterior):
    """Independent coefficients."""

    mean: Float
    variance: Float
    structure: ClassVar[str] = "diagonal"

    def spread(self, rows: Block) -> Float:
        return _diagonal(rows.row_squares(np.ascontiguousarray(self.variance.T)))

    def variances(self) -> Float:
        return self.variance

    def covariance(self) -> Float:
        return np.diag(self.variance.ravel())

    def draw(self, rng: np.random.Generator, n: int) -> Float:
        return self.mean + np.sqrt(self.variance) * rng.standard_normal((n, *self.mean.shape))


@dataclass(frozen=True)
class LowRankPosterior(Posterior):
    """The prior, narrowed along the leading directions of the data, score by score.

    Parameters
    ----------
    mean : ndarray of shape (m, p)
    prior_variance : ndarray of shape (m, d)
        1/Λ of the coefficients that have a prior: all, or all but the intercept.
    directions : ndarray of shape (m, d, r)
        Orthonormal columns: eigenvectors of Λ^(−½)HΛ^(−½) without the prior's part.
    strengths : ndarray of shape (m, r)
        Their eigenvalues λ.
    centre : ndarray of shape (m, d) or None
        x̄ where there is an intercept.
    intercept_variance : ndarray of shape (m,)
        1/H_bb.
    """

    mean: Float
    prior_variance: Float
    directions: Float
    strengths: Float
    centre: Float | None
    intercept_variance: Float
    structure: ClassVar[str] = "low_rank"

    def spread(self, rows: Block) -> Float:
        root, (m, d) = np.sqrt(self.prior_variance), self.prior_variance.shape
        pad = np.zeros((m, self.mean.shape[1] - d))
        variances = rows.row_squares(np.concatenate([self.prior_variance, pad], axis=1).T)
        if self.centre is not None:  # Σ v(x − x̄)² = Σ vx² − 2 Σ vxx̄ + Σ vx̄²; the last in the place of the intercept
            slope = self.prior_variance * self.centre
            constant = (slope * self.centre).sum(axis=1) + self.intercept_variance
            variances = variances + rows.matvec(np.column_stack([-2.0 * slope, constant]).T)
        for k in range(m):
            along = root[k][:, None] * self.directions[k]
            if self.centre is not None:
                along = np.concatenate([along, -(self.centre[k] @ along)[None]])
            squares = np.square(rows.matvec(along))
            # What lies across the directions, then along them: their difference alone would be lost to rounding.
            across = np.maximum(variances[:, k] - squares.sum(axis=1), self.intercept_variance[k])
            variances[:, k] = across + squares @ (1.0 / (1.0 + self.strengths[k]))
        return _diagonal(variances)

    def variances(self) -> Float:
        left, squares = 1.0 / (1.0 + self.strengths), np.square(self.directions)
        across = np.maximum(1.0 - squares.sum(axis=2), 0.0)
        own = self.prior_variance * (across + np.einsum("kjr,kr->kj", squares, left))
        if self.centre is None:
            return own
        scaled = self.centre * np.sqrt(self.prior_variance)
        inner = np.square(np.einsum("kj,kjr->kr", scaled, self.directions))
        across = np.maximum(np.square(scaled).sum(axis=1) - inner.sum(axis=1), 0.0)
        return np.column_stack([own, across + (inner * left).sum(axis=1) + self.intercept_variance])

    def covariance(self) -> Float:
        blocks, marginal = [], self.variances()
        for k, root in enumerate(np.sqrt(self.prior_variance)):
            lost = self.directions[k] * (self.strengths[k] / (1.0 + self.strengths[k]))
            own = root[:, None] * (np.eye(len(root)) - lost @ self.directions[k].T) * root
            own[np.diag_indices(len(root))] = marginal[k, : len(root)]
            if self.centre is not None:
                border = -own @ self.centre[k]
                corner = float(-self.centre[k] @ border + self.intercept_variance[k])
                own = np.block([[own, border[:, None]], [border[None, :], np.full((1, 1), corner)]])
            blocks.append(own)
        return np.asarray(sla.block_diag(*blocks))

    def draw(self, rng: np.random.Generator, n: int) -> Float:
        m, d = self.prior_variance.shape
        draws = np.empty((n, *self.mean.shape))
        for k in range(m):
            normal = rng.standard_normal((n, d))
            lost = 1.0 - 1.0 / np.sqrt(1.0 + self.strengths[k])
            normal -= ((normal @ self.directions[k]) * lost) @ self.directions[k].T
            draws[:, k, :d] = np.sqrt(self.prior_variance[k]) * normal
            if self.centre is not None:
                own = np.sqrt(self.intercept_variance[k]) * rng.standard_normal(n)
                draws[:, k, d] = own - draws[:, k, :d] @ self.centre[k]
        return self.mean + draws


def inverse_root(precision: Float) -> tuple[Float, float]:
    """F with FFᵀ = H⁻¹, and −log |H|. The diagonal is taken out first: the units of the columns cost no digits."""
    root = np.sqrt(precision.diagonal())
    if not (np.isfinite(root).all() and (root > 0).all()):
        raise np.linalg.LinAlgError("a diagonal entry is not positive")
    lower = np.linalg.cholesky(precision / root[:, None] / root[None, :])
    inverse, _ = sla.lapack.dtrtri(lower, lower=1)
    return inverse.T / root[:, None], -2.0 * float(np.log(lower.diagonal()).sum() + np.log(root).sum())


def _diagonal(variances: Float) -> Float:
    """(n, m) variances as (n, m, m) covariances of independent scores."""
    n, m = variances.shape
    spread = np.zeros((n, m, m))
    spread[:, np.arange(m), np.arange(m)] = variances
    return spread
