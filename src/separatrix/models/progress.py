"""A line on the terminal while a fit takes long: what it has reached, and how far it may still be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Self

from separatrix.data.source import Source

_QUIET_SECONDS = 2.0


class Progress:
    """A callback for solvers: silent for the first seconds, and where nobody is watching unless `verbose`."""

    def __init__(self, name: str, verbose: int = 0) -> None:
        self._name, self._verbose = name, verbose
        self._start, self._written = perf_counter(), False

    def __call__(self, state: dict[str, Any]) -> None:
        seconds = perf_counter() - self._start
        if not self._verbose and seconds <= _QUIET_SECONDS:
            return
        line = f"{self._name}: iteration {state['iteration']}, {seconds:.1f} s, "
        if "violation" in state:
            line += f"largest violation {state['violation']:.2g}, {state['rows']} rows in play"
        else:
            line += f"objective {state['objective']:.8g}, at most {state['gap']:.2g} above the optimum"
        self._write(line, seconds)

    def _write(self, line: str, seconds: float) -> None:
        watched = self._watched
        if not self._verbose and not (watched and seconds > _QUIET_SECONDS):
            return
        sys.stderr.write(f"\r{line:<110}" if watched else f"{line}\n")
        sys.stderr.flush()
        self._written = watched

    def sweep(self, done: int, of: int) -> None:
        """A callback for samplers: how many sweeps are done."""
        seconds = perf_counter() - self._start
        left = seconds / max(1, done) * (of - done)
        self._write(f"{self._name}: sweep {done} of {of}, {seconds:.1f} s, about {left:.0f} s left", seconds)

    def read(self, number: int, done: int, total: int) -> None:
        """A callback for sources: how far a pass over files is. One line a pass where nobody is watching."""
        seconds, unit, word = perf_counter() - self._start, 1e9 if total >= 1e9 else 1e6, "GB" if total >= 1e9 else "MB"
        line = f"{self._name}: pass {number}, {done / unit:.1f} of {total / unit:.1f} {word}, {seconds:.1f} s"
        if done == total or self._watched:
            self._write(line, seconds)

    @property
    def _watched(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the line."""
        if self._written:
            sys.stderr.write("\n")


@contextmanager
def shown_passes(model: Any, X: Any) -> Iterator[None]:
    """While inside, passes of a fit of the model over files are shown, and how far they are."""
    if not isinstance(X, Source):
        yield
        return
    with Progress(type(model).__name__, int(getattr(model, "verbose", 0))) as progress, X.followed(progress.read):
        yield
