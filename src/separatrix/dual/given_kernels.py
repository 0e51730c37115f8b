"""Kernels whose values are given: by a function, as a matrix, or by other kernels, as sums, products and positive multiples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from separatrix.data.block import Float
from separatrix.dual.kernels import Kernel
from separatrix.dual.points import Points


@dataclass(frozen=True)
class Function(Kernel):
    """Any function of two matrices that gives the matrix of values, dense or sparse.

    Where the rows that were fitted are sparse it is given sparse rows on both sides, as scikit-learn does; with `matrices`
    of the older kind, whose ``*`` is the product of matrices.
    """

    function: Callable[[Any, Any], Any]
    matrices: bool = False
    positive = None
    single = False

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        left, right = one.X, two.X
        if one.sparse or two.sparse:
            kind = sp.csr_matrix if self.matrices else sp.csr_array
            left, right = kind(left), kind(right)
        found = self.function(left, right)
        values = np.array(found.toarray() if sp.issparse(found) else found, dtype=dtype)
        if values.shape != (len(one), len(two)):
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape} for {len(one)} and {len(two)} rows; it must "
                f"return one value per pair, of shape {(len(one), len(two))}."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                "The kernel function returned NaN or infinity; it must return a finite value for every pair of rows."
            )
        return values


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The rows are the values themselves: row i holds k(xᵢ, z) for every training row z.

    The second argument is given by the numbers of training rows that it stands for: its rows are rows of the same matrix.
    """

    positive = None
    single = False

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        assert isinstance(two, Columns)
        return np.array(one.X[:, two.columns], dtype=dtype)

    def given(self, points: Points) -> Float | None:
        assert isinstance(points, Columns)
        whole = len(points) == points.X.shape[1]
        values = np.ascontiguousarray(points.X if whole else points.X[:, points.columns], dtype=np.float64)
        return values if values.flags.writeable else values.copy()  # compiled loops know one kind of array

    def cheap(self, points: Points) -> bool:
        return True

    def diagonal(self, points: Points) -> Float:
        assert isinstance(points, Columns)
        return np.array(points.X[np.arange(len(points)), points.columns], dtype=np.float64)


class Columns(Points):
    """Rows of a precomputed matrix, with the numbers of the training rows they are."""

    def __init__(self, X: Any, columns: NDArray[np.intp]) -> None:
        self.X, self.columns, self.centre, self.sparse = X, columns, None, False
        self.memo, self._squares = {}, {}

    def take(self, rows: slice | NDArray[np.intp]) -> Columns:
        """Some of the rows."""
        return Columns(self.X[rows], self.columns[rows])


class _Composed(Kernel):
    parts: tuple[Kernel, ...]

    @property
    def positive(self) -> bool | None:  # type: ignore[override]  # it depends on the parts
        kinds = {part.positive for part in self.parts}
        return False if False in kinds else (None if None in kinds else True)

    @property
    def single(self) -> bool:  # type: ignore[override]  # it depends on the parts
        return all(part.single for part in self.parts)

    def prepare(self, points: Points) -> None:
        for part in self.parts:
            part.prepare(points)


@dataclass(frozen=True)
class _Combined(_Composed):
    """Kernels whose values are added or multiplied."""

    parts: tuple[Kernel, ...]
    operation: ClassVar[np.ufunc]

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        return reduce(self.operation, (part.between(one, two, dtype) for part in self.parts))

    def diagonal(self, points: Points) -> Float:
        return reduce(self.operation, (part.diagonal(points) for part in self.parts))


class Sum(_Combined):
    """The sum of kernels: features side by side."""

    operation = np.add


class Product(_Combined):
    """The product of kernels: every feature of one times every feature of the other."""

    operation = np.multiply


@dataclass(frozen=True)
class Multiple(_Composed):
    """A positive multiple of a kernel."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < np.inf:
            raise ValueError(f"A kernel can be multiplied by a positive number, not by {self.factor!r}.")

    @property
    def parts(self) -> tuple[Kernel, ...]:  # type: ignore[override]  # there is one
        return (self.kernel,)

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        values = self.kernel.between(one, two, dtype)
        values *= self.factor
        return values

    def diagonal(self, points: Points) -> Float:
        return self.factor * self.kernel.diagonal(points)
