"""Whether a linear rule separates the classes of a table, said by column where one column is the reason.

complete, quasi, overlap     as geometry/separation.py has them, of the encoded rows
an indicator of one class    [x = level] or [x is missing] that occurs with one class only, or never with some class:
                             quasi-separable by itself. It is named with its rows, and the verdict on the rest is given
                             without it, and without its rows where they are of one class.
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
from separatrix.tables.findings import few, joined

# A linear programme of so many unknowns takes about a second for two classes and ten for twelve.
_UNKNOWNS = 600
_NAMED = 3


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
        marks = np.array([one.what in ("missing", "level") for one in encoder.features_])
        alone = [j for j in _without_classes(X, codes) if marks[j]]
        if not alone:
            return found.verdict, _named(found, task, names)
        ones = X[:, alone] == X[:, alone].max(axis=0)
        sentences = list(few(_only_with(names[j], codes[ones[:, i]], task) for i, j in enumerate(alone)))
        single = [len(np.unique(codes[one])) == 1 for one in ones.T]
        left, kept = np.flatnonzero(~ones[:, single].any(axis=1)), np.delete(np.arange(X.shape[1]), alone)
        if len(kept) and len(np.unique(codes[left])) == len(task.classes):
            rest = separability(X[np.ix_(left, kept)], codes[left], max_seconds=seconds)
            overlap = "The other rows overlap." if all(single) else "Otherwise the classes overlap."
            sentences.append(overlap if rest.verdict == "overlap" else _named(rest, task, names[kept]))
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


def _without_classes(X: Float, codes: Codes) -> list[int]:
    """Two-valued columns whose larger value does not occur with every class."""
    low, high = X.min(axis=0), X.max(axis=0)
    two = np.flatnonzero((low < high) & ((low == X) | (high == X)).all(axis=0))
    n_classes = len(np.unique(codes))
    return [int(j) for j in two if len(np.unique(codes[X[:, j] == high[j]])) < n_classes]


def _only_with(name: str, codes: Codes, task: Task) -> str:
    """With which class a value occurs, or with which it does not."""
    counted, present = f"{len(codes)} row{'' if len(codes) == 1 else 's'}", np.unique(codes)
    runs = "without a penalty its coefficient runs away to infinity."
    if len(present) == 1:
        return f"{listed([str(name)])} occurs with class {shown(task.classes[present[0]])} only ({counted}): {runs}"
    absent = np.setdiff1d(np.arange(len(task.classes)), present)
    never = joined(
        [shown(task.classes[k]) for k in absent[:_NAMED]]
        + ([f"{len(absent) - _NAMED} more"] if len(absent) > _NAMED else [])
    )
    return f"{listed([str(name)])} ({counted}) never occurs with class {never}: {runs}"
