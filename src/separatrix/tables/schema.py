"""What the columns of a table mean: numbers, flags, categories, or nothing a classifier should see.

It is inferred once, from all training rows, and from then on it is the contract with every other table: the same text means
the same thing in a file read whole, in a batch of a stream, and in the rows to be predicted.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.labels import as_label, is_missing
from separatrix.data.number_text import decimal_mark
from separatrix.tables.columns import ColumnSchema, infer_column, without_copies
from separatrix.tables.findings import (
    class_findings,
    column_findings,
    few,
    joined,
    leak_findings,
    row_findings,
    spelling_findings,
)
from separatrix.tables.reading import DELIMITER, FIRST_ROW
from separatrix.tables.rows import (
    NO_LABEL,
    TableRows,
    Unreadable,
    as_arrow,
    is_text,
    plain,
    read_boolean,
    read_categorical,
    read_numeric,
)
from separatrix.tables.target import classes_of, unlabelled

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
    >>> from separatrix.tables.schema import TableSchema
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
        table = as_arrow(table)
        if str(target) in table.column_names:  # a frame may have numbers for names
            target = str(target)
        else:
            near = difflib.get_close_matches(str(target), table.column_names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the columns are {_quoted(table.column_names)}."
            raise ValueError(f"The table has no target column {target!r}; {hint}")
        if not table.num_rows:
            raise ValueError("The table has no rows; give at least two rows of each class.")
        if table.num_columns == 1:
            raise ValueError(f"The table has no column but the target {target!r}; give some to learn it from.")
        classes = classes_of(target, table.column(target))
        names = [name for name in table.column_names if name != target]
        delimiter = (table.schema.metadata or {}).get(DELIMITER, b"").decode()
        texts = (plain(table.column(name)) for name in names if is_text(table.column(name).type))
        decimal = decimal_mark(texts, delimiter)
        inferred = [infer_column(name, table.column(name), decimal) for name in names]
        schema = cls(tuple(column for column, _ in inferred), target, classes, decimal)
        rows = schema.read(table)
        schema = replace(schema, columns=tuple(without_copies(schema.columns, rows)))
        if not schema.used:
            why = " ".join(f"Column {column.name!r}: {column.reason}" for column in schema.columns[:5])
            raise ValueError(f"No column is left to learn {target!r} from. {why}")
        codes, known = schema.read_target(table)
        rows, labelled = rows.take(known), codes[known]  # all that is learnt from
        findings = [
            *class_findings(target, classes, codes, unlabelled(table.column(target))),
            *few(spelling_findings(target, classes, schema.columns)),
            *column_findings(schema.columns, rows),
            *few(leak_findings(target, rows, labelled)),
            *few(remark for _, remarks in inferred for remark in remarks),
            *row_findings(rows, labelled),
        ]
        return replace(schema, findings=tuple(findings))

    def read(self, table: Any) -> TableRows:
        """The rows of a table or of a batch of it, by the names of its columns.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, or pyarrow.RecordBatch
            Columns that the schema does not know, or leaves out, are not looked at.

        Returns
        -------
        TableRows
        """
        table = as_arrow(table)
        self._check_names(table, [column.name for column in self.used])
        columns = {}
        for column in self.used:
            parts = [np.empty(0, dtype=object if column.kind == "categorical" else np.float64)]
            parts += _chunks(table, column.name, partial(self._read, column))
            columns[column.name] = parts[1] if len(parts) == 2 else np.concatenate(parts)
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
        place = {label: code for code, label in enumerate(self.classes)}
        found = _chunks(table, self.target, partial(self._codes, place))
        codes = np.concatenate([np.empty(0, dtype=np.intp), *found])
        return codes, codes >= 0

    def to_json(self) -> dict[str, Any]:
        """The schema as plain values, which JSON can hold.

        Returns
        -------
        dict
        """
        plain_values = asdict(self)
        for column in plain_values["columns"]:
            column["categories"] = list(column["categories"])
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain_values.items()}

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
        absent = [name for name in names if name not in given]
        if absent:
            raise ValueError(
                f"schema mismatch: the table has no column {_quoted(absent)}; it has {_quoted(table.column_names)}. Give the "
                "columns that the schema was inferred from, in any order."
            )

    def _read(self, column: ColumnSchema, chunk: Any) -> NDArray[Any]:
        if column.kind == "numeric":
            return read_numeric(chunk, self.decimal, column.absent)
        if column.kind == "boolean":
            return read_boolean(chunk, column.categories, column.true)
        return read_categorical(chunk)

    def _codes(self, place: dict[Any, int], chunk: Any) -> NDArray[np.intp]:
        """The code of every label of an array; labels are few, so each is looked up once."""
        import pyarrow as pa

        coded = plain(chunk, NO_LABEL).dictionary_encode()
        labels = coded.dictionary.to_pylist()
        like = self.classes[0]
        codes = np.array([*(-1 if is_missing(label) else place.get(as_label(label, like), -2) for label in labels), -1])
        found = codes[np.from_dlpack(coded.indices.cast(pa.int64()).fill_null(len(labels)))].astype(np.intp)
        strange = np.flatnonzero(found == -2)
        if len(strange):
            value = chunk[int(strange[0])].as_py()
            raise Unreadable(value, int(strange[0]), f"is not one of the classes {_quoted(self.classes)}")
        return found


def _chunks(table: Any, name: str, read: Callable[[Any], NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """What is read from every chunk of a column; a value that cannot be read is named with its row of the file."""
    start = int((table.schema.metadata or {}).get(FIRST_ROW, b"0"))
    for chunk in table.column(name).chunks:
        try:
            yield read(chunk)
        except Unreadable as error:
            raise ValueError(
                f"column {name!r}, row {start + error.at + 1} (the first row of data is 1): {error.value!r} {error.what}."
            ) from None
        start += len(chunk)


def _quoted(names: Iterable[Any]) -> str:
    return joined([repr(name) for name in names])
