"""accelerate, restore: what the names of scikit-learn's classes mean.

    for every module that is loaded, every name in it:   scikit-learn's class  ⇄  the one that stands for it

Modules of scikit-learn that are not loaded yet are swapped when they are (imports.py). Names that are imported later are found
in the modules they are imported from, which were swapped. So neither order of imports matters, and `restore` finds names
wherever they were taken meanwhile.
"""

from __future__ import annotations

import copyreg
import os
import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from importlib import import_module
from typing import Any

from separatrix.drop_in.imports import ImportWatch
from separatrix.drop_in.pickles import VARIABLE, reduce_class, register, unregister
from separatrix.drop_in.proxy import StandInType, stand_in
from separatrix.drop_in.record import SwapRecord, SwapTable
from separatrix.drop_in.swaps import SWAPS, Swap, chosen
from separatrix.drop_in.workers import leave_workers_alone, swap_in_workers

_RECORDS = {name: SwapRecord(name, swap.module) for name, swap in SWAPS.items()}
_STAND_INS: dict[str, type[Any]] = {}

copyreg.pickle(StandInType, reduce_class)


def accelerate(only: Iterable[str] | None = None, *, without: Iterable[str] = ()) -> SwapTable:
    """Let scikit-learn's classes mean ours, wherever they were imported or will be, in joblib's workers too.

    Instances made from then on fit with separatrix; they keep scikit-learn's parameters, are instances of scikit-learn's
    classes, and take their place in its meta-estimators. What ours does not support is fitted by scikit-learn's class, and the
    logger ``separatrix.accelerate`` says why. A second call replaces the first.

    Parameters
    ----------
    only : iterable of str, optional
        Names of the classes; all that ours has a counterpart of by default.
    without : iterable of str, optional
        Names of classes to be left as they are.

    Returns
    -------
    SwapTable
        As `accelerated` gives it.

    Examples
    --------
    >>> import separatrix
    >>> table = separatrix.accelerate(only=["SVC"])
    >>> from sklearn.svm import SVC
    >>> SVC().fit([[0.0], [1.0]], [0, 1]).fit_.certificate.kind
    'proven'
    >>> separatrix.accelerated()["SVC"].fits > 0
    True
    >>> separatrix.restore()
    """
    swaps = chosen(only, without)
    restore()
    for swap in swaps:
        _RECORDS[swap.name].swapped = True
    _install([swap for swap in swaps if swap.module in sys.modules])
    _LATER.watch({swap.module for swap in swaps} - sys.modules.keys())
    os.environ[VARIABLE] = ",".join(swap.name for swap in swaps)
    swap_in_workers([swap.name for swap in swaps])
    return accelerated()


def restore() -> None:
    """Let every name mean scikit-learn's class again. Models that are fitted stay as they are and go on predicting."""
    _LATER.watch(set())
    swaps = [SWAPS[name] for name in _STAND_INS if _RECORDS[name].swapped]
    _rename({_STAND_INS[swap.name]: swap.original for swap in swaps})
    for swap in swaps:
        unregister(swap)
    for record in _RECORDS.values():
        record.swapped = False
    os.environ.pop(VARIABLE, None)
    leave_workers_alone()


def accelerated() -> SwapTable:
    """What is swapped, and how many fits in this process ours made and which were handed back to scikit-learn, with times.

    Returns
    -------
    SwapTable
        Its repr is a table; `rows` has its figures.
    """
    return SwapTable([deepcopy(record) for record in _RECORDS.values()])


def is_active() -> bool:
    """Whether any class is swapped."""
    return any(record.swapped for record in _RECORDS.values())


def stand_in_of(name: str) -> type[Any] | None:
    """The class that stands for scikit-learn's of this name, if it is swapped."""
    if not _RECORDS[name].swapped:
        return None
    import_module(SWAPS[name].module)  # which may not have been needed before
    return _STAND_INS[name]


def _install(swaps: Iterable[Swap]) -> None:
    """Let the names of these classes, whose modules are loaded, mean the classes that stand for them."""
    originals = {swap.original: swap for swap in swaps}
    for swap in originals.values():
        if swap.name not in _STAND_INS:
            _STAND_INS[swap.name] = stand_in(swap, _RECORDS[swap.name])
        register(swap)
    _rename({original: _STAND_INS[swap.name] for original, swap in originals.items()})


def _loaded(module: str) -> None:
    _install([swap for swap in SWAPS.values() if swap.module == module and _RECORDS[swap.name].swapped])


_LATER = ImportWatch(_loaded)


def _rename(meanings: Mapping[type[Any], type[Any]]) -> None:
    """Replace classes by others in the namespaces of all modules."""
    if not meanings:
        return
    by_identity = {id(old): new for old, new in meanings.items()}  # some values of modules cannot be hashed
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if not isinstance(space, dict):
            continue
        for name in [name for name, value in list(space.items()) if id(value) in by_identity]:
            space[name] = by_identity[id(space[name])]
