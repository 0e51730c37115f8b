"""`separatrix compare`: all families on one table; a ranked table on the terminal, a report and a model in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from separatrix.cli.progress import FileProgress, ProgressLine
from separatrix.cli.standard_input import given_table
from separatrix.cli.streaming import is_streamed, table_source
from separatrix.comparison.comparison import Comparison, compare
from separatrix.comparison.evaluation import as_sentence
from separatrix.comparison.headline import cautions, headline
from separatrix.comparison.listing import CALIBRATED_MARK, explained, measured_scores, reference_row
from separatrix.comparison.measures import OF_PROBABILITIES, SCORE_LABELS
from separatrix.comparison.streamed import StreamedComparison, compare_stream
from separatrix.data.text import printable
from separatrix.data.writing import destination, put_in_place, replacing_folder
from separatrix.export.formats import FORMATS
from separatrix.export.model_file import save_model
from separatrix.report.page import write_report
from separatrix.tables.findings import few

REPORT, MODEL = "report.html", "model.safetensors"
_WIDE = 120
_COMPARED = 0.95  # of the work; the rest is the report
_SHORT = {"balanced_accuracy": "balanced", "calibration_error": "calibration"}


def run(
    data: Path,
    target: str,
    loss: Path | None,
    families: str | None,
    folds: int | None,
    seed: int,
    margin: float,
    metric: str | None,
    holdout: str | None,
    out: Path,
    save_all: bool,
    exportable: list[str],
    columns: dict[str, Any],
    stage_seconds: float,
    stream: bool,
    quiet: bool,
) -> None:
    """Compare, show, and write the report and the recommended model to `out`."""
    others: list[str] = []
    columns = {**columns, "types": types_of(columns["types"])}
    with given_table(data) as data, replacing_folder(out, (REPORT, MODEL)) as part, ProgressLine(quiet) as progress:
        options: dict[str, Any] = {"families": families or None, "loss": loss, "cv": folds, "random_state": seed}
        options |= {"margin": margin, "metric": metric}
        comparison: Comparison | StreamedComparison

        def partly(label: str, fraction: float | None) -> None:
            progress(label, None if fraction is None else _COMPARED * fraction)

        if is_streamed(data, stream):
            if exportable:
                raise ValueError(
                    "--exportable is for tables that are held in memory, which this one is not; use --families."
                )
            if holdout is not None:
                raise ValueError("--holdout needs the table in memory; evaluate the model on another table instead.")
            if asked := next((name for name, value in columns.items() if value), None):
                option = {"types": "type", "rare_class": "rare-class"}.get(asked, asked)
                raise ValueError(f"--{option} is for tables that are held in memory, which this one is not.")
            of_files = FileProgress(partly)
            source = table_source(data, target, of_files)
            comparison = compare_stream(source, table_name=data.name, progress=of_files, **options)
        else:
            options |= {"holdout": _holdout(holdout), "stage_seconds": stage_seconds, **columns}
            options |= {"unfit": _unexportable(exportable) if exportable else None}
            comparison = compare(data, target, progress=partly, **options)
        progress("writing the report", _COMPARED)
        write_report(comparison, part / REPORT)
        save_model(comparison.best, part / MODEL)
        for one in comparison.candidates if save_all else ():
            name = f"model-{one.family}.safetensors"
            save_model(one.model, part / name)
            others.append(name)
        # What is put in place is known by now, and so are places that nothing can be written to.
        for name in others:
            put_in_place(part / name, destination(out / name))
        progress("done", 1.0)
    show(comparison)
    print(f"Report: {out / REPORT}\nModel:  {out / MODEL}")
    if others:
        print(f"Others: {', '.join(str(out / name) for name in others)}")


def _unexportable(formats: list[str]) -> Callable[[Any], str | None]:
    """Why a fitted model cannot be written in one of the formats; None where it can in all."""
    if unknown := next((name for name in formats if name not in FORMATS), None):
        raise ValueError(f"--exportable {unknown} is no format; choose from {', '.join(FORMATS)}.")

    def reason(model: Any) -> str | None:
        for name in formats:
            try:
                FORMATS[name](model)
            except ValueError as refusal:
                return str(refusal)
        return None

    return reason


def types_of(settings: list[str]) -> dict[str, str]:
    """column=kind pairs; a name may hold an equals sign."""
    types: dict[str, str] = {}
    for setting in settings:
        name, equals, what = setting.rpartition("=")
        if not (name and equals):
            raise ValueError(f"--type {setting} is not of the form COLUMN=KIND.")
        types[name] = what
    return types


def _holdout(given: str | None) -> float | str | None:
    """A share of the rows, or the path of another table."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        return given


