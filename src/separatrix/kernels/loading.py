"""Compiled loops are loaded from numba's cache without all that only compiling needs.

Before numba loads a loop from its cache it reads every declaration of what it could compile, from text to linear algebra, and
compiles its own functions for counting references; and it imports each module whose functions are part of the loop. That is
three quarters of a process's first load. A cached loop has all of it linked into it already, but for a few functions whose
addresses are made known here. What has to be compiled still reads everything: numba's compiler does so on its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any


def load_without_declarations(cache: Any) -> None:
    """Have the cache of a loop load as above; it is left alone where numba is built otherwise than it is known to be."""
    load: Callable[[Any, Any], Any] | None = getattr(cache, "load_overload", None)
    if load is not None and _found():

        def load_overload(signature: Any, target: Any) -> Any:
            with _bare(target):
                return load(signature, target)

        cache.load_overload = load_overload


def _found() -> bool:
    """Whether numba has what is replaced while a loop is loaded."""
    if not _numba.sought:
        _numba.sought = True
        try:
            environments = import_module("numba.core.environment")
            _numba.helpers = import_module("numba.core.runtime._nrt_python").c_helpers
            if callable(getattr(environments, _REBUILD)) and callable(environments.Environment.from_fndesc):
                _numba.environments = environments
        except (ImportError, AttributeError):  # another numba: its own way of loading is longer, and right
            pass
    return _numba.environments is not None


_REBUILD = "_rebuild_env"  # by this name numba's files of compiled loops ask for what they were compiled with
_numba: Any = SimpleNamespace(sought=False, environments=None, helpers={}, told=False)


@contextmanager
def _bare(target: Any) -> Iterator[None]:
    """The target as it is, without reading declarations into it.

    Loops are loaded under numba's lock of its compiler: no other thread sees what is replaced.
    """
    if not _numba.told:
        add_symbol = import_module("llvmlite.binding").add_symbol
        for name, address in _numba.helpers.items():  # functions in C, by the names that cached loops call
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
        _numba.told = True
    environments = _numba.environments
    rebuild = getattr(environments, _REBUILD)

    def environment(module: str, constants: Sequence[Any], name: str) -> Any:
        """The constants of a function that is part of a loop; the globals of numba's own serve interpreted code only."""
        known = module in sys.modules or environments.lookup_environment(name) is not None
        if known or not module.startswith("numba."):
            return rebuild(module, constants, name)
        described = SimpleNamespace(env_name=name, lookup_globals=lambda: {"__name__": module})
        bare = environments.Environment.from_fndesc(described)
        bare.consts[:] = constants
        return bare

    setattr(environments, _REBUILD, environment)
    target.refresh = _nothing
    try:
        yield
    finally:
        vars(target).pop("refresh", None)
        setattr(environments, _REBUILD, rebuild)


def _nothing() -> None:
    """In the place of reading every declaration."""
