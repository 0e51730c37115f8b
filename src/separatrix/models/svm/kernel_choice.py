"""The kernel that a name, a function or an object stands for, with scikit-learn's meaning of gamma."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.dual.given_kernels import Function, Precomputed
from separatrix.dual.kernels import (
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    RBFKernel,
    SigmoidKernel,
)

KernelName = (
    Literal["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"] | Callable[[Any, Any], Any] | Kernel
)
_ROWS = 4096
# Below this a variance has lost digits, and its inverse may overflow.
_LEAST = float(np.finfo(np.float64).tiny)
_NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")


def choose_kernel(
    kernel: KernelName, degree: int, gamma: Any, coef0: float, X: Any, weights: Float, matrices: bool = False
) -> Kernel:
    """The kernel; ``gamma="scale"`` is read off the rows. `matrices`: whether a function is given sparse matrices."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel, matrices)
    if isinstance(coef0, bool) or not isinstance(coef0, (int, float, np.number)) or not np.isfinite(coef0):
        raise ValueError(f"coef0 is {coef0!r}; give a finite number.")
    if kernel not in _NAMES:
        raise ValueError(f"kernel is {kernel!r}; give one of {', '.join(_NAMES)}, a function or a Kernel.")
    if kernel == "linear":
        return LinearKernel()
    if kernel == "precomputed":
        return Precomputed()
    width = _gamma(gamma, X, weights)
    if kernel == "rbf":
        return RBFKernel(width)
    if kernel == "laplacian":
        return LaplacianKernel(width)
    if kernel == "sigmoid":
        return SigmoidKernel(width, float(coef0))
    if not (isinstance(degree, (int, np.integer)) and degree >= 0):
        raise ValueError(f"degree is {degree!r}; give a whole number, 0 or more.")
    return PolynomialKernel(int(degree), width, float(coef0))


def _gamma(gamma: Any, X: Any, weights: Float) -> float:
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / X.shape[1]
        if gamma == "scale":
            variance = _variance(X, weights)
            if not X.shape[1] * variance > _LEAST and _varies(X):
                raise ValueError(
                    "The values of X are so small that their variance, and with it the kernel's gamma='scale', has no digits; "
                    "multiply the columns by a power of ten first."
                )
            return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
        raise ValueError(f"gamma is {gamma!r}; give 'scale', 'auto' or a number ≥ 0.")
    if not (isinstance(gamma, (int, float, np.number)) and 0 <= gamma < np.inf):
        raise ValueError(f"gamma is {gamma!r}; give 'scale', 'auto' or a number ≥ 0.")
    return float(gamma)


def _varies(X: Any) -> bool:
    """Whether not all entries are the same."""
    values = X.data if sp.issparse(X) else X
    if not values.size:
        return False
    zeros = sp.issparse(X) and values.size < X.shape[0] * X.shape[1]
    return bool(values.max() > values.min() or (zeros and values.max() != 0))


def _variance(X: Any, weights: Float) -> float:
    """Of all entries, a row of weight 2 standing twice; of a sparse matrix the zeros count too."""
    size = float(weights.sum()) * X.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):  # refused by its name where it happens
        if sp.issparse(X):
            X = X.astype(np.float64, copy=False)  # squares of small integers would overflow
            mean = np.float64(weights @ X.sum(axis=1)) / size
            return float(max(0.0, np.float64(weights @ X.multiply(X).sum(axis=1)) / size - mean**2))
        cuts = [slice(start, start + _ROWS) for start in range(0, len(X), _ROWS)]
        mean = np.float64(sum(float(weights[cut] @ X[cut].sum(axis=1, dtype=np.float64)) for cut in cuts)) / size
        return sum(float(weights[cut] @ np.square(X[cut] - mean).sum(axis=1)) for cut in cuts) / size