def show(comparison: Comparison | StreamedComparison) -> None:
    """Print the ranked table, the recommendation with its reason, and what was found in the data."""
    console = Console(markup=False, highlight=False, emoji=False)  # names of columns and classes are text, not markup
    wide = console.width >= _WIDE
    console.print(
        f"{comparison.table_name}: {comparison.n_rows} rows, {len(comparison.schema.used)} columns, "
        f"{len(comparison.classes)} classes of {comparison.schema.target!r}; {comparison.n_folds} folds, "
        "mean ± standard error.\n"
    )
    console.print(_ranking(comparison, wide))
    for sentence in explained(comparison):
        console.print(printable(sentence), style="dim")
    console.print()
    if not wide:
        console.print(_fits(comparison))
        console.print()
    console.print(printable(f"Recommended: {comparison.recommended.family}. {headline(comparison)}"), style="bold")
    if isinstance(comparison, Comparison) and comparison.holdout is not None:
        aside = comparison.holdout
        for sentence in [as_sentence(aside), *aside.notes, *few(one.sentence for one in aside.drift)]:
            console.print(printable(sentence))
    console.print(printable(comparison.reason))
    if isinstance(comparison, Comparison) and comparison.nonlinear is not None:
        console.print(printable(f"Is linear enough? {comparison.nonlinear.sentence}"))
    for sentence in cautions(comparison):
        console.print(printable(f"Caution: {sentence}"), style="yellow")
    for title, sentences in _remarks(comparison).items():
        if sentences:
            console.print(f"\n{title}")
            console.print(_points(sentences))
    console.print()


def _ranking(comparison: Comparison | StreamedComparison, wide: bool) -> Any:
    """The candidates best first. A narrow terminal has no room for more than three scores; errors are of the first two."""
    measured = measured_scores(comparison)[: None if wide else 3]
    heads = [_SHORT.get(name, SCORE_LABELS[name]) for name in measured]
    table = _table("", "model", *heads, "fit", *(("certificate",) if wide else ()))
    for row in comparison.table():
        mark = "*" if row["recommended"] else "=" if row["tied"] else " "
        scores = [_score(row, name, place < 2) for place, name in enumerate(measured)]
        took = row["fit_seconds"]
        seconds = f"{1e3 * took:.0f} ms" if took < 1 else f"{took:.1f} s"
        more = (row["certificate"],) if wide else ()
        style = "bold" if row["recommended"] else None
        table.add_row(f"{row['rank']:>2}{mark}", row["family"], *scores, seconds, *more, style=style)
    if (other := reference_row(comparison)) is not None:
        scores = [_score(other, name, place < 2) for place, name in enumerate(measured)]
        table.add_row("", "(boosting)", *scores, "", *([""] if wide else []), style="dim")
    return table


def _score(row: dict[str, Any], name: str, with_error: bool) -> str:
    if row[name] is None:
        return "–"
    mark = CALIBRATED_MARK if row["calibrated"] and name in OF_PROBABILITIES else ""
    return f"{row[name]:.3f} ± {row[f'{name}_error']:.3f}{mark}" if with_error else f"{row[name]:.3f}{mark}"


def _fits(comparison: Comparison | StreamedComparison) -> Any:
    """What did not fit into a narrow ranking: the proof of every fit."""
    table = _table("model", "certificate")
    for one in comparison.candidates:
        table.add_row(one.family, one.certificate)
    return table


def _remarks(comparison: Comparison | StreamedComparison) -> dict[str, list[str]]:
    fits = [f"{one.family}: {note}" for one in comparison.candidates for note in one.notes]
    left_out = [f"{column.name}: {column.reason}" for column in comparison.schema.columns if column.kind == "left_out"]
    return {
        "Findings in the data": [
            *comparison.schema.findings,
            *filter(None, [comparison.separability]),
            *comparison.notes,
        ],
        "Columns left out": list(few(left_out)),
        "Remarks on the fits": fits,
        "Families left out": [f"{name}: {reason}" for name, reason in comparison.failures.items()],
    }


def _table(*heads: str) -> Any:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def _points(sentences: list[str]) -> Any:
    grid = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        grid.add_row("-", printable(sentence))
    return grid
