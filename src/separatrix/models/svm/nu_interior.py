"""Interior points for the ν-machine, for where pairs and Newton's steps between bounds crawl: nearly singular K, little margin.

    min ½βᵀKβ,   Σ₊β and Σ₋β as they are,   low ≤ β ≤ high
    Kβ − λ_side − z + u = 0,   z(β − low) = u(high − β) = μ → 0,         D = z/(β − low) + u/(high − β)
    (K + D) d = λ − Kβ + (μ − corrections)/(β − low) − (…)/(high − β),   Σ₊d = Σ₋d = 0

Reference: Mehrotra (1992), On the implementation of a primal-dual interior point method, SIAM J. Optim. 2.

**Complexity** O(n³) per step, of which there are about twenty.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from separatrix.data.block import Float
from separatrix.settings import one_blas_thread

_STEPS, _SHARE, _SHORT, _ENOUGH = 60, 0.995, 1e-8, 1e-15


def interior_point(K: Float, split: int, beta: Float, low: Float, high: Float) -> tuple[Float, int]:
    """β near the optimum with the sums of `beta`, and the steps to it; rows before `split` are of one side.

    A row with the smaller distance to a bound than its multiplier is put there: `beta` has the same sums but for rounding.
    """
    wide, q = high > low, len(beta)
    if not wide.all():  # rows without weight, whose β is 0
        found = np.zeros(q)
        given = (int(np.count_nonzero(wide[:split])), beta[wide], low[wide], high[wide])
        found[wide], steps = interior_point(K[np.ix_(wide, wide)], *given)
        return found, steps
    sides = np.zeros((q, 2))
    sides[:split, 0] = sides[split:, 1] = 1.0
    # Every row at the same share of its room, by which the sums are kept.
    room = high - low
    above = sides @ ((sides.T @ (beta - low)) / (sides.T @ room)) * room
    below, point = room - above, low + above
    if not (above > 0).all() or not (below > 0).all():
        return beta, 0
    scores = K @ point
    size = float(np.abs(scores).max()) + np.finfo(np.float64).tiny
    # Feasible for the dual too, and every step keeps that: μ alone is left to fall.
    slope = scores - sides @ (sides.T @ scores / sides.sum(axis=0))
    z, u = size + np.maximum(slope, 0.0), size + np.maximum(-slope, 0.0)
    count, least = 2.0 * q, _ENOUGH * size * float(room.max())
    for taken in range(_STEPS):  # noqa: B007  # it is the answer
        mean = float(z @ above + u @ below) / count
        if mean <= least:
            break
        curved = K + np.diag(z / above + u / below)
        with one_blas_thread():
            factor, failed = dpotrf(curved, lower=1, overwrite_a=1)
            if failed:
                break
            lift = dpotrs(factor, sides, lower=1)[0]

        def direction(up: Float, down: Float) -> Float:
            """d for the targets z(β − low) → up, u(high − β) → down."""
            force = up / above - down / below - scores  # noqa: B023  # called in this step
            plain = dpotrs(factor, force, lower=1)[0]  # noqa: B023  # as above
            found = np.linalg.solve(sides.T @ lift, -(sides.T @ plain))  # noqa: B023  # as above
            return np.asarray(plain + lift @ found)  # noqa: B023  # as above

        d = direction(np.zeros(q), np.zeros(q))
        dz, du = -z - z / above * d, -u + u / below * d
        reach = min(_reach(above, d), _reach(below, -d), _reach(z, dz), _reach(u, du))
        after = float((z + reach * dz) @ (above + reach * d) + (u + reach * du) @ (below - reach * d)) / count
        centred = mean * (after / mean) ** 3
        up, down = centred - dz * d, centred + du * d
        d = direction(up, down)
        dz, du = (up - z * d) / above - z, (down + u * d) / below - u
        length = min(1.0, _SHARE * min(_reach(above, d), _reach(below, -d), _reach(z, dz), _reach(u, du)))
        if not np.isfinite(d).all() or not length > _SHORT:
            break
        point, above, below = point + length * d, above + length * d, below - length * d
        z, u = z + length * dz, u + length * du
        scores = K @ point
    unit = size / float(room.max())
    point = np.where(above * unit < z, low, np.where(below * unit < u, high, point))
    for side in (slice(0, split), slice(split, q)):
        point[side] = _with_sum(point[side], low[side], high[side], float(beta[side].sum()))
    return point, taken


def _reach(x: Float, change: Float) -> float:
    """How far x > 0 can go before an entry is 0; 1 at most."""
    falling = change < 0
    return min(1.0, float((-x[falling] / change[falling]).min(initial=np.inf)))


def _with_sum(beta: Float, low: Float, high: Float, total: float) -> Float:
    """β with another sum, by a share of the room that each free one has, or of that of all where it takes more."""
    excess = float(beta.sum()) - total
    room = beta - low if excess > 0 else high - beta
    free = np.where((beta > low) & (beta < high), room, 0.0)
    room = free if float(free.sum()) > abs(excess) else room
    whole = float(room.sum())
    return np.clip(beta - excess / whole * room, low, high) if whole > 0 else beta
