"""What the report says before it speaks of single models: the table that was read, the ranking, the losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.comparison.families import FAMILIES
from separatrix.comparison.scores import SCORE_LABELS
from separatrix.report import figures
from separatrix.report.figures import Drawing
from separatrix.report.tables import Table, count, fixed, number, percent

MOST_LISTED = 300
_KINDS = {"left_out": "left out"}


def class_table(comparison: Any) -> Table:
    """How many rows each class has."""
    counts = np.bincount(comparison.codes, minlength=len(comparison.classes))
    cells = [[str(name), str(n), percent(n / counts.sum())] for name, n in zip(comparison.classes, counts, strict=True)]
    return Table(f"Classes of {comparison.schema.target}.", ["class", "rows", "share"], cells, [False, True, True])


def column_table(comparison: Any) -> Table:
    """Every column: what it was taken for, why, and what is in it."""
    columns = comparison.schema.columns
    cells = [
        [c.name, _KINDS.get(c.kind, c.kind), _contents(c, comparison.rows), str(c.missing), c.reason]
        for c in columns[:MOST_LISTED]
    ]
    more = "" if len(columns) <= MOST_LISTED else f" The first {MOST_LISTED} of {len(columns)}."
    head = ["column", "kind", "values", "missing", "why this kind"]
    return Table(f"Columns and what they were taken for.{more}", head, cells, [False, False, False, True, False])


def _contents(column: Any, rows: Any) -> str:
    if column.kind == "left_out":
        return "–"
    if column.kind == "numeric":
        given = rows.columns[column.name]
        given = given[~np.isnan(given)]
        return (
            "–"
            if not len(given)
            else f"{number(given.min())} to {number(given.max())}, median {number(np.median(given))}"
        )
    some = ", ".join(map(str, column.categories[:4]))
    return (
        some
        if len(column.categories) <= 4
        else f"{some}, … ({count(len(column.categories), 'category', 'categories')})"
    )


def ranking_table(comparison: Any) -> Table:
    """The models, best first, with the standard errors of their scores."""
    names = [name for name in SCORE_LABELS if any(name in candidate.scores for candidate in comparison.candidates)]
    names.sort(key=lambda name: name != comparison.ranked_by)
    cells = []
    for candidate in comparison.candidates:
        scores = [candidate.scores.get(name) for name in names]
        cells.append(
            [
                candidate.label,
                str(candidate.rank),
                "best" if candidate.rank == 1 else "tied" if candidate.tied else "",
                *("–" if s is None else f"{fixed(s.mean)} ± {fixed(s.error)}" for s in scores),
                fixed(candidate.fit_seconds),
            ]
        )
    head = ["model", "rank", "", *(SCORE_LABELS[name] for name in names), "seconds"]
    numeric = [False, True, False, *[True] * (len(names) + 1)]
    marked = frozenset(k for k, candidate in enumerate(comparison.candidates) if candidate is comparison.recommended)
    return Table(
        f"Ranked by {SCORE_LABELS[comparison.ranked_by]}; every score is the mean over the folds ± its standard error.",
        head,
        cells,
        numeric,
        marked=marked,
    )


def loss_table(comparison: Any) -> Table | None:
    """What each action costs under each truth, when losses were given."""
    if comparison.loss is None:
        return None
    actions = comparison.classes if comparison.actions is None else comparison.actions
    cells = [
        [str(name), *(number(x) for x in row)] for name, row in zip(comparison.classes, comparison.loss, strict=True)
    ]
    head = ["true class", *map(str, actions)]
    return Table("What an action costs, by the true class.", head, cells, [False, *[True] * len(actions)])


def ranking_drawing(comparison: Any) -> Drawing:
    """The ranking as a figure."""
    return figures.ranking("ranking", comparison.candidates, comparison.ranked_by, SCORE_LABELS[comparison.ranked_by])


def learning_drawing(comparison: Any) -> Drawing | None:
    """The learning curve of the recommended model; None when there were too few rows for one."""
    curve = comparison.learning_curve
    if len(curve["sizes"]) < 2:
        return None
    sides = [("left-out rows", "test"), ("rows learnt from", "train")]
    lines = [(what, np.array(curve[f"{side}_mean"]), np.array(curve[f"{side}_error"])) for what, side in sides]
    return figures.learning_curve("learning", np.array(curve["sizes"]), lines, SCORE_LABELS[curve["score"]])


def failures(comparison: Any) -> list[tuple[str, str]]:
    """The families that could not be fitted, by the names of the ranking, and why."""
    return [(FAMILIES[name].label, why) for name, why in comparison.failures.items()]
