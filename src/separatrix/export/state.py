"""The state of a fitted model as JSON and arrays, and back: the only things a model file holds.

    plain values   None, bool, int, float, str, list       as JSON writes them
    {"$": kind, …}                                          everything else
        float      inf and NaN                              tuple, dict   items
        array      a tensor of the file                     texts         an array of strings or of plain values
        record     an array with named fields               csr           a sparse matrix
        dtype      a type of numbers                        family        a family of a column, with its reason
        slice      start, stop, step                        type          a type of numbers or of Python's plain values
        enum       a member of an enumeration               object        a class of the registry, with its attributes

Decoding builds these and nothing else: objects are made without calling any of their methods, and every name is looked up in
`registry`. Two places that hold the same array share its tensor; objects that contain themselves are refused.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.errors import Message
from separatrix.export.registry import class_named, name_of
from separatrix.models.naive_bayes.families import ColumnFamily

TENSOR_TYPES = {
    **{"F64": "float64", "F32": "float32", "F16": "float16", "BOOL": "bool"},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_NUMBERS = set(TENSOR_TYPES.values())
# What is computed again when it is asked for is saved empty; what scikit-learn routes to `fit` is not saved.
_MEMORY = "memo"
_ROUTING = "_metadata_request"
_TYPES = {
    **{name: np.dtype(name).type for name in sorted(_NUMBERS)},
    **{f"Python's {kind.__name__}": kind for kind in (bool, float, int, object, str)},
    "number": np.number,
}
_OBJECTS = "an array of objects"
_TYPE_NAMES = {kind: name for name, kind in _TYPES.items()}
_SPARSE = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}


def encode(value: Any, where: str) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The JSON of a value and the tensors it refers to; `where` names the value in refusals."""
    encoder = _Encoder()
    return encoder.node(value, where), encoder.tensors


