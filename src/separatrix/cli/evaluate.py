"""`separatrix evaluate`: a model on a table whose classes are known: scores with intervals, confusion, calibration, drift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from separatrix.cli.predict import load
from separatrix.cli.standard_input import given_table
from separatrix.comparison.evaluation import ModelEvaluation, evaluate
from separatrix.comparison.headline import rounded_down
from separatrix.comparison.measures import SCORE_LABELS
from separatrix.data.text import printable
from separatrix.data.writing import destination, replacing
from separatrix.tables.findings import few

_MOST_CLASSES = 12


def run(model: Path, data: Path, output: Path | None) -> None:
    """Judge a model on a table, show what was found, and write it as JSON where that is asked for."""
    if output is not None:
        destination(output)  # before the work
    judged = load(model)
    with given_table(data) as data:
        found = evaluate(judged, data)
    show(found, data.name)
    if output is not None:
        with replacing(output) as part:
            part.write_text(json.dumps(as_json(found), indent=2) + "\n", encoding="utf-8")
        print(f"Wrote {output}.")


def show(found: ModelEvaluation, name: str) -> None:
    """Print an evaluation: the answer first."""
    console = Console(markup=False, highlight=False, emoji=False)  # names of columns and classes are text, not markup
    right = found.scores["accuracy"]
    console.print(
        printable(
            f"{name}: {found.n_rows} rows. {rounded_down(right.value)} right, against {rounded_down(found.by_guessing)} by "
            "guessing."
        ),
        style="bold",
    )
    for sentence in [*found.notes, *few(one.sentence for one in found.drift)]:
        console.print(printable(f"Caution: {sentence}"), style="yellow")
    console.print()
    scores = _table("", "score", "95 % interval")
    for label, one in found.scores.items():
        scores.add_row(SCORE_LABELS[label], f"{one.value:.3f}", f"{one.lower:.3f} to {one.upper:.3f}")
    console.print(scores)
    console.print()
    console.print(_confusion(found))
    if found.reliability is not None:
        console.print(f"\nCalibration error {found.reliability.error:.3f}:")
        bins = _table("predicted", "observed", "95 % interval", "rows")
        points = found.reliability
        for place in range(len(points.counts)):
            ends = f"{points.lower[place]:.2f} to {points.upper[place]:.2f}"
            shares = (f"{points.predicted[place]:.2f}", f"{points.observed[place]:.2f}")
            bins.add_row(*shares, ends, f"{points.counts[place]:.0f}")
        console.print(bins)


def _confusion(found: ModelEvaluation) -> Any:
    """Counts of the true classes by the answers, with recall and precision; of many classes these alone."""
    counts, names = found.confusion, [printable(str(name)) for name in found.answers]
    same = found.classes.tolist() == found.answers.tolist()
    shown = names if len(names) <= _MOST_CLASSES else []
    table = _table("true class", *shown, "rows", *(("recall", "precision") if same else ()))
    for k, label in enumerate(found.classes):
        total, column = counts[k].sum(), counts[:, k].sum() if same else 0
        shares = [f"{counts[k, k] / n:.3f}" if n else "–" for n in (total, column)] if same else []
        cells = [str(n) for n in counts[k]] if shown else []
        table.add_row(printable(str(label)), *cells, str(total), *shares)
    if shown:
        table.add_row("all", *(str(n) for n in counts.sum(axis=0)), str(counts.sum()), *(("", "") if same else ()))
    return table


def as_json(found: ModelEvaluation) -> dict[str, Any]:
    """An evaluation as plain values."""
    points = found.reliability
    parts = ("predicted", "observed", "lower", "upper", "counts")
    return {
        "rows": found.n_rows,
        "scores": {name: vars(one) for name, one in found.scores.items()},
        "accuracy_by_guessing": found.by_guessing,
        "classes": found.classes.tolist(),
        "answers": found.answers.tolist(),
        "confusion": found.confusion.tolist(),
        "reliability": None if points is None else {name: getattr(points, name).tolist() for name in parts},
        "drift": [vars(one) for one in found.drift],
        "notes": found.notes,
    }


def _table(*heads: str) -> Any:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right")
    return table
