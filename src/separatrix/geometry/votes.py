"""Classes from machines between pairs of them: every machine has a vote, and confidences order the classes within a vote.

    votes_k = number of machines that choose k,      c_k = Σ_l f_kl(x),      score_k = votes_k + c_k / 3(|c_k| + 1)

f_kl > 0 where the machine of the pair (k, l) prefers k, f_lk = −f_kl. The second term lies in (−⅓, ⅓) and never outweighs
a vote. The pairs are (0, 1), (0, 2), …, (1, 2), …. Which class a score of exactly 0 is a vote for is left to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of classes in their order."""
    return list(combinations(range(n_classes), 2))


def tally(answers: Iterable[tuple[NDArray[np.bool_], Float]], n_classes: int) -> tuple[Float, Float]:
    """(n, K) votes and sums of confidences.

    `answers` has, for every pair, whether its first class is chosen (n,) and the score of the first over the second (n,).
    """
    votes = confidences = np.zeros((0, n_classes))
    for (k, l), (first_wins, scores) in zip(class_pairs(n_classes), answers, strict=True):  # noqa: E741  # as in the formula
        if not len(votes):
            votes, confidences = np.zeros((2, len(scores), n_classes))
        votes[:, k] += first_wins
        votes[:, l] += ~first_wins
        confidences[:, k] += scores
        confidences[:, l] -= scores
    return votes, confidences


def vote_scores(votes: Float, confidences: Float) -> Float:
    """(n, K) votes, with confidences squeezed below one vote."""
    return votes + confidences / (3.0 * (np.abs(confidences) + 1.0))
