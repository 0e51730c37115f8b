"""scikit-learn's parameters, read as ours.

names of solvers     which optimum is meant, not the way to it: ours takes the way that costs least
deprecated ones      read as they are meant, with scikit-learn's warning
no counterpart       `HandBack`, with the reason
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from separatrix.settings import outside

Parameters = dict[str, Any]
Reader = Callable[[Parameters], Parameters]


class HandBack(Exception):
    """Ours has no counterpart to what was asked for; the reason is the message."""


def as_given(given: Parameters) -> Parameters:
    """The parameters mean the same."""
    return given


def logistic(given: Parameters) -> Parameters:
    """`LogisticRegression`: every solver finds the same optimum, so the cheapest is taken."""
    penalty, ratio = given["penalty"], given["l1_ratio"]
    if penalty == "deprecated":
        if ratio is None:
            _warn(_NO_RATIO)
        penalty = None if given["C"] == np.inf else _penalty_of([ratio or 0.0])
    else:
        _warn(_PENALTY.format(one="l1_ratio", all="'l1_ratio' or 'C'", no="C=np.inf"))
        _check_ratio(penalty, ratio, given["C"])
    if given["n_jobs"] is not None:
        _warn(_N_JOBS.format(given["n_jobs"]))
    _check_solver(given["solver"], penalty, given["dual"])
    given = {**given, "penalty": penalty, "l1_ratio": ratio or 0.0, "tol": _relative_gap(given["tol"])}
    return {**given, "solver": "auto", "n_jobs": None}


def logistic_cv(given: Parameters) -> Parameters:
    """`LogisticRegressionCV`: the same, and defaults that scikit-learn is about to change are those of today."""
    ratios = _now(given["l1_ratios"], None, _NEW_RATIOS)
    scoring = _now(given["scoring"], None, _NEW_SCORING) or "accuracy"
    legacy = _now(given["use_legacy_attributes"], True, _NEW_ATTRIBUTES)
    if given["penalty"] == "deprecated":
        if given["l1_ratios"] is None:
            _warn(_NO_RATIOS)
        penalty = _penalty_of([0.0] if ratios is None else ratios)
    else:
        penalty = given["penalty"]
        _warn(_PENALTY.format(one="l1_ratios", all="'l1_ratios' and 'Cs'", no="Cs=(np.inf,)"))
    if penalty is None or (ratios is None and penalty == "elasticnet"):
        raise HandBack(f"penalty={penalty!r} without l1_ratios")
    _check_solver(given["solver"], penalty, given["dual"])
    given = {**given, "penalty": penalty if penalty != "elasticnet" else "auto", "l1_ratios": ratios}
    cv = given["cv"]
    if cv is None or isinstance(cv, Integral):  # ours would draw other folds, by the contents of the rows
        from sklearn.model_selection import StratifiedKFold  # which scripts that ask for no folds may never import

        given = {**given, "cv": StratifiedKFold(5 if cv is None else cv)}
    given = {**given, "scoring": scoring, "use_legacy_attributes": legacy, "tol": _relative_gap(given["tol"])}
    return {**given, "solver": "auto"}


def ridge(given: Parameters) -> Parameters:
    """`Ridge`, `RidgeClassifier`: the same parameters, in the combinations that scikit-learn has a solver for."""
    solver, positive = given["solver"], given["positive"]
    if solver != "auto" and (solver == "lbfgs") != positive:
        raise HandBack(f"solver={solver!r} with positive={positive}, which scikit-learn refuses")
    return given


def ridge_cv(given: Parameters) -> Parameters:
    """`RidgeCV`: a number of folds means scikit-learn's; ours would draw others, by the contents of the rows."""
    from sklearn.model_selection import KFold  # which scripts that ask for no folds may never import

    return {**given, "cv": KFold(given["cv"])} if isinstance(given["cv"], Integral) else given


def ridge_classifier_cv(given: Parameters) -> Parameters:
    """`RidgeClassifierCV`: the same, each with its share of every class."""
    from sklearn.model_selection import StratifiedKFold  # as above

    return {**given, "cv": StratifiedKFold(given["cv"])} if isinstance(given["cv"], Integral) else given


def stochastic(given: Parameters) -> Parameters:
    """`SGDClassifier`: the same parameters; growing steps are deprecated."""
    if given["power_t"] < 0:
        _warn(_POWER)
    return given


def kernel_machine(given: Parameters) -> Parameters:
    """`SVC`: the same parameters; asking for probabilities is deprecated."""
    if given["probability"] != "deprecated":
        _warn(_PROBABILITY.format(name="NuSVC" if "nu" in given else "SVC"))
    return given


def nu_machine(given: Parameters) -> Parameters:
    """`NuSVC`: the same, but that LIBSVM's has no use for weights of classes."""
    if given["class_weight"] is not None:
        raise HandBack("LIBSVM's machine of nu disregards class_weight, and ours does not")
    return kernel_machine(given)


