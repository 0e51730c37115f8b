"""The softmax loss over rows of float32 on a CUDA device, by softmax_rows.cu: each row read once, for few classes and columns.

Coefficients and their sums lie in registers, (classes) × (columns of a lane) of each, which is what bounds both.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import ROUNDED_UP, stream
from separatrix.kernels.device.torch_losses import DeviceSums

_LANES, _WARPS, _BLOCKS = 32, 4, 792
_IN_REGISTERS = 48
_TURNS = (
    4  # times eight rows: so many terms are added in single precision, twice what is counted at the unit of rounding
)
_UNIT = 2.0 * 2.0**-24


def fits(d: int, n_classes: int) -> bool:
    """Whether the coefficients of all classes fit into registers."""
    return n_classes * -(-d // _LANES) <= _IN_REGISTERS and n_classes <= 24


@cache
def _kernels(d: int, n_classes: int, measured: int) -> tuple[Any, Any, int]:
    cupy = import_module("cupy")
    head = f"constexpr int D = {d}, K = {n_classes}, MEASURED = {measured}, TURNS = {_TURNS};\n"
    body = resources.files(__package__).joinpath("softmax_rows.cu").read_text()
    module = cupy.RawModule(code=head + body, options=("-std=c++17",))
    run, shared = module.get_function("softmax_pass"), 8 * _WARPS * n_classes * _LANES * -(-d // _LANES)
    if shared > 32 << 10:
        run.max_dynamic_shared_size_bytes = shared
    return run, module.get_function("gather"), shared


def softmax_sums(X: Any, codes: Any, weights: Any, columns: Any, b: Any, n_classes: int, centred: bool) -> DeviceSums:
    """The sums of one pass at η = b + W(x − shift); X, codes and weights are tensors, `columns` and b (K,) are from the host.

    `columns` (K + 1, d) are W and shift, and a last one, the metric, where the size of rows is asked for: of x, or of x − shift
    where `centred`. The gradient is of x − shift.
    """
    cupy, torch = import_module("cupy"), import_module("torch")
    n, d = X.shape
    measured = 0 if len(columns) == n_classes + 1 else 2 if centred else 1
    run, gather, shared = _kernels(d, n_classes, measured)
    width = n_classes * d + n_classes + 5
    held = None if weights is None else weights.float().contiguous()
    moved = torch.as_tensor(np.concatenate([columns.ravel(), b]).astype(np.float32)).to(X.device)
    partial = torch.empty((_BLOCKS, width), dtype=torch.float64, device=X.device)
    out = torch.empty(width, dtype=torch.float64, device=X.device)
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        rows = (np.uint64(X.data_ptr()), np.int64(X.stride(0)), np.uint64(codes.data_ptr()))
        given = (np.uint64(0 if held is None else held.data_ptr()), np.uint64(moved.data_ptr()))
        last = (np.uint64(moved[columns.size :].data_ptr()), np.int64(n), np.uint64(partial.data_ptr()))
        run((_BLOCKS,), (_LANES * _WARPS,), (*rows, *given, *last), shared_mem=shared)
        parts = (np.uint64(partial.data_ptr()), np.int32(_BLOCKS), np.uint64(out.data_ptr()))
        gather((-(-width // 32),), (256,), parts)
    host = out.cpu().numpy()
    gradient, slopes = host[: n_classes * d].reshape(n_classes, d).copy(), host[n_classes * d :][:n_classes].copy()
    loss, squares, total, steepest, largest = host[n_classes * (d + 1) :].tolist()
    return DeviceSums(loss, gradient, slopes, squares, steepest, total, ROUNDED_UP * largest, None, None, _UNIT)
