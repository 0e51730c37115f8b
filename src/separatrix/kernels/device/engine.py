"""Which compiler makes the loops over rows on a device: CUDA C++ through CuPy, else PyTorch's own operations.

Triton is taken where it is asked for: on an H200 its loop took 375 ms for 20 million rows of 100 columns, PyTorch 39, CUDA 2.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from separatrix.kernels.device import cuda, triton_rows
from separatrix.kernels.device.torch_losses import DeviceSums


def engine() -> str:
    """``"cuda"``, ``"triton"`` or ``"torch"``: what is there, or what `cuda.FORCED` says."""
    if cuda.FORCED is not None:
        return cuda.FORCED
    return "cuda" if cuda.available() else "torch"


def linear_kernel(kind: str, X: Any, codes: Any) -> Callable[..., DeviceSums] | None:
    """The loop that makes the sums of a loss of two classes over X; ``None`` for PyTorch's operations."""
    n, d = X.shape
    if kind not in cuda.LOSSES or not X.is_cuda or not n or not 0 < d <= cuda.MOST_COLUMNS:
        return None
    if codes.element_size() != 1 or engine() == "torch":
        return None
    if engine() == "triton":
        return triton_rows.linear_sums
    return cuda.linear_sums if X.stride(1) == 1 and (X.stride(0) == d or d > cuda.MOST_IN_ONE) else None
