"""Kernels: inner products in a feature space that is never visited.

    linear      xᵀz                         polynomial   (γ xᵀz + c)^p
    rbf         exp(−γ‖x − z‖²)             laplacian    exp(−γ‖x − z‖₁)
    sigmoid     tanh(γ xᵀz + c)             sums, products and positive multiples: given_kernels.py

`positive` states whether every matrix of values is positive semi-definite, so that the dual problem is convex: True, False (the
sigmoid), or None where that is not known.

Reference: Schölkopf and Smola (2002), Learning with Kernels, chapters 2 and 13.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances

from separatrix.data.block import Float
from separatrix.dual.points import Points, lost_digits

# Up to this many columns a product of matrices gives values as fast as memory does.
_CHEAP = 96
_LARGEST_SINGLE = 1e30
_EPS = float(np.finfo(np.float64).eps)


class Kernel(ABC):
    """A function of two rows that is an inner product of their images.

    Kernels add and multiply: ``RBFKernel(0.1) + 2 * LinearKernel()``.
    """

    positive: bool | None = True
    linear: bool = False
    single: bool = True
    """Whether values are a product of matrices and little more, which single precision makes faster."""

    def cheap(self, points: Points) -> bool:
        """Whether a value is computed as fast as it is read from memory."""
        return self.single and not points.sparse and points.X.shape[1] <= _CHEAP

    def prepare(self, points: Points) -> None:  # noqa: B027  # nothing to prepare is the rule
        """Compute what will be needed of these rows again and again."""

    def lengths(self, points: Points) -> Float:
        """(n,) squared lengths of the rows as they enter the values."""
        return points.squares()

    def single_serves(self, points: Points) -> bool:
        """Whether single precision gives values that are good for the first rounds."""
        if not self.single or points.sparse:
            return False
        largest = max(points.squares().max(initial=0.0), np.abs(self.diagonal(points)).max(initial=0.0))
        return bool(largest < _LARGEST_SINGLE)

    def left(self, points: Points, dtype: DTypeLike) -> NDArray[Any] | None:
        """(n, p) A with k(x, z) = finish(A_x·B_z); None where values are not a function of a product of matrices."""
        return None

    def right(self, points: Points, dtype: DTypeLike) -> NDArray[Any]:
        """(p, n) B, remembered by the points."""
        raise NotImplementedError  # kernels that have a left side have a right one

    def opposite(self, left: NDArray[Any]) -> NDArray[Any]:
        """(p, n) B of the same rows as A."""
        raise NotImplementedError  # kernels that have a left side have it

    def finish(self, product: NDArray[Any]) -> NDArray[Any]:
        """The values, in the place of the products."""
        raise NotImplementedError  # kernels that have a left side finish

    def rank(self, n_features: int) -> float:
        """What the rank of a kernel matrix of any number of rows is at most."""
        return math.inf

    def given(self, points: Points) -> Float | None:
        """(n, n) all values, where they are stored already."""
        return None

    @abstractmethod
    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """(n, m) values, an array of its own."""

    def diagonal(self, points: Points) -> Float:
        """(n,) k(x, x)."""
        rows = (points.take(slice(i, i + 1)) for i in range(len(points)))
        return np.array([self.between(row, row)[0, 0] for row in rows])

    def __call__(self, X: Any, Z: Any = None) -> Float:
        """(n, m) values between the rows of two matrices, the second being the first when left out."""
        one = _points(X)
        return self.between(one, one if Z is None else _points(Z, one.centre))

    def __add__(self, other: Kernel) -> Kernel:
        from separatrix.dual.given_kernels import Sum  # which are kernels themselves

        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from separatrix.dual.given_kernels import Multiple, Product  # which are kernels themselves

        if isinstance(other, Kernel):
            return Product((self, other))
        return Multiple(self, float(other)) if isinstance(other, Real) else NotImplemented

    __rmul__ = __mul__


def _check(name: str, value: Any, kind: Any, least: float = -np.inf) -> None:
    number = float(value) if isinstance(value, kind) and not isinstance(value, bool) else np.nan
    if not least <= number < np.inf or number == -np.inf:
        what = "whole number" if kind is Integral else "finite number"
        raise ValueError(f"{name} is {value!r}; give a {what}{', 0 or more' if least == 0 else ''}.")


def _points(X: Any, centre: Float | None = None) -> Points:
    return Points(X.tocsr() if sp.issparse(X) else np.atleast_2d(np.asarray(X)), centre)


class _OfProduct(Kernel):
    """A function of xᵀz; `finish` makes the value of it in its place."""

    def _centred(self, points: Points) -> bool:
        return False

    def left(self, points: Points, dtype: DTypeLike) -> NDArray[Any] | None:
        return None if points.sparse else points.array(slice(None), dtype, self._centred(points))

    def right(self, points: Points, dtype: DTypeLike) -> NDArray[Any]:
        key = (self._centred(points), np.dtype(dtype))
        if key not in points.memo:
            points.memo[key] = points.array(slice(None), dtype, self._centred(points)).T.copy()
        return points.memo[key]

    def opposite(self, left: NDArray[Any]) -> NDArray[Any]:
        return left.T

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        return self.finish(one.dot(two, dtype, self._centred(one) and self._centred(two)))


@dataclass(frozen=True)
class LinearKernel(_OfProduct):
    """xᵀz.

    Examples
    --------
    >>> import separatrix as sx
    >>> sx.LinearKernel()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    linear = True

    def rank(self, n_features: int) -> float:
        return n_features

    def finish(self, product: NDArray[Any]) -> NDArray[Any]:
        return product

    def diagonal(self, points: Points) -> Float:
        return points.squares().copy()


