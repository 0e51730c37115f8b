"""Objectives of support vector machines, and lower bounds on their optima.

    linear   ½‖w‖² + C Σ max(0, 1 − ỹ wᵀx)ᵖ              f* ≥ Σα − ½‖Σ αỹx‖² − [p = 2] Σα²/4C   for 0 ≤ α (≤ C for p = 1)
    kernel   ½βᵀKβ + C Σ max(0, 1 − ỹ(Kβ + b))           the optimum is that of LIBSVM's dual solved tightly

The point comes from scikit-learn at a tight tolerance. Linear machines have no intercept here: LIBLINEAR would penalise it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contender import construct
from benchmarks.data import Data
from benchmarks.optimum import TIGHT, signs_of

Array = NDArray[np.float64]
BLOCK = 500


def linear_objective(data: Data, coef: Any, C: float, power: int) -> float:
    """f(w); infinite when the coefficients have the wrong shape."""
    coef = np.asarray(coef, dtype=np.float64)
    if coef.shape != (1, data.X.shape[1]):
        return math.inf
    slack = np.maximum(0.0, 1.0 - signs_of(data.y) * (data.X @ coef[0]))
    return float(0.5 * coef[0] @ coef[0] + C * (slack**power).sum())


def linear_optimum(data: Data, C: float, power: int) -> float:
    """The optimum from below: a long run of dual coordinate ascent of our own, judged by its own dual value alone."""
    machine = construct(
        "separatrix.dual.linear_machine:LinearMachine",
        {"X": data.X, "signs": signs_of(data.y), "price": np.full(len(data.y), C), "power": power, "scaling": 0.0},
    )
    alpha = machine.solve(2e-8, 5000).alpha
    part = data.X.T @ (alpha * signs_of(data.y))
    bound = float(alpha.sum() - 0.5 * part @ part - (np.square(alpha).sum() / (4 * C) if power == 2 else 0.0))
    value = linear_objective(data, part[None, :], C, power)
    if not value - bound <= TIGHT * value:
        raise ArithmeticError(f"the reference is only known to {(value - bound) / value:.1e}")
    return bound


def linear_gap(data: Data, C: float, power: int) -> Callable[[Any], float]:
    """The function from a fitted model to (f − f*)/f*."""
    optimum = linear_optimum(data, C, power)
    return lambda model: linear_objective(data, model.coef_, C, power) / optimum - 1.0


def scores(data: Data, support: Any, coefficients: Array, gamma: float) -> Array:
    """Kβ of all rows for the radial kernel, by differences: slow, and exact."""
    from sklearn.metrics.pairwise import rbf_kernel

    parts = [data.X[start : start + BLOCK] for start in range(0, len(data.y), BLOCK)]
    return np.concatenate([rbf_kernel(rows, support, gamma=gamma) @ coefficients for rows in parts])


def gamma_of(data: Data) -> float:
    """scikit-learn's gamma="scale"."""
    return float(1.0 / (data.X.shape[1] * data.X.var()))


def kernel_objective(data: Data, model: Any, C: float) -> float:
    """The primal objective of a fitted machine."""
    coefficients = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
    f = scores(data, np.asarray(model.support_vectors_), coefficients, gamma_of(data))
    slack = np.maximum(0.0, 1.0 - signs_of(data.y) * (f + float(np.ravel(model.intercept_)[0])))
    at = np.asarray(model.support_, dtype=np.intp)
    return float(0.5 * coefficients @ f[at] + C * slack.sum())


def kernel_dual(data: Data, model: Any) -> float:
    """The dual objective of a fitted machine, a lower bound on the optimum."""
    coefficients = np.asarray(model.dual_coef_, dtype=np.float64).ravel()
    f = scores(data, np.asarray(model.support_vectors_), coefficients, gamma_of(data))
    at = np.asarray(model.support_, dtype=np.intp)
    return float(np.abs(coefficients).sum() - 0.5 * coefficients @ f[at])


def kernel_gap(data: Data, C: float) -> Callable[[Any], float]:
    """The function from a fitted model to (D* − D)/D*, D its dual objective and D* LIBSVM's solved to 1e-6."""
    reference = construct("sklearn.svm:SVC", {"C": C, "tol": 1e-6, "cache_size": 2000}).fit(data.X, data.y)
    best = kernel_dual(data, reference)
    return lambda model: 1.0 - kernel_dual(data, model) / best
