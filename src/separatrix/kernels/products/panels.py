"""Products with panels: the right side of a product of matrices, WIDTH columns of it side by side in memory.

    out (m, WIDTH) = L (m, p) · panel (p, WIDTH)

A few columns of a panel stay in the nearest cache while all rows of L go by, a tile at a time (tiles.py).

**Complexity** O(mp·WIDTH).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.products.tiles import COLUMNS, ROWS, tile

WIDTH = 128
# Bytes of a line of the cache: numbers that lie across two of them take as long as two.
_LINE = 64


@compiled()
def multiply(left: Any, panel: Any, out: Any) -> None:
    """`out` = `left` · `panel`, these two being stored row by row in arrays of one dimension."""
    multiply_some(left, len(left), panel, WIDTH, out)


@compiled()
def multiply_some(left: Any, m: Any, panel: Any, columns: Any, out: Any) -> None:
    """The same of the first m rows of `left` and so many columns of the panel, or a few more; `left` lies row by row."""
    p = left.shape[1]
    if p == 0:
        out[: m * WIDTH] = 0.0
        return
    wide = COLUMNS * 8 // out.itemsize
    for j in range(0, columns, wide):
        for i in range(0, m, ROWS):
            tile(min(ROWS, m - i), left, i * p, 1, p, panel, j, WIDTH, p, out, i * WIDTH + j, WIDTH, False)


@compiled()
def aligned(size: Any, like: Any) -> Any:
    """Room for so many numbers of the kind of an array, from the beginning of a line of the cache on."""
    held = np.empty(size + _LINE // like.itemsize, like.dtype)
    first = (_LINE - held.ctypes.data % _LINE) % _LINE // like.itemsize
    return held[first : first + size]


@compiled()
def panels_of(right: Any) -> Any:
    """The panels (parts, p·WIDTH) of a matrix (p, n), the last one filled with zeros."""
    p, n = right.shape
    parts = (n + WIDTH - 1) // WIDTH
    found = aligned(parts * p * WIDTH, right).reshape(parts, p * WIDTH)
    found[:] = 0.0
    for part in range(parts):
        first = part * WIDTH
        for k in range(p):
            for j in range(min(WIDTH, n - first)):
                found[part, k * WIDTH + j] = right[k, first + j]
    return found
