"""Tables of the report: how a number, a value and a list of rows are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import f_classif

from separatrix.data.block import Float

LARGEST = 10
MOST_COLUMNS = 12


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of every row names it.

    Parameters
    ----------
    caption : str
    head : sequence of str
    rows : list of lists of str
    numeric : sequence of bool
        Which columns are numbers and stand on the right.
    shades : list of lists of float
        A tint for every cell but the first, from 0 to 1; empty for none.
    marked : set of int
        Rows that stand out.
    """

    caption: str
    head: Sequence[str]
    rows: list[list[str]]
    numeric: Sequence[bool]
    shades: list[list[float]] = field(default_factory=list)
    marked: frozenset[int] = frozenset()


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


def value(column: Any, given: Any) -> str:
    """A cell of the user's table, as it was read (column: its ColumnSchema)."""
    if given is None or (isinstance(given, float) and math.isnan(given)):
        return "missing"
    if column.kind == "boolean":
        false = next((name for name in column.categories if name != column.true), "false")
        return str((column.true or "true") if given else false)
    return number(given, 6) if column.kind == "numeric" else str(given)


def telling_columns(schema: Any, encoded: Float, origin: Sequence[str], codes: NDArray[np.intp]) -> list[Any]:
    """The columns to show of a row: all when they are few, else those in which the classes differ most."""
    used = [column for column in schema.columns if column.kind != "left_out"]
    if len(used) <= MOST_COLUMNS:
        return used
    with np.errstate(all="ignore"):
        ratios = np.nan_to_num(f_classif(encoded, codes)[0], nan=0.0, posinf=np.finfo(np.float64).max)
    strength = dict.fromkeys(origin, 0.0)
    for name, ratio in zip(origin, ratios, strict=True):
        strength[name] = max(strength[name], float(ratio))
    best = set(sorted(strength, key=lambda name: -strength[name])[:MOST_COLUMNS])
    return [column for column in used if column.name in best]


def row_table(
    caption: str,
    rows: Any,
    at: Sequence[int],
    columns: Sequence[Any],
    facts: Sequence[tuple[str, Sequence[str], bool]],
) -> Table:
    """Some rows of the user's table: their number, what is said of them (name, texts, whether numbers), their values."""
    head = ["row", *(name for name, _, _ in facts), *(short(column.name, 48) for column in columns)]
    numeric = [True, *(kind for _, _, kind in facts), *(column.kind == "numeric" for column in columns)]
    cells = [
        [str(i + 1), *(texts[place] for _, texts, _ in facts), *(value(c, rows.columns[c.name][i]) for c in columns)]
        for place, i in enumerate(at)
    ]
    return Table(caption, head, cells, numeric)
