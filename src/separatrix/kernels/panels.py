"""Products with panels: the right side of a product of matrices, WIDTH columns of it side by side in memory.

    out (m, WIDTH) = L (m, p) · panel (p, WIDTH)

Four rows take four entries of L at a time: sixteen multiplications for eight numbers that are read. The width is known when
this is compiled, so that all addresses are, and compilers keep the sixteen entries in registers. A library for products of
matrices is no quicker on panels of this size, and half as quick where it does not know the processor and takes instructions
that all have.

**Complexity** O(mp·WIDTH), in parts of `_DEEP` rows of the panel, which stay in the nearest cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

WIDTH = 128
_2, _3 = 2 * WIDTH, 3 * WIDTH
_DEEP = 32
# Bytes of a line of the cache: numbers that lie across two of them take as long as two.
_LINE = 64


@compiled(inline="always", fastmath={"contract", "nsz"}, error_model="numpy")
def _four_by_four(left: Any, i: Any, k: Any, panel: Any, out: Any) -> None:
    a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
    e, f, g, h = left[i + 1, k], left[i + 1, k + 1], left[i + 1, k + 2], left[i + 1, k + 3]
    l, m, n, o = left[i + 2, k], left[i + 2, k + 1], left[i + 2, k + 2], left[i + 2, k + 3]  # noqa: E741  # in their order
    p, q, r, s = left[i + 3, k], left[i + 3, k + 1], left[i + 3, k + 2], left[i + 3, k + 3]
    for j in range(WIDTH):
        w, x, y, z = panel[j], panel[WIDTH + j], panel[_2 + j], panel[_3 + j]
        out[j] = out[j] + a * w + b * x + c * y + d * z
        out[WIDTH + j] = out[WIDTH + j] + e * w + f * x + g * y + h * z
        out[_2 + j] = out[_2 + j] + l * w + m * x + n * y + o * z
        out[_3 + j] = out[_3 + j] + p * w + q * x + r * y + s * z


@compiled(inline="always", fastmath={"contract", "nsz"}, error_model="numpy")
def _four_by_one(left: Any, i: Any, k: Any, panel: Any, out: Any) -> None:
    a, b, c, d = left[i, k], left[i + 1, k], left[i + 2, k], left[i + 3, k]
    for j in range(WIDTH):
        x = panel[j]
        out[j] += a * x
        out[WIDTH + j] += b * x
        out[_2 + j] += c * x
        out[_3 + j] += d * x


@compiled(inline="always", fastmath={"contract", "nsz"}, error_model="numpy")
def _one_by_four(left: Any, i: Any, k: Any, panel: Any, out: Any) -> None:
    a, b, c, d = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
    for j in range(WIDTH):
        out[j] = out[j] + a * panel[j] + b * panel[WIDTH + j] + c * panel[_2 + j] + d * panel[_3 + j]


@compiled(inline="always", fastmath={"contract", "nsz"}, error_model="numpy")
def _one_by_one(x: Any, panel: Any, out: Any) -> None:
    for j in range(WIDTH):
        out[j] += x * panel[j]


@compiled(fastmath={"contract", "nsz"}, error_model="numpy")
def multiply(left: Any, panel: Any, out: Any) -> None:
    """`out` = `left` · `panel`, these two being stored row by row in arrays of one dimension."""
    m, p = left.shape
    for at in range(m * WIDTH):
        out[at] = 0.0
    for start in range(0, p, _DEEP):
        stop = min(start + _DEEP, p)
        whole = stop - (stop - start) % 4
        for i in range(0, m - 3, 4):
            rows = out[i * WIDTH : (i + 4) * WIDTH]
            for k in range(start, whole, 4):
                _four_by_four(left, i, k, panel[k * WIDTH : (k + 4) * WIDTH], rows)
            for k in range(whole, stop):
                _four_by_one(left, i, k, panel[k * WIDTH : (k + 1) * WIDTH], rows)
        for i in range(m - m % 4, m):
            row = out[i * WIDTH : (i + 1) * WIDTH]
            for k in range(start, whole, 4):
                _one_by_four(left, i, k, panel[k * WIDTH : (k + 4) * WIDTH], row)
            for k in range(whole, stop):
                _one_by_one(left[i, k], panel[k * WIDTH : (k + 1) * WIDTH], row)


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
