"""Machines on rows that are few beside their columns: on the matrix of their inner products, in compiled loops
(kernels/support_vectors/machines.py).

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0 where the intercept is free,      w = Σ βᵢxᵢ

Without a free intercept there is no such sum: a row of zeros with ỹ = 0 and no bounds takes up what the others add up to, and
changes nothing else; a penalised intercept b = s² Σβ is part of K, as s² beside every product. So is the ridge of the squared
hinge, whose β has no bound; but as Σ Cξ² is no more than ΣC at the optimum, no α = 2Cξ is larger than 2√(C ΣC).

Rows in very different units need more steps than interior points, whose Newton matrix they are worth: these are tried as far as
they cost a fraction of that.

**Complexity** O(n) per step and O(f³) for f free rows; memory O(n²).
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.at_hand.dense_gram import dense_gram
from separatrix.dual.linear_search import Point
from separatrix.lazy import compiled_pays_by_now

if TYPE_CHECKING:
    from separatrix.dual.linear_machine import LinearMachine

# The violation from which Newton's steps on the free rows lead to the last digits; steps per row, and those per sparse row, for
# which other methods take longest.
_ROUGHLY, _STEPS, _SPARSE_STEPS = 1e-2, 25.0, 100.0
# Seconds that loops save: at least, and for every cube of the rows.
_SAVED, _SAVED_A_CUBE = 3e-3, 1e-9
# Rows of a matrix that is not kept. Steps of interior points, and their nanoseconds for each product and row.
_MOST, _INTERIOR, _PRODUCT, _ROW = 3000, 18.0, 0.06, 100.0
# Nanoseconds that pairs of sparse rows may take.
_SPARSE = 3e7
# Squares of the rows that are done by the time another thread has been woken.
_ALONE = 50_000


def pairs_cost(n_rows: int) -> float:
    """About how many nanoseconds a machine takes."""
    return 12.0 * n_rows**2 + 0.015 * float(n_rows) ** 3


def is_on_few_rows(machine: LinearMachine) -> bool:
    """Whether sparse rows are so few that pairs of them are worth a try where sweeps are many."""
    return machine.rows.has_row_gram and pairs_cost(len(machine.price)) <= _SPARSE


def pairs_gram(machine: LinearMachine) -> Float | None:
    """The products of rows with each other, where pairs are worth a try: for the hinge wherever they cost less than half of
    what interior points do.
    """
    rows, (n, d) = machine.rows, machine.rows.X.shape
    if is_on_few_rows(machine):
        return rows.row_gram
    if machine.power == 2 or rows.gram is not None or sp.issparse(rows.X):
        return None if machine.power == 2 else rows.gram
    interior = _INTERIOR * (_PRODUCT * n * d**2 + _ROW * n + _PRODUCT * d**3 / 3.0)
    if n > _MOST or pairs_cost(n) + _PRODUCT * float(n) ** 2 * d >= 0.5 * interior:
        return None
    return dense_gram(rows.X, rows.centre)[0]


def paired_points(
    machines: Sequence[LinearMachine], gram: Float, max_iter: int, stop: Event
) -> tuple[list[tuple[Point, int]], float]:
    """Where pairs of rows and Newton's steps on the free ones end, with 1 for the steps, as they read K alone; and the largest
    violation of a margin that is left. There are none where loops are not worth their while.
    """
    first, K = machines[0], len(machines)
    n = len(first.price)
    if max_iter < 1 or not np.isfinite(gram).all() or not compiled_pays_by_now(K * max(_SAVED, _SAVED_A_CUBE * n**3)):
        return [], np.inf
    from separatrix.kernels.support_vectors.machines import solve_machine  # numba takes a while to import

    free, upper = first.scaling is None, first.price
    if first.power == 2:
        gram, upper = gram + np.diag(first.ridge), 2.1 * np.sqrt(first.price * first.price.sum())
    values = gram if free else _with_a_row_of_zeros(gram, 0.0 if first.scaling == 0.0 else 1.0 / first.pull)
    q = len(values)
    most = (_SPARSE_STEPS if sp.issparse(first.rows.X) else _STEPS) * n
    rows, known, upper = np.arange(q), np.ones(q, dtype=np.bool_), np.append(upper, [upper.sum()] * (q - n))
    size, rule = np.sqrt(values.diagonal()), np.array([_ROUGHLY, most, 1.0])
    gamma = np.zeros((n, K))
    betas, left = np.zeros(K), np.full(K, np.inf)

    def solve(k: int) -> None:
        if stop.is_set():
            return
        signs = np.append(machines[k].signs, np.zeros(q - n))
        low, high = np.where(signs > 0.0, 0.0, -upper), np.where(signs < 0.0, 0.0, upper)
        beta, scores = np.zeros(q), np.zeros(q)
        _, left[k], _ = solve_machine(values, rows, values, known, q, signs, low, high, beta, scores, size, rule)
        gamma[:, k] = beta[:n]
        if free:
            betas[k] = _intercept(signs - scores, beta, low, high)
        elif first.scaling:
            betas[k] = beta[:n].sum() / first.pull

    try:
        solve(0)
        if not left[0] <= _ROUGHLY:  # the others are as hard
            return [], np.inf
        if K * n**2 <= _ALONE:
            for k in range(1, K):
                solve(k)
        else:
            in_parallel(solve, range(1, K), stop)
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set():
        return [], np.inf
    W = first.rows.products(gamma) if K > 1 else first.rows.products(gamma[:, 0])[:, None]
    alphas = [machine.signs * own for machine, own in zip(machines, gamma.T, strict=True)]
    points = [((np.ascontiguousarray(W[:, k]), float(betas[k]), alphas[k]), 1) for k in range(K)]
    return points, float(left.max())


def _with_a_row_of_zeros(gram: Float, besides: float) -> Float:
    n = len(gram)
    values = np.zeros((n + 1, n + 1))
    np.add(gram, besides, out=values[:n, :n])
    return values


def _intercept(v: Float, beta: Float, low: Float, high: Float) -> float:
    """The middle of the values that leave the least violation."""
    top, bottom = v[beta < high].max(initial=-np.inf), v[beta > low].min(initial=np.inf)
    return 0.5 * float(top + bottom) if np.isfinite(top + bottom) else 0.0
