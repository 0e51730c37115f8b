"""`separatrix explain`: why a model decides as it does about one row, and the nearest change that flips it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from separatrix.cli.predict import load
from separatrix.cli.standard_input import given_table
from separatrix.comparison.why.explanation import explain_row
from separatrix.data.text import printable
from separatrix.tables.reading import read_table


def run(model: Path, data: Path, row: int) -> None:
    """Explain a row, counted from 1."""
    if row < 1:
        raise ValueError(f"--row {row}: rows are counted from 1.")
    explained = load(model)
    with given_table(data) as data:
        table = read_table(data)
    if row > table.num_rows:
        raise ValueError(f"--row {row}: {data.name} has {table.num_rows} rows, counted from 1.")
    found = explain_row(explained, table, row - 1)
    console = Console(markup=False, highlight=False, emoji=False)  # names of columns and classes are text, not markup
    console.print(printable(found.in_words(f"Row {row}")), style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head, side in (("column", "left"), ("value", "right"), (f"push to {found.decided}", "right")):
        table.add_column(printable(head), justify="right" if side == "right" else "left")
    for name, value, push in found.pushes:
        shown = "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        table.add_row(printable(name), printable(shown), f"{push:+.3f}")
    console.print(table)
    console.print(printable(found.flip))
