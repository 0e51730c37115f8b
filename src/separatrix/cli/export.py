"""`separatrix export`: a model as something that runs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import separatrix
from separatrix.data.writing import destination, replacing


def run(
    model: Path,
    to: Literal["sql", "onnx", "json"],
    dialect: Literal["duckdb", "postgresql", "sqlite"],
    table: str,
    output: Path,
) -> None:
    """Write the model in the form asked for."""
    destination(output)  # before the work
    fitted = separatrix.load_model(model)
    if to == "sql":
        name = table.split(".") if table.count(".") == 1 else table  # a schema and a table in it
        content = separatrix.to_sql(fitted, dialect=dialect, table=name).encode()
    elif to == "onnx":
        content = separatrix.to_onnx(fitted).SerializeToString()
    else:
        content = separatrix.to_json(fitted).encode()
    with replacing(output) as part:
        part.write_bytes(content)
    print(f"Wrote {output}.")
