"""A table whose rows come in frames, in this process or in the partitions of an engine, as a source.

    frame of a partition → Arrow batch → TableBlock              as a table in files gives it, in the worker that has the rows

Rows are known by their place among all, which values held with the blocks depend on, so rows without a label stay there, of
weight zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import kind, plain
from separatrix.data.block import Block
from separatrix.data.frames import FrameBlock, FrameSource
from separatrix.data.number_text import NumberText, decimal_mark
from separatrix.data.readers import named
from separatrix.data.source import Engine, Source
from separatrix.tables.drawn_rows import share_to_draw
from separatrix.tables.reading import FIRST_ROW
from separatrix.tables.rows import as_arrow
from separatrix.tables.table_files import FIRST_ROWS
from separatrix.tables.table_scan import TableEncoding
from separatrix.tables.table_source import TableColumns, TableSource

# The most that rows drawn elsewhere take: they come here over one connection.
_BROUGHT_BYTES = 1 << 25


class FrameTable(TableSource):
    """A table in frames: the columns of `rows` that are features, target and weight, by their names."""

    _in_place = True

    def __init__(self, rows: Source, columns: TableColumns, encoding: TableEncoding | None = None) -> None:
        super().__init__(columns, encoding)
        self.rows, self.place, self.room, self.from_spark = rows, rows.place, rows.room, rows.from_spark

    @property
    def identity(self) -> Any:
        known = self.rows.identity
        return (
            None if known is None else ["table", *known, self.columns.target, self.columns.weight, self.columns.names]
        )

    @property
    def engine(self) -> Engine | None:
        return self.rows.engine

    @property
    def n_rows(self) -> int | None:  # type: ignore[override]  # as in the parent
        """All rows, those without a label too."""
        return self.rows.n_rows

    def blocks(self) -> Iterator[Block]:
        return map(self._block_of, self._pieces())

    def _pieces(self) -> Iterator[Block]:
        return self.rows._pieces()

    def _block_of(self, piece: Block) -> Block:
        where = f"rows from {piece.start + 1} on"
        with named(where):
            batch = _batch(self.rows._block_of(piece), self._wanted())
            return self._block(batch, where, None if self._role == "raw" else self.encoding, piece.start)

    def targets(self) -> NDArray[Any]:
        return np.concatenate(list(self.each(_targets)))

    def __repr__(self) -> str:
        lines = "".join(f"\n  {line}" for line in self._described())
        return f"{type(self).__name__}({self.rows!r}, target={self.columns.target!r}){lines}"


def _batch(block: Block, columns: Sequence[str] | None = None) -> Any:
    """The rows of a frame's block as an Arrow batch that knows its place among all."""
    assert isinstance(block, FrameBlock), "the blocks of a frame"
    table = as_arrow(block.native if columns is None else block.named(columns)).combine_chunks()
    return table.replace_schema_metadata({FIRST_ROW: str(block.start).encode()}).to_batches()[0]


def _first(block: Block) -> Any:
    """The first rows of all, as an Arrow batch."""
    return None if block.start else _batch(block.part(slice(0, min(block.n, FIRST_ROWS))))


def _targets(block: Block) -> NDArray[Any]:
    assert block.y is not None
    return block.y


def frame_table(rows: Source, target: str | None, weight: str | None, names: Sequence[str]) -> FrameTable:
    """A source of frames, whose columns are of any kind, as a table; the first rows are looked at for the types."""
    first = next((batch for batch in rows.each(_first) if batch is not None), None)
    if first is None:
        raise ValueError("The data have no rows: at least one is needed.")
    types = {name: first.schema.field(name).type for name in names}
    texts = [NumberText(plain(first.column(name))) for name, dtype in types.items() if kind(dtype) == "text"]
    described = {name: str(dtype) for name, dtype in types.items()}
    columns = TableColumns(target, weight, names, described, decimal_mark(texts, ""))
    if weight is None and rows.n_rows is not None:
        columns.share = share_to_draw(rows.n_rows, len(names), first.nbytes / first.num_rows, _BROUGHT_BYTES)
    return FrameTable(rows, columns)


def read_frame(frame: Any, encoding: TableEncoding) -> FrameTable:
    """A frame in memory, as a model reads it that was fitted to a table."""
    return FrameTable(FrameSource(frame, None, None, numeric=False), TableColumns(None, None), encoding)
