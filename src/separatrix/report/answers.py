"""What a reader wants to know first, each in a sentence: how to use the model, and whether more rows would help.

A score that improves with the number of rows does so ever more slowly. Along log n the last sizes are nearly on a line, and its
slope times log 2 is about what twice the rows would bring, or more than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from separatrix.comparison.measures import SCORE_LABELS, by_guessing
from separatrix.comparison.streamed import StreamedComparison
from separatrix.report.tables import PageTable, count, fixed, number

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.evaluation import ModelEvaluation

_LAST = 3


def answers(comparison: Comparison | StreamedComparison) -> list[tuple[str, str]]:
    """Questions and their answers, for the top of the page."""
    found = [("to use it", "separatrix predict model.safetensors new.csv -o predictions.csv")]
    if not isinstance(comparison, StreamedComparison):
        found.append(("more rows?", more_rows(comparison)))
    reference = getattr(comparison, "nonlinear", None)
    if reference is not None:
        found.append(("linear enough?", reference.sentence))
    return found


def more_rows(comparison: Comparison) -> str:
    """Whether more rows would help, by the learning curve of the recommended model."""
    curve: dict[str, Any] = comparison.learning_curve
    if curve["given_up"]:
        return f"That cannot be said. {curve['given_up']}"
    sizes, test, train = (np.array(curve[name], dtype=float) for name in ("sizes", "test_mean", "train_mean"))
    if len(sizes) < _LAST:
        return "That cannot be said: there are too few rows to learn from fewer."
    label, sign = SCORE_LABELS[curve["score"]], -1.0 if curve["score"] == "accuracy" else 1.0
    slope = np.polyfit(np.log(sizes[-_LAST:]), sign * test[-_LAST:], 1)[0]
    gain, error = -slope * np.log(2.0), float(curve["test_error"][-1])
    counts = comparison.class_counts
    worth = 0.01 * by_guessing(counts / counts.sum(), curve["score"])
    now = f"its {label} is {fixed(test[-1])} with {count(int(sizes[-1]), 'row')}"
    gap = sign * (test[-1] - train[-1])
    if gain > max(error, worth):
        return f"Probably: {now}, and twice as many would improve it by about {number(gain, 2)}."
    if gain > worth:
        return (
            f"Perhaps a little: {now}, and twice as many may improve it by {number(gain, 2)}, less than its error of "
            f"{number(error, 2)}."
        )
    if gap > max(2.0 * error, 5.0 * worth):
        return (
            f"Hardly, by the last sizes: {now} and no longer improves. It does much better on the rows it has learnt from "
            f"({fixed(train[-1])}), so a stronger penalty or fewer columns may help."
        )
    return f"Hardly: {now} and no longer improves. Better columns would help more."


def holdout_table(found: ModelEvaluation | None) -> PageTable | None:
    """The scores on rows set aside, with intervals."""
    if found is None:
        return None
    cells = [[SCORE_LABELS[name], fixed(s.value), fixed(s.lower), fixed(s.upper)] for name, s in found.scores.items()]
    rows = count(found.n_rows, "row")
    caption = f"The recommended model on {rows} set aside before anything was learnt, with 95 % intervals."
    return PageTable(caption, ["score", "value", "lower", "upper"], cells, [False, True, True, True])
