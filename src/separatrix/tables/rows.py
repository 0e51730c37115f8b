"""The rows of a table as NumPy columns, and how a column of any type is read as numbers, flags or categories.

    numeric      float64, NaN where nothing is known
    boolean      the same, 0 and 1
    categorical  objects, str or None

Text is read by kernels over whole columns. Only when a value cannot be read is it looked for, to be named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.number_text import cast_to_numbers, parsed
from separatrix.data.readers import numbers

_NO_LABEL = ("", "NA", "N/A", "NaN", "<NA>", "#N/A")
_NO_VALUE = ("null", "?", "-", "--", ".", "n.a.", "k.A.", "#DIV/0!", "#VALUE!", "#REF!", "#NULL!", "#NUM!")


def _spellings(codes: tuple[str, ...]) -> tuple[str, ...]:
    """Each code in capitals, in small letters, and with one capital."""
    return tuple(dict.fromkeys(f(code) for code in codes for f in (str, str.upper, str.lower, str.capitalize)))


NO_LABEL = _spellings(_NO_LABEL)
"""Texts that stand for a missing label: fewer, because "-" and "None" may be names of classes."""
MISSING = (*NO_LABEL, *_spellings(_NO_VALUE), "None")
"""Texts that stand for a missing value. "none" is not among them: it is how people write that there is none of something."""
# In a column known to hold flags these are read as well, so that it may come from another kind of file.
_TRUE, _FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table: what folds are taken from.

    Parameters
    ----------
    columns : dict of str to ndarray
        float64 with NaN for numbers and flags, objects (str or None) for categories.
    booleans : frozenset of str
        Which of the columns hold flags.
    n : int
        The number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.rows import TableRows
    >>> rows = TableRows({"age": np.array([30.0, np.nan]), "sex": np.array(["f", None], dtype=object)}, frozenset(), 2)
    >>> rows.take(np.array([1])).frame().to_pylist()
    [{'age': None, 'sex': None}]
    """

    columns: dict[str, NDArray[Any]]
    booleans: frozenset[str]
    n: int

    def __len__(self) -> int:
        return self.n

    def take(self, at: NDArray[Any]) -> TableRows:
        """The rows at these places, or where a mask is true.

        Parameters
        ----------
        at : ndarray of int or bool

        Returns
        -------
        TableRows
        """
        places = np.flatnonzero(at) if at.dtype == bool else at
        return TableRows({name: values[places] for name, values in self.columns.items()}, self.booleans, len(places))

    def frame(self) -> Any:
        """The same columns as a data frame, for models that read one.

        Returns
        -------
        pyarrow.Table
            Numbers as float64, flags as bool, categories as strings; what is missing is null.
        """
        import pyarrow as pa

        arrays = {}
        for name, values in self.columns.items():
            array = pa.array(values, pa.string() if values.dtype == object else pa.float64(), from_pandas=True)
            arrays[name] = array.cast(pa.bool_()) if name in self.booleans else array
        return pa.table(arrays)


def as_arrow(table: Any) -> Any:
    """A pandas, polars or pyarrow table, or a batch of one, as a pyarrow table with text names."""
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise TypeError(
                f"A table is a pandas, polars or pyarrow one, not {type(table).__name__}; read files with read_table."
            ) from None
        columns = {}
        for name, series in zip(frame.columns, frame.iter_columns(), strict=True):  # without pandas' index
            try:
                columns[str(name)] = _series(series)
            except (pa.ArrowException, TypeError) as error:
                if series.dtype == nw.Object:
                    raise ValueError(
                        f"column {name!r} mixes types ({error}); make it all numbers or all text."
                    ) from None
                raise ValueError(
                    f"column {name!r} is of type {series.to_native().dtype}, which is neither numbers nor text that can be "
                    f"read ({error}); turn it into one of them, or remove it."
                ) from None
        if len(columns) < len(frame.columns):
            raise ValueError("two columns have the same name; rename one of them.")
        table = pa.table(columns)
    if len(set(table.column_names)) < table.num_columns:
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise ValueError(f"there are several columns named {twice!r}; rename all but one.")
    return table


def _series(series: Any) -> Any:
    """A narwhals series as an Arrow array; intervals, as `pandas.cut` makes them, as text."""
    import narwhals.stable.v1 as nw
    import pyarrow as pa

    try:
        array = series.to_arrow()
    except TypeError:
        if not hasattr(series.to_native(), "sparse"):
            raise
        return pa.array(series.to_numpy(), from_pandas=True)
    return series.cast(nw.String).to_arrow() if _unreadable_levels(array.type) else array


