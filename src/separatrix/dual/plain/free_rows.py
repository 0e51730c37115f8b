"""Newton's steps of the dual of a support vector machine on the rows that are free, 0 < α < C.

    max_β  Σ ỹᵢβᵢ − ½βᵀKβ,   Σβᵢ = 0        v = ỹ − Kβ        K d + μ1 = v,  Σd = 0  on the free rows

**Complexity** O(f³ + fq) per step on f free rows of q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from separatrix.data.block import Float
from separatrix.settings import one_blas_thread

_STEPS = 40
_SHIFT, _TINY = 1e-12, float(np.finfo(np.float64).tiny)


def newton_on_free_rows(
    K: Float, v: Float, beta: Float, low: Float, high: Float, limit: int, split: int | None = None
) -> int:
    """Newton's steps on the free variables alone, at most `limit`, each as far as the first bound; how many were taken.

    With the last of the free rows eliminated, d_r = −Σd, the equations are (K_ij − K_ir − K_rj + K_rr) d = v_i − v_r, whose
    solution keeps the sum to rounding however singular K is. The objective rises along each step. One factorisation for each
    variable that reaches its bound. `v` and `beta` are changed. With `split` the rows before it and those from it on keep their
    sums each, and the last of each are eliminated.
    """
    for taken in range(most := min(_STEPS, limit)):
        free = np.flatnonzero((beta > low) & (beta < high))
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


def _step(K: Float, v: Float) -> Float | None:
    """d of free rows whose sum is kept; ``None`` where there is none."""
    if len(v) < 2:
        return None
    edge = K[-1, :-1]
    part = _solved(K[:-1, :-1] - edge - (edge - K[-1, -1])[:, None], v[:-1] - v[-1])
    return None if part is None else np.append(part, -part.sum())


def _split_step(K: Float, v: Float, side: NDArray[np.bool_]) -> Float | None:
    """d of free rows of two sides whose sums are kept each."""
    last = np.flatnonzero(np.diff(side, append=2))
    rest = np.delete(np.arange(len(v)), last)
    ends = last[np.searchsorted(last, rest)]
    if not len(rest):
        return None
    edge = K[np.ix_(rest, ends)]
    part = _solved(K[np.ix_(rest, rest)] - edge - edge.T + K[np.ix_(ends, ends)], v[rest] - v[ends])
    if part is None:
        return None
    step: Float = -np.bincount(ends, part, len(v)).astype(np.float64)
    step[rest] = part
    return step


def _solved(block: Float, right: Float) -> Float | None:
    """The solution of the equations, shifted by rounding of their trace; ``None`` where they have no factor."""
    f = len(block)
    np.einsum("ii->i", block)[:] += (
        _SHIFT * float(block.trace()) / f + _TINY
    )  # a view, in whatever order the entries are
    with one_blas_thread():
        _, found, failed = dposv(block, right, lower=1)
    return None if failed else found
