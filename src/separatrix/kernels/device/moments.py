"""Class sums and products of columns of rows of float32 on a CUDA device, by moment_rows.cu: each row read once.

Tensor cores of half precision on numbers of 22 bits (halves.py): quick, and near enough where little cancels; `gram` has all
digits of double precision. Who calls decides, by what comes out (see data/device/centred.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import by_warp_groups, stream
from separatrix.kernels.device.halves import MULTIPROCESSORS

_LEAST_COLUMNS, _MOST_GROUPS, _MOST_CLASSES = 8, 16, 32  # groups of eight columns, and of as many classes
_STAGES, _BATCH, _THREADS = 5, 4, 128
# Registers of threads that multiply and that take rows apart, by the number of warp groups that multiply.
_REGISTERS = {1: {"MANY": 240, "FEW": 128}, 2: {"MANY": 200, "FEW": 56}}
_SHARED = 227 << 10  # bytes of shared memory of a block of threads


def _groups(d: int, n_classes: int) -> tuple[int, int, int]:
    """Groups of eight columns, of eight classes, and how many warp groups share them out."""
    groups, classes = -(-d // 8), -(-n_classes // 8)
    return groups, classes, -(-(groups + classes) // 8)


def fits(X: Any, codes: Any, n_classes: int) -> bool:
    """Whether the rows are of float32, one after the other, with as many columns and classes as stay in registers."""
    d = int(X.shape[1])
    here = X.is_cuda and X.element_size() == 4 and X.is_contiguous() and (X.data_ptr() | codes.data_ptr()) % 16 == 0
    few = d >= _LEAST_COLUMNS and n_classes <= _MOST_CLASSES and sum(_groups(d, n_classes)[:2]) <= _MOST_GROUPS
    return bool(here and len(X) and few and codes.element_size() == 1 and by_warp_groups())


def _product(columns: int) -> str:
    """`multiply`: 64 columns of one operand with all of another, of sixteen rows, onto the sums of a warp group or zeros."""
    held = columns // 2
    names, places = ", ".join(f"%{i}" for i in range(held)), ", ".join(f'"+f"(c[{i}])' for i in range(held))
    shape = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.f16.f16"
    given = f"{{{names}}}, %{held}, %{held + 1}, onto, 1, 1, 1, 1"
    return (
        "__device__ __forceinline__ void multiply"
        f"(float (&c)[{held}], unsigned long long a, unsigned long long b, int onto) {{\n"
        f'    asm volatile("{{.reg .pred onto; setp.ne.b32 onto, %{held + 2}, 0; {shape} {given};}}"\n'
        f'        : {places} : "l"(a), "l"(b), "r"(onto));\n}}\n'
    )


def _cut(d: int, n_classes: int, apart: bool) -> tuple[dict[str, int], int]:
    """How many rows are in a tile, how many tiles are on their way and have operands, and what shared memory that takes.

    Tiles are large where they fit, since threads wait for each other once for each.
    """
    groups, classes, parts = _groups(d, n_classes)
    table = 4 * (n_classes + 2 if apart else 2) * (8 * groups + 4)
    for chunks, turns in ((4 if d <= 32 else 2, 2), (1, 3)):
        rows = 64 * chunks
        operands = turns * (16 * rows + 16) * max(classes + 2 * groups, 8 * parts)
        room = 4 * (rows * d + 8)
        stages = min(_STAGES, (_SHARED - operands - table - 2048) // (room + rows))
        if stages >= turns:
            break
    return {"CHUNKS": chunks, "STAGES": stages, "TURNS": turns}, operands + stages * room + table


@cache
def _kernels(d: int, n_classes: int, apart: bool) -> tuple[Any, Any, int]:
    groups, classes, parts = _groups(d, n_classes)
    cut, shared = _cut(d, n_classes, apart)
    constants = {"D": d, "K": n_classes, "APART": int(apart), "GROUPS": groups, "CLASS_GROUPS": classes}
    constants |= {"PARTS": parts, "BATCH": _BATCH} | cut | _REGISTERS[parts]
    head = "constexpr int " + ", ".join(f"{key} = {value}" for key, value in constants.items()) + ";\n"
    files = resources.files(__package__)
    body = "".join(files.joinpath(part).read_text() for part in ("copies.cu", "split.cu", "moment_rows.cu"))
    head += _product(8 * groups)
    # The architecture with what it has beyond others of its generation: products by warp groups.
    module = import_module("cupy").RawModule(code=head + body, options=("-std=c++17", "-arch=sm_90a"))
    run = module.get_function("moment_pass")
    run.max_dynamic_shared_size_bytes = shared
    return run, module.get_function("gather"), shared


def moment_sums(X: Any, codes: Any, guess: Any, units: Any, n_classes: int) -> Callable[[], tuple[Any, Any]]:
    """(K, d) Σ z by class and (d, d) Σ zzᵀ of z = (x − guess_k)·unit, once asked for; only X and codes are tensors.

    Guesses are (K, d), or (1, d) one for all classes; units (d,) are powers of two.
    """
    cupy, torch, (n, d) = import_module("cupy"), import_module("torch"), X.shape
    groups, classes, parts = _groups(d, n_classes)
    apart = len(guess) > 1
    run, gather, shared = _kernels(d, n_classes, apart)
    given = np.concatenate([guess * units, np.zeros((int(apart), d)), units[None]]).astype(np.float32)
    moved = torch.as_tensor(given).to(X.device)
    width = parts * 4 * groups * _THREADS
    room = torch.empty((MULTIPROCESSORS + 1, width), dtype=torch.float64, device=X.device)  # of the blocks, and of all
    at, sums = room.data_ptr(), room.data_ptr() + 8 * MULTIPROCESSORS * width
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        rows = (np.uint64(X.data_ptr()), np.uint64(codes.data_ptr()), np.uint64(moved.data_ptr()), np.int64(n))
        run((MULTIPROCESSORS,), ((2 + parts) * _THREADS,), (*rows, np.uint64(at)), shared_mem=shared)
        gather((width // 32,), (256,), (np.uint64(at), np.int32(MULTIPROCESSORS), np.uint64(sums)))
    host = torch.empty(width, dtype=torch.float64, pin_memory=True)
    host.copy_(room[MULTIPROCESSORS], non_blocking=True)
    made = torch.cuda.current_stream(X.device).record_event()

    def result() -> tuple[Any, Any]:
        made.synchronize()
        total = host.numpy().reshape(64 * parts, 8 * groups)
        half = total[8 * classes : 8 * classes + d, :d]
        return total[:n_classes, :d].copy(), half + half.T

    return result
