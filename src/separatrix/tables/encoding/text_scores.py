"""Free text as numbers: what its words, and pairs of neighbours, say of the classes.

    words     runs of two or more letters and digits, in small letters; w and the pairs w w' are hashed to 2¹⁸ buckets
    x_b       (1 + log n_b) idf_b / ‖·‖,   n_b how often bucket b occurs in the text, idf_b = 1 + log((1 + N)/(1 + N_b))
    t_k       Σ_b x_b v_bk,   k = 1 … K − 1; 0 for a hole, and for a text without a word that is known

N_b of the N training rows have bucket b; those that one row only has say nothing of another and are not known. v is the weight
of class k, less that of class 0, in a softmax regression on x with a ridge penalty: C has the least log-loss on rows left out.

A row's own label must not be in the number that a model learns from, so training rows are scored by folds, each from the labels
of the others; new rows by all labels. The model behind it weighs K − 1 numbers per column beside those of the other columns, as
every family can: a thousand words in a covariance could not be told from noise.
Reference: Wolpert, Neural Networks 5, 1992 (scores of rows left out as inputs); Weinberger et al., ICML 2009 (hashed words).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.tables.encoding.target_encoding import TARGET_FOLDS, crossing_folds
from separatrix.tables.rows import CodedText

BUCKETS = 2**18
_MOST = 2**15  # buckets that are known, the most frequent ones
_CS = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])
_NAMED, _TEXTS_READ = 12, 20  # words that are shown for and against each class; texts that are read for the name of one
_LEAST_WORDS, _LEAST_SHARED, _LOOKED_AT = 5.0, 0.5, 2_000
_COUNTS = "words"  # of the different texts of a column, kept with them
RegressionPath = Callable[[Any, Codes, Float, Float], tuple[Float, Float]]
"""Of sparse rows, their classes 0, 1 …, how often they count, and a grid of C: (Cs, 1 or K, m) weights and constants."""


@dataclass(frozen=True, eq=False)
class TextScores:
    """The words of a column that are known, and what they say."""

    buckets: NDArray[np.int32]  # (m,) sorted
    idf: Float  # (m,)
    weights: Float  # (m, K − 1)
    words: list[tuple[str, list[float]]] = field(default_factory=list)  # that say most: t of a text of each alone

    def of(self, text: CodedText) -> Float:
        """(n, K − 1) t of every row."""
        at, places = _present(text)
        scores = _matrix(_counts(text)[at], self.buckets, self.idf) @ self.weights
        return np.concatenate([scores, np.zeros((1, self.weights.shape[1]))])[places]


def learn_text(
    text: CodedText,
    codes: Codes,
    n_classes: int,
    regression: RegressionPath,
    weights: Float | None = None,
    groups: Codes | None = None,
) -> tuple[TextScores, Float]:
    """What words say, and t of the training rows (n, n_classes − 1), each from folds without it, and without its group."""
    counted = np.ones(len(codes)) if weights is None else weights
    known, idf = _known(text, counted)
    own, seen = np.zeros((len(codes), n_classes - 1)), np.flatnonzero(text.places >= 0)
    if not len(known) or len(np.unique(codes[seen])) < 2:
        return TextScores(known, idf, np.zeros((len(known), n_classes - 1))), own
    at, places = _present(text)
    X = _matrix(_counts(text)[at], known, idf)[places[seen]]
    y, w, folds = codes[seen], counted[seen], crossing_folds(codes, groups)[seen]
    found, losses = np.zeros((len(_CS), len(seen), n_classes - 1)), np.zeros(len(_CS))
    for fold in range(TARGET_FOLDS):
        inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        if not len(outside) or len(np.unique(y[inside])) < 2:
            continue
        coefs, constants = _along(regression, X[inside], y[inside], w[inside], n_classes, _CS)
        for c in range(len(_CS)):
            found[c, outside] = X[outside] @ coefs[c]
            losses[c] += _log_loss(found[c, outside] + constants[c], y[outside], w[outside])
    best = int(losses.argmin())  # of equal ones the strongest penalty
    own[seen] = found[best]
    coefs, _ = _along(
        regression, X, y, w, n_classes, _CS[: best + 1]
    )  # each from the one before: a far one from 0 may fail
    scores = TextScores(known, idf, coefs[-1])
    return replace(scores, words=_telling(text, scores)), own


def _along(
    regression: RegressionPath, X: Any, y: Codes, weights: Float, n_classes: int, Cs: Float
) -> tuple[Float, Float]:
    """(Cs, m, K − 1) weights and (Cs, K − 1) constants against class 0 of regressions along C; a class may have no row."""
    some, places = np.unique(y, return_inverse=True)
    coefs, constants = regression(X, places, weights, Cs)
    if coefs.shape[1] == 1:
        coefs, constants = (np.concatenate([np.zeros_like(one), one], axis=1) for one in (coefs, constants))
    every, offsets = np.zeros((len(Cs), n_classes, X.shape[1])), np.zeros((len(Cs), n_classes))
    every[:, some], offsets[:, some] = coefs, constants
    return (every[:, 1:] - every[:, :1]).transpose(0, 2, 1), offsets[:, 1:] - offsets[:, :1]


def _log_loss(scores: Float, codes: Codes, weights: Float) -> float:
    full = np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)
    largest = full.max(axis=1)
    logs = largest + np.log(np.exp(full - largest[:, None]).sum(axis=1))
    return float(weights @ (logs - full[np.arange(len(codes)), codes]))


def is_prose(levels: Sequence[str]) -> bool:
    """Whether texts are sentences: five words each on average, and half of their words are met again in another text.

    Examples
    --------
    >>> from separatrix.tables.encoding.text_scores import is_prose
    >>> is_prose(["the tea was cold and the cake was old", "the cake was old and so was the tea"])
    True
    >>> is_prose(["Braund, Mr. Owen", "Allen, Miss Elisabeth"])
    False
    """
    if not levels or sum(map(len, levels[:_LOOKED_AT])) < 2.0 * _LEAST_WORDS * len(levels[:_LOOKED_AT]):
        return False  # a quick look: a word has two letters
    texts = [set(_hashing().build_analyzer()(text)) for text in levels[:: -(-len(levels) // _LOOKED_AT)]]
    single = [[word for word in words if " " not in word] for words in texts]
    n_words = sum(map(len, single))
    if n_words < _LEAST_WORDS * len(texts):
        return False
    tally = Counter(word for words in single for word in words)
    return sum(n for n in tally.values() if n > 1) >= _LEAST_SHARED * n_words


@cache
def _hashing() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer  # which takes a while to import

    return HashingVectorizer(n_features=BUCKETS, alternate_sign=False, norm=None, ngram_range=(1, 2))


def _counts(text: CodedText) -> Any:
    """(texts, buckets) how often each bucket occurs in the different texts: a sparse matrix that is made once."""
    if _COUNTS not in text.memo:
        texts = ["" if level is None else level for level in text.levels]
        text.memo[_COUNTS] = _hashing().transform(texts).tocsr() if texts else sp.csr_array((0, BUCKETS))
    return text.memo[_COUNTS]


def _present(text: CodedText) -> tuple[Codes, Codes]:
    """Which of the different texts some row has, and the place of every row among them; a hole is one behind the last."""
    at = np.flatnonzero(text.tally[1:])
    place = np.full(len(text.levels) + 1, len(at))
    place[at] = np.arange(len(at))
    return at, place[text.places]


def _known(text: CodedText, weights: Float) -> tuple[NDArray[np.int32], Float]:
    """The buckets that more than one row has, the most frequent ones, and their idf."""
    at, places = _present(text)
    seen = text.places >= 0
    of_texts = np.bincount(places[seen], weights[seen], minlength=len(at))
    counts = _counts(text)[at]
    rows = np.bincount(counts.indices, np.repeat(of_texts, np.diff(counts.indptr)), minlength=BUCKETS)
    order = np.argsort(-rows, kind="stable")[:_MOST]
    known = np.sort(order[rows[order] > 1.0]).astype(np.int32)
    return known, 1.0 + np.log((1.0 + of_texts.sum()) / (1.0 + rows[known]))


def _matrix(counts: Any, known: NDArray[np.int32], idf: Float) -> Any:
    """(texts, m) x, sparse: unit rows, and rows of zeros where no word is known."""
    X = counts[:, known]
    n_each = np.diff(X.indptr)
    X.data = (1.0 + np.log(X.data)) * idf[X.indices]
    squares = np.bincount(np.repeat(np.arange(X.shape[0]), n_each), X.data**2, minlength=X.shape[0])
    X.data /= np.sqrt(np.repeat(squares, n_each))
    return X


def _telling(text: CodedText, scores: TextScores) -> list[tuple[str, list[float]]]:
    """The words and pairs that say most for and against each class, by name; of several in a bucket the most frequent."""
    order = np.argsort(scores.weights, axis=0, kind="stable")
    ends = np.unique(np.concatenate([order[:_NAMED], order[-_NAMED:]]))
    at, _ = _present(text)
    columns, named = _counts(text)[at][:, scores.buckets[ends]].tocsc(), []
    split, bucket = lru_cache(_hashing().build_analyzer()), lru_cache(maxsize=None)(bucket_of)
    for place, j in enumerate(ends.tolist()):
        found = Counter[str]()
        for i in columns.indices[columns.indptr[place] : columns.indptr[place + 1]][:_TEXTS_READ].tolist():
            found.update(word for word in split(text.levels[at[i]]) if bucket(word) == scores.buckets[j])
        named.append((max(sorted(found), key=lambda word: found[word]), scores.weights[j].tolist()))
    return sorted(named, key=lambda one: -max(map(abs, one[1])))


def bucket_of(word: str) -> int:
    """Where a word is hashed to: |murmurhash3, signed, of 32 bits, of its UTF-8| mod 2¹⁸."""
    from sklearn.utils import murmurhash3_32

    return abs(int(murmurhash3_32(word.encode(), seed=0))) % BUCKETS
