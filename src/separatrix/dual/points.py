"""Rows as a kernel reads them: dense or sparse, in the precision that is wanted, never all copied at once.

Distances are taken between rows relative to a centre, x − c: they do not change, and in single precision they keep their digits
however far from the origin the data lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from separatrix.data.block import Block, Float

# Sparse rows with more than this share of entries are multiplied as dense ones, while these are small.
_SMALL, _FULL = 1 << 22, 0.2
# Entries that stay in cache from one operation on them to the next.
_ENTRIES = 1 << 17
# Rounding of the squared lengths that a distance may be lost in: beyond it differences are taken first. In few columns they
# cost no more than products, so that fewer digits are given up there.
_LOST, _LOST_IN_FEW, _FEW = 1e-10, 1e-13, 8


class Points:
    """Rows X (n, d), dense or CSR, with what kernels need of them computed once.

    Distances are taken relative to `centre` (d,), the mean of the rows when not given. Sparse rows have none.
    """

    def __init__(self, X: Any, centre: Float | None = None) -> None:
        self.sparse = sp.issparse(X)
        # Products of small integers would overflow in their own type.
        self.X = X.astype(np.float64) if self.sparse and X.dtype.kind != "f" else X
        self.centre = X.mean(axis=0, dtype=np.float64) if centre is None and not self.sparse and len(X) else centre
        self._squares: dict[bool, Float] = {}
        self.memo: dict[Any, Any] = {}
        """What a kernel has made of these rows for products with many others."""

    @classmethod
    def of_block(cls, block: Block, centre: Float | None) -> Points:
        """The rows of a block as they are stored, relative to the centre of others."""
        rows = block.stored_rows()
        return cls(sp.csr_array(rows, shape=block.shape) if isinstance(rows, tuple) else rows, centre)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "memo": {}}  # made again where it is needed

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: slice | NDArray[np.intp]) -> Points:
        """Some of the rows."""
        part = Points.__new__(Points)
        columnwise = not self.sparse and self.X.flags.f_contiguous and not isinstance(rows, slice)
        part.X = self.X.T.take(rows, axis=1).T if columnwise else self.X[rows]  # in the order in which it is stored
        part.sparse, part.centre = self.sparse, self.centre
        part._squares = {key: squares[rows] for key, squares in self._squares.items()}
        part.memo = {}
        return part

    def know_squares(self, lengths: Float, centred: bool) -> None:
        """Keep the (n,) squared lengths that another computation came across."""
        self._squares.setdefault(centred, lengths)

    def squares(self, centred: bool = False) -> Float:
        """(n,) squared lengths."""
        if centred not in self._squares:
            if self.sparse:
                entries = np.square(self.X.data, dtype=np.float64)
                lengths = sp.csr_array((entries, self.X.indices, self.X.indptr), shape=self.X.shape).sum(axis=1)
            else:
                lengths = np.empty(len(self))
                most = max(1, _ENTRIES // max(1, self.X.shape[1]))
                for start in range(0, len(self), most):
                    rows = self.array(slice(start, start + most), np.float64, centred)
                    lengths[start : start + most] = np.einsum("ij,ij->i", rows, rows)
            self._squares[centred] = lengths
        return self._squares[centred]

    def array(self, rows: slice, dtype: DTypeLike, centred: bool = False) -> NDArray[Any]:
        """Some dense rows, relative to the centre if asked."""
        part = self.X[rows]
        if not centred:
            return np.asarray(part, dtype=dtype)
        # Subtracted before the digits are cut, so that rows far from the origin keep them.
        return (part - np.asarray(self.centre)).astype(dtype, copy=False)

    def dot(self, other: Points, dtype: DTypeLike, centred: bool = False) -> NDArray[Any]:
        """(n, m) inner products."""
        if not self.sparse and not other.sparse:
            return self.array(slice(None), dtype, centred) @ other.array(slice(None), dtype, centred).T
        mine, theirs = (points.X if points.sparse else sp.csr_array(points.X) for points in (self, other))
        size = theirs.shape[0] * theirs.shape[1]
        if size <= _SMALL and theirs.nnz > _FULL * size:
            return np.asarray(mine.astype(dtype, copy=False) @ theirs.toarray().astype(dtype).T)
        from separatrix.kernels.sparse.rows import fill_dots  # numba takes a while to import

        columns, out = theirs.tocsc(), np.empty((len(self), len(other)), dtype)
        fill_dots(mine.data, mine.indices, mine.indptr, columns.data, columns.indices, columns.indptr, out)
        return out


def lost_digits(points: Points) -> float:
    """The rounding of γ‖x‖² up to which values are computed from products."""
    return _LOST_IN_FEW if points.X.shape[1] <= _FEW else _LOST


def lost_reach(points: Points) -> float:
    """γ‖x‖² up to which they are."""
    return lost_digits(points) / (8.0 * float(np.finfo(np.float64).eps))
