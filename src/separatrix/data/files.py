"""Files as a source: Parquet and CSV, a few megabytes of rows at a time.

Only the columns asked for are decoded, and the rows are cut anew into blocks of about 4 MiB across the borders of row
groups and files: the partition depends on the rows alone, whatever the threads, the row groups or the files.

Memory: the blocks in flight (about 4 MiB each), and what a reader keeps to resume: for Parquet one dictionary page and
one data page a column (at most 2 MiB with the usual writers) however long the row group, for CSV the text read ahead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from copy import copy
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import FEWEST, asked_next, enough_rows, rows_drawn
from separatrix.data.arrow_columns import NUMERIC, coded, decoded, kind, numbers
from separatrix.data.block import Block, Codes, Float, StoredBlock
from separatrix.data.checks import DATES, nearest_name
from separatrix.data.dense import DenseBlock
from separatrix.data.kept import Arrays, BlockCache, PassMeter, following
from separatrix.data.labels import check_weights, encode
from separatrix.data.readers import CsvReader, Names, ParquetReader, Paths, expand, index_columns, named
from separatrix.data.source import Source, rows_per_block
from separatrix.data.text_files import NO_ROWS, UnreadableFile

# Smaller than in memory: here every block in flight is memory that was not there before.
_BLOCK_BYTES = 1 << 20
# The most that a sample takes; fewer rows than these are not worth leaving out.
_SAMPLED_BYTES, _SAMPLED_ROWS = 1 << 27, 1 << 14
_SHOWN = 30  # columns that are printed


def _missing(column: Any) -> NDArray[Any]:
    """Which rows of a target are null, NaN or infinite."""
    if kind(column.type) == "text":
        return np.from_dlpack(column.is_null().cast("uint8")).astype(bool)
    return np.asarray(~np.isfinite(numbers(column)))


def _labels(values: list[Any], dtype: Any) -> NDArray[Any]:
    """Values of an Arrow column of this type as an array of labels."""
    return np.array(values, dtype=str if kind(dtype) == "text" else dtype.to_pandas_dtype())


def is_number_type(dtype: Any) -> bool:
    """Whether a column of this Arrow type can be read as numbers as it is."""
    return kind(dtype) in NUMERIC and not hasattr(dtype, "value_type")


def _stored(block: Any) -> Arrays:
    return {"X": block.X}


def _loaded(arrays: Arrays) -> NDArray[Any]:
    return arrays["X"]


def check_unchanged(path: str, then: os.stat_result) -> None:
    """Refuse a file that is not the one that was scanned."""
    now = os.stat(path)
    if (now.st_size, now.st_mtime_ns) != (then.st_size, then.st_mtime_ns):
        raise ValueError("the file has changed since it was scanned; scan it again.")


def check_files(stats: Mapping[str, os.stat_result]) -> None:
    """Refuse files of which one has changed, or is gone: what was kept of them is of other rows."""
    for path, then in stats.items():
        with named(path):
            check_unchanged(path, then)


def described_files(kind: str, files: list[str], target: Any, n_rows: int | None, columns: list[str]) -> str:
    """What a source of files prints: where its rows are, and a line for every column, the first of many."""
    where = repr(files[0]) if len(files) == 1 else f"{len(files)} files from {files[0]!r} on"
    rows = "" if n_rows is None else f"{n_rows} rows, "
    more = [f"  and {len(columns) - _SHOWN} more"] if len(columns) > _SHOWN else []
    head = f"{kind}({where}: {rows}{len(columns)} columns, target {target!r})"
    return "\n".join([head, *(f"  {column}" for column in columns[:_SHOWN]), *more])


class FileSource(Source):
    """Rows of files that share their columns. Blocks carry targets after `labelled` or `valued`, not before."""

    place = "files"

    _role = ""  # what the targets are read as: "labels", "values" or not at all
    _cache: BlockCache | None = None
    _samples: dict[int, tuple[Source, NDArray[np.intp]]]
    _block_bytes = _BLOCK_BYTES
    _room: Callable[[tuple[int, int], np.dtype[Any]], NDArray[Any]] | None = None

    def __init__(
        self,
        reader: ParquetReader | CsvReader,
        paths: Paths,
        target: Names | None,
        features: Names | None,
        weight: str | None,
    ) -> None:
        self._reader, self._files = reader, expand(paths, reader.suffix)
        self._features = [features] if isinstance(features, str) else list(features or [])
        self._target = target
        self._targets = [target] if isinstance(target, str) else list(target or [])
        self._weights = [] if weight is None else [weight]
        self._stats: dict[str, os.stat_result] = {}
        self._types: dict[str, dict[str, Any]] = {}
        self.n_rows = 0
        for path in self._files:
            with named(path):
                self._stats[path] = os.stat(path)
                schema, n_rows = reader.describe(path)
                if features is None and not self._types:
                    apart = [*self._targets, *self._weights, *index_columns(schema)]
                    self._features = [name for name in schema.names if name not in apart]
                self._types[path] = self._check(schema)
            self.n_rows = None if n_rows is None or self.n_rows is None else self.n_rows + n_rows
        self._meter = PassMeter({path: stat.st_size for path, stat in self._stats.items()})
        self.n_features = len(self._features)
        self.feature_names = np.asarray(self._features, dtype=object)
        if all(types[name] == "float32" for types in self._types.values() for name in self._features):
            self.dtype = np.dtype(np.float32)

    @property
    def identity(self) -> list[Any]:
        files = [[os.path.abspath(path), stat.st_size, stat.st_mtime_ns] for path, stat in self._stats.items()]
        return ["numbers", files, self._target, self._features, self._weights]

    def read_as(self, encoding: Any, names: NDArray[Any] | None) -> Source:
        """The columns of a model, by their names, whatever else the files hold."""
        if names is None or not set(names) <= set(self._features) or list(names) == self._features:
            return self
        view = copy(self)
        view._features, view.n_features, view.feature_names = list(names), len(names), np.asarray(names, dtype=object)
        return view

    def _check(self, schema: Any) -> dict[str, Any]:
        """The types of the columns we need, or a sentence on what is wrong with them."""
        needed = Counter([*self._features, *self._targets, *self._weights])
        present = Counter(schema.names)
        if not self._features:
            raise ValueError("no column is left for the features; name them with features=.")
        for name in needed:
            if present[name] > 1:
                raise ValueError(f"there are {present[name]} columns {name!r}; rename all but one.")
            if needed[name] > 1:
                raise ValueError(f"column {name!r} is named twice in features, target and weight; name it once.")
            if not present[name]:
                raise ValueError(f"there is no column {name!r}; {nearest_name(name, schema.names)}")
        types = {name: schema.field(name).type for name in needed}
        from pyarrow.types import is_temporal

        for name in [*self._features, *self._weights]:
            if not is_number_type(types[name]):
                if is_temporal(types[name]):
                    raise ValueError(f"column {name!r} is of type {types[name]}, not numeric: it {DATES}")
                advice = "encode it as numbers (encode=True), or leave it out: features= names the columns to use."
                raise ValueError(f"column {name!r} is of type {types[name]}, not numeric; {advice}")
        for name in self._targets:
            kinds = {kind(known[name]) for known in [*self._types.values(), types]} - {"empty"}
            if len(kinds) > 1:
                raise ValueError(f"column {name!r} is {types[name]} here but not in the files before; use one type.")
        return types

    def _batches(self, columns: list[str]) -> Iterator[tuple[str, Any]]:
        """Record batches of every file in turn, each with the place where it stands."""
        total, rows = 0, rows_per_block(self.n_features, target=_BLOCK_BYTES)
        labels = self._targets if self._role == "labels" else []
        self._meter.begin()
        for path in self._files:
            with named(path):
                check_unchanged(path, self._stats[path])
                first = total
                types = {name: self._types[path][name] for name in columns}
                for batch in self._reader.read(path, types, labels, rows):
                    yield f"{path}, rows {total - first} to {total - first + batch.num_rows - 1}", batch
                    total += batch.num_rows
                    self._meter.batch(path, batch.num_rows, batch.nbytes)
            self._meter.end(path)
        self.n_rows = total

    def followed(self, follow: Callable[[int, int, int], None]) -> AbstractContextManager[None]:
        return following(self._meter, follow)

    def blocks(self) -> Iterator[Block]:
        """The rows as blocks in order, decoded one after another."""
        size, filled, counts = rows_per_block(self.n_features, target=self._block_bytes), 0, not self._weights
        block = self._empty(size, 0)
        for where, batch in self._batches([*self._features, *(self._targets if self._role else []), *self._weights]):
            while batch.num_rows:
                part, batch = batch.slice(0, size - filled), batch.slice(size - filled)
                rows = slice(filled, filled + part.num_rows)
                counts = self._decode(part, where, block.part(rows)) or counts
                filled = rows.stop
                if filled == size:
                    yield block
                    block, filled = self._empty(size, block.start + size), 0
        if filled:
            yield block.part(slice(0, filled))
        if self.n_rows and not counts:
            raise ValueError(f"All weights in column {self._weights[0]!r} are zero; give at least one positive weight.")

    def laid_out(self, block_bytes: int, room: Callable[[tuple[int, int], np.dtype[Any]], NDArray[Any]] | None) -> Self:
        """The same rows in blocks of another size, whose columns are decoded into memory that `room` gives."""
        view = copy(self)
        view._block_bytes, view._room = block_bytes, room
        return view

    def _pieces(self) -> Iterator[Block]:
        if self._cache is None:
            return self.blocks()
        return self._cache.pieces(self.blocks, self.n_features, lambda: check_files(self._stats), self._meter)

    def _empty(self, n: int, start: int) -> DenseBlock:
        # Columns are contiguous, as in the file. Bringing rows together is left to the workers, who sort them anyway.
        shape = (n, self.n_features)
        X = np.empty(shape, dtype=self.dtype, order="F") if self._room is None else self._room(shape, self.dtype)
        y = {"": None, "labels": np.empty(n, dtype=np.intp), "values": np.empty((n, len(self._targets)))}[self._role]
        return DenseBlock(X, y, np.empty(n) if self._weights else None, start)

    def _decode(self, batch: Any, where: str, block: StoredBlock) -> bool:
        """Write a batch into the rows of a block; whether any row has a weight above zero."""
        for j, name in enumerate(self._features):
            block.X[:, j] = numbers(batch.column(name), self.dtype.name)
        weights = self._weigh(batch, where)
        if block.weights is not None:
            block.weights[:] = weights
        if self._role == "labels":
            block.codes[:] = self._encode(batch, weights, where)[1]
        elif block.y is not None:
            for j, name in enumerate(self._targets):
                block.y[:, j] = numbers(decoded(batch.column(name)))
            if not np.isfinite(block.y).all():
                raise self._without_target()
        return weights is None or bool(weights.any())

    def _weigh(self, batch: Any, where: str) -> Float | None:
        for name in self._weights:
            weights = numbers(batch.column(name))
            with named(f"{where}, column {name!r}"):
                check_weights(weights)
            return weights
        return None

    def _encode(self, batch: Any, weights: Float | None, where: str) -> tuple[NDArray[Any], Codes]:
        """The classes, which are those of the batch alone while the source has none, and the codes of the rows."""
        column = decoded(batch.column(self._targets[0]))
        counted = slice(None) if weights is None else weights > 0
        if _missing(column)[counted].any():
            raise self._without_target()
        levels, places = coded(column)  # labels are few: NumPy sees each of them once per batch
        used = np.zeros(max(1, len(levels)), dtype=bool)
        used[places[counted]] = True
        code_of = np.zeros(len(used), dtype=np.intp)  # stays 0 for labels of rows of weight zero: they do not count
        with named(f"{where}, column {self._targets[0]!r}"):
            labels = _labels(levels, column.type)[used[: len(levels)]]
            classes, code_of[used] = encode(labels, self.classes, None)
        return classes, code_of[places]

    def _without_target(self) -> ValueError:
        """The error for rows without a target: the target is read once more, to count them all."""
        count, first = 0, ""
        for where, batch in self._batches(self._targets):
            bad = np.logical_or.reduce([_missing(decoded(batch.column(name))) for name in self._targets])
            count, first = count + int(bad.sum()), first or (where if bad.any() else "")
        names = ", ".join(map(repr, self._targets))
        return ValueError(f"{first}: the target {names} is missing, NaN or infinite in {count} of the rows; drop them.")

    @property
    def target_ndim(self) -> int:
        """1 for a column of targets, 2 for a list of columns."""
        if not self._targets:
            raise ValueError("The files were scanned without a target: name its column with target=.")
        return 1 if isinstance(self._target, str) else 2

    def _reading(self, role: str, most: int, kinds: tuple[str, ...], advice: str) -> Self:
        """A copy that reads the targets, if they are of a kind that can be read so."""
        too_many = self.target_ndim > most
        for path, name in product(self._files, self._targets):
            dtype = self._types[path][name]
            if too_many or kind(dtype) not in kinds:
                raise ValueError(f"{path}: the target {self._target!r} is of type {dtype}; {advice}.")
        view = copy(self)
        view._role, view.classes, view._samples = role, None, {}
        view._cache = BlockCache(_stored, _loaded)
        return view

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Random rows, those that an array of all rows would give, if these are few: one pass brings the next ones too."""
        if self._role != "labels" or self.classes is None or self.n_rows is None:
            return None
        rows = self._within_room(rows)
        if rows not in self._samples:
            more = asked_next(rows, self.n_rows, self._n_parameters)
            if more == rows < FEWEST:  # for the units alone, which the first block shows as well as these
                return None
            self._samples.update(rows_drawn(self, {rows, self._within_room(more)}))
        return self._samples[rows]

    @property
    def _n_parameters(self) -> int:
        return (self.n_features + 1) * max(1, len(() if self.classes is None else self.classes) - 1)

    def _within_room(self, rows: int) -> int:
        enough = max(_SAMPLED_ROWS, enough_rows(self.n_rows or 0, self._n_parameters))
        return max(1, min(rows, enough, _SAMPLED_BYTES // (8 * self.n_features)))

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        """The same rows with class codes; without given classes, a pass over the target alone finds them."""
        view = self._reading("labels", 1, (*NUMERIC, "text"), "labels are one column of text, integers or booleans")
        if classes is not None:
            view.classes = np.asarray(classes)
            return view
        found: list[NDArray[Any]] = []
        idle: list[NDArray[Any]] = []
        n_read = 0
        for where, batch in view._batches([*self._targets, *self._weights]):
            n_read += batch.num_rows
            weights = view._weigh(batch, where)
            new = view._encode(batch, weights, where)[0]
            found = [np.unique(np.concatenate([*found, new]))] if len(new) else found
            if weights is not None and not weights.all():
                column = decoded(batch.column(self._targets[0])).filter(weights == 0)
                idle.append(_labels(column.filter(~_missing(column)).unique().to_pylist(), column.type))
        if not found:
            weightless = "no row has a weight above zero; at least one must count."
            raise UnreadableFile(self._files[0], weightless if n_read else NO_ROWS)
        view.classes, self.n_rows = found[0], view.n_rows
        view.all_classes = np.unique(np.concatenate([*found, *idle])) if idle else None
        self.passes = view.passes = self.passes + 1
        return view

    def valued(self) -> Self:
        """The same rows with the target columns as float64, (n, m)."""
        return self._reading("values", 2, NUMERIC, "a regression needs numbers")

    def explain_non_finite(self) -> str:
        sentence = super().explain_non_finite()
        return sentence and f"{sentence} Or scan the files with encode=True, which fills and marks holes."

    def __repr__(self) -> str:
        types = self._types[self._files[0]]
        columns = [f"{name}: {types[name]}" for name in self._features]
        return described_files(type(self).__name__, self._files, self._target, self.n_rows, columns)
