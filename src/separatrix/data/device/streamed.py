"""Rows in the memory of the host that a device reads piece by piece: arrays larger than its own memory.

Each pass copies a piece after the other to the device. A few threads, each with a stream of its own, take turns: while one
waits for its copy the device computes on the pieces of the others. The memory of the array is registered with the driver as
it is, so that copies run at the speed of the bus and no second copy is kept on the host.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.block import Block, Float
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints
from separatrix.data.device.source import DeviceSource, Spread, spread_runs
from separatrix.data.device.tensors import pytorch
from separatrix.data.source import Source
from separatrix.data.workers import share, threads_here
from separatrix.kernels.device import cuda
from separatrix.settings import one_blas_thread

# Bytes of a piece: long enough that launches do not count, short enough for several in the device's memory.
PIECE = 128 << 20
# Pieces that are on the device at a time.
_AT_A_TIME = 3
# The share of the device's free memory that rows may take to lie there as a whole.
_SHARE = 0.6
_SOME = 4096
_READ_ONLY = 8  # cudaHostRegisterReadOnly
_registered: set[tuple[int, int]] = set()


def too_large(n_bytes: int, device: str) -> bool:
    """Whether rows of so many bytes had better be read piece by piece."""
    try:
        torch = pytorch()
        place = torch.device(device)
    except (ImportError, RuntimeError):  # what is wrong is said where the rows are moved
        return False
    if place.type != "cuda" or not torch.cuda.is_available():
        return False
    free, _ = torch.cuda.mem_get_info(place)
    return n_bytes > _SHARE * free


class StreamedSource(MemorySource):
    """A NumPy array whose rows are summed on a device, a piece at a time."""

    shared_out = True

    def __init__(self, X: NDArray[Any], y: NDArray[Any] | None, weights: Float | None, device: str) -> None:
        super().__init__((X.shape[0], X.shape[1]), y, weights)
        self._X = X
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        self.device = self.place = str(pytorch().device(device))
        self._rows_per_block = max(1, PIECE // (self.dtype.itemsize * max(1, X.shape[1])))
        self._precise = False
        some = np.asarray(X[:: max(1, len(X) // _SOME)][:_SOME], dtype=np.float64)
        means = some.mean(axis=0) if len(some) else np.zeros(X.shape[1])
        spreads = some.std(axis=0) if len(some) else np.zeros(X.shape[1])
        self._hints = Hints.known(np.where(np.isfinite(means), means, 0.0), spreads)
        self._seen_by: StreamedSource | None = None
        self._registered = _register(X, self.device)

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        torch = pytorch()
        numbers = torch.as_tensor(np.ascontiguousarray(self._X[rows], dtype=self.dtype))
        there = numbers.to(self.device, non_blocking=self._registered)
        block = DeviceBlock(there, y, weights, rows.start)
        block.near(self._hints)
        block.precise = self._precise
        return block

    def _slices(self) -> Iterator[slice]:
        for start in range(0, self.n_rows, self._rows_per_block):
            yield slice(start, min(start + self._rows_per_block, self.n_rows))

    def one_block(self, any_order: bool = False) -> Block | None:
        return None

    def share(self, work: Callable[[int, Block], None], rows: int | None = None) -> None:
        """As everywhere, each worker in a stream of its own; the pieces are not cut again."""
        self.count_pass()

        def of_piece(at: int, rows: slice) -> None:
            with np.errstate(invalid="ignore", over="ignore"), _own_stream(self.device):
                y, weights = (None if values is None else values[rows] for values in (self._y, self._weights))
                work(at, self._block(rows, y, weights))

        with one_blas_thread():
            share(of_piece, self._slices(), min(_AT_A_TIME, threads_here()))

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Rows in runs, as a source on the device."""
        starts, run = spread_runs(self.n_rows, rows)
        which = np.asarray(Spread(starts, run))
        numbers = pytorch().as_tensor(np.ascontiguousarray(self._X[which], dtype=self.dtype)).to(self.device)
        drawn = DeviceSource(numbers, None, None if self._weights is None else self._weights[which])
        view = drawn if self._y is None else drawn.with_targets(self._y[which])
        view.classes = self.classes
        return view, which

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._X[which], None, None, self.device or "")

    def precise(self) -> Self:
        if self._precise or self.dtype == np.float64:
            return self
        view = copy(self)
        view._precise, view._seen_by = True, self
        return view

    def count_pass(self) -> None:
        super().count_pass()
        if self._seen_by is not None:  # a pass in double precision is one over the same rows
            self._seen_by.count_pass()

    def matrix(self) -> Any:
        return self._X


def _own_stream(device: str | None) -> AbstractContextManager[Any]:
    """A stream for one piece, where the device has streams."""
    torch = pytorch()
    if torch.device(device).type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(device)
    context: AbstractContextManager[Any] = torch.cuda.stream(stream)
    return context


def _register(X: NDArray[Any], device: str | None) -> bool:
    """Register the array's memory with the driver until it goes, so that copies need no buffer; False where that cannot be."""
    plain = X.flags.c_contiguous and X.dtype in (np.float32, np.float64)
    if pytorch().device(device).type != "cuda" or not plain or not cuda.available():
        return False
    driver, place = import_module("cupy").cuda.runtime, (X.ctypes.data, X.nbytes)
    if place not in _registered:
        try:
            driver.hostRegister(*place, 0 if X.flags.writeable else _READ_ONLY)
        except (
            driver.CUDARuntimeError
        ):  # a part of it was registered by others, or it cannot be: copies go through a buffer
            return False
        _registered.add(place)
        weakref.finalize(X, _let_go, driver, place)
    return True


def _let_go(driver: Any, place: tuple[int, int]) -> None:
    _registered.discard(place)
    driver.hostUnregister(place[0])
