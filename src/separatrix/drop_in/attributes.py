"""Fitted attributes, and words of warnings, as scikit-learn's classes have them where ours differ.

rows of float32      coefficients of float32 (those that the certificate is about stay as they were found)
solver_              scikit-learn's name of the solver that was asked for
a fit that fell short of its tolerance      scikit-learn's sentence, then ours
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from separatrix.drop_in.parameters import Parameters
from separatrix.models.base import is_single
from separatrix.settings import outside

Attributes = dict[str, Any]
Presenter = Callable[[Parameters, Any, Attributes], Attributes]
"""Of scikit-learn's parameters, X and the attributes of ours: those that are to be shown otherwise."""
Warner = Callable[[Parameters], str]


def as_found(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """Nothing differs."""
    return {}


def in_single(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """The coefficients of a linear rule in the precision of the rows."""
    if not is_single(X):
        return {}
    with np.errstate(over="ignore", under="ignore"):
        return {
            name: np.float32(found[name]) for name in ("coef_", "intercept_") if isinstance(found[name], np.ndarray)
        }


def stochastic_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`SGDClassifier`, `PassiveAggressiveClassifier`: the last coefficients and their means by scikit-learn's private names."""
    kept = ("standard_coef_", "standard_intercept_", "average_coef_", "average_intercept_")
    return {**in_single(given, X, found), **{f"_{name[:-1]}": found[name] for name in kept if name in found}}


def logistic_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`LogisticRegression`: LIBLINEAR computes in double precision."""
    return {} if given["solver"] == "liblinear" else in_single(given, X, found)


def ridge_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`Ridge`: the name of the solver too, and no count of steps for those that count none."""
    chosen = "lbfgs" if given["positive"] else "sparse_cg" if issparse(X) and given["fit_intercept"] else "cholesky"
    solver = chosen if given["solver"] == "auto" else given["solver"]
    counts = {} if solver in ("lsqr", "sag", "saga", "lbfgs") else {"n_iter_": None}
    return {**in_single(given, X, found), **counts, "solver_": solver}


def ridge_classifier_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeClassifier`: for two classes a vector of coefficients."""
    shown = ridge_attributes(given, X, found)
    coef = {**found, **shown}["coef_"]
    return {**shown, "coef_": coef[0]} if len(coef) == 1 else shown


def ridge_cv_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeCV`; and the warning about a way of decomposing that scikit-learn has not for sparse rows."""
    if given["gcv_mode"] == "svd" and given["cv"] is None and issparse(X):
        warnings.warn(_SVD, FutureWarning, stacklevel=outside())
    return in_single(given, X, found)


def ridge_classifier_cv_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeClassifierCV`: for two classes a vector of coefficients."""
    shown = in_single(given, X, found)
    coef = {**found, **shown}["coef_"]
    return {**shown, "coef_": coef[0]} if len(coef) == 1 else shown


_SVD = (
    "The 'svd' mode is not supported for sparse X, we fallback to `gcv_mode='eigen'`. Passing `gcv_mode='svd'` on sparse X "
    "will raise an error in 1.11, use the default or pass `gcv_mode='eigen'` to suppress this warning."
)


def as_read(name: str, model: Any) -> Any:
    """An attribute that is computed when it is asked for: the planes of a kernel machine are sparse where its rows are."""
    value = getattr(model, name)
    if name != "coef_" or not issparse(getattr(model, "dual_coef_", None)):
        return value
    planes = csr_array(value)
    planes.data.flags.writeable = False
    return planes


def logistic_warning(given: Parameters) -> str:
    """What `LogisticRegression` says, by its solver."""
    stochastic = "The max_iter was reached which means the coef_ did not converge"
    return {
        "lbfgs": f"lbfgs failed to converge after {given['max_iter']} iteration(s)",
        "newton-cg": f"newton-cg failed to converge at loss. Increase the number of iterations. {given['max_iter']} reached",
        "newton-cholesky": f"Newton solver did not converge after {given['max_iter']} iterations",
        "sag": stochastic,
        "saga": stochastic,
    }.get(given["solver"], linear_machine_warning(given))


def linear_machine_warning(given: Parameters) -> str:
    """What LIBLINEAR's wrapper says."""
    return "Liblinear failed to converge, increase the number of iterations."


def kernel_machine_warning(given: Parameters) -> str:
    """What LIBSVM's wrapper says."""
    advice = "Consider pre-processing your data with StandardScaler or MinMaxScaler."
    return f"Solver terminated early (max_iter={given['max_iter']}).  {advice}"


def perceptron_warning(given: Parameters) -> str:
    """What the classes that learn row by row say."""
    return "Maximum number of iteration reached before convergence. Consider increasing max_iter to improve the fit."
