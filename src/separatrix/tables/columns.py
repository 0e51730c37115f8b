"""What one column of a table is: numbers, flags, categories, or nothing a classifier should see.

Types decide where a table has them. Text is numbers when all of it is; otherwise its different values decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.number_text import (
    Mark,
    is_padded,
    like_numbers,
    lone_text,
    parsed,
    remark_on_writing,
)
from separatrix.data.readers import numbers
from separatrix.tables.rows import MISSING, TableRows, is_boolean, is_number, is_text, plain

Kind = Literal["numeric", "boolean", "categorical", "left_out"]
MOST_LEVELS = 50
"""Categories beyond these, the most frequent ones, have no column of their own."""

_TURN = "; turn them into numbers (an age, a month) if they matter."
_PAIRS = {("no", "yes"), ("false", "true"), ("n", "y"), ("f", "t")}
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?(Z|[+-]\d{2}:?\d{2}|[AaPp][Mm]))?"
_MONTH = r"(?i:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\pL*"
_DAY = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|{_MONTH}[-. ]{{1,2}}(\d{{1,2}},? )?\d{{4}}|\d{{1,2}}[-. ]{{1,2}}{_MONTH}([-. ]{{1,2}}(\d{{4}}|\d{{2}}))?"
)
_DATE = rf"^(({_DAY})([T ]{_TIME})?|{_TIME})$"
_NINES = frozenset(10.0**k - 1 for k in range(2, 10))
_IDENTIFIER = re.compile(r"(^|[_\W])(id|key|index|no|nr|number)$|[a-z](Id|ID)$", re.IGNORECASE)
MANY_LINES = 5
"""A text with more newlines is likely to have swallowed rows of its file."""
FEW = 10
"""That so few rows are all different proves nothing."""


@dataclass(frozen=True)
class ColumnSchema:
    """What one column is.

    Parameters
    ----------
    name : str
    kind : {"numeric", "boolean", "categorical", "left_out"}
    reason : str
        Why, as a sentence.
    categories : tuple of str
        Of a categorical column its values, sorted; of a boolean one both.
    missing : int
        In how many rows there is no value.
    true : str
        Of a boolean column the category that is 1.
    absent : str
        Of a numeric column a text that stands for a missing value there, beyond those that always do.
    """

    name: str
    kind: Kind
    reason: str
    categories: tuple[str, ...] = ()
    missing: int = 0
    true: str = ""
    absent: str = ""


def infer_column(name: str, column: Any, decimal: Mark) -> tuple[ColumnSchema, list[str]]:
    """What a column is, and remarks for whoever gave the table; most need none."""
    from pyarrow import types

    values = plain(column)
    if is_text(values.type):
        return _infer_words(name, column, values, decimal)
    missing = values.null_count
    if is_number(values.type):
        return _infer_number(name, values)
    if missing == len(values):
        why = "It has no value in any row."
    elif is_boolean(values.type):
        if missing or len(values.unique()) == 2:
            return ColumnSchema(name, "boolean", "It holds booleans.", ("false", "true"), missing, "true"), []
        why = f"It is constant: always {str(values[0]).lower()}."
    elif types.is_temporal(values.type):
        why = f"It holds dates or times ({values.type}){_TURN}"
    else:
        why = f"It is of type {values.type}, which is neither numbers nor text."
    return ColumnSchema(name, "left_out", why, missing=missing), []


def _infer_words(name: str, column: Any, values: Any, decimal: Mark) -> tuple[ColumnSchema, list[str]]:
    """A column of text: numbers if all of it is, or all but one text that stands for what is missing."""
    absent = ""
    found = parsed(values, decimal)
    if found is None and (absent := lone_text(values)):
        values = plain(column, (*MISSING, absent))
        found = parsed(values, decimal)
    if found is None or is_padded(values):
        return _infer_text(name, plain(column))
    schema, remarks = _infer_number(name, found)
    if schema.kind == "left_out":
        return schema, []
    if absent:
        n = schema.missing - plain(column).null_count
        remarks.append(f"Column {name!r} holds numbers, and {absent!r} in {n} rows, which is read as missing.")
    if remark := remark_on_writing(name, values, found, decimal):
        remarks.append(remark)
    return replace(schema, absent=absent), remarks


def _infer_number(name: str, values: Any) -> tuple[ColumnSchema, list[str]]:
    x = np.concatenate([numbers(chunk) for chunk in values.chunks])
    missing = int(np.isnan(x).sum())
    if missing == len(x):
        return ColumnSchema(name, "left_out", "It has no value in any row.", missing=missing), []
    if not missing and x.min() == x.max():
        return ColumnSchema(name, "left_out", f"It is constant: always {x[0]:g}."), []
    observed = x[~np.isnan(x)]
    whole, all_rows = bool((np.floor(observed) == observed).all()), not missing and len(x) > FEW
    if whole and all_rows and bool((np.diff(x) == 1).all()):
        return ColumnSchema(name, "left_out", f"It counts the rows, from {x[0]:.0f} to {x[-1]:.0f}."), []
    remarks = []
    if whole and all_rows and _IDENTIFIER.search(name) and len(np.unique(x)) == len(x):
        remarks.append(f"Column {name!r} is different in every row; remove it if it only identifies the row.")
    remarks += _stand_ins(name, observed)
    reason = f"It holds {'whole numbers' if whole else 'numbers'}."
    return ColumnSchema(name, "numeric", reason, missing=missing), remarks


def _stand_ins(name: str, observed: NDArray[np.float64]) -> Iterator[str]:
    """On −999 and its like, repeated and far from all other values."""
    for extreme in dict.fromkeys((observed.min(), observed.max())):
        others = observed[observed != extreme]
        count = len(observed) - len(others)
        if abs(extreme) not in _NINES or count < 2 or not len(others):
            continue
        low, high = others.min(), others.max()
        if not 2 * low - high <= extreme <= 2 * high - low:
            yield (
                f"Column {name!r} is {extreme:g} in {count} rows, and between {low:g} and {high:g} in the others: if that "
                "stands for a missing value, leave it empty."
            )


def _infer_text(name: str, values: Any) -> tuple[ColumnSchema, list[str]]:
    """A column of text that is not all numbers; everything is read off its different values."""
    import pyarrow.compute as pc

    missing, observed = values.null_count, len(values) - values.null_count
    counted = values.drop_null().value_counts()
    texts, counts = counted.field("values"), np.array(numbers(counted.field("counts")))
    levels = texts.to_pylist()
    pair = tuple(sorted(levels, key=str.lower))
    if len(levels) == 2 and tuple(level.lower() for level in pair) in _PAIRS:
        return ColumnSchema(name, "boolean", f"It holds {pair[0]!r} and {pair[1]!r}.", pair, missing, pair[1]), []
    like = np.array(numbers(like_numbers(texts).cast("uint8"))) > 0
    remarks = []
    if is_padded(texts):
        remarks.append(f"Column {name!r} has numbers that start with 0, as codes do: it is read as text.")
    elif 0.8 * observed <= counts[like].sum():
        strange = next((level for level, number in zip(levels, like, strict=True) if not number), levels[0])
        lone = counts[~like].sum() == 1 and values[0].as_py() == strange
        units = " (in the first row: is it a second header line?)" if lone else ""
        remarks.append(
            f"Column {name!r} is read as text, although most of it is numbers, because of values such as {strange!r}{units}: "
            "correct them, or leave them empty, to have it read as numbers."
        )
    lines = max(level.count("\n") for level in levels)
    if lines > MANY_LINES:
        remarks.append(f"Column {name!r} has a text of {lines + 1} lines: is a quotation mark left open before it?")
    why, many = "", f"It has {len(levels)} different texts in {observed} rows, such as {levels[0][:40]!r}"
    if len(levels) == 1 and not missing:
        why = f"It is constant: always {levels[0]!r}."
    elif pc.all(pc.match_substring_regex(texts, _DATE)).as_py():
        why = f"It holds dates or times such as {levels[0]!r}{_TURN}"
    elif len(levels) > FEW and len(levels) >= 0.95 * observed:
        why = f"{many}: it names the rows and does not describe them."
    elif len(levels) > MOST_LEVELS and len(levels) > observed / 2:
        why = f"{many}: free text, too varied to be categories."
    if why:
        return ColumnSchema(name, "left_out", why, missing=missing), remarks
    if len(levels) > MOST_LEVELS + 1 and not remarks:
        rest = np.sort(counts)[: -MOST_LEVELS - 1].sum() / observed
        remarks.append(
            f"Column {name!r} has {len(levels)} categories: the most frequent one is what {MOST_LEVELS} others are compared "
            f"with, and the rest ({rest:.1%} of the rows) are taken to be like it. Group them if they matter."
        )
    reason = f"It holds text: {len(levels)} categor{'y' if len(levels) == 1 else 'ies'} in {observed} rows."
    return ColumnSchema(name, "categorical", reason, tuple(sorted(levels)), missing), remarks


def without_copies(columns: tuple[ColumnSchema, ...], rows: TableRows) -> Iterator[ColumnSchema]:
    """The columns, those left out that repeat one before them."""
    seen: dict[tuple[bool, int], list[str]] = {}
    for column in columns:
        if column.kind == "left_out":
            yield column
            continue
        values = rows.columns[column.name]
        text = values.dtype == object
        alike = seen.setdefault((text, hash(tuple(values) if text else values.tobytes())), [])
        same = (name for name in alike if np.array_equal(rows.columns[name], values, equal_nan=not text))
        if first := next(same, None):
            yield replace(
                column,
                kind="left_out",
                reason=f"It repeats column {first!r} in every row.",
                categories=(),
                true="",
                absent="",
            )
        else:
            alike.append(column.name)
            yield column
