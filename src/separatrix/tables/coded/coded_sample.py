"""Rows that were drawn while a table was scanned, in this process: held as numbers and places of categories, not as features.

A hundred bytes a row where the features take several times as many: the sample of a long table can be long itself. Features are
made block by block, by the worker that wants them, and of few rows once and for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import ArraySource, MemorySource, spread
from separatrix.data.block import Block, Codes, Float, RowSums
from separatrix.data.dense import DenseBlock
from separatrix.data.source import Source
from separatrix.tables.coded.coded_rows import CodedRows, RowCoding
from separatrix.tables.coded.coded_sums import CodedSums
from separatrix.tables.drawn_rows import DrawnRows
from separatrix.tables.table_scan import TableEncoding

ENCODED_BYTES = 1 << 25
"""Features up to this size are made once."""
ROWS = 65_536
"""Drawn rows that are coded at a time, at least."""


class CodedBlock(DenseBlock):
    """Some of the rows; they are encoded when their features are first looked at."""

    def __init__(self, code: CodedRows, coding: RowCoding, y: Codes | None, weights: Float | None, start: int) -> None:
        self._code, self._coding, self.y, self.weights, self.start = code, coding, y, weights, start
        self._scratch, self._compiled = False, True

    @property
    def shape(self) -> tuple[int, int]:
        return self._code.n, self._coding.n_features

    @cached_property
    def X(self) -> NDArray[Any]:  # made on demand
        """The features."""
        return self._coding.matrix(self._code)

    def row_sums(self) -> tuple[RowSums, bool] | None:
        if "X" in vars(self):
            return None
        return CodedSums(self._code, self._coding, self.codes, self.weights), False

    def part(self, rows: slice) -> CodedBlock:
        weights = None if self.weights is None else self.weights[rows]
        return CodedBlock(self._code.part(rows), self._coding, self.codes[rows], weights, self.start + rows.start)


class CodedSample(MemorySource):
    """Rows in short, with class codes."""

    def __init__(self, code: CodedRows, coding: RowCoding, codes: Codes | None) -> None:
        super().__init__((code.n, coding.n_features), codes, None)
        self._code, self._coding = code, coding

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        return CodedBlock(self._code.part(rows), self._coding, y, weights, rows.start)

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._code.take(which), self._coding, None)

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]]:
        which = spread(self.n_rows, rows)
        return self.picked_rows(which), which

    def picked_rows(self, which: NDArray[np.intp]) -> Source:
        """Some of the rows, as features where these are few."""
        assert self._y is not None, "drawn rows are labelled"
        whole = len(which) == self.n_rows
        code, codes = (self._code, self._y) if whole else (self._code.take(which), self._y[which])
        few = 8 * code.n * self.n_features <= ENCODED_BYTES
        some = ArraySource(self._coding.matrix(code), codes, None) if few else type(self)(code, self._coding, codes)
        some.classes = self.classes
        return some

    def matrix(self) -> Float:
        return self._coding.matrix(self._code)


@dataclass(frozen=True)
class CodedDraw:
    """All rows that were drawn, coded as an encoding has it; codes of its classes, and places among the rows with a label."""

    encoding: TableEncoding
    coding: RowCoding
    code: CodedRows
    codes: Codes
    which: NDArray[np.intp]

    @classmethod
    def of(cls, drawn: DrawnRows, encoding: TableEncoding) -> CodedDraw | None:
        """The rows of a draw; ``None`` where texts turned out to be no labels that were taken for some."""
        coding, which = encoding.coding(), drawn.which
        codes, end = np.full(len(which), -1, dtype=np.intp), 0

        def coded() -> Iterator[CodedRows]:
            nonlocal end
            for batch in drawn.batches(ROWS):
                start, end = end, end + batch.num_rows
                codes[start:end] = encoding.schema.read_target(batch)[0]
                yield coding.coded(encoding.schema.read(batch, copy=False))

        code = CodedRows.joined(coded(), len(which))
        return cls(encoding, coding, code, codes, which) if (codes >= 0).all() else None

    def some(
        self, rows: int, recoded: NDArray[np.intp] | None, classes: NDArray[Any] | None
    ) -> tuple[Source, NDArray[np.intp]]:
        """So many of the rows, their classes among others."""
        at = spread(len(self.which), rows)
        whole = CodedSample(self.code, self.coding, self.codes if recoded is None else recoded[self.codes])
        whole.classes = classes
        return whole.picked_rows(at), self.which[at]
