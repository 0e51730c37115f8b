"""Workloads: what is run, on which data, to which quality, and how far we want to be ahead.

A workload file holds one `WORKLOAD`, or several by name in `CASES`. Most are a `FitWorkload`; anything with `id`, `title` and
`run(settings) -> Result` will do. This module imports no numerical library: the parent process stays light, and
so does the child in which import times are measured.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from benchmarks.children import ChildFailed, call
from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.result import FAILED, NOT_INSTALLED, Result, Row, one_line

if TYPE_CHECKING:
    from benchmarks.data import Data

WORKLOADS = "benchmarks.workloads"
Check = Callable[[Any], float]


@dataclass(frozen=True)
class Settings:
    """What the command line chose."""

    repeats: int = 5
    scale: float = 1.0


class Workload(Protocol):
    """What the runner asks of a workload."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    def run(self, settings: Settings) -> Result: ...


@dataclass(frozen=True)
class FitWorkload:
    """Contenders fitted on the same data: time in one process, alternating; memory in a process each.

    `module` is the workload file's `__name__`, by which child processes find it again. `data(scale)` makes the data.
    `check(data)` prepares the reference and returns the function from a fitted model to its error; an error
    above `tolerance` keeps a contender out of the ratio. `quality` says in words what the error is.
    """

    module: str
    id: str
    title: str
    goals: tuple[Goal, ...]
    data: Callable[[float], Data]
    contenders: tuple[Contender, ...]
    check: Callable[[Data], Check]
    quality: str
    tolerance: float = 1e-8

    def run(self, settings: Settings) -> Result:
        timed = call("benchmarks.timing:in_child", module=self.module, scale=settings.scale, repeats=settings.repeats)
        result = Result(
            [Row(**row) for row in timed["rows"]],
            data=timed["data"],
            quality=f"{self.quality}, at most {self.tolerance:g}",
            x_bytes=timed["x_bytes"],
        )
        for index, row in enumerate(result.rows):
            if row.seconds and row.role == "ours":  # the peers' memory is in B17
                _measure_memory(self.module, index, row, settings)
        result.verdicts = [goal.judge(result) for goal in self.goals]
        return result


@dataclass(frozen=True)
class MemoryWorkload:
    """Contenders of which only the peak extra memory of a fit is measured."""

    module: str
    id: str
    title: str
    goals: tuple[Goal, ...]
    data: Callable[[float], Data]
    contenders: tuple[Contender, ...]

    def run(self, settings: Settings) -> Result:
        result = Result([])
        for index, contender in enumerate(self.contenders):
            row = Row(contender.name, contender.role, contender.default, note=contender.note)
            result.rows.append(row)
            if not contender.peer.installed:
                row.status = NOT_INSTALLED
                continue
            measured = _measure_memory(self.module, index, row, settings)
            if measured is None:
                row.status = FAILED
            else:
                result.x_bytes, result.data = measured["x_bytes"], measured["data"]
        result.verdicts = [goal.judge(result) for goal in self.goals]
        return result


def _measure_memory(module: str, index: int, row: Row, settings: Settings) -> dict[str, Any] | None:
    try:
        asked: dict[str, Any] = {"module": module, "index": index, "rung": row.rung, "scale": settings.scale}
        measured: dict[str, Any] = call("benchmarks.memory:in_child", **asked)
    except ChildFailed as error:
        row.note = f"{row.note} memory: {one_line(str(error))}".strip()
        return None
    row.peak_extra = measured["peak_extra"]
    return measured


def load(module: str) -> Any:
    """The `WORKLOAD` of a workload file, or the one called `key` of its `CASES` for "module:key"."""
    name, _, key = module.partition(":")
    file = import_module(name)
    return file.CASES[key] if key else file.WORKLOAD


def discover(package: str = WORKLOADS) -> dict[str, Workload]:
    """Every workload of the folder, by file name (and key), in the order of the file names."""
    folder = import_module(package).__path__
    found: dict[str, Workload] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(folder)):
        cases = getattr(import_module(f"{package}.{name}"), "CASES", None)
        if cases is None:
            found[name] = load(f"{package}.{name}")
        else:
            found |= {f"{name}_{key}": case for key, case in cases.items()}
    return found
