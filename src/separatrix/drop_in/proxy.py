"""The class that stands where scikit-learn's stood.

    class SVC(sklearn's SVC):   constructor, parameters, routing, documentation are scikit-learn's, untouched
        fit, partial_fit        by an estimator of ours that is held inside; its fitted attributes become the instance's
        predict, transform, …   by that estimator while there is one, by scikit-learn's class otherwise

A fit is handed back to scikit-learn's class, for this instance, when the parameters have no counterpart (`HandBack`) and when
ours refuses the input: scikit-learn then fits it, or refuses it in its own words. (A class that inherited from both would mix
two implementations of one name in every private method and in every property.)
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from copy import deepcopy
from functools import lru_cache, wraps
from inspect import getattr_static, isfunction
from typing import Any

from sklearn import get_config

from separatrix.drop_in.attributes import as_read
from separatrix.drop_in.chance import drawn_as_by
from separatrix.drop_in.engine import (
    balance_by_rows,
    check_classes,
    check_labels,
    check_part,
    engine_for,
    fitted_attributes,
    in_their_words,
    is_fitted,
    show_text,
)
from separatrix.drop_in.parameters import HandBack
from separatrix.drop_in.pickles import revive
from separatrix.drop_in.record import SwapRecord
from separatrix.drop_in.swaps import Swap

ANSWERS = (
    *("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function"),
    *("transform", "get_feature_names_out"),
)


class StandInType(ABCMeta):
    """The type of these classes: what is an instance of scikit-learn's class is one of the class that stands for it."""

    swap: Swap

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        # By the classes' own lists: an abstract base would ask its subclasses, of which this is one, without an end.
        wanted = cls.swap.original if "swap" in vars(cls) else cls
        return wanted in subclass.__mro__


def stand_in(swap: Swap, record: SwapRecord) -> type[Any]:
    """The class that stands for scikit-learn's; its fits are by ours while the record says that it is swapped."""
    original = swap.original
    space: dict[str, Any] = {
        "__doc__": original.__doc__,
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__sklearn_tags__": _tags(original),
        "__getattr__": _get,
        "__setattr__": _set,
        "__reduce_ex__": _reduce,
        "__copy__": lambda self: _copy(self, dict),
        "__deepcopy__": lambda self, memo: _copy(self, lambda held: deepcopy(held, memo)),
        "swap": swap,
        "separatrix_model_": None,
    }
    for name in ("fit", "partial_fit"):
        if hasattr(original, name):
            space[name] = _training(getattr(original, name), swap, record)
    for name in ANSWERS:
        theirs = getattr_static(original, name, None)
        if isfunction(theirs):
            space[name] = _answering(theirs)
    made = StandInType(original.__name__, (original,), space)
    for name in dir(original):
        if name.startswith("_") or not (name.endswith("_") or name in ANSWERS):
            continue
        theirs = getattr_static(original, name)
        if isinstance(theirs, property) and name.endswith("_"):
            setattr(made, name, property(_reading(name, theirs), theirs.fset, theirs.fdel, theirs.__doc__))
        elif name in ANSWERS and not isfunction(theirs):
            setattr(made, name, _Conditional(name, theirs))
    return made


def _tags(original: type[Any]) -> Callable[[Any], Any]:
    def tags(self: Any) -> Any:
        """scikit-learn's, but for sparse rows: all of ours take them."""
        found = original.__sklearn_tags__(self)
        found.input_tags.sparse = not found.input_tags.pairwise
        return found

    return tags


def _training(theirs: Callable[..., Any], swap: Swap, record: SwapRecord) -> Callable[..., Any]:
    """`fit` or `partial_fit`: by ours, or handed back."""

    @wraps(theirs)
    def train(self: Any, X: Any, *more: Any, **options: Any) -> Any:
        continued = theirs.__name__ == "partial_fit" and is_fitted(self)
        if not record.swapped or (continued and self.separatrix_model_ is None):
            return _by_scikit_learn(self, theirs, X, *more, **options)
        try:
            if theirs.__name__ == "partial_fit":
                check_part(self, continued, more, options)
            check_labels(swap, more, options)
            given = swap.given(self)
            if not continued and not get_config()["skip_parameter_validation"]:
                swap.check(given, self._parameter_constraints, type(self).__name__)
            model = self.separatrix_model_ if continued else engine_for(self, swap, X, given)
            balance_by_rows(swap, model, theirs, X, *more, **options)
            with record.timed(), drawn_as_by(swap.draws, given, model), in_their_words(model, swap, given):
                getattr(model, theirs.__name__)(X, *more, **options)
                check_classes(self, model)
                show_text(swap, model)
        except (HandBack, ValueError, TypeError) as refusal:
            # The last two are how our estimators refuse an input. Any other error is a fault of ours, and is shown. Rows that
            # are to be added to a fit of ours cannot go elsewhere.
            if continued:
                raise
            with record.handed_back_for(str(refusal), told="_handed_back" in vars(self)):
                _by_scikit_learn(self, theirs, X, *more, **options)
            self.__dict__["_handed_back"] = str(refusal)
            return self
        _publish(self, model, X, given)
        return self

    return train


