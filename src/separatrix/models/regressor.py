"""Linear prediction of real targets: Xw + b."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from separatrix.data.block import Float
from separatrix.models.base import Estimator, is_single


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
