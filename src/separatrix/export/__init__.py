"""Models that leave Python.

- Files without code in them: `save_model`, `load_model`, `inspect_model`.
- Other languages: `to_sql`, `to_onnx`, `to_json`.
"""

from typing import TYPE_CHECKING

from separatrix.lazy import lazy_names

if TYPE_CHECKING:
    from separatrix.export.json_form import to_json
    from separatrix.export.model_file import inspect_model, load_model, save_model
    from separatrix.export.onnx_graph import to_onnx
    from separatrix.export.sql import to_sql
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["inspect_model", "load_model", "save_model"]
__all__ += ["to_json", "to_onnx", "to_sql"]
