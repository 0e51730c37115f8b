"""Products of rows that are kept column by column: what is done to one is done to four or eight at once, however few the
columns; and the equations of as many unknowns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

# Rows whose products are added up before the next ones are looked at; sums that may be taken in any order.
_ROWS, SUMS = 512, {"reassoc", "contract"}


@compiled(error_model="numpy")
def columns_of(X: Any, centre: Any, T: Any) -> None:
    """The columns of dense rows from their centre, as the first rows of T."""
    n, d = X.shape
    for start in range(0, n, _ROWS):
        for j in range(d):
            for i in range(start, min(n, start + _ROWS)):
                T[j, i] = X[i, j] - centre[j]


@compiled(fastmath=SUMS, error_model="numpy")
def combined(T: Any, v: Any, out: Any) -> None:
    """out = Tᵀv."""
    p, n = T.shape
    out[:] = 0.0
    for j in range(0, p - 3, 4):
        a, b, c, d = v[j], v[j + 1], v[j + 2], v[j + 3]
        first, second, third, fourth = T[j], T[j + 1], T[j + 2], T[j + 3]
        for i in range(n):
            out[i] += a * first[i] + b * second[i] + c * third[i] + d * fourth[i]
    for j in range(p - p % 4, p):
        a, first = v[j], T[j]
        for i in range(n):
            out[i] += a * first[i]


@compiled(fastmath=SUMS, error_model="numpy")
def add_sums(T: Any, start: Any, x: Any, count: Any, out: Any) -> None:
    """out += the first `count` rows of T, from their entry `start` on, times x."""
    m, stop = len(x), start + len(x)
    for j in range(0, count - 3, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        first, second = T[j, start:stop], T[j + 1, start:stop]
        third, fourth = T[j + 2, start:stop], T[j + 3, start:stop]
        for i in range(m):
            a += first[i] * x[i]
            b += second[i] * x[i]
            c += third[i] * x[i]
            d += fourth[i] * x[i]
        out[j] += a
        out[j + 1] += b
        out[j + 2] += c
        out[j + 3] += d
    for j in range(count - count % 4, count):
        a, first = 0.0, T[j, start:stop]
        for i in range(m):
            a += first[i] * x[i]
        out[j] += a


@compiled(error_model="numpy")
def add_gram(T: Any, weights: Any, H: Any) -> None:
    """The lower half of T diag(weights) Tᵀ, added to H: in parts of the rows that stay in cache."""
    p, n = T.shape
    scaled = np.empty(min(n, _ROWS))
    for start in range(0, n, _ROWS):
        m = min(_ROWS, n - start)
        held = weights[start : start + m]
        for j in range(p):
            row = T[j, start : start + m]
            for i in range(m):
                scaled[i] = held[i] * row[i]
            add_sums(T, start, scaled[:m], j + 1, H[j])


@compiled()
def factor(H: Any, unit: Any, shift: Any) -> bool:
    """A factor in place of the lower half of H, with a unit diagonal and `shift` added; whether there is one."""
    p = len(unit)
    for j in range(p):
        for k in range(j + 1):
            total = H[j, k] * unit[j] * unit[k] if k < j else 1.0 + shift
            for m in range(k):
                total -= H[j, m] * H[k, m]
            if k < j:
                H[j, k] = total / H[k, k]
            elif total > 0.0:
                H[j, j] = np.sqrt(total)
            else:
                return False
    return True


@compiled()
def substitute(H: Any, unit: Any, step: Any) -> None:
    """Hs = s by what `factor` left."""
    p = len(step)
    for j in range(p):
        total = unit[j] * step[j]
        for m in range(j):
            total -= H[j, m] * step[m]
        step[j] = total / H[j, j]
    for j in range(p - 1, -1, -1):
        total = step[j]
        for m in range(j + 1, p):
            total -= H[m, j] * step[m]
        step[j] = total / H[j, j]
    for j in range(p):
        step[j] *= unit[j]
