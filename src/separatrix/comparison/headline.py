"""The answer in a sentence: how often the recommended model is right, against guessing, and what casts doubt on that.

    guessing   the likeliest class for every row, or the one action that costs least

Shares are of left-out rows and rounded down, so that "100 %" means all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from separatrix.comparison.measures import by_guessing, counted
from separatrix.data.labels import shown
from separatrix.tables.findings import GIVES_AWAY

if TYPE_CHECKING:
    from separatrix.comparison.comparison import Comparison
    from separatrix.comparison.streamed import StreamedComparison

# A class of a smaller share, and of less than half an even share, can be missed without much harm to the accuracy.
_RARE = 0.15


def headline(comparison: Comparison | StreamedComparison) -> str:
    """How good the recommended model is, in a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import compare
    >>> from separatrix.comparison.headline import headline
    >>> headline(compare(load_iris(as_frame=True).frame, "target", families=["baseline", "lda"]))
    '98.0 % right, against 33 % by guessing.'
    """
    best, counts = comparison.recommended, comparison.class_counts
    confusion = _confusion(comparison)
    totals = counts if confusion is None else confusion.sum(axis=1)  # sums of weights, where rows have some
    shares = totals / totals.sum()
    right, guess = best.scores["accuracy"].mean, by_guessing(shares, "accuracy")
    words = f"{rounded_down(right)} right, against {rounded_down(guess)} by guessing"
    if comparison.ranked_by == "cost" and "cost" in best.scores:
        alone = by_guessing(shares, "cost", comparison.loss)
        words = f"{best.scores['cost'].mean:.3g} per row, against {alone:.3g} for one action in all of them; {words}"
    if best.family == "baseline":
        return f"No model was found to be better than guessing: {words}."
    rarest = int(totals.argmin())
    if shares[rarest] < min(_RARE, 0.5 / len(shares)) and confusion is not None:
        found = round(float(confusion[rarest, rarest]))
        words += f"; of the {round(float(totals[rarest]))} rows of {shown(comparison.classes[rarest])} it finds {found}"
    return f"{words}."


def cautions(comparison: Comparison | StreamedComparison) -> list[str]:
    """What may make that too good to be true: columns that give the class away, and classes that a rule separates."""
    found = [finding for finding in comparison.schema.findings if GIVES_AWAY in finding]
    if comparison.recommended.separability == "complete" and not found:
        found.append(
            "A linear rule gets every row right. Where that is not to be expected, look for a column that is only known "
            "after the outcome."
        )
    return found


def rounded_down(share: float) -> str:
    """A share in per cent that is never more than it is; with a decimal near the ends."""
    decimals = 1 if share > 0.98 or share < 0.02 else 0
    scale = 10**decimals
    return f"{math.floor(100.0 * scale * share + 1e-9) / scale:.{decimals}f} %".replace("100.0", "100").replace(
        "0.0 ", "0 "
    )


def _confusion(comparison: Comparison | StreamedComparison) -> Any:
    """(n_classes, n_classes) counts, or sums of weights, of the recommended model, of the first repeat."""
    best, codes = comparison.recommended, getattr(comparison, "codes", None)
    if codes is None or not len(best.predicted):
        return best.confusion
    k, weights = len(comparison.classes), getattr(comparison, "weights", None)
    return counted(codes, best.predicted, k, k, weights)
