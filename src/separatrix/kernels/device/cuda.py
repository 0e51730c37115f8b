"""CUDA C++ compiled at run time by NVRTC through CuPy, which keeps it on disk, and how each number of columns is cut.

    up to 48 columns      a warp keeps copies of 32 rows in shared memory that are on their way, a lane takes one row
    up to 1024            V columns to a lane, W warps to a row, R rows at a time

Measured on an H200, 20 GB of float32: 90 to 101 % of the speed of a plain read for 16 to 1000 columns, 80 % for 8.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.torch_losses import DeviceSums

MOST_COLUMNS = 1024
MOST_IN_ONE = 48  # columns up to which rows must follow each other without a gap
_FEW, _SHORT, _THREADS, _BLOCKS = 48, 16, 256, 1584
_RUNNING = 200_000  # bytes of shared memory for copies that are on their way
_SUMS, _REST = 5, 7
# Hopper and what came after it for data centres: the compute capability, times ten, from which tensor cores multiply sixteen
# columns in double precision, and shared memory that a block of threads may have. On others PyTorch makes the same sums.
_CAPABILITY, _SHARED_BY_ONE = 90, 227 << 10
# The losses of linear_rows.cu.
LOSSES = {"logistic": 0, "squared_hinge": 1, "smoothed_hinge": 2}
# The unit of rounding in the arithmetic of a row.
_UNIT = {"float": 2.0**-24, "double": 2.0**-52}
# The largest row is a bound, and was measured in single precision about a rounded centre.
ROUNDED_UP = 1.01


FORCED: str | None = None
"""The compiler to use, "cuda", "triton" or "torch", whatever is there: see engine.py."""


def available() -> bool:
    """Whether CuPy is there to compile for a device that has what the kernels take, and is to be used."""
    return FORCED in (None, "cuda") and _found()


@cache
def _found() -> bool:
    try:
        cupy = import_module("cupy")
    except ImportError:
        return False
    if not cupy.cuda.is_available():
        return False
    device = cupy.cuda.Device()
    enough = device.attributes.get("MaxSharedMemoryPerBlockOptin", _SHARED_BY_ONE) >= _SHARED_BY_ONE
    return int(device.compute_capability) >= _CAPABILITY and enough


def by_warp_groups() -> bool:
    """Whether the device is of the one generation whose warp groups multiply together, beside what the kernels take."""
    return available() and int(import_module("cupy").cuda.Device().compute_capability) == _CAPABILITY


def cut(d: int, size: int, measured: bool = False, widened: bool = False, aligned: bool = False) -> dict[str, int]:
    """How rows of d columns are shared out, in arithmetic of numbers of `size` bytes: the constants of linear_rows.cu.

    Rows that are `measured` too need more registers, with too few of which a pass takes half as long again; rows whose numbers
    are `widened` as they are used need fewer. Short rows that are `aligned` to sixteen bytes are loaded without a detour.
    """
    if aligned and size == 4 and d % 4 == 0 and d <= _SHORT:
        return {"FEW": 2, "MINB": 2 if d <= 8 else 1, "EACH": 4, "STAGES": 0, "W": 1, "V": 1, "R": 8}
    if d <= (_FEW if size == 4 else _FEW // 2):
        blocks = 4 if d <= 8 else 3 if d <= 16 else 2 if d <= 32 else 1
        blocks = max(1, blocks // (size // 4))
        stage = _THREADS * (d | 1) * size
        return {
            "FEW": 1,
            "MINB": blocks,
            "EACH": 1,
            "STAGES": max(2, min(4, _RUNNING // (stage * blocks))),
            "W": 1,
            "V": 1,
            "R": 8,
        }
    warps = next(w for w in (1, 2, 4, 8) if d <= (320 if size == 4 and w == 1 else 128 * w) or w == 8)
    columns = -(-d // (32 * warps))
    rows = 16 if columns <= 2 else 8 if columns <= 4 else 4
    return {
        "FEW": 0,
        "MINB": 3 if size == 4 and columns <= 4 and not measured else 2,
        "EACH": 1,
        "STAGES": 2,
        "W": warps,
        "V": columns,
        "R": rows if size == 4 or (widened and not measured) else rows // 2,
    }


@cache
def _kernels(loss: int, d: int, stored: str, used: str, measured: int, aligned: bool) -> tuple[Any, Any, int]:
    cupy, size = import_module("cupy"), 4 if stored == used == "float" else 8
    constants = cut(d, size, measured > 0, stored != used, aligned)
    few = constants.pop("FEW")
    values = ", ".join(f"{name} = {value}" for name, value in constants.items())
    head = f"#define FEW {few}\ntypedef {stored} T;\ntypedef {used} F;\n"
    head += f"constexpr int LOSS = {loss}, D = {d}, {values}, MEASURED = {measured};\n"
    body = resources.files(__package__).joinpath("linear_rows.cu").read_text()
    module = cupy.RawModule(code=head + body, options=("-std=c++17",))
    run, gather = module.get_function("linear_pass"), module.get_function("gather")
    shared = constants["STAGES"] * _THREADS * (d | 1) * (4 if stored == "float" else 8) if few == 1 else 0
    if shared > 48 << 10:
        run.max_dynamic_shared_size_bytes = shared
    return run, gather, shared


def stream(cupy: Any, torch: Any, device: Any) -> Any:
    """PyTorch's current stream, for CuPy: kernels run after what was asked for before them."""
    place = torch.cuda.current_stream(device).cuda_stream
    return cupy.cuda.ExternalStream(place) if place else cupy.cuda.Stream.null


