"""The workers: threads that draw items of work in order, and results that are merged while others are still at work.

    total = merge of four neighbours, of four such merges, …           a tree that depends on the number of items alone

Whoever is free draws the next item, the calling thread among them, so nobody waits for a slow one; whoever completes a
node of the tree goes on with it. Which thread did what leaves no trace in the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from queue import SimpleQueue
from threading import Event, Lock, Thread, local
from typing import Generic, TypeVar

from separatrix.settings import config

Item = TypeVar("Item")
Result = TypeVar("Result")

_WIDTH = 4
"""Neighbours that a node merges: few results wait for each other, and few are alive (one for each level)."""


class _Crew:
    """Threads that wait for jobs; they are started when they are first needed, and end with the process."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._size, self._lock = 0, Lock()

    def call(self, job: Callable[[], None], hands: int) -> None:
        """`hands` threads do the job once each, as they become free."""
        with self._lock:
            for _ in range(self._size, hands):
                Thread(target=self._serve, args=(self._jobs,), name="separatrix", daemon=True).start()
                self._size += 1
        for _ in range(hands):
            self._jobs.put(job)

    @staticmethod
    def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
        _here.at_work = True
        while True:
            jobs.get()()


class _Here(local):
    at_work = False


_here, _crew = _Here(), _Crew()


def _after_fork() -> None:
    """In the child, which has none of the threads."""
    global _crew
    _crew = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def threads_here() -> int:
    """How many threads a pass may use: one inside another pass, whose workers have their hands full."""
    return 1 if _here.at_work else config.threads


class _Shared(Generic[Item]):
    """Items that are drawn one at a time by whoever is free, until there are no more or something went wrong."""

    def __init__(self, work: Callable[[int, Item], None], items: Iterator[Item]) -> None:
        self._work, self._items = work, items
        self._lock, self._idle = Lock(), Event()
        self._drawn, self._hands, self._over = 0, 0, False
        self._errors: list[tuple[int, BaseException]] = []

    def _draw(self) -> tuple[int, Item] | None:
        with self._lock:
            at = self._drawn
            if not self._over:
                try:
                    item = next(self._items)
                except StopIteration:
                    self._over = True
                except BaseException as error:  # the storage cannot be read: as if the work had failed
                    self._fail(at, error)
                else:
                    self._drawn += 1
                    return at, item
        return None

    def _fail(self, at: int, error: BaseException) -> None:
        self._errors.append((at, error))
        self._over = True

    def do(self) -> None:
        """Draw and work until nothing is left."""
        while drawn := self._draw():
            try:
                self._work(*drawn)
            except KeyboardInterrupt:  # only ever in the calling thread
                raise
            except BaseException as error:
                self._fail(drawn[0], error)
            del drawn

    def lend_a_hand(self) -> None:
        """`do`, in a worker."""
        with self._lock:
            if self._over:
                return
            self._hands += 1
        try:
            self.do()
        finally:
            with self._lock:
                self._hands -= 1
                if not self._hands:
                    self._idle.set()

    def wait(self) -> None:
        """Until all is done, nothing is left running, and the first error, in the order of the items, is raised."""
        while not self._over:
            self._idle.wait()
            self._idle.clear()
        self.finish()
        if self._errors:
            raise min(self._errors, key=lambda pair: pair[0])[1]

    def finish(self) -> None:
        """Draw no more, and wait for those at work."""
        with self._lock:
            self._over = True
            waiting = self._hands > 0
            self._idle.clear()
        if waiting:
            self._idle.wait()


def share(work: Callable[[int, Item], None], items: Iterable[Item], threads: int, stop: Event | None = None) -> None:
    """work(i, item) for every item, on so many threads. With `stop` the calling thread keeps out: Ctrl-C sets it at once."""
    items = iter(items)
    ahead = list(islice(items, 2))
    if threads == 1 or len(ahead) < 2:
        for at, item in enumerate(chain(ahead, items)):
            work(at, item)
        return
    shared = _Shared(work, chain(ahead, items))
    del ahead
    try:
        _crew.call(shared.lend_a_hand, threads - (stop is None))
        if stop is None:
            _here.at_work = True
            try:
                shared.do()
            finally:
                _here.at_work = False
        shared.wait()
    except BaseException:  # Ctrl-C, or an error of the work: nothing is left running behind the caller's back
        if stop is not None:
            stop.set()
        shared.finish()
        raise


class _Node(Generic[Result]):
    def __init__(self) -> None:
        self.merged, self.busy = 0, False
        self.waiting: dict[int, Result] = {}
        self.value: Result


class Merged(Generic[Result]):
    """Results merged in the tree as they come, by any thread and in any order; `merge` may change its first argument."""

    def __init__(self, merge: Callable[[Result, Result], Result]) -> None:
        self._merge, self._lock = merge, Lock()
        self._nodes: dict[tuple[int, int], _Node[Result]] = {}

    def add(self, at: int, value: Result) -> None:
        """The result of item `at`."""
        level = 0
        while True:
            level, at, place = level + 1, at // _WIDTH, at % _WIDTH
            with self._lock:
                node = self._nodes.setdefault((level, at), _Node())
                node.waiting[place] = value
                if node.busy:  # whoever is merging there will take it
                    return
                node.busy = True
            if not self._work_off(node):
                return
            del self._nodes[level, at]
            value = node.value

    def _work_off(self, node: _Node[Result]) -> bool:
        """Merge what has come, in order; whether the node is complete."""
        while node.merged < _WIDTH:
            with self._lock:
                if node.merged not in node.waiting:
                    node.busy = False
                    return False
                value = node.waiting.pop(node.merged)
            node.value = self._merge(node.value, value) if node.merged else value
            node.merged += 1
        return True

    def total(self) -> Result | None:
        """All of them; the last node of every level may have less than its share. ``None`` if there were no results."""
        total: Result | None = None
        for key in sorted(self._nodes):
            node = self._nodes[key]
            total = node.value if total is None else self._merge(node.value, total)
        return total
