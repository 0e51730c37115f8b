"""Files that share their columns: which are read, what was found in the first, and that none of them changes.

Rows come as Arrow batches of the same cut whatever the row groups. A file without rows is passed over; a column that is of
another kind than in the files before, a file that has changed or is gone, and what cannot be read are named with the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Self

from separatrix.data.arrow_columns import decoded, kind, plain
from separatrix.data.block import Block
from separatrix.data.checks import nearest_name
from separatrix.data.files import check_files, check_unchanged, described_files
from separatrix.data.kept import BlockCache, PassMeter, following
from separatrix.data.number_text import NumberText, decimal_mark
from separatrix.data.readers import TEXT, named
from separatrix.data.text_files import NO_ROWS, UnreadableFile
from separatrix.tables.coded.coded_sums import CodedSums
from separatrix.tables.drawn_rows import share_to_draw
from separatrix.tables.reading import DELIMITER, about_rows, coded_batches
from separatrix.tables.table_scan import TableEncoding
from separatrix.tables.table_source import TableBlock, TableColumns, TableSource

ROWS = 65_536
"""Rows of a batch, at most."""
# Fewer where there are many columns: the threads hold a batch each. Batches of few entries keep them waiting for each other.
_ENTRIES, _FEW_ROWS = 1 << 20, 16_384
# Rows that show how long texts are.
_LOOKED_AT = 1_000
FIRST_ROWS = 10_000
"""Rows that show the decimal mark of numbers in text."""


class TableFiles(TableColumns):
    """Files of one table; one object for all views of a source."""

    def __init__(
        self,
        paths: Sequence[str],
        target: str | None,
        features: Sequence[str] | None,
        weight: str | None,
        delimiter: str | None = None,
    ) -> None:
        super().__init__(target, weight)
        self.paths, self.delimiter = list(paths), delimiter
        self._stats = {}
        for path in self.paths:
            with named(path):
                self._stats[path] = os.stat(path)
        self.meter = PassMeter({path: stat.st_size for path, stat in self._stats.items()})
        self._rows = min(ROWS, _FEW_ROWS)
        first = self._first()
        apart = [name for name in (target, weight) if name is not None]
        self.names = [name for name in first.schema.names if name not in apart] if features is None else list(features)
        self._rows = min(ROWS, max(_FEW_ROWS, _ENTRIES // max(1, len(self.names))))
        self._kinds = {name: kind(first.schema.field(name).type) for name in first.schema.names}
        self._check_names(first.schema.names, [*self.names, *apart], self.paths[0])
        self.types = {name: str(first.schema.field(name).type) for name in self.names}
        texts = [NumberText(plain(first.column(name)[:FIRST_ROWS])) for name in self.names if self._is_text(name)]
        self.share = (
            0.0 if weight is not None else share_to_draw(about_rows(self._stats), len(self.names), _row_bytes(first))
        )
        self.decimal = decimal_mark(texts, (first.schema.metadata or {}).get(DELIMITER, b"").decode())

    @property
    def identity(self) -> list[Any]:
        """What tells these files from others: names, sizes, times of the last change, and the columns read."""
        files = [[os.path.abspath(path), stat.st_size, stat.st_mtime_ns] for path, stat in self._stats.items()]
        return [files, self.target, self.weight, self.delimiter, self.names]

    def check(self) -> None:
        """Refuse files of which one has changed since they were scanned, or is gone."""
        check_files(self._stats)

    def _is_text(self, name: str) -> bool:
        return self._kinds[name] == "text"

    def _check_names(self, given: list[str], wanted: list[str], path: str) -> None:
        if not self.names:
            raise ValueError(f"{path}: no column is left for the features; name them with features=.")
        for name in wanted:
            if name not in given:
                raise ValueError(f"{path}: there is no column {name!r}; {nearest_name(name, given)}")
            if wanted.count(name) > 1:
                raise ValueError(
                    f"{path}: column {name!r} is named twice in features, target and weight; name it once."
                )

    def _first(self) -> Any:
        for path in self.paths:
            for batch in self._batches_of(path, None):
                return batch
        raise UnreadableFile(self.paths[0], NO_ROWS)

    def _batches_of(self, path: str, columns: list[str] | None) -> Iterator[Any]:
        with named(path):
            check_unchanged(path, self._stats[path])
            try:
                yield from coded_batches(path, self._rows, columns, self.delimiter)
            except UnreadableFile as error:
                if error.what != NO_ROWS:
                    raise
            except KeyError as error:  # what Arrow says of a column that is not there
                raise ValueError(f"there is no column {error}; all files need the columns of the first.") from None

    def batches(self, columns: list[str]) -> Iterator[tuple[str, Any]]:
        """The named columns of all files in turn, with the file."""
        self.meter.begin()
        for path in self.paths:
            for at, batch in enumerate(self._batches_of(path, columns)):
                if not at:
                    self._check_names(batch.schema.names, columns, path)
                    self._check_kinds(path, batch)
                yield path, batch
                self.meter.batch(path, batch.num_rows, batch.nbytes)
            self.meter.end(path)

    def _check_kinds(self, path: str, batch: Any) -> None:
        for name in batch.schema.names:
            what = kind(batch.schema.field(name).type)
            before = self._kinds.get(name, what)
            if what != before and "empty" not in (what, before):
                raise ValueError(
                    f"{path}: column {name!r} is {what} here and {before} in the files before; use one type."
                )
            if before == "empty":
                self._kinds[name] = what


def _row_bytes(batch: Any) -> float:
    """About how many bytes a row takes where texts are not shared."""
    first = batch.slice(0, _LOOKED_AT)
    return float(sum(decoded(column).nbytes for column in first.columns)) / first.num_rows


class FileTable(TableSource):
    """A table in files."""

    place = "files"
    _cache: BlockCache | None = None
    _where = "files were"

    def __init__(self, files: TableFiles, encoding: TableEncoding | None = None) -> None:
        super().__init__(files, encoding)
        self.files = files

    @property
    def identity(self) -> list[Any]:
        return ["table", *self.files.identity]

    def blocks(self) -> Iterator[Block]:
        start, encoding = 0, None if self._role == "raw" else self.encoding
        for path, batch in self.files.batches(self._wanted()):
            with named(path):
                block = self._block(batch, path, encoding, start)
            if block.n:
                start += block.n
                yield block

    def _keeping(self) -> Self:
        """With a cache, unless columns are read as they are."""
        text = any(path.lower().endswith((*TEXT, ".gz")) for path in self.files.paths)
        # Parquet is decoded about as quickly as kept blocks are read back, and those would have to be written first.
        coding, patience = self.encoding.coding(), 1 if text else None
        kept = BlockCache(TableBlock.kept, coding.features, partial(CodedSums.of_arrays, coding), patience)
        self._cache = None if self._as_table else kept
        return self

    def _pieces(self) -> Iterator[Block]:
        if self._cache is None:
            return self.blocks()
        return self._cache.pieces(self.blocks, self.n_features, self.files.check, self.files.meter)

    def followed(self, follow: Callable[[int, int, int], None]) -> AbstractContextManager[None]:
        return following(self.files.meter, follow)

    def __repr__(self) -> str:
        files = self.files
        return described_files(type(self).__name__, files.paths, files.target, files.n_rows, self._described())