def linear_sums(
    kind: str,
    X: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    columns: Any,
    b: float,
    centred: bool,
    keep: bool,
    precise: bool,
    width: float = 0.0,
) -> DeviceSums:
    """The sums of one pass at η = o + b + wᵀ(x − shift); arrays are tensors on the device of X but `columns`, from the host.

    `columns` are w, shift and, where the size of rows is asked for, the metric, which measures x, or x − shift where `centred`.
    The gradient is of x − shift. The arithmetic is that of X, or of double precision where `precise`; `width` is that of a
    rounded kink.
    """
    cupy, torch = import_module("cupy"), import_module("torch")
    n, d = X.shape
    stored = "float" if X.dtype == torch.float32 else "double"
    used = "double" if precise else stored
    measured = 0 if len(columns) == 2 else 2 if centred else 1
    run, gather, shared = _kernels(LOSSES[kind], d, stored, used, measured, X.data_ptr() % 16 == 0)
    kind, real = (torch.float32, np.float32) if used == "float" else (torch.float64, np.float64)
    held = [None if a is None else a.to(kind).contiguous() for a in (weights, offset)]
    weights_, offset_ = (np.uint64(0 if a is None else a.data_ptr()) for a in held)
    moved = torch.as_tensor(columns.astype(real)).to(X.device)  # one copy for all
    begin, size = moved.data_ptr(), d * moved.element_size()
    w_, shift_, metric_ = (np.uint64(begin + k * size if k < len(columns) else 0) for k in range(3))
    each = d + _REST
    room = torch.empty((_BLOCKS + 1, each), dtype=torch.float64, device=X.device)  # of the blocks, and of all
    partial, sums = np.uint64(room.data_ptr()), np.uint64(room.data_ptr() + 8 * _BLOCKS * each)
    bends = torch.empty(n, dtype=kind, device=X.device) if keep else None
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        rows = (np.uint64(X.data_ptr()), np.int64(X.stride(0)), np.uint64(codes.data_ptr()), weights_, offset_)
        given = (w_, shift_, metric_, real(b), real(width), np.int64(n), partial)
        run(
            (_BLOCKS,),
            (_THREADS,),
            (*rows, *given, np.uint64(0 if bends is None else bends.data_ptr())),
            shared_mem=shared,
        )
        gather((each,), (256,), (partial, np.int32(_BLOCKS), np.int32(each), np.int32(d + _SUMS), sums))
    host = room[_BLOCKS].cpu().numpy()
    loss, slopes, squares, total, bend, steepest, largest = host[d:].tolist()
    return DeviceSums(
        loss,
        host[None, :d].copy(),
        np.array([slopes]),
        squares,
        steepest,
        total,
        ROUNDED_UP * largest,
        None if bends is None else bends.double()[:, None],
        np.array([[bend]]) if keep else None,
        _UNIT[used],
    )


@cache
def _copy(piece: str) -> Any:
    body = resources.files(__package__).joinpath("runs_of_rows.cu").read_text()
    module = import_module("cupy").RawModule(code=f"typedef {piece} U;\n" + body, options=("-std=c++17",))
    return module.get_function("take_runs")


def take_runs(X: Any, starts: Any, run: int) -> Any:
    """Runs of `run` rows of a tensor that begin at `starts` (a tensor beside it), as one tensor."""
    torch = import_module("torch")
    if not (X.is_cuda and X.is_contiguous() and X.numel() and len(starts) and available()):
        return X[(starts[:, None] + torch.arange(run, device=X.device)).ravel()]
    cupy, d = import_module("cupy"), int(X.shape[1])
    out = torch.empty((len(starts) * run, d), dtype=X.dtype, device=X.device)
    size = d * X.element_size()
    piece, width = ("uint4", 16) if size % 16 == 0 and X.data_ptr() % 16 == 0 else ("unsigned int", 4)
    given = (
        np.uint64(X.data_ptr()),
        np.uint64(starts.data_ptr()),
        np.int64(size // width),
        np.int64(run * size // width),
    )
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        _copy(piece)((len(starts),), (_THREADS,), (*given, np.uint64(out.data_ptr())))
    return out


@cache
def _label_kernel(n_classes: int) -> tuple[Any, int]:
    threads = 64 if n_classes > 64 else 256
    head = f"constexpr int K = {n_classes}, THREADS = {threads};\n"
    body = resources.files(__package__).joinpath("label_counts.cu").read_text()
    run = import_module("cupy").RawModule(code=head + body, options=("-std=c++17",)).get_function("count_labels")
    run.max_dynamic_shared_size_bytes = 4 * n_classes * threads
    return run, threads


def label_counts(codes: Any, n_classes: int) -> Any:
    """(K,) how many of the labels, a tensor of bytes, are of each class, on the host."""
    cupy, torch = import_module("cupy"), import_module("torch")
    run, threads = _label_kernel(n_classes)
    counts = torch.zeros(n_classes, dtype=torch.int64, device=codes.device)
    with cupy.cuda.Device(codes.device.index), stream(cupy, torch, codes.device):
        given = (np.uint64(codes.data_ptr()), np.int64(len(codes)), np.uint64(counts.data_ptr()))
        run((264,), (threads,), given, shared_mem=4 * n_classes * threads)
    return counts.cpu().numpy()
