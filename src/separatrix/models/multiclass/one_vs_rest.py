"""One against the rest: one machine per class, which separates it from all others.

    K machines     class = argmax_k f_k(x)          open where no machine, or more than one, has f_k(x) > 0
    K−1 machines   the last class where no f_k(x) > 0, else argmax_k f_k(x);   open where more than one claims

Two classes need one machine. The open regions are inherent: for K = 3 lines in the plane leave some of each kind. The direct
rule, argmax_k of K functions, has none. Reference: Bishop (2006), section 4.1.2, figure 4.2.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from separatrix.data.block import Codes, Float
from separatrix.geometry import Hyperplane, Linear, ScoreForm
from separatrix.geometry.combined_forms import one_vs_rest, one_vs_rest_probabilities
from separatrix.geometry.score_form import Link
from separatrix.models.counted_classes import check_two_classes, rule_among_all, shares_among_all
from separatrix.models.docstrings import described
from separatrix.models.multiclass.reductions import Indeterminate, Reduction, machine_scores, number_of_rows
from separatrix.models.scikit_learn import HasMethods, StrOptions


def _has_probabilities(model: Any) -> bool:
    return hasattr(model.estimators_[0] if getattr(model, "estimators_", None) else model.estimator, "predict_proba")


def _is_linear(model: Any) -> bool:
    return hasattr(model, "estimators_") and all(
        hasattr(machine, "linear_form") or hasattr(machine, "coef_") for machine in model.estimators_
    )


class OneVsRestClassifier(Reduction):
    """K classes by machines that separate one class from all the others.

    Gives the answers of scikit-learn's, and where its machines contradict each other. Models of separatrix that need one
    pass over the data (discriminants, naive Bayes, least squares) need one for all machines together.

    Parameters
    ----------
    estimator : classifier
        Any binary classifier with `decision_function` or `predict_proba`; of the latter the score is p − ½.
    machines : {"K", "K-1"}, default="K"
        One machine per class; or none for the last class, which is deduced where no other is claimed.
    n_jobs : int, optional
        Machines fitted at a time, in threads; 1 by default.

    Attributes
    ----------
    estimators_ : list of fitted estimators
        One per machine, fitted on 1 for its class and 0 for the others. Two classes have one machine, for ``classes_[1]``.
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    passes_ : int or None
        Passes over the data that the machines made together; ``None`` if they do not count them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from separatrix import LinearDiscriminantAnalysis, OneVsRestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier(LinearDiscriminantAnalysis()).fit(X, y)
    >>> model.passes_, len(model.estimators_)
    (1, 3)
    >>> model.indeterminate(X).counts
    {'none claims': 19, 'several claim': 10}
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "machines": [StrOptions({"K", "K-1"})],
        "n_jobs": [Integral, None],
    }

    def __init__(self, estimator: Any, *, machines: Literal["K", "K-1"] = "K", n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.machines = machines
        self.n_jobs = n_jobs

    def _problems(self, n_classes: int) -> list[Codes]:
        own = np.eye(n_classes, dtype=np.intp)
        return [own[1]] if n_classes == 2 else list(own if self.machines == "K" else own[:-1])

    def _own_scores(self, X: Any) -> Float:
        inputs = self._inputs(X)
        scores = np.column_stack(
            [machine_scores(machine, rows) for machine, rows in zip(self.estimators_, inputs, strict=True)]
        )
        return np.pad(scores, ((0, 0), (0, 1))) if self._deduces else scores

    @property
    def _deduces(self) -> bool:
        return 2 < len(self._counted) == len(self.estimators_) + 1

    def predict(self, X: Any) -> NDArray[Any]:
        self._check_ready()
        return self._classes_of(self._own_scores(X)) if self.estimators_ else super().predict(X)

    def _classes_of(self, scores: Float) -> NDArray[Any]:
        if scores.shape[1] == 1:
            return self._counted[(scores[:, 0] > 0).astype(np.intp)]
        codes = scores.argmax(axis=1)
        if self._deduces:  # a score of exactly 0 claims nothing
            codes[scores.max(axis=1) <= 0] = len(self._counted) - 1
        return self._counted[codes]

    @available_if(_has_probabilities)
    @described
    def predict_proba(self, X: Any) -> Float:
        """Probabilities of the classes, from those of the machines.

        With K machines p_k / Σp. With K−1 the probability that k alone claims the row, or that nobody does, given that at most
        one machine claims it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_ready()
        own = self._own_proba(X) if self.estimators_ else np.ones((number_of_rows(X), 1))
        return shares_among_all(own, self._places, len(self.classes_))

    def _own_proba(self, X: Any) -> Float:
        """(n, k) probabilities of the classes that have weight."""
        inputs = self._inputs(X)
        own = np.column_stack(
            [machine.predict_proba(rows)[:, 1] for machine, rows in zip(self.estimators_, inputs, strict=True)]
        )
        return one_vs_rest_probabilities(own, self._deduces)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        if not self.estimators_:
            link: Link = "softmax" if _has_probabilities(self) else "none"
            return self._placed(Linear.of(np.zeros((1, self.n_features_in_)), np.zeros(1), link), halved=False)
        return self._placed(one_vs_rest(self._machine_forms(threshold=0.5), self._deduces), halved=False)

    def _indeterminate(self, X: Any) -> Indeterminate:
        scores = self._own_scores(X)
        claims = (scores > 0).sum(axis=1)
        one_claims = self._deduces or scores.shape[1] == 1
        reason = np.where(claims > 1, "several claim", np.where((claims == 0) & (not one_claims), "none claims", ""))
        return Indeterminate(
            reason != "", reason, self._classes_of(scores), "They were given the class with the largest score."
        )

    @available_if(_is_linear)
    def linear_form(self) -> tuple[Float, Float]:
        """The rule as (W, b) when the machines are linear: scores are XWᵀ + b; a deduced class has zeros.

        Returns
        -------
        W : ndarray of shape (1, n_features) for two classes, else (n_classes, n_features)
        b : ndarray of shape (1,) or (n_classes,)
        """
        W, b = self._own_form()
        return (W, b) if self._places is None else rule_among_all(W, b, self._places, len(self.classes_), halved=False)

    def _own_form(self) -> tuple[Float, Float]:
        """The rule of the classes that have weight."""
        check_two_classes(self._counted)
        forms = [
            machine.linear_form() if hasattr(machine, "linear_form") else (machine.coef_, machine.intercept_)
            for machine in self.estimators_
        ]
        W = np.vstack([np.reshape(coef, (1, -1)) for coef, _ in forms])
        b = np.concatenate([np.reshape(intercept, 1) for _, intercept in forms])
        return (np.pad(W, ((0, 1), (0, 0))), np.pad(b, (0, 1))) if self._deduces else (W, b)

    @available_if(_is_linear)
    @described
    def boundary(self, k: Any = None, l: Any = None) -> Hyperplane:  # noqa: E741  # names of the formulas
        """The hyperplane between two classes when the machines are linear; positive on the side of the first.

        Returns
        -------
        Hyperplane
        """
        W, b = self.linear_form()
        return Hyperplane.between(W, b, *self._pair(k, l))

    @available_if(_is_linear)
    @described
    def signed_distance(self, X: Any) -> Float:
        """f(x)/‖w‖ of every machine when they are linear: how far, and on which side, a row is from where it claims.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_machines)
            A class that is deduced has no hyperplane, and no column.
        """
        lengths = np.linalg.norm(self._own_form()[0], axis=1)[: len(self.estimators_)]
        if (lengths == 0).any():
            raise ValueError("A machine has a constant score, so there is no hyperplane to measure a distance to.")
        distances = self._own_scores(X)[:, : len(lengths)] / lengths
        return distances[:, 0] if len(lengths) == 1 else distances
