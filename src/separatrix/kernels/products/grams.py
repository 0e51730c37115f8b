"""Centred rows multiplied with themselves, a few of every group at a time while they are in cache.

    v = √s·(x − g_k),   sums_k += s·(x − g_k),   G_m += Σ v vᵀ     over the rows whose class k is of group m

Rows go to the room of their group in the order in which they come; a room that is full is multiplied with itself (tiles.py).
So rows are read once and in order, whether there is one group or one for every class. The sums of a room are added up in
registers, then to G: rounding grows with the rows of a room and with the number of rooms, not with the rows.

**Complexity** O(nd²/2), in tiles on and below the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.products.panels import aligned
from separatrix.kernels.products.tiles import COLUMNS, ROWS, tile

# Rows of a room; numbers of all rooms together, which stay in the second cache; rows of each at least.
_DEEP, _NUMBERS, _LEAST = 128, 1 << 16, 64
# Numbers of a line of the cache.
_LINE = 8


@compiled()
def _multiply(rooms: Any, room: Any, rows: Any, d: Any, width: Any, grams: Any, group: Any) -> None:
    """Add the product of the rows of a room with themselves, on and below the diagonal."""
    across = grams.shape[2]
    for j in range(0, d, COLUMNS):
        for i in range(j, d, ROWS):
            at = (group * d + i) * across + j
            tile(min(ROWS, d - i), rooms, room + i, width, 1, rooms, room + j, width, rows, grams, at, across, True)


@compiled()
def add_grams(
    X: Any,
    codes: Any,
    weights: Any,
    guess: Any,
    groups: Any,
    sums: Any,
    rooms: Any,
    width: Any,
    filled: Any,
    grams: Any,
) -> None:
    """Add the rows X of classes `codes`; `groups[k]` is negative where a class does not count.

    `filled` rows of every room wait to be multiplied: see `finish`. An empty `weights` means that every row counts once.
    """
    d, deep = X.shape[1], len(rooms) // (width * len(grams))
    for i in range(len(codes)):
        k = codes[i]
        group = groups[k]
        if group < 0:
            continue
        room = group * deep * width
        first = room + filled[group] * width
        row, mean, total = rooms[first : first + d], guess[k], sums[k]
        if len(weights) == 0:
            for j in range(d):
                row[j] = X[i, j] - mean[j]
                total[j] += row[j]
        else:
            root = np.sqrt(weights[i])
            for j in range(d):
                row[j] = root * (X[i, j] - mean[j])
                total[j] += root * row[j]
        filled[group] += 1
        if filled[group] == deep:
            _multiply(rooms, room, deep, d, width, grams, group)
            filled[group] = 0


@compiled(fastmath={"contract"})
def finish(rooms: Any, width: Any, filled: Any, grams: Any, off: Any, out: Any) -> None:
    """Multiply what waits; `out` (M, d, d) = G less the product of the rows `off[m]` with themselves, made whole."""
    d, deep = grams.shape[1], len(rooms) // (width * len(grams))
    for group in range(len(grams)):
        if filled[group] > 0:
            _multiply(rooms, group * deep * width, filled[group], d, width, grams, group)
            filled[group] = 0
        gram, found = grams[group], out[group]
        for i in range(d):
            for j in range(i + 1):
                found[i, j] = gram[i, j]
            for row in off[group]:
                for j in range(i + 1):
                    found[i, j] -= row[i] * row[j]
            for j in range(i):
                found[j, i] = found[i, j]


def room_for(groups: int, d: int) -> tuple[Any, int, Any, Any]:
    """Empty rooms, the width of their rows, how many rows wait in each, and matrices of zeros: wider than d by up to a tile."""
    width = -(-d // _LINE) * _LINE
    width += _LINE * (width // _LINE % 2 == 0)  # an even number of lines would crowd into a part of the cache
    deep = max(_LEAST, min(_DEEP, _NUMBERS // (groups * width)))
    held = aligned(groups * deep * width + COLUMNS, np.empty(0))  # the last tile looks beyond the last row
    held[:] = 0.0
    return held, width, np.zeros(groups, dtype=np.intp), np.zeros((groups, d, -(-d // COLUMNS) * COLUMNS))
