"""A table in files as a source: columns of every kind, encoded as numbers block by block, never all at once.

The first use reads all rows once to learn what the columns are and how to encode them (see table_scan.py), unless a fitted
model brings its own encoding. Rows without a label are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import kind, numbers, plain
from separatrix.data.block import Block, Float
from separatrix.data.checks import nearest_name
from separatrix.data.dense import DenseBlock
from separatrix.data.files import check_unchanged
from separatrix.data.labels import check_weights, encode
from separatrix.data.number_text import NumberText, decimal_mark, read_floats
from separatrix.data.readers import Paths, expand, named
from separatrix.data.source import Source
from separatrix.tables.reading import DELIMITER, table_batches
from separatrix.tables.table_scan import TableEncoding, TableScan

_ROWS = 16_384
_FIRST_ROWS = 10_000  # that show the decimal mark of a text file


class TableBlock(DenseBlock):
    """Rows of a table as an Arrow batch; they are encoded when they are first looked at, by the worker that does."""

    def __init__(
        self, batch: Any, encoding: TableEncoding | None, y: NDArray[Any] | None, weights: Float | None, start: int
    ) -> None:
        self.batch, self._encoding, self.y, self.weights = batch, encoding, y, weights
        self.start = start
        self._scratch = self._compiled = False

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.batch.num_columns if self._encoding is None else len(self._encoding.encoder.features_)
        return self.batch.num_rows, columns

    @cached_property
    def X(self) -> NDArray[Any]:  # made on demand
        """The rows as numbers."""
        assert self._encoding is not None, "the source has learnt how to encode by now"
        return self._encoding.encoder.transform(self._encoding.schema.read(self.batch))

    def part(self, rows: slice) -> TableBlock:
        y = None if self.y is None else self.y[rows]
        weights = None if self.weights is None else self.weights[rows]
        batch = self.batch.slice(rows.start, rows.stop - rows.start)
        return TableBlock(batch, self._encoding, y, weights, self.start + rows.start)


class TableFiles:
    """Files that share their columns: which are read, and what was learnt of them; one for all views of a source."""

    def __init__(
        self,
        paths: Sequence[str],
        target: str | None,
        features: Sequence[str] | None,
        weight: str | None,
        delimiter: str | None,
    ) -> None:
        self.paths, self.target, self.weight, self._delimiter = list(paths), target, weight, delimiter
        self._stats = {path: os.stat(path) for path in self.paths}
        self.n_rows: int | None = None
        """Rows with a label, once all have been read."""
        first = next(self._batches_of(self.paths[0], None))
        apart = [name for name in (target, weight) if name is not None]
        self.names = [name for name in first.schema.names if name not in apart] if features is None else list(features)
        """The columns that may be features."""
        for name in [*self.names, *apart]:
            if name not in first.schema.names:
                raise ValueError(
                    f"{self.paths[0]}: there is no column {name!r}; {nearest_name(name, first.schema.names)}"
                )
        texts = [NumberText(plain(first.column(name)[:_FIRST_ROWS])) for name in self.names if _is_text(first, name)]
        self.decimal = decimal_mark(texts, (first.schema.metadata or {}).get(DELIMITER, b"").decode())

    def _batches_of(self, path: str, columns: list[str] | None) -> Iterator[Any]:
        with named(path):
            check_unchanged(path, self._stats[path])
            yield from table_batches(path, _ROWS, columns=columns, delimiter=self._delimiter)

    def batches(self, columns: list[str]) -> Iterator[tuple[str, Any]]:
        """The named columns of all files in turn, with the file."""
        for path in self.paths:
            for batch in self._batches_of(path, columns):
                yield path, batch


class TableSource(Source):
    """Rows of a table in files, encoded as numbers. `encoding` is learnt in a first pass unless it is given."""

    _role = ""  # what the targets are read as: "labels", "values", "raw" (the batches as they are) or not at all

    def __init__(self, table: TableFiles, encoding: TableEncoding | None = None) -> None:
        self._table, self._learnt = table, [] if encoding is None else [encoding]  # shared with views of this source

    @property
    def encoding(self) -> TableEncoding:
        """How the columns are read and encoded; the first look reads all rows."""
        if not self._learnt:
            self._learnt.append(self._learn())
        return self._learnt[0]

    def _learn(self) -> TableEncoding:
        table, target = self._table, self._named_target()
        view = copy(self)
        view._role = "raw"

        def scan(block: Block) -> TableScan:
            assert isinstance(block, TableBlock)
            return TableScan.of(block.batch, target, table.names, table.decimal, block.start)

        found = view.reduce(scan, TableScan.merge)
        self.passes += 1
        table.n_rows = found.known
        return found.encoding(table.decimal)

    def _named_target(self) -> str:
        if self._table.target is None:
            raise ValueError("The files were scanned without a target: name its column with target=.")
        return self._table.target

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]  # known after the first pass
        """Rows with a label, once they have been counted; None where rows without one are read too."""
        return self._table.n_rows if self._role == "labels" else None

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
            raise ValueError(
                "The model was not fitted to a table in files; give it numbers: as_source, scan_parquet, scan_csv."
            )
        return TableSource(self._table, encoding)

    def blocks(self) -> Iterator[Block]:
        table, start = self._table, 0
        encoding = None if self._role == "raw" else self.encoding
        used = table.names if encoding is None else [column.name for column in encoding.schema.used]
        targets = [] if self._role == "" else [self._named_target()]
        weights = [] if table.weight is None or self._role == "raw" else [table.weight]
        for path, batch in table.batches([*used, *targets, *weights]):
            with named(path):
                block = self._block(batch, encoding, start)
            if block.n:
                start += block.n
                yield block

    def _block(self, batch: Any, encoding: TableEncoding | None, start: int) -> TableBlock:
        y: NDArray[Any] | None = None
        if encoding is not None and self._role == "labels":
            y, known = encoding.schema.read_target(batch)
            if not known.all():
                batch, y = batch.filter(known), y[known]
            if self._recoded is not None:
                y = self._recoded[y]
        elif self._role == "values":
            column = plain(batch.column(self._named_target()))
            y = (read_floats(column, self._table.decimal) if kind(column.type) == "text" else numbers(column))[:, None]
        weights: Float | None = None
        if self._table.weight is not None and self._role not in ("raw", ""):
            weights = np.array(numbers(batch.column(self._table.weight)))
            check_weights(weights)
        return TableBlock(batch, encoding, y, weights, start)

    _recoded: NDArray[np.intp] | None = None
    """The codes of the schema's classes among classes that were given."""

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        view = copy(self)
        own = np.asarray(self.encoding.schema.classes)
        view._role, view.classes = "labels", own if classes is None else np.asarray(classes)
        if classes is not None:
            view._recoded = encode(own, view.classes, None)[1]
        return view

    def valued(self) -> Self:
        self._named_target()
        view = copy(self)
        view._role = "values"
        return view

    def __repr__(self) -> str:
        table = self._table
        files = table.paths[0] if len(table.paths) == 1 else f"{len(table.paths)} files"
        lines = [f"TableSource({files}, target={table.target!r}, {len(table.names)} columns)"]
        if self._learnt:
            lines += [f"  {column.name}: {column.kind}. {column.reason}" for column in self.encoding.schema.columns]
        return "\n".join(lines)


