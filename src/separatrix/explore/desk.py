"""Fits of one page, off the event loop: the newest state of each panel only.

A state that waits is replaced by a newer one of the same panel. A fit that runs is let go of when a newer state waits and it
has taken `PATIENCE`, or when it has taken `BUDGET`: the newer one begins at once, and the answer of the older is dropped.
Sooner would mean that a long drag shows nothing, as every fit would be overtaken by the next. The thread of a fit that was let
go of comes to its own end, as to break into it from outside could leave a lock taken for ever; at most `MOST_LEFT` run on so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

Answer = dict[str, Any]
PATIENCE, BUDGET, MOST_LEFT = 0.3, 20.0, 2


class FitThread(Thread):
    """One piece of work in a thread of its own."""

    def __init__(self, work: Callable[[], Answer], done: Callable[[FitThread, Answer], object]) -> None:
        super().__init__(daemon=True, name="separatrix-explorer-fit")
        self._work, self._done = work, done

    def run(self) -> None:
        """Work, and hand over the answer."""
        self._done(self, self._work())


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
        self._left: set[FitThread] = set()
        self.overtaken = 0

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
        self._running = None

    def _next(self) -> None:
        if not self._waiting:
            return
        self._key = next(iter(self._waiting))
        work, self._late = self._waiting.pop(self._key)
        self._begun = self._loop.time()
        self._running = FitThread(work, self._hand_over)
        self._loop.call_later(self._budget, self._give_up, self._running, True)
        self._running.start()

    def _hand_over(self, thread: FitThread, answer: Answer) -> None:
        """In the thread of the fit."""
        with suppress(RuntimeError):  # the loop is closed: the explorer has ended meanwhile
            self._loop.call_soon_threadsafe(self._finish, thread, answer)

    def _finish(self, thread: FitThread, answer: Answer) -> None:
        self._left.discard(thread)
        if thread is self._running:  # else it was let go of
            self._running = None
            self._send(answer)
            self._next()

    def _give_up(self, thread: FitThread, over_budget: bool) -> None:
        if thread is not self._running or not (over_budget or self._key in self._waiting):
            return
        if len(self._left) >= MOST_LEFT and not over_budget:
            self._loop.call_later(self._patience, self._give_up, thread, False)
            return
        self._left.add(thread)
        self._running, self.overtaken = None, self.overtaken + 1
        if over_budget:
            self._send(self._late)
        self._next()
