"""Dask collections as a source: the rows stay on the workers; functions go there, and results come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from dask import delayed
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.block import Block
from separatrix.data.engines.dask_engine import DaskEngine, computed, kept_there
from separatrix.data.engines.partition import Failed, Reading
from separatrix.data.engines.remote import Part, PartitionedSource, by_partition, pick
from separatrix.data.engines.target_facts import facts_of, union
from separatrix.data.source import Engine


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
    def engine(self) -> Engine:
        return self._engine

    def __repr__(self) -> str:
        return f"DaskSource({self.n_rows} rows, {self.n_features} features, {len(self._engine.parts)} partitions)"

    @property
    def target_ndim(self) -> int:
        if self._target_ndim is None:
            raise ValueError("This model requires y to be passed, but the target y is None.")
        return self._target_ndim

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        """The same rows with class codes; without given classes the targets are looked at once for them."""
        if self.target_ndim != 1:
            raise ValueError("y should be a 1d array of labels, got a matrix of targets instead.")
        view, everything = self._view(), None
        if classes is None:
            facts = facts_of(self._engine.reading(role="labels").ask(Reading.facts))
            classes = union([fact.classes for fact in facts])
            everything = union([classes, *(fact.known for fact in facts)])
        view.classes = np.asarray(classes)
        view.all_classes = None if everything is None or len(everything) == len(view.classes) else everything
        engine = self._engine.reading(role="labels", classes=view.classes)
        view._engine = replace(engine, codes=kept_there(engine.tasks(Reading.codes), 8.0 * (self.n_rows or 0)))
        return view

    def valued(self) -> Self:
        view = self._view()
        assert self.target_ndim
        view._engine = self._engine.reading(role="values")
        facts_of(view._engine.ask(Reading.facts))
        return view

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
