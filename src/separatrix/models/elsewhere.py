"""Answers for rows that an engine has: computed lazily, in their own partitions."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from functools import partial, wraps
from typing import Any

from separatrix.data.device.tensors import beside, on_device
from separatrix.data.dispatch import answered_elsewhere, is_elsewhere, is_spark, named_table

_asked: ContextVar[bool] = ContextVar("_asked", default=False)
"""Whether a method of rows on a device is at work: those that it calls answer with arrays of the host."""


def answers_elsewhere(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of rows that answers those of an engine lazily, in their own partitions."""

    @wraps(method)
    def answer(self: Any, X: Any, *more: Any, **options: Any) -> Any:
        if on_device(X) and not _asked.get():
            token = _asked.set(True)
            try:
                return beside(method(self, X, *more, **options), X)
            finally:
                _asked.reset(token)
        X = named_table(X)
        if options.get("return_std") and is_elsewhere(X):
            raise ValueError("return_std needs rows in memory or in files: collect some of them first.")
        if not is_elsewhere(X):
            return method(self, X, *more, **options)
        self._check_ready()
        if method.__name__ == "transform" and is_spark(X):
            return self._beside(X)
        asked = partial(_answer_of, copy(self), method.__name__, more, options)  # of the model as it is now
        columns = getattr(self, "feature_names_in_", None)
        if self._encoding is not None:
            columns = [column.name for column in self._encoding.schema.used]
        return answered_elsewhere(asked, X, columns, self._answer_names(method.__name__))

    return answer


def _answer_of(model: Any, method: str, more: tuple[Any, ...], options: dict[str, Any], rows: Any) -> Any:
    return getattr(model, method)(rows, *more, **options)
