"""Sums of radial kernels without a return to Python: the values stay in cache, and no thread waits for another.

out += exp(L Rₖ) βₖ  for every part k
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled
from separatrix.kernels.exponentials import falling_exponentials, single_falling_exponentials
from separatrix.kernels.products.panels import WIDTH, aligned, multiply

__all__ = ["add_radial", "add_single_radial", "aligned"]

# Rows whose values with a part stay in cache.
_ROWS = 128


@compiled()
def add_radial(left: Any, panels: Any, coefficients: Any, out: Any) -> None:
    """The rows of `left` (n, p) with panels (parts, p·WIDTH) and (parts, WIDTH, m); added to `out` (n, m)."""
    room = aligned(_ROWS * WIDTH, left)
    for start in range(0, len(left), _ROWS):
        some, sums = left[start : start + _ROWS], out[start : start + _ROWS]
        values = room[: len(some) * WIDTH]
        for k in range(len(panels)):
            multiply(some, panels[k], values)
            falling_exponentials(values)
            sums += np.dot(values.reshape(len(some), WIDTH), coefficients[k])


@compiled()
def add_single_radial(left: Any, panels: Any, coefficients: Any, out: Any) -> None:
    """The same for sides and coefficients of single precision; `out` is of double precision."""
    room = aligned(_ROWS * WIDTH, left)
    for start in range(0, len(left), _ROWS):
        some, sums = left[start : start + _ROWS], out[start : start + _ROWS]
        values = room[: len(some) * WIDTH]
        for k in range(len(panels)):
            multiply(some, panels[k], values)
            single_falling_exponentials(values)
            sums += np.dot(values.reshape(len(some), WIDTH), coefficients[k])
