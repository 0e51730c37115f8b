"""Whether the parts of a loaded model go together: a file may hold arrays of any shape.

names     header and state agree; classes occur once
shapes    a row of `coef_` and a constant for every score, a column for every feature, all of them numbers
answers   one row is predicted: probabilities are numbers, one per class, and sum to 1
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from separatrix.comparison.table_model import TableModel
from separatrix.export.finite import check_finite_numbers, has_impossible_class
from separatrix.export.registry import name_of
from separatrix.geometry.score_form import score_form_of


def article(name: str) -> str:
    """A name of a class with its article."""
    return f"an {name}" if name[:1] in "AEIOU" else f"a {name}"


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself; one that ends in somebody else's is refused."""
    from sklearn.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return model
    if model.memory is not None:
        raise ValueError("its pipeline keeps fits in a folder; a model file holds pipelines with memory=None.")
    last = model.steps[-1][1]
    if not isinstance(last, BaseEstimator) or not type(last).__module__.startswith(("separatrix.", "sklearn.pipeline")):
        raise ValueError(
            f"its pipeline ends in {last if last is None else type(last).__name__}, not in a model of separatrix."
        )
    return last_step(last)


def described(model: Any) -> dict[str, Any]:
    """What `inspect_model` gives without making the model."""
    if isinstance(model, TableModel):
        return {
            "family": model.family,
            "classes": model.classes_.tolist(),
            "schema": model.schema.to_json(),
            "scores": _plain(model.scores),
        }
    names = getattr(model, "feature_names_in_", None)
    return {
        "family": type(model).__name__,
        "classes": _plain(getattr(model, "classes_", None)),
        "schema": {
            "columns": int(getattr(model, "n_features_in_", 0)) if names is None else [str(name) for name in names]
        },
        "scores": None,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def check_model(model: Any, header: dict[str, str]) -> None:
    """Raise, with any exception, where parts of the model do not fit: better here than in production."""
    if name_of(type(model)) is None or not isinstance(model, BaseEstimator | TableModel):
        raise TypeError(f"the file holds {article(type(model).__name__)}")
    for name, value in described(model).items():
        # As text: NaN, which a score may be, is not equal to itself.
        if json.dumps(json.loads(header[name])) != json.dumps(value):
            raise ValueError(f"the header and the model disagree about the {name}")
    for estimator in _estimators(model):
        _check_arrays(estimator)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if isinstance(model, TableModel):
            _check_table_model(model)
        else:
            # Which texts the steps of a pipeline know, and want, is theirs to say: its model is asked.
            last = last_step(model)
            _ask(last, _row(last))
    check_finite_numbers(model)


def _check_table_model(model: TableModel) -> None:
    import pyarrow as pa

    n_classes, codes = len(model.classes_), np.asarray(model.estimator.classes_)
    if model.classes_.tolist() != list(model.schema.classes) or len(set(model.schema.classes)) < n_classes:
        raise ValueError("the classes are not those of the schema")
    if codes.dtype.kind not in "iu" or not np.isin(codes, np.arange(n_classes)).all():
        raise ValueError(f"the estimator's classes are not among the codes of {n_classes} classes")
    if model.loss is not None and model.actions is not None:
        if not model.has_probabilities:
            raise ValueError("it has a loss, and its estimator has no probabilities")
        if np.shape(model.loss) != (n_classes, len(model.actions)) or not np.isfinite(model.loss).all():
            raise ValueError(f"its loss is not a table of {n_classes} classes times {len(model.actions)} actions")
    nothing = pa.table({column.source or column.name: pa.nulls(1, pa.string()) for column in model.schema.columns})
    _ask(model.estimator, model.encode(nothing))
    model.predict(nothing)
    if model.has_probabilities:
        model.predict_proba(nothing)


def _estimators(part: Any) -> Iterator[BaseEstimator]:
    """The estimators of a model: itself and those inside."""
    if isinstance(part, BaseEstimator) and not isinstance(part, TableModel):
        yield part
    held = vars(part) if isinstance(part, BaseEstimator) else part
    if isinstance(held, dict | list | tuple):
        for item in held.values() if isinstance(held, dict) else held:
            yield from _estimators(item)


def _check_arrays(estimator: Any) -> None:
    held = vars(estimator)
    classes = held.get("classes_")
    if isinstance(classes, np.ndarray) and len(set(classes.tolist())) < classes.size:
        raise ValueError(f"a class occurs twice in classes_ of {type(estimator).__name__}")
    if held.get("coef_") is None:
        return
    coef, intercept = held["coef_"], np.asarray(held.get("intercept_", 0.0))
    _check_numbers(coef.data if sp.issparse(coef) else np.asarray(coef), "coef_")
    _check_numbers(intercept[~np.isinf(intercept)] if has_impossible_class(held) else intercept, "intercept_")
    shape = np.shape(coef)
    if shape[-1] != held.get("n_features_in_", shape[-1]):
        raise ValueError(f"coef_ has the shape {shape}, for {held['n_features_in_']} columns")
    if intercept.ndim and intercept.shape != shape[:-1]:
        raise ValueError(f"coef_ has the shape {shape} and intercept_ {intercept.shape}")
    if "thresholds_" in held:
        _check_thresholds(held)
        return
    if isinstance(classes, np.ndarray) and score_form_of(estimator).link != "labels":
        n_classes = len(classes)
        if len(shape) != 2 or shape[0] not in ({1, n_classes} if n_classes < 3 else {n_classes}):
            raise ValueError(f"coef_ has the shape {shape}, for {n_classes} classes")


def _check_numbers(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        raise ValueError(f"{name} holds what is not a number")


def _ask(estimator: Any, row: Any) -> None:
    n_classes = len(getattr(estimator, "classes_", ()))
    single = {1} if n_classes == 2 else set()
    sizes = {"predict_proba": {n_classes}, "decision_function": {n_classes, n_classes * (n_classes - 1) // 2} | single}
    methods = ("predict", "predict_proba", "decision_function") if hasattr(estimator, "predict") else ("transform",)
    for method in methods:
        if method != "predict" and not hasattr(estimator, method):
            continue
        answer = np.asarray(getattr(estimator, method)(row))
        if len(answer) != 1 or answer.size not in sizes.get(method, {answer.size}):
            raise ValueError(f"{method} gives an answer of shape {answer.shape}")
        if method == "predict_proba" and not abs(answer.sum() - 1.0) < 1e-6:  # NaN is not less either
            raise ValueError(f"{method} gives probabilities that sum to {answer.sum()}")


def _row(model: Any) -> Any:
    """A row that the model can read: nothing is known in it, or all is 0."""
    from separatrix.models.naive_bayes.mixed_nb import MixedNB

    kept = getattr(model, "machine_rows_", None)  # machines on precomputed kernels: all rows' values are given
    width = int(model.n_features_in_) if kept is None else 1 + max(int(at.max()) for at in kept)
    if not any(isinstance(estimator, MixedNB) for estimator in _estimators(model)):
        return np.zeros((1, width))
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return np.full((1, width), None, dtype=object)
    import pyarrow as pa

    return pa.table({str(name): pa.nulls(1, pa.float64()) for name in names})


def _check_thresholds(held: dict[str, Any]) -> None:
    """Ordered classes have one vector of coefficients, and rising thresholds between those that have weight."""
    thresholds, classes, places = np.asarray(held["thresholds_"]), held["classes_"], held.get("_places")
    _check_numbers(thresholds, "thresholds_")
    counted = len(classes) if places is None else len(places)
    if np.ndim(held["coef_"]) != 1 or thresholds.shape != (counted - 1,) or not (np.diff(thresholds) > 0).all():
        raise ValueError(f"thresholds_ has the shape {thresholds.shape} for {counted} classes, or does not rise")
    if sorted(map(str, np.asarray(held["order_"]).tolist())) != sorted(map(str, classes.tolist())):
        raise ValueError("order_ does not hold the classes")
