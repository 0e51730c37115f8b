"""The Mahalanobis metric of a covariance matrix: lengths, solves and the log-determinant, never the inverse.

    ‖z‖²_Σ = zᵀΣ⁻¹z = ‖half(z)‖²,   solve(B) = BΣ⁻¹ = back(half(B)),   log|Σ|

Two forms of Σ. Dense: D R D with R the correlation matrix, so columns in any units (1e-150 next to 1e150) are
treated alike; Cholesky where R is well conditioned, eigenvectors where it is not. Thin: diag(δ) + FᵀF with fewer
rows F than columns, through the r×r matrix Fδ⁻¹Fᵀ (Woodbury); z is split into its part inside the span of F
and the rest, explicitly, so nothing is lost to cancellation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.statistics.scatter import Scatter

_EPS = float(np.finfo(np.float64).eps)
# The rank is left to the eigenvalues when the condition number of the Cholesky factor comes near the tolerance
# (its estimate may be too good by a small factor), or near what rounding allows.
_SAFETY = 100.0
_ILL_CONDITIONED = 1e-6
# Entries of matrices that are decomposed together.
_STACKED = 1 << 17
# What may be left out of a direction that has its floor, in units of that floor.
_SEEN = 1e-8


def row_lengths(rows: Float) -> Float:
    """(n,) ‖z‖ of every row, in a fraction of the time that NumPy's norm takes for few."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))


class Metric(ABC):
    """Lengths in units of a covariance matrix."""

    n_features: int
    rank: int  # number of directions with variance
    log_det: float  # log|Σ|; over the directions with variance only when there are others (the pseudo-determinant)
    condition: float = 1.0  # upper bound on 1/λ_min of the scaled matrix: how much a solve may amplify rounding
    complete: bool = True  # whether every direction in which something varies was kept

    @property
    def singular(self) -> bool:
        """Whether some direction has no variance; such directions are left out of every length."""
        return self.rank < self.n_features

    @abstractmethod
    def half(self, rows: Float) -> Float:
        """Rows in coordinates in which Σ is the identity."""

    @abstractmethod
    def back(self, rows: Float) -> Float:
        """The transpose of `half`: back(half(B)) = BΣ⁻¹."""

    @abstractmethod
    def half_bound(self, magnitudes: Float) -> Float:
        """(n,) upper bounds on ‖half(e)‖ for every e with |e| ≤ the row of magnitudes, entry by entry."""

    def rough_bound(self, magnitudes: Float) -> Float:
        """The same, perhaps looser, without a product with a matrix."""
        return self.half_bound(magnitudes)

    def solve(self, rows: Float) -> Float:
        """BΣ⁻¹ for the rows B."""
        return self.back(self.half(rows))

    def squared_lengths(self, rows: Float) -> Float:
        """zᵀΣ⁻¹z of every row."""
        white = self.half(rows)
        return np.einsum("ij,ij->i", white, white)


