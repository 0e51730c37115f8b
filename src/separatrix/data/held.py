"""Held values: what one pass leaves with its blocks for later passes over the same blocks.

    first pass       held.put(block, value)             in the function that the pass maps, where the block is
    later passes     held.of(block)                     the same value, in the same place, or made again from the block

They lie in a dictionary beside the rows where these are in this process. An engine whose blocks live elsewhere keeps the
dictionaries there, one for each partition (`elsewhere`), and puts them back under the function of the next pass; values that
were lost, or that take more room than they save time, are made again. The function that a pass maps is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Float
from separatrix.data.device.tensors import to_host

Value = TypeVar("Value")


class Held(Generic[Value]):
    """A value for every block, written by one pass and read by later ones.

    Parameters
    ----------
    make : callable, optional
        make(block) gives the value again where it is not there.
    room : int, optional
        Bytes up to which values are kept in one process; ``None`` for all, wherever values can be kept.
    """

    lasting: ClassVar[int] = 0
    """Grows with every value that is put to be kept: the pass that put it has to be repeated for it."""

    def __init__(self, make: Callable[[Block], Value] | None = None, room: int | None = None) -> None:
        self.make, self.room = make, room
        self.values: dict[int, Value] = {}
        """By the first row of the block."""
        self.elsewhere: Any = None
        """What an engine needs to find the values again that it keeps where its blocks live."""
        self._size = 0

    def put(self, block: Block, value: Value, size: int = 0) -> None:
        """Keep the value of a block, of `size` bytes, if there is room."""
        if self.make is not None and self.room is not None and self._size + size > self.room:
            return
        if self.make is None or self.room is None:
            Held.lasting += 1
        self._size += size  # of several threads one may be missed: the room is a matter of megabytes
        self.values[block.start] = value

    def of(self, block: Block) -> Value:
        """The value of a block."""
        found = self.values.get(block.start)
        if found is None:
            assert self.make is not None, "these values were never put"
            return self.make(block)
        return found

    def clear(self) -> None:
        """Let go of all values, wherever they are."""
        self.values.clear()
        self.elsewhere, self._size = None, 0


class HeldRows:
    """A factor times one number per row, which a pass put piece by piece; read for any run of these rows."""

    def __init__(self, held: Held[Float], factor: float = 1.0) -> None:
        self._held, self._factor = held, factor
        self._joined: tuple[int, Float] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_joined": None}

    def times(self, factor: float) -> HeldRows:
        """The same numbers times a factor."""
        return HeldRows(self._held, factor * self._factor)

    @property
    def here(self) -> bool:
        """Whether the numbers of all rows are in this process."""
        return bool(self._held.values)

    def of(self, block: Block) -> Float:
        """(n,) numbers of the rows of a block; made again by an engine whose workers keep nothing."""
        if self._held.make is not None and not self._held.values:
            return self._factor * self._held.make(block)
        own = self._held.values.get(block.start)
        if own is not None and not isinstance(own, np.ndarray):  # of a block whose rows are on a device, as they are
            return self._factor * own
        first, numbers = self._rows()
        return numbers[block.start - first : block.start - first + block.n]

    def at(self, rows: NDArray[np.intp]) -> Float:
        """Numbers of some rows, where they are here."""
        if len(self._held.values) == 1:  # as they are where they lie: a few of many
            (first, own), *_ = self._held.values.items()
            return self._factor * to_host(own[np.asarray(rows) - first])
        first, numbers = self._rows()
        return numbers[np.asarray(rows) - first]

    def _rows(self) -> tuple[int, Float]:
        """The first row that is here, and the numbers from it on."""
        if self._joined is None:  # two threads may both join them, to the same end
            parts = sorted(self._held.values.items())
            numbers = np.concatenate([to_host(values) for _, values in parts])
            self._joined = parts[0][0], numbers if self._factor == 1.0 else self._factor * numbers
        return self._joined
