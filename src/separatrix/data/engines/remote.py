"""Rows that live in other processes, as a source: what does not depend on the engine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.arrays import asked_next, spread
from separatrix.data.block import Block
from separatrix.data.dispatch import source_of
from separatrix.data.engines.partition import Failed, Reading, TargetFacts
from separatrix.data.engines.target_facts import facts_of, union
from separatrix.data.engines.travel import RemoteSource
from separatrix.data.source import Engine, Source

_SAMPLED_BYTES, _SAMPLED_ROWS = 1 << 25, 1 << 20
"""The most that a sample takes: it comes here whole, over one connection, and is solved while the workers wait."""

Part = tuple[Any, NDArray[Any] | None, NDArray[Any] | None]


class PartitionEngine(Engine, Protocol):
    """An engine whose partitions can be asked something, and be read in another way."""

    @property
    def readings(self) -> list[Reading]:
        """How each partition is read."""
        ...

    def reading(self, **change: Any) -> Self:
        """The same partitions, read in another way."""
        ...

    def coded(self, n_rows: int) -> Self:
        """The same partitions, with class codes where the engine keeps these."""
        ...

    def ask(self, question: Callable[..., Any]) -> list[Any]:
        """question(reading, X, y, weights) of every partition."""
        ...


class PartitionedSource(RemoteSource):
    """Rows in partitions of known sizes."""

    shared_out = True
    n_rows: int
    _engine: Any
    """A `PartitionEngine`, of the kind that the source is of."""
    _target_ndim: int | None
    _drawn: dict[int, tuple[Source, NDArray[np.intp]]]

    @property
    def engine(self) -> PartitionEngine:
        return self._engine

    def __repr__(self) -> str:
        kind, partitions = type(self).__name__, len(self.engine.readings)
        return f"{kind}({self.n_rows} rows, {self.n_features} features, {partitions} partitions)"

    @property
    def target_ndim(self) -> int:
        if self._target_ndim is None:
            raise ValueError("This model requires y to be passed, but the target y is None.")
        return self._target_ndim

    def _read_by(self, engine: PartitionEngine) -> Self:
        """The same rows, read in another way."""
        view = copy(self)
        view._drawn, view._engine = {}, engine
        return view

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        """The same rows with class codes; without given classes the targets are looked at once for them."""
        if self.target_ndim != 1:
            raise ValueError("y should be a 1d array of labels, got a matrix of targets instead.")
        everything = None
        if classes is None:
            facts = facts_of(self._label_facts())
            classes = union([fact.classes for fact in facts])
            everything = union([classes, *(fact.known for fact in facts)])
        classes = np.asarray(classes)
        view = self._read_by(self.engine.reading(role="labels", classes=classes).coded(self.n_rows))
        view.classes = classes
        view.all_classes = None if everything is None or len(everything) == len(classes) else everything
        return view

    def _label_facts(self) -> list[TargetFacts | Failed | None]:
        return self.engine.reading(role="labels").ask(Reading.facts)

    def valued(self) -> Self:
        assert self.target_ndim
        engine = self.engine.reading(role="values")
        facts_of(engine.ask(Reading.facts))
        return self._read_by(engine)

    @abstractmethod
    def _picked(self, which: NDArray[np.intp]) -> list[Part | Failed | None]:
        """Some rows, by their numbers in order, with targets and weights: by partition, ``None`` where it has none of them."""

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Random rows from all partitions, brought here: those that an array of all rows would give, if these are few."""
        rows = self._within_room(rows)
        if rows not in self._drawn:
            more = self._within_room(asked_next(rows, self.n_rows, self.n_features + 1))
            self._drawn.update(self._brought({rows, more}))
        return self._drawn[rows]

    def _within_room(self, rows: int) -> int:
        return max(1, min(rows, _SAMPLED_ROWS, _SAMPLED_BYTES // (8 * max(1, self.n_features))))

    def _brought(self, sizes: set[int]) -> dict[int, tuple[Source, NDArray[np.intp]]]:
        """Samples of these sizes, each a source in this process with the numbers of its rows."""
        parts, chosen = list[Part](), {rows: spread(self.n_rows, rows) for rows in sizes}
        every = np.unique(np.concatenate(list(chosen.values())))
        for part in self._picked(every):
            if isinstance(part, Failed):
                raise part.error
            parts += [] if part is None else [part]
        X = _joined([X for X, _, _ in parts])
        y, weights = (_one_below_the_other([part[at] for part in parts]) for at in (1, 2))
        found = dict[int, tuple[Source, NDArray[np.intp]]]()
        for rows, which in chosen.items():
            whole, at = len(which) == len(every), np.searchsorted(every, which)
            own = (X, y, weights) if whole else tuple(None if one is None else one[at] for one in (X, y, weights))
            drawn = source_of(own[0]).as_part(0, *own[1:])  # type: ignore[attr-defined]  # arrays and sparse matrices are in memory
            drawn.classes = self.classes
            found[rows] = drawn, which
        return found

    def targets(self) -> NDArray[Any]:
        return np.concatenate(list(self.each(_targets)))


def _joined(parts: list[Any]) -> Any:
    return sp.vstack(parts, format="csr") if any(map(sp.issparse, parts)) else np.concatenate(parts)


def _one_below_the_other(parts: list[Any]) -> NDArray[Any] | None:
    return None if parts[0] is None else np.concatenate(parts)


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
