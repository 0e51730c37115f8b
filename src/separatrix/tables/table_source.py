"""A table as a source: columns of every kind, encoded as numbers block by block, never all at once.

Where its rows are is a subclass: in files (table_files.py), or in frames, here or in other processes (frame_table.py). The
first use reads all rows once to learn what the columns are and how to encode them (see table_scan.py), unless a
fitted model brings its own encoding. Rows without a label do not count.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import kind, numbers, plain
from separatrix.data.block import Block, Centred, Codes, Float, RowSums
from separatrix.data.dense import WORTH_COMPILING, DenseBlock
from separatrix.data.kept import Arrays
from separatrix.data.labels import check_weights, encode
from separatrix.data.number_text import Mark, read_floats
from separatrix.data.readers import named
from separatrix.data.source import Source
from separatrix.settings import outside
from separatrix.tables.coded.coded_centre import CodedCentred
from separatrix.tables.coded.coded_rows import CodedRows, RowCoding
from separatrix.tables.coded.coded_sample import CodedDraw
from separatrix.tables.coded.coded_sums import CodedSums
from separatrix.tables.columns import MOSTLY_NUMBERS
from separatrix.tables.drawn_rows import DrawnRows
from separatrix.tables.quantiles import Reached
from separatrix.tables.rows import TableRows
from separatrix.tables.table_scan import LONG, TableEncoding, TableScan

# Rows of a class from which on a guess of its mean costs little against them.
_ROWS_OF_A_CLASS = 4
_ROWS_PER_FEATURE = 4


class TableBlock(DenseBlock):
    """Rows of a table as an Arrow batch; they are encoded when they are first looked at, by the worker that does."""

    def __init__(
        self,
        batch: Any,
        path: str,
        encoding: TableEncoding | None,
        y: NDArray[Any] | Callable[[Any], NDArray[Any]] | None,
        weights: Float | None,
        start: int,
        coding: RowCoding | None = None,
        compiled: bool = False,
    ) -> None:
        self.batch, self.path, self._encoding, self._target, self.weights = batch, path, encoding, y, weights
        self.start, self._scratch, self._coding = start, False, coding
        large = compiled or start >= LONG or self.n * self.shape[1] >= WORTH_COMPILING
        self._compiled = large and coding is not None

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.batch.num_columns if self._encoding is None else len(self._encoding.encoder.features_)
        return self.batch.num_rows, columns

    @cached_property
    def y(self) -> NDArray[Any] | None:  # type: ignore[override]  # made on demand
        """Targets; those that can be read by the worker are, while others decode."""
        if not callable(self._target):
            return self._target
        with named(self.path):
            return self._target(self.batch)

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

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        if self._compiled and self._coding is not None and self.n >= _ROWS_OF_A_CLASS * n_classes:
            dense = partial(super().centre, codes, n_classes)
            coded = CodedCentred(self.code, self._coding, codes, n_classes, self.weights, dense)
            if not coded.far_from_origin:
                return coded
        return super().centre(codes, n_classes)

    def row_sums(self) -> tuple[RowSums, bool] | None:
        if not self._compiled or self._coding is None or "X" in vars(self):  # encoded already
            return None
        return CodedSums(self.code, self._coding, self.codes, self.weights), False

    def part(self, rows: slice) -> TableBlock:
        y = self._target if self._target is None or callable(self._target) else self._target[rows]
        weights = None if self.weights is None else self.weights[rows]
        batch = self.batch.slice(rows.start, rows.stop - rows.start)
        start = self.start + rows.start
        return TableBlock(batch, self.path, self._encoding, y, weights, start, self._coding, self._compiled)


@dataclass
class TableColumns:
    """Which columns of a table are read, and what has been found out about them; one object for all views of a source."""

    target: str | None
    weight: str | None
    names: Sequence[str] = ()
    """The columns that may be features."""
    types: dict[str, str] = field(default_factory=dict)
    """Their Arrow types in the first rows; columns of text files are text."""
    decimal: Mark = "."
    n_rows: int | None = None
    """Rows with a label, once all have been read."""
    share: float = 0.0
    """The share of the rows that is drawn for a sample while all are read for the schema."""
    drawn: DrawnRows = field(default_factory=DrawnRows)
    coded: CodedDraw | None = None
    """These rows once they have been asked for, in the place of `drawn`."""
    complete: TableEncoding | None = None
    """The encoding in which every row has a class, if that has been found."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "drawn": DrawnRows(), "coded": None}  # solvers begin in this process


def _codes(encoding: TableEncoding, recoded: NDArray[np.intp] | None, batch: Any) -> NDArray[np.intp]:
    """Class codes of rows that all have a class."""
    own = encoding.schema.read_target(batch)[0]
    return own if recoded is None else recoded[own]


