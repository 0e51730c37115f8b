"""Who runs: a peer is a library, a contender is one way of using it.

Estimators are named as "module:Class" and imported only when built, so that listing the workloads imports nothing
and a peer that is not installed is a fact to report, not an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

# ours: the one the goal is about; peer: enters the ratio; context: reported only.
Role = Literal["ours", "peer", "context"]
Build = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """One estimator in the race; `build` makes it, unfitted."""

    name: str
    peer: Peer
    build: Build
    role: Role
    default: bool = False
    note: str = ""


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
    ) -> Contender:
        """One way of using this peer.

        `build` is "module:Class" (called with `parameters`) or a function without arguments; `default` marks what
        a user of the library gets without choosing anything.
        """
        maker = partial(construct, build, dict(parameters or {})) if isinstance(build, str) else build
        return Contender(f"{self.name} {name}", self, maker, role or self.role, default, note)


def construct(path: str, parameters: Mapping[str, Any]) -> Any:
    """Import "module:Class" and call it."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)(**parameters)


OURS = Peer("separatrix", distribution="separatrix", module="separatrix", role="ours")
