"""The forms in which a model leaves Python, by name. To add one, write a file with it and name it here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import separatrix

if TYPE_CHECKING:
    from separatrix.export.sql import Dialect


def _sql(model: Any, dialect: Dialect = "duckdb", table: str = "data", **options: Any) -> bytes:
    name = table.split(".") if table.count(".") == 1 else table  # a schema and a table in it
    return separatrix.to_sql(model, dialect=dialect, table=name, **options).encode()


def _onnx(model: Any, **options: Any) -> bytes:
    return separatrix.to_onnx(model).SerializeToString()


def _json(model: Any, **options: Any) -> bytes:
    return separatrix.to_json(model).encode()


FORMATS: dict[str, Callable[..., bytes]] = {"json": _json, "onnx": _onnx, "sql": _sql}
