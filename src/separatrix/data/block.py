"""A block: a run of rows that fits in cache, and the few products that models need of it.

    matvec(v) = X v,   rmatvec(r) = Xᵀ r,   gram(s) = Xᵀ diag(s) X,   curve(s, v) = Xᵀ diag(s) X v
    class_sums = Σ_{i in class k} sᵢ xᵢ
    centre()  = the rows, each less its own class's mean in this block

Dense and sparse rows implement them; nothing outside this room asks which it has. All results are float64 whatever the storage.
No product changes the rows.

A class mean is kept as an unevaluated sum high + low. Rows far from the origin (a column at 10⁸ with unit variance) have
means whose last digits are larger than what the merging of two blocks must resolve; the low part carries those digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Codes = NDArray[np.intp]
_NOT_REPEATED = (
    "Leave-one-out takes sample_weight as numbers of repeated rows, but some weights are not whole numbers; use "
    "cross-validation instead."
)


@dataclass(frozen=True)
class Entries:
    """Values with the row and the column of each; arrays that broadcast against each other."""

    values: NDArray[Any]
    rows: NDArray[Any]
    columns: NDArray[Any]
    n_columns: int
    implicit_zeros: bool

    def column_maxima(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """(d,) largest of `values` in every column; −1 in a column without entries."""
        if not self.implicit_zeros:
            return values.max(axis=0, initial=-1)
        largest = np.full(self.n_columns, -1, dtype=np.intp)
        np.maximum.at(largest, self.columns, values)
        return largest


class Centred(ABC):
    """Rows of one block less their class means, and their second moments."""

    n_classes: int
    counts: Float
    """(K,) total weight of each class in the block."""
    mean_high: Float
    mean_low: Float
    """(K, d) class means as high + low; rows of zeros for classes that are not in the block."""

    @abstractmethod
    def scatter(self) -> Float:
        """(d, d) pooled within-class scatter Σᵢ sᵢ zᵢzᵢᵀ."""

    @abstractmethod
    def scatter_of(self, k: int) -> Float:
        """(d, d) scatter of class k."""

    @abstractmethod
    def squares(self) -> Float:
        """(K, d) diagonal of every class's scatter."""

    @abstractmethod
    def rows(self) -> Float:
        """The centred rows times the roots of their weights, dense: Z with ZᵀZ = scatter()."""

    @abstractmethod
    def rows_of(self, k: int) -> Float:
        """The same for class k alone."""


class LossSums(Protocol):
    """Sums of a loss over rows; `curvatures` stay where the rows are."""

    @property
    def loss(self) -> float:
        """Σ sℓ."""

    @property
    def gradient(self) -> Float:
        """(m, d) Σ s∇ℓ xᵀ."""

    @property
    def slopes(self) -> Float:
        """(m,) Σ s∇ℓ."""

    @property
    def squares(self) -> float:
        """Σ s‖∇ℓ‖²."""

    @property
    def steepest(self) -> float:
        """max |η|."""

    @property
    def total(self) -> float:
        """Σ s."""

    @property
    def largest(self) -> float:
        """max_i Σ_j metric_j x_ij², where it was asked for."""

    @property
    def curvatures(self) -> Any:
        """What `loss_curve` and `loss_hessian` take, where it was asked for."""

    @property
    def bend(self) -> Float | None:
        """(m, m) Σ s∇²ℓ, where curvatures are kept."""

    @property
    def precision(self) -> float:
        """The unit of rounding in the arithmetic of a row."""


class RowSums(Protocol):
    """Rows of which the sums of a loss are made where they lie, with one score ("logistic", `margins`) or one per class."""

    margins: ClassVar[bool]  # whether "hinge", "squared_hinge" and "smoothed_hinge" are among them
    curved: ClassVar[bool]  # whether curvatures can be kept, and products made with them

    def loss_sums(
        self, kind: str, W: Float, b: Float, own: Any, metric: Float | None, keep: bool, width: float = 0.0
    ) -> LossSums | None:
        """Loss and gradient at the scores o + b + Wx; ``None`` where they cannot be made. `width` is that of a rounded kink."""

    def judged(
        self, kinds: tuple[str, str], w: Float, b: float, own: Any, width: float
    ) -> tuple[Float, Float, float, Any]:
        """What slopes of the second loss show of the first: see kernels/device/torch_losses.py."""

    def loss_curve(self, curvatures: Any, V: Float, last: Float) -> tuple[Float, Float]:
        """(d, m) Σ s∇²ℓ(Vx + last)xᵀ, and the same for a column of ones."""

    def loss_hessian(self, curvatures: Any, ones: bool) -> Float:
        """(p, p) Σ sℓ'' xxᵀ of one score."""


