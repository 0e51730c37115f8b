"""Sources in memory: dense arrays and sparse matrices, read in place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Block, Codes, Float
from separatrix.data.centred.dense_rows import rows_at
from separatrix.data.checks import check_numbers, real_numbers
from separatrix.data.dense import WORTH_COMPILING, DenseBlock, PickedBlock
from separatrix.data.labels import check_finite_target, encode, known_labels
from separatrix.data.source import COPIED_BYTES, Source, in_parallel, rows_per_block, rows_to_share
from separatrix.data.sparse import SparseBlock

_COARSE_ENTRIES, _ENTRIES_OF_A_SUM = 200_000, 4
# Rows of a sample that a worker gathers at once.
_GATHERED = 1024
# Bytes of an array up to which it may be copied for a fit of many passes.
COPIED_ARRAY = 1 << 25
# Entries up to which single precision is widened for such a fit, once and not in every product.
_WIDENED = 1 << 18
_MANY_ENTRIES = 1_000_000
_SPARSE_BLOCKS = 16
# Stored entries, and rows, of a block that a second thread is woken for, and entries of one that may be made dense.
_WORTH_SHARING, _SHARED_ROWS, _DENSE_BLOCK = 1 << 17, 1 << 14, 1 << 22
# A gradient at the optimum of a sample and one after a step in its Hessian prove what is left, if that Hessian is near enough
# to that of all rows: Rν (see solvers/curvature.py) grows as n/rows², and with the number of parameters d as about d^1.5.
_ROOT, _POWER = 6.5, 0.75
# What solvers begin on (see solvers/choose.py): a share of the rows, so many at least, and so many for each parameter.
_BEGUN_ON, FEWEST, _ROWS_PER_PARAMETER = 16, 2000, 24
# Entries for each column up to which half of the columns may be empty.
_FULL_COLUMNS = 4


def spread(n_rows: int, rows: int) -> NDArray[np.intp]:
    """Fixed random rows, one of every run of so many: the same in every run, without a period that the data may share."""
    edges = np.linspace(0, n_rows, min(rows, n_rows) + 1).astype(np.intp)
    return np.random.default_rng(0).integers(edges[:-1], edges[1:])


def enough_rows(n_rows: int, n_parameters: int) -> int:
    """Rows of a sample beyond which more of them save no pass over all."""
    return int(_ROOT * max(1, n_parameters) ** _POWER * n_rows**0.5)


def asked_next(rows: int, n_rows: int, n_parameters: int) -> int:
    """How many rows will be asked for after so many: a few for the units of the columns come before those to begin on."""
    more = max(FEWEST, n_rows // _BEGUN_ON, _ROWS_PER_PARAMETER * n_parameters)
    return more if rows < more <= n_rows // 4 else rows


def rows_drawn(source: Source, sizes: set[int]) -> dict[int, tuple[Source, NDArray[np.intp]]]:
    """Samples of these sizes of a labelled source of known length, each here and with the numbers of its rows. One pass."""
    assert source.n_rows is not None, "the rows have been counted"
    chosen = {rows: spread(source.n_rows, rows) for rows in sizes}
    every = np.unique(np.concatenate(list(chosen.values())))

    def of_block(block: Block) -> tuple[NDArray[Any], Codes, Float | None]:
        at = every[slice(*np.searchsorted(every, [block.start, block.start + block.n]))] - block.start
        return block.dense()[at], block.codes[at], None if block.weights is None else block.weights[at]

    parts = [part for part in source.map(of_block) if len(part[1])]
    X, codes = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    found = dict[int, tuple[Source, NDArray[np.intp]]]()
    for rows, which in chosen.items():
        at = slice(None) if len(which) == len(every) else np.searchsorted(every, which)
        drawn = ArraySource(X[at], codes[at], None if weights is None else weights[at])
        drawn.classes = source.classes
        found[rows] = drawn, which
    return found


class MemorySource(Source):
    """Rows that are all there: slices of them are blocks."""

    n_rows: int
    room = None
    _rows_per_block: int
    _first = 0
    """Number of the first row, where these are a part of others."""

    def __init__(self, shape: tuple[int, int], y: NDArray[Any] | None, weights: Float | None) -> None:
        self.n_rows, self.n_features = shape
        self._y, self._weights = y, weights
        self._rows_per_block = min(rows_per_block(self.n_features), rows_to_share(*shape))

    def _view(self) -> Self:
        """A copy that shares the rows; `copy.copy` takes several times as long."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        return view

    @abstractmethod
    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        """The block of a slice of rows."""

    def blocks(self) -> Iterator[Block]:
        return self._cut(self._rows_per_block)

    def _only_piece(self, rows: int | None) -> Block | None:
        size = self._rows_per_block if rows is None else min(rows, self._rows_per_block)
        return next(self._cut(size)) if 0 < self.n_rows <= size else None

    def _cut(self, size: int) -> Iterator[Block]:
        for start in range(0, self.n_rows, size):
            rows = slice(start, min(start + size, self.n_rows))
            y = None if self._y is None else self._y[rows]
            block = self._block(rows, y, None if self._weights is None else self._weights[rows])
            block.start += self._first
            yield block

    def one_block(self, any_order: bool = False) -> Block | None:
        laid = self._in_rows() or (any_order and self._in_columns())
        return self._block(slice(0, self.n_rows), self._y, self._weights) if laid else None

    def as_part(self, first: int, y: NDArray[Any] | None, weights: Float | None) -> Self:
        """These rows as rows `first`, `first` + 1, … of others, with their targets and weights."""
        view = self._view()
        view._first, view._y, view._weights = first, y, weights
        return view

    def _in_rows(self) -> bool:
        """Whether the rows lie one after the other in memory, as floating numbers."""
        return False

    def _in_columns(self) -> bool:
        """Whether the columns do."""
        return False

    def _target(self) -> NDArray[Any]:
        if self._y is None:
            raise ValueError("This model requires y to be passed, but the target y is None.")
        return self._y

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        view = self._view()
        target = self._target()
        view.classes, view._y = encode(target, classes, self._weights)
        view.all_classes = known_labels(target, view.classes, self._weights) if classes is None else None
        return view

    def valued(self) -> Self:
        view = self._view()
        target = self._target()
        check_numbers(target, "y")
        if target.dtype.kind == "f":
            target = real_numbers(target, "y")
        try:
            numbers = target.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            raise ValueError(
                f"y holds {target.dtype} values that are not numbers; a regression needs numbers."
            ) from None
        check_finite_target(numbers)
        view._y = numbers.reshape(self.n_rows, -1)
        return view

    @property
    def target_ndim(self) -> int:
        return self._target().ndim

    @abstractmethod
    def _rows(self, which: NDArray[np.intp]) -> Self:
        """A source of copies of some rows, without targets."""

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        which = spread(self.n_rows, rows)
        drawn = self._rows(which)
        drawn._rows_per_block = max(512, min(drawn._rows_per_block, -(-len(which) // 8)))  # enough blocks to share
        drawn.classes = self.classes
        drawn._y = None if self._y is None else self._y[which]
        drawn._weights = None if self._weights is None else self._weights[which]
        return drawn, which

    def picked(self, which: NDArray[np.intp]) -> tuple[Any, NDArray[Any] | None, Float | None]:
        """Some rows as they are stored, their targets and weights."""
        y, weights = (None if values is None else values[which] for values in (self._y, self._weights))
        return self._rows(which).matrix(), y, weights


class ArraySource(MemorySource):
    """A dense NumPy array of any real dtype and order, read-only and memory-mapped ones included.

    No copy is made but by `lay_in_rows`.
    """

    _from: tuple[NDArray[Any], NDArray[np.intp]] | None = None
    """Of a large sample the array that it was drawn from, and which of its rows."""

    def __init__(self, X: NDArray[Any], y: NDArray[Any] | None, weights: Float | None) -> None:
        super().__init__((X.shape[0], X.shape[1]), y, weights)
        self._X = X
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        return DenseBlock(self._X[rows], y, weights, rows.start, compiled=self._X.size >= WORTH_COMPILING)

    def _finer_pieces(self, rows: int) -> Iterator[Block]:
        return self._cut(min(rows, self._rows_per_block))  # of one size, unlike the halves of blocks

    def _rows(self, which: NDArray[np.intp]) -> Self:
        rows = np.empty((len(which), self.n_features), dtype=self._X.dtype)

        def gather(start: int) -> None:  # most of the time goes into first touches of `rows`
            at = slice(start, start + _GATHERED)
            rows_at(self._X, which[at], out=rows[at])

        in_parallel(gather, range(0, len(which), _GATHERED))
        return type(self)(rows, None, None)

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        found = super().sample(rows)
        if found is not None and isinstance(found[0], ArraySource) and found[0]._X.nbytes > COPIED_BYTES:
            found[0]._from = self._X, found[1]
        return found

    def uncopied(self) -> Source:
        return self if self._from is None else PickedRows(self, *self._from)

    def _in_rows(self) -> bool:
        return self._X.dtype in (np.float32, np.float64) and bool(self._X.flags.c_contiguous)

    def _in_columns(self) -> bool:
        return self._X.dtype in (np.float32, np.float64) and bool(self._X.flags.f_contiguous)

    def lay_in_rows(self) -> None:
        dtype = np.dtype(np.float64) if self._X.size <= _WIDENED else self.dtype
        laid = self._in_rows() and self._X.dtype == dtype
        if laid or self._X.size * dtype.itemsize > COPIED_ARRAY:
            return
        if self._X.size <= _WIDENED:  # done before threads are awake
            self._X = np.ascontiguousarray(self._X, dtype=dtype)
            return
        rows = np.empty(self._X.shape, dtype=dtype)

        def lay(start: int) -> None:
            rows[start : start + _GATHERED] = self._X[start : start + _GATHERED]

        in_parallel(lay, range(0, len(rows), _GATHERED))
        self._X = rows

    def matrix(self) -> Any:
        return self._X

    def array(self) -> NDArray[Any]:
        return self._X


class PickedRows(MemorySource):
    """Rows of an array that are copied a block at a time."""

    def __init__(self, like: ArraySource, X: NDArray[Any], which: NDArray[np.intp]) -> None:
        self.__dict__.update(vars(like))
        self._X, self._which = X, which

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        compiled = len(self._which) * self.n_features >= WORTH_COMPILING
        return PickedBlock(self._X, self._which[rows], y, weights, rows.start, compiled)

    def _finer_pieces(self, rows: int) -> Iterator[Block]:
        return self._cut(min(rows, self._rows_per_block))

    def _rows(self, which: NDArray[np.intp]) -> Any:
        return ArraySource(rows_at(self._X, self._which[which]), None, None)


class SparseSource(MemorySource):
    """A SciPy sparse matrix or array. CSR is read in place; other formats are converted to CSR once."""

    shared_out = True

    def __init__(self, X: Any, y: NDArray[Any] | None, weights: Float | None) -> None:
        super().__init__(X.shape, y, weights)
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        self._X = X if type(X) is sp.csr_array else sp.csr_array(X)  # shares the three arrays
        self.entries = int(self._X.nnz)
        self._parts: dict[tuple[int, int], Any] = {}
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        # A sparse block does far less arithmetic per row, so it holds more of them; slices of it would cost as much as a pass.
        rows = max(4096, min(self._rows_per_block, -(-self.n_rows // _SPARSE_BLOCKS)))
        least = -(-_WORTH_SHARING * self.n_rows // max(1, self.entries))
        self._rows_per_block = max(rows, min(least, _SHARED_ROWS, _DENSE_BLOCK // max(1, self.n_features)))

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        # SciPy takes longer to make a matrix than to multiply it with a vector: made once, for all passes and views.
        part = self._parts.get((rows.start, rows.stop))
        if part is None:
            part = self._parts[rows.start, rows.stop] = self._slice(rows)
        block = SparseBlock(part, y, weights, rows.start)
        block.of_many = bool(self._X.nnz >= _MANY_ENTRIES)
        return block

    def _slice(self, rows: slice) -> Any:
        X = self._X
        if rows.start == 0 and rows.stop >= X.shape[0]:
            return X
        start, stop = X.indptr[rows.start], X.indptr[rows.stop]
        pointers = X.indptr[rows.start : rows.stop + 1] - start
        # Slices of the three arrays, put in by hand: SciPy's slicing and its constructor copy them.
        part = sp.csr_array((len(pointers) - 1, X.shape[1]), dtype=X.dtype)
        part.data, part.indices, part.indptr = X.data[start:stop], X.indices[start:stop], pointers
        part.has_canonical_format = True
        return part

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._X[which], None, None)

    def _in_rows(self) -> bool:
        return bool(self._X.dtype == self.dtype)

    def matrix(self) -> Any:
        return self._X

    def without_empty_columns(self) -> tuple[SparseSource, NDArray[np.intp]] | None:
        """The rows with those columns alone that have entries, and which these are; ``None`` where they are not far fewer, have
        names, or where an entry is to be reported by its column.
        """
        X = self._X
        if self.feature_names is not None or X.nnz > _FULL_COLUMNS * X.shape[1] or not X.nnz:
            return None
        seen = np.zeros(X.shape[1], dtype=np.bool_)
        seen[X.indices] = True
        columns = np.flatnonzero(seen)
        with np.errstate(over="ignore", invalid="ignore"):
            if 2 * len(columns) > len(seen) or not np.isfinite(X.data.sum(dtype=np.float64)):
                return None
        place = np.cumsum(seen, dtype=X.indices.dtype) - X.indices.dtype.type(1)
        part = sp.csr_array((X.shape[0], len(columns)), dtype=X.dtype)
        part.data, part.indices, part.indptr = X.data, place[X.indices], X.indptr
        part.has_canonical_format = True
        rows = type(self)(part, self._y, self._weights)
        rows.classes, rows.all_classes, rows._first, rows.passes = (
            self.classes,
            self.all_classes,
            self._first,
            self.passes,
        )
        return rows, columns

    def coarse(self, entries: int | None = None) -> Self:
        view = self._view()
        if entries is None:  # many enough to share, few enough that the sums by class cost little against the entries
            sums = self.n_features * (1 if self.classes is None else len(self.classes))
            entries = max(_COARSE_ENTRIES, _ENTRIES_OF_A_SUM * sums, self._X.nnz // _SPARSE_BLOCKS)
        view._rows_per_block = -(-entries // max(1, self._X.nnz // max(1, self.n_rows)))
        return view
