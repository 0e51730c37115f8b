"""The kernel that a name, a function or an object stands for, with scikit-learn's meaning of gamma."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from separatrix.data.block import Float
from separatrix.dual.given_kernels import Function, Precomputed
from separatrix.dual.kernels import Kernel, LaplacianKernel, LinearKernel, PolynomialKernel, RBFKernel, SigmoidKernel
from separatrix.models.svm.score_calibration import CALIBRATORS

KernelName = (
    Literal["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"] | Callable[[Any, Any], Any] | Kernel
)
# Entries that stay in cache from their differences to their squares to the sum.
_ENTRIES = 1 << 16
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
        if not X.flags.c_contiguous and X.flags.f_contiguous:  # by columns, as they are stored
            width = max(1, _ENTRIES // max(1, len(X)))
            columns = [X[:, start : start + width] for start in range(0, X.shape[1], width)]
            mean = np.float64(sum(float((weights @ part).sum()) for part in columns)) / size
            return sum(float((weights @ np.square(part - mean)).sum()) for part in columns) / size
        rows = max(1, _ENTRIES // max(1, X.shape[1]))
        cuts = [slice(start, start + rows) for start in range(0, len(X), rows)]
        mean = np.float64(sum(float(weights[cut] @ X[cut].sum(axis=1, dtype=np.float64)) for cut in cuts)) / size
        return sum(float(weights[cut] @ np.square(X[cut] - mean).sum(axis=1)) for cut in cuts) / size


def check_price(model: Any) -> None:
    """Refuse a price of slack that means nothing."""
    if not (isinstance(model.C, (int, float, np.number)) and model.C > 0):
        raise ValueError(f"C is {model.C!r}; give a positive number, or inf for the hard margin.")


def check_nu(model: Any) -> None:
    """Refuse a share of margin errors that means nothing."""
    if not (isinstance(model.nu, (int, float, np.number)) and 0 < model.nu <= 1):
        raise ValueError(f"nu is {model.nu!r}; give a number above 0 and up to 1.")


def check_parameters(model: Any) -> None:
    """Refuse parameters of support vector machines that mean nothing."""
    number = (int, float, np.number)
    if not (isinstance(model.tol, number) and 0 < model.tol < np.inf):
        raise ValueError(f"tol is {model.tol!r}; give a positive number.")
    if not (isinstance(model.cache_size, number) and model.cache_size >= 0):
        raise ValueError(f"cache_size is {model.cache_size!r}; give megabytes, 0 or more.")
    if isinstance(model.max_iter, bool) or not isinstance(model.max_iter, Integral) or model.max_iter < -1:
        raise ValueError(f"max_iter is {model.max_iter!r}; give a whole number of steps, or -1 for no limit.")
    if not isinstance(model.record, bool | np.bool_):
        raise ValueError(f"record is {model.record!r}; give True or False.")
    for name, known in (("multi_class", ("ovo", "ovr")), ("decision_function_shape", ("ovo", "ovr"))):
        if getattr(model, name) not in known:
            raise ValueError(f"{name} is {getattr(model, name)!r}; give 'ovo' or 'ovr'.")
    if model.break_ties and model.decision_function_shape == "ovo":
        raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
    if model.calibration not in (None, *CALIBRATORS):
        raise ValueError(f"calibration is {model.calibration!r}; give None, 'sigmoid' or 'isotonic'.")
