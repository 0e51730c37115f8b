"""Scatter: S = Σᵢ zᵢzᵢᵀ, a positive semi-definite d×d matrix that can be added to.

Held as the matrix, or, while there are fewer rows than columns, as the rows Z themselves (S = ZᵀZ). The second
form is what makes ten thousand columns with two hundred rows cheap: everything one asks of S then lives on the
n-dimensional side (ZZᵀ), and no d×d matrix is ever formed. A triangular factor (see triangular.py) is held as rows too: what is
read from rows has their condition number, and what is read from the matrix its square.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from separatrix.data.block import Float
from separatrix.statistics.statistic import Mergeable

_FEW_ROWS = 32


class Scatter(Mergeable):
    """A sum of outer products, as a matrix or as rows.

    Parameters
    ----------
    matrix : ndarray of shape (d, d), optional
    rows : ndarray of shape (r, d), optional
        Exactly one of the two is given; S = rowsᵀ rows.
    """

    __slots__ = ("_matrix", "_pending", "_rows")

    def __init__(self, *, matrix: Float | None = None, rows: Float | None = None) -> None:
        assert (matrix is None) != (rows is None)
        self._matrix, self._rows = matrix, rows
        self._pending: list[Float] = []  # few rows at a time are added to the matrix together

    @classmethod
    def empty(cls, n_features: int) -> Scatter:
        """The scatter of no rows."""
        return cls(rows=np.zeros((0, n_features)))

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        held = self._matrix if self._rows is None else self._rows
        assert held is not None
        return int(held.shape[1])

    @property
    def thin(self) -> bool:
        """Whether S is held as rows."""
        return self._rows is not None

    @property
    def rows(self) -> Float:
        """Z with S = ZᵀZ, of a scatter held as rows."""
        assert self._rows is not None, "only a thin scatter has rows"
        return self._rows

    def matrix(self) -> Float:
        """S as a d×d array."""
        if self._matrix is not None:
            self._flush()
            return self._matrix
        return self.rows.T @ self.rows

    def times(self, rows: Float) -> Float:
        """BS for the rows B, on whichever side is smaller."""
        return (rows @ self.rows.T) @ self.rows if self.thin else rows @ self.matrix()

    def diagonal(self) -> Float:
        """The diagonal of S."""
        if self._matrix is not None:
            return self.matrix().diagonal().copy()
        return np.einsum("ij,ij->j", self.rows, self.rows)

    def trace(self) -> float:
        """tr S."""
        return float(self.diagonal().sum())

    def copy(self) -> Scatter:
        return Scatter(matrix=self.matrix().copy()) if self._matrix is not None else Scatter(rows=self.rows)

    def add_rows(self, rows: Float) -> None:
        """S += rowsᵀ rows."""
        if self._rows is not None and len(self._rows) + len(rows) < self.n_features:
            self._rows = np.concatenate([self._rows, rows])  # never in place: a copy may share them
            return
        self._to_matrix()
        self._pending.append(rows)
        if len(rows) > _FEW_ROWS or len(self._pending) > _FEW_ROWS:
            self._flush()

    def merge(self, other: Scatter) -> Scatter:
        """S += other, in place."""
        if other.thin:
            self.add_rows(other.rows)
            return self
        self._to_matrix()
        assert self._matrix is not None
        self._matrix += other.matrix()
        return self

    def flatten(self, limits: Float) -> None:
        """Set columns to zero whose diagonal is at most the limit: what is left there is rounding."""
        diagonal = self.diagonal()
        flat = diagonal <= limits
        if not flat.any():
            return
        flat &= (limits > 0) & np.isfinite(diagonal)
        if self._rows is not None:
            self._rows = np.where(flat, 0.0, self._rows)
        else:
            matrix = self.matrix()
            matrix[flat] = 0.0
            matrix[:, flat] = 0.0

    def _flush(self) -> None:
        if self._pending and self._matrix is not None:
            rows = np.concatenate(self._pending)
            self._pending = []
            with np.errstate(invalid="ignore", over="ignore"):  # found in the sums, and named
                self._matrix += rows.T @ rows

    def _to_matrix(self) -> None:
        if self._rows is not None:
            self._matrix, self._rows = self.matrix(), None


def combine(terms: Iterable[tuple[float, Scatter]], n_features: int) -> Scatter:
    """Σ a·S over pairs (a ≥ 0, S), thin while the rows stay fewer than the columns."""
    total = Scatter.empty(n_features)
    for coefficient, scatter in terms:
        if coefficient == 0.0:
            continue
        if scatter.thin:
            total.add_rows(np.sqrt(coefficient) * scatter.rows)
            continue
        part = Scatter(matrix=coefficient * scatter.matrix())
        total = part if total.thin and not len(total.rows) else total.merge(part)
    return total
