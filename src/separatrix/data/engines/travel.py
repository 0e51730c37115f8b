"""A pass as bytes: its functions and its view of the rows, without the rows and without what is held with them.

What a pass maps is a closure; it is written by value (cloudpickle). Where it mentions the source itself, whose rows are
already in the other process, or values that are held with its blocks, a name is written instead. Over there the name stands
for the rows of one partition, and for what an earlier pass has left with them.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from separatrix.data.held import Held
from separatrix.data.source import Source


class RemoteSource(Source):
    """Rows that live in other processes: their engine. In a pass it stands for the rows of one partition."""


def pack(things: Any) -> tuple[bytes, list[Held[Any]]]:
    """Things as bytes, and the held values that they mention."""
    import cloudpickle  # of the engines

    mentioned: list[Held[Any]] = []

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle ships no types
        """Writes names for rows and held values."""

        def persistent_id(self, thing: Any) -> tuple[Any, ...] | None:
            if isinstance(thing, RemoteSource):
                return ("rows",)
            if isinstance(thing, Held):
                if not any(thing is other for other in mentioned):
                    mentioned.append(thing)
                at = next(at for at, other in enumerate(mentioned) if other is thing)
                all_there = thing.elsewhere is not None and thing.room is None
                return ("held", at, None if all_there else thing.make, thing.room)
            return None

    buffer = BytesIO()
    Packer(buffer, protocol=5).dump(things)
    return buffer.getvalue(), mentioned


def unpack(packed: bytes, rows: Source | None, known: Sequence[dict[int, Any] | None]) -> tuple[Any, list[Held[Any]]]:
    """The things, on the rows of a partition; `known` are the values that earlier passes left there, in the order of `pack`."""
    held: dict[int, Held[Any]] = {}

    class Unpacker(pickle.Unpickler):
        """Reads names as the rows of this partition and what is held with them."""

        def persistent_load(self, name: tuple[Any, ...]) -> Any:
            if name[0] == "rows":
                return rows
            _, at, make, room = name
            if at not in held:
                held[at] = Held(make, room)
                held[at].values.update(known[at] or {})
            return held[at]

    things = Unpacker(BytesIO(packed)).load()
    return things, [held[at] for at in range(len(held))]
