"""Products of rows that are longer than they are many, a few columns at a time: no other copy of the rows is made.

    G = Σ over groups of columns  (X − c)(X − c)ᵀ,        −γ‖x − z‖² = 2γGₓ𝓏 − γGₓₓ − γG𝓏𝓏

Each entry of G is a sum of d products, in whatever order, and so within the errors of rounding.py.
"""

from __future__ import annotations

import numpy as np

from separatrix.data.block import Float
from separatrix.dual.kernels import CentredLinear, Kernel, LinearKernel, PolynomialKernel, RBFKernel, SigmoidKernel
from separatrix.dual.points import Points, lost_digits

_EPS = float(np.finfo(np.float64).eps)
# Entries of a group of columns: they stay in cache from their conversion to their product.
_ENTRIES, _LEAST = 1 << 17, 64


def long_products(kernel: Kernel, points: Points) -> Float | None:
    """(n, n) what `finish` makes the values of; ``None`` for kernels and rows of which this is not the quickest way."""
    if points.sparse or points.X.shape[1] <= len(points):
        return None
    if isinstance(kernel, RBFKernel):
        lengths = kernel.gamma * points.squares(centred=True)
        if not 8.0 * _EPS * float(lengths.max(initial=0.0)) <= lost_digits(points):
            return None  # of these the kernel takes differences
        exponents = _gram(points, centred=True)
        exponents *= 2.0 * kernel.gamma
        exponents -= lengths[:, None] + lengths
        return exponents
    if isinstance(kernel, LinearKernel | PolynomialKernel | SigmoidKernel):
        return _gram(points, isinstance(kernel, CentredLinear))
    return None


def _gram(points: Points, centred: bool) -> Float:
    total = np.zeros((len(points), len(points)))
    width = max(_LEAST, _ENTRIES // max(1, len(points)))
    for start in range(0, points.X.shape[1], width):
        cut = slice(start, start + width)
        part = points.X[:, cut] - np.asarray(points.centre)[cut] if centred else points.X[:, cut]
        part = part.astype(np.float64, order="C", copy=False)
        total += part @ part.T
    return total
