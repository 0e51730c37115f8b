"""The metric of S + αI by one Cholesky factorisation that is also the proof of its least eigenvalue.

    S + αI = LLᵀ,   S + αI ⪰ α        ‖L⁻¹e‖ ≤ ‖e‖/√α,   and in columns of unit size λ_min ≥ α / max_j (S_jj + α)
    R − σI = LLᵀ,   R ⪰ σ             R = D⁻¹(S + αI)D⁻¹ in columns of unit size, D² = S_jj + α

Where columns vary little more than the penalty the first line is enough for a proof. Otherwise the second one is factored:
that it can be is the proof, and lengths in its metric are no shorter than those of R. Solves with it are off by
σ/(λ_min − σ), which a few steps of refinement mend. Nothing needs the inverse of L.

**Complexity** d³/3.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import Metric, row_lengths

# Up to this condition number coefficients have the digits that a closed form promises, whatever the targets.
_MODERATE = 4e4
# Columns from which on an inverse of L costs more than the steps that are needed without it.
_MANY_COLUMNS = 48


class PenalisedMetric(Metric):
    """Lengths in units of S + αI from the Cholesky factor L, in the lower half of an array, of that matrix or R − σI.

    `least` is a bound on the eigenvalues from below, in columns divided by `scale`.
    """

    def __init__(self, lower: Float, least: float, condition: float, scale: Float | float = 1.0) -> None:
        self._lower, self._root, self._scale = lower, float(np.sqrt(least)), scale
        self.n_features = self.rank = len(lower)
        self.condition = condition

    @property
    def log_det(self) -> float:  # type: ignore[override]  # nobody who solves for coefficients asks for it
        return 2.0 * float(np.log(self._lower.diagonal() * self._scale).sum())

    def half(self, rows: Float) -> Float:
        return np.asarray(lapack.dtrtrs(self._lower, (rows / self._scale).T, lower=1)[0]).T

    def back(self, rows: Float) -> Float:
        return np.asarray(lapack.dtrtrs(self._lower, rows.T, lower=1, trans=1)[0]).T / self._scale

    def half_bound(self, magnitudes: Float) -> Float:
        return row_lengths(magnitudes / self._scale) / self._root


def penalised_metric(equations: NormalEquations, alpha: float) -> PenalisedMetric | None:
    """The metric of S + αI for a matrix S, or of a little less; None where neither the penalty nor the columns bound it."""
    largest = float(equations.column_squares.max(initial=0.0))
    if alpha > 0 and largest / alpha + 1.0 <= _MODERATE:
        matrix = equations.scatter.matrix().copy()
        matrix.ravel()[:: len(matrix) + 1] += alpha
        lower, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        return None if failed else PenalisedMetric(lower, alpha, largest / alpha + 1.0)
    scale = np.sqrt(equations.column_squares + alpha)
    if len(scale) < _MANY_COLUMNS or not (scale > 0).all():
        return None
    matrix = equations.scatter.matrix() / scale
    matrix /= scale[:, None]
    matrix.ravel()[:: len(matrix) + 1] = 1.0 - 1.0 / _MODERATE
    lower, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else PenalisedMetric(lower, 1.0 / _MODERATE, _MODERATE, scale)
