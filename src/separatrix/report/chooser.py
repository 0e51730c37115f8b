"""What the page needs to try out rules on the rows left out: counts by threshold, not the rows.

    two classes    answer the second where its probability is at least t: rows of each class at or above every t
    more           answer the likeliest class where its probability is at least t: right and wrong answers at or above every t

A rule is given back as the loss whose best action it is: t/(1 − t) is the ratio of the cost of a false alarm to that of a miss.
Reference: Chow, IEEE Transactions on Information Theory 16, 1970 (asking where every answer is expected to cost more).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.comparison.costs import class_costs
from separatrix.data.block import Float
from separatrix.report.tables import short

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison

STEPS, MOST_CLASSES = 200, 30


@dataclass(frozen=True)
class RuleChooser:
    """The choice of a rule, ready for the page."""

    words: str
    classes: list[str]
    scores: dict[str, Any]  # for the script
    start: int  # the threshold first shown, as a step
    costs: tuple[float, float]  # of a false alarm and of a miss
    fee: float

    @property
    def two(self) -> bool:
        """Whether there are two classes."""
        return len(self.classes) == 2


def rule_chooser(comparison: Comparison) -> RuleChooser | None:
    """The chooser for the recommended model; None for a model without probabilities, and for very many classes."""
    proba, codes = comparison.recommended.proba, comparison.codes
    classes = [str(name) for name in comparison.classes]
    if proba is None or len(classes) > MOST_CLASSES or comparison.recommended.family == "baseline":
        return None
    costs, weights = (1.0, 1.0), np.ones(len(codes)) if comparison.weights is None else comparison.weights
    if len(classes) == 2:
        above = [_at_least(proba[codes == k, 1], weights[codes == k]) for k in (0, 1)]
        given = class_costs(comparison.loss, comparison.actions, comparison.classes)
        if given is not None and given[0, 0] == given[1, 1] == 0.0 and min(given[0, 1], given[1, 0]) > 0.0:
            costs = (float(given[0, 1]), float(given[1, 0]))
        threshold, fee = costs[0] / sum(costs), round(0.2 * min(costs), 6)
        words = (
            f"Answer {short(classes[1])} where its probability is at least the threshold. The counts are of the rows left "
            "out, by the recommended model."
        )
    else:
        likeliest, right = proba.max(axis=1), proba.argmax(axis=1) == codes
        above = [_at_least(likeliest[some], weights[some]) for some in (right, ~right)]
        threshold, fee = 0.5, 0.2
        words = (
            "Answer the likeliest class where its probability is large enough, and ask a person otherwise. The counts are of "
            "the rows left out, by the recommended model."
        )
    scores = {"steps": STEPS, "above": above, "classes": classes, "model": "model.safetensors", "data": "new.csv"}
    return RuleChooser(words, classes, scores, round(threshold * STEPS), costs, fee)


def _at_least(values: Float, weights: Float) -> list[int]:
    """How many values, by weight and to whole numbers, are at least 0, 1/STEPS, …, 1."""
    thresholds, order = np.arange(STEPS + 1) / STEPS, np.argsort(values)
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    places = np.searchsorted(values[order], thresholds, side="left")
    return [round(float(below[-1] - below[place])) for place in places]
