"""What is private in scikit-learn and looked at here: the one place to mend when it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


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
