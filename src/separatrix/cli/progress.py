"""How far a command is, on stderr: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import TracebackType
from typing import Any, Self

_SECONDS_BETWEEN_LINES = 2.0


class ProgressLine:
    """Called with a label and the fraction done (None when it is not known); a context manager, which clears the bar.

    The bar never falls back: of a fraction that is not known, or less than what was shown, the label alone is new.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._due = 0.0
        self._shown = 0.0
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

            columns = (BarColumn(24), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, label: str, fraction: float | None, ended: bool = False) -> None:
        """Show a label; one that ends something is shown in any case."""
        self._shown = max(self._shown, fraction or 0.0)
        fraction = self._shown if self._shown else fraction
        if self._bar is not None:
            from rich.markup import escape

            total = None if fraction is None else 1.0
            self._bar.update(self._task, description=escape(label), total=total, completed=fraction or 0.0)
        elif not self._quiet and (perf_counter() >= self._due or fraction == 1.0 or ended):
            done = "" if fraction is None else f"{fraction:4.0%} "
            print(f"{done}{label}", file=sys.stderr, flush=True)
            self._due = perf_counter() + _SECONDS_BETWEEN_LINES


class FileProgress:
    """A progress line of work on files: which step, which pass over the files, and how much of them it has read."""

    def __init__(self, line: Callable[..., None]) -> None:
        self._line, self._step = line, ""
        self._fraction: float | None = None

    def __call__(self, label: str, fraction: float | None) -> None:
        """A step of the work."""
        self._step, self._fraction = label, fraction
        self._line(label, fraction)

    def read(self, number: int, done: int, total: int) -> None:
        """How far a pass is."""
        words = f"pass {number}, {_size(done, total)} of {_size(total, total)}"
        if self._step:
            self._line(f"{self._step}: {words}", self._fraction)
        else:
            self._line(words, None, done >= total)  # how many passes there will be is not known


def _size(n: int, total: int) -> str:
    return f"{n / 1e9:.2f} GB" if total >= 1e9 else f"{n / 1e6:.1f} MB"
