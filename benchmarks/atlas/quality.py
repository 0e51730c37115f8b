"""How good an answer is, recomputed from what the model publishes and in float64.

Models with an objective are held to (f − f*) / |f*| ≤ 1e-6, f* the least value known: that of any contender, or of our own
fit to a proven 1e-8, which runs first. Support vector machines with a kernel are held to their dual objective, the sum over
pairs. Exact models are held to scikit-learn's scores of float64 rows, or the same predictions. The perceptron has no optimum:
all follow the same rule, for as many epochs or until the same test ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.atlas.draw import Problem
from benchmarks.contender import construct
from benchmarks.data import Data
from benchmarks.optimum import objective
from benchmarks.reference import centred_scores, relative_error

Float = NDArray[np.float64]
Value = Callable[[Any, str], float]  # a fitted model and its aim → the value that is to be small
RELATIVE = 1e-6
ROUNDING = 1e-13  # of the largest score
REFERENCE_TOL = 1e-8
ITERATIVE = ("logistic", "softmax", "logistic L1", "hinge", "squared hinge", "SVC", "RidgeClassifier", "Ridge")
EXACT = {
    "LDA": "sklearn.discriminant_analysis:LinearDiscriminantAnalysis",
    "QDA": "sklearn.discriminant_analysis:QuadraticDiscriminantAnalysis",
    "GaussianNB": "sklearn.naive_bayes:GaussianNB",
    "MultinomialNB": "sklearn.naive_bayes:MultinomialNB",
    "ComplementNB": "sklearn.naive_bayes:ComplementNB",
    "BernoulliNB": "sklearn.naive_bayes:BernoulliNB",
    "CategoricalNB": "sklearn.naive_bayes:CategoricalNB",
}


@dataclass
class Quality:
    """The values found so far, and what they have to reach."""

    value: Value
    limit: float = RELATIVE
    floor: float = 0.0  # f* is taken to be at least this in the denominator
    exact: bool = False  # the value is the error itself

    def __post_init__(self) -> None:
        self.best: dict[str, float] = {}

    def see(self, model: Any, aim: str) -> float:
        """The value of a model, which may be the best so far of its aim."""
        value = float(self.value(model, aim))
        if math.isfinite(value):
            self.best[aim] = min(value, self.best.get(aim, math.inf))
        return value

    def error(self, value: float, aim: str) -> float:
        if self.exact:
            return value if math.isfinite(value) else math.inf
        best = self.best.get(aim, math.inf)
        if not (math.isfinite(value) and math.isfinite(best)):
            return math.inf
        return (value - best) / max(abs(best), self.floor, 1e-300)


def quality(problem: Problem, data: Data) -> Quality:
    p = problem
    if p.estimator in ("logistic", "softmax", "logistic L1"):
        share = 1.0 if p.estimator == "logistic L1" else 0.0
        return Quality(lambda model, aim: objective(data, model.coef_, model.intercept_, p.strength, share))
    if p.estimator in ("hinge", "squared hinge"):
        power = 1 if p.estimator == "hinge" else 2
        return Quality(lambda model, aim: _margins(p, data, model, aim, power))
    if p.estimator == "SVC":
        return Quality(_dual_of(p, data))
    if p.estimator in ("RidgeClassifier", "Ridge", "LinearRegression"):
        targets = _targets(p, data.y)
        alpha = 0.0 if p.estimator == "LinearRegression" else p.strength
        nothing = float(np.square(targets - targets.mean(axis=0)).sum())
        return Quality(lambda model, aim: _squares(data, targets, model, alpha), floor=1e-2 * nothing)
    if p.estimator == "Perceptron":
        labels, probe = data.y[:2_000], data.probe
        return Quality(lambda model, aim: float(np.mean(model.predict(probe) != labels)), limit=1.0, floor=1.0)
    return Quality(_same_scores(p, data), limit=1e-6 if p.dtype == "float64" else 1e-3, exact=True)


def _margins(problem: Problem, data: Data, model: Any, aim: str, power: int) -> float:
    """½‖W‖² + C Σ max(0, 1 − ỹ f)ᵖ, summed over the machines; a penalised intercept enters the norm."""
    coef = np.asarray(model.coef_, dtype=np.float64)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))
    total = np.square(coef).sum() / 2
    if problem.intercept and aim != "free":
        total += np.square(intercept).sum() / 2
    slack = 0.0
    labels = np.arange(problem.classes)[1 if problem.classes == 2 else 0 :]
    for start in range(0, len(data.y), 10_000):
        block = slice(start, start + 10_000)
        f = np.asarray(data.X[block] @ coef.T) + intercept
        signs = np.where(data.y[block, None] == labels, 1.0, -1.0)
        slack += float((np.maximum(0.0, 1.0 - signs * f) ** power).sum())
    return float(total + problem.strength * slack)


def _dual_of(problem: Problem, data: Data) -> Value:
    """−Σ over pairs of (Σα − ½ (α∘ỹ)ᵀK(α∘ỹ)): the values are small at the optimum."""
    X = data.X.astype(np.float64)
    variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
    gamma = 1.0 / (problem.d * variance)

    def value(model: Any, aim: str) -> float:
        from sklearn.metrics.pairwise import pairwise_kernels

        support = np.asarray(model.support_)
        coefs = model.dual_coef_
        coefs = np.asarray(coefs.toarray() if sp.issparse(coefs) else coefs, dtype=np.float64)
        if np.abs(coefs).max(initial=0.0) > problem.strength * (1 + 1e-4):
            return math.inf
        rows = X[support]
        extra = {} if problem.variant == "linear" else {"gamma": gamma}
        if problem.variant == "poly":
            extra |= {"degree": 3, "coef0": 0.0}
        kernel = pairwise_kernels(rows, metric=problem.variant, **extra)
        total = 0.0
        for i in range(problem.classes):
            for j in range(i + 1, problem.classes):
                mine, other = data.y[support] == i, data.y[support] == j
                a = np.where(mine, coefs[j - 1], np.where(other, coefs[i if problem.classes > 2 else 0], 0.0))
                kept = np.flatnonzero(a)
                a = a[kept]
                if abs(a.sum()) > 1e-4 * np.abs(a).sum():
                    return math.inf
                total += float(np.abs(a).sum() - 0.5 * a @ (kernel[np.ix_(kept, kept)] @ a))
        return -total

    return value


def _targets(problem: Problem, y: Any) -> Float:
    if problem.estimator != "RidgeClassifier":
        return np.asarray(y, dtype=np.float64)[:, None]
    labels = np.arange(problem.classes)[1 if problem.classes == 2 else 0 :]
    targets: Float = np.where(y[:, None] == labels, 1.0, -1.0)
    return targets


def _squares(data: Data, targets: Float, model: Any, alpha: float) -> float:
    """‖Y − XW − b‖² + α‖W‖²."""
    coef = np.asarray(model.coef_, dtype=np.float64).reshape(targets.shape[1], -1)
    total = alpha * float(np.square(coef).sum())
    for start in range(0, len(targets), 10_000):
        block = slice(start, start + 10_000)
        residuals = targets[block] - np.asarray(data.X[block] @ coef.T) - np.ravel(model.intercept_)
        total += float(np.square(residuals).sum())
    return total


def _same_scores(problem: Problem, data: Data) -> Value:
    """The error of the scores, or 0 where all predictions of the first rows are the same or the scores are, to rounding.

    Columns that tell nothing leave every class the same score, and of the differences between them nothing but rounding.
    """
    X, y = data.X, data.y
    known = construct(EXACT[problem.estimator], {})
    known.fit(X if problem.columns == "categories" else X.astype(np.float64), y)
    scores, predicted = _scores(known, data.probe), known.predict(data.probe)
    reference, rounding = centred_scores(scores), ROUNDING * float(np.abs(scores).max())

    def value(model: Any, aim: str) -> float:
        answer = centred_scores(_scores(model, data.probe))
        if answer.shape == reference.shape and float(np.abs(answer - reference).max()) <= rounding:
            return 0.0
        error = relative_error(answer, reference)
        return 0.0 if np.array_equal(model.predict(data.probe), predicted) and error < 0.1 else error

    return value


def _scores(model: Any, rows: Any) -> Float:
    given = rows if sp.issparse(rows) or rows.dtype.kind == "i" else rows.astype(np.float64)
    scores = model.predict_joint_log_proba(given) if hasattr(model, "predict_joint_log_proba") else None
    if scores is None:
        scores = model.decision_function(given)
        if np.ndim(scores) == 1:
            scores = np.column_stack([-scores, scores]) / 2
    return np.asarray(scores, dtype=np.float64)
