"""Machines whose kernel values are all at hand: each in one compiled call, with its proof, side by side on the threads.

A machine that is not solved within its steps is left to the working sets (working_set.py), which begin where it ended.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.many_machines import KernelDuals

# Rows of a machine that is solved whole, and of those that one call solves: an interrupt waits for the end of a call.
WHOLE, _CALL = 6000, 2000
# Products of rows below which a second thread is not worth waking.
_ALONE = 100_000


def solve_together(
    matrix: KernelMatrix, bound: Float, duals: KernelDuals, one: int | None, *, tol: float, max_steps: int | None
) -> NDArray[np.bool_]:
    """Fill in the machines on the rows of the matrix, all of whose values are at hand, as far as they come; which were not
    left without a step by an interrupt. `bound` is C of all rows of the matrix; with `one` it is the matrix of the rows of
    that machine.
    """
    from separatrix.kernels.support_vectors.machines import solve_machines  # numba takes a while to import

    values, (terms, size) = matrix.values, matrix.sizes
    assert values is not None
    splits = duals.splits
    part = slice(None) if one is None else splits.part(one)
    numbers = duals.numbers if one is None else duals.numbers[one : one + 1]
    rows = splits.rows if one is None else np.arange(part.stop - part.start)
    starts = splits.starts if one is None else np.array([0, len(rows)])
    reach = np.array([t for _, t in terms]).reshape(len(terms), len(size))
    rule = np.array([tol, 1e18 if max_steps is None else max_steps, bool(duals.sure)])
    given = (values, rows, starts, splits.signs[part], bound, np.array([rho for rho, _ in terms]), reach, size, rule)
    filled = (duals.beta[part], duals.scores[part], duals.errors[part], numbers)
    done = np.zeros(len(numbers), dtype=np.bool_)

    def solve(call: tuple[int, int]) -> None:
        solve_machines(*given, *call, *filled)
        done[call[0] : call[1]] = True

    try:
        if float(np.square(np.diff(starts)).sum()) < _ALONE:
            solve((0, len(numbers)))
        else:
            in_parallel(solve, _calls(starts))
    except KeyboardInterrupt:
        pass
    return done


def _calls(starts: Index) -> list[tuple[int, int]]:
    """Machines from … to for each call."""
    calls, first, ends = [], 0, starts.tolist()
    for m in range(1, len(ends)):
        if m + 1 == len(ends) or ends[m + 1] - ends[first] > _CALL:
            calls.append((first, m))
            first = m
    return calls
