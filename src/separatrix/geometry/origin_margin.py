"""The best margin through the origin: the nearest point to it of the convex hull of the rows.

    δ = max_{‖u‖=1} min_i uᵀz_i = min_{λ ≥ 0, Σλ = 1} ‖Σ λ_i z_i‖,        z_i = t_i φ(x_i),  φ(x) = [x, ℓ]

For any x of the hull δ ≤ ‖x‖, and min_i xᵀz_i/‖x‖ ≤ δ: the two meet at the nearest point, and elsewhere they are the proof
of how far off it is. The perceptron that starts at zero makes at most (D/δ)² mistakes, D = max ‖z_i‖.

Reference: Novikoff (1962), Symposium on the Mathematical Theory of Automata 12.

**Complexity** that of `least_distance` on a working set of rows, of which at most d + 1 hold the point.
**Passes over the data** one for every few dozen rows that the working set grows by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.geometry.least_distance import nearest_shares

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
    """δ for the rows of a source of two classes, codes 0 and 1 for t = −1 and +1; those of weight zero do not count.

    `lift` is ℓ, the last component of φ, or 0 when there is none; `radius` the largest norm of a row.
    """

    def total(block: Block) -> Float:
        block = block.counted()
        signs: Float = np.where(block.codes == 1, 1.0, -1.0)
        return np.append(block.rmatvec(signs), lift * signs.sum())

    point = source.reduce(total, np.add)  # only a direction to begin with
    rows, index = np.zeros((0, len(point))), np.zeros(0, dtype=np.intp)
    while True:
        least, worst, where = _farthest_behind(source, lift, point)
        new = ~np.isin(where, index)
        if len(index):
            length = float(np.linalg.norm(point))
            if least >= (1.0 - _CLOSE) * length**2 or not new.any():
                return OriginMargin(least / length, length)
        rows, index = np.vstack([rows, worst[new]]), np.concatenate([index, where[new]])
        point = nearest_shares(rows) @ rows
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
