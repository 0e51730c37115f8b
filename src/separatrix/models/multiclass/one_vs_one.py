"""One against one: a machine for every pair of classes, each with a vote.

    class = argmax_k votes_k;      ties go to the larger sum of confidences (vote.py)

Open where the votes tie: for K = 3 where each class wins once. Reference: Bishop (2006), section 4.1.2,
figure 4.2; the score is scikit-learn's.
"""

from __future__ import annotations

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float
from separatrix.geometry import Linear, ScoreForm
from separatrix.geometry.combined_forms import Machines, PairVote
from separatrix.geometry.votes import class_pairs, tally, vote_scores
from separatrix.models.classifier import Classifier
from separatrix.models.multiclass.reductions import Indeterminate, Reduction, machine_scores
from separatrix.models.scikit_learn import HasMethods


class OneVsOneClassifier(Reduction):
    """K classes by K(K−1)/2 machines, each of which separates two classes.

    Gives the answers of scikit-learn's, and where the votes tie. Models of separatrix that need one pass over the data
    (discriminants, naive Bayes, least squares) need one for all machines together.

    Parameters
    ----------
    estimator : classifier
        Any binary classifier with `decision_function` or `predict_proba`. Probabilities are added up as they are, like
        scikit-learn does, so without `decision_function` ties lean to the later classes.
    n_jobs : int, optional
        Machines fitted at a time, in threads; 1 by default.

    Attributes
    ----------
    estimators_ : list of fitted estimators
        One per pair, fitted on 0 for the first class of the pair and 1 for the second.
    pairs_ : list of (label, label)
        The classes of every machine.
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    passes_ : int or None
        Passes over rows that the machines made together; ``None`` if they do not count them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import OneVsOneClassifier, RidgeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier(RidgeClassifier()).fit(X, y)
    >>> model.pairs_, model.passes_
    ([(0, 1), (0, 2), (1, 2)], 1)
    >>> print(model.indeterminate(X))
    None of 150 rows is indeterminate.
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "n_jobs": [Integral, None],
    }

    def __init__(self, estimator: Any, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @property
    def pairs_(self) -> list[tuple[Any, Any]]:
        """The two classes of every machine."""
        return list(combinations(self._counted.tolist(), 2))

    def _problems(self, n_classes: int) -> list[Codes]:
        problems = np.full((n_classes * (n_classes - 1) // 2, n_classes), -1, dtype=np.intp)
        for groups, pair in zip(problems, class_pairs(n_classes), strict=True):
            groups[list(pair)] = 0, 1
        return list(problems)

    def _tally(self, X: Any) -> tuple[Float, Float]:
        """(n, k) votes and sums of confidences of the classes that have weight."""
        n_classes = len(self._counted)
        answers = (
            _answer(machine, rows, n_classes) for machine, rows in zip(self.estimators_, self._inputs(X), strict=True)
        )
        return tally(answers, n_classes)

    def _own_scores(self, X: Any) -> Float:
        scores = vote_scores(*self._tally(X))
        return scores[:, 1:] if scores.shape[1] == 2 else scores

    def score_form(self) -> ScoreForm:
        self._check_ready()
        n_classes = len(self._counted)
        if n_classes == 1:
            return self._placed(Linear.of(np.zeros((1, self.n_features_in_)), np.zeros(1), "none"), halved=False)
        # Probabilities are added up as they are, like scikit-learn does.
        summed = self._machine_forms(threshold=0.5 if n_classes == 2 else 0.0)
        form = PairVote(Machines(summed.machines), n_classes, second=True, confidences=summed, link="none")
        return self._placed(form, halved=False)

    def _indeterminate(self, X: Any) -> Indeterminate:
        votes, _ = self._tally(X)
        tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
        return Indeterminate(
            tied,
            np.where(tied, "votes tie", ""),
            self.predict(X),
            "They were given, of the classes with most votes, the one with the largest sum of confidences.",
        )


def _answer(machine: Any, rows: Any, n_classes: int) -> tuple[NDArray[np.bool_], Float]:
    """Whether the machine of a pair chooses its first class, and by how much."""
    plain = getattr(type(machine), "predict", None) is Classifier.predict
    if plain and hasattr(machine, "decision_function"):  # the sign of its score, and nothing else
        scores = machine_scores(machine, rows)
        return ~(scores > 0), -scores
    first_wins = np.asarray(machine.predict(rows)) != 1
    if n_classes > 2 and not hasattr(machine, "decision_function"):
        return first_wins, -np.asarray(machine.predict_proba(rows))[:, 1]  # as it is, since scikit-learn adds it up so
    return first_wins, -machine_scores(machine, rows)
