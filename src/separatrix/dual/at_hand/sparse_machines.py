"""Linear machines on few sparse rows: search and proof in compiled calls (kernels/support_vectors/sparse_machines.py).

A sweep of such rows takes less time than a call, and so do most proofs. What is hard for sweeps is left to other methods.

**Complexity** O(nnz) per sweep. **Passes over the data** one per sweep, two per proof. Machines side by side on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Event
from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.at_hand.conjugate import conjugate_points
from separatrix.dual.centred_rows import stored_parts
from separatrix.dual.linear_machine import LinearMachine
from separatrix.dual.linear_search import LinearDual
from separatrix.result import Certificate, Status

# Entries that are worth a second thread, and those that may be read before Ctrl-C is looked at.
_ALONE, _UNINTERRUPTED = 2e6, 5e7
# The gap at which Newton's steps end, of what is asked for.
_INNER = 0.1


def swept(
    machines: Sequence[LinearMachine], tol: float, max_iter: int, seeds: Sequence[int], stop: Event
) -> list[LinearDual | None]:
    """The fits of machines on the same sparse rows that so many sweeps bring to a proven gap; ``None`` for the others."""
    # numba takes a while to import
    from separatrix.kernels.support_vectors.sparse_machines import solve_sparse_machines

    first, rows = machines[0], machines[0].rows
    X, K, (n, d) = rows.X, len(machines), rows.X.shape
    arrays, lengths, rule = loop_arguments(first)
    signs = np.array([machine.signs for machine in machines])
    most = min(max_iter, max(1, int(_UNINTERRUPTED / max(1, X.nnz))))
    w, alpha, found = np.zeros((K, d)), np.empty((K, n)), np.zeros((K, 8))
    numbers, limits, (price, power, intercept, terms) = np.array(seeds, dtype=np.uint64), np.array([tol, most]), rule

    def solve(part: slice) -> None:
        ends = (w[part], alpha[part], found[part])
        rules = (price, power, (*first.reach, *intercept), terms, numbers[part], limits)
        solve_sparse_machines(*arrays, rows.squares, lengths, signs[part], *rules, *ends)

    try:
        if K == 1 or X.nnz * most * K <= _ALONE:
            solve(slice(None))
        else:
            in_parallel(solve, [slice(k, k + 1) for k in range(K)], stop)
    except KeyboardInterrupt:
        stop.set()
    counts = [(int(each[6]), 1 + int(each[6] + 2.0 * each[7])) for each in found]
    return [_ended(w[k], alpha[k], found[k], tol, *counts[k]) if found[k, 7] else None for k in range(K)]


def stepped(machines: Sequence[LinearMachine], tol: float, max_iter: int, stop: Event) -> list[LinearDual | None]:
    """The same by Newton's method with conjugate gradients, for the squared hinge."""
    from separatrix.kernels.support_vectors.sparse_machines import prove  # numba takes a while to import

    arrays, lengths, rule = loop_arguments(machines[0])
    scores, found = np.empty(len(lengths)), []
    for machine, ((w, beta, alpha), steps) in zip(
        machines, conjugate_points(machines, _INNER * tol, max_iter, stop), strict=False
    ):
        figures, w = np.zeros(6), w.copy()
        prove(*arrays, lengths, machine.signs, *rule, w, beta, alpha, scores, figures)
        found.append(_ended(w, alpha, figures, tol, steps, 3 + 3 * steps))
    return found or [None] * len(machines)


def loop_arguments(
    machine: LinearMachine,
) -> tuple[tuple[Any, Any, Any], Float, tuple[Float, int, tuple[float, float], Float]]:
    """What compiled loops take: the three arrays of X and the lengths of its rows; C, p, the intercept and its penalty's
    curvature, and how many terms a score and a product have at most.
    """
    rows = machine.rows
    data, indices, indptr, _ = stored_parts(rows.X, rows.centre)
    intercept = (math.inf if machine.scaling is None else float(machine.scaling), machine.pull)
    terms = np.array([float(np.diff(indptr).max(initial=0)), float(len(machine.price))])
    return (data, indices, indptr), rows.lengths, (machine.price, machine.power, intercept, terms)


def _ended(w: Float, alpha: Float, figures: Float, tol: float, steps: int, passes: int) -> LinearDual | None:
    """The fit of one machine, if it is proven."""
    b, value, upper, lower, imbalance, complementary = figures[:6].tolist()
    gap = max(0.0, upper - lower)
    if not gap <= tol * value:
        return None
    certificate = Certificate(
        gap,
        value,
        "duality gap",
        stationarity=math.sqrt(2.0 * gap),  # ½‖w − w*‖² is at most the gap
        dual_feasibility=imbalance,
        complementary_slackness=complementary,
    )
    trace = [{"iteration": steps, "objective": value, "gap": gap}]
    return LinearDual(w, b, Status.CONVERGED, certificate, steps, passes, trace, alpha)
