"""What comes before the single models: the table that was read, the ranking, the losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.comparison.families import FAMILIES
from separatrix.comparison.listing import CALIBRATED_MARK, measured_scores, reference_row
from separatrix.comparison.measures import OF_PROBABILITIES, SCORE_LABELS
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
_HEADS = {"balanced_accuracy": "balanced", "calibration_error": "calibration"}
_MEANINGS = {
    "cost": "What the decisions cost, per row. Less is better.",
    "log_loss": "Minus the mean logarithm of the probability given to the true class. Less is better.",
    "accuracy": "The share of right answers.",
    "auc": "How often a row of a class has a higher score for it than a row of another class. 0.5 is chance, 1 is perfect.",
    "balanced_accuracy": "The share of right answers within each class, and the mean of these over the classes.",
    "f1": "The harmonic mean of precision and recall of each class, and the mean of these over the classes.",
    "brier": "The mean squared distance of the probabilities from the truth. Less is better.",
    "calibration_error": "How far probabilities are from the frequencies observed, on average. Less is better.",
}


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
    numeric = [False, False, False, True, False]
    return PageTable(f"Columns and what they were taken for.{more}", head, cells, numeric, sortable=True)


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
            "recommended" if row["recommended"] else "as good" if row["tied"] else "",
            *(_cell(row, name, name == comparison.ranked_by or name == "accuracy") for name in names),
            number(row["fit_seconds"], 2),
        ]
        for row in rows
    ]
    if (other := reference_row(comparison)) is not None:
        told = [_cell(other, name, name == comparison.ranked_by or name == "accuracy") for name in names]
        cells.append([other["label"], "", "never recommended", *told, ""])
    return PageTable(
        f"Ranked by {SCORE_LABELS[comparison.ranked_by]}; scores are means over the folds, ± one standard error.",
        ["model", "rank", "", *(_HEADS.get(name, SCORE_LABELS[name]) for name in names), "seconds"],
        cells,
        [False, True, False, *[True] * (len(names) + 1)],
        marked=frozenset(k for k, row in enumerate(rows) if row["recommended"]),
        totals=frozenset(range(len(rows), len(cells))),
        tips={_HEADS.get(name, SCORE_LABELS[name]): text for name, text in _MEANINGS.items()},
        sortable=True,
    )


def _cell(row: dict[str, Any], name: str, with_error: bool) -> str:
    if row[name] is None:
        return "–"
    mark = CALIBRATED_MARK if row["calibrated"] and name in OF_PROBABILITIES else ""
    return f"{fixed(row[name])} ± {fixed(row[f'{name}_error'])}{mark}" if with_error else f"{fixed(row[name])}{mark}"


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
    return [(FAMILIES[name].label if name in FAMILIES else name, why) for name, why in comparison.failures.items()]
