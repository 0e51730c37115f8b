"""Fitted attributes, and words of warnings, as scikit-learn's classes have them where ours differ.

rows of float32      coefficients, means and variances of float32 (what the certificate is about stays as it was found)
sparse rows          attributes of a kernel machine are csr_matrix, whose * is a product of matrices, whatever X is
solver_              scikit-learn's name of the solver that was asked for
a fit that fell short of its tolerance      scikit-learn's sentence, then ours
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from separatrix.drop_in.parameters import Parameters
from separatrix.models.base import is_single
from separatrix.settings import outside

Attributes = dict[str, Any]
Presenter = Callable[[Parameters, Any, Attributes], Attributes]
"""Of scikit-learn's parameters, X and the attributes of ours: those that are to be shown otherwise."""
Warner = Callable[[Parameters], str]
Answerer = Callable[[Any, Any], Any]
"""Of the estimator of ours and an answer of it: the answer as scikit-learn gives it."""


def as_found(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """Nothing differs."""
    return {}


def in_single(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """The coefficients of a linear rule in the precision of the rows."""
    return _rounded(X, found, "coef_", "intercept_")


def discriminant_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`LinearDiscriminantAnalysis`: the priors too."""
    return _rounded(X, found, "coef_", "intercept_", "priors_")


def quadratic_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`QuadraticDiscriminantAnalysis`: what it is made of in the precision of the rows, but for the priors."""
    return _rounded(X, found, "means_", "covariance_")


def gaussian_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`GaussianNB`: the same, and a number that has NumPy's methods."""
    smallest = np.float64(found["epsilon_"])
    kept = ("class_count_", "class_prior_", "theta_", "var_", "epsilon_")
    return {"epsilon_": smallest, **_rounded(X, {**found, "epsilon_": smallest}, *kept)}


def _rounded(X: Any, found: Attributes, *names: str) -> Attributes:
    """These attributes, where there are any, for rows of float32; a list of arrays is one of rounded arrays."""
    if not is_single(X):
        return {}
    with np.errstate(over="ignore", under="ignore"):
        return {
            name: [np.float32(part) for part in value] if isinstance(value, list) else np.float32(value)
            for name, value in ((name, found.get(name)) for name in names)
            if isinstance(value, np.ndarray | np.float64 | list)  # an intercept that is not fitted is a plain zero
        }


def stochastic_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`SGDClassifier`, `PassiveAggressiveClassifier`: the last coefficients and their means by scikit-learn's private names."""
    kept = ("standard_coef_", "standard_intercept_", "average_coef_", "average_intercept_")
    return {**in_single(given, X, found), **{f"_{name[:-1]}": found[name] for name in kept if name in found}}


def logistic_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`LogisticRegression`: LIBLINEAR computes in double precision, and no intercept is a number there."""
    if given["solver"] != "liblinear":
        return in_single(given, X, found)
    return {} if given["fit_intercept"] else {"intercept_": 0.0}


def ridge_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`Ridge`: the name of the solver too, and no count of steps for those that count none."""
    chosen = "lbfgs" if given["positive"] else "sparse_cg" if issparse(X) and given["fit_intercept"] else "cholesky"
    solver = chosen if given["solver"] == "auto" else given["solver"]
    counts = {} if solver in ("lsqr", "sag", "saga", "lbfgs") else {"n_iter_": None}
    return {**in_single(given, X, found), **counts, "solver_": solver}


def ridge_classifier_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeClassifier`: for two classes a vector of coefficients; no intercept is a number."""
    return _as_regression(given, found, ridge_attributes(given, X, found))


def _as_regression(given: Parameters, found: Attributes, shown: Attributes) -> Attributes:
    coef = {**found, **shown}["coef_"]
    shown |= {"coef_": coef[0]} if len(coef) == 1 else {}
    return shown if given["fit_intercept"] else {**shown, "intercept_": 0.0}


def ridge_cv_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeCV`; and the warning about a way of decomposing that scikit-learn has not for sparse rows."""
    if given["gcv_mode"] == "svd" and given["cv"] is None and issparse(X):
        warnings.warn(_SVD, FutureWarning, stacklevel=outside())
    return {**in_single(given, X, found), **_chosen(given, found)}


def ridge_classifier_cv_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`RidgeClassifierCV`: for two classes a vector of coefficients; no intercept is a number."""
    return _as_regression(given, found, {**in_single(given, X, found), **_chosen(given, found)})


def _chosen(given: Parameters, found: Attributes) -> Attributes:
    """The penalty and its score: numbers that have NumPy's methods where they come from folds, or from squared errors."""
    if np.ndim(found["alpha_"]):
        return {}
    of_folds = given["cv"] is not None
    score = found["best_score_"] if given["scoring"] is not None and not of_folds else np.float64(found["best_score_"])
    return {"best_score_": score, **({"alpha_": np.float64(found["alpha_"])} if of_folds else {})}


def logistic_cv_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`LogisticRegressionCV`: shares of the absolute values that were not given are shown as none; a single one as a number."""
    asked = given["l1_ratios"]
    if asked is not None and not (isinstance(asked, str) and asked == "warn"):
        return {}
    shown: Attributes = {
        name: np.full(np.shape(found[name]), None) for name in ("l1_ratio_", "l1_ratios_") if name in found
    }
    if "l1_ratio_" in shown and not np.ndim(found["l1_ratio_"]):
        return {**shown, "l1_ratio_": float(given["penalty"] == "l1")}
    if not given["refit"]:  # a mean over the folds
        return {**shown, "l1_ratio_": np.zeros(np.shape(found["l1_ratio_"]))}
    return shown


def kernel_machine_attributes(given: Parameters, X: Any, found: Attributes) -> Attributes:
    """`SVC`, `NuSVC`: support vectors of double precision, and sparse ones as matrices."""
    rows, multipliers = found["support_vectors_"], found["dual_coef_"]
    shown = {"support_vectors_": rows.astype(np.float64, copy=False)}
    if issparse(rows):
        shown["support_vectors_"] = csr_matrix(shown["support_vectors_"])
    return {**shown, "dual_coef_": csr_matrix(multipliers)} if issparse(multipliers) else shown


def without_volume(model: Any, scores: Any) -> Any:
    """The scores of Gaussian classes without log (2π)^(d/2), which all of them have: those of three classes or more."""
    return scores + 0.5 * model.n_features_in_ * _LOG_2PI if np.ndim(scores) > 1 else scores


_LOG_2PI = float(np.log(2.0 * np.pi))
_SVD = (
    "The 'svd' mode is not supported for sparse X, we fallback to `gcv_mode='eigen'`. Passing `gcv_mode='svd'` on sparse X "
    "will raise an error in 1.11, use the default or pass `gcv_mode='eigen'` to suppress this warning."
)


def as_read(name: str, model: Any, shown: Attributes) -> Any:
    """An attribute that is computed when it is asked for, beside those that are shown.

    The planes of a kernel machine are sparse where its rows are; singular values and axes have the precision of what is shown.
    """
    value = getattr(model, name)
    if name == "coef_" and issparse(getattr(model, "dual_coef_", None)):
        planes = csr_matrix(value)
        planes.data.flags.writeable = False
        return planes
    beside = shown.get(_BESIDE.get(name, ""))
    if getattr(beside, "dtype", None) != np.float32:
        return value
    with np.errstate(over="ignore", under="ignore"):
        return [np.float32(part) for part in value] if isinstance(value, list) else np.float32(value)


# An attribute by whose precision another is computed.
_BESIDE = {"singular_": "coef_", "rotations_": "means_", "scalings_": "means_"}


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
