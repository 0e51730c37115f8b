"""Which rows an epoch visits, with which weight and in which order.

    in order    every row once, with its weight s
    shuffled    rows that are equal count as one, with their total weight s; s̄ is the mean over the distinct rows
                v = ⌈s/s̄⌉ visits per epoch, each with the weight s/v

So among shuffled rows a weight of 2 is the row standing twice, and an epoch costs at most two visits per distinct row,
whatever the weights are. Their order comes from what the rows hold, and a seed: where they stand makes no difference. This
holds within a block; blocks that are in memory take turns, so that an epoch does not visit one class after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Float
from separatrix.data.folds import GOLDEN, mixed
from separatrix.data.source import Source

Mask = NDArray[np.bool_]
_TURN = 256


@dataclass(frozen=True)
class Visits:
    """The visits that an epoch makes to a block: which row, with which weight, and whether in another order each time.

    Shuffled visits are kept sorted by what the rows hold, so that where these stand makes no difference.
    """

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    codes: Codes
    rows: Codes
    weights: Float
    shuffle: bool

    @staticmethod
    def of_block(block: Block, learned: Mask | None, shuffle: bool) -> Visits:
        """The rows of a block that count and are learned from."""
        kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
        start, block = block.start, block.counted()
        stored = block.stored_rows()
        empty = np.zeros(0, dtype=np.int32)
        data, indices, indptr = stored if isinstance(stored, tuple) else (stored.ravel(), empty, empty)
        data = (
            data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
        )  # numba has no half precision
        rows = np.arange(block.n) if learned is None else np.flatnonzero(learned[start + kept])
        weights = block.row_weights
        if not shuffle:
            return Visits(data, indices, indptr, block.codes, rows, weights[rows], False)
        from separatrix.kernels.perceptron import row_keys

        keys = np.empty(block.n, dtype=np.uint64)
        row_keys(data.astype(np.float64, copy=False).view(np.uint64), indices, indptr, block.shape[1], keys)
        keys = mixed(keys + block.codes.astype(np.uint64) * GOLDEN)[rows]
        order = np.argsort(keys)
        fresh = np.append(True, np.diff(keys[order]) != 0)
        first = order[fresh]
        total = np.add.reduceat(weights[rows[order]], np.flatnonzero(fresh)) if len(order) else np.zeros(0)
        if len(total) and total.min() == total.max():  # no row stands twice, and all count alike: one visit each
            return Visits(data, indices, indptr, block.codes, rows[first], total, True)
        times = np.ceil(total * len(total) / max(total.sum(), np.finfo(float).tiny) - 1e-9).astype(np.intp)
        visited_rows = np.repeat(rows[first], times)
        return Visits(data, indices, indptr, block.codes, visited_rows, np.repeat(total / times, times), True)

    @property
    def stored(self) -> tuple[Any, ...]:
        """What the compiled loops read."""
        return self.data, self.indices, self.indptr, self.rows, self.codes, self.weights

    def orders(self, salts: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The salts of epochs, 0 where the rows are visited as they are given."""
        return salts if self.shuffle else np.zeros(len(salts), dtype=np.uint64)

    def order(self, salt: np.uint64) -> Codes:
        """The order of one epoch."""
        if not self.shuffle:
            return np.arange(len(self.rows))
        from separatrix.kernels.perceptron import shuffled

        order: Codes = shuffled(len(self.rows), salt)
        return order


def visited(source: Source, learned: Mask | None, shuffle: bool) -> Iterator[Visits]:
    """The blocks of a source, read as they are needed; one block where the rows are in memory as they are needed."""
    one = source.one_block()
    return (Visits.of_block(block, learned, shuffle) for block in (source.blocks() if one is None else [one]))


def salts(seed: int, first: int, stop: int) -> NDArray[np.uint64]:
    """64 bits that make the order of every epoch its own; never 0."""
    epochs = np.arange(first + 1, stop + 1, dtype=np.uint64)
    return np.maximum(mixed(mixed(epochs * GOLDEN) + np.uint64(seed)), 1)


def turns(blocks: Iterator[Visits], in_memory: bool, salt: np.uint64) -> Iterator[tuple[Visits, Codes]]:
    """Rows and the order to visit them in; shuffled blocks that are all in memory take turns."""
    if not in_memory:
        yield from ((rows, rows.order(salt)) for rows in blocks)
        return
    orders = [(rows, rows.order(salt)) for rows in blocks]
    shuffled = len(orders) > 1 and orders[0][0].shuffle
    number = max(len(order) for _, order in orders) // _TURN + 1 if shuffled else 1
    for turn in range(number):
        yield from ((rows, order[turn::number]) for rows, order in orders)
