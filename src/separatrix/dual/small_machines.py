"""Machines whose kernel values are all at hand: each in one compiled call, with its proof, side by side on the threads.

A machine that is not solved within its steps is left to the working sets (working_set.py), which begin where it ended. While
the machines of a process are few and small, they are solved in NumPy (plain/): importing numba takes longer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.kernel_matrix import Index, KernelMatrix
from separatrix.dual.many_machines import KernelDuals
from separatrix.dual.plain.plain_machines import expected_seconds, solve_in_numpy
from separatrix.lazy import compiled_pays_by_now

# Rows of a machine that is solved whole, and of those that one call solves: an interrupt waits for the end of a call.
WHOLE, _CALL = 6000, 2000
# Rows for each rank from which one is low, and what the machine of a matrix of low rank costs (low_rank.py): multiplications
# for each row and square of its rank, and what its calls are worth.
_LOW, _LOW_RANK, _LOW_RANK_CALLS = 4, 12.0, 4e6
# Products of rows below which a second thread is not worth waking.
_ALONE = 100_000


def solve_together(
    matrix: KernelMatrix, bound: Float, duals: KernelDuals, one: int | None, *, tol: float, max_steps: int | None
) -> NDArray[np.bool_]:
    """Fill in the machines on the rows of the matrix, all of whose values are at hand, as far as they come; which were not
    left without a step by an interrupt. `bound` is C of all rows of the matrix; with `one` it is the matrix of the rows of
    that machine.
    """
    values, (terms, size) = matrix.values, matrix.sizes
    assert values is not None
    splits = duals.splits
    part = slice(None) if one is None else splits.part(one)
    numbers = duals.numbers if one is None else duals.numbers[one : one + 1]
    rows = splits.rows if one is None else np.arange(part.stop - part.start)
    starts = splits.starts if one is None else np.array([0, len(rows)])
    reach = np.array([t for _, t in terms]).reshape(len(terms), len(size))
    limit = min(1e18 if max_steps is None else max_steps, _enough(matrix, int(np.diff(starts).max()), duals.sure))
    rule = np.array([tol, limit, bool(duals.sure)])
    given = (values, rows, starts, splits.signs[part], bound, np.array([rho for rho, _ in terms]), reach, size, rule)
    filled = (duals.beta[part], duals.scores[part], duals.errors[part], numbers)
    done = np.zeros(len(numbers), dtype=np.bool_)
    if not compiled_pays_by_now(expected_seconds(np.diff(starts))):
        try:
            solve_in_numpy(given, filled, done)
        except KeyboardInterrupt:
            return done
        if done.all():
            return done
    from separatrix.kernels.support_vectors.machines import solve_machines  # numba takes a while to import

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


def _enough(matrix: KernelMatrix, q: int, positive: bool | None) -> float:
    """Steps of a machine of q rows that cost as much as that of a matrix of low rank, where it is known to be low."""
    rank = matrix.rank
    return max(q, _LOW_RANK * rank**2 + _LOW_RANK_CALLS / q) if positive and q >= _LOW * rank else np.inf


def _calls(starts: Index) -> list[tuple[int, int]]:
    """Machines from … to for each call."""
    calls, first, ends = [], 0, starts.tolist()
    for m in range(1, len(ends)):
        if m + 1 == len(ends) or ends[m + 1] - ends[first] > _CALL:
            calls.append((first, m))
            first = m
    return calls
