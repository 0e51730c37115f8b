"""Sums of radial kernels without a return to Python: the values stay in cache, and no thread waits for another.

    out += exp(L Rₖ) βₖ  for every part k
    exp(x) = 2^k exp(r),   k = ⌊x/ln 2⌉,   r = x − k ln 2 ∈ ±½ ln 2,   exp(r) by its series: 14 terms leave 4·10⁻¹⁸

Adding and taking off 1.5·2⁵² rounds to a whole number, which moved into the place of the exponent is 2^k.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from separatrix.kernels import compiled

_BY_LN2, _ROUND = 1.4426950408889634, 6755399441055744.0
# ln 2 in two parts, the first with zeros at its end: its product with k is exact.
_LN2, _LN2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_LEAST = -708.0
# In single precision.
_S_BY_LN2, _S_ROUND, _S_LEAST = np.float32(_BY_LN2), np.float32(12582912.0), np.float32(-87.0)
_S_LN2, _S_LN2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / math.factorial(k)) for k in range(1, 8))
# Rows whose values with a part stay in cache.
_ROWS = 128
_C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1.0 / math.factorial(k) for k in range(3, 14))


@compiled(fastmath={"contract"}, error_model="numpy")
def _exponentials(values: Any, power: Any, bits: Any) -> None:
    """exp of the values in their place, 0 where it underflows; `bits` are those of `power`, room for one row."""
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            x = row[j]
            k = max(x, _LEAST) * _BY_LN2 + _ROUND - _ROUND
            r = max(x, _LEAST) - k * _LN2 - k * _LN2_REST
            high = _C7 + r * (_C8 + r * (_C9 + r * (_C10 + r * (_C11 + r * (_C12 + r * _C13)))))
            series = 1.0 + r * (1.0 + r * (0.5 + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * high))))))
            row[j] = series if x > _LEAST else 0.0
            bits[j] = (np.int64(k) + 1023) << 52
        for j in range(len(row)):
            row[j] *= power[j]


@compiled(fastmath={"contract"}, error_model="numpy")
def _single_exponentials(values: Any, power: Any, bits: Any) -> None:
    """The same in single precision, by 8 terms."""
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            x = max(row[j], _S_LEAST)
            k = x * _S_BY_LN2 + _S_ROUND - _S_ROUND
            r = x - k * _S_LN2 - k * _S_LN2_REST
            series = _S1 + r * (_S1 + r * (_S2 + r * (_S3 + r * (_S4 + r * (_S5 + r * (_S6 + r * _S7))))))
            row[j] = series if x > _S_LEAST else np.float32(0.0)
            bits[j] = (np.int32(k) + np.int32(127)) << np.int32(23)
        for j in range(len(row)):
            row[j] *= power[j]


@compiled()
def add_radial(left: Any, right: Any, coefficients: Any, out: Any) -> None:
    """The rows of `left` (n, p) with the parts (parts, p, q) and (parts, q, m); added to `out` (n, m)."""
    room, power = np.empty((_ROWS, right.shape[2])), np.empty(right.shape[2])
    bits = power.view(np.int64)
    for start in range(0, len(left), _ROWS):
        some, sums = left[start : start + _ROWS], out[start : start + _ROWS]
        values = room[: len(some)]
        for k in range(len(right)):
            np.dot(some, right[k], values)
            _exponentials(values, power, bits)
            sums += np.dot(values, coefficients[k])


@compiled()
def add_single_radial(left: Any, right: Any, coefficients: Any, out: Any) -> None:
    """The same for sides and coefficients of single precision; `out` is of double precision."""
    room, power = np.empty((_ROWS, right.shape[2]), np.float32), np.empty(right.shape[2], np.float32)
    bits = power.view(np.int32)
    for start in range(0, len(left), _ROWS):
        some, sums = left[start : start + _ROWS], out[start : start + _ROWS]
        values = room[: len(some)]
        for k in range(len(right)):
            np.dot(some, right[k], values)
            _single_exponentials(values, power, bits)
            sums += np.dot(values, coefficients[k])
