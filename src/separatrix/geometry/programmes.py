"""Work that ends: within a limit on its time, and at once on Ctrl-C.

Compiled code (a linear programme, a factorisation) answers no signal, but it lets other threads run: it works on a thread of
its own while the calling one waits, ready for Ctrl-C. Work that was given up is ended by an exception raised in its thread
when compiled code returns, so that it does not slow down what comes after it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from math import inf
from time import perf_counter
from typing import Any, TypeVar

_LOOK, _GAP = 0.1, 1.0  # seconds between two looks at the clock; the most that one look counts
_LONGEST = 600.0  # seconds after which a programme ends by itself that nobody waits for
_Answer = TypeVar("_Answer")


class OutOfTime(RuntimeError):
    """The time that was given for a piece of work is over; there is no answer."""


class _Abandoned(BaseException):
    """Raised in a thread whose answer nobody waits for; no `except Exception` stops it."""


class Deadline:
    """An amount of time that work may take; whoever waits for it counts.

    Examples
    --------
    >>> from separatrix.geometry.programmes import Deadline
    >>> Deadline(60.0).check()
    >>> Deadline(0.0).check()
    Traceback (most recent call last):
    separatrix.geometry.programmes.OutOfTime: It was given up after 0 s.
    """

    def __init__(self, seconds: float = inf) -> None:
        self._seconds, self._spent = seconds, 0.0

    @property
    def left(self) -> float:
        """Seconds that are left; infinite without a limit."""
        return self._seconds - self._spent

    def spend(self, seconds: float) -> None:
        """Count time; a long gap is that of a machine that slept or of a process that was stopped, and counts little."""
        self._spent += min(seconds, _GAP)

    def check(self) -> None:
        """Raise `OutOfTime` if none are."""
        if self.left <= 0.0:
            raise OutOfTime(f"It was given up after {self._seconds:.3g} s.")

    def cancel(self) -> None:
        """Nobody waits any more."""
        self._spent = inf


NEVER = Deadline()


def aside(work: Callable[[Deadline], _Answer], limit: float | Deadline = inf) -> _Answer:
    """The answer of `work`, which is given its deadline; `OutOfTime` where that passes first. A given deadline is used up.

    Examples
    --------
    >>> from separatrix.geometry.programmes import aside
    >>> aside(lambda deadline: 6 * 7)
    42
    """
    budget = limit if isinstance(limit, Deadline) else Deadline(limit)
    budget.check()
    deadline, found, context = Deadline(budget.left), list[Any](), copy_context()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(context.run(work, deadline))
        except BaseException as error:  # raised again where it is waited for
            failed.append(error)

    worker = threading.Thread(target=run, name="separatrix aside", daemon=True)
    worker.start()
    last = perf_counter()
    try:
        while worker.is_alive():
            worker.join(_LOOK)
            now = perf_counter()
            for one in (budget, deadline):
                one.spend(now - last)
            last = now
            if worker.is_alive():
                budget.check()
    finally:
        deadline.cancel()
        if worker.is_alive() and worker.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(_Abandoned))
    if failed:
        raise failed[0]
    return found[0]


def run_programme(*arguments: Any, options: dict[str, Any], deadline: Deadline = NEVER, **more: Any) -> Any:
    """`scipy.optimize.linprog` of these arguments, by a deadline."""
    from scipy.optimize import linprog

    deadline.check()
    limit = min(deadline.left + 1.0, _LONGEST)
    found = linprog(*arguments, options=options if deadline is NEVER else {**options, "time_limit": limit}, **more)
    deadline.check()
    return found
