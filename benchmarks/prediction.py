"""Time `predict_proba` where `fit` is timed otherwise: the model is fitted before the clock starts.

Ours is fitted on a few rows; the peers are given its parameters, so that all compute the same probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from benchmarks.contender import construct
from benchmarks.data import PROBE_ROWS, Data
from benchmarks.reference import relative_error
from benchmarks.workload import Check

SHARE = 0.02  # of the rows, for the fit
TOLERANCE = 1e-10


class Prediction:
    """A fitted model whose `fit(X, y)` computes the probabilities of X."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> Prediction:
        self.proba_ = self.model.predict_proba(X)
        return self


def sample_fit(path: str, parameters: dict[str, Any], data: Callable[[float], Data]) -> Any:
    """The model called `path`, fitted on a few rows of the same kind."""
    sample = data(SHARE)
    return construct(path, parameters).fit(sample.X, sample.y)


def given(path: str, source: Any, *attributes: str) -> Prediction:
    """The model called `path`, not fitted but given these attributes of `source`, its classes and its columns."""
    model = construct(path, {})
    for name in ("classes_", "n_features_in_", *attributes):
        setattr(model, name, getattr(source, name))
    return Prediction(model)


def check_linear(data: Data, coef: Any, intercept: Any) -> Check:
    """The function from a `Prediction` to the error of its probabilities on the first rows, for scores XWᵀ + b."""
    scores = data.probe @ np.asarray(coef).T + intercept
    return check_scores(np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores)


def check_scores(scores: Any) -> Check:
    """The same, for any scores of the first rows, a column a class."""
    reference = softmax(scores, axis=1)
    return lambda prediction: relative_error(prediction.proba_[:PROBE_ROWS], reference)
