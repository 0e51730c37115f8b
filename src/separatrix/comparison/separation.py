"""Whether a linear rule separates the classes of a table, said by column where one column is the reason.

complete, quasi, overlap     as geometry/separation.py has them, of the encoded rows
an indicator of one class    [x = level] or [x is missing] that occurs with one class only: quasi-separable by itself. It is
                             named with its rows, and the verdict on the other rows is given without it.
by chance                    n ≤ 2(d + 1) rows in general position are separable for at least half of all labellings
                             (Cover, 1965, IEEE Trans. EC-14, theorem 1)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.suitable_features import listed
from separatrix.comparison.validation import Task
from separatrix.data.block import Codes, Float
from separatrix.data.labels import shown
from separatrix.geometry.separation import Separability, separability
from separatrix.tables.findings import few

# A linear programme of so many unknowns takes about a second for two classes and ten for twelve.
_UNKNOWNS = 600


def examine(task: Task, seconds: float) -> tuple[str, str]:
    """The verdict in a word and in a sentence, unless it would take long: that depends on the unknowns, not on the rows."""
    encoder, X, codes = task.encoder, task.encoded, task.codes
    unknowns = (len(encoder.features_) + 1) * (1 if len(task.classes) == 2 else len(task.classes))
    if unknowns > _UNKNOWNS:
        return "not examined", f"Separability was not examined: a rule with {unknowns} unknowns would take long."
    names = np.array(encoder.feature_names_)
    try:
        found = separability(X, codes, max_seconds=seconds)
        if found.verdict != "quasi":
            return found.verdict, _named(found, task, names) + _by_chance(found, X)
        alone = [j for j in _of_one_class(X, codes) if encoder.features_[j].what in ("missing", "level")]
        if not alone:
            return found.verdict, _named(found, task, names)
        ones = X[:, alone] == X[:, alone].max(axis=0)
        sentences = list(few(_only_with(names[j], codes[ones[:, i]], task) for i, j in enumerate(alone)))
        left, kept = np.flatnonzero(~ones.any(axis=1)), np.delete(np.arange(X.shape[1]), alone)
        if len(kept) and len(np.unique(codes[left])) == len(task.classes):
            rest = separability(X[np.ix_(left, kept)], codes[left], max_seconds=seconds)
            beside = "The other rows overlap." if rest.verdict == "overlap" else _named(rest, task, names[kept])
            sentences.append(beside)
        return found.verdict, " ".join(sentences)
    except RuntimeError as error:  # a remark on the data that fails must not stop the work on them
        return "not examined", f"Separability was not examined ({unknowns} unknowns). {error}"


def beside_the_baseline(verdict: str, sentence: str) -> str:
    """The sentence where the class shares are recommended: what separates the rows at hand does not help with others."""
    if verdict not in ("complete", "quasi"):
        return sentence
    return (
        "A linear rule can be found that sets apart rows of this table, but rules learnt from some of its rows did not do so "
        "for the rows left out: it is no sign that the classes differ."
    )


def _named(found: Separability, task: Task, names: NDArray[np.str_]) -> str:
    return str(replace(found, classes=task.classes, feature_names=names))


def _by_chance(found: Separability, X: Float) -> str:
    n, d = X.shape
    if found.verdict != "complete" or len(found.classes) > 2 or n > 2 * (d + 1):
        return ""
    return f" With {d} columns for {n} rows that is likely for any labels: it says nothing about new rows."


def _of_one_class(X: Float, codes: Codes) -> list[int]:
    """Two-valued columns whose larger value occurs with one class only."""
    low, high = X.min(axis=0), X.max(axis=0)
    two = np.flatnonzero((low < high) & ((low == X) | (high == X)).all(axis=0))
    return [int(j) for j in two if len(np.unique(codes[X[:, j] == high[j]])) == 1]


def _only_with(name: str, codes: Codes, task: Task) -> str:
    counted = f"{len(codes)} row{'' if len(codes) == 1 else 's'}"
    return (
        f"{listed([str(name)])} occurs with class {shown(task.classes[codes[0]])} only ({counted}): without a penalty its "
        "coefficient runs away to infinity."
    )
