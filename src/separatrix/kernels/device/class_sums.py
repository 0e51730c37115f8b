"""Sums of each class over rows on a CUDA device, each row read once.

few classes, rows of float32      the sums stay in registers, rows are brought by the copy engine: class_registers.cu
others                            the sums of each warp lie in shared memory: class_rows.cu
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import stream
from separatrix.kernels.device.halves import LANES, MULTIPROCESSORS

# Bytes of shared memory of a multiprocessor, for one block of threads, and for the sums of one.
_SHARED, _OF_ALL, _OF_ONE = 228 << 10, 227 << 10, 200_000
_REGISTERS = 65536  # of a multiprocessor
# Sums by registers: numbers of a lane, columns below which lanes would idle, rows of a tile, tiles of a warp on their way.
_HELD, _LEAST_COLUMNS, _TILE, _STAGES, _WARPS = 96, 24, 32, 2, 8
_BESIDE = 64  # registers of a lane for everything else


def fits(d: int, n_classes: int) -> bool:
    """Whether the sums of all classes fit into the shared memory of a block of threads."""
    return d <= 512 and n_classes <= 256 and _cut(d, n_classes)[0] <= _OF_ONE


def _padded(d: int) -> int:
    return -(-d // LANES) * LANES


def _cut(d: int, n_classes: int) -> tuple[int, int]:
    """Shared memory of a block of threads for the sums of all classes, and blocks side by side."""
    padded = _padded(d)
    width = 2 * n_classes * padded + n_classes
    shared = 8 * width + 4 * (8 * (width + width % 2) + n_classes * padded)
    return shared, max(1, min(3, _SHARED // (shared + 1024)))


def _cut_by_registers(X: Any, n_classes: int) -> tuple[int, int, int] | None:
    """The same for sums that stay in registers, and rows of a tile; ``None`` where they do not stay there."""
    d = int(X.shape[1])
    padded = _padded(d)
    held = 2 * n_classes * padded // LANES
    together = X.element_size() == 4 and X.is_contiguous() and X.data_ptr() % 16 == 0
    if not (together and held <= _HELD and d >= _LEAST_COLUMNS):
        return None
    sums = 8 * (2 * n_classes * padded + n_classes + n_classes % 2) + 4 * n_classes * padded
    tile = min(_TILE, (_OF_ALL - sums) // (4 * _WARPS * _STAGES * d) // 4 * 4)
    shared = 4 * _WARPS * _STAGES * _padded(tile * d) + sums
    side_by_side = min(_REGISTERS // (_WARPS * LANES * (held + _BESIDE)), _SHARED // (shared + 1024))
    return (shared, max(1, side_by_side), tile) if tile > 4 else None


@cache
def _kernels(d: int, n_classes: int, stored: str) -> tuple[Any, Any]:
    shared, blocks = _cut(d, n_classes)
    head = f"typedef {stored} T;\nconstexpr int D = {d}, K = {n_classes}, MINB = {blocks};\n"
    return _loaded(head, ("class_rows.cu",), shared)


@cache
def _kernels_by_registers(d: int, n_classes: int, weighted: bool, cut: tuple[int, int, int]) -> tuple[Any, Any]:
    shared, blocks, tile = cut
    head = f"constexpr int D = {d}, K = {n_classes}, WEIGHTED = {int(weighted)}, TILE = {tile}, STAGES = {_STAGES};\n"
    head += f"constexpr int WARPS = {_WARPS}, MINB = {blocks};\n"
    return _loaded(head, ("copies.cu", "class_registers.cu"), shared)


def _loaded(head: str, names: tuple[str, ...], shared: int) -> tuple[Any, Any]:
    body = "".join(resources.files(__package__).joinpath(name).read_text() for name in names)
    module = import_module("cupy").RawModule(code=head + body, options=("-std=c++17",))
    run = module.get_function("class_pass")
    run.max_dynamic_shared_size_bytes = shared
    return run, module.get_function("gather")


def class_sums(X: Any, codes: Any, weights: Any, guess: Any, n_classes: int) -> tuple[Any, Any, Any]:
    """(K,) weights, (K, d) Σ s(x − guess) and (K, d) Σ s(x − guess)² on the host; guess (K, d) is a tensor on the device."""
    cupy, torch = import_module("cupy"), import_module("torch")
    n, d = X.shape
    held = [None if a is None else a.float().contiguous() for a in (weights, guess)]
    weights_, guess_ = (np.uint64(0 if a is None else a.data_ptr()) for a in held)
    rows: tuple[Any, ...] = (np.uint64(X.data_ptr()),)
    cut = _cut_by_registers(X, n_classes)
    if cut is not None:
        run, gather = _kernels_by_registers(d, n_classes, weights is not None, cut)
        shared, blocks, threads = cut[0], MULTIPROCESSORS * cut[1], _WARPS * LANES
    else:
        run, gather = _kernels(d, n_classes, "float" if X.dtype == torch.float32 else "double")
        shared, side_by_side = _cut(d, n_classes)
        blocks, threads = 4 * MULTIPROCESSORS * side_by_side, 256
        rows += (np.int64(X.stride(0)),)
    padded = _padded(d)
    width = 2 * n_classes * padded + n_classes
    room = torch.empty((blocks + 1, width), dtype=torch.float64, device=X.device)  # of the blocks, and of all
    partial, sums = np.uint64(room.data_ptr()), np.uint64(room.data_ptr() + 8 * blocks * width)
    with cupy.cuda.Device(X.device.index), stream(cupy, torch, X.device):
        given = (*rows, np.uint64(codes.data_ptr()), weights_, guess_, np.int64(n), partial)
        run((blocks,), (threads,), given, shared_mem=shared)
        gather((-(-width // 32),), (256,), (partial, np.int32(blocks), sums))
    host = room[blocks].cpu().numpy()
    moments = host[: 2 * n_classes * padded].reshape(n_classes, padded, 2)[:, :d]
    return host[2 * n_classes * padded :].copy(), moments[:, :, 0].copy(), moments[:, :, 1].copy()