class TableSource(Source):
    """Rows of a table, encoded as numbers. `encoding` is learnt in a first pass unless it is given."""

    _where = "table was"

    _role = ""  # what the targets are read as: "labels", "values", "raw" (the batches as they are) or not at all
    _in_place = False
    """Whether rows without a label stay where they are, of weight zero, instead of being left out."""

    _as_table = False

    def __init__(self, columns: TableColumns, encoding: TableEncoding | None = None) -> None:
        self.columns, self._learnt = columns, [] if encoding is None else [encoding]  # shared with views of this source
        self._samples = dict[int, tuple[Source, NDArray[np.intp]]]()

    @property
    def encoding(self) -> TableEncoding:
        """How the columns are read and encoded; the first look reads all rows."""
        if not self._learnt:
            self._learnt.append(self._learn())
        return self._learnt[0]

    def _learn(self) -> TableEncoding:
        columns, target = self.columns, self._named_target()
        reached = {name: Reached() for name in columns.names}
        view = copy(self)
        view._role = "raw"

        def scan(block: Block) -> TableScan:
            assert isinstance(block, TableBlock)
            with named(block.path):
                return TableScan.of(
                    block.batch, target, columns.names, columns.decimal, block.start, columns.share, reached
                )

        found = view.reduce(scan, TableScan.merge)
        self.passes += 1
        columns.n_rows, columns.drawn = found.known, found.drawn
        encoding = found.encoding(columns.decimal)
        columns.complete = encoding if found.is_complete else None
        for finding in encoding.schema.findings:
            if MOSTLY_NUMBERS in finding:  # nobody sees the findings of a fit, and a column of it is lost or spread out
                warnings.warn(finding, stacklevel=outside())
        return encoding

    def _named_target(self) -> str:
        if self.columns.target is None:
            raise ValueError(f"The {self._where} scanned without a target: name its column with target=.")
        return self.columns.target

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]  # known after the first pass
        """Rows with a label, once they have been counted; None where rows without one are read too."""
        return self.columns.n_rows if self._role == "labels" else None

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

    def _wanted(self) -> list[str]:
        """The columns that a pass reads."""
        used = self.columns.names if self._role == "raw" else [column.name for column in self.encoding.schema.used]
        weighted = self.columns.weight is not None and self._role != "raw"
        return [
            *used,
            *([] if self._role == "" else [self._named_target()]),
            *([str(self.columns.weight)] if weighted else []),
        ]

    def _coding(self, encoding: TableEncoding | None) -> RowCoding | None:
        """How rows are encoded by compiled loops, unless they are read as they are."""
        return None if encoding is None or self._as_table else encoding.coding()

    def _block(self, batch: Any, path: str, encoding: TableEncoding | None, start: int) -> TableBlock:
        y: NDArray[Any] | None = None
        known: NDArray[np.bool_] | None = None
        if encoding is not None and self._role == "labels":
            if encoding is self.columns.complete and self.columns.weight is None:  # no row is left out
                codes = partial(_codes, encoding, self._recoded)
                return TableBlock(batch, path, encoding, codes, None, start, self._coding(encoding))
            y, known = encoding.schema.read_target(batch)
        elif self._role == "values":
            column = plain(batch.column(self._named_target()))
            text = kind(column.type) == "text"
            y = np.array(read_floats(column, self.columns.decimal) if text else numbers(column))[:, None]
            known = np.isfinite(y[:, 0])
        counted: Float | None = None
        if y is not None and known is not None and not known.all():
            if self._in_place:
                y, counted = np.where(known if y.ndim == 1 else known[:, None], y, 0), known.astype(np.float64)
            else:
                batch, y = batch.filter(known), y[known]
        if self._recoded is not None and y is not None:
            y = self._recoded[y]
        weights: Float | None = None
        if self.columns.weight is not None and self._role not in ("raw", ""):
            weights = np.array(numbers(batch.column(self.columns.weight)))
            if counted is not None:
                weights[counted == 0.0] = 0.0
            check_weights(weights)
        weighted = counted if weights is None else weights
        return TableBlock(batch, path, encoding, y, weighted, start, self._coding(encoding))

    _recoded: NDArray[np.intp] | None = None
    """The codes of the schema's classes among classes that were given."""

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Rows that were drawn when the schema was learnt, if they were, coded and here: at most so many."""
        drawn = None if self._role != "labels" or self._as_table else self._drawn()
        if drawn is None:
            return None
        asked, rows = rows, min(rows, len(drawn.which))
        if rows < min(asked, _ROWS_PER_FEATURE * self.n_features):  # too few to tell where the optimum is
            return None
        if rows not in self._samples:
            self._samples[rows] = drawn.some(rows, self._recoded, self.classes)
        return self._samples[rows]

    def _drawn(self) -> CodedDraw | None:
        columns, encoding = self.columns, self.encoding
        if self._in_place and columns.complete is not encoding:  # places among the rows with a label are no others then
            return None
        if columns.drawn.streams:
            columns.coded, columns.drawn = CodedDraw.of(columns.drawn, encoding), DrawnRows()
        return columns.coded if columns.coded is not None and columns.coded.encoding is encoding else None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_samples": {}}

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        view = copy(self)
        view._samples = {}
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
        """With what serves passes that repeat, where the storage has it."""
        return self

    def _described(self) -> list[str]:
        """The columns, one in a line, with what is known of them."""
        if self._learnt:
            return [f"{column.name}: {column.kind}. {column.reason}" for column in self.encoding.schema.columns]
        return [f"{name}: {dtype}" for name, dtype in self.columns.types.items()]

    @abstractmethod
    def __repr__(self) -> str: ...
