"""Canonical variates: the directions in which the class means differ most, in units of the within-class spread.

    max_v  vᵀBv / vᵀΣv,   B = Σ_k c_k (m_k − m)(m_k − m)ᵀ,   vᵀΣv = 1
    half(√c_k (m_k − m)) = U diag(s) Vᵀ   ⇒   v = back(V),   share of between-class variance s²/Σs²

At most min(K−1, d) directions. No d×d eigenproblem: the singular values are those of a K-row matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg as sla
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from separatrix.data.affine import Standardised
from separatrix.data.block import Float
from separatrix.models.counted_classes import Undetermined
from separatrix.models.discriminant.covariance import full_matrix
from separatrix.models.generative import MomentEstimator
from separatrix.statistics.metric import Metric
from separatrix.statistics.shrinkage import Covariance

# Columns up to which axes have scikit-learn's signs, for which a matrix of as many rows is decomposed.
_SIGNED = 512


def canonical_directions(offsets: Float, weights: Float, metric: Metric, tol: float) -> tuple[Float, Float]:
    """Directions (d, r), by falling share of the between-class variance, and the shares.

    From (K, d) class means less the overall mean, (K,) weights of the classes in the between-class scatter, and the metric of
    the within-class covariance; directions whose singular value is below `tol` times the largest are dropped.
    """
    white = metric.half(np.sqrt(weights)[:, None] * offsets)
    _, singular, right = np.linalg.svd(white, full_matrices=False)
    largest = float(singular.max(initial=0.0))
    kept = singular > max(tol, np.finfo(np.float64).eps * max(white.shape)) * largest
    squares = np.square(singular)
    shares = squares / squares.sum() if largest > 0 else squares
    directions = metric.back(right[kept]).T
    # A direction and its negative are the same variate: the later classes lie on the positive side.
    order = np.linspace(-1.0, 1.0, len(offsets))
    sides = order @ (offsets @ directions)
    return directions * np.where(sides < 0, -1.0, 1.0), shares


def svd_signs(directions: Float, offsets: Float, weights: Float, metric: Metric, scale: Float) -> Float:
    """The directions with the signs of scikit-learn's solver `svd`, so that figures of them are the same. O(r³).

    They are LAPACK's, for the weighted class means in the basis of the rows' principal axes, of columns divided by their
    `scale` (d,) and with each axis divided by its deviation; the signs of the axes cancel.
    """
    white = metric.half(np.sqrt(weights)[:, None] * offsets)
    # AᵀΣA = I for A = back(I)ᵀ, and AᵀD²A = QS⁻²Qᵀ: AQ are the axes, in falling order of their deviations S.
    factor = metric.back(np.eye(white.shape[1])) * scale
    _, axes = np.linalg.eigh(factor @ factor.T)
    _, _, right = np.linalg.svd(white @ axes, full_matrices=False)
    return _pointed(directions, metric.back(right[: directions.shape[1]] @ axes.T).T)


def eigen_signs(directions: Float, between: Float, within: Float) -> Float:
    """The directions with the signs of scikit-learn's solver `eigen`: LAPACK's for the pencil of the covariances. O(d³)."""
    try:
        values, vectors = sla.eigh(between, within)
    except sla.LinAlgError:  # singular: scikit-learn refuses it
        return directions
    return _pointed(directions, vectors[:, np.argsort(values)[::-1][: directions.shape[1]]])


def _pointed(directions: Float, usual: Float) -> Float:
    """Every direction to the side of its like."""
    return directions * np.where(np.einsum("ij,ij->j", usual, directions) < 0, -1.0, 1.0)


@dataclass
class CanonicalAxes:
    """The directions of a discriminant analysis and their shares, found when they are first asked for: its rule needs neither.

    `away` (K, d) are the class means less the mean of the rows, weighted by the roots of the classes' shares, where the signs
    are those of scikit-learn's solver `eigen`.
    """

    offsets: Float
    weights: Float
    metric: Metric
    covariance: Covariance
    tol: float
    away: Float | None = None
    memo: dict[str, tuple[Float, Float]] = field(default_factory=dict, compare=False)

    def found(self) -> tuple[Float, Float]:
        """As `canonical_directions`, with scikit-learn's signs."""
        if "axes" not in self.memo:
            directions, shares = canonical_directions(self.offsets, self.weights, self.metric, self.tol)
            self.memo["axes"] = self._signed(directions), shares
        return self.memo["axes"]

    def _signed(self, directions: Float) -> Float:
        if len(directions) > _SIGNED:
            return directions
        if self.away is not None:
            return eigen_signs(directions, self.away.T @ self.away, full_matrix(self.covariance))
        deviations = np.sqrt(self.covariance[0].diagonal())
        scale = np.where(deviations > 0, deviations, 1.0)
        return svd_signs(directions, self.offsets, self.weights, self.metric, scale)


class CanonicalTransformer(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn ships no types
    TransformerMixin,  # type: ignore[misc]  # scikit-learn ships no types
    MomentEstimator,
):
    """A model whose `transform` gives canonical coordinates."""

    n_components: int | None
    scalings_: Float
    explained_variance_ratio_: Float
    xbar_: Float

    def _number_of_components(self) -> int:
        """How many coordinates `transform` gives: all, or as many as asked for."""
        counted = int((self._moments.counts > 0).sum())
        limit, most = (min(n_classes - 1, self.n_features_in_) for n_classes in (counted, len(self.classes_)))
        if self.n_components is None or self.n_components <= limit:
            return limit if self.n_components is None else self.n_components
        kind = Undetermined if self.n_components <= most else ValueError  # classes may be still to come
        raise kind(f"n_components={self.n_components} cannot be larger than min(n_features, n_classes - 1) = {limit}.")

    def _projection(self) -> tuple[Float, Float | None]:
        """The directions (d, r), and the point that scores are measured from, if not the origin."""
        self._check_ready()
        return self.scalings_, self.xbar_

    def transform(self, X: Any) -> Float:
        """Canonical coordinates of every row: the projection in which the class means differ most.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        directions, centre = self._projection()
        if centre is None:
            return self._as_given(X, self._map_rows(X, lambda block: block.matvec(directions)))
        return self._as_given(X, self._map_rows(X, lambda block: Standardised.block(block, centre).matvec(directions)))

    @property
    def _n_features_out(self) -> int:
        return int(self._projection()[0].shape[1])
