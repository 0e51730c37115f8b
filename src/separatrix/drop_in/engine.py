"""The estimator of ours inside a swapped one: when there is one, and what of it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import getattr_static, signature
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from separatrix.drop_in.parameters import HandBack
from separatrix.drop_in.swaps import Swap

# What a subclass may define without taking part in scikit-learn's computations.
_FREE = {"fit", "partial_fit", "fit_predict", "fit_transform", "score", "get_params", "set_params"}
# Rows that answers are NumPy arrays for, whatever `array_api_dispatch` says.
_ON_THE_HOST = ("numpy", "scipy", "builtins", "pandas", "polars", "pyarrow")


def engine_for(stand_in: Any, swap: Swap, X: Any, given: dict[str, Any]) -> Any:
    """Ours with the parameters of the instance; on a warm start the one of the fit before. `HandBack` where there is none."""
    if vars(stand_in).get("_skl_callbacks"):
        raise HandBack("callbacks watch the steps of scikit-learn's own solvers")
    if get_config()["array_api_dispatch"] and type(X).__module__.partition(".")[0] not in _ON_THE_HOST:
        raise HandBack(f"with array_api_dispatch the attributes are to be of {type(X).__module__}")
    own = _own_methods(type(stand_in), swap)
    if own:
        raise HandBack(f"{type(stand_in).__name__} defines {', '.join(own)}, which scikit-learn's own methods call")
    given = swap.reader(given)
    before = stand_in.separatrix_model_ if given.get("warm_start") else None
    if before is not None:
        vars(before).update(
            given
        )  # they are checked by its fit; `set_params` would list their names first, as long as a fit
        return before
    if given.get("warm_start") and is_fitted(stand_in):
        raise HandBack("a warm start from coefficients that scikit-learn found")
    made = swap.ours(**given)
    vars(made).update(swap.habits)
    return made


def _own_methods(kind: type[Any], swap: Swap) -> list[str]:
    """The methods of scikit-learn's class that a subclass of the user's overrides."""
    if "swap" in vars(kind):
        return []
    own = {
        name
        for base in kind.__mro__
        if "swap" not in vars(base) and swap.original in base.__mro__[1:]
        for name in vars(base)
    }
    own = {name for name in own - _FREE if not name.startswith("__") and hasattr(swap.original, name)}
    return sorted(name for name in own if callable(getattr_static(swap.original, name)))


def check_classes(stand_in: Any, model: Any) -> None:
    """Numbers of classes that ours fits and scikit-learn may refuse are left to it."""
    found = getattr(model, "classes_", None)
    if found is None or len(found) == 2 or isinstance(found, list):
        return
    if len(found) == 1:
        raise HandBack("there is one class only")
    if vars(stand_in).get("solver") == "liblinear":
        raise HandBack("there are more than two classes, which solver='liblinear' refuses")


def check_labels(swap: Swap, more: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Labels that are Python objects and no strings, which ours takes, are left to scikit-learn to refuse."""
    y = more[0] if more else options.get("y")
    if getattr(getattr(y, "dtype", None), "kind", "") == "O" and issubclass(swap.original, ClassifierMixin):
        check_classification_targets(y)


def balance_by_rows(swap: Swap, model: Any, train: Callable[..., Any], *call: Any, **options: Any) -> None:
    """Weights of balanced classes by the numbers of rows, where rows have weights and scikit-learn's class counts so."""
    if not (swap.rows_balance and isinstance(model.class_weight, str)):
        return
    arguments = signature(train).bind(model, *call, **options).arguments
    if arguments.get("sample_weight") is None or np.ndim(arguments["y"]) != 1:
        return
    classes, counts = np.unique(arguments["y"], return_counts=True)
    weights = len(arguments["y"]) / (len(classes) * counts)
    model.class_weight = dict(zip(classes.tolist(), weights.tolist(), strict=True))


def show_text(swap: Swap, model: Any) -> None:
    """Labels in the dtype of their own strings."""
    classes = getattr(model, "classes_", None)
    if swap.text_labels and isinstance(classes, np.ndarray) and classes.dtype.kind in "OU":
        model.classes_ = np.array(classes.tolist())


def check_part(stand_in: Any, continued: bool, more: tuple[Any, ...], options: dict[str, Any]) -> None:
    """The classes of a `partial_fit`, which ours may learn as they come: scikit-learn is told of all of them, at first."""
    classes = more[1] if len(more) > 1 else options.get("classes")
    if not continued and classes is None:
        raise HandBack("partial_fit without the classes on the first call, which scikit-learn refuses")
    if continued and classes is not None and not np.array_equal(stand_in.classes_, np.unique(classes)):
        known = stand_in.classes_
        raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {known!r}")


def is_fitted(stand_in: Any) -> bool:
    """Whether it has attributes of a fit, by whichever class."""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(stand_in))


@contextmanager
def in_their_words(model: Any, swap: Swap, given: dict[str, Any]) -> Iterator[None]:
    """A warning that the fit fell short begins with scikit-learn's sentence: filters know it by that."""
    if swap.warner is not None:
        model.warned_as = swap.warner(given)
    try:
        yield
    finally:
        vars(model).pop("warned_as", None)


def fitted_attributes(model: Any) -> dict[str, Any]:
    """The attributes of a fit by ours that are public."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