def linear_machine(given: Parameters) -> Parameters:
    """`LinearSVC`: the same parameters, in the combinations that LIBLINEAR has a solver for."""
    penalty, loss, dual = given["penalty"], given["loss"], given["dual"]
    pairs = given["multi_class"] == "ovr"
    if pairs and ((penalty == "l1" and (dual is True or loss == "hinge")) or (loss == "hinge" and dual is False)):
        raise HandBack(f"penalty={penalty!r}, loss={loss!r}, dual={dual}, which scikit-learn refuses together")
    return given


def _relative_gap(tol: float) -> float:
    """scikit-learn's tolerance is of the gradient, by whose square the objective is above its minimum; ours is of that gap."""
    return min(tol, max(tol**2, 1e-10))


def _now(value: Any, today: Any, sentence: str) -> Any:
    """A default of "warn" is today's, with a warning about tomorrow's."""
    if isinstance(value, str) and value == "warn":
        _warn(sentence)
        return today
    return value


def _penalty_of(ratios: Any) -> str:
    shares = np.asarray(ratios)
    return "l2" if (shares == 0).all() else "l1" if (shares == 1).all() else "elasticnet"


def _check_solver(solver: str, penalty: str | None, dual: bool) -> None:
    """Combinations that scikit-learn refuses are left to it: the error is then in its own words."""
    sparse_coefficients, elastic = penalty in ("l1", "elasticnet"), penalty == "elasticnet"
    refused = (
        (sparse_coefficients and solver not in ("liblinear", "saga"))
        or (dual and solver != "liblinear")
        or (elastic and solver != "saga")
        or (solver == "liblinear" and (penalty is None or (penalty == "l1" and dual)))
    )
    if refused:
        raise HandBack(f"solver={solver!r} with penalty={penalty!r} and dual={dual}, which scikit-learn refuses")


def _check_ratio(penalty: str | None, ratio: float | None, C: float) -> None:
    if penalty == "elasticnet":
        if ratio is None:
            raise HandBack("penalty='elasticnet' without l1_ratio, which scikit-learn refuses")
        return
    if ratio is not None and 0 < ratio < 1:
        _warn(f"l1_ratio parameter is only used when penalty is 'elasticnet'. Got (penalty={penalty})", UserWarning)
    if (penalty == "l2" and ratio != 0) or (penalty == "l1" and ratio != 1):
        sentence = f"Inconsistent values: penalty={penalty} with l1_ratio={ratio}. "
        _warn(sentence + "penalty is deprecated. Please use l1_ratio only.", UserWarning)
    if penalty is None and C != 1.0:
        _warn("Setting penalty=None will ignore the C and l1_ratio parameters", UserWarning)


def _warn(sentence: str, category: type[Warning] = FutureWarning) -> None:
    warnings.warn(sentence, category, stacklevel=outside())


# scikit-learn 1.9's own sentences.
_PENALTY = (
    "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave 'penalty' set to its "
    "default value and use {all} instead. Use {one}=0 instead of penalty='l2', {one}=1 instead of penalty='l1', {one} set to "
    "a float between 0 and 1 instead of penalty='elasticnet', and {no} instead of penalty=None."
)
_PROBABILITY = (
    "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
    "`CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`"
)
_POWER = (
    "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. Use values in the range "
    "[0.0, inf) instead."
)
_NO_RATIO = (
    "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use 0<=l1_ratio<=1 instead."
)
_NO_RATIOS = (
    "'l1_ratios=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use an array-like with values"
    "in [0, 1] instead."
)
_N_JOBS = "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided 'n_jobs={}', please leave it unspecified."
_NEW_RATIOS = (
    "The default value for l1_ratios will change from None to (0.0,) in version 1.10. From version 1.10 onwards, only "
    "array-like with values in [0, 1] will be allowed, None will be forbidden. To avoid this warning, explicitly set a value, "
    "e.g. l1_ratios=(0,)."
)
_NEW_SCORING = (
    "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to 'neg_log_loss' in version 1.11. To "
    "silence this warning, explicitly set the scoring parameter: scoring='neg_log_loss' for the new, scoring='accuracy' or "
    "scoring=None for the old default."
)
_NEW_ATTRIBUTES = (
    "The fitted attributes of LogisticRegressionCV will be simplified in scikit-learn 1.10 to remove redundancy. Set"
    "`use_legacy_attributes=False` to enable the new behavior now, or set it to `True` to silence this warning during the "
    "transition period while keeping the deprecated behavior for the time being. The default value of use_legacy_attributes "
    "will change from True to False in scikit-learn 1.10. See the docstring of LogisticRegressionCV for more details."
)
