"""Ridge regression with few rows and many columns, from their Gram matrix, in single precision where that is quicker.

    (X̃X̃ᵀ + αI) u = ỹ,   w = X̃ᵀu        u ← u + M⁻¹(ỹ − X̃X̃ᵀu − αu),   M = X̃X̃ᵀ + αI with products in float32

Centred rows have X̃ᵀv = 0 for the roots v of their weights, and ỹᵀv = 0, so that vᵀu = 0: M is given the mean of its diagonal in
that direction, where nothing but a small α would keep it from being all rounding, and a step has its part in v from α itself.

Every step has its residual from the rows, in double precision, and with it the proof of `dual_gradient`: the rounding of M only
costs steps, two or three where the condition number of M is below 10⁶. Where single precision does not do it, and for very few
rows, the Gram matrix is multiplied in double precision; where that does not either (columns far from the origin, tiny
penalties) the caller is told.

Reference: Wilkinson (1963), Rounding errors in algebraic processes, ch. 3; Saunders, Gammerman, Vovk (1998), ICML.

**Complexity** O(n²d + n³). **Passes over the data** one for a Gram matrix, one or two per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from separatrix.data.block import Float
from separatrix.result import Certificate
from separatrix.solvers.least_squares.dual_gradient import duality_gap, largest_slope
from separatrix.solvers.least_squares.normal_equations import LeastSquaresSolution
from separatrix.solvers.least_squares.weighted_rows import GramRows

# Share of the squares of the targets that is left in the residual of an exact answer, and of the objective in its gap.
_LEFT, _GAP = 1e-22, 1e-10
# The first where less precise coefficients are published.
_LEFT_IN_SINGLE = 1e-17
_STEPS, _GAIN = 6, 0.1


def solve_dual_ridge(
    rows: GramRows, alpha: Float, dtype: np.dtype[Any], extra: Callable[[Float], float]
) -> LeastSquaresSolution | None:
    """The ridge answer for one penalty > 0 per target, rounded to `dtype`; None where rounding does not allow it.

    `extra` as for `minimise_ridge`.
    """
    size = float(np.square(rows.targets).sum())
    enough = size * (_LEFT if dtype == np.float64 else _LEFT_IN_SINGLE)
    found = _refined(rows, alpha, rows.first_gram, enough)
    if found is None and rows.single:
        found = _refined(rows, alpha, rows.gram(np.dtype(np.float64)), enough)
    if found is None:
        return None
    u, w, before, value, residual = found
    published, gap = w if dtype == np.float64 else w.astype(dtype).astype(np.float64), before
    if published is not w:
        gap, value, residual = duality_gap(rows, alpha, u, w, published)
    gap = float(np.square(np.sqrt(gap) + extra(published.T)))
    solution = LeastSquaresSolution(
        published.T,
        rows.target_mean - published.T @ rows.centre,
        len(w),
        Certificate(gap, value, "duality gap", largest_slope(rows, alpha, w, published, residual)),
        size,
        before,
    )
    # The closed form of the columns has more digits where rows far from the origin are not centred.
    return solution if solution.exact(before) else None


def _refined(
    rows: GramRows, alpha: Float, gram: Float, enough: float
) -> tuple[Float, Float, float, float, Float] | None:
    """u, w, gap, objective and residual after steps with the factor of a Gram matrix."""
    factors, null = {}, rows.null_direction()
    filled = 0.0 if null is None else float(gram.trace()) / len(gram)
    if null is not None:
        gram = gram + np.outer(filled * null, null)
    for penalty in sorted(set(alpha.tolist())):
        matrix = gram.copy()
        matrix.ravel()[:: len(gram) + 1] += penalty
        factors[penalty], failed = lapack.dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if failed:  # not positive definite, or not finite
            return None
    u, residual, left = np.zeros_like(rows.targets), rows.targets, np.inf
    for _ in range(_STEPS):
        for penalty, factor in factors.items():
            of = alpha == penalty
            u[:, of] += lapack.dpotrs(factor, residual[:, of], lower=1)[0]
            if null is not None:
                u[:, of] += np.outer(null, (1.0 / penalty - 1.0 / (filled + penalty)) * (null @ residual[:, of]))
        w, product = rows.there_and_back(u)
        gap, value, residual = duality_gap(rows, alpha, u, w, w, product)
        before, left = left, float(np.square(residual).sum())
        if left <= enough or not left <= _GAIN**2 * before:
            break
    return (u, w, gap, value, residual) if left <= enough and gap <= _GAP * value else None
