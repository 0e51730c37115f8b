"""Products of rows that are longer than they are many, a few columns at a time: no other copy of the rows is made.

    G = Σ over groups of columns  (X − c)(X − c)ᵀ,        −γ‖x − z‖² = 2γGₓ𝓏 − γGₓₓ − γG𝓏𝓏

Each entry of G is a sum of d products, in whatever order, and so within the errors of rounding.py. Reading the rows is most
of the cost, so that their squared lengths are taken from the diagonal.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.data.source import in_parallel
from separatrix.dual.kernels import CentredLinear, Kernel, LinearKernel, PolynomialKernel, RBFKernel, SigmoidKernel
from separatrix.dual.points import Points, lost_digits
from separatrix.settings import one_blas_thread

_EPS = float(np.finfo(np.float64).eps)
# Entries of a group of columns: they stay in cache from their conversion to their product.
_ENTRIES, _LEAST = 1 << 17, 64
# Sums over groups that are taken side by side, and the rows up to which there is room for them; beyond, the rows of G are
# shared by the threads, a stripe at a time.
_SUMS, _MOST, _STRIPE = 4, 2048, 256
# Products of numbers that are done by the time another thread has been woken.
_ALONE = 2e7


def long(points: Points) -> bool:
    """Whether products of all rows with each other are quickest from a few columns at a time."""
    return not points.sparse and points.X.shape[1] > len(points)


def keep_products(kernel: Kernel, points: Points) -> None:
    """Compute what `long_products` will be asked for, with the squared lengths that the kernel reads."""
    if isinstance(kernel, LinearKernel | PolynomialKernel | SigmoidKernel | RBFKernel):
        centred = isinstance(kernel, CentredLinear | RBFKernel)
        products = points.memo["products"] = _gram(points, centred)
        points.know_squares(products.diagonal().copy(), centred)


def long_products(kernel: Kernel, points: Points) -> Float | None:
    """(n, n) what `finish` makes the values of; ``None`` for kernels and rows of which this is not the quickest way."""
    if not long(points):
        return None
    if "products" not in points.memo:
        keep_products(kernel, points)
    products: Float | None = points.memo.pop("products", None)
    if products is not None and isinstance(kernel, RBFKernel):
        lengths = kernel.gamma * points.squares(centred=True)
        if not 8.0 * _EPS * float(lengths.max(initial=0.0)) <= lost_digits(points):
            return None  # of these the kernel takes differences
        products *= 2.0 * kernel.gamma
        products -= lengths[:, None] + lengths
    return products


def _gram(points: Points, centred: bool) -> Float:
    n, d = points.X.shape
    width = max(_LEAST, _ENTRIES // max(1, n))
    if n > _MOST:
        return _gram_in_stripes(points, centred, width)
    sums = np.zeros((_SUMS, n, n))

    def add(k: int) -> None:
        end = (k + 1) * d // _SUMS
        for start in range(k * d // _SUMS, end, width):
            part = _columns(points, slice(start, min(start + width, end)), centred)
            sums[k] += part @ part.T

    if n * n * d <= _ALONE:
        with one_blas_thread():
            for k in range(_SUMS):
                add(k)
    else:
        in_parallel(add, range(_SUMS))
    for other in sums[1:]:
        sums[0] += other
    return np.asarray(sums[0])


def _gram_in_stripes(points: Points, centred: bool, width: int) -> Float:
    n, d = points.X.shape
    total = np.zeros((n, n))
    for at in range(0, d, width):
        part = _columns(points, slice(at, at + width), centred)

        def add(start: int, part: Float = part) -> None:
            rows = slice(start, start + _STRIPE)
            total[rows, start:] += part[rows] @ part[start:].T

        in_parallel(add, range(0, n, _STRIPE))
    for start in range(0, n, _STRIPE):
        total[start + _STRIPE :, start : start + _STRIPE] = total[start : start + _STRIPE, start + _STRIPE :].T
    return total


def _columns(points: Points, cut: slice, centred: bool) -> Float:
    part = points.X[:, cut] - np.asarray(points.centre)[cut] if centred else points.X[:, cut]
    return np.asarray(part, dtype=np.float64)