class Block(ABC):
    """A run of rows with their targets and weights.

    Parameters
    ----------
    start : int
        Index of the first row in the source.
    y : ndarray or None
        Class codes (n,), or real targets (n, m).
    weights : ndarray or None
        (n,) weights; ``None`` means all one.
    """

    start: int
    y: NDArray[Any] | None
    weights: Float | None
    margins: ClassVar[bool] = False
    """Whether losses of the margin are summed where the rows lie (`row_sums`)."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def codes(self) -> Codes:
        """Class codes of the rows."""
        assert self.y is not None, "this block has no targets"
        return self.y

    @property
    def row_weights(self) -> Float:
        """(n,) weights of the rows, ones where none are given."""
        return np.ones(self.n) if self.weights is None else self.weights

    @abstractmethod
    def matvec(self, v: Float) -> Float:
        """X v, for a vector or the columns of a matrix."""

    @abstractmethod
    def rmatvec(self, r: Float) -> Float:
        """Xᵀ r, for a vector or the columns of a matrix."""

    @abstractmethod
    def gram(self, weights: Float | None = None) -> Float:
        """Xᵀ diag(weights) X for weights ≥ 0."""

    def gram_of(self, which: Codes, weights: Float) -> Float:
        """The Gram matrix of some columns, in ascending order."""
        return self.columns(which).gram(weights)

    def curve(self, weights: Float, v: Float) -> Float:
        """Xᵀ (weights · (X v)), the product of a Hessian with a vector."""
        return self.rmatvec(weights * self.matvec(v))

    def curve_with_ones(self, weights: Float, v: Float) -> Float:
        """The same for [X, 1], a column of ones behind the others."""
        moved = weights * (self.matvec(v[:-1]) + v[-1])
        return np.append(self.rmatvec(moved), moved.sum())

    @abstractmethod
    def column_squares(self, weights: Float | None = None) -> Float:
        """(d,) Σ_i weights_i · x_ij²."""

    @abstractmethod
    def columns(self, which: Codes) -> Block:
        """The block of some of the columns."""

    @abstractmethod
    def row_squares(self, metric: Float) -> Float:
        """Σ_j metric_j · x_ij² for every row: (n,), or (n, k) for the columns of a matrix."""

    def largest_row(self, metric: Float) -> float:
        """max_i Σ_j metric_j · x_ij²."""
        return float(self.row_squares(metric).max(initial=0.0))

    @abstractmethod
    def dense(self) -> Float:
        """The rows as a float64 array, for the few who need the entries themselves."""

    def at_hand(self) -> Block:  # for small sums of few rows, on the host
        return self

    def stored_rows(self) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """The rows for a compiled loop: a C-ordered array, or the three arrays of a CSR matrix."""
        return np.ascontiguousarray(self.dense())

    def sparse_rows(self) -> tuple[tuple[NDArray[Any], NDArray[Any], NDArray[Any]], bool] | None:
        """The three arrays of a CSR matrix, and whether a column of ones follows; ``None`` if the rows are not so."""
        return None

    def plain_rows(self, any_order: bool = False) -> tuple[NDArray[Any], bool] | None:
        """The rows as one array of floats, C-ordered or not, and whether a column of ones follows; ``None`` without."""
        return None

    def class_rows(self, n_classes: int) -> Codes:
        """(K,) number of rows of each class."""
        return np.bincount(self.codes, minlength=n_classes)

    def class_weight(self, n_classes: int) -> Float:
        """(K,) total weight of each class."""
        return np.bincount(self.codes, self.weights, n_classes).astype(np.float64, copy=False)

    def centre_classes(self, n_classes: int) -> Centred:
        """Rows less their own class's mean, or less the mean of all where there is one class."""
        return self.centre(self.codes if n_classes > 1 else np.zeros(self.n, dtype=np.intp), n_classes)

    def standardised(self, centre: Float, scale: Float | float) -> Block | None:
        """(X − 1cᵀ)D⁻¹ where the rows can be seen so without a copy; else ``None``."""
        return None

    def regrouped(self, groups: Codes | None, factors: Float | None = None) -> Block | None:
        """The rows in other classes (K,), −1 for none, or of weights times a factor (K,), made where they lie; or ``None``."""
        return None

    def binarised(self, threshold: float) -> Block | None:
        """1 where a value exceeds the threshold, else 0, NaN where it is not finite, made where they lie; or ``None``."""
        return None

    def radial_sums(self, gamma: float, centre: Any, vectors: Any, factors: Float, lost: float) -> Float | None:
        """(n, k) Σ βⱼexp(−γ‖x − zⱼ‖²), made where the rows lie, γ‖x − centre‖² being at most `lost`; else ``None``."""
        return None

    def row_sums(self) -> tuple[RowSums, bool] | None:
        """Rows that make the sums of a loss themselves, where they lie, and whether a column of ones follows; else ``None``."""
        return None

    @abstractmethod
    def centre(self, codes: Codes, n_classes: int) -> Centred:
        """Rows less their class means; rows of weight zero are left out."""

    @abstractmethod
    def join(self, columns: Float) -> Block:
        """The block [X | columns]."""

    @abstractmethod
    def non_finite(self) -> NDArray[np.bool_]:
        """(n, d) mask, or for sparse rows a matrix of that shape, of the entries that are NaN or infinite."""

    def non_finite_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """(d,) how many values of each column are NaN or infinite in rows that count, and the first such row or −1."""
        mask = self.non_finite()
        if self.weights is not None:  # a row of weight zero may hold anything
            counts = (self.weights > 0)[:, None]
            mask = mask.multiply(counts).tocsr() if hasattr(mask, "multiply") else mask & counts
        count = np.asarray(mask.sum(axis=0)).ravel()
        first = np.full(len(count), -1, dtype=np.intp)
        for fresh in np.flatnonzero(count):
            column = mask[:, [fresh]]
            column = column.toarray() if hasattr(column, "toarray") else column
            first[fresh] = self.start + int(np.argmax(column))
        return count, first

    @abstractmethod
    def counted(self) -> Block:
        """The block without its rows of weight zero, which may hold anything."""

    @abstractmethod
    def part(self, rows: slice) -> Block:
        """The block of some of the rows."""

    def cut(self, rows: int) -> Iterator[Block]:
        """The block in parts of at most `rows` rows."""
        if self.n <= rows:
            yield self
            return
        for start in range(0, self.n, rows):
            yield self.part(slice(start, min(start + rows, self.n)))

    def pieces(self, size: int) -> Iterator[Block]:
        """The block in parts of at most `size` bytes as dense float64, but not of few rows."""
        return self.cut(max(256, size // (8 * max(1, self.shape[1]))))

    def class_sums(self, codes: Codes, n_classes: int) -> Float:
        """(K, d) weighted sums of the rows of each class."""
        membership = np.zeros((self.n, n_classes))
        membership[np.arange(self.n), codes] = 1.0 if self.weights is None else self.weights
        return np.ascontiguousarray(self.rmatvec(membership).T)

    @abstractmethod
    def least(self) -> float:
        """The least value, at most 0; NaN is found elsewhere."""

    @abstractmethod
    def column_minima(self) -> Float:
        """(d,) least value of every column, zeros that are not stored included."""

    @abstractmethod
    def stored_entries(self) -> Entries:
        """Values with their rows and columns; zeros that are not stored are left out."""

    def repetitions(self) -> Float:
        """Weights as numbers of repeated rows; others cannot be left out one at a time."""
        if self.weights is None:
            return np.ones(self.n)
        if (self.weights != np.floor(self.weights)).any():
            raise ValueError(_NOT_REPEATED)
        return self.weights


class StoredBlock(Block):
    """Rows of a matrix that lies in memory, dense or sparse."""

    X: Any

    def __init__(self, X: Any, y: NDArray[Any] | None = None, weights: Float | None = None, start: int = 0) -> None:
        self.X, self.y, self.weights, self.start = X, y, weights, start

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape[0], self.X.shape[1]

    def _double(self) -> Any:
        return self.X.astype(np.float64, copy=False)

    def matvec(self, v: Float) -> Float:
        return self._double() @ v

    def rmatvec(self, r: Float) -> Float:
        return self._double().T @ r

    @abstractmethod
    def _of(self, X: Any, y: NDArray[Any] | None, weights: Float | None, start: int) -> StoredBlock:
        """A block of other rows, stored alike."""

    def _rows(self, at: Any, start: int) -> StoredBlock:
        y = None if self.y is None else self.y[at]
        return self._of(self.X[at], y, None if self.weights is None else self.weights[at], start)

    def counted(self) -> StoredBlock:
        if self.weights is None or self.weights.all():
            return self
        return self._rows(np.flatnonzero(self.weights), self.start)

    def part(self, rows: slice) -> StoredBlock:
        return self._rows(rows, self.start + rows.start)
