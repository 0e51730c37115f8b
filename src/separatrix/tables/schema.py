"""What the columns of a table mean: numbers, flags, categories, or nothing a classifier should see.

It is inferred once, from all training rows, and from then on it is the contract with every other table: the same text means
the same thing in a file read whole, in a batch of a stream, and in the rows to be predicted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrow_columns import NO_LABEL, UnreadableCell, UnreadableValue, coded, kind, plain
from separatrix.data.block import Codes
from separatrix.data.checks import nearest_name
from separatrix.data.number_text import decimal_mark
from separatrix.tables.columns import ColumnSchema, InferredColumn, ParsedColumn, infer_column, without_copies
from separatrix.tables.dates import PARTS, date_form, date_part
from separatrix.tables.findings import (
    class_findings,
    column_findings,
    few,
    joined,
    leak_findings,
    row_findings,
    spelling_findings,
)
from separatrix.tables.preparation import checked_types
from separatrix.tables.reading import DELIMITER, FIRST_ROW
from separatrix.tables.rows import (
    CodedText,
    TableRows,
    as_arrow,
    read_boolean,
    read_categorical,
    read_numeric,
    text_places,
)
from separatrix.tables.target import infer_labels, label_codes

__all__ = ["ColumnSchema", "TableSchema"]


@dataclass(frozen=True)
class TableSchema:
    """What the columns of a table are, and what was found in them.

    Parameters
    ----------
    columns : tuple of ColumnSchema
        All but the target, in the order of the table.
    target : str
        The column that holds the class.
    classes : tuple
        Its values, sorted: text, whole numbers, numbers or booleans.
    decimal : {".", ","}
        The decimal mark of numbers in text.
    findings : tuple of str
        What a careful reader of the table would remark, as sentences.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from separatrix.tables import TableSchema
    >>> table = pa.table({"age": ["31", "?", "45"], "smoker": ["yes", "no", "no"], "ill": ["0", "1", "1"]})
    >>> schema = TableSchema.infer(table, target="ill")
    >>> [(column.name, column.kind, column.missing) for column in schema.columns]
    [('age', 'numeric', 1), ('smoker', 'boolean', 0)]
    >>> schema.classes
    (0, 1)
    >>> schema.read(table).columns["age"]
    array([31., nan, 45.])
    """

    columns: tuple[ColumnSchema, ...]
    target: str
    classes: tuple[Any, ...]
    decimal: Literal[".", ","] = "."
    findings: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[ColumnSchema, ...]:
        """The columns that are not left out."""
        return tuple(column for column in self.columns if column.kind != "left_out")

    @property
    def prose(self) -> tuple[str, ...]:
        """The columns of free text."""
        return tuple(column.name for column in self.used if column.encoding == "text")

    def plain_frame(self, rows: TableRows) -> Any:
        """Rows as a table for models that read columns themselves, without free text."""
        names = [name for name in rows.columns if name not in self.prose]
        if not names:
            raise ValueError("It reads columns as they are, and every column is free text.")
        return (rows.of(names) if self.prose else rows).frame()

    @classmethod
    def infer(cls, table: Any, target: str) -> TableSchema:
        """Find out what the columns of a table are.

        Parameters
        ----------
        table : pandas, polars or pyarrow table
        target : str
            The column that holds the class.

        Returns
        -------
        TableSchema
        """
        return cls.infer_and_read(table, target)[0]

    @classmethod
    def infer_and_read(
        cls, table: Any, target: str, types: Mapping[str, str] | None = None
    ) -> tuple[TableSchema, TableRows, Codes]:
        """What the columns of a table are, and its rows; every column is parsed once for both.

        Parameters
        ----------
        table, target
            As for `infer`.
        types : dict of str to {"numeric", "categorical", "target", "text", "boolean", "date"}, optional
            What columns are, by name; the others are looked at. "target" is categorical, encoded by the target; of "text"
            the words are read.

        Returns
        -------
        schema : TableSchema
        rows : TableRows
            Those that have a class.
        codes : ndarray of int
            Their classes, as places in `schema.classes`.
        """
        table = as_arrow(table)
        target = _checked_target(table, target)
        labels = infer_labels(target, table.column(target))
        given = {name: ParsedColumn(name, table.column(name)) for name in table.column_names if name != target}
        delimiter = (table.schema.metadata or {}).get(DELIMITER, b"").decode()
        decimal = decimal_mark((column.text for column in given.values() if column.text is not None), delimiter)
        inferred: list[InferredColumn] = []
        declared = checked_types(types, table.column_names, target)
        for name in list(given):
            with _placed(name, _first_row(table)):
                column = given.pop(name)  # its text is not needed any more
                if declared.get(name) == "date":
                    inferred.extend(_dated(name, table.column(name), table.column_names))
                else:
                    inferred.append(infer_column(column, decimal, declared.get(name, "")))
        schema = cls(tuple(without_copies(inferred)), target, labels.classes, decimal)
        if not schema.used:
            why = " ".join(f"Column {column.name!r}: {column.reason}" for column in schema.columns[:5])
            raise ValueError(f"No column is left to learn {target!r} from. {why}")
        known = labels.codes >= 0
        values = {column.schema.name: column.values for column in inferred if column.values is not None}
        flags = frozenset(column.schema.name for column in inferred if column.schema.kind == "boolean")
        rows, codes = TableRows(values, flags, table.num_rows).take(known), labels.codes[known]
        counts = np.bincount(codes, minlength=len(labels.classes))
        findings = [
            *class_findings(target, labels.classes, counts, table.num_rows, labels.unlabelled),
            *few(spelling_findings(target, labels.classes, schema.columns)),
            *column_findings(schema.columns, rows.of([column.name for column in schema.used]).holes(), len(rows)),
            *few(leak_findings(target, rows, codes)),
            *few(remark for column in inferred for remark in column.remarks),
            *row_findings(rows, codes),
        ]
        return replace(schema, findings=tuple(findings)), rows.of([column.name for column in schema.used]), codes

    def read(self, table: Any, *, copy: bool = True) -> TableRows:
        """The rows of a table or of a batch of it, by the names of its columns.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or pyarrow.RecordBatch
            Columns that the schema does not know, or leaves out, are not looked at.
        copy : bool, default=True
            False: numbers may be those of the table itself, read-only.

        Returns
        -------
        TableRows
        """
        table = as_arrow(table)
        self._check_names(table, [column.source or column.name for column in self.used])
        columns = {}
        for column in self.used:
            parts = list(_chunks(table, column.source or column.name, partial(self._read, column, copy)))
            columns[column.name] = parts[0] if len(parts) == 1 else _joined(column, parts)
        flags = frozenset(column.name for column in self.used if column.kind == "boolean")
        return TableRows(columns, flags, table.num_rows)

    def read_target(self, table: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """The class of every row.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or pyarrow.RecordBatch

        Returns
        -------
        codes : ndarray of int
            Places in `classes`; −1 where the row has none.
        known : ndarray of bool
            Which rows have one.
        """
        table = as_arrow(table)
        self._check_names(table, [self.target])
        parts = list(_chunks(table, self.target, self._codes))
        codes = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype=np.intp), *parts])
        return codes, codes >= 0

    def to_json(self) -> dict[str, Any]:
        """The schema as plain values, which JSON can hold.

        Returns
        -------
        dict
        """
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, d: dict[str, Any]) -> TableSchema:
        """The schema that `to_json` wrote.

        Parameters
        ----------
        d : dict

        Returns
        -------
        TableSchema
        """
        try:
            columns = tuple(
                ColumnSchema(**{**column, "categories": tuple(column["categories"])}) for column in d["columns"]
            )
            return cls(columns, d["target"], tuple(d["classes"]), d["decimal"], tuple(d["findings"]))
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"This is not the schema of a table ({error}); write it with TableSchema.to_json."
            ) from None

    def _check_names(self, table: Any, names: list[str]) -> None:
        given = set(table.column_names)
        absent = [name for name in dict.fromkeys(names) if name not in given]  # parts of a date share a column
        if absent:
            raise ValueError(
                f"schema mismatch: the table has no column {_quoted(absent)}; it has {_quoted(table.column_names)}. Give the "
                "columns that the schema was inferred from, in any order."
            )

    def _read(self, column: ColumnSchema, copy: bool, chunk: Any) -> Any:
        if column.part:
            return date_part(chunk, column.part, column.form)
        if column.kind == "numeric":
            return read_numeric(chunk, self.decimal, column.absent, copy)
        if column.kind == "boolean":
            return read_boolean(chunk, column.categories, column.true)
        return read_categorical(chunk)

    def _codes(self, chunk: Any) -> Codes:
        """The code of every label of an array; labels are few, so each is looked up once."""
        if kind(chunk.type) == "text":
            text = text_places(chunk, NO_LABEL)
            levels, places = text.levels, text.places
        else:
            levels, places = coded(plain(chunk, NO_LABEL))
        found = np.array([*label_codes(levels, self.classes), -1], dtype=np.intp)
        codes = found.take(places, mode="wrap")  # −1: the last
        if found.min() > -2:
            return codes
        strange = np.flatnonzero(codes == -2)
        if len(strange):
            value = chunk[int(strange[0])].as_py()
            raise UnreadableValue(value, int(strange[0]), f"is not one of the classes {_quoted(self.classes)}")
        return codes


def _checked_target(table: Any, target: Any) -> str:
    """The name of the target in a table that has it, other columns, and rows."""
    name = str(target)  # a frame may have numbers for names
    if name not in table.column_names:
        raise ValueError(f"The table has no target column {target!r}; {nearest_name(name, table.column_names)}")
    if not table.num_rows:
        raise ValueError("The table has no rows; give at least two rows of each class.")
    if table.num_columns == 1:
        raise ValueError(f"The table has no column but the target {name!r}; give some to learn it from.")
    return name


def _dated(name: str, column: Any, taken: list[str]) -> Iterator[InferredColumn]:
    """The parts of a column of dates that vary."""
    form = date_form(name, column)
    yielded = False
    for part in PARTS:
        x = np.concatenate([np.empty(0), *(date_part(chunk, part, form) for chunk in column.chunks)])
        own = f"{name} ({part})"
        if own in taken:
            raise ValueError(
                f"The table has a column {own!r}, as a part of the date {name!r} would be called; rename it."
            )
        seen = x[~np.isnan(x)]
        if len(seen) and float(seen.min()) < float(seen.max()) - 1e-9:
            missing, yielded = len(x) - len(seen), True
            reason = f"It is a part of the date {name!r}."
            schema = ColumnSchema(own, "numeric", reason, missing=missing, source=name, part=part, form=form)
            yield InferredColumn(schema, x)
    if not yielded:
        yield InferredColumn(ColumnSchema(name, "left_out", "It is constant."))


def _first_row(table: Any) -> int:
    """How many rows of its file stand before a table."""
    return int((table.schema.metadata or {}).get(FIRST_ROW, b"0"))


@contextmanager
def _placed(name: str, start: int) -> Iterator[None]:
    """Name the column and the row of a value that cannot be read."""
    try:
        yield
    except UnreadableValue as error:
        raise UnreadableCell(name, start + error.at, error) from None


def _chunks(table: Any, name: str, read: Callable[[Any], Any]) -> Iterator[Any]:
    """What is read from every chunk of a column."""
    start = _first_row(table)
    for chunk in table.column(name).chunks:
        with _placed(name, start):
            values = read(chunk)
        yield values
        start += len(chunk)


def _joined(column: ColumnSchema, parts: list[Any]) -> Any:
    """What was read from the chunks of a column, as one."""
    if column.kind != "categorical":
        return np.concatenate([np.empty(0), *parts])
    order: dict[Any, int] = {}
    places = [
        np.array([*(order.setdefault(x, len(order)) for x in p.levels), -1], dtype=np.intp)[p.places] for p in parts
    ]
    return CodedText(list(order), np.concatenate([np.empty(0, dtype=np.intp), *places]))


def _quoted(names: Iterable[Any]) -> str:
    return joined([repr(name) for name in names])
