"""Passes that repeat: blocks as they were decoded, kept in a file that has no name.

    first pass      reads the files
    second pass     reads them again, and writes what it decoded: of text, elsewhere where `config(cache=bytes)` asks for it
    later passes    read that: nothing is parsed, unpacked or looked up, and the blocks are the same to the last bit

The file is nameless (`tempfile.TemporaryFile`): the system takes its room back when the process ends, however it ends, and no
other process sees it. `config(cache=bytes)` limits it. By default it takes at most a quarter of the room that is free on the
disk of temporary files, and is not used where less than 20 GB are free or that disk is memory. What does not fit is not kept.
Blocks are read back, not mapped: pages of a mapped file would count as memory of the process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Float, RowSums
from separatrix.data.dense import DenseBlock
from separatrix.settings import config

_SMALL_DISK, _SHARE = 20_000_000_000, 4
_IN_MEMORY = ("tmpfs", "ramfs")

Arrays = dict[str, NDArray[Any]]
"""What is kept of a block, by name; rows run along the first axis."""


def room_for_cache() -> int:
    """Bytes that kept blocks may take."""
    if config.cache is not None:
        return config.cache
    folder = tempfile.gettempdir()
    if not hasattr(os, "preadv") or _is_memory(folder):
        return 0
    free = shutil.disk_usage(folder).free
    return free // _SHARE if free >= _SMALL_DISK else 0


def _is_memory(folder: str) -> bool:
    """Whether the files of a folder lie in memory, as far as the system says."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return False
    place = Path(folder).resolve()
    kinds = {Path(where): kind for _, where, kind, *_ in mounts}
    return next((kinds[above] for above in (place, *place.parents) if above in kinds), "") in _IN_MEMORY


class PassMeter:
    """How far a pass over files is, in bytes of the files, for whoever follows it."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.follow: Callable[[int, int, int], None] | None = None
        """Called with the number of the pass, the bytes of the files read in it (about), and all."""
        self.number, self.total = 0, sum(sizes.values())
        self._sizes, self._rows = sizes, dict[str, int]()

    def begin(self) -> None:
        """A pass begins."""
        self.number += 1
        self._behind = self._seen = self._seen_bytes = 0

    def batch(self, path: str, rows: int, n_bytes: int) -> None:
        """So many more rows of a file have been read, which take so many bytes in memory."""
        self._seen, self._seen_bytes = self._seen + rows, self._seen_bytes + n_bytes
        known, size = self._rows.get(path), self._sizes[path]
        inside = self._seen_bytes if known is None else size * self._seen // max(1, known)
        self._say(self._behind + min(size - 1, inside))  # all of it only at the end

    def end(self, path: str) -> None:
        """A file has been read."""
        self._rows[path], self._behind = self._seen, self._behind + self._sizes[path]
        self._seen = self._seen_bytes = 0
        self._say(self._behind)

    def kept(self, blocks: Iterator[Block], n_rows: int) -> Iterator[Block]:
        """Blocks that stand for such a pass."""
        self.begin()
        for block in blocks:
            yield block
            self._say(min(self.total - 1, self.total * (block.start + block.n) // n_rows))
        self._say(self.total)

    def _say(self, done: int) -> None:
        if self.follow is not None:
            self.follow(self.number, done, self.total)


@contextmanager
def following(meter: PassMeter, follow: Callable[[int, int, int], None]) -> Iterator[None]:
    """While inside, `follow` hears of the passes, unless somebody does already."""
    if meter.follow is not None:
        yield
        return
    meter.follow, meter.number = follow, 0
    try:
        yield
    finally:
        meter.follow = None


class _Place(NamedTuple):
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Record(NamedTuple):
    start: int
    n: int
    arrays: dict[str, _Place]


class BlockCache:
    """The blocks of one source, once a pass has been repeated.

    Parameters
    ----------
    store : callable
        store(block) gives the arrays to keep, besides targets and weights.
    load : callable
        load(arrays) makes the rows of them again.
    sums : callable, optional
        sums(arrays, codes, weights) makes what sums up a loss without the rows, as `Block.row_sums` gives it.
    patience : int or None, default=1
        Passes before the one that writes; ``None`` to write only where the cache is asked for, after one pass.
    """

    def __init__(
        self,
        store: Callable[[Any], Arrays],
        load: Callable[[Arrays], NDArray[Any]],
        sums: Callable[[Arrays, Codes, Float | None], RowSums] | None = None,
        patience: int | None = 1,
    ) -> None:
        self.store, self.load, self.sums, self.patience = store, load, sums, patience
        self._lock, self._passes, self._writing = Lock(), 0, False
        self._written: Written | None = None

    def __reduce__(self) -> Any:
        return BlockCache, (self.store, self.load, self.sums, self.patience)  # in another process there is nothing yet

    @property
    def n_bytes(self) -> int:
        """Bytes that are kept."""
        return 0 if self._written is None else self._written.size

    @property
    def ready(self) -> bool:
        """Whether passes are served from what is kept."""
        return self._written is not None

    def pieces(
        self, read: Callable[[], Iterator[Block]], n_features: int, check: Callable[[], None], meter: PassMeter
    ) -> Iterator[Block]:
        """The blocks of the next pass: kept ones, if `check` does not refuse them, or those that `read` gives."""
        with self._lock:  # several fits may read one source at a time: one of them writes
            self._passes += 1
            patience = 1 if config.cache is not None else np.inf if self.patience is None else self.patience
            kept, early = self._written, self._passes <= patience
            writes = kept is None and not early and not self._writing and room_for_cache() > 0
            self._writing = self._writing or writes
        if kept is not None:
            check()
            blocks = (KeptBlock(self, kept, record, slice(0, record.n), n_features) for record in kept.records)
            return meter.kept(blocks, sum(record.n for record in kept.records))
        return self._keeping(read()) if writes else read()

    def _keeping(self, blocks: Iterator[Block]) -> Iterator[Block]:
        written = Written(_nameless_file(), room_for_cache())
        try:
            for block in blocks:
                written.add(block, self.store)
                yield block
            self._written = written if written.file is not None else None
        finally:  # also where the pass is broken off: the next one begins anew
            self._writing = False


class Written:
    """Blocks in a file, as far as there is room."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self._room, self.size = file, room, 0
        self.records: list[_Record] = []

    def __del__(self) -> None:
        if self.file is not None:  # said to be left open otherwise
            self.file.close()

    def add(self, block: Block, store: Callable[[Any], Arrays]) -> None:
        """Keep a block; where that is not possible, let go of all."""
        if self.file is None:
            return
        places = {}
        try:
            for name, array in {"y": block.y, "weights": block.weights, **store(block)}.items():
                if array is not None:
                    whole = np.ascontiguousarray(array.T)
                    places[name] = _Place(self.size, whole.shape, whole.dtype)
                    self.size += whole.nbytes
                    if self.size > self._room:
                        raise OSError("the room is used up")
                    _write_all(self.file, whole.data.cast("B"))
        except OSError:  # also where the disk is full
            self.file, self.size, self.records = None, 0, []
        else:
            self.records.append(_Record(block.start, block.n, places))

    def read(self, place: _Place, rows: slice) -> NDArray[Any]:
        """Some rows of an array, as it was given."""
        n, size = rows.stop - rows.start, place.dtype.itemsize
        found = np.empty((*place.shape[:-1], n), dtype=place.dtype)
        if n == place.shape[-1]:
            _read_all(self.file, found, place.offset)
        else:
            for at, line in enumerate(found.reshape(-1, n)):
                _read_all(self.file, line, place.offset + size * (at * place.shape[-1] + rows.start))
        return found.T


