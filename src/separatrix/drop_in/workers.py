"""Processes of joblib swap what this one did, before they do anything."""

from __future__ import annotations

from typing import Any

from joblib import register_parallel_backend
from joblib.parallel import BACKENDS

_LOKY = "loky"


def swap_in_workers(names: list[str]) -> None:
    """Let the workers that joblib starts from now on swap these names."""
    plain = BACKENDS[_LOKY]
    plain = getattr(plain, "plain", plain)

    class SwappingBackend(plain):  # type: ignore[misc, valid-type]  # joblib ships no types
        """joblib's backend, whose workers swap first."""

        def configure(self, *arguments: Any, **options: Any) -> Any:
            theirs = self.backend_kwargs.get("initializer"), self.backend_kwargs.get("initargs", ())
            options |= {"initializer": prepare, "initargs": (tuple(names), *theirs)}
            return super().configure(*arguments, **options)

    SwappingBackend.plain = plain
    register_parallel_backend(_LOKY, SwappingBackend)


def leave_workers_alone() -> None:
    """Give joblib its own backend back: the next call starts fresh workers."""
    register_parallel_backend(_LOKY, getattr(BACKENDS[_LOKY], "plain", BACKENDS[_LOKY]))


def prepare(names: tuple[str, ...], theirs: Any = None, arguments: tuple[Any, ...] = ()) -> None:
    """The first call in a worker; then the initializer that the user gave, if any."""
    from separatrix.drop_in.swapping import accelerate

    accelerate(only=names)
    if theirs is not None:
        theirs(*arguments)
