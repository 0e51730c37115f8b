"""Compiled inner loops: pure functions of arrays."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from separatrix.lazy import no_search_for_garbage

with no_search_for_garbage():  # half of the time that the import takes beside scikit-learn
    from numba import njit
    from numba.core.compiler_lock import global_compiler_lock

    from separatrix.kernels.loading import load_without_declarations

Loop = TypeVar("Loop", bound=Callable[..., Any])
COMPILER: Any = global_compiler_lock  # numba has no types
LOOK = 0.2  # seconds between looks at signals, for systems whose waiting main thread does not hear them


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """Compile a loop that holds no interpreter lock and is kept on disk; further options are numba's.

    ``inline="always"`` puts a helper into the loop that calls it, so that it has that loop's floating-point options.
    """

    def decorate(loop: Loop) -> Loop:
        dispatcher = njit(nogil=True, cache=True, **options)(loop)
        load_without_declarations(getattr(dispatcher, "_cache", None))
        dispatcher.compile = partial(_undisturbed, dispatcher.compile)
        return dispatcher

    return decorate


def _undisturbed(compile_: Callable[[Any], Any], signature: Any) -> Any:
    """Compile for a signature, or load what was compiled, where no signal can break it off.

    Handlers run in the main thread, and one that raises (Ctrl-C, an alarm) in the middle of numba's compiler leaves it unfit
    for the rest of the process. So the main thread only waits; broken off, it leaves the compilation to go on, and the next
    call finds its result. A thread that compiles already holds the lock: what its loop calls is compiled in it.
    """
    if threading.current_thread() is not threading.main_thread() or COMPILER.is_locked():
        with no_search_for_garbage():
            return compile_(signature)
    done = threading.Event()
    outcome: list[Any] = [None, None]

    def work() -> None:
        try:
            with no_search_for_garbage():
                outcome[0] = compile_(signature)
        except BaseException as problem:  # it belongs to the caller
            outcome[1] = problem
        done.set()

    thread = threading.Thread(target=work, name="separatrix-compiler")
    try:
        thread.start()
    except RuntimeError:  # no threads to be had, as at the interpreter's end
        if thread.is_alive():  # it is a signal's
            raise
        return compile_(signature)
    while not done.wait(LOOK):
        pass
    result, problem = outcome
    if problem is not None:
        raise problem
    return result


if hasattr(os, "register_at_fork"):  # a child would wait for ever for a compilation that only its parent goes on with
    os.register_at_fork(
        before=COMPILER.acquire,
        after_in_parent=COMPILER.release,
        after_in_child=COMPILER.release,
    )


@compiled()
def row_span(indptr: Any, i: Any, width: Any) -> Any:
    """Where the entries of row i begin and end: of a CSR matrix, or of dense rows, which have no `indptr`."""
    if indptr is None:
        return 0, width
    return indptr[i], indptr[i + 1]


@compiled()
def row_entry(data: Any, indices: Any, centre: Any, i: Any, p: Any) -> Any:
    """Column and value of an entry of row i.

    Of a CSR matrix `data` is (1, entries), so that one loop serves it and dense rows, which have no `indices`, and may have a
    centre. The column has no sign: of one that has, compiled code looks whether it counts from the end.
    """
    j = np.uint64(p if indices is None else indices[p])
    if indices is not None:
        return j, data[0, p]
    if centre is None:
        return j, data[i, p]
    return j, data[i, p] - centre[p]
