"""Names of a package that are imported when they are first used; whether to import what takes long.

    if TYPE_CHECKING:
        from separatrix.decide.least_risk import bayes_risk
    else:
        __getattr__, __dir__ = lazy_names(__name__)

    __all__ = ["bayes_risk"]

Type checkers follow the imports. When the package runs, they are read from its source, and each is made when its name is first
used: a name stands twice, and importing a package costs little however much it offers.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any


def lazy_names(package: str, modules: Sequence[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package that imports its names when they are first used.

    Parameters
    ----------
    package : str
        Its ``__name__``; the names are those imported under ``if TYPE_CHECKING:`` in its ``__init__.py``.
    modules : sequence of str
        Its public modules. They are attributes too, and the error for a name that is missing here but offered by one of
        them names that module.

    Returns
    -------
    __getattr__, __dir__ : callables
    """
    namespace = vars(sys.modules[package])
    homes = _imports_for_types(namespace["__spec__"].loader.get_source(package))

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        namespace[name] = value = getattr(import_module(homes[name]), name)
        return value

    def get_attribute(name: str) -> Any:
        if name in modules or name in homes:
            with no_search_for_garbage():
                return with_room(find, name)
        message = f"module {package!r} has no attribute {name!r}"
        found = [] if name.startswith("_") else [m for m in modules if name in import_module(f"{package}.{m}").__all__]
        raise AttributeError(f"{message}; it is in {package}.{found[0]}" if found else message)

    def list_names() -> list[str]:
        return sorted({*namespace, *homes, *modules})

    return get_attribute, list_names


@contextmanager
def no_search_for_garbage() -> Iterator[None]:
    """Imports make many objects, all of which stay; Python would look through them, and through all that are there, for
    garbage: in a process that has loaded scikit-learn for several times as long as the imports take.
    """
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            all_are_old()
            gc.enable()


def all_are_old() -> None:
    """Count what there is among Python's oldest objects, which are searched for garbage least, without looking through it.

    As if they had survived the searches that were left out: the next one would go through every object of the imports. Where
    somebody has set objects aside for good, all stays as it is.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


# CPython keeps the frames of Python's calls in pieces of 16 kB, and gives a piece back to the system when the first call in it
# returns. Calls that go to and fro across the end of a piece have memory mapped and filled with zeros each time: importing
# scikit-learn took a quarter longer at one depth of calls than at another. A frame that asks for much gets a large piece, in
# which the calls below it, imports above all, have room.
_ROOM = 16_000  # values
with_room = FunctionType(_call.__code__.replace(co_stacksize=_ROOM), globals(), "with_room")
with_room.__doc__ = "Call a function with arguments, with room for the frames of the calls that it makes."


# About what importing numba, starting it and loading a few compiled loops from its cache takes; how long many small fits do
# without.
_NUMBA_SECONDS, _PATIENCE = 0.2, 0.1
_missed = 0.0  # seconds that were not saved so far


def compiled_pays(seconds: float) -> bool:
    """Whether compiled loops are worth having for work on which they save so many seconds.

    They are once numba is there. Importing it takes longer than most first fits of a process: those are left to NumPy, whose
    sums are the same but for rounding.
    """
    return "numba" in sys.modules or seconds > _NUMBA_SECONDS


def compiled_pays_by_now(seconds: float) -> bool:
    """The same, for one of many small fits: where some are fitted, as many more are likely to follow.

    One fit, and a few, do without the import. Those of a process that would have saved `_PATIENCE` have it. That is about what
    the import takes beside packages that are there: wherever the fits end, not much more than twice the least possible is lost.
    """
    global _missed  # of the whole process
    _missed += seconds
    return compiled_pays(seconds) or _missed > _PATIENCE


def took_longer(seconds: float) -> None:
    """By its steps a fit without compiled loops took so many seconds longer than `compiled_pays_by_now` was told."""
    global _missed  # of the whole process
    _missed += max(0.0, seconds)


def _imports_for_types(source: str) -> dict[str, str]:
    """Module by name of what is imported under ``if TYPE_CHECKING:``."""
    blocks = [node for node in ast.parse(source).body if isinstance(node, ast.If)]
    imports = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}
