"""Categories as numbers: what the classes of the rows say of each, shrunk to what they say of all rows.

    p_k(level) = (n_k + m π_k)/(n + m)          n_k of the n rows of the level are of class k, π the shares of all rows
    t_k(level) = log p_k/p_0 − log π_k/π_0      k = 1 … K − 1; 0 for a level that was never seen, and for a hole

m, how many rows a level needs to be believed half, has the greatest likelihood under the Dirichlet–multinomial model, in which
every level draws its shares about π with the weight m:

    Σ_levels [ log Γ(m) − log Γ(n + m) + Σ_k log Γ(n_k + m π_k) − log Γ(m π_k) ]

A row's own label must not be in the number that a model learns from: training rows are encoded by folds, each from the labels
of the others (`crossed`); new rows by all labels.
Reference: Micci-Barreca, SIGKDD Explorations 3, 2001.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import gammaln

from separatrix.data.block import Codes, Float
from separatrix.tables.rows import CodedText

_STRENGTHS = 2.0 ** np.arange(15)
TARGET_FOLDS = 5

LevelScores = Mapping[str, list[float]]
"""t(level), by level."""


def level_scores(text: CodedText, codes: Codes, n_classes: int, weights: Float | None = None) -> dict[str, list[float]]:
    """t of every level that some row has.

    Examples
    --------
    >>> import numpy as np
    >>> from separatrix.tables.rows import CodedText
    >>> from separatrix.tables.encoding.target_encoding import level_scores
    >>> text = CodedText(["a", "b"], np.repeat([0, 1], 50))
    >>> scores = level_scores(text, np.repeat([0, 1, 0], [45, 50, 5]), 2)
    >>> scores["a"][0] < 0.0 < scores["b"][0]
    True
    """
    seen = text.places >= 0
    counted = np.ones(len(codes)) if weights is None else weights
    shares = np.bincount(codes, counted, minlength=n_classes) + 1.0  # so that no class is impossible
    shares = (shares / shares.sum()).astype(np.float64)
    at = text.places[seen] * n_classes + codes[seen]
    counts = (
        np.bincount(at, counted[seen], minlength=len(text.levels) * n_classes).reshape(-1, n_classes).astype(np.float64)
    )
    pulled = counts + _strength(counts, shares) * shares
    scores = np.log(pulled / shares)
    scores -= scores[:, :1]
    known = counts.sum(axis=1) > 0.0
    return {level: scores[i, 1:].tolist() for i, level in enumerate(text.levels) if level is not None and known[i]}


def _strength(counts: Float, shares: Float) -> float:
    """m, of powers of two; of equally likely ones the greater."""
    counts = counts[counts.sum(axis=1) > 0.0]
    m = _STRENGTHS[:, None]
    likelihood = len(counts) * gammaln(_STRENGTHS) - gammaln(counts.sum(axis=1) + m).sum(axis=1)
    for k, share in enumerate(shares):
        likelihood += gammaln(counts[:, k] + m * share).sum(axis=1) - len(counts) * gammaln(_STRENGTHS * share)
    return float(_STRENGTHS[len(_STRENGTHS) - 1 - int(likelihood[::-1].argmax())])


def encoded(text: CodedText, scores: LevelScores, n_classes: int) -> Float:
    """(n, n_classes − 1) the scores of the levels of rows."""
    none = [0.0] * (n_classes - 1)
    of_levels = [none if level is None else scores.get(level, none) for level in text.levels]
    return np.array([*of_levels, none], dtype=np.float64)[text.places]


def crossed(
    text: CodedText, codes: Codes, n_classes: int, weights: Float | None = None, groups: Codes | None = None
) -> Float:
    """(n, n_classes − 1) the scores of training rows, each from folds without it, and without its group."""
    folds, found = crossing_folds(codes, groups), np.zeros((len(codes), n_classes - 1))
    for fold in range(TARGET_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if len(inside) and len(outside):
            part = CodedText(text.levels, text.places[inside])
            own = None if weights is None else weights[inside]
            scores = level_scores(part, codes[inside], n_classes, own)
            found[outside] = encoded(CodedText(text.levels, text.places[outside]), scores, n_classes)
    return found


def crossing_folds(codes: Codes, groups: Codes | None = None) -> Codes:
    """(n,) the fold of every row: the rows of each class, or the groups, in turn, in an order that is always the same."""
    rng, folds = np.random.default_rng(0), np.empty(len(codes), dtype=np.intp)
    if groups is not None:
        names, places = np.unique(groups, return_inverse=True)
        return (rng.permutation(len(names)) % TARGET_FOLDS)[places]
    for k in np.unique(codes):
        own = np.flatnonzero(codes == k)
        folds[rng.permutation(own)] = np.arange(len(own)) % TARGET_FOLDS
    return folds
