"""Who runs: a peer is a library, a contender is one way of using it.

Estimators are named as "module:Class" and imported only when built, so that listing the workloads imports nothing
and a peer that is not installed is a fact to report, not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from benchmarks.ladder import ONCE

# ours: the one the goal is about; peer: enters the ratio; context: reported only.
Role = Literal["ours", "peer", "context"]
Build = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """One estimator in the race; `make` builds it, unfitted, with a tolerance of the ladder or None, its default.

    `aim` names the problem it solves where that is not quite ours (LIBLINEAR penalises an intercept).
    """

    name: str
    peer: Peer
    make: Callable[[float | None], Any]
    role: Role
    default: bool = False
    note: str = ""
    rungs: tuple[float | None, ...] = ONCE
    aim: str = ""

    def build(self, rung: float | None = None) -> Any:
        return self.make(rung)

    @property
    def ours(self) -> bool:
        return self.role == "ours"


@dataclass(frozen=True)
class Peer:
    """A library: what it is called, on PyPI and when imported."""

    name: str
    distribution: str
    module: str
    role: Role = "peer"

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    def contender(
        self,
        name: str,
        build: str | Build,
        parameters: Mapping[str, Any] | None = None,
        *,
        role: Role | None = None,
        default: bool = False,
        note: str = "",
        rungs: tuple[float | None, ...] = ONCE,
        aim: str = "",
        tolerance: str = "tol",
    ) -> Contender:
        """One way of using this peer.

        `build` is "module:Class" (called with `parameters`, and with a rung of the ladder as `tolerance`) or a function
        without arguments; `default` marks what a user of the library gets without choosing anything.
        """

        def make(rung: float | None) -> Any:
            if not isinstance(build, str):
                return build()
            stop = {} if rung is None else {tolerance: rung}
            return construct(build, {**(parameters or {}), **stop})

        full = f"{self.name} {name}".strip()
        return Contender(full, self, make, role or self.role, default, note, rungs, aim)


def construct(path: str, parameters: Mapping[str, Any]) -> Any:
    """Import "module:Class" and call it."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)(**parameters)


OURS = Peer("separatrix", distribution="separatrix", module="separatrix", role="ours")
