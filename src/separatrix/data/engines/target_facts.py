"""What partitions know of their targets, put together: the classes of all, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.engines.partition import Failed, TargetFacts


def union(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The sorted distinct labels of partitions."""
    there = [own for own in labels if len(own)]
    return np.unique(np.concatenate(there)) if there else np.empty(0)


def facts_of(answers: Iterable[TargetFacts | Failed | None]) -> list[TargetFacts]:
    """Facts of all partitions that have rows; what is wrong with their targets is said of all rows at once."""
    facts: list[TargetFacts] = []
    for fact in answers:
        if isinstance(fact, Failed):
            raise fact.error
        facts += [] if fact is None else [fact]
    if missing := sum(fact.missing for fact in facts):
        numbers = any(fact.classes.dtype.kind == "f" for fact in facts)
        what, whose = ("NaN or infinity", "target") if numbers else ("NaN or None", "label")
        raise ValueError(f"Input y contains {what} in {missing} rows; drop the rows without a {whose}.")
    if bad := sum(fact.bad_weights for fact in facts):
        raise ValueError(f"sample_weight contains NaN or infinity in {bad} rows.")
    if negative := sum(fact.negative for fact in facts):
        raise ValueError(f"sample_weight is negative in {negative} rows; weights count rows, so they must be ≥ 0.")
    if not facts:
        raise ValueError("The data have no rows: at least one is needed.")
    if not any(fact.counts for fact in facts):
        raise ValueError("The total of sample_weight is zero, so no row counts; give at least one positive weight.")
    return facts
