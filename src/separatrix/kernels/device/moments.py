"""Class sums and products of columns of rows of float32 on a CUDA device, by moment_rows.cu: each row read once.

Tensor cores of half precision on numbers of 22 bits (halves.py): quick, and near enough where little cancels; `gram` has all
digits of double precision. Who calls decides, by what comes out (see data/device/centred.py). Measured on an H200: 50 million
rows of 100 columns in 10 classes in 11 ms, with `gram` and the class sums of cuda.py 26.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import available, stream
from separatrix.kernels.device.halves import LANES, MULTIPROCESSORS, THREADS, WARPS, compiled

_LEAST_COLUMNS, _MOST_COLUMNS, _MOST_CLASSES = 8, 128, 32
_SHARED = 227 << 10  # bytes of shared memory for the blocks of a multiprocessor


def fits(X: Any, codes: Any, n_classes: int) -> bool:
    """Whether the rows are of float32, one after the other, with as many columns and classes as stay in registers."""
    d = int(X.shape[1])
    here = X.is_cuda and X.element_size() == 4 and X.is_contiguous() and len(X) and codes.element_size() == 1
    sizes = _LEAST_COLUMNS <= d <= _MOST_COLUMNS and n_classes <= _MOST_CLASSES
    return bool(here and sizes and available())


def _tiles(d: int, n_classes: int) -> tuple[list[tuple[int, int]], int]:
    """(strip, group) of each tile in the order of moment_rows.cu, and how many groups are of columns."""
    groups = -(-d // 8)
    strips, ends = -(-groups // 2), groups + -(-n_classes // 8)
    return [
        (strip, group)
        for pair in range(0, strips, 2)
        for group in range(2 * pair, ends)
        for strip in range(pair, min(pair + 2, strips))
        if group >= 2 * strip
    ], groups


@cache
def _places(d: int, n_classes: int) -> tuple[Any, Any, int, int]:
    """Row and column of each sum of a block of threads in one matrix, its columns of numbers, and the width of the sums."""
    tiles, groups = _tiles(d, n_classes)
    lane, r = np.arange(LANES), np.arange(4)[:, None]
    strip, group = np.array(tiles).T[:, :, None, None]
    row = 16 * strip + lane // 4 + 8 * (r // 2)
    column = 8 * group + 2 * (lane % 4) + r % 2
    return row.ravel(), column.ravel(), 8 * groups, THREADS * -(-len(tiles) // WARPS) * WARPS


@cache
def _kernels(d: int, n_classes: int, quads: bool) -> tuple[Any, Any, int, int]:
    tiles, groups = _tiles(d, n_classes)
    rows, pitch = 128 if d <= 32 else 64 if d <= 64 else 32, 8 * groups + (40 - 8 * groups % 32) % 16
    shared = 8 * rows * pitch + 16 * (n_classes + 2) * -(-d // 4)
    blocks = max(1, min(3 if len(tiles) <= 48 else 2, _SHARED // (shared + 2048)))
    module = compiled("moment_rows.cu", {"D": d, "K": n_classes, "QUADS": int(quads), "MINB": blocks})
    run = module.get_function("moment_pass")
    run.max_dynamic_shared_size_bytes = shared
    return run, module.get_function("gather"), shared, blocks * MULTIPROCESSORS


def moment_sums(X: Any, codes: Any, guess: Any, unit: Any, n_classes: int) -> tuple[Any, Any]:
    """(K, d) Σ z by class and (d, d) Σ zzᵀ of z = (x − guess_k)·unit, on the host.

    Guesses (K, d) and units (d,), powers of two, are tensors beside X.
    """
    cupy, torch, (n, d) = import_module("cupy"), import_module("torch"), X.shape
    row, column, numbers, width = _places(d, n_classes)
    run, gather, shared, blocks = _kernels(d, n_classes, d % 4 == 0 and X.data_ptr() % 16 == 0)
    given = torch.cat([guess * unit, torch.zeros_like(unit)[None], unit[None]]).float().contiguous()
    room = torch.empty((blocks + 1, width), dtype=torch.float64, device=X.device)  # of the blocks, and of all
    at, sums = room.data_ptr(), room.data_ptr() + 8 * blocks * width
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        rows = (np.uint64(X.data_ptr()), np.uint64(codes.data_ptr()), np.uint64(given.data_ptr()), np.int64(n))
        run((blocks,), (THREADS,), (*rows, np.uint64(at)), shared_mem=shared)
        gather((width // 32,), (256,), (np.uint64(at), np.int32(blocks), np.uint64(sums)))
    host = room[blocks].cpu().numpy()
    total = np.zeros((-(-numbers // 16) * 16, numbers + -(-n_classes // 8) * 8))
    total[row, column] = host[: len(row)]
    upper = np.triu(total[:d, :d])
    return np.ascontiguousarray(total[:d, numbers : numbers + n_classes].T), upper + np.triu(upper, 1).T