def _nameless_file() -> Any:
    try:
        return tempfile.TemporaryFile(buffering=0)  # closed when nobody refers to it any more
    except OSError:
        return None


def _write_all(file: Any, content: memoryview) -> None:
    while len(content):
        content = content[file.write(content) :]


def _read_all(file: Any, array: NDArray[Any], offset: int) -> None:
    left = array.reshape(-1).data.cast("B")
    while len(left):
        done = os.preadv(file.fileno(), [left], offset)
        if not done:
            raise OSError("the kept blocks are shorter than they were written")
        left, offset = left[done:], offset + done


class KeptBlock(DenseBlock):
    """Rows of a block that was kept; they are read when they are first looked at, by the worker that does."""

    def __init__(self, cache: BlockCache, written: Written, record: _Record, rows: slice, n_features: int) -> None:
        self._cache, self._written, self._record, self._kept_rows = cache, written, record, rows
        self.start, self._n_features = record.start + rows.start, n_features
        # Rows that were kept as they are came from where no compiled loop was worth it.
        self._scratch, self._compiled = False, "X" not in record.arrays

    @property
    def shape(self) -> tuple[int, int]:
        return self._kept_rows.stop - self._kept_rows.start, self._n_features

    def _read(self, name: str) -> Any:
        place = self._record.arrays.get(name)
        return None if place is None else self._written.read(place, self._kept_rows)

    @cached_property
    def _arrays(self) -> Arrays:
        return {name: self._read(name) for name in self._record.arrays if name not in ("y", "weights")}

    @cached_property
    def X(self) -> NDArray[Any]:  # made on demand
        """The rows."""
        return self._cache.load(self._arrays)

    @cached_property
    def y(self) -> NDArray[Any] | None:  # type: ignore[override]  # made on demand
        """Targets."""
        return self._read("y")

    @cached_property
    def weights(self) -> Float | None:  # type: ignore[override]  # made on demand
        """Weights of the rows."""
        return self._read("weights")

    def row_sums(self) -> tuple[RowSums, bool] | None:
        if self._cache.sums is None or not self._compiled or "X" in vars(self):
            return None
        return self._cache.sums(self._arrays, self.codes, self.weights), False

    def part(self, rows: slice) -> KeptBlock:
        first = self._kept_rows.start
        at = slice(first + rows.start, first + rows.stop)
        return KeptBlock(self._cache, self._written, self._record, at, self._n_features)
