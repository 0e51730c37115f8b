"""Dask collections as a source: the rows stay on the workers; functions go there, and results come back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask import delayed
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.block import Block
from separatrix.data.engines.dask_engine import DaskEngine, computed
from separatrix.data.engines.partition import Failed, Reading
from separatrix.data.engines.remote import Part, PartitionedSource, by_partition, pick


class DaskSource(PartitionedSource):
    """Rows of Dask partitions with their targets and weights.

    They are kept in the memory of the workers for as long as the source is there, if they take less than 40 % of it (20 %
    of this machine's, without a cluster); otherwise every pass has them computed or read again.
    """

    place = "dask"

    def __init__(
        self,
        engine: DaskEngine,
        shape: tuple[int, int],
        dtype: Any,
        feature_names: NDArray[Any] | None,
        target_ndim: int | None,
        size: float,
    ) -> None:
        self.n_rows, self.n_features = shape
        self.dtype, self.feature_names, self._target_ndim = np.dtype(dtype), feature_names, target_ndim
        self._engine, self._drawn = engine.kept(size), {}

    @property
    def identity(self) -> list[Any]:
        return ["dask", self.n_rows, self.n_features, *self._engine.identity]

    def blocks(self) -> Iterator[Block]:
        """The rows, brought here one partition after another: for what cannot be computed where they are."""
        for part in self._local():
            yield from part.blocks()

    def _local(self) -> Iterator[MemorySource]:
        engine, read = self._engine, delayed(Reading.rows, pure=False)
        for reading, part, codes in zip(engine.readings, engine.parts, engine.codes, strict=True):
            (found,), _ = computed([read(reading, *part, codes)])
            if found is not None:
                yield found

    def matrix(self) -> Any:
        parts = [part.matrix() for part in self._local()]
        if any(map(sp.issparse, parts)):
            return sp.vstack(parts, format="csr")
        return np.concatenate(parts) if parts else np.empty((0, self.n_features))

    def _picked(self, which: NDArray[np.intp]) -> list[Part | Failed | None]:
        engine, picked = self._engine, delayed(pick, pure=False)
        given = zip(engine.readings, engine.parts, engine.codes, by_partition(engine.readings, which), strict=True)
        return computed([picked(reading, *part, codes, own) for reading, part, codes, own in given if len(own)])[0]
