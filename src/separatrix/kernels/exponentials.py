"""Exponentials and logarithms that a compiled loop takes of many numbers side by side.

    e^x = 2ⁿ e^r,   n = round(x/log 2),   |r| ≤ ½ log 2                    e^r by its series up to r¹³/13!
    log(1 + u) = 2 artanh s,   s = u/(2 + u);   for u > √2 − 1 log 2 more,   s = (u − 1)/(u + 3)      s² ≤ 0.0295, up to s²¹/21

The library's functions take one number at a time, and a loop that calls them is not vectorised. These are within one unit of
rounding of e^x and two of log(1 + u). They have no `reassoc`: the rounding of x/log 2 is a sum and a difference.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # numba brings it, without types
from numba import types
from numba.extending import intrinsic

from separatrix.kernels import compiled

_LOG2, _PER_LOG2 = math.log(2.0), 1.0 / math.log(2.0)
# log 2 in two parts, of which the first times an integer below 2¹¹ is exact.
_HIGH = 6.93147180369123816490e-01
_LOW = 1.90821492927058770002e-10
_TO_INTEGER = 1.5 * 2.0**52
# Below it the exponential has no normal number; it is 0 there.
_LEAST = -708.0
_FAR = math.sqrt(2.0) - 1.0
_ONE, _FRACTION = 0x3FF0000000000000, 0x000FFFFFFFFFFFFF  # the bits of 1.0, and those of a fraction
_INTEGER = 0x4338000000000000  # the bits of _TO_INTEGER
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1.0 / math.factorial(k) for k in range(2, 14))
_L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10 = (1.0 / (2 * k + 1) for k in range(1, 11))

# In single precision, by 8 terms.
_S_PER_LOG2, _S_TO_INTEGER, _S_LEAST = np.float32(_PER_LOG2), np.float32(1.5 * 2.0**23), np.float32(-87.0)
_S_HIGH, _S_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_S1, _S2, _S3, _S4, _S5, _S6, _S7 = (np.float32(1.0 / math.factorial(k)) for k in range(1, 8))


_as_bits: Any = intrinsic  # its type is that of the generator, not of what is called


@_as_bits
def _bits(typing_context: Any, x: Any) -> Any:
    """The bits of a double, as an integer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@_as_bits
def _of_bits(typing_context: Any, n: Any) -> Any:
    """The double with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@_as_bits
def _single_times_power(typing_context: Any, x: Any, shifted: Any) -> Any:
    """x·2ⁿ in single precision, n being in the last bits of `shifted`: moved to the exponent's place and added to x's bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, power = (builder.bitcast(argument, ir.IntType(32)) for argument in arguments)
        return builder.bitcast(builder.add(bits, builder.shl(power, ir.IntType(32)(23))), ir.FloatType())

    return types.float32(types.float32, types.float32), generate


@compiled(fastmath={"contract"})
def falling_exponential(x: Any) -> Any:
    """e^x for x ≤ 0; NaN of NaN."""
    shifted = x * _PER_LOG2 + _TO_INTEGER  # its last bits are n
    n = shifted - _TO_INTEGER
    r = (x - n * _HIGH) - n * _LOW
    p = ((((_E13 * r + _E12) * r + _E11) * r + _E10) * r + _E9) * r + _E8
    p = ((((((p * r + _E7) * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _E2) * (r * r) + r
    power = _of_bits((_bits(shifted) + 1023) << 52)
    return 0.0 if x < _LEAST else (1.0 + p) * power


@compiled(fastmath={"contract"}, error_model="numpy")
def falling_exponentials(values: Any) -> None:
    """The same of the values (n,) in their place; they may be above 0 by as much as rounding."""
    for j in range(len(values)):
        values[j] = falling_exponential(values[j])


@compiled(fastmath={"contract"}, error_model="numpy")
def single_falling_exponentials(values: Any) -> None:
    """The same in single precision, of numbers."""
    for j in range(len(values)):
        x = max(values[j], _S_LEAST)
        shifted = x * _S_PER_LOG2 + _S_TO_INTEGER
        n = shifted - _S_TO_INTEGER
        r = x - n * _S_HIGH - n * _S_LOW
        series = _S1 + r * (_S1 + r * (_S2 + r * (_S3 + r * (_S4 + r * (_S5 + r * (_S6 + r * _S7))))))
        values[j] = _single_times_power(series, shifted) if x > _S_LEAST else np.float32(0.0)


@compiled(fastmath={"contract"})
def log_one_plus(u: Any) -> Any:
    """log(1 + u) for 0 ≤ u ≤ 1."""
    far = u > _FAR
    s = (u - 1.0 if far else u) / (u + 3.0 if far else u + 2.0)
    z = s * s
    p = ((((_L10 * z + _L9) * z + _L8) * z + _L7) * z + _L6) * z + _L5
    p = (((p * z + _L4) * z + _L3) * z + _L2) * z + _L1
    return 2.0 * (s + s * (z * p)) + (_LOG2 if far else 0.0)


@compiled(fastmath={"contract"}, error_model="numpy")
def log_one_plus_many(u: Any) -> Any:
    """log(1 + u) for any u ≥ 0."""
    near = log_one_plus(min(u, 1.0))
    bits = _bits(1.0 + u)
    power = _of_bits(((bits >> 52) - 1023) + _INTEGER) - _TO_INTEGER
    far = power * _LOG2 + log_one_plus(_of_bits((bits & _FRACTION) | _ONE) - 1.0)
    return near if u <= 1.0 else far
