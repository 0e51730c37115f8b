"""Guesses of class means from some rows on a CUDA device, by class_guesses.cu: one launch and one copy to the host."""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import available, stream

_ROWS, _LANES = 2048, 32  # rows that are looked at, at most
_SHARED, _WARPS = 200_000, 16  # bytes of shared memory for the sums of a block of threads, and warps of one at most


def fits(X: Any, codes: Any, n_classes: int) -> bool:
    """Whether rows of float32 are where the compiled pass can read them, with codes of a byte."""
    plain = (
        X.is_cuda
        and X.element_size() == 4
        and len(X) > 0
        and X.shape[1] > 0
        and X.stride(1) == 1
        and codes.element_size() == 1
    )
    return bool(plain and codes.is_contiguous() and _warps(n_classes) > 0 and available())


def _warps(n_classes: int) -> int:
    return min(_WARPS, (_SHARED - 4 * n_classes) // (8 * _LANES * (n_classes + 1)))


@cache
def _kernel(d: int, n_classes: int) -> tuple[Any, int, int]:
    warps = _warps(n_classes)
    head = f"constexpr int D = {d}, K = {n_classes}, WARPS = {warps};\n"
    body = resources.files(__package__).joinpath("class_guesses.cu").read_text()
    run = import_module("cupy").RawModule(code=head + body, options=("-std=c++17",)).get_function("class_guesses")
    shared = 8 * _LANES * warps * (n_classes + 1) + 4 * n_classes
    run.max_dynamic_shared_size_bytes = shared
    return run, warps, shared


def class_guesses(X: Any, codes: Any, n_classes: int) -> tuple[Any, Any, Any]:
    """(K, d) class means of some rows, NaN for a class that is not among them, (d,) their mean and variance within classes."""
    cupy, torch, (n, d) = import_module("cupy"), import_module("torch"), X.shape
    run, warps, shared = _kernel(d, n_classes)
    step = max(1, n // _ROWS)
    out = torch.empty((n_classes + 2, d), dtype=torch.float64, device=X.device)
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        rows = (np.uint64(X.data_ptr()), np.int64(X.stride(0)), np.uint64(codes.data_ptr()), np.int64(step))
        given = (*rows, np.int32(min(_ROWS, -(-n // step))), np.uint64(out.data_ptr()))
        run((-(-d // _LANES),), (_LANES * warps,), given, shared_mem=shared)
    host = out.cpu().numpy()
    return host[:n_classes], host[n_classes], host[n_classes + 1]
