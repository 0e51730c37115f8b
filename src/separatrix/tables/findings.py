"""What a careful reader of a table would remark, as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.labels import shown
from separatrix.tables.columns import MANY_LINES, ColumnSchema
from separatrix.tables.rows import CodedText, TableRows

_FIRST = 2000
GIVES_AWAY = "determines the target"
"""What findings say of a column that gives the class away."""


def class_findings(
    target: str, classes: tuple[Any, ...], counts: NDArray[np.intp], n_rows: int, unlabelled: Counter[str]
) -> Iterator[str]:
    """On rows without a class, rare classes, and classes of very different sizes; `counts` are those of the classes."""
    without = n_rows - int(counts.sum())
    if without:
        counted = [f"{text!r} in {n} row{'' if n == 1 else 's'}" for text, n in unlabelled.items()]
        texts = f" ({joined(counted)})" if counted else ""
        yield f"{without} of {n_rows} rows have no value in the target {target!r}{texts} and are not used."
    rare = counts < 5
    yield from few(
        f"Class {shown(classes[k])} has only {counts[k]} row{'' if counts[k] == 1 else 's'}: nothing reliable can be said "
        "about it. Add rows, or join it with another class."
        for k in np.flatnonzero(rare)
    )
    share, rarest = counts.min() / counts.sum(), shown(classes[int(counts.argmin())])
    if share < min(0.1, 0.5 / len(classes)) and not rare.any():
        yield (
            f"The classes are unbalanced: {rarest} is {share:.1%} of the rows. Judge models by log loss or by costs rather "
            "than by accuracy."
        )


def spelling_findings(target: str, classes: tuple[Any, ...], columns: tuple[ColumnSchema, ...]) -> Iterator[str]:
    """On labels and categories that differ in nothing but capitals and spaces, and on labels of many lines."""
    labels = [label for label in classes if isinstance(label, str)]
    for what, texts in ((f"The target {target!r}", labels), *((f"Column {c.name!r}", c.categories) for c in columns)):
        alike: dict[str, list[str]] = {}
        for text in texts:
            alike.setdefault(" ".join(text.casefold().split()), []).append(text)
        same = [" and ".join(map(repr, found)) for found in alike.values() if len(found) > 1]
        if same:
            yield f"{what} holds {joined(same)}, which are taken for different values; write them alike if they are not."
    lines = max((label.count("\n") for label in labels), default=0)
    if lines > MANY_LINES:
        yield f"The target {target!r} has a label of {lines + 1} lines: is a quotation mark left open before it?"


def column_findings(columns: tuple[ColumnSchema, ...], holes: Mapping[str, int], n: int) -> Iterator[str]:
    """On columns that are left out, and on holes in the others: so many of n rows."""
    yield from few(f"Column {c.name!r} is left out. {c.reason}" for c in columns if c.kind == "left_out")
    yield from few(
        f"Column {name!r} is missing in {count / n:.0%} of the rows." for name, count in holes.items() if count >= n / 2
    )
    some = [f"{name!r} ({count / n:.1%})" for name, count in holes.items() if 0 < count < n / 2]
    if some:
        yield f"There are missing values in {joined(some)}."


def leak_findings(target: str, rows: TableRows, codes: NDArray[np.intp]) -> Iterator[str]:
    """On columns whose value, or its absence, determines the class of every row: more often than by chance."""
    with np.errstate(divide="ignore"):  # a class without rows is not met below
        log_share = np.log(np.bincount(codes) / len(codes))
    for name, values in rows.columns.items():
        for some in (slice(_FIRST), slice(None)):  # most columns are done with after a look at the first rows
            places, n_values = _places(values[some])
            pairs = np.unique(places * len(log_share) + codes[some])
            repeats = np.bincount(places) - 1
            if len(pairs) > n_values or not repeats.any():
                break
        else:
            # The first row of a value may be of any class; that all others agree with it has this probability.
            if (repeats * log_share[pairs % len(log_share)]).sum() < np.log(1e-6):
                yield (
                    f"Column {name!r} {GIVES_AWAY} {target!r} in every row: is it known before the outcome? If not, "
                    "remove it."
                )


def _places(values: Any) -> tuple[NDArray[np.intp], int]:
    """Every value, a hole being one, as its place among the different ones, and how many these are."""
    different, places = np.unique(values.places if isinstance(values, CodedText) else values, return_inverse=True)
    return places, len(different)


def row_findings(rows: TableRows, codes: NDArray[np.intp]) -> Iterator[str]:
    """On rows that stand there twice."""
    import pyarrow as pa

    columns = rows.frame().columns
    frame = pa.table([*columns, pa.array(codes)], names=[str(j) for j in range(len(columns) + 1)])
    copies = len(rows) - frame.group_by(frame.column_names, use_threads=False).aggregate([]).num_rows
    # With a few coarse columns most rows are bound to look alike, which means nothing.
    if 0 < copies < len(rows) / 2:
        yield (
            f"{copies} row{' repeats' if copies == 1 else 's repeat'} an earlier row in every column used. A case entered "
            "twice should be removed: a model tested on a copy of a training row looks better than it is."
        )


def joined(phrases: Sequence[str], most: int = 8) -> str:
    """The first phrases of a list, for a sentence."""
    rest = f" and {len(phrases) - most} more" if len(phrases) > most else ""
    return ", ".join(phrases[:most]) + rest


def few(sentences: Iterable[str], most: int = 8) -> Iterator[str]:
    """The first of many sentences of one kind, and how many there are more."""
    more = 0
    for at, sentence in enumerate(sentences):
        if at < most:
            yield sentence
        else:
            more += 1
    if more:
        yield f"… and {more} more like {'this' if more == 1 else 'these'}."