class DenseMetric(Metric):
    """The metric of a d×d matrix.

    A direction whose standard deviation is at most `tol` counts as one without variance, and is left out: in standardised
    columns, or in the user's units without `standardise`.
    """

    def __init__(self, covariance: Float, tol: float = 0.0, standardise: bool = True) -> None:
        self.n_features = len(covariance)
        scale = np.sqrt(np.maximum(covariance.diagonal(), 0.0)) if standardise else np.ones(self.n_features)
        self._scale = np.where(scale > 0, scale, 1.0)
        cutoff = max(tol * tol, _EPS * self.n_features)
        correlation, varies = self._correlation(covariance), scale > 0
        # A column that does not vary is no reason for eigenvectors: it is given a length of its own, and then left out.
        apart = standardise and not varies.all() and not correlation[~varies].any()
        if apart:
            correlation[~varies, ~varies] = 1.0
        factor = _inverse_cholesky(correlation, np.sqrt(cutoff))
        if factor is None:
            values, vectors = np.linalg.eigh(self._correlation(covariance))
            kept = values > cutoff * (1.0 if standardise else max(float(values[-1]), 0.0))
            self.rank = int(kept.sum())
            factor = vectors[:, kept] / np.sqrt(values[kept])
            log_values = float(np.log(values[kept]).sum())
        else:
            log_values = -2.0 * float(np.log(factor.diagonal()).sum())
            factor = np.ascontiguousarray(factor[:, varies]) if apart else factor
            self.rank = factor.shape[1]
        self.log_det = log_values + 2.0 * float(np.log(self._scale).sum())
        self.condition = float(np.dot(factor.ravel(), factor.ravel()))
        self.complete = self.rank == int((covariance.diagonal() > 0).sum())
        factor /= self._scale[:, None]
        self._factor = factor

    @classmethod
    def of_each(cls, covariances: Float, tol: float, standardise: bool) -> list[DenseMetric]:
        """The metrics of a stack (K, d, d): NumPy's share of the work is done for all of them at once."""
        diagonals = np.diagonal(covariances, axis1=1, axis2=2)
        scales = np.sqrt(np.maximum(diagonals, 0.0)) if standardise else np.ones_like(diagonals)
        scales = np.where(scales > 0, scales, 1.0)
        d = covariances.shape[1]
        cutoff = max(tol * tol, _EPS * d)
        try:
            lower = np.linalg.cholesky(covariances / scales[:, None, :] / scales[:, :, None])
        except np.linalg.LinAlgError:
            return [cls(covariance, tol, standardise) for covariance in covariances]
        factors = np.empty_like(lower)
        for k, triangle in enumerate(lower):  # triangle.T is what LAPACK reads: L⁻ᵀ comes of it
            factors[k], _ = lapack.dtrtri(triangle.T, lower=0)
        bounds = np.abs(lower).sum(axis=1).max(axis=1) * np.abs(factors).sum(axis=2).max(axis=1)
        sure = bounds * max(_SAFETY * float(np.sqrt(cutoff)), _ILL_CONDITIONED) < 1.0
        pivots = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        log_dets = 2.0 * (pivots + np.log(scales).sum(axis=1))
        conditions = np.einsum("kij,kij->k", factors, factors)
        complete = np.atleast_1d((diagonals > 0).all(axis=1))
        factors /= scales[:, :, None]
        found: list[DenseMetric] = []
        for k, covariance in enumerate(covariances):
            if not sure[k]:
                found.append(cls(covariance, tol, standardise))
                continue
            metric = object.__new__(cls)
            metric.n_features = metric.rank = d
            metric._scale, metric._factor = scales[k], factors[k]
            metric.log_det, metric.condition = float(log_dets[k]), float(conditions[k])
            metric.complete = bool(complete[k])
            found.append(metric)
        return found

    def _correlation(self, covariance: Float) -> Float:
        correlation = covariance / self._scale
        correlation /= self._scale[:, None]
        return correlation

    def half(self, rows: Float) -> Float:
        return rows @ self._factor

    def back(self, rows: Float) -> Float:
        return rows @ self._factor.T

    def half_bound(self, magnitudes: Float) -> Float:
        return row_lengths(magnitudes @ np.abs(self._factor))

    def rough_bound(self, magnitudes: Float) -> Float:
        # from the least eigenvalue alone
        return np.sqrt(self.condition) * row_lengths(magnitudes / self._scale)


