"""Arrow columns: what a type holds, text without the codes for missing values, and columns as floating numbers.

pyarrow is imported when a column is first looked at.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMERIC = ("numeric", "boolean", "empty")
"""Kinds of columns that can be read as numbers."""

_NO_LABEL = ("", "NA", "N/A", "NaN", "<NA>", "#N/A")
_NO_VALUE = ("null", "?", "-", "--", ".", "n.a.", "k.A.", "#DIV/0!", "#VALUE!", "#REF!", "#NULL!", "#NUM!")


def _spellings(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Each code in capitals, in small letters, and with one capital."""
    return tuple(dict.fromkeys(f(code) for code in codes for f in (str, str.upper, str.lower, str.capitalize)))


NO_LABEL = _spellings(_NO_LABEL)
"""Texts that stand for a missing label: fewer, because "-" and "None" may be names of classes."""
MISSING = (*NO_LABEL, *_spellings(_NO_VALUE), "None")
"""Texts that stand for a missing value. "none" is not among them: it is how people write that there is none of something."""


class UnreadableValue(ValueError):
    """A value that a column cannot have: `value`, its row `at` of the batch, and `what` is wrong with it."""

    def __init__(self, value: Any, at: int, what: str) -> None:
        super().__init__(what)
        self.value, self.at, self.what = value, at, what

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.value, self.at, self.what)  # rows are read in other processes, too

    def sentence(self, name: str, start: int) -> str:
        """What is wrong with which value, for a batch of column `name` that starts at row `start` of its table."""
        return f"column {name!r}, row {start + self.at + 1} (the first row of data is 1): {self.value!r} {self.what}."


class UnreadableCell(ValueError):
    """The same, by column and row, counted from 0, of a table."""

    def __init__(self, name: str, row: int, error: UnreadableValue) -> None:
        super().__init__(error.sentence(name, row - error.at))
        self.name, self.row, self.error = name, row, error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.row, self.error)

    def moved(self, row: int) -> UnreadableCell:
        """The same value in another row."""
        return UnreadableCell(self.name, row, self.error)


@lru_cache(maxsize=256)  # asked of every column of every batch
def kind(dtype: Any) -> str:
    """What a column of this Arrow type holds: "numeric", "text", "boolean", "empty", or else the name of the type."""
    from pyarrow import types

    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numeric"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    return "boolean" if types.is_boolean(dtype) else "empty" if types.is_null(dtype) else str(dtype)


def has_nested_levels(dtype: Any) -> bool:
    """Whether a dictionary column has levels that are neither numbers nor text: intervals, records."""
    from pyarrow import BaseExtensionType, types

    levels = dtype.value_type if types.is_dictionary(dtype) else None
    return levels is not None and (isinstance(levels, BaseExtensionType) or types.is_nested(levels))


def decoded(column: Any) -> Any:
    """A column with the values themselves where it holds codes of a dictionary."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def plain(column: Any, missing: tuple[str, ...] = MISSING) -> Any:
    """A column without dictionary; text is stripped, and null where it stands for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type) and not has_nested_levels(column.type):
        column = column.cast(column.type.value_type)
    if kind(column.type) != "text":
        return column
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())  # few kernels read views
    stripped = pc.utf8_trim_whitespace(column)
    codes = pc.is_in(stripped, pa.array(missing, stripped.type))
    return pc.if_else(codes, pa.scalar(None, stripped.type), stripped)


def numbers(column: Any, dtype: str = "float64") -> NDArray[Any]:
    """An Arrow array as floating numbers, a view where it holds them already; nulls become NaN."""
    if column.type != dtype:
        column = column.cast(dtype, safe=False)  # integers beyond 2⁵³ are rounded, as NumPy does
    # Arrow's own to_numpy imports pandas: half a second and 45 MB.
    return np.from_dlpack(column.fill_null(float("nan")) if column.null_count else column)


def coded(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """The different values of a column in the order of their first rows, and the place of every row among them, −1 for null."""
    import pyarrow as pa

    encoded = column.dictionary_encode()
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]  # they share one dictionary
    places = [np.from_dlpack(chunk.indices.cast(pa.int64()).fill_null(-1)) for chunk in chunks]
    levels = chunks[0].dictionary.to_pylist() if chunks else []
    return levels, np.concatenate([np.empty(0, dtype=np.intp), *places])
