"""Newton's steps of the dual of a support vector machine on the rows that are free, 0 < α < C.

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0        v = ỹ − Kβ        K d + μ1 = v,  Σd = 0  on the free rows

**Complexity** O(f³ + fq) per step on f free rows of q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from separatrix.data.block import Float
from separatrix.dual.kernel_matrix import Index
from separatrix.settings import one_blas_thread

_STEPS = 40
_SHIFT, _TINY = 1e-12, float(np.finfo(np.float64).tiny)


def newton_on_free_rows(
    K: Float, v: Float, beta: Float, low: Float, high: Float, limit: int, split: int | None = None
) -> int:
    """Newton's steps on the free variables alone, at most `limit`, each as far as the first bound; how many were taken.

    With the shortest of the free rows eliminated, d_r = −Σd, the equations are (K_ij − K_ir − K_rj + K_rr) d = v_i − v_r, whose
    solution keeps the sum to rounding however singular K is. The objective rises along each step. One factorisation for each
    variable that reaches its bound. `v` and `beta` are changed. With `split` the rows before it and those from it on keep their
    sums each, and the shortest of each are eliminated.
    """
    size = np.abs(K.diagonal())
    for taken in range(most := min(_STEPS, limit)):
        free = _shortest_last(np.flatnonzero((beta > low) & (beta < high)), size, split)
        rows = K[free]
        own, slopes = rows[:, free], v[free]
        step = _step(own, slopes) if split is None else _split_step(own, slopes, free >= split)
        if step is None or not (np.isfinite(step).all() and float(step @ slopes) > 0.0):
            return taken
        here, rises = beta[free], step > 0.0
        ends, moved, length = np.where(rises, high[free], low[free]), here + step, 1.0
        beyond = np.where(rises, moved > ends, moved < ends)
        if beyond.any():
            room = np.divide(ends - here, step, out=np.full(len(free), np.inf), where=beyond)
            first = int(room.argmin())
            length = min(1.0, float(room[first]))
            moved = np.clip(here + length * step, low[free], high[free])
            moved[first] = ends[first]
        v -= (moved - here) @ rows
        beta[free] = moved
        if length == 1.0:
            return taken + 1
    return max(0, most)


def _shortest_last(free: Index, size: Float, split: int | None) -> Index:
    """The free rows, the shortest of all, or of those on its side of `split`, behind the others."""
    if split is not None:
        return free[np.lexsort((-size[free], free >= split))]
    if len(free) < 2 or size[free[shortest := int(size[free].argmin())]] == size[free[-1]]:
        return free
    return np.append(np.delete(free, shortest), free[shortest])


def _step(K: Float, v: Float) -> Float | None:
    """d of free rows whose sum is kept; ``None`` where there is none."""
    if len(v) < 2:
        return None
    edge, size = K[-1, :-1], np.abs(K.diagonal())
    part = _solved(K[:-1, :-1] - edge - (edge - K[-1, -1])[:, None], v[:-1] - v[-1], size[:-1] + size[-1])
    return None if part is None else np.append(part, -part.sum())


def _split_step(K: Float, v: Float, side: NDArray[np.bool_]) -> Float | None:
    """d of free rows of two sides whose sums are kept each."""
    last = np.flatnonzero(np.diff(side, append=2))
    rest = np.delete(np.arange(len(v)), last)
    ends = last[np.searchsorted(last, rest)]
    if not len(rest):
        return None
    edge, size = K[np.ix_(rest, ends)], np.abs(K.diagonal())
    block = K[np.ix_(rest, rest)] - edge - edge.T + K[np.ix_(ends, ends)]
    part = _solved(block, v[rest] - v[ends], size[rest] + size[ends])
    if part is None:
        return None
    step: Float = -np.bincount(ends, part, len(v)).astype(np.float64)
    step[rest] = part
    return step


def _solved(block: Float, right: Float, size: Float) -> Float | None:
    """The solution of the equations; ``None`` where they have no factor.

    What is added to a diagonal is rounding of the trace, and small beside the `size` of the row's own values: polynomials of
    columns on several scales have values from 1 to 1e24.
    """
    shift = np.minimum(float(block.trace()) / len(block), size)
    np.einsum("ii->i", block)[:] += _SHIFT * shift + _TINY  # a view, in whatever order the entries are
    with one_blas_thread():
        _, found, failed = dposv(block, right, lower=1)
    return None if failed else found
