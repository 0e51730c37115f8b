"""What comes before the single models: the table that was read, the ranking, the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from separatrix.comparison.families import FAMILIES
from separatrix.comparison.listing import measured_scores
from separatrix.comparison.measures import SCORE_LABELS
from separatrix.report import figures
from separatrix.report.figures import Drawing
from separatrix.report.tables import PageTable, count, fixed, number, percent

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.streamed import StreamedComparison
    from separatrix.tables.columns import ColumnSchema
    from separatrix.tables.rows import TableRows

MOST_LISTED = 300
_KINDS = {"left_out": "left out"}


def class_table(comparison: Comparison | StreamedComparison) -> PageTable:
    """How many rows each class has."""
    counts = comparison.class_counts
    cells = [[str(name), str(n), percent(n / counts.sum())] for name, n in zip(comparison.classes, counts, strict=True)]
    return PageTable(f"Classes of {comparison.schema.target}.", ["class", "rows", "share"], cells, [False, True, True])


def column_table(comparison: Comparison | StreamedComparison) -> PageTable:
    """Every column: what it was taken for, why, and what is in it."""
    columns, rows = comparison.schema.columns, getattr(comparison, "rows", None)
    cells = [
        [c.name, _KINDS.get(c.kind, c.kind), _contents(c, rows), str(c.missing), c.reason]
        for c in columns[:MOST_LISTED]
    ]
    more = "" if len(columns) <= MOST_LISTED else f" The first {MOST_LISTED} of {len(columns)}."
    head = ["column", "kind", "values", "missing", "why this kind"]
    return PageTable(f"Columns and what they were taken for.{more}", head, cells, [False, False, False, True, False])


def _contents(column: ColumnSchema, rows: TableRows | None) -> str:
    if column.kind in ("boolean", "categorical"):
        n, some = len(column.categories), ", ".join(map(str, column.categories[:4]))
        return some if n <= 4 else f"{some}, … ({count(n, 'category', 'categories')})"
    given = rows.columns[column.name] if rows is not None and column.kind == "numeric" else np.empty(0)
    given = given[~np.isnan(given)]
    if not len(given):
        return "–"
    return f"{number(given.min())} to {number(given.max())}, median {number(np.median(given))}"


def ranking_table(comparison: Comparison | StreamedComparison) -> PageTable:
    """The models, best first, with the standard errors of their scores."""
    rows, names = comparison.table(), measured_scores(comparison)
    cells = [
        [
            row["label"],
            str(row["rank"]),
            "best" if row["rank"] == 1 else "tied" if row["tied"] else "",
            *("–" if row[name] is None else f"{fixed(row[name])} ± {fixed(row[f'{name}_error'])}" for name in names),
            fixed(row["fit_seconds"]),
        ]
        for row in rows
    ]
    return PageTable(
        f"Ranked by {SCORE_LABELS[comparison.ranked_by]}; every score is the mean over the folds ± its standard error.",
        ["model", "rank", "", *(SCORE_LABELS[name] for name in names), "seconds"],
        cells,
        [False, True, False, *[True] * (len(names) + 1)],
        marked=frozenset(k for k, row in enumerate(rows) if row["recommended"]),
    )


def loss_table(comparison: Comparison | StreamedComparison) -> PageTable | None:
    """What each action costs under each truth, when losses were given."""
    if comparison.loss is None:
        return None
    actions = comparison.classes if comparison.actions is None else comparison.actions
    cells = [
        [str(name), *(number(x) for x in row)] for name, row in zip(comparison.classes, comparison.loss, strict=True)
    ]
    head = ["true class", *map(str, actions)]
    return PageTable("What an action costs, by the true class.", head, cells, [False, *[True] * len(actions)])


def ranking_drawing(comparison: Comparison | StreamedComparison) -> Drawing:
    """The ranking as a figure."""
    return figures.ranking("ranking", comparison.candidates, comparison.ranked_by, SCORE_LABELS[comparison.ranked_by])


def learning_drawing(comparison: Comparison) -> Drawing | None:
    """The learning curve of the recommended model; None when there were too few rows for one."""
    curve = comparison.learning_curve
    if len(curve["sizes"]) < 2:
        return None
    sides = [("left-out rows", "test"), ("rows learnt from", "train")]
    lines = [(what, np.array(curve[f"{side}_mean"]), np.array(curve[f"{side}_error"])) for what, side in sides]
    return figures.learning_curve("learning", np.array(curve["sizes"]), lines, SCORE_LABELS[curve["score"]])


def failures(comparison: Comparison | StreamedComparison) -> list[tuple[str, str]]:
    """The families that could not be fitted, by the names of the ranking, and why."""
    return [(FAMILIES[name].label, why) for name, why in comparison.failures.items()]
