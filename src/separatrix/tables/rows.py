"""The rows of a table as NumPy columns, and how a column of any type is read as numbers, flags or categories.

    numeric      float64, NaN where nothing is known
    boolean      the same, 0 and 1
    categorical  CodedText: the different texts, and the place of every row among them

Text is read by kernels over all rows. Only when a value cannot be read is it looked for, to be named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import (
    MISSING,
    NUMERIC,
    UnreadableValue,
    has_nested_levels,
    kind,
    numbers,
    plain,
)
from separatrix.data.number_text import read_floats

_FIRST = 4096
# In a column known to hold flags these are read as well, so that it may come from another kind of file.
_TRUE, _FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")


@dataclass(frozen=True, eq=False)
class CodedText:
    """A column of categories: the different texts, and the place of every row among them, −1 where nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.rows import CodedText
    >>> np.asarray(CodedText(["f", "m"], np.array([0, 1, -1])))
    array(['f', 'm', None], dtype=object)
    """

    levels: list[str | None]
    places: NDArray[np.intp]
    memo: dict[str, Any] = field(default_factory=dict, repr=False)
    """What has been made of the different texts; parts of the rows share it."""
    dtype = np.dtype(object)

    @classmethod
    def of(cls, values: NDArray[Any] | CodedText) -> CodedText:
        """An array of objects, str or None, as such a column."""
        if isinstance(values, CodedText):
            return values
        order = {level: place for place, level in enumerate(dict.fromkeys(values.tolist())) if level is not None}
        place_of = {level: place for place, level in enumerate(order)}
        return cls(list(order), np.fromiter((place_of.get(value, -1) for value in values), np.intp, len(values)))

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: Any) -> CodedText:
        return CodedText(self.levels, self.places[at], self.memo)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array([*self.levels, None], dtype=object)[self.places]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.tolist())

    def tolist(self) -> list[str | None]:
        """The text of every row, None where nothing is known."""
        return list(self.__array__())

    @cached_property
    def tally(self) -> NDArray[np.intp]:
        """In how many rows nothing is known, and in how many each text stands."""
        return np.bincount(self.places + 1, minlength=len(self.levels) + 1)

    def counted(self, tally: NDArray[np.intp]) -> CodedText:
        """The same, whose tally has been taken already."""
        vars(self)["tally"] = tally
        return self

    @property
    def order(self) -> NDArray[np.intp]:
        """The texts that stand in some row, in the order of their first rows."""
        present = int((self.tally[1:] > 0).sum())
        order = np.empty(0, dtype=np.intp)
        for n in (_FIRST, len(self)):  # the first few rows have all of them mostly
            places = self.places[:n]
            first = np.full(len(self.levels) + 1, n)
            first[places[::-1]] = np.arange(len(places))[::-1]  # the first row of every text is written last
            order = np.argsort(first[:-1], kind="stable")[: int((first[:-1] < n).sum())]
            if len(order) == present:
                break
        return order

    def counts(self) -> dict[str, int]:
        """In how many rows each text stands, of those that do."""
        found = self.tally[1:].tolist()
        return {level: n for level, n in zip(self.levels, found, strict=True) if n and level is not None}

    def counts_in_order(self) -> dict[str, int]:
        """The same in the order of their first rows."""
        counts = self.counts()
        return {level: counts[level] for at in self.order if (level := self.levels[at]) is not None}

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where nothing is known."""
        return np.array([level is None for level in [*self.levels, None]])[self.places]


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of a table: what folds are taken from.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.rows import TableRows
    >>> rows = TableRows({"age": np.array([30.0, np.nan]), "sex": np.array(["f", None], dtype=object)}, frozenset(), 2)
    >>> rows.take(np.array([1])).frame().to_pylist()
    [{'age': None, 'sex': None}]
    """

    columns: dict[str, Any]  # float64 with NaN for numbers and flags, CodedText or objects (str or None) for categories
    booleans: frozenset[str]  # which of the columns hold flags
    n: int
    numbers: NDArray[np.intp] | None = None  # which rows of their table these are, the first being 1; None: all of them

    def __len__(self) -> int:
        return self.n

    def number_of(self, at: int) -> int:
        """The number of a row in the table that these rows are from, the first being 1."""
        return at + 1 if self.numbers is None else int(self.numbers[at])

    def take(self, at: NDArray[Any]) -> TableRows:
        """The rows at these places, or where a mask is true."""
        places = np.flatnonzero(at) if at.dtype == bool else at
        columns = {name: values[places] for name, values in self.columns.items()}
        numbers = places + 1 if self.numbers is None else self.numbers[places]
        return TableRows(columns, self.booleans, len(places), numbers)

    def of(self, names: list[str]) -> TableRows:
        """The same rows with these columns only."""
        return TableRows({name: self.columns[name] for name in names}, self.booleans & set(names), self.n, self.numbers)

    def holes(self) -> dict[str, int]:
        """In how many rows each column has no value."""
        columns = self.columns.items()
        return {name: int((x.missing if isinstance(x, CodedText) else np.isnan(x)).sum()) for name, x in columns}

    def frame(self) -> Any:
        """The same columns as a pyarrow table: float64, bool for flags, strings; what is missing is null."""
        import pyarrow as pa

        arrays = {}
        for name, values in self.columns.items():
            if isinstance(values, CodedText):
                levels = pa.array([*values.levels, None], pa.string())
                array = levels.take(pa.array(np.where(values.places < 0, len(values.levels), values.places)))
            else:
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
        columns = []
        for name, series in zip(frame.columns, frame.iter_columns(), strict=True):  # without pandas' index
            try:
                columns.append(_series(series))
            except (pa.ArrowException, TypeError) as error:
                what = (
                    f"mixes types ({error}); make it all numbers or all text."
                    if series.dtype == nw.Object
                    else f"is of type {series.to_native().dtype}, which is neither numbers nor text that can be read "
                    f"({error}); turn it into one of them, or remove it."
                )
                raise ValueError(f"column {name!r} {what}") from None
        table = pa.table(columns, names=[str(name) for name in frame.columns])
    for name, count in Counter(table.column_names).items():
        if count > 1:
            raise ValueError(f"there are several columns named {name!r}; rename all but one.")
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
    return series.cast(nw.String).to_arrow() if has_nested_levels(array.type) else array


def read_numeric(column: Any, decimal: str, absent: str = "", copy: bool = True) -> NDArray[Any]:
    """An Arrow array as float64, NaN for what is missing, which the text `absent` is too."""
    if kind(column.type) == "text":
        read = read_floats(column, decimal, (*MISSING, absent))
    else:
        values = plain(column)
        _check_kind(values, NUMERIC, "a number")
        read = numbers(values)
        read = np.array(read) if copy else np.asarray(read)  # copied where rows outlive the table they were read from
    check_finite(read)
    return read


def check_finite(values: NDArray[np.float64]) -> None:
    """Refuse infinity; NaN is a missing value."""
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        at = int(infinite[0])
        raise UnreadableValue(float(values[at]), at, "is infinite; leave it empty if it is not known")


def read_boolean(column: Any, categories: tuple[str, ...], true: str) -> NDArray[Any]:
    """An Arrow array of flags as 0 and 1, NaN for what is missing or neither. Capitals make no difference."""
    values = column if kind(column.type) == "text" else plain(column)
    if kind(values.type) == "numeric" and not {name.lower() for name in categories}.isdisjoint(_others(categories)):
        column = values = values.cast("string")  # a flag of two other numbers, such as 1 and 2
    if kind(values.type) == "text":
        text = text_places(column)
        return flags_of(text.levels, text.places, categories, true)
    _check_kind(values, NUMERIC, "true or false")
    if kind(values.type) == "boolean":
        return np.array(numbers(values.cast("uint8")))
    read = np.array(numbers(values))
    read[(read != 0) & (read != 1)] = np.nan
    return read


def _others(categories: tuple[str, ...]) -> set[str]:
    """The words of a flag that are numbers, where one of them is neither 0 nor 1."""
    numeric = {name for name in categories if name.lstrip("+-").replace(".", "", 1).isdigit()}
    return {name.lower() for name in numeric} if numeric - {"0", "1", "0.0", "1.0"} else set()


def flags_of(
    levels: Sequence[str | None], places: NDArray[np.intp], categories: tuple[str, ...], true: str
) -> NDArray[np.float64]:
    """Texts, as their levels and the place of every row among them, as 0 and 1, NaN for what is missing or neither."""
    meaning = dict.fromkeys(_FALSE, 0.0) | dict.fromkeys(_TRUE, 1.0)
    meaning |= {name.lower(): 0.0 for name in categories} | {true.lower(): 1.0}  # its own words before the usual ones
    values = [np.nan if level is None else meaning.get(level.lower(), np.nan) for level in levels]
    return np.array([*values, np.nan])[places]


def read_categorical(column: Any) -> CodedText:
    """An Arrow array as its different texts and the place of every row among them."""
    _check_kind(column, ("text", *NUMERIC), "text")
    return text_places(column)


def text_places(column: Any, missing: tuple[str, ...] = MISSING) -> CodedText:
    """An Arrow array as its different texts, stripped, in the order of its dictionary, which may hold texts of no row."""
    import pyarrow as pa

    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    levels, indices = encoded.dictionary, encoded.indices
    if kind(levels.type) != "text":
        levels = levels.cast(pa.string())
    places = indices.cast(pa.int64())
    if places.null_count:
        places = places.fill_null(-1)
    return merged_levels(plain(levels, missing).to_pylist(), np.asarray(np.from_dlpack(places)))


def coded_text(column: Any, missing: tuple[str, ...] = MISSING) -> CodedText:
    """The same, texts of some row only, in the order of their first rows."""
    import pyarrow as pa

    text = text_places(column, missing)
    if not pa.types.is_dictionary(column.type):
        return text
    order = text.order  # a dictionary may have any order, and texts of no row
    rank = np.full(len(text.levels) + 1, -1)
    rank[order] = np.arange(len(order))
    return CodedText([text.levels[at] for at in order], rank[text.places])


def merged_levels(levels: list[Any], places: NDArray[np.intp]) -> CodedText:
    """Texts that came with a dictionary of their own, each once: stripped, two of them may be the same, and some a hole."""
    order = {level: at for at, level in enumerate(dict.fromkeys(level for level in levels if level is not None))}
    if len(order) == len(levels):
        return CodedText(levels, places)
    return CodedText(list(order), np.array([*(order.get(level, -1) for level in levels), -1], dtype=np.intp)[places])


def _check_kind(values: Any, kinds: tuple[str, ...], wanted: str) -> None:
    if kind(values.type) not in kinds:
        first = values[0].as_py() if len(values) else None
        raise UnreadableValue(first, 0, f"is of type {values.type}, not {wanted}")
