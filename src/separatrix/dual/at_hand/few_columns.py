"""Newton's method for machines of the squared hinge on dense rows with few columns, in compiled loops
(kernels/support_vectors/squared_hinge_factor.py).

**Complexity** O(np) per step of a machine, and O(mp²) for m rows that change sides; memory O(np). Machines side by side on the
threads. **Passes over the data** two per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from separatrix.data.source import in_parallel
from separatrix.dual.centred_rows import CentredRows
from separatrix.dual.linear_search import Point
from separatrix.lazy import compiled_pays_by_now

if TYPE_CHECKING:
    from separatrix.dual.linear_machine import LinearMachine

# Columns, and products of two in all rows, up to which loops are quicker than calls, and the steps that they may take.
_COLUMNS, _NARROW, _STEPS = 64, 300_000_000, 50
# Products up to which a thread is not worth its while, and rows are taken in their own units.
ALONE = 1_000_000
# Seconds that loops save: of a fit, at least, and for each product.
_SAVED, _SAVED_A_PRODUCT = 1.2e-3, 5e-10


def products_of_columns(rows: CentredRows) -> int:
    """Of two columns, in all rows."""
    n, d = rows.X.shape
    return int(n * (d + 1) ** 2)


def factored_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event
) -> list[tuple[Point, int]]:
    """Where Newton's method ends, and its steps; none where loops are not worth their while, or one machine did not end by
    itself.
    """
    first, K = machines[0], len(machines)
    (n, d), products = first.rows.X.shape, products_of_columns(first.rows)
    if sp.issparse(first.rows.X) or d >= _COLUMNS or products > _NARROW:
        return []
    if not compiled_pays_by_now(max(_SAVED, _SAVED_A_PRODUCT * K * products)):
        return []
    # numba takes a while to import
    from separatrix.kernels.support_vectors.by_columns import columns_of
    from separatrix.kernels.support_vectors.squared_hinge_factor import squared_hinge_factor

    rho, T = np.ones(d + (first.scaling != 0.0)), np.ones((d + (first.scaling != 0.0), n))
    rho[d:] = first.pull
    columns_of(first.rows.X, first.rows.centre, T)
    theta, alpha, costs = np.zeros((K, len(rho))), np.zeros((K, n)), 2.0 * first.price
    steps, ended, most = np.zeros(K, dtype=np.int64), np.zeros(K, dtype=bool), min(max_iter, _STEPS)

    def solve(k: int) -> None:
        steps[k], ended[k] = squared_hinge_factor(T, rho, machines[k].signs, costs, tol, most, theta[k], alpha[k])

    try:
        if K * products <= ALONE:
            for k in range(K):
                solve(k)
        else:
            in_parallel(solve, range(K), stop)
    except KeyboardInterrupt:
        stop.set()
    if not (ended.all() and np.isfinite(theta).all()):
        return []
    betas = theta[:, d] if len(rho) > d else np.zeros(K)
    return [((theta[k, :d], float(betas[k]), alpha[k]), int(steps[k])) for k in range(K)]
