"""What a solver returns, and how it reports on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from separatrix.data.block import Block, Float
from separatrix.data.source import Source
from separatrix.result import Certificate, Status

Callback = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Solution:
    """θ with the reason it is the answer, the proof, and what it took."""

    theta: Float
    status: Status
    certificate: Certificate
    iterations: int
    trace: list[dict[str, Any]] = field(default_factory=list, repr=False)
    total: float = 0.0
    """Total weight of the rows."""
    steepest: float = 0.0
    """max |score| over the rows: large values are a sign of separation."""
    loss_gradient: Float | None = None
    """∇ of the loss alone at θ, where the solver has it: another penalty starts from there."""


class Trace:
    """One entry an iteration, passed on to a callback."""

    def __init__(self, callback: Callback | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self._callback = callback

    def add(self, **entry: Any) -> None:
        """Record an iteration."""
        entry["iteration"] = len(self.entries)
        self.entries.append(entry)
        if self._callback is not None:
            self._callback(entry)


def column_squares(source: Source) -> Float:
    """(p,) Σ s x_j². One pass."""

    def of_block(block: Block) -> Float:
        total = np.zeros(block.shape[1])
        for piece in block.pieces(1 << 20):
            counted = piece.counted()
            total += counted.column_squares(counted.weights)
        return total

    return source.reduce(of_block, np.add)
