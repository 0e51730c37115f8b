"""Rows that live in other processes, as a source: what does not depend on the engine."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.arrays import spread
from separatrix.data.block import Block
from separatrix.data.dispatch import source_of
from separatrix.data.engines.partition import Failed, Reading
from separatrix.data.engines.travel import RemoteSource
from separatrix.data.source import Source

# A sample comes here whole: bytes and rows up to which it does.
_SAMPLED_BYTES, _SAMPLED_ROWS = 1 << 26, 1 << 20

Part = tuple[Any, NDArray[Any] | None, NDArray[Any] | None]


class PartitionedSource(RemoteSource):
    """Rows in partitions of known sizes."""

    shared_out = True
    _drawn: dict[int, tuple[Source, NDArray[np.intp]]]

    def _view(self) -> Self:
        """The same rows, to be read in another way."""
        view = copy(self)
        view._drawn = {}
        return view

    @abstractmethod
    def _picked(self, which: NDArray[np.intp]) -> list[Part | Failed | None]:
        """Some rows, by their numbers in order, with targets and weights: by partition, ``None`` where it has none of them."""

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Random rows from all partitions, brought here: those that an array of all rows would give, if these are few."""
        rows = max(1, min(rows, _SAMPLED_ROWS, _SAMPLED_BYTES // (8 * max(1, self.n_features))))
        if rows not in self._drawn:
            which = spread(self.n_rows or 0, rows)
            parts = []
            for part in self._picked(which):
                if isinstance(part, Failed):
                    raise part.error
                parts += [] if part is None else [part]
            drawn = source_of(_joined([X for X, _, _ in parts]))
            y, weights = (
                None if parts[0][at] is None else np.concatenate([part[at] for part in parts]) for at in (1, 2)
            )
            drawn = drawn.as_part(0, y, weights)  # type: ignore[attr-defined]  # arrays and sparse matrices are in memory
            drawn.classes = self.classes
            self._drawn[rows] = drawn, which
        return self._drawn[rows]

    def targets(self) -> NDArray[Any]:
        return np.concatenate(list(self.each(_targets)))


def _joined(parts: list[Any]) -> Any:
    return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.concatenate(parts)


def _targets(block: Block) -> NDArray[Any]:
    assert block.y is not None
    return block.y


def pick(reading: Reading, X: Any, y: Any, weights: Any, codes: Any, which: NDArray[np.intp]) -> Part | Failed | None:
    """Rows of a partition, by their numbers among all, with class codes or values and weights."""
    if isinstance(codes, Failed) or not len(which):
        return codes if isinstance(codes, Failed) else None
    try:
        rows = reading.rows(X, y, weights, codes)
        assert rows is not None, "rows are asked for where there are some"
        return rows.picked(which - reading.first)
    except Exception as error:  # told apart from errors of the storage, and raised by the process that fits
        return Failed(error)


def by_partition(readings: list[Reading], which: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Numbers of rows, in order, for each partition."""
    return np.split(which, np.searchsorted(which, [reading.first for reading in readings[1:]]))
