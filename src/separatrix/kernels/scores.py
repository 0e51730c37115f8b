"""Products of dense rows with a few vectors: every row is read once, by four of them at a time.

    out_ik = w_kᵀx_i

Only the order within a dot product is left to the compiler. BLAS packs the rows first, which costs more than few products.
"""

from __future__ import annotations

from typing import Any

from separatrix.kernels import compiled


@compiled(fastmath={"reassoc", "contract"})
def few_products(X: Any, W: Any, out: Any) -> None:
    """out = X Wᵀ."""
    K, d = W.shape
    for i in range(X.shape[0]):
        k = 0
        while k + 4 <= K:
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for j in range(d):
                x = X[i, j]
                s0 += W[k, j] * x
                s1 += W[k + 1, j] * x
                s2 += W[k + 2, j] * x
                s3 += W[k + 3, j] * x
            out[i, k], out[i, k + 1], out[i, k + 2], out[i, k + 3] = s0, s1, s2, s3
            k += 4
        while k < K:
            s0 = 0.0
            for j in range(d):
                s0 += W[k, j] * X[i, j]
            out[i, k] = s0
            k += 1
