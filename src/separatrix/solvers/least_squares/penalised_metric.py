"""The metric of S + αI by one Cholesky factorisation, where the penalty alone bounds the rest.

    S + αI = LLᵀ,   S + αI ⪰ α        ‖L⁻¹e‖ ≤ ‖e‖/√α,   and in columns of unit size λ_min ≥ α / max_j (S_jj + α)

Where columns vary little more than the penalty these bounds are enough for a proof, and nothing needs the inverse of L.

**Complexity** d³/3.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.statistics.gram import NormalEquations
from separatrix.statistics.metric import Metric

# Up to this condition number coefficients have the digits that a closed form promises, whatever the targets.
_MODERATE = 4e4


class PenalisedMetric(Metric):
    """Lengths in units of S + αI, α > 0, from its Cholesky factor L in the lower half of an array."""

    def __init__(self, lower: Float, alpha: float, condition: float) -> None:
        self._lower, self._root = lower, float(np.sqrt(alpha))
        self.n_features = self.rank = len(lower)
        self.condition = condition

    @property
    def log_det(self) -> float:  # type: ignore[override]  # nobody who solves for coefficients asks for it
        return 2.0 * float(np.log(self._lower.diagonal()).sum())

    def half(self, rows: Float) -> Float:
        return np.asarray(lapack.dtrtrs(self._lower, rows.T, lower=1)[0]).T

    def back(self, rows: Float) -> Float:
        return np.asarray(lapack.dtrtrs(self._lower, rows.T, lower=1, trans=1)[0]).T

    def half_bound(self, magnitudes: Float) -> Float:
        return np.linalg.norm(magnitudes, axis=1) / self._root


def penalised_metric(equations: NormalEquations, alpha: float) -> PenalisedMetric | None:
    """The metric of S + αI for a matrix S, or None where the penalty is too small to bound anything."""
    if not alpha > 0:
        return None
    condition = float(equations.column_squares.max(initial=0.0)) / alpha + 1.0
    if not condition <= _MODERATE:
        return None
    matrix = equations.scatter.matrix().copy()
    matrix.ravel()[:: len(matrix) + 1] += alpha
    lower, failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
    return None if failed else PenalisedMetric(lower, alpha, condition)
