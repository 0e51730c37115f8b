"""Model files: arrays and JSON in one `.safetensors` file, checked before anything is made of them.

    header     __metadata__: format, format_version, library_version, family, classes, schema, scores, state, checksum
    buffer     the tensors that the state refers to
    checksum   SHA-256 of the whole file, with zeros in the place of its own digits

The state (see `state`) names classes of a fixed table and holds values; loading calls nothing that a file could name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors.numpy import save as safetensors_bytes
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from separatrix.comparison.table_model import TableModel
from separatrix.data.readers import check_regular
from separatrix.data.writing import destination, replacing
from separatrix.export.checks import article, check_model, described, last_step
from separatrix.export.finite import check_finite_numbers
from separatrix.export.registry import name_of
from separatrix.export.state import TENSOR_TYPES, decode, encode

FORMAT = "separatrix model"
FORMAT_VERSION = "1.0"
LARGEST_HEADER = 100_000_000
_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')
_NO_CHECKSUM = "0" * 64
_FITTED = ("fit_", "estimator_", "estimators_")
_CHUNK = 1 << 20


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that holds arrays and plain values only.

    Parameters
    ----------
    model : TableModel, estimator of separatrix, or scikit-learn Pipeline that ends in one
        Fitted. What it holds must be numbers, strings, arrays and objects of separatrix: a Python function (of a kernel or a
        loss) or somebody else's object is refused by name.
    path : path
        Usually ending in ``.safetensors``. The file is written beside it first and then renamed, so that an interruption leaves
        the old file, or none. A file that is replaced keeps its mode, a link stays a link, and what is no regular file
        (a folder, a pipe, a device) is refused.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import separatrix as sx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = sx.LinearDiscriminantAnalysis().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.safetensors"
    ...     sx.save_model(model, path)
    ...     loaded = sx.load_model(path)
    >>> bool((loaded.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    destination(path)  # a place that cannot be written is refused before the work
    content = _serialised(model)
    try:
        check_finite_numbers(model)
    except ValueError as fault:
        raise ValueError(f"This model cannot be saved, since it could not be loaded: {fault}.") from None
    with replacing(path) as part:
        part.write_bytes(content)


def _serialised(model: Any) -> bytes:
    name = type(model).__name__
    if name_of(type(model)) is None or not isinstance(model, BaseEstimator | TableModel):
        raise TypeError(f"save_model takes a fitted model of separatrix, and this is {article(name)}.")
    if not isinstance(model, TableModel):
        check_is_fitted(last_step(model), _FITTED, all_or_any=any)
    state, tensors = encode(model, name)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "library_version": library_version(),
        "checksum": _NO_CHECKSUM,
        **{key: json.dumps(value) for key, value in described(model).items()},
        "state": json.dumps(state, allow_nan=False),
    }
    if sum(len(value) for value in header.values()) > LARGEST_HEADER // 2:  # quotes are escaped in the file
        raise ValueError(
            f"This {name} holds more text than the header of a model file can; shorten labels or categories."
        )
    content = safetensors_bytes(tensors, metadata=header)
    at, _ = _checksum_place(content[: 8 + int.from_bytes(content[:8], "little")])
    return content[:at] + hashlib.sha256(content).hexdigest().encode() + content[at + 64 :]


def library_version() -> str:
    """The version of separatrix; the root of the package stands above this room, and is there whenever it is used."""
    return str(sys.modules["separatrix"].__version__)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` wrote. No code of the file is run, whoever wrote it.

    Parameters
    ----------
    path : path

    Returns
    -------
    TableModel or estimator
        Its predictions are those of the saved one, bit for bit.

    Examples
    --------
    >>> import separatrix as sx
    >>> sx.load_model("pyproject.toml")
    Traceback (most recent call last):
    ...
    ValueError: 'pyproject.toml' is not a model file: ...
    """
    path = Path(path)
    check_regular(path)
    with open(path, "rb") as file:
        header, intact = _checked(file, path)
        if not intact:
            raise ValueError(
                f"{str(path)!r} is damaged: its checksum does not match its content. Save or copy it again."
            )
        file.seek(0)
        content = file.read()
    try:
        parts = safetensors.deserialize(content)  # type: ignore[no-untyped-call]  # safetensors ships no types for it
        model = decode(json.loads(header["state"]), {name: _tensor(part) for name, part in parts})
    except (safetensors.SafetensorError, ValueError, RecursionError) as fault:
        raise ValueError(f"{str(path)!r} cannot be read as a model: {fault}") from fault
    try:
        check_model(model, header)
    except Exception as fault:  # a stranger's file may break a prediction in any way
        raise ValueError(
            f"{str(path)!r} cannot be used: its parts do not fit together ({type(fault).__name__}: {fault})."
        ) from fault
    return model


