"""The softmax loss over rows of float32 on a CUDA device: each row read once, for few classes and columns.

By tensor cores of half precision, numbers being taken as two of these (softmax_halves.cu), where the rows have no weights;
otherwise, and where that is out of range, in single precision (softmax_rows.cu). Coefficients and their sums lie in registers,
which bounds both.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import ROUNDED_UP, stream
from separatrix.kernels.device.halves import MULTIPROCESSORS, compiled
from separatrix.kernels.device.torch_losses import DeviceSums

_LANES, _WARPS, _BLOCKS = 32, 4, 792
_IN_REGISTERS = 48
_TURNS = (
    4  # times eight rows: so many terms are added in single precision, twice what is counted at the unit of rounding
)
_UNIT = 2.0 * 2.0**-24
# By halves: registers of a lane; the unit of rounding, some times that of numbers of 22 bits for the sums that tensor cores
# truncate; powers of two that the largest coefficient and slopes are scaled to; and slopes so small that their low halves have
# no more digits than that unit counts.
_HELD, _HALVES_UNIT, _COEFFICIENTS, _SLOPES, _LEAST_SLOPE = 200, 2.0**-19, 13, 32768.0, 2.0**-21


def _fits(d: int, n_classes: int) -> bool:
    """Whether the coefficients of all classes fit into registers in single precision."""
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


@cache
def _half_kernels(d: int, n_classes: int, measured: int, quads: bool) -> tuple[Any, Any, int]:
    blocks = 3 if _held(d, n_classes) <= 96 else 2
    constants = {"D": d, "K": n_classes, "MEASURED": measured, "QUADS": int(quads), "MINB": blocks}
    module = compiled("softmax_halves.cu", constants)
    return module.get_function("softmax_pass"), module.get_function("gather"), MULTIPROCESSORS * blocks


def _held(d: int, n_classes: int) -> int:
    """Registers of a lane for rows, the next ones, and sums."""
    return -(-d // 16) * (16 + 4 * -(-n_classes // 8))


@cache
def _half_places(d: int, n_classes: int) -> tuple[Any, Any, int]:
    """Column and class of each sum of a warp, and how many there are."""
    strips, groups = -(-d // 16), -(-n_classes // 8)
    s, q, r, lane = np.ogrid[:strips, :groups, :4, :32]
    g, t, upper = lane // 4, lane % 4, r // 2
    column = 16 * s + 4 * (g // 2) + 2 * upper + g % 2 + 0 * (q + t)
    known = 8 * q + 2 * t + r % 2 + 0 * (s + g)
    return column.ravel(), known.ravel(), strips * groups * 128


def _half_sums(
    X: Any, codes: Any, columns: Any, b: Any, n_classes: int, centred: bool, units: Any
) -> DeviceSums | None:
    """The sums of `softmax_sums` by halves; ``None`` where a number was out of their range."""
    cupy, torch = import_module("cupy"), import_module("torch")
    n, d = X.shape
    measured = 0 if len(columns) == n_classes + 1 else 2 if centred else 1
    run, gather, blocks = _half_kernels(d, n_classes, measured, d % 4 == 0 and X.data_ptr() % 16 == 0)
    column, known, tiles = _half_places(d, n_classes)
    scaled = columns[:n_classes] / units
    largest = float(np.abs(scaled).max(initial=0.0))
    if not largest < np.inf:
        return None
    up = 2.0 ** np.clip(np.floor(_COEFFICIENTS - np.log2(largest)), -60, 60) if largest > 0 else 1.0
    metric = columns[n_classes + 1] if measured else np.zeros(d)
    metric = metric / np.square(units) if measured == 2 else metric
    given = np.concatenate([(scaled * up).ravel(), columns[n_classes] * units, units, metric, b])
    moved = torch.as_tensor(given.astype(np.float32)).to(X.device)
    groups, warps = -(-n_classes // 8) * 8, blocks * _WARPS
    width = tiles + groups + 5
    room = torch.empty((warps + 1, width), dtype=torch.float64, device=X.device)
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        at = np.uint64(room.data_ptr())
        rows = (np.uint64(X.data_ptr()), np.uint64(codes.data_ptr()), np.uint64(moved.data_ptr()))
        last = np.uint64(moved.data_ptr() + 4 * (len(given) - n_classes))
        run((blocks,), (_LANES * _WARPS,), (*rows, last, np.float32(1.0 / up), np.int64(n), at))
        sums = np.uint64(room.data_ptr() + 8 * warps * width)
        gather((-(-width // 32),), (256,), (at, np.int32(warps), sums))
    host = room[warps].cpu().numpy()
    if not np.isfinite(host).all():
        return None
    gradient = np.zeros((groups, -(-d // 16) * 16))
    gradient[known, column] = host[:tiles]
    loss, squares, total, steepest, longest = host[tiles + groups :].tolist()
    return DeviceSums(
        loss,
        gradient[:n_classes, :d] / (units * _SLOPES),
        host[tiles : tiles + n_classes].copy(),
        squares + n * _LEAST_SLOPE**2,
        steepest,
        total,
        ROUNDED_UP * longest,
        None,
        None,
        _HALVES_UNIT,
    )


def softmax_sums(
    X: Any, codes: Any, weights: Any, columns: Any, b: Any, n_classes: int, centred: bool, units: Any = None
) -> DeviceSums | None:
    """The sums of one pass at η = b + W(x − shift), or ``None`` for too many columns or classes.

    X, codes and weights are tensors, `columns` and b (K,) are from the host.
    `columns` (K + 1, d) are W and shift, and a last one, the metric, where the size of rows is asked for: of x, or of x − shift
    where `centred`. The gradient is of x − shift. `units` (d,), powers of two, are about one over the spread of the columns.
    """
    if units is not None and weights is None and X.is_contiguous() and _held(X.shape[1], n_classes) <= _HELD:
        quick = _half_sums(X, codes, columns, b, n_classes, centred, units)
        if quick is not None:
            return quick
    if not _fits(X.shape[1], n_classes):
        return None
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
