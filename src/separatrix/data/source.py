"""A source: rows that can be read again and again, block by block, wherever they live.

    reduce(map, merge) = merge(merge(map(block₀), map(block₁)), merge(map(block₂), map(block₃))) …

The partition into blocks and the tree of merges (see workers.py) depend on the shape alone, so the result is the
same to the last bit on any number of threads. A model only ever calls `reduce`, `blocks` and the shape; a new
kind of storage is a new subclass of `Source` and nothing else. Where the rows live in other processes, the pass is run by
their `Engine`, with the same functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice
from threading import Event
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block
from separatrix.data.journal import current_journal, pass_key
from separatrix.data.workers import Merged, share, threads_here
from separatrix.settings import config, one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

_TARGET_BYTES = 32 << 20
# Enough blocks for many cores to share evenly, none so small that threads queue for the interpreter.
_BLOCKS, _LEAST_BYTES, _LEAST_ROWS, _WHOLE_ROWS = 96, 4 << 20, 16384, 256
# For work that copies its rows: threads hold one such block each.
COPIED_BYTES = 8 << 20
# Products of columns that are worth a thread of their own, and parts that few rows are cut into for it.
_PRODUCTS, _PARTS = 1.5e7, 16
# Sums of a million squares of numbers between this and its inverse are ordinary numbers.
SQUARES_FIT = 1e150


def rows_per_block(n_features: int, least: int = 512, target: int | None = None) -> int:
    """Rows that fill at most 32 MiB as float64: few enough blocks that threads do not queue for the interpreter."""
    rows = min(_TARGET_BYTES, target or _TARGET_BYTES) // (8 * max(1, n_features))
    return int(min(65536, max(least, 1 << max(1, rows).bit_length() - 1)))


def rows_to_share(n_rows: int, n_features: int) -> int:
    """Rows of a block where all rows are there to be shared out: 4 to 32 MiB, taller than wide, as far as that fits."""
    least = min(_LEAST_BYTES // (8 * max(1, n_features)), _LEAST_ROWS)
    least = max(least, 2 * n_features, n_rows // _BLOCKS)
    return min(rows_per_block(n_features), -(-least // _WHOLE_ROWS) * _WHOLE_ROWS)


def rows_to_multiply(n_rows: int, n_features: int) -> int:
    """Rows of a block whose columns are all multiplied with each other: a half, a quarter, … of all that there are."""
    least = max(2.0 * n_features, _PRODUCTS / n_features**2)
    parts = min(_PARTS, 2 ** int(np.log2(max(1.0, n_rows / least))))
    return -(-n_rows // parts)


def cut_finer(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """Blocks of at most `rows` rows."""
    return chain.from_iterable(block.cut(rows) for block in blocks)


def in_parallel(work: Callable[[Item], None], items: Iterable[Item], stop: Event | None = None) -> None:
    """Do the work of every item on the workers, with one BLAS thread each. Ctrl-C sets `stop` for those at work."""
    with one_blas_thread():
        share(lambda _, item: work(item), items, threads_here(), stop)


def ordered(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """work of every item, in order, computed by the workers with one BLAS thread each; a few are alive."""
    threads, items = threads_here(), iter(items)
    while batch := list(islice(items, 2 * threads)):
        found: dict[int, Result] = {}

        def keep(at: int, item: Item, found: dict[int, Result] = found) -> None:
            found[at] = work(item)

        with one_blas_thread():
            share(keep, batch, threads)
        yield from (found.pop(at) for at in range(len(batch)))


class Engine(Protocol):
    """What runs passes where the rows live: the functions travel there, and results come back, not rows."""

    def map(self, source: Source, block_fn: Callable[[Block], Result], rows: int | None) -> list[Result]:
        """block_fn of every block of a source that is made of the engine's rows, in block order."""
        ...

    def reduce(
        self,
        source: Source,
        map_fn: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        rows: int | None,
    ) -> Result | None:
        """Merge map_fn of every block in an order that depends on the partition alone; ``None`` where there are no rows."""
        ...