def scan_table(
    paths: Paths,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    delimiter: str | None = None,
) -> TableSource:
    r"""A table in files, with columns of any kind, as a source that is read when needed and never all at once.

    Numbers, flags and categories are told apart and encoded as `compare` does it: holes by the median and a mark of their own,
    categories by indicators, all standardised. What that takes is learnt in one pass over the files, at the first use. Rows
    without a label are left out.

    Parameters
    ----------
    paths : str, path or list of them
        Files of one kind (.csv, .tsv, .txt, also .gz, .parquet, .arrow, .feather, .ipc), globs, or folders of Parquet files.
    target : str, optional
        Column of the labels.
    features : list of str, optional
        Columns to use; all but target and weight by default.
    weight : str, optional
        Column of the weights of the rows, ≥ 0.
    delimiter : str, optional
        What stands between the fields of a text file; it is found out by default.

    Returns
    -------
    TableSource
        To be given to ``fit`` in the place of X. A model that was fitted to it reads other files in the same way:
        ``model.predict(scan_table("more.csv"))``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from separatrix import LogisticRegression
    >>> from separatrix.tables import scan_table
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,sex,ill\n20,f,no\n25,m,no\n33,f,yes\n47,m,no\n,f,yes\n61,m,yes\n")
    >>> model = LogisticRegression().fit(scan_table(path, target="ill"))
    >>> model.feature_names_in_.tolist()
    ['age', 'age is missing', 'sex = m']
    >>> model.predict(scan_table(path)).tolist()
    ['no', 'no', 'yes', 'no', 'yes', 'yes']
    """
    return TableSource(TableFiles(expand(paths, ".parquet"), target, features, weight, delimiter))


def _is_text(batch: Any, name: str) -> bool:
    return kind(batch.column(name).type) == "text"
