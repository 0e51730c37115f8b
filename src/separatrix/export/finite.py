"""Whether the numbers of a model are numbers: NaN and infinity are refused wherever no model has them.

records       what was measured during the fit and takes no part in a prediction: anything
parameters    as the user gave them: infinite (C=inf is no penalty), never NaN
log 0         of a value that never occurs, −∞; the constants of a class of prior 0, and their differences, ±∞
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from separatrix.comparison.table_model import TableModel
from separatrix.export.registry import name_of
from separatrix.export.state import attributes
from separatrix.inference.estimates import Inference
from separatrix.result import Certificate, Fit

_RECORDS = (Fit, Certificate, Inference)
_MEASURED = {"scores_", "cv_results_", "selection_", "_pocket_mistakes", "pareto_k_", "log_evidence_"}
# Of scikit-learn's imputers and encoders: what stands for a missing value, and the fill of an empty column.
_MISSING = {"missing_values", "statistics_", "categories_"}
_LOGARITHMS = {"class_log_prior_", "feature_log_prob_", "logs"}
_CONSTANTS = {"intercept_", "coefs_paths_", "_centred"}


def check_finite_numbers(model: Any) -> None:
    """Raise a ValueError that names the attribute where a model holds NaN or infinity and none has it."""
    name = type(model).__name__
    for where, attribute, values, infinite in _numbers(model, name, "", False, set()):
        finite = np.isfinite(values)
        if finite.all():
            continue
        bad = values[~finite]
        allowed = infinite and not np.isnan(bad).any()
        if attribute in _MISSING and np.isnan(bad).all():
            continue
        if not allowed and not (attribute in _LOGARITHMS and np.isneginf(bad).all()):
            what = "NaN" if np.isnan(bad).any() else "infinity"
            raise ValueError(f"{where} holds {what} in {bad.size} of {values.size} numbers")


def has_impossible_class(held: Mapping[str, Any]) -> bool:
    """Whether the attributes of a model are those of one with a class that is never chosen, whose constant is infinite.

    Its prior is 0, or it has no rows of positive weight: then all its coefficients are 0.
    """
    if np.any(np.asarray(held.get("priors_", 1.0)) == 0.0):
        return True
    coef, intercept = held.get("coef_"), held.get("intercept_")
    if not isinstance(coef, np.ndarray) or not isinstance(intercept, np.ndarray) or coef.shape[:1] != intercept.shape:
        return False
    infinite = np.isinf(intercept)
    return bool(infinite.any()) and not np.asarray(coef)[infinite].any()


def _numbers(
    value: Any, where: str, attribute: str, infinite: bool, seen: set[int]
) -> Iterator[tuple[str, str, np.ndarray[Any, Any], bool]]:
    """Every number and array of numbers: where it is, the attribute it is in, and whether it may be infinite."""
    if isinstance(value, float | np.floating):
        yield where, attribute, np.atleast_1d(np.asarray(value)), infinite
        return
    if value is None or isinstance(value, (bool, int, str, *_RECORDS)) or id(value) in seen:
        return
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        for field in value.dtype.names or [None]:
            part = value if field is None else value[field]
            if part.dtype.kind == "f":
                yield where, attribute, part, infinite
        return
    seen.add(id(value))
    if sp.issparse(value):
        yield where, attribute, value.data, infinite
        return
    items: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        items = ((f"{where}[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | np.ndarray):
        listed = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        items = ((f"{where}[{at}]", item) for at, item in enumerate(listed))
    elif name_of(type(value)) is not None:
        settings = isinstance(value, BaseEstimator) and not isinstance(value, TableModel)
        parameters = value.get_params(deep=False) if settings else {}
        all_held = attributes(value)
        never = has_impossible_class(all_held)
        for name, held in all_held.items():
            if name not in _MEASURED and not (name == "scores" and isinstance(value, TableModel)):
                infinite = name in parameters or (never and name in _CONSTANTS)
                yield from _numbers(held, f"{where}.{name}", name, infinite, seen)
    for place, item in items:
        yield from _numbers(item, place, attribute, infinite, seen)
