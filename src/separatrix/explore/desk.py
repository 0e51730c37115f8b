"""Fits of one page, off the event loop: one at a time, the newest state of each panel only.

A state that waits is replaced by a newer one of the same panel. A fit that runs is let go of when a newer state waits and it
has taken `PATIENCE`, or when it has taken `BUDGET`: sooner would mean that a long drag shows nothing, as every fit would be
stopped by the next. It is stopped as Ctrl-C stops a fit, by an exception in its thread, and its answer is dropped either way.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from threading import Thread
from typing import Any

Answer = dict[str, Any]
PATIENCE, BUDGET = 0.3, 20.0


class Superseded(BaseException):
    """Raised in the thread of a fit that nobody waits for any more."""


class FitThread(Thread):
    """One piece of work in a thread of its own, which can be stopped between two steps of the interpreter."""

    def __init__(self, work: Callable[[], Answer], done: Callable[[FitThread, Answer], object]) -> None:
        super().__init__(daemon=True, name="separatrix-explorer-fit")
        self._work, self._done = work, done

    def run(self) -> None:
        """Work, and hand over the answer."""
        try:
            self._done(self, self._work())
        except Superseded:
            return

    def stop(self) -> None:
        """End it soon, without an answer."""
        if self.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Superseded))


class Desk:
    """What waits and what runs for one page. All methods are called on the event loop; only the work is not.

    Parameters
    ----------
    send : callable
        Takes every answer, on the event loop.
    """

    def __init__(self, send: Callable[[Answer], None], *, patience: float = PATIENCE, budget: float = BUDGET) -> None:
        self._send, self._patience, self._budget = send, patience, budget
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Any, tuple[Callable[[], Answer], Answer]] = {}
        self._running: FitThread | None = None
        self._key: Any = None
        self._begun = 0.0
        self._late: Answer = {}
        self.stopped = 0

    def submit(self, key: Any, work: Callable[[], Answer], late: Answer) -> None:
        """Have this done; what waits under the same key is forgotten. `late` is the answer if it takes too long."""
        self._waiting[key] = work, late
        if self._running is None:
            self._next()
        elif key == self._key:
            left = self._begun + self._patience - self._loop.time()
            self._loop.call_later(max(0.0, left), self._give_up, self._running, False)

    def close(self) -> None:
        """Forget all."""
        self._waiting.clear()
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _next(self) -> None:
        if not self._waiting:
            return
        self._key = next(iter(self._waiting))
        work, self._late = self._waiting.pop(self._key)
        self._begun = self._loop.time()
        self._running = FitThread(
            work, lambda thread, answer: self._loop.call_soon_threadsafe(self._finish, thread, answer)
        )
        self._loop.call_later(self._budget, self._give_up, self._running, True)
        self._running.start()

    def _finish(self, thread: FitThread, answer: Answer) -> None:
        if thread is self._running:  # else it was let go of
            self._running = None
            self._send(answer)
            self._next()

    def _give_up(self, thread: FitThread, over_budget: bool) -> None:
        if thread is not self._running or not (over_budget or self._key in self._waiting):
            return
        thread.stop()
        self._running, self.stopped = None, self.stopped + 1
        if over_budget:
            self._send(self._late)
        self._next()
