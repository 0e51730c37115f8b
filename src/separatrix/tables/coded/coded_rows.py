"""Rows of a table as a model's encoder reads them, before their categories are spread out: few bytes, quickly encoded.

    numbers     (p, n) float64, NaN for a hole
    places      (q, n) int32, the feature that is 1 for the category of each row, −1 for none

Columns stay where they were decoded: a copy of all of them would cost more than the arithmetic on them. Compiled loops get
them in runs of rows that stay in cache (`runs`).

`RowCoding.matrix` gives the same bits as the encoder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.rows import CodedText, TableRows


class CodedRows:
    """Numbers and places of categories, as columns of n rows each or as the rows of two matrices."""

    def __init__(
        self, numbers: Sequence[Float] | Float, places: Sequence[NDArray[np.int32]] | NDArray[np.int32], n: int
    ) -> None:
        self._numbers, self._places, self.n = numbers, places, n

    def runs(self, rows: int) -> Iterator[tuple[slice, Float, NDArray[np.int32]]]:
        """At most so many rows after another: which, their numbers and their places; each run overwrites the one before."""
        size = min(rows, self.n)
        numbers, places = _lines(self._numbers, size, np.float64), _lines(self._places, size, np.int32)
        for start in range(0, self.n, rows):
            run = slice(start, min(self.n, start + rows))
            if run.stop - start < size:
                size = run.stop - start
                numbers, places = _lines(self._numbers, size, np.float64), _lines(self._places, size, np.int32)
            _fill(numbers, self._numbers, run)
            _fill(places, self._places, run)
            yield run, numbers, places

    def part(self, rows: slice) -> CodedRows:
        """A run of the rows, where they are."""
        numbers, places = [column[rows] for column in self._numbers], [column[rows] for column in self._places]
        return CodedRows(numbers, places, len(range(self.n)[rows]))

    def take(self, at: NDArray[np.intp]) -> CodedRows:
        """Copies of some rows."""
        lines = _lines(self._numbers, len(at), np.float64), _lines(self._places, len(at), np.int32)
        for own, columns in zip(lines, (self._numbers, self._places), strict=True):
            _fill(own, columns, at)
        return CodedRows(*lines, len(at))

    @classmethod
    def joined(cls, parts: Iterable[CodedRows], n: int) -> CodedRows:
        """A copy of the rows of all parts, n together, one below the other; the parts are wanted one at a time."""
        whole, end = cls(np.empty((0, n)), np.empty((0, n), dtype=np.int32), n), 0
        for part in parts:
            if not end:
                whole = cls(_lines(part._numbers, n, np.float64), _lines(part._places, n, np.int32), n)
            start, end = end, end + part.n
            for lines, columns in ((whole._numbers, part._numbers), (whole._places, part._places)):
                _fill([line[start:end] for line in lines], columns, slice(None))
        return whole

    def some_numbers(self, at: Any) -> Float:
        """(p, …) numbers of some rows."""
        chosen = np.empty((len(self._numbers), len(np.arange(self.n)[at])))
        for line, column in zip(chosen, self._numbers, strict=True):
            line[:] = column[at]
        return chosen

    @property
    def numbers(self) -> Float:
        """(p, n) in one matrix."""
        return self._whole(self._numbers, np.float64)

    @property
    def places(self) -> NDArray[np.int32]:
        """(q, n) in one matrix."""
        return self._whole(self._places, np.int32)

    def _whole(self, columns: Any, dtype: Any) -> Any:
        if isinstance(columns, np.ndarray):
            return columns
        whole = _lines(columns, self.n, dtype)
        _fill(whole, columns, slice(0, self.n))
        return whole


def _lines(columns: Any, size: int, dtype: Any) -> Any:
    return np.empty((len(columns), size), dtype=dtype)


def _fill(lines: Any, columns: Any, rows: Any) -> None:
    for line, column in zip(lines, columns, strict=True):
        line[:] = column[rows]


class RowCoding:
    """How rows are coded, and the code turned into features: what an encoder has learnt, as arrays."""

    def __init__(self, encoder: TableEncoder) -> None:
        levels: dict[str, dict[Any, int]] = {}
        value_at, hole_at, fill = dict[str, int](), dict[str, int](), dict[str, float]()
        text = {column.name for column in encoder.schema.used if column.kind == "categorical"}
        if by_target := next((one.column for one in encoder.features_ if one.what in ("target", "text")), None):
            raise ValueError(
                f"Column {by_target!r} is encoded by the classes of its categories or words, for which rows are held; a stream "
                "has indicators."
            )
        for j, feature in enumerate(encoder.features_):
            if feature.column in text:
                levels.setdefault(feature.column, {})[feature.level if feature.what == "level" else None] = j
            elif feature.what == "value":
                value_at[feature.column], fill[feature.column] = j, feature.fill
            else:
                hole_at[feature.column] = j
        self._names, self._levels = list(value_at), levels
        self.value_at = np.array(list(value_at.values()), dtype=np.intp)
        self.hole_at = np.array([hole_at.get(name, -1) for name in value_at], dtype=np.intp)
        self.fill = np.array(list(fill.values()))
        self.centre, self.scale = encoder.centres_, encoder.scales_

    @property
    def n_features(self) -> int:
        """Features of a row."""
        return len(self.centre)

    def coded(self, rows: TableRows) -> CodedRows:
        """The rows in short."""
        places = []
        for name, at in self._levels.items():
            text = CodedText.of(rows.columns[name])
            found = np.array([at.get(level, -1) for level in [*text.levels, None]], dtype=np.int32)
            places.append(np.take(found, text.places, mode="wrap"))  # −1: the last
        return CodedRows([rows.columns[name] for name in self._names], places, len(rows))

    def matrix(self, code: CodedRows) -> Float:
        """(n, d) features, row by row, by compiled loops."""
        from separatrix.kernels.table_columns import encode_rows  # numba takes a while to import

        out = np.empty((code.n, self.n_features))
        at = self.value_at, self.hole_at, self.fill, self.centre, self.scale
        encode_rows(code.numbers, code.places, *at, out)
        return out

    def scaled_numbers(self, numbers: Float) -> Float:
        """(n, p) features of numbers (p, n) alone."""
        filled = np.where(np.isnan(numbers), self.fill[:, None], numbers).T
        return np.ascontiguousarray((filled - self.centre[self.value_at]) / self.scale[self.value_at])

    def features(self, arrays: Mapping[str, NDArray[Any]]) -> Float:
        """The same of numbers and places by row as they were kept, or of features that were kept themselves."""
        if "X" in arrays:
            return arrays["X"]
        return self.matrix(self.kept(arrays))

    def kept(self, arrays: Mapping[str, NDArray[Any]]) -> CodedRows:
        """Rows whose numbers and places were kept by row."""
        numbers, places = arrays["numbers"].T, arrays["places"].T
        return CodedRows(numbers, places, max(numbers.shape[1], places.shape[1]))
