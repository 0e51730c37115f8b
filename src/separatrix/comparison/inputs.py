"""What `compare` is given, as one table with a target: a table, a path, or X and y; columns and classes as asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.holdout import set_aside
from separatrix.data.block import Codes
from separatrix.data.checks import nearest_name
from separatrix.tables.preparation import RareClass, columns_used, table_of_arrays, without_rare_classes
from separatrix.tables.reading import read_table
from separatrix.tables.rows import TableRows
from separatrix.tables.schema import TableSchema


@dataclass(frozen=True)
class ReadTable:
    """A table as it is learnt from."""

    schema: TableSchema
    rows: TableRows
    codes: Codes
    groups: NDArray[np.intp] | None  # which rows belong together
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
    aside, left = None, None
    if holdout is not None:
        table, aside, left = set_aside(table, target, holdout, seed)
    table, notes, kept = without_rare_classes(table, target, rare_class, fewest)
    together = _groups(table, group, target)
    if drop or use or group or rare_class:
        table = columns_used(table, target, drop, use, () if group is None else (group,)).replace_schema_metadata(
            metadata
        )
    schema, rows, codes = TableSchema.infer_and_read(table, target, types)
    numbers = np.arange(1, len(rows) + 1) if rows.numbers is None else rows.numbers
    groups = None if together is None else together[numbers - 1]
    for before in (kept, left):  # rows are numbered as in the table that was given
        if before is not None:
            numbers = before[numbers - 1] + 1
    if kept is not None or left is not None:
        rows = replace(rows, numbers=numbers)
    return ReadTable(schema, rows, codes, groups, notes, name, aside)


def _groups(table: Any, group: str | None, target: str) -> NDArray[np.intp] | None:
    """A number for the group of every row; rows without one are groups of their own."""
    if group is None:
        return None
    if group not in table.column_names or group == target:
        names = [name for name in table.column_names if name != target]
        raise ValueError(f"There is no column {group!r} to group rows by; {nearest_name(group, names)}")
    values = table.column(group).combine_chunks().dictionary_encode()
    codes = np.asarray(values.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
    alone = np.flatnonzero(codes < 0)
    codes = codes.copy()
    codes[alone] = codes.max(initial=0) + 1 + np.arange(len(alone))
    return codes
