"""Linear prediction of real targets: Xw + b."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from separatrix.data import Source, as_source
from separatrix.data.block import Float
from separatrix.models.base import Estimator, OptionalArray, is_single
from separatrix.models.source_scores import share_of_variance


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear prediction of real targets."""

    coef_: Float
    intercept_: Float | float

    def predict(self, X: Any) -> Float:
        """Xw + b for every row.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        self._check_ready()
        weights, constant = np.asarray(self.coef_, dtype=np.float64).T, self.intercept_
        result = self._map_rows(X, lambda block: block.matvec(weights) + constant)
        single = self.coef_.dtype == np.float32 and is_single(X)
        return result.astype(np.float32) if single else result  # as scikit-learn does

    def score(self, X: Any, y: OptionalArray = None, sample_weight: OptionalArray = None) -> float:
        """R²: the share of the variance of y that is predicted; a source brings its own targets and weights.

        Returns
        -------
        float
        """
        self._check_ready()
        self._check_target(X, y)
        if not isinstance(X, Source):
            return float(super().score(X, y, sample_weight))
        return share_of_variance(self.predict, as_source(self._columns_of(X), y, sample_weight).valued())
