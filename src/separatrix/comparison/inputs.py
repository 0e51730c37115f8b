"""What `compare` is given, as one table with a target: a table, a path, or X and y; columns and classes as asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.evaluation import judged_rows
from separatrix.comparison.holdout import set_aside
from separatrix.data.arrow_columns import NUMERIC, UnreadableCell, kind, plain
from separatrix.data.block import Codes, Float
from separatrix.data.checks import nearest_name
from separatrix.tables.dates import date_form, date_part
from separatrix.tables.preparation import RareClass, columns_used, table_of_arrays, with_classes, without_rare_classes
from separatrix.tables.reading import read_table
from separatrix.tables.rows import TableRows, as_arrow
from separatrix.tables.schema import TableSchema


@dataclass(frozen=True)
class ReadTable:
    """A table as it is learnt from."""

    schema: TableSchema
    rows: TableRows
    codes: Codes
    groups: NDArray[np.intp] | None  # which rows belong together
    weights: Float | None  # how often each row counts
    times: Float | None  # when each row was
    notes: list[str]
    name: str
    aside: Any  # a table on which nothing is learnt, or None


def read_for_comparison(
    data: Any,
    target: Any,
    *,
    drop: Iterable[str] = (),
    use: Iterable[str] = (),
    types: Mapping[str, str] | None = None,
    group: str | None = None,
    weight: str | None = None,
    time: str | None = None,
    rare_class: RareClass | None = None,
    fewest: int = 2,
    holdout: Any = None,
    seed: int = 0,
) -> ReadTable:
    """The rows to learn from, and what is known of them."""
    from_file = isinstance(data, str | os.PathLike)
    name, table = (Path(data).name, read_table(data)) if from_file else ("", data)
    if not isinstance(target, str) and hasattr(target, "__len__"):
        table, target = table_of_arrays(table, target)
    target = str(target)
    metadata = getattr(getattr(table, "schema", None), "metadata", None)
    table = as_arrow(table)
    together, counted = _groups(table, group, target), _weights(table, weight, target)
    when = _times(table, time, target)
    aside, left = None, None
    if holdout is not None:
        table, aside, left = set_aside(table, target, holdout, seed, together)
    table, notes, kept = without_rare_classes(table, target, rare_class, fewest)
    given = kept if left is None else left if kept is None else left[kept]  # places in the table that was given
    apart = [name for name in (group, weight, time) if name is not None]
    if drop or use or apart or rare_class:
        table = columns_used(table, target, drop, use, apart).replace_schema_metadata(metadata)
    with _numbered(given):
        schema, rows, codes = TableSchema.infer_and_read(table, target, types)
    if aside is not None:
        aside, note = _judged_last(aside, left, schema, rare_class)
        notes += note
    numbers = np.arange(1, len(rows) + 1) if rows.numbers is None else rows.numbers
    if given is not None:
        numbers = given[numbers - 1] + 1
        rows = replace(rows, numbers=numbers)
    groups = None if together is None else together[numbers - 1]
    weights, times = (None if one is None else one[numbers - 1] for one in (counted, when))
    if weights is not None and not weights.all():  # a row that counts 0 times is no row
        some = np.flatnonzero(weights)
        notes.append(f"{len(weights) - len(some)} rows of weight 0 are not used.")
        rows, codes, numbers, weights = rows.take(some), codes[some], numbers[some], weights[some]
        groups = None if groups is None else groups[some]
        times = None if times is None else times[some]
        rows = replace(rows, numbers=numbers)
    return ReadTable(schema, rows, codes, groups, weights, times, notes, name, aside)


def _judged_last(
    aside: Any, left: NDArray[np.intp] | None, schema: TableSchema, rare_class: RareClass | None
) -> tuple[Any, list[str]]:
    """The rows that were set aside, as classes are learnt; what is wrong with them is said now, not when all is done."""
    n = aside.num_rows + (0 if left is None else len(left))
    given = None if left is None else np.delete(np.arange(n), left)
    aside, notes, kept = with_classes(aside, schema.target, rare_class, schema.classes)
    if kept is not None:
        given = kept if given is None else given[kept]
    try:
        with _numbered(given):
            judged_rows(schema, aside)
    except ValueError as error:
        if left is not None:
            raise
        raise ValueError(f"The table to judge on (holdout): {error}") from None
    return aside, notes


@contextmanager
def _numbered(given: NDArray[np.intp] | None) -> Iterator[None]:
    """A row that cannot be read has the number that it has in the table that was given, of which these rows are left."""
    try:
        yield
    except UnreadableCell as error:
        if given is None:
            raise
        raise error.moved(int(given[error.row])) from None


def _groups(table: Any, group: str | None, target: str) -> NDArray[np.intp] | None:
    """A number for the group of every row; rows without one are groups of their own."""
    if group is None:
        return None
    values = _column(table, group, target, "group rows by").dictionary_encode()
    codes = np.asarray(values.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
    alone = np.flatnonzero(codes < 0)
    codes = codes.copy()
    codes[alone] = codes.max(initial=0) + 1 + np.arange(len(alone))
    return codes


def _column(table: Any, name: str, target: str, what: str) -> Any:
    """A column that is not learnt from, as one Arrow array."""
    if name not in table.column_names or name == target:
        names = [one for one in table.column_names if one != target]
        raise ValueError(f"There is no column {name!r} to {what}; {nearest_name(name, names)}")
    return table.column(name).combine_chunks()


def _weights(table: Any, name: str | None, target: str) -> Float | None:
    """How often each row counts."""
    if name is None:
        return None
    found = _numbers(_column(table, name, target, "weight rows by"))
    if found is None:
        raise ValueError(f"The weights in column {name!r} are not all numbers; give numbers of at least 0.")
    wrong = np.flatnonzero(~(np.isfinite(found) & (found >= 0.0)))
    if len(wrong):
        value = "missing" if np.isnan(found[wrong[0]]) else f"{found[wrong[0]]:g}"
        raise ValueError(
            f"The weight in column {name!r}, row {wrong[0] + 1}, is {value}; give every row a finite number of at least 0."
        )
    return found


def _times(table: Any, name: str | None, target: str) -> Float | None:
    """When each row was: numbers as they are, dates in days."""
    if name is None:
        return None
    values = _column(table, name, target, "order rows by")
    found = _numbers(values)
    if found is None:
        found = date_part(values, "days", date_form(name, values))
    wrong = np.flatnonzero(~np.isfinite(found))
    if len(wrong):
        raise ValueError(
            f"The time in column {name!r}, row {wrong[0] + 1}, is missing; give every row one, or drop it."
        )
    return found


def _numbers(column: Any) -> Float | None:
    """The values as numbers, NaN where there is none; None where they are something else."""
    import pyarrow as pa

    values = plain(column)
    if kind(values.type) not in ("text", *NUMERIC):
        return None
    try:
        numbers = values.cast(pa.float64(), safe=False)
    except pa.ArrowInvalid:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