def _unreadable_levels(dtype: Any) -> bool:
    from pyarrow import BaseExtensionType, types

    levels = dtype.value_type if types.is_dictionary(dtype) else None
    return levels is not None and (isinstance(levels, BaseExtensionType) or types.is_nested(levels))


def is_text(dtype: Any) -> bool:
    """Whether a column of this Arrow type holds strings."""
    from pyarrow import types

    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    return bool(types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype))


def is_number(dtype: Any) -> bool:
    """Whether a column of this Arrow type holds numbers, or nothing at all."""
    from pyarrow import types

    dtype = dtype.value_type if types.is_dictionary(dtype) else dtype
    real = types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype)
    return bool(real or types.is_null(dtype))


def is_boolean(dtype: Any) -> bool:
    """Whether a column of this Arrow type holds booleans."""
    from pyarrow import types

    return bool(types.is_boolean(dtype.value_type if types.is_dictionary(dtype) else dtype))


def plain(column: Any, missing: tuple[str, ...] = MISSING) -> Any:
    """A column without dictionary; text is stripped, and null where it stands for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type) and not _unreadable_levels(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return column
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())  # few kernels read views
    stripped = pc.utf8_trim_whitespace(column)
    codes = pc.is_in(stripped, pa.array(missing, stripped.type))
    return pc.if_else(codes, pa.scalar(None, stripped.type), stripped)


class Unreadable(ValueError):
    """A value that a column cannot have: `at` counts rows of the batch."""

    def __init__(self, value: Any, at: int, what: str) -> None:
        super().__init__(what)
        self.value, self.at, self.what = value, at, what


def read_numeric(column: Any, decimal: str, absent: str = "") -> NDArray[Any]:
    """An Arrow array as float64, NaN for what is missing, which the text `absent` is too."""
    values = cast_to_numbers(column) if decimal == "." and is_text(column.type) else None  # clean columns need no more
    if values is None:
        values = plain(column, (*MISSING, absent))
    if is_text(values.type):
        found = parsed(values, decimal)
        if found is None:
            mark = "with a decimal comma" if decimal == "," else "with a decimal point"
            raise _first(values, lambda part: parsed(part, decimal) is not None, f"is not a number ({mark})")
        values = found
    elif not (is_number(values.type) or is_boolean(values.type)):
        raise _of_wrong_type(values, "a number")
    read = np.array(numbers(values))  # a copy: rows outlive the table they were read from
    infinite = np.flatnonzero(np.isinf(read))
    if len(infinite):
        raise Unreadable(float(read[infinite[0]]), int(infinite[0]), "is infinite; leave it empty if it is not known")
    return read


def read_boolean(column: Any, categories: tuple[str, ...], true: str) -> NDArray[Any]:
    """An Arrow array of flags as 0 and 1, NaN for what is missing or neither. Capitals make no difference."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = plain(column)
    if is_text(values.type):
        lower = pc.utf8_lower(values)
        zeros = [*(name.lower() for name in categories if name != true), *_FALSE]
        zero, one = (pc.is_in(lower, pa.array(words, lower.type)) for words in (zeros, [true.lower(), *_TRUE]))
        values = pc.if_else(pc.or_(zero, one), one, None)
    elif not (is_number(values.type) or is_boolean(values.type)):
        raise _of_wrong_type(values, "true or false")
    read = np.array(numbers(values.cast(pa.uint8()) if is_boolean(values.type) else values))
    read[(read != 0) & (read != 1)] = np.nan
    return read


def read_categorical(column: Any) -> NDArray[Any]:
    """An Arrow array as objects: its texts, None for what is missing."""
    import pyarrow as pa

    if not (is_text(column.type) or is_number(column.type) or is_boolean(column.type)):
        raise _of_wrong_type(column, "text")
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    levels = coded.dictionary
    if not is_text(levels.type):
        levels = levels.cast(pa.string())
    names = np.array([*plain(levels).to_pylist(), None], dtype=object)
    places = coded.indices.cast(pa.int64()).fill_null(len(names) - 1)
    return np.asarray(names[np.from_dlpack(places)])


def _of_wrong_type(values: Any, wanted: str) -> Unreadable:
    return Unreadable(values[0].as_py() if len(values) else None, 0, f"is of type {values.type}, not {wanted}")


def _first(values: Any, readable: Callable[[Any], bool], what: str) -> Unreadable:
    """The first value of an array that cannot be read, found by halving."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if readable(values[low:middle]) else (low, middle)
    return Unreadable(values[low].as_py(), low, what)
