"""Newton's method by conjugate gradients for machines of the squared hinge, on sparse rows as they are stored.

**Complexity** O(nnz) per product. **Passes over the data** one per product.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from separatrix.dual.centred_rows import stored_parts
from separatrix.dual.linear_search import Point

if TYPE_CHECKING:
    from separatrix.dual.linear_machine import LinearMachine

# Products with a Hessian that a machine is worth before other methods have their turn.
_PRODUCTS = 400
# The entries that may be read before Ctrl-C is looked at.
_UNINTERRUPTED = 1e8


def conjugate_points(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event, fine: bool = False
) -> list[tuple[Point, int]]:
    """Where Newton's method ends by conjugate gradients, for machines of the squared hinge on sparse rows."""
    from separatrix.kernels.support_vectors.squared_hinge import squared_hinge_newton  # numba takes a while to import

    first, found = machines[0], []
    d, (values, indices, indptr, _) = first.rows.X.shape[1], stored_parts(first.rows.X, first.rows.centre)
    rho, ones = np.ones(d + 1), 0.0 if first.scaling == 0.0 else 1.0
    rho[d] = first.pull if ones else 1.0
    costs, most = 2.0 * first.price, min(max_iter, _PRODUCTS)
    at_once = max(1, int(_UNINTERRUPTED / max(1, len(indices))))
    try:
        for machine in machines:
            theta, alpha, steps, left = np.zeros(d + 1), np.zeros(len(costs)), 0, most
            while left > 0 and not stop.is_set():
                ends = (tol, min(left, at_once), theta, alpha)
                taken, products = squared_hinge_newton(
                    values[0], indices, indptr, ones, rho, machine.signs, costs, *ends
                )
                steps, left = steps + int(taken), left - products if products == ends[1] else 0
            found.append(((theta[:d], float(theta[d]), alpha), steps))
    except KeyboardInterrupt:
        stop.set()
    return found if np.all([np.isfinite(point[0]).all() for point, _ in found]) else []
