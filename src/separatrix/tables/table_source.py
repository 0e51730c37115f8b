"""A table in files as a source: columns of every kind, encoded as numbers block by block, never all at once.

The first use reads all rows once to learn what the columns are and how to encode them (see table_scan.py), unless a fitted
model brings its own encoding. Rows without a label are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import kind, numbers, plain
from separatrix.data.block import Block, Float
from separatrix.data.dense import WORTH_COMPILING, DenseBlock
from separatrix.data.files import described_files
from separatrix.data.kept import Arrays, BlockCache, following
from separatrix.data.labels import check_weights, encode
from separatrix.data.number_text import read_floats
from separatrix.data.readers import named
from separatrix.data.source import Source
from separatrix.tables.coded_rows import CodedRows, RowCoding
from separatrix.tables.rows import TableRows
from separatrix.tables.table_files import TableFiles
from separatrix.tables.table_scan import LONG, TableEncoding, TableScan


class TableBlock(DenseBlock):
    """Rows of a table as an Arrow batch; they are encoded when they are first looked at, by the worker that does."""

    def __init__(
        self,
        batch: Any,
        path: str,
        encoding: TableEncoding | None,
        y: NDArray[Any] | None,
        weights: Float | None,
        start: int,
        coding: RowCoding | None = None,
        compiled: bool = False,
    ) -> None:
        self.batch, self.path, self._encoding, self.y, self.weights = batch, path, encoding, y, weights
        self.start, self._scratch, self._coding = start, False, coding
        large = compiled or start >= LONG or self.n * self.shape[1] >= WORTH_COMPILING
        self._compiled = large and coding is not None

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.batch.num_columns if self._encoding is None else len(self._encoding.encoder.features_)
        return self.batch.num_rows, columns

    @cached_property
    def rows(self) -> TableRows:
        """The columns of the schema, read."""
        assert self._encoding is not None, "the source has learnt how to encode by now"
        with named(self.path):
            return self._encoding.schema.read(self.batch, copy=False)

    @cached_property
    def code(self) -> CodedRows:
        """The rows in short, where they are many."""
        assert self._coding is not None, "the source has learnt how to encode by now"
        return self._coding.coded(self.rows)

    def kept(self) -> Arrays:
        """What the features can be made of again."""
        return {"numbers": self.code.numbers.T, "places": self.code.places.T} if self._compiled else {"X": self.X}

    @cached_property
    def X(self) -> NDArray[Any]:  # made on demand
        """The rows as numbers."""
        assert self._encoding is not None, "the source has learnt how to encode by now"
        if not self._compiled or self._coding is None:
            return self._encoding.encoder.transform(self.rows)
        return self._coding.matrix(self.code)

    def part(self, rows: slice) -> TableBlock:
        y = None if self.y is None else self.y[rows]
        weights = None if self.weights is None else self.weights[rows]
        batch = self.batch.slice(rows.start, rows.stop - rows.start)
        start = self.start + rows.start
        return TableBlock(batch, self.path, self._encoding, y, weights, start, self._coding, self._compiled)


class TableSource(Source):
    """Rows of a table in files, encoded as numbers. `encoding` is learnt in a first pass unless it is given."""

    _role = ""  # what the targets are read as: "labels", "values", "raw" (the batches as they are) or not at all

    place = "files"
    _cache: BlockCache | None = None
    _as_table = False

    def __init__(self, files: TableFiles, encoding: TableEncoding | None = None) -> None:
        self.files, self._learnt = files, [] if encoding is None else [encoding]  # shared with views of this source

    @property
    def identity(self) -> list[Any]:
        return ["table", *self.files.identity]

    @property
    def encoding(self) -> TableEncoding:
        """How the columns are read and encoded; the first look reads all rows."""
        if not self._learnt:
            self._learnt.append(self._learn())
        return self._learnt[0]

    def _learn(self) -> TableEncoding:
        files, target = self.files, self._named_target()
        view = copy(self)
        view._role = "raw"

        def scan(block: Block) -> TableScan:
            assert isinstance(block, TableBlock)
            with named(block.path):
                return TableScan.of(block.batch, target, files.names, files.decimal, block.start)

        found = view.reduce(scan, TableScan.merge)
        self.passes += 1
        files.n_rows = found.known
        return found.encoding(files.decimal)

    def _named_target(self) -> str:
        if self.files.target is None:
            raise ValueError("The files were scanned without a target: name its column with target=.")
        return self.files.target

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]  # known after the first pass
        """Rows with a label, once they have been counted; None where rows without one are read too."""
        return self.files.n_rows if self._role == "labels" else None

    @property
    def n_features(self) -> int:  # type: ignore[override]  # known after the first pass
        """Columns of the encoded table."""
        return len(self.encoding.encoder.features_)

    @property
    def feature_names(self) -> NDArray[Any]:  # type: ignore[override]  # known after the first pass
        """Their names, such as "age", "age is missing", "sex = male"."""
        return self.encoding.encoder.get_feature_names_out()

    @property
    def target_ndim(self) -> int:
        self._named_target()
        return 1

    def read_as(self, encoding: Any, names: Any) -> Source:
        """The rows as a model reads them: encoded as its training rows were."""
        if not isinstance(encoding, TableEncoding):
            raise ValueError("The model was fitted to columns without names; give it these columns, and encode=False.")
        view = copy(self)
        view._learnt = [encoding]
        return view

    def table(self) -> Self:
        view = copy(self)
        view._as_table = True
        return view

    def blocks(self) -> Iterator[Block]:
        files, start = self.files, 0
        encoding = None if self._role == "raw" else self.encoding
        coding = None if encoding is None or self._as_table else encoding.coding()
        used = files.names if encoding is None else [column.name for column in encoding.schema.used]
        targets = [] if self._role == "" else [self._named_target()]
        weights = [] if files.weight is None or self._role == "raw" else [files.weight]
        for path, batch in files.batches([*used, *targets, *weights]):
            with named(path):
                block = self._block(batch, path, encoding, start, coding)
            if block.n:
                start += block.n
                yield block

    def followed(self, follow: Callable[[int, int, int], None]) -> AbstractContextManager[None]:
        return following(self.files.meter, follow)

    def _pieces(self) -> Iterator[Block]:
        if self._cache is None:
            return self.blocks()
        return self._cache.pieces(self.blocks, self.n_features, self.files.check, self.files.meter)

    def _block(
        self, batch: Any, path: str, encoding: TableEncoding | None, start: int, coding: RowCoding | None
    ) -> TableBlock:
        y: NDArray[Any] | None = None
        if encoding is not None and self._role == "labels":
            y, known = encoding.schema.read_target(batch)
            if not known.all():
                batch, y = batch.filter(known), y[known]
            if self._recoded is not None:
                y = self._recoded[y]
        elif self._role == "values":
            column = plain(batch.column(self._named_target()))
            text = kind(column.type) == "text"
            y = np.array(read_floats(column, self.files.decimal) if text else numbers(column))[:, None]
            known = np.isfinite(y[:, 0])
            if not known.all():
                batch, y = batch.filter(known), y[known]
        weights: Float | None = None
        if self.files.weight is not None and self._role not in ("raw", ""):
            weights = np.array(numbers(batch.column(self.files.weight)))
            check_weights(weights)
        return TableBlock(batch, path, encoding, y, weights, start, coding)

    _recoded: NDArray[np.intp] | None = None
    """The codes of the schema's classes among classes that were given."""

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        view = copy(self)
        if not self.encoding.schema.classes:
            raise ValueError(self.encoding.no_classes)
        own = np.asarray(self.encoding.schema.classes)
        view._role, view.classes = "labels", own if classes is None else np.asarray(classes)
        if classes is not None:
            view._recoded = encode(own, view.classes, None)[1]
        return view._keeping()

    def valued(self) -> Self:
        self._named_target()
        view = copy(self)
        view._role = "values"
        return view._keeping()

    def _keeping(self) -> Self:
        """With a cache for passes that repeat, unless columns are read as they are."""
        self._cache = None if self._as_table else BlockCache(TableBlock.kept, self.encoding.coding().features)
        return self

    def __repr__(self) -> str:
        files = self.files
        columns = [f"{name}: {dtype}" for name, dtype in files.types.items()]
        if self._learnt:
            columns = [f"{column.name}: {column.kind}. {column.reason}" for column in self.encoding.schema.columns]
        return described_files(type(self).__name__, files.paths, files.target, files.n_rows, columns)
