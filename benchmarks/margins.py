"""Objectives of support vector machines, and their optima.

    linear   ½‖w‖² + C Σ max(0, 1 − ỹ wᵀx)ᵖ              the optimum is that of two libraries that agree
    kernel   ½βᵀKβ + C Σ max(0, 1 − ỹ(Kβ + b))           the optimum is that of LIBSVM's dual solved tightly

An intercept of a linear machine is penalised here, LIBLINEAR's way: it
is the weight of one more column, of ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
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
    """The lesser of the tight fits of two libraries, ours and LIBLINEAR's, which have to agree to 1e-7."""
    loss = "hinge" if power == 1 else "squared_hinge"
    common = {"loss": loss, "C": C, "fit_intercept": False}
    theirs = {**common, "dual": True, "tol": 1e-6, "max_iter": 20_000, "random_state": 0}
    tight = (("separatrix:LinearSVC", {**common, "tol": 1e-8}), ("sklearn.svm:LinearSVC", theirs))
    values = [
        linear_objective(data, construct(path, parameters).fit(data.X, data.y).coef_, C, power)
        for path, parameters in tight
    ]
    if not max(values) - min(values) <= TIGHT * min(values):
        raise ArithmeticError(f"the references differ by {max(values) / min(values) - 1:.1e}")
    return min(values)


def linear_gap(data: Data, C: float, power: int, penalised_intercept: bool = False) -> Callable[[Any], float]:
    """The function from a fitted model to (f − f*)/f*."""
    if not penalised_intercept:
        optimum = linear_optimum(data, C, power)
        return lambda model: linear_objective(data, model.coef_, C, power) / optimum - 1.0
    wider = Data(sp.csr_array(sp.hstack([data.X, np.ones((len(data.y), 1))])), data.y, "")
    optimum = linear_optimum(wider, C, power)

    def gap(model: Any) -> float:
        whole = np.column_stack([np.atleast_2d(model.coef_), np.ravel(model.intercept_)])
        return linear_objective(wider, whole, C, power) / optimum - 1.0

    return gap


def scores(data: Data, support: Any, coefficients: Array, gamma: float) -> Array:
    """Kβ of all rows for the radial kernel, by differences: slow, and exact."""
    from sklearn.metrics.pairwise import rbf_kernel

    parts = [data.X[start : start + BLOCK] for start in range(0, len(data.y), BLOCK)]
    return np.concatenate([rbf_kernel(rows, support, gamma=gamma) @ coefficients for rows in parts])


def gamma_of(data: Data) -> float:
    """scikit-learn's gamma="scale"."""
    return float(1.0 / (data.X.shape[1] * data.X.var()))


def kernel_dual(data: Data, model: Any) -> float:
    """The dual objective of a fitted machine, summed over the pairs of classes: a lower bound on the optimum."""
    from sklearn.metrics.pairwise import rbf_kernel

    coefs = np.atleast_2d(np.asarray(model.dual_coef_, dtype=np.float64))
    support = np.asarray(model.support_, dtype=np.intp)
    codes = np.unique(data.y, return_inverse=True)[1][support]
    if len(coefs) == 1:
        f = scores(data, data.X[support], coefs[0], gamma_of(data))
        return float(np.abs(coefs).sum() - 0.5 * coefs[0] @ f[support])
    kernel = rbf_kernel(data.X[support], gamma=gamma_of(data))
    return sum(
        float(np.abs(pair).sum() - 0.5 * pair @ kernel @ pair)
        for i in range(len(coefs) + 1)
        for j in range(i + 1, len(coefs) + 1)
        for pair in [np.where(codes == i, coefs[j - 1], np.where(codes == j, coefs[i], 0.0))]
    )


def kernel_gap(data: Data, C: float) -> Callable[[Any], float]:
    """The function from a fitted model to (D* − D)/D*, D its dual objective and D* LIBSVM's solved to 1e-6."""
    reference = construct("sklearn.svm:SVC", {"C": C, "tol": 1e-6, "cache_size": 2000}).fit(data.X, data.y)
    best = kernel_dual(data, reference)
    return lambda model: 1.0 - kernel_dual(data, model) / best
