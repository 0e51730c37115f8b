"""`separatrix inspect`: what a model file says about itself, without making the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_MOST = 200


def run(path: Path) -> None:
    """Print family, classes, columns and scores; a file whose checksum is wrong is an error."""
    from separatrix.comparison.findings import few, joined
    from separatrix.data.text import printable
    from separatrix.export.model_file import inspect_model

    def say(line: str) -> None:
        print(printable(line))

    about = inspect_model(path)
    if not about["intact"]:
        raise ValueError(f"{path} is damaged: its checksum does not match its content. Copy or save it again.")
    say(f"{path}: {about['family']}, written by separatrix {about['library_version']}, checksum right")
    if about["classes"] is not None:
        say(f"classes: {joined(list(map(str, about['classes'])), _MOST)}")
    schema = about["schema"]
    if "target" in schema:
        say(f"target: {schema['target']}")
        say("columns:")
        for line in few((f"  {column['name']}: {_kind(column)}" for column in schema["columns"]), _MOST):
            say(line)
        for name, score in (about["scores"] or {}).items():
            say(f"{name.replace('_', ' ')}: {score['mean']:.4g} ± {score['error']:.2g} on left-out rows")
    else:
        columns = schema["columns"]
        say(f"columns: {columns if isinstance(columns, int) else joined(columns, _MOST)}")


def _kind(column: dict[str, Any]) -> str:
    if column["kind"] == "left_out":
        return f"left out. {column['reason']}"
    levels = ", ".join(column["categories"][:6]) + (", …" if len(column["categories"]) > 6 else "")
    return f"{column['kind']}{f' ({levels})' if levels else ''}"
