"""Products of few columns with each other, rows turned into lines that stay in the nearest cache.

    P = [√s(x − g), √s(y − g), √s]ᵀ[√s(x − g), √s(y − g), √s]

BLAS is made for wide matrices: of some ten columns it takes twice as long as the four sums that are kept in registers here.
An empty `weights` means that every row counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled

LINE = 128


@compiled(fastmath={"reassoc", "contract"})
def add_products(X: Any, beside: Any, weights: Any, guess: Any, lines: Any, out: Any) -> None:
    """out += P; `lines` are zeros, an even number of them × `LINE`, and `out` has a side of so many."""
    (n, d), m = X.shape, beside.shape[1]
    last = d + m
    for start in range(0, n, LINE):
        k = min(LINE, n - start)
        if k < LINE:
            lines[:, :] = 0.0
        for i in range(k):
            for j in range(d):
                lines[j, i] = X[start + i, j] - guess[j]
            for j in range(m):
                lines[d + j, i] = beside[start + i, j] - guess[d + j]
            lines[last, i] = 1.0
        if len(weights) > 0:
            for i in range(k):
                root = np.sqrt(weights[start + i])
                for j in range(last + 1):
                    lines[j, i] *= root
        for a in range(0, len(lines), 2):
            one, two = lines[a], lines[a + 1]
            for b in range(a, len(lines), 2):
                three, four = lines[b], lines[b + 1]
                upper, right, left, lower = 0.0, 0.0, 0.0, 0.0
                for i in range(LINE):
                    upper += one[i] * three[i]
                    right += one[i] * four[i]
                    left += two[i] * three[i]
                    lower += two[i] * four[i]
                out[a, b] += upper
                out[a, b + 1] += right
                out[a + 1, b] += left
                out[a + 1, b + 1] += lower
                if a < b:
                    out[b, a] += upper
                    out[b + 1, a] += right
                    out[b, a + 1] += left
                    out[b + 1, a + 1] += lower
