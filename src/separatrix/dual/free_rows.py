"""Newton's step of the machine's dual on the rows that are at no bound.

    K d + μ1 = v,   Σd = 0

With the last free row eliminated, d_r = −Σd, it is (K_ij − K_ir − K_rj + K_rr) d = v_i − v_r, whose solution keeps the sum to
rounding however singular K is. The objective rises along each step. Pairs of rows need very many steps where K is nearly
singular on the free rows; this needs one factorisation for each variable that reaches its bound.

**Complexity** O(q³) a step of q free rows.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla

from separatrix.data.block import Float
from separatrix.settings import one_blas_thread

_NEWTON_STEPS = 40


def newton_on_free_rows(K: Float, v: Float, beta: Float, low: Float, high: Float, limit: int) -> int:
    """Newton's steps on the free variables alone, at most `limit`, each as far as the first bound; how many were taken.

    `v` and `beta` are changed.
    """
    for taken in range(most := min(_NEWTON_STEPS, limit)):
        free = np.flatnonzero((beta > low) & (beta < high))
        if len(free) < 2:
            return taken
        rest, last = free[:-1], free[-1]
        block = K[np.ix_(rest, rest)] - K[rest, last][:, None] - K[last, rest][None, :] + K[last, last]
        shift = 1e-12 * float(np.trace(block)) / len(rest) + np.finfo(np.float64).tiny
        block[np.diag_indices(len(rest))] += shift
        try:
            with one_blas_thread():
                factor = sla.cho_factor(block, lower=True, overwrite_a=True, check_finite=False)
                part = sla.cho_solve(factor, v[rest] - v[last], check_finite=False)
        except sla.LinAlgError:
            return taken
        step = np.append(part, -part.sum())
        if not np.isfinite(step).all() or not float(step @ v[free]) > 0:
            return taken
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(step > 0, high[free], low[free])
            room = np.where(step != 0, (ends - beta[free]) / step, np.inf)
        first = int(np.argmin(room))
        length = min(1.0, float(room[first]))
        moved = np.clip(beta[free] + length * step, low[free], high[free])
        if length < 1.0:
            moved[first] = ends[first]
        v -= K[:, free] @ (moved - beta[free])
        beta[free] = moved
        if length == 1.0:
            return taken + 1
    return max(0, most)