def _checked(file: BinaryIO, path: Path) -> tuple[dict[str, str], bool]:
    """The header of a file of a format that is known, and whether the checksum in it is that of the whole file."""
    header = _header(file, path)
    _check_version(header, path)
    length = file.tell()
    file.seek(0)
    head = file.read(length)
    at, digits = _checksum_place(head, path)
    digest = hashlib.sha256(head[:at] + _NO_CHECKSUM.encode() + head[at + 64 :])
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return header, digest.hexdigest() == digits


def _tensor(part: dict[str, Any]) -> NDArray[Any]:
    if part["dtype"] not in TENSOR_TYPES:
        raise ValueError(f"an array has the type {part['dtype']}, which no model has.")
    dtype = np.dtype(TENSOR_TYPES[part["dtype"]])
    array = np.frombuffer(part["data"], dtype=dtype.newbyteorder("<")).reshape(part["shape"])
    return array.astype(dtype)  # a copy: the buffer of the file is let go


def _header(file: BinaryIO, path: Path) -> dict[str, str]:
    """The metadata of the header, read without the tensors."""
    refusal = f"{str(path)!r} is not a model file: "
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > size - 8:
        raise ValueError(f"{refusal}it is shorter than its header states, or not in the safetensors format.")
    if length > LARGEST_HEADER:
        raise ValueError(f"{refusal}its header has {length} bytes, more than the {LARGEST_HEADER} that are allowed.")
    try:
        header = json.loads(file.read(length).decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"{refusal}its header is not JSON.") from fault
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    needed = ("format_version", "library_version", "checksum", "family", "classes", "schema", "scores", "state")
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise ValueError(f"{refusal}save_model did not write it.")
    if not all(isinstance(metadata.get(name), str) for name in needed):
        raise ValueError(f"{refusal}its header is incomplete.")
    return metadata


def _check_version(header: dict[str, str], path: Path) -> None:
    ours = FORMAT_VERSION.partition(".")[0]
    if not re.fullmatch(rf"{ours}\.[0-9]{{1,4}}", header["format_version"]):
        raise ValueError(
            f"{str(path)!r} has format {header['format_version'][:20]!r}, of separatrix {header['library_version'][:20]}, and "
            f"this version reads format {ours}: upgrade separatrix to load it, or save the model again with this version."
        )


def _checksum_place(head: bytes, path: Path | str = "") -> tuple[int, str]:
    found = list(_CHECKSUM.finditer(head))
    if len(found) != 1:
        raise ValueError(f"{str(path)!r} is not a model file: it has no checksum, or several.")
    return found[0].start(1), found[0].group(1).decode()


def inspect_model(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The description in a model file; the model is not made.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``family``, ``classes``, ``schema``, ``scores``, ``library_version``, ``format_version``, ``checksum`` and ``intact``:
        whether the checksum matches the content.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> import separatrix as sx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.safetensors"
    ...     sx.save_model(sx.GaussianNB().fit(*load_iris(return_X_y=True)), path)
    ...     about = sx.inspect_model(path)
    >>> about["family"], about["classes"], about["intact"]
    ('GaussianNB', [0, 1, 2], True)
    """
    path = Path(path)
    check_regular(path)
    with open(path, "rb") as file:
        header, intact = _checked(file, path)
    try:
        about = {name: json.loads(header[name]) for name in ("family", "classes", "schema", "scores")}
    except (ValueError, RecursionError) as fault:
        raise ValueError(f"{str(path)!r} is not a model file: its description is not JSON.") from fault
    versions = {name: header[name] for name in ("library_version", "format_version", "checksum")}
    return {**about, **versions, "intact": intact}
