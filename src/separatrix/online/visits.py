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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Float
from separatrix.data.folds import GOLDEN, mixed
from separatrix.data.source import Source, ordered

Mask = NDArray[np.bool_]
_TURN = 4096
# Rows of up to this many entries are gathered before they are visited: copies do not wait for each other, as visits do.
_GATHERED = 512


@dataclass(frozen=True)
class Visits:
    """The visits that an epoch makes to a block: which row, with which weight, and keys to order them by."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    width: int
    codes: Codes
    rows: Codes
    weights: Float
    keys: NDArray[np.uint64] | None

    @staticmethod
    def of_block(block: Block, learned: Mask | None, shuffle: bool) -> Visits:
        """The rows of a block that count and are learned from."""
        kept = np.arange(block.n) if block.weights is None else np.flatnonzero(block.weights)
        start, block = block.start, block.counted()
        stored = block.stored_rows()
        empty = np.zeros(0, dtype=np.int32)
        data, indices, indptr = stored if isinstance(stored, tuple) else (stored.ravel(), empty, empty)
        data = data if data.dtype.kind == "f" else data.astype(np.float64)
        rows = np.arange(block.n) if learned is None else np.flatnonzero(learned[start + kept])
        weights = block.row_weights
        if not shuffle:
            return Visits(data, indices, indptr, block.shape[1], block.codes[rows], rows, weights[rows], None)
        from separatrix.kernels.perceptron import row_keys

        keys = np.empty(block.n, dtype=np.uint64)
        row_keys(data.astype(np.float64, copy=False).view(np.uint64), indices, indptr, block.shape[1], keys)
        keys = mixed(keys + block.codes.astype(np.uint64) * GOLDEN)[rows]
        distinct, first, group = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(group, weights[rows], minlength=len(distinct))
        times = np.ceil(total * len(total) / max(total.sum(), np.finfo(float).tiny) - 1e-9).astype(np.intp)
        copies = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        visited_rows = np.repeat(rows[first], times)
        return Visits(
            data,
            indices,
            indptr,
            block.shape[1],
            block.codes[visited_rows],
            visited_rows,
            np.repeat(total / times, times),
            np.repeat(distinct, times) + copies.astype(np.uint64) * GOLDEN,
        )

    def order(self, salt: np.uint64) -> Codes:
        """The order of one epoch: visits are sorted by key, so a permutation of their places is one of what the rows hold."""
        return (
            np.arange(len(self.rows)) if self.keys is None else np.random.default_rng(salt).permutation(len(self.rows))
        )

    def gathered(self, order: Codes) -> tuple[Visits, Codes]:
        """Visits and their order, with the rows lying in it if they are short, dense and shuffled."""
        if self.keys is None or len(self.indptr) or not 0 < self.width <= _GATHERED:
            return self, order
        data = self.data.reshape(-1, self.width).take(self.rows[order], axis=0).ravel()
        places = np.arange(len(order))
        return replace(self, data=data, codes=self.codes[order], rows=places, weights=self.weights[order]), places


def visited(source: Source, learned: Mask | None, shuffle: bool, in_memory: bool) -> Iterator[Visits]:
    """The blocks of a source, read as they are needed; those in memory a few ahead."""
    return (ordered if in_memory else map)(lambda block: Visits.of_block(block, learned, shuffle), source.blocks())


def salt(seed: int, epoch: int) -> np.uint64:
    """What makes the order of an epoch its own."""
    return np.random.default_rng([seed, 1, epoch]).integers(2**64, dtype=np.uint64)


def turns(blocks: Iterator[Visits], in_memory: bool, salt: np.uint64) -> Iterator[tuple[Visits, Codes]]:
    """Rows and the order to visit them in; shuffled blocks that are all in memory take turns.

    Their rows are gathered while those before them are visited.
    """
    if not in_memory:
        return ((rows, rows.order(salt)) for rows in blocks)
    return ordered(lambda turn: turn[0].gathered(turn[1]), _turns(blocks, salt))


def _turns(blocks: Iterator[Visits], salt: np.uint64) -> Iterator[tuple[Visits, Codes]]:
    orders = [(rows, rows.order(salt)) for rows in blocks]
    shuffled = bool(orders) and orders[0][0].keys is not None
    number = max(len(order) for _, order in orders) // _TURN + 1 if shuffled else 1
    for turn in range(number):
        for rows, order in orders:
            yield rows, order[turn * len(order) // number : (turn + 1) * len(order) // number]