def _by_scikit_learn(self: Any, theirs: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    before = dict(self.__dict__)
    model = self.__dict__.pop("separatrix_model_", None)
    if not getattr(self, "warm_start", False):
        _forget(self)
    try:
        return theirs(self, *arguments, **options)
    except BaseException:
        if model is not None:  # what scikit-learn refuses leaves the model as it was
            self.__dict__.clear()
            self.__dict__.update(before)
        raise


def _publish(self: Any, model: Any, X: Any, given: dict[str, Any]) -> None:
    """The fitted attributes of ours become the instance's, as scikit-learn's class shows them."""
    _forget(self)
    found = fitted_attributes(model)
    found |= self.swap.presenter(given, X, found)
    self.__dict__.update(found, separatrix_model_=model, _shown=tuple(found))


def _forget(self: Any) -> None:
    """Take off the attributes of a fit by ours."""
    for name in self.__dict__.pop("_shown", ()):
        self.__dict__.pop(name, None)


def _answering(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(theirs)
    def answer(self: Any, *arguments: Any, **options: Any) -> Any:
        model = self.separatrix_model_
        if model is None:
            return theirs(self, *arguments, **options)
        found = getattr(model, theirs.__name__)(*arguments, **options)
        shown = self.swap.answers.get(theirs.__name__)
        return found if shown is None else shown(model, found)

    return answer


class _Conditional:
    """A method that scikit-learn's class has for some parameters only."""

    def __init__(self, name: str, theirs: Any) -> None:
        self.name, self.theirs = name, theirs
        self.__doc__ = theirs.__doc__

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        method = self.theirs.__get__(instance, owner)  # AttributeError where it has none
        if instance is None or instance.separatrix_model_ is None:
            return method
        return getattr(instance.separatrix_model_, self.name, method)


def _reading(name: str, theirs: property) -> Callable[[Any], Any]:
    """An attribute that scikit-learn's class computes when it is asked for it."""

    def read(self: Any) -> Any:
        model = self.separatrix_model_
        return as_read(name, model, vars(self)) if hasattr(model, name) else theirs.__get__(self, type(self))

    return read


def _get(self: Any, name: str) -> Any:
    """Fitted attributes that ours computes when it is asked for them."""
    kind: Any = type(self)
    if name in _named_by(kind):
        known: Any = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
        if hasattr(known, "__get__"):  # it has raised an AttributeError: scikit-learn's, with its reason
            return known.__get__(self, kind)
    model = self.__dict__.get("separatrix_model_")
    if model is None or not name.endswith("_") or name.startswith("_") or name in vars(model):  # the last: was deleted
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)
    return as_read(name, model, vars(self))


@lru_cache(maxsize=256)
def _named_by(kind: Any) -> frozenset[str]:
    """What a class and those that it is made of define: scikit-learn asks every copy for several names that they do not."""
    return frozenset(name for base in kind.__mro__ for name in vars(base))


def _set(self: Any, name: str, value: Any) -> None:
    """Attributes that are set after the fit count for ours too; so do parameters, if they are the same there."""
    model = self.separatrix_model_
    if model is None:
        object.__setattr__(self, name, value)
        return
    held = vars(self).get(name)
    object.__setattr__(self, name, value)
    if name in vars(model) and (name.endswith("_") or vars(model)[name] is held):
        setattr(model, name, value)


def _copy(self: Any, copied: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    made = object.__new__(type(self))
    made.__dict__.update(copied(self.__dict__))
    return made


def _reduce(self: Any, protocol: int) -> Any:
    """Subclasses are pickled as every object is; the class itself as what it stands for where the pickle is loaded."""
    if "swap" not in vars(type(self)):
        return object.__reduce_ex__(self, protocol)
    return revive, (self.swap.name, self.__getstate__())
