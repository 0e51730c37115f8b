"""What a careful reader of a table would remark, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.columns import ColumnSchema
from separatrix.comparison.rows import Rows
from separatrix.data.labels import shown


def class_findings(target: str, classes: tuple[Any, ...], codes: NDArray[np.intp]) -> Iterator[str]:
    """On rows without a class, rare classes, and classes of very different sizes."""
    counts = np.bincount(codes[codes >= 0], minlength=len(classes))
    without = len(codes) - int(counts.sum())
    if without:
        yield f"{without} of {len(codes)} rows have no value in the target {target!r} and are not used."
    rare = counts < 5
    for label, count in ((classes[k], counts[k]) for k in np.flatnonzero(rare)):
        yield (
            f"Class {shown(label)} has only {count} row{'' if count == 1 else 's'}: nothing reliable can be said about it. Add "
            "rows, or join it with another class."
        )
    share, rarest = counts.min() / counts.sum(), shown(classes[int(counts.argmin())])
    if share < 0.1 and not rare.any():
        yield (
            f"The classes are unbalanced: {rarest} is {share:.1%} of the rows. Judge models by log loss or by costs rather "
            "than by accuracy."
        )


def column_findings(columns: tuple[ColumnSchema, ...], n: int) -> Iterator[str]:
    """On columns that are left out, and on holes in the others."""
    for column in columns:
        if column.kind == "left_out":
            yield f"Column {column.name!r} is left out. {column.reason}"
    holes = [column for column in columns if column.missing and column.kind != "left_out"]
    for column in holes:
        if column.missing >= n / 2:
            yield f"Column {column.name!r} is missing in {column.missing / n:.0%} of the rows."
    some = [f"{column.name!r} ({column.missing / n:.1%})" for column in holes if column.missing < n / 2]
    if some:
        yield f"There are missing values in {joined(some)}."


def row_findings(rows: Rows, codes: NDArray[np.intp]) -> Iterator[str]:
    """On rows that stand there twice."""
    import pyarrow as pa

    columns = rows.frame().columns
    frame = pa.table([*columns, pa.array(codes)], names=[str(j) for j in range(len(columns) + 1)])
    copies = len(rows) - frame.group_by(frame.column_names, use_threads=False).aggregate([]).num_rows
    # With a few coarse columns most rows are bound to look alike, which says nothing.
    if 0 < copies < len(rows) / 2:
        yield (
            f"{copies} row{' repeats' if copies == 1 else 's repeat'} an earlier row in every column used. A case entered "
            "twice should be removed: a model tested on a copy of a training row looks better than it is."
        )


def joined(phrases: Sequence[str]) -> str:
    """The first phrases of a list, for a sentence."""
    rest = f" and {len(phrases) - 8} more" if len(phrases) > 8 else ""
    return ", ".join(phrases[:8]) + rest
