"""`fit(source, checkpoint=folder)`: which fit a journal of passes (see separatrix.data.journal) belongs to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from os import PathLike
from typing import Any

import numpy as np

from separatrix.data.journal import Journal
from separatrix.data.source import Source

Checkpoint = str | PathLike[str] | None


def checkpointed(
    checkpoint: Checkpoint, model: Any, X: Any, options: Mapping[str, Any]
) -> AbstractContextManager[None]:
    """While inside, the passes of a fit of the model to X go through its checkpoint, if there is one."""
    if checkpoint is None:
        return nullcontext()
    data = X.identity if isinstance(X, Source) else None
    if data is None:
        raise ValueError(
            "checkpoint= is for rows in files (scan_csv, scan_parquet) and in Dask collections, which can be told from "
            "others when the fit goes on."
        )
    given = {**model.get_params(deep=True), **{f"fit: {name}": value for name, value in options.items()}}
    fit = [type(model).__qualname__, {name: _words(value) for name, value in sorted(given.items())}]
    return Journal(checkpoint, str(sys.modules["separatrix"].__version__), data, fit).kept()


def _words(value: Any) -> str:
    """A parameter as text that is the same in the next process."""
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return f"{value.dtype}{value.shape} {blake2b(content, digest_size=16).hexdigest()}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_words(key)}: {_words(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_words, value)) + "]"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value)
    return (
        f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"  # its parameters follow
    )
