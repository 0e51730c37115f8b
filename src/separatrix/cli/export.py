"""`separatrix export`: a model as something that runs without Python."""

from __future__ import annotations

from pathlib import Path

from separatrix.data.writing import destination, replacing
from separatrix.export.formats import FORMATS
from separatrix.export.model_file import load_model


def run(model: Path, to: str, dialect: str, table: str, keep: list[str], output: Path) -> None:
    """Write the model in the form asked for."""
    destination(output)  # before the work
    if keep and to != "sql":
        raise ValueError(f"--keep names columns of a query; {to} has none. Leave it out.")
    content = FORMATS[to](load_model(model), dialect=dialect, table=table, keep=keep, row_number=not keep)
    with replacing(output) as part:
        part.write_bytes(content)
    print(f"Wrote {output}.")
