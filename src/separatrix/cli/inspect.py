"""`separatrix inspect`: what stands in a model file, without making the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.data.text import printable
from separatrix.export.model_file import inspect_model
from separatrix.tables.findings import few, joined

_MOST = 200


def run(path: Path) -> None:
    """Print family, classes, columns and scores; a file whose checksum is wrong is an error."""

    def show(line: str) -> None:
        print(printable(line))

    about = inspect_model(path)
    if not about["intact"]:
        raise ValueError(f"{path} is damaged: its checksum does not match its content. Copy or save it again.")
    show(f"{path}: {about['family']}, written by separatrix {about['library_version']}, checksum right")
    if about["classes"] is not None:
        show(f"classes: {joined(list(map(str, about['classes'])), _MOST)}")
    schema = about["schema"]
    if "target" in schema:
        show(f"target: {schema['target']}")
        show("columns:")
        for line in few((f"  {column['name']}: {_kind(column)}" for column in schema["columns"]), _MOST):
            show(line)
        for name, score in (about["scores"] or {}).items():
            show(f"{name.replace('_', ' ')}: {score['mean']:.4g} ± {score['error']:.2g} on left-out rows")
    else:
        columns = schema["columns"]
        show(f"columns: {columns if isinstance(columns, int) else joined(columns, _MOST)}")


def _kind(column: dict[str, Any]) -> str:
    if column["kind"] == "left_out":
        return f"left out. {column['reason']}"
    levels = ", ".join(column["categories"][:6]) + (", …" if len(column["categories"]) > 6 else "")
    return f"{column['kind']}{f' ({levels})' if levels else ''}"
