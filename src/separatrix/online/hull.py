"""The best margin through the origin: the nearest point to it of the convex hull of the rows.

    δ = max_{‖u‖=1} min_i uᵀz_i = min_{λ ≥ 0, Σλ = 1} ‖Σ λ_i z_i‖,        z_i = t_i φ(x_i),  φ(x) = [x, ℓ]

For any x of the hull δ ≤ ‖x‖, and min_i xᵀz_i/‖x‖ ≤ δ: the two meet at the nearest point, and elsewhere they are the proof
of how far off it is. The perceptron that starts at zero makes at most (D/δ)² mistakes, D = max ‖z_i‖.

Reference: Novikoff (1962), Symposium on the Mathematical Theory of Automata 12; Wolfe (1976), Mathematical Programming 11.

**Complexity** O(k²d) a step with k rows that hold the point, of which there are at most d + 1.
**Passes over the data** one for every few dozen rows that the working set grows by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source

# Rows that join the working set in a pass, gap that ends the search, and lengths that are zero but for rounding.
_JOINING = 64
_CLOSE = 1e-10
_NOTHING = 1e-13


@dataclass(frozen=True)
class OriginMargin:
    """Bounds lower ≤ δ ≤ upper; `lower` is not positive when the point that was found separates nothing."""

    lower: float
    upper: float


def origin_margin(source: Source, lift: float, radius: float) -> OriginMargin:
    """δ for the rows of a source of two classes.

    Parameters
    ----------
    source : Source
        Rows with codes 0 and 1, for t = −1 and +1; those of weight zero do not count.
    lift : float
        ℓ, the last component of φ; 0 when there is none.
    radius : float
        The largest norm of a row.
    """

    def total(block: Block) -> Float:
        block = block.counted()
        signs: Float = np.where(block.codes == 1, 1.0, -1.0)
        return np.append(block.rmatvec(signs), lift * signs.sum())

    point = source.reduce(total, np.add)  # only a direction to begin with
    rows, index, shares = np.zeros((0, len(point))), np.zeros(0, dtype=np.intp), np.zeros(0)
    while True:
        least, worst, where = _farthest_behind(source, lift, point)
        new = ~np.isin(where, index)
        if len(index):
            length = float(np.linalg.norm(point))
            if least >= (1.0 - _CLOSE) * length**2 or not new.any():
                return OriginMargin(least / length, length)
        rows, index = np.vstack([rows, worst[new]]), np.concatenate([index, where[new]])
        shares = nearest_point(rows, np.concatenate([shares, np.zeros(int(new.sum()))]))
        point = shares @ rows
        if np.linalg.norm(point) <= _NOTHING * radius:  # the hull holds the origin
            return OriginMargin(0.0, 0.0)


def _farthest_behind(source: Source, lift: float, point: Float) -> tuple[float, Float, Codes]:
    """min_i zᵀx over all rows, and the rows with the least of it."""

    def look(block: Block) -> tuple[Float, Float, Codes]:
        kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
        index, block = block.start + kept, block.counted()
        signs: Float = np.where(block.codes == 1, 1.0, -1.0)
        margins = signs * (block.matvec(point[:-1]) + lift * point[-1])
        least = np.argsort(margins, kind="stable")[:_JOINING]
        rows = [np.append(block.part(slice(i, i + 1)).dense()[0], lift) * signs[i] for i in least]
        return margins[least], np.array(rows).reshape(-1, len(point)), index[least]

    margins, rows, index = (np.concatenate(parts) for parts in zip(*source.map(look), strict=True))
    least = np.argsort(margins, kind="stable")[:_JOINING]
    return float(margins[least[0]]), rows[least], index[least]


def nearest_point(rows: Float, shares: Float) -> Float:
    """λ of the point of the convex hull of the rows that is nearest to the origin, from λ to start with or zeros.

    Wolfe's method: rows join, and those that the nearest point of the affine hull would need with a negative share leave
    again. Every round comes nearer, so no set of rows comes back. Rows join a few at a time, and one at a time where that
    does not come nearer.
    """
    if rows.shape[0] < rows.shape[1]:  # only their products matter
        rows = np.linalg.qr(rows.T).R.T
    if not shares.any():
        shares = np.zeros(len(rows))
        shares[np.argmin(np.einsum("ij,ij->i", rows, rows))] = 1.0
    alone = False
    while True:
        point, held = shares @ rows, np.flatnonzero(shares)
        behind, length = rows @ point, float(point @ point)
        joins = np.argsort(behind)[: 1 if alone else 1 + len(held) // 4]
        joins = joins[(behind[joins] < (1.0 - 0.1 * _CLOSE) * length) & (shares[joins] == 0.0)]
        if not len(joins):
            return shares
        trial = _within(rows, np.append(held, joins), shares.copy())
        nearer = float(np.square(trial @ rows).sum()) < length
        if not nearer and len(joins) == 1:  # rounding allows no further progress
            return shares
        shares, alone = (trial, False) if nearer else (shares, True)


def _within(rows: Float, held: Codes, shares: Float) -> Float:
    """Shares of the nearest point of the affine hull of the rows held, once those are let go that would have negative ones."""
    while True:
        wanted = _affine_shares(rows[held])
        low = wanted <= 0.0
        if not low.any():
            shares = np.zeros(len(rows))
            shares[held] = wanted
            return shares
        ratios = shares[held[low]] / np.maximum(shares[held[low]] - wanted[low], np.finfo(float).tiny)
        step = float(ratios.min())
        shares[held] += step * (wanted - shares[held])
        leaves = held[low][ratios <= step]
        shares[leaves] = 0.0
        held = held[~np.isin(held, leaves)]


def _affine_shares(rows: Float) -> Float:
    """Shares, summing to one, of the point nearest to the origin of the affine hull: λ ∝ argmin ‖[1, Z]ᵀλ − e₁‖."""
    size = max(float(np.abs(rows).max()), np.finfo(float).tiny)
    columns = np.column_stack([np.ones(len(rows)), rows / size]).T
    target = np.zeros(len(columns))
    target[0] = 1.0
    wanted: Float = lstsq(columns, target, lapack_driver="gelsy", check_finite=False)[0]
    return wanted / wanted.sum()
