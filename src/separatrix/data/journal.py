"""A journal of passes: what each of them added up is on disk, so that a fit that was killed goes on where it was.

    i-th pass    key: the function, the numbers it was given, the shape of the rows          value: the merged result

Fits are deterministic: begun again they ask for the same passes, which are answered from the journal as long as the keys agree
and read from then on. No solver knows of it. Every entry is written beside its place and renamed, so it is whole or not there.
Passes that leave values with their blocks which cannot be made again (see held.py) are noted without a result, and read again.
"""

from __future__ import annotations

import io
import json
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from separatrix.data.held import Held

Result = TypeVar("Result")

_HEAD, _ENTRY = "checkpoint.json", "pass-{:06d}"
_current: ContextVar[Journal | None] = ContextVar("separatrix_journal", default=None)
# What a result may be made of: our own classes, arrays, and plain values.
_PLAIN = {
    "builtins": {"set", "frozenset", "complex", "slice", "range", "bytearray"},
    "collections": {"Counter", "OrderedDict"},
}
_NUMPY = {"_reconstruct", "scalar", "ndarray", "dtype", "_frombuffer"}


def current_journal() -> Journal | None:
    """The journal of the fit that is under way in this thread, if it keeps one."""
    return _current.get()


class Journal:
    """Passes of one fit in a folder. `version`, `data` and `fit` tell what the folder belongs to, each as JSON."""

    def __init__(self, folder: str | os.PathLike[str], version: str, data: Any, fit: Any) -> None:
        self._folder, self._at, self._replays = Path(folder), 0, True
        given = {"version": version, "data": data, "fit": fit}
        head = self._folder / _HEAD
        if self._folder.exists() and not self._folder.is_dir():
            raise ValueError(f"The checkpoint {str(folder)!r} is a file; give the name of a folder, which is made.")
        if not head.exists():
            if self._folder.exists() and any(not name.startswith(".") for name in os.listdir(self._folder)):
                raise ValueError(f"The folder {str(folder)!r} holds other files and no checkpoint; give a new one.")
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(_HEAD, json.dumps(given).encode())
            return
        try:
            found = json.loads(head.read_text(encoding="utf-8"))
            differs = next((name for name in given if found[name] != json.loads(json.dumps(given[name]))), None)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{head} is no head of a checkpoint ({error}); remove the folder, or give another."
            ) from None
        if differs is not None:
            what = {
                "version": f"was written by version {found['version']} of the library, and this is {version}",
                "data": "is of other data: files, columns, target or weights have changed since",
                "fit": "is of another fit: another model, or other parameters",
            }[differs]
            raise ValueError(f"The checkpoint {str(folder)!r} {what}. Remove it to start anew, or give another folder.")

    def result(self, key: str, read: Callable[[], Result], count_pass: Callable[[], None]) -> Result:
        """The result of the next pass, from the journal or read, and then written there."""
        self._at += 1
        name = _ENTRY.format(self._at)
        if self._replays:
            entry = self._entry(name)
            self._replays = entry is not None and entry[0] == key
            if self._replays and entry is not None and entry[1]:
                count_pass()
                return entry[2]
        lasting = Held.lasting
        value = read()
        again = Held.lasting == lasting
        self._write(name, pickle.dumps((key, again, value if again else None), protocol=5))
        return value

    def _entry(self, name: str) -> tuple[str, bool, Any] | None:
        try:
            content = (self._folder / name).read_bytes()
            return _Results(io.BytesIO(content)).load()
        except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, ValueError):
            return None  # never written, or not whole: it is read again

    def _write(self, name: str, content: bytes) -> None:
        from separatrix.data.writing import replacing

        with replacing(self._folder / name) as part:
            part.write_bytes(content)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While inside, the passes of this thread are written to the journal, or answered from it."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


class _Results(pickle.Unpickler):
    """Reads results and nothing that runs foreign code."""

    def find_class(self, module: str, name: str) -> Any:
        ours = module.startswith("separatrix.") and "." not in name
        numpy = module.startswith("numpy") and name in _NUMPY
        if ours or numpy or name in _PLAIN.get(module, ()):
            found = super().find_class(module, name)
            if isinstance(found, type) or numpy:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not part of a result")


def pass_key(map_fn: Callable[..., Any], *shape: Any) -> str:
    """What tells a pass from others of the same fit: its function, the numbers it was given, and the kind of the rows."""
    digest = blake2b(digest_size=16)
    digest.update(repr(shape).encode())
    _digest(map_fn, digest, 3)
    return digest.hexdigest()


def _digest(value: Any, digest: Any, depth: int) -> None:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcU":
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif value is None or isinstance(value, bool | int | float | str | np.number):
        digest.update(repr(value).encode())
    elif callable(value) and hasattr(value, "__qualname__"):
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
        for cell in (getattr(value, "__closure__", None) or ()) if depth else ():
            try:
                held = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            _digest(held, digest, depth - 1)