def _inverse_cholesky(matrix: Float, tol: float) -> Float | None:
    """L⁻ᵀ of matrix = LLᵀ, or None where an eigenvalue may be near or below tol²; the matrix is used up."""
    lower, failed = lapack.dpotrf(matrix.T, lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    # Lᵀ is its own U in LU = Lᵀ: `dtrcon`, which says so directly, is not in every SciPy that we allow.
    reciprocal_condition, _ = lapack.dgecon(lower.T, np.abs(lower).sum(axis=0).max(initial=0.0), norm="I")
    if not reciprocal_condition > max(_SAFETY * tol, _ILL_CONDITIONED):
        return None
    inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
    return np.ascontiguousarray(inverse.T)


class ThinMetric(Metric):
    """The metric of diag(δ) + FᵀF, F = `rows` (r, d) with r < d, δ = `floor` (d,) positive.

    Without a floor lengths are measured inside the span of F alone, and `tol` and `standardise` are as for `DenseMetric`.
    """

    def __init__(self, rows: Float, floor: Float | None, tol: float = 0.0, standardise: bool = True) -> None:
        self.n_features = rows.shape[1]
        if floor is not None:
            self._scale = np.sqrt(floor)
        else:
            scale = np.sqrt(np.einsum("ij,ij->j", rows, rows)) if standardise else np.ones(self.n_features)
            self._scale = np.where(scale > 0, scale, 1.0)
        scaled = rows / self._scale
        largest = float(np.square(scaled).sum())
        # Only singular values resolve a rank that rounding decides, and directions near a floor far below the largest.
        lost = _EPS * self.n_features * largest
        if (floor is None and tol == 0.0) or (floor is not None and lost > _SEEN):
            _, singular, right = np.linalg.svd(scaled, full_matrices=False)
            kept = singular > _EPS * max(rows.shape) * singular.max(initial=0.0)
            values, self._span = np.square(singular[kept]), right[kept]
            lost = float(np.square(_EPS * max(rows.shape) * singular.max(initial=0.0)))
        else:
            values, vectors = np.linalg.eigh(scaled @ scaled.T)
            kept = values > max(lost, tol * tol if floor is None else 0.0)
            values = values[kept]
            self._span = (vectors[:, kept].T @ scaled) / np.sqrt(values)[:, None]
        # A direction that was left out has its floor, and what the rows add to it is at most `lost`.
        self.complete = bool(kept.all()) or (floor is not None and lost <= _SEEN)
        self._whole = floor is not None
        self._root = np.sqrt(values) if floor is None else np.sqrt(values + 1.0)
        self.rank = len(values) if floor is None else self.n_features
        self.log_det = 2.0 * float(np.log(self._root).sum())
        if floor is not None or not self.singular:
            self.log_det += 2.0 * float(np.log(self._scale).sum())

    def half(self, rows: Float) -> Float:
        scaled = rows / self._scale
        if not self._whole:
            return (scaled @ self._span.T) / self._root
        inside = scaled @ self._span.T
        outside = scaled - inside @ self._span
        return outside + (inside / self._root) @ self._span

    def back(self, rows: Float) -> Float:
        if not self._whole:
            return ((rows / self._root) @ self._span) / self._scale
        inside = rows @ self._span.T
        outside = rows - inside @ self._span
        return (outside + (inside / self._root) @ self._span) / self._scale

    def half_bound(self, magnitudes: Float) -> Float:
        smallest = 1.0 if self._whole else float(self._root.min(initial=1.0))
        return np.linalg.norm(magnitudes / self._scale, axis=1) / smallest


def metric_of(covariance: Scatter, floor: Float | None = None, *, tol: float = 0.0, standardise: bool = True) -> Metric:
    """The metric of covariance + diag(floor)."""
    if covariance.thin and (floor is None or bool((floor > 0).all())):
        return ThinMetric(covariance.rows, floor, tol, standardise)
    matrix = covariance.matrix()
    if floor is not None:
        matrix = matrix + np.diag(floor)
    return DenseMetric(matrix, tol, standardise)


def metrics_of(
    covariances: Sequence[tuple[Scatter, Float | None]], *, tol: float = 0.0, standardise: bool = True
) -> list[Metric]:
    """`metric_of` of every covariance and its floor."""
    count, d = len(covariances), covariances[0][0].n_features
    if count == 1 or count * d * d > _STACKED or any(part.thin for part, _ in covariances):
        return [metric_of(part, floor, tol=tol, standardise=standardise) for part, floor in covariances]
    stack = np.stack([part.matrix() for part, _ in covariances])
    for matrix, (_, floor) in zip(stack, covariances, strict=True):
        if floor is not None:
            matrix += np.diag(floor)
    return [*DenseMetric.of_each(stack, tol, standardise)]
