"""The least distance from the origin to a polyhedron, and to the convex hull of rows.

    min ½‖z‖²  subject to  Gz ≥ h                          optimal ⇔ z = Gᵀu,  u ≥ 0,  u(Gz − h) = 0
    no such z  ⇔  Gᵀu = 0,  u ≥ 0,  hᵀu > 0                (Farkas)

By the dual active-set method: from z = 0 the constraint that is violated most is added, on the way those leave whose
multipliers would turn negative, and every stop is the optimum under the constraints at hand. A constraint that the others
forbid, g = Σ rᵢgᵢ with all rᵢ ≤ 0, proves that there is no z. A QR factorisation of the active constraints is kept up to date;
z and u come from it afresh at every stop, so that no rounding adds up.

With h = 1 the multipliers, scaled to sum to one, are the shares λ of the point of the hull of the rows of G that is nearest to
the origin, z/‖z‖² = Σ λᵢgᵢ; where there is no z the hull holds the origin, and λ is the proof.

References: Goldfarb and Idnani (1983), Mathematical Programming 27, 1–33; Lawson and Hanson (1974), ch. 23.

**Complexity** O(md) per step for m constraints, and O(da) with a active ones; usually as many steps as are active at the end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr_delete, qr_insert, solve_triangular

from separatrix.data.block import Codes, Float

_EPS = float(np.finfo(np.float64).eps)
# Rounding errors by which a constraint may seem to be missed.
_SLACK = 4.0


class LeastDistance(NamedTuple):
    """The nearest point or the proof that there is none, with the constraints that hold it and their multipliers."""

    z: Float | None
    active: Codes
    multipliers: Float
    """u > 0 of the active constraints."""


def least_distance(G: Float, h: Float, resolution: float = 1e-10) -> LeastDistance:
    """argmin ‖z‖ with Gz ≥ h, for G (m, d); a RuntimeError if rounding keeps the steps from ending.

    `resolution` is of constraints of unit length: what is shorter outside the span of the others lies in it.
    """
    lengths = np.linalg.norm(G, axis=1)
    flat = lengths <= _EPS * lengths.max(initial=0.0)
    if (h[flat] > 0).any():
        return LeastDistance(None, np.flatnonzero(flat & (h > 0))[:1], np.ones(1))
    kept = np.flatnonzero(~flat)
    lengths = lengths[kept]
    G, h = G[kept] / lengths[:, None], h[kept] / lengths
    z, multipliers, active = np.zeros(G.shape[1]), np.zeros(0), np.zeros(0, dtype=np.intp)
    Q, R = np.zeros((G.shape[1], 0)), np.zeros((0, 0))
    for _ in range(50 * (len(h) + 1)):
        slack = G @ z - h + _SLACK * _EPS * (np.abs(h) + np.linalg.norm(z))
        slack[active] = np.inf
        if not len(slack) or slack.min() >= 0.0:
            return LeastDistance(z, kept[active], multipliers / lengths[active])
        worst = int(slack.argmin())
        while True:
            shares, direction = _split(Q, R, G[worst])
            steepness = float(direction @ direction)
            full = (h[worst] - G[worst] @ z) / steepness if steepness > resolution**2 else np.inf
            falling = shares > resolution
            ratios = np.where(falling, multipliers / np.where(falling, shares, 1.0), np.inf)
            step = min(full, ratios.min(initial=np.inf))
            if np.isinf(step):
                u = np.append(np.maximum(-shares, 0.0), 1.0) / lengths[np.append(active, worst)]
                return LeastDistance(None, kept[np.append(active, worst)], u)
            if step == full:
                break
            if np.isfinite(full):
                z = z + step * direction
            leaving = int(ratios.argmin())
            multipliers, active = np.delete(multipliers - step * shares, leaving), np.delete(active, leaving)
            Q, R = _without(Q, R, leaving)
        Q, R = _joined(Q, R, G[worst])
        active = np.append(active, worst)
        z = Q @ solve_triangular(R, h[active], trans="T", check_finite=False)
        multipliers = solve_triangular(R, Q.T @ z, check_finite=False)
    raise RuntimeError("The quadratic programme did not end; rescale the columns so that their ranges are alike.")


def nearest_shares(rows: Float) -> Float:
    """(n,) shares λ ≥ 0, Σλ = 1, of the point Σ λᵢzᵢ of the convex hull of the rows that is nearest to the origin."""
    if rows.shape[0] < rows.shape[1]:  # only their products matter
        rows = np.linalg.qr(rows.T).R.T
    found = least_distance(rows, np.ones(len(rows)), resolution=1e-13)
    shares = np.zeros(len(rows))
    shares[found.active] = np.maximum(found.multipliers, 0.0)
    return shares / shares.sum()


def _split(Q: Float, R: Float, g: Float) -> tuple[Float, Float]:
    """g as shares of the columns of QR, and what is left outside their span."""
    if not len(R):
        return np.zeros(0), g
    inside = Q.T @ g
    direction = g - Q @ inside
    direction = direction - Q @ (Q.T @ direction)  # the second time for the rounding of the first
    return solve_triangular(R, inside, check_finite=False), direction


def _joined(Q: Float, R: Float, g: Float) -> tuple[Float, Float]:
    """QR with one more column."""
    if not len(R):
        length = float(np.linalg.norm(g))
        return (g / length)[:, None], np.array([[length]])
    return qr_insert(Q, R, g, len(R), which="col", check_finite=False)


def _without(Q: Float, R: Float, column: int) -> tuple[Float, Float]:
    """QR without one of its columns."""
    left = len(R) - 1
    if not left:
        return Q[:, :0], R[:0, :0]
    Q, R = qr_delete(Q, R, column, which="col", check_finite=False)
    return Q[:, :left], R[:left]