@dataclass(frozen=True)
class CentredLinear(LinearKernel):
    """(x − c)ᵀ(z − c): the same machine, since Σβ = 0, with all its digits far from the origin."""

    def _centred(self, points: Points) -> bool:
        return not points.sparse

    def lengths(self, points: Points) -> Float:
        return points.squares(centred=not points.sparse)

    def diagonal(self, points: Points) -> Float:
        return self.lengths(points).copy()


@dataclass(frozen=True)
class PolynomialKernel(_OfProduct):
    """(γ xᵀz + c)^p, p a whole number.

    Examples
    --------
    >>> import separatrix as sx
    >>> sx.PolynomialKernel(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        _check("degree", self.degree, Integral, 0)
        _check("gamma", self.gamma, Real, 0)
        _check("coef0", self.coef0, Real)

    @property
    def positive(self) -> bool | None:  # type: ignore[override]  # it depends on the constant
        return True if self.coef0 >= 0 else None

    def rank(self, n_features: int) -> float:
        return math.comb(n_features + self.degree, self.degree)

    def finish(self, product: NDArray[Any]) -> NDArray[Any]:
        product *= self.gamma
        product += self.coef0
        return self._power(product)

    def diagonal(self, points: Points) -> Float:
        return self._power(self.gamma * points.squares() + self.coef0)

    def _power(self, values: NDArray[Any]) -> NDArray[Any]:
        # Whole powers by repeated products: `power` calls a slow function for every entry.
        square, left = values.copy(), self.degree >> 1
        if not self.degree & 1:
            values.fill(1.0)
        while left:
            square *= square
            if left & 1:
                values *= square
            left >>= 1
        return values


@dataclass(frozen=True)
class _OfDistance(Kernel):
    """exp(−γ · a distance)."""

    gamma: float = 1.0

    def __post_init__(self) -> None:
        _check("gamma", self.gamma, Real, 0)

    def finish(self, product: NDArray[Any]) -> NDArray[Any]:
        return np.exp(product, out=product)

    def diagonal(self, points: Points) -> Float:
        return np.ones(len(points))


@dataclass(frozen=True)
class RBFKernel(_OfDistance):
    """exp(−γ‖x − z‖²).

    Examples
    --------
    >>> import separatrix as sx
    >>> sx.RBFKernel(gamma=0.5)([[0.0]], [[2.0]])
    array([[0.13533528]])
    """

    def lengths(self, points: Points) -> Float:
        return points.squares(centred=not points.sparse)

    def prepare(self, points: Points) -> None:
        self.lengths(points)

    def single_serves(self, points: Points) -> bool:
        return not points.sparse and 8.0 * 2.0**-24 * self._reach(points) < 1e-4

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        left = None if two.sparse else self.left(one, dtype)
        if left is not None and self._near(two, dtype):
            return self.finish(left @ self.right(two, dtype))
        if one.sparse or two.sparse:
            from separatrix.kernels.sparse.rows import fill_exponents  # numba takes a while to import

            exponents = one.dot(two, np.float64)
            fill_exponents(exponents, one.squares(), two.squares(), self.gamma)
        else:
            exponents = cdist(one.X, two.X, "sqeuclidean")
            exponents *= -self.gamma
        return self.finish(exponents).astype(dtype, copy=False)

    def left(self, points: Points, dtype: DTypeLike) -> NDArray[Any] | None:
        # [x, γ‖x‖², 1]·[2γz, −1, −γ‖z‖²]: the whole exponent is one product.
        if not self._near(points, dtype):
            return None
        left = np.empty((len(points), points.X.shape[1] + 2), dtype)
        left[:, :-2] = points.array(slice(None), dtype, centred=True)
        left[:, -2], left[:, -1] = self.gamma * points.squares(centred=True), 1.0
        return left

    def right(self, points: Points, dtype: DTypeLike) -> NDArray[Any]:
        key = (self.gamma, np.dtype(dtype))
        if key not in points.memo:
            right = np.empty((points.X.shape[1] + 2, len(points)), dtype)
            right[:-2] = (2.0 * self.gamma * points.array(slice(None), np.float64, centred=True)).T
            right[-2], right[-1] = -1.0, -self.gamma * points.squares(centred=True)
            points.memo[key] = right
        return points.memo[key]

    def opposite(self, left: NDArray[Any]) -> NDArray[Any]:
        right = np.empty(left.shape[::-1], left.dtype)
        np.multiply(left[:, :-2].T, 2.0 * self.gamma, out=right[:-2])
        right[-2], right[-1] = -1.0, -left[:, -2]
        return right

    def _near(self, points: Points, dtype: DTypeLike) -> bool:
        """Whether a distance survives being a difference of squared lengths."""
        if points.sparse:
            return False
        # In single precision values are good for steps alone, which `single_serves` has decided.
        return dtype != np.float64 or 8.0 * _EPS * self._reach(points) <= lost_digits(points)

    def _reach(self, points: Points) -> float:
        return self.gamma * float(points.squares(centred=True).max(initial=0.0))


@dataclass(frozen=True)
class LaplacianKernel(_OfDistance):
    """exp(−γ‖x − z‖₁).

    Examples
    --------
    >>> import separatrix as sx
    >>> float(sx.LaplacianKernel(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]])[0, 0].round(6))
    0.367879
    """

    single = False

    def between(self, one: Points, two: Points, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        if one.sparse or two.sparse:
            distances = manhattan_distances(
                *(points.X if points.sparse else sp.csr_array(points.X) for points in (one, two))
            )
        else:
            distances = cdist(one.X, two.X, "cityblock")
        distances *= -self.gamma
        return self.finish(distances).astype(dtype, copy=False)


@dataclass(frozen=True)
class SigmoidKernel(_OfProduct):
    """tanh(γ xᵀz + c): not positive semi-definite in general, so its machine is a stationary point and no more.

    Examples
    --------
    >>> import separatrix as sx
    >>> float(sx.SigmoidKernel(gamma=0.5)([[1.0]], [[1.0]])[0, 0].round(6))
    0.462117
    """

    gamma: float = 1.0
    coef0: float = 0.0
    positive = False

    def __post_init__(self) -> None:
        _check("gamma", self.gamma, Real)
        _check("coef0", self.coef0, Real)

    def finish(self, product: NDArray[Any]) -> NDArray[Any]:
        product *= self.gamma
        product += self.coef0
        return np.tanh(product, out=product)

    def diagonal(self, points: Points) -> Float:
        return np.tanh(self.gamma * points.squares() + self.coef0)