class _Encoder:
    def __init__(self) -> None:
        self.tensors: dict[str, NDArray[Any]] = {}
        self._known: dict[int, tuple[dict[str, Any], Any]] = {}
        self._open: set[int] = set()

    def node(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is Message:
            return str(value)
        if type(value) is float:
            return value if np.isfinite(value) else {"$": "float", "value": repr(value)}
        if id(value) in self._open:
            raise ValueError(f"{where} contains itself, which a model file cannot hold.")
        self._open.add(id(value))
        try:
            return self._compound(value, where)
        finally:
            self._open.discard(id(value))

    def _compound(self, value: Any, where: str) -> Any:
        if type(value) is list:
            return self._nodes(value, where)
        if type(value) is tuple:
            return {"$": "tuple", "items": self._nodes(value, where)}
        if type(value) is dict:
            items = [
                [self.node(key, f"a key of {where}"), self.node(item, f"{where}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"$": "dict", "items": items}
        if isinstance(value, np.generic):
            return {**self._array(np.asarray(value), where), "scalar": True}
        if type(value) is np.ndarray:
            return self._array(value, where)
        if isinstance(value, np.dtype) and value.name in _NUMBERS:
            return {"$": "dtype", "name": value.name}
        if isinstance(value, np.dtype) and value.kind == "O":
            return {"$": "type", "name": _OBJECTS}
        if isinstance(value, type) and value in _TYPE_NAMES:
            return {"$": "type", "name": _TYPE_NAMES[value]}
        if type(value) is slice:
            return {"$": "slice", "items": self._nodes((value.start, value.stop, value.step), where)}
        if isinstance(value, sp.csr_array | sp.csr_matrix):
            parts = {name: self.node(getattr(value, name), where) for name in ("data", "indices", "indptr")}
            return {"$": "csr", "class": type(value).__name__, "shape": list(map(int, value.shape)), **parts}
        if type(value) is ColumnFamily:
            return {"$": "family", "name": str(value), "reason": value.reason}
        name = name_of(type(value))
        if name is None:
            raise ValueError(_refusal(value, where))
        if isinstance(value, Enum):
            return {"$": "enum", "class": name, "name": value.name}
        state = {
            attribute: self.node({} if attribute == _MEMORY else held, f"{where}.{attribute}")
            for attribute, held in attributes(value).items()
            if attribute != _ROUTING
        }
        return {"$": "object", "class": name, "state": state}

    def _nodes(self, values: Any, where: str) -> list[Any]:
        return [self.node(item, f"{where}[{at}]") for at, item in enumerate(values)]

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype.kind in "UO":
            items = self._nodes(array.ravel().tolist(), where)
            return {"$": "texts", "dtype": array.dtype.str, "shape": list(array.shape), "items": items}
        if array.dtype.names is not None:
            fields = {name: self._array(array[name], where) for name in array.dtype.names}
            return {"$": "record", "fields": fields}
        if array.dtype.name not in _NUMBERS:
            raise ValueError(
                f"{where} is an array of {array.dtype}, which a model file cannot hold; use plain numbers."
            )
        if id(array) not in self._known:
            # Products round differently in another layout, so columns that lie together stay together.
            columns = array.ndim == 2 and min(array.shape) > 1 and array.copy(order="K").flags.f_contiguous
            held = array.T if columns else array
            name = f"t{len(self.tensors)}"
            self.tensors[name] = held.astype(held.dtype.newbyteorder("="), order="C")
            # The array is kept with its node: while it lives no other array has its number.
            self._known[id(array)] = ({"$": "array", "tensor": name, "transposed": columns}, array)
        return self._known[id(array)][0]


def attributes(value: Any) -> dict[str, Any]:
    """What an object holds, by name."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name) and not name.startswith("__")}
    return {**held, **getattr(value, "__dict__", {})}


def _refusal(value: Any, where: str) -> str:
    what = "a function" if callable(value) and not isinstance(value, type) else f"a {type(value).__name__}"
    hint = (
        "Give random_state a whole number and fit again."
        if isinstance(value, np.random.RandomState | np.random.Generator)
        else "Replace it by numbers, strings or a class of separatrix, and fit again."
    )
    return (
        f"{where} holds {what}, which a model file cannot: it has arrays and plain values only, so that loading runs no code. "
        f"{hint}"
    )


def decode(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    """The value of what `encode` wrote; anything else is a ValueError."""
    try:
        return _value(node, tensors)
    except ValueError:
        raise
    except Exception as fault:  # a part that is missing or of the wrong type
        raise ValueError(f"The file does not describe a model: {type(fault).__name__} ({fault}).") from fault


def _value(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    if node is None or isinstance(node, bool | int | float | str):
        return node
    if isinstance(node, list):
        return [_value(item, tensors) for item in node]
    kind = node["$"]
    if kind not in _DECODERS:
        raise ValueError(f"The file holds a value of the unknown kind {str(kind)[:100]!r}, which is refused.")
    return _DECODERS[kind](node, tensors)


def _array_value(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    name = node["tensor"]
    if name not in tensors:
        raise ValueError(f"The file refers to the array {name!r}, which it does not have.")
    array = tensors[name].T if node["transposed"] else tensors[name]
    return array[()] if node.get("scalar") else array


def _texts(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    dtype = np.dtype(node["dtype"])
    if dtype.kind not in "UO":
        raise ValueError(f"The file holds texts of the type {dtype}, which is refused.")
    items = [_value(item, tensors) for item in node["items"]]
    if dtype.kind == "U":
        # No wider than its longest text: the width in the file may be anything.
        width = max((len(item) for item in items if isinstance(item, str)), default=0)
        dtype = np.dtype(f"U{min(max(width, 1), dtype.itemsize // 4)}")
    flat = np.empty(len(items), dtype=dtype)
    for at, item in enumerate(items):
        flat[at] = item
    array = flat.reshape(node["shape"])
    return array[()] if node.get("scalar") else array


def _record(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    fields = {name: _value(field, tensors) for name, field in node["fields"].items()}
    shapes = {field.shape for field in fields.values()}
    array = np.zeros(shapes.pop(), dtype=[(name, field.dtype) for name, field in fields.items()])
    for name, field in fields.items():
        array[name] = field
    return array


def _csr(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    parts = tuple(_value(node[name], tensors) for name in ("data", "indices", "indptr"))
    matrix = _SPARSE[node["class"]](parts, shape=tuple(node["shape"]))
    matrix.check_format(full_check=True)
    return matrix


def _dtype(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    if node["name"] not in _NUMBERS:
        raise ValueError(f"The file names the type {str(node['name'])[:100]!r}, which is refused.")
    return np.dtype(node["name"])


def _float(node: Any, tensors: dict[str, NDArray[Any]]) -> float:
    return {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}[node["value"]]


def _object(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    kind = class_named(node["class"])
    if issubclass(kind, Enum):
        raise ValueError(f"The file makes an object of the enumeration {node['class']!r}, which is refused.")
    made = kind.__new__(kind)  # no method of the class is called with what the file holds
    slots = {name for base in kind.__mro__ for name in getattr(base, "__slots__", ())}
    for name, held in node["state"].items():
        if not name.isidentifier() or name.startswith("__"):
            raise ValueError(f"The file sets the attribute {name[:100]!r}, which is refused.")
        if name in slots:
            object.__setattr__(made, name, _value(held, tensors))
        else:
            made.__dict__[name] = _value(held, tensors)
    return made


def _enum(node: Any, tensors: dict[str, NDArray[Any]]) -> Any:
    kind = class_named(node["class"])
    if not issubclass(kind, Enum) or node["name"] not in kind.__members__:
        raise ValueError(f"The file names {str(node['name'])[:100]!r}, which {node['class']} does not have.")
    return kind[node["name"]]


_DECODERS = {
    "float": _float,
    "tuple": lambda node, tensors: tuple(_value(item, tensors) for item in node["items"]),
    "dict": lambda node, tensors: {_value(key, tensors): _value(item, tensors) for key, item in node["items"]},
    "array": _array_value,
    "texts": _texts,
    "record": _record,
    "csr": _csr,
    "dtype": _dtype,
    "slice": lambda node, tensors: slice(*(_value(item, tensors) for item in node["items"])),
    "type": lambda node, tensors: np.dtype(object) if node["name"] == _OBJECTS else _TYPES[node["name"]],
    "family": lambda node, tensors: ColumnFamily(str(node["name"]), str(node["reason"])),
    "enum": _enum,
    "object": _object,
}
