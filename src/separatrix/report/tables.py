"""Tables of the report: the formats of numbers, values and rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.tables.columns import ColumnSchema


_MOST_SHOWN = 80  # of a text


@dataclass(frozen=True)
class PageTable:
    """A table with a caption; the first cell of every row names it."""

    caption: str
    head: Sequence[str]
    rows: list[list[str]]
    numeric: Sequence[bool]  # which columns are numbers and stand on the right
    shades: list[list[float]] = field(default_factory=list)  # a tint for every cell but the first, from 0 to 1
    marked: frozenset[int] = frozenset()  # rows that stand out
    totals: frozenset[int] = frozenset()  # rows of sums, which stay below the others
    group: Sequence[tuple[str, int]] = ()  # names over the head, with how many columns each spans
    tips: Mapping[str, str] = field(default_factory=dict)  # what the names in the head mean
    sortable: bool = False
    square: bool = False  # whether the k-th row and the k-th column are of the same class


def short(text: str, most: int = 28) -> str:
    """A name that leaves room for what it stands beside; long names mostly differ at their ends."""
    half = most // 2
    return text if len(text) <= most else f"{text[: half - 1]}…{text[-half:]}"


def number(value: Any, digits: int = 3) -> str:
    """A number in as many digits as one reads; whole numbers whole."""
    x = float(value)
    if math.isnan(x):
        return "missing"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if x == int(x) and abs(x) < 1e9:
        return f"{int(x)}".replace("-", "−")
    if 1e-4 <= abs(x) < 1e6:
        return np.format_float_positional(x, digits, unique=False, fractional=False, trim="-").replace("-", "−")
    return f"{x:.{digits - 1}e}".replace("-", "−")


def fixed(value: float, decimals: int = 3) -> str:
    """A number with a fixed number of decimals, for columns that are compared."""
    return f"{value:.{decimals}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent."""
    return f"{100.0 * share:.1f} %"


def count(n: int, one: str, many: str = "") -> str:
    """'1 row', '2 rows'."""
    return f"{n:,} {one if n == 1 else many or one + 's'}".replace(",", "\u202f")


def value(column: ColumnSchema, given: Any) -> str:
    """A cell of the user's table, as it was read."""
    if given is None or (isinstance(given, float) and math.isnan(given)):
        return "missing"
    if column.kind == "boolean":
        false = next((name for name in column.categories if name != column.true), "false")
        return str((column.true or "true") if given else false)
    return number(given, 6) if column.kind == "numeric" else short(str(given), _MOST_SHOWN)


def row_table(
    comparison: Comparison, caption: str, at: Sequence[int], facts: Sequence[tuple[str, Sequence[str], bool]]
) -> PageTable:
    """Some rows: their number, facts about them (name, texts, whether numbers), and their values."""
    columns, used = comparison.columns, len(comparison.schema.used)
    if len(columns) < used:
        caption += f" The {len(columns)} of {used} columns in which the classes differ most."
    head = ["row", *(name for name, _, _ in facts), *(short(column.name, 48) for column in columns)]
    numeric = [True, *(kind for _, _, kind in facts), *(column.kind == "numeric" for column in columns)]
    values = comparison.rows.take(np.asarray(at, dtype=np.intp)).columns
    listed = {column.name: list(values[column.name]) for column in columns}
    cells = [
        [
            str(comparison.rows.number_of(i)),
            *(texts[place] for _, texts, _ in facts),
            *(value(c, listed[c.name][place]) for c in columns),
        ]
        for place, i in enumerate(at)
    ]
    return PageTable(caption, head, cells, numeric, sortable=True)
