"""Coefficients kept as a sparse matrix, as scikit-learn's linear classifiers offer it."""

from __future__ import annotations

from typing import Any, Self

import scipy.sparse as sp

from separatrix.data.block import Float


def dense(coef: Any) -> Float:
    """Coefficients as an array, also after `sparsify`."""
    return coef.toarray() if sp.issparse(coef) else coef


class SparseCoefficients:
    """Coefficients that may be kept sparse, as scikit-learn's linear classifiers offer it."""

    coef_: Any

    def sparsify(self) -> Self:
        """Keep ``coef_`` as a sparse matrix, which is smaller where more than half of it is zero.

        Predictions, exports and boundaries stay the same. Call `densify` before fitting further.

        Returns
        -------
        self
        """
        self._check_ready()  # type: ignore[attr-defined]  # mixed into a Classifier
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Keep ``coef_`` as an array again.

        Returns
        -------
        self
        """
        self._check_ready()  # type: ignore[attr-defined]  # mixed into a Classifier
        self.coef_ = dense(self.coef_)
        return self
