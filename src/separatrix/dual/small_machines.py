"""Machines whose kernel values are all at hand: each in one compiled call, with its proof, side by side on the threads.

A machine that is not solved within its steps is left to the working sets (working_set.py), which begin where it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.duality_gap import KernelDual, SoftMargin, constant_dual, settled_status
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.result import Status

# Rows of a machine that is solved whole, and of those that one call solves: an interrupt waits for the end of a call.
WHOLE, _CALL = 6000, 2000
# Products of rows below which a second thread is not worth waking.
_ALONE = 100_000


def solve_together(
    matrix: KernelMatrix,
    sides: Sequence[SoftMargin],
    rows: Sequence[Index],
    bound: Float,
    *,
    tol: float,
    max_steps: int | None,
) -> list[KernelDual]:
    """The machine of each side on its rows of the matrix, all of whose values are at hand: as far as it came, and constant
    where an interrupt left it without a step. `bound` is C of all rows of the matrix.
    """
    from separatrix.kernels.machines import solve_machines  # numba takes a while to import

    values, (terms, size) = matrix.values, matrix.sizes
    assert values is not None
    starts = np.cumsum([0, *(len(part) for part in rows)])
    every, signs = np.concatenate(rows), np.concatenate([side.signs for side in sides])
    reach = np.array([t for _, t in terms]).reshape(len(terms), len(size))
    rule = np.array([tol, 1e18 if max_steps is None else max_steps, bool(sides[0].positive)])
    given = (values, every, starts, signs, bound, np.array([rho for rho, _ in terms]), reach, size, rule)
    beta, scores, errors, found = (
        np.zeros(len(every)),
        np.zeros(len(every)),
        np.zeros(len(every)),
        np.zeros((len(rows), 8)),
    )
    done = np.zeros(len(rows), dtype=np.bool_)

    def solve(call: tuple[int, int]) -> None:
        solve_machines(*given, *call, beta, scores, errors, found)
        done[call[0] : call[1]] = True

    try:
        if float(np.square(np.diff(starts)).sum()) < _ALONE:
            solve((0, len(rows)))
        else:
            in_parallel(solve, _calls(starts))
    except KeyboardInterrupt:
        pass
    allowed = tol * np.add.reduceat(bound[every], starts[:-1])
    machines: list[KernelDual] = []
    for m, (first, last) in enumerate(pairwise(starts.tolist())):
        if not done[m]:
            machines.append(constant_dual(sides[m].signs, sides[m].bound, sides[m].positive, Status.INTERRUPTED))
            continue
        steps, violation, intercept, gap, primal, excess, complementary, _ = found[m].tolist()
        proof = sides[m].stated(max(0.0, violation), gap, primal, excess, complementary)
        here, status = slice(first, last), Status.MAX_ITER
        if violation <= tol:
            status = Status.CONVERGED if sides[m].positive else Status.STATIONARY
            status = settled_status(status, proof.gap, float(allowed[m]))
        trace = [{"iteration": 1, "violation": violation, "rows": last - first, "steps": int(steps)}]
        machines.append(
            KernelDual(beta[here], scores[here], intercept, status, proof, 1, int(steps), trace, errors[here])
        )
    return machines


def _calls(starts: Index) -> list[tuple[int, int]]:
    """Machines from … to for each call."""
    calls, first = [], 0
    for m in range(1, len(starts)):
        if m + 1 == len(starts) or starts[m + 1] - starts[first] > _CALL:
            calls.append((first, m))
            first = m
    return calls
