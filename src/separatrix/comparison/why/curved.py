"""A logistic regression that is linear in more than the columns: splines of each, and products of pairs.

    φ(x) = (x_j,  max(x_j − t_jm, 0),  x_i x_j)       t_jm: quartiles of the training rows; products for few columns only

Compared only where a non-linear model shows that there is something to gain (nonlinear.py). Reference: Friedman, Annals of
Statistics 19, 1991 (hinges and their products).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from separatrix.comparison.families import FAMILIES, ModelFamily
from separatrix.comparison.folds import UNRELATED, Related
from separatrix.data.block import Codes, Float
from separatrix.models.feature_map import FeatureMap
from separatrix.models.logistic.logistic_regression import LogisticRegression

MOST_PAIRED = 20


class CurvedFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Columns, their hinges at the quartiles, and the products of pairs of columns.

    Parameters
    ----------
    most_paired : int, default=20
        Products are left out where there are more columns than these.

    Attributes
    ----------
    hinge_columns_, hinge_knots_ : ndarray of shape (n_hinges,)
        The column and the place of every hinge; columns of few values have none.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.comparison.why.curved import CurvedFeatures
    >>> CurvedFeatures().fit_transform(np.arange(8.0).reshape(4, 2)).shape
    (4, 3)
    """

    hinge_columns_: NDArray[np.intp]
    hinge_knots_: Float
    n_features_in_: int

    def __init__(self, most_paired: int = MOST_PAIRED) -> None:
        self.most_paired = most_paired

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn the quartiles; y is ignored."""
        rows = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = rows.shape[1]
        columns, knots = [], []
        for j in range(rows.shape[1]):
            values = np.unique(rows[:, j])
            if len(values) > 4:
                found = np.unique(np.quantile(rows[:, j], [0.25, 0.5, 0.75]))
                inner = found[(found > values[0]) & (found < values[-1])]
                columns += [j] * len(inner)
                knots += inner.tolist()
        self.hinge_columns_, self.hinge_knots_ = np.array(columns, dtype=np.intp), np.array(knots)
        return self

    def transform(self, X: ArrayLike) -> Float:
        """The columns, their hinges and products."""
        rows = np.asarray(X, dtype=np.float64)
        parts = [rows, np.maximum(rows[:, self.hinge_columns_] - self.hinge_knots_, 0.0)]
        if self.n_features_in_ <= self.most_paired:
            first, second = np.triu_indices(self.n_features_in_, 1)
            parts.append(rows[:, first] * rows[:, second])
        return np.concatenate(parts, axis=1)


def _build(C: float = 1.0) -> FeatureMap:
    return FeatureMap(CurvedFeatures(), LogisticRegression(C=C, tol=1e-8))


def _tune(X: Any, y: Codes, seed: int, weights: Float | None = None, related: Related = UNRELATED) -> dict[str, Any]:
    return FAMILIES["logistic"].tune(CurvedFeatures().fit_transform(X), y, seed, weights, related)


CURVED = ModelFamily("logistic-curved", "logistic regression, curved", 10, True, _build, _tune)
"""Splines and products: no member of `FAMILIES`, since it is compared on demand."""