class Source(ABC):
    """Rows in, blocks out.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; ``None`` when it is not known before the first pass.
    n_features : int
        Number of columns.
    feature_names : ndarray of str or None
        Names of the columns, when the storage has them.
    classes : ndarray or None
        Sorted labels of the rows that count, once `labelled` has been called: blocks then carry class codes.
    known_classes : ndarray or None
        These, and the labels of classes whose rows all have weight zero.
    passes : int
        How many times the rows have been read.
    dtype : dtype
        The floating type the storage would be read in: float32 stays float32 in predictions.
    """

    n_rows: int | None
    n_features: int
    feature_names: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    all_classes: NDArray[Any] | None = None
    """`known_classes`, where these are not `classes`."""
    passes: int = 0
    entries: int | None = None
    """Stored entries of a sparse matrix in memory; ``None`` elsewhere."""
    dtype: np.dtype[Any] = np.dtype(np.float64)
    device: str | None = None
    """The device that the rows are on; ``None`` for the memory of a process."""
    place: str = "memory"
    """Where passes run, as `fit_.engine` names it."""
    from_spark: bool = False
    """Whether the rows are those of a Spark data frame, wherever they are now."""
    shared_out: bool = False
    """Whether the blocks are cut for many threads already, and costly to cut again."""
    room: int | None = 1 << 28
    """Bytes of values held with the blocks (held.py) that may be kept in this process; ``None`` where the rows take more."""

    @property
    def identity(self) -> Any:
        """What tells these rows from all others, as plain values; ``None`` where nothing does but the rows themselves."""
        return None

    @property
    def engine(self) -> Engine | None:
        """What runs the passes, where the rows live in other processes."""
        return None

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """The rows, as blocks in order. Iterating does not count as a pass: `reduce` and `map` do."""

    @abstractmethod
    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        """The same rows with the target read as class labels: sorted labels found, or the given ones."""

    @abstractmethod
    def valued(self) -> Self:
        """The same rows with the target read as real numbers, (n, m) in every block."""

    @property
    @abstractmethod
    def target_ndim(self) -> int:
        """1 for a vector of targets, 2 for a matrix."""

    @property
    def encoding(self) -> Any:
        """How columns of a table become the features of this source, where they have to."""
        return None

    def read_as(self, encoding: Any, names: NDArray[Any] | None) -> Source:
        """The rows as a model reads them that was fitted to columns of these names, in this encoding."""
        return self

    def table(self) -> Source:
        """The rows as columns of their own kinds, text and holes as they are, where the storage has them."""
        raise TypeError(
            "This source holds numbers, and a model of mixed columns reads a table: give it the table, or its files (scan_csv, "
            "scan_parquet)."
        )

    @property
    def known_classes(self) -> NDArray[Any] | None:
        """Sorted labels of all rows, those of weight zero included."""
        return self.classes if self.all_classes is None else self.all_classes

    def coarse(self, entries: int | None = None) -> Self:
        """The same rows in blocks sized by what is stored (`entries` each), for sums that never make them dense."""
        return self

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Random rows as a source of their own, and which they are; ``None`` if the storage must be read for them."""
        return None

    def uncopied(self) -> Source:
        """The same rows, of a sample whose copies take much memory: copied again, a block at a time, when they are read."""
        return self

    def lay_in_rows(self) -> None:  # noqa: B027  # most storage has nothing to lay out
        """Make many passes cheap: an array that lies otherwise is copied row by row as floating numbers, if it is not large."""

    def precise(self) -> Source:
        """The same rows, their sums made in double precision throughout: itself where they are so already."""
        return self

    def one_block(self, any_order: bool = False) -> Block | None:
        """All rows as one block, where they lie row by row in memory as floating numbers, or, if asked for, in any order of
        one array; else ``None``.
        """
        return None

    def matrix(self) -> Any:
        """All rows in memory at once: as they are stored where that is so, else gathered as float64."""
        return np.concatenate([block.dense() for block in self.blocks()])

    def array(self) -> NDArray[Any] | None:
        """All rows as one dense array, of any real dtype, where they are stored as one."""
        return None

    def targets(self) -> NDArray[Any]:
        """Targets of all rows, as the blocks carry them; the features are not made."""
        return np.concatenate([piece.y for piece in self._pieces()])

    def followed(self, follow: Callable[[int, int, int], None]) -> AbstractContextManager[None]:
        """While inside, `follow` hears how far passes over files are: their number, bytes read, and all bytes."""
        return nullcontext()

    def within_memory(self) -> AbstractContextManager[None]:
        """While inside, a device whose memory is full is an error with a sentence."""
        return nullcontext()

    def count_pass(self) -> None:
        """Count a look at all rows that was not made by `map`."""
        self.passes += 1

    def _pieces(self) -> Iterator[Block]:
        """What the calling thread hands to the workers: cheap to make, turned into a block by `_block_of`."""
        return self.blocks()

    def _finer_pieces(self, rows: int) -> Iterator[Block]:
        """The same, of at most `rows` rows each."""
        return cut_finer(self._pieces(), rows)

    def _only_piece(self, rows: int | None) -> Block | None:
        """All rows, where they are known to be one piece of no more than `rows` rows."""
        return None

    def _block_of(self, piece: Block) -> Block:
        """A piece as a block; runs in the worker."""
        return piece

    def column_name(self, j: int) -> str:
        """How error messages call column j."""
        return f"column {j}" if self.feature_names is None else f"column {self.feature_names[j]!r}"

    def share(self, work: Callable[[int, Block], None], rows: int | None = None) -> None:
        """work(i, block) for the i-th block and every other, on the workers; at most one block for each is alive.

        `rows` cuts the blocks finer, for work that is heavy per row.
        """
        self.count_pass()

        def of_piece(at: int, piece: Block) -> None:
            # NaN, infinity and overflow are found in the result of the pass, and reported by column.
            with np.errstate(invalid="ignore", over="ignore"):
                work(at, self._block_of(piece))

        with one_blas_thread(), self.within_memory():
            pieces = iter(self._pieces() if rows is None else self._finer_pieces(rows))
            ahead, threads = list(islice(pieces, 2)), threads_here()
            if len(ahead) == 1:  # nothing to share
                of_piece(0, ahead.pop())
            else:
                share(of_piece, chain(ahead, pieces), threads)

    def map(self, block_fn: Callable[[Block], Result], rows: int | None = None) -> list[Result]:
        """block_fn of every block, in block order."""
        if self.engine is not None:
            self.count_pass()
            return self.engine.map(self, block_fn, rows)
        found: dict[int, Result] = {}
        self.share(lambda at, block: found.__setitem__(at, block_fn(block)), rows)
        return [found[at] for at in range(len(found))]

    def each(self, block_fn: Callable[[Block], Result]) -> Iterable[Result]:
        """block_fn of every block, in order and where the rows live; not counted as a pass."""
        if self.engine is not None:
            return self.engine.map(self, block_fn, None)
        return map(block_fn, self.blocks())

    def reduce(
        self,
        map_fn: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        rows: int | None = None,
    ) -> Result:
        """Merge map_fn of every block, neighbours first; `merge` may change its first argument."""
        journal = None if self.room is None else current_journal()
        if journal is None:
            return self._reduced(map_fn, merge, rows)
        key = pass_key(map_fn, type(self).__name__, rows)
        return journal.result(key, lambda: self._reduced(map_fn, merge, rows), self.count_pass)

    def _reduced(
        self,
        map_fn: Callable[[Block], Result],
        merge: Callable[[Result, Result], Result],
        rows: int | None,
    ) -> Result:
        if self.engine is not None:
            self.count_pass()
            total = self.engine.reduce(self, map_fn, merge, rows)
        elif config.threads and (piece := self._only_piece(rows)) is not None:  # a bad number of threads is refused
            self.count_pass()  # as `share` has it, which takes as long as a small sum
            with np.errstate(invalid="ignore", over="ignore"), one_blas_thread(), self.within_memory():
                total = map_fn(self._block_of(piece))
        else:
            merged = Merged(merge)
            self.share(lambda at, block: merged.add(at, map_fn(block)), rows)
            with np.errstate(invalid="ignore", over="ignore"):  # found in the total, and reported by column
                total = merged.total()
        if total is None:
            raise ValueError("The data have no rows: at least one is needed.")
        return total

    def explain_non_finite(self) -> str:
        """A sentence that names the first bad column; empty when every value is finite."""
        bad = np.zeros(self.n_features, dtype=np.int64)
        first_row = np.full(self.n_features, -1, dtype=np.int64)
        for count, first in self.each(lambda block: block.non_finite_columns()):
            first_row = np.where(first_row < 0, first, first_row)
            bad += count
        if not bad.any():
            return ""
        j = int(np.flatnonzero(bad)[0])
        others = int((bad > 0).sum()) - 1
        more = (
            f"; so {'has' if others == 1 else 'have'} {others} more column{'s' if others > 1 else ''}" if others else ""
        )
        return (
            f"Input X contains NaN or infinity: {self.column_name(j)} has {bad[j]} such "
            f"row{'s' if bad[j] != 1 else ''} (first: row {first_row[j]}){more}. "
            "Drop or impute them (for example with sklearn.impute.SimpleImputer)."
        )

    def refuse_non_finite(self) -> None:
        """Raise, naming the column, where a row that counts holds NaN or infinity: for a fit that reads no features."""
        sentence = self.explain_non_finite()
        if sentence:
            raise ValueError(sentence)

    def check_finite(self, *results: NDArray[Any]) -> None:
        """Raise, naming the column, when a result of a pass is not finite.

        Every value enters every statistic, so NaN and infinity are found in the result at no cost.
        """
        if all(np.isfinite(result).all() for result in results):
            return
        sentence = self.explain_non_finite()
        raise ValueError(sentence or self.explain_range())

    def explain_range(self) -> str:
        """Why sums over finite values are not finite: the column whose squares leave the range of double precision."""
        largest = np.zeros(self.n_features)
        for sizes in self.each(lambda block: np.abs(block.counted().dense()).max(axis=0, initial=0.0)):
            largest = np.maximum(largest, sizes)
        big, small = int(largest.argmax()), int(np.where(largest > 0.0, largest, np.inf).argmin())
        if largest[big] > SQUARES_FIT:
            return (
                f"The values of X are finite but so large that their squares overflow: {self.column_name(big)} reaches "
                f"{largest[big]:.1e}; divide the largest columns by a power of ten first."
            )
        if 0.0 < largest[small] < 1.0 / SQUARES_FIT:
            return (
                f"The values of X are so small that their squares underflow: {self.column_name(small)} reaches "
                f"{largest[small]:.1e}; multiply the smallest columns by a power of ten first."
            )
        return (
            "The values of X are finite, but sums of their products are not: the columns or weights differ too much in "
            f"size ({self.column_name(big)} reaches {largest[big]:.1e}). Standardise the columns first (for example with "
            "sklearn.preprocessing.StandardScaler)."
        )
