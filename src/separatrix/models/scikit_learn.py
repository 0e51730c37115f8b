"""What is private in scikit-learn and looked at here: the one place to mend when it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.metadata_routing import _raise_for_params as raise_for_params
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples

__all__ = [
    "HasMethods",
    "Interval",
    "RegisteredName",
    "ScorerParts",
    "StrOptions",
    "check_method_params",
    "check_parameters",
]
__all__ += ["num_samples", "raise_for_params", "routing_enabled", "safe_indexing", "safe_split", "scorer_parts"]


class RegisteredName(StrOptions):  # type: ignore[misc]  # scikit-learn ships no types
    """A parameter that names an entry of a registry; entries that are added later count too."""

    def __init__(self, names: Callable[[], set[str]]) -> None:
        self._names = names
        super().__init__(names())

    @property
    def options(self) -> set[str]:
        """The names at present."""
        return self._names()

    @options.setter
    def options(self, value: set[str]) -> None:
        """Set by scikit-learn's constructor; the registry decides."""


def check_parameters(constraints: Mapping[str, Any], values: Mapping[str, Any], owner: str) -> None:
    """Refuse values that meet none of their constraints, in scikit-learn's words."""
    validate_parameter_constraints(constraints, values, caller_name=owner)


class ScorerParts(NamedTuple):
    """What `sklearn.metrics.make_scorer` was given."""

    function: Callable[..., Any]
    greater_is_better: bool
    response_method: Any
    options: dict[str, Any]


def scorer_parts(scorer: Any) -> ScorerParts | None:
    """The parts of a scorer of scikit-learn; ``None`` for any other callable."""
    held = getattr(scorer, "__dict__", {})
    if not {"_score_func", "_sign", "_response_method"} <= held.keys():
        return None
    return ScorerParts(held["_score_func"], held["_sign"] == 1, held["_response_method"], held.get("_kwargs", {}))
