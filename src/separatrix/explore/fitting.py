"""From a state to a fitted rule: the estimator of the family, and the decision stage behind it where one is asked for.

scores   (n, A), the action is the largest:   f and −f for two classes, one score per class for more, −E(a|x) with a loss
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from separatrix.data.block import Codes, Float
from separatrix.decide import BayesRule
from separatrix.explore.families import ExplorerFamily, family_of
from separatrix.explore.protocol import BadRequest, ExplorerState
from separatrix.result import Certificate, Fit, Status

REJECTED = -1


@dataclass(frozen=True)
class FittedRule:
    """A fitted model and the rule that decides with it.

    Parameters
    ----------
    state : ExplorerState
    family : ExplorerFamily
    parameters : dict
        All of the family's controls.
    model : fitted estimator
        Of the family; a calibrated one under a decision if it has no probabilities of its own.
    rule : fitted estimator
        The model, or a `BayesRule` around it.
    seconds : float
        Of the fit.
    """

    state: ExplorerState
    family: ExplorerFamily
    parameters: dict[str, Any]
    model: Any
    rule: Any
    seconds: float
    _kept: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False, compare=False)

    def _once(self, name: str, X: Float, compute: Callable[[Float], Any]) -> Any:
        """What is computed of the same rows for several parts of an answer, computed once."""
        key = name, X.tobytes()
        if key not in self._kept:
            self._kept[key] = compute(X)
        return self._kept[key]

    @property
    def classes(self) -> Codes:
        """The codes of the classes that have points."""
        return np.asarray(self.rule.classes_, dtype=np.intp)

    @property
    def decides(self) -> bool:
        """Whether there is a decision stage."""
        return self.rule is not self.model

    @property
    def final(self) -> Any:
        """The estimator itself, of a pipeline its last step."""
        return self.model[-1] if isinstance(self.model, Pipeline) else self.model

    @property
    def record(self) -> Fit | None:
        """Status, certificate and cost, where the estimator keeps them."""
        steps = [step for _, step in self.model.steps] if isinstance(self.model, Pipeline) else [self.model]
        steps += list(getattr(self.model, "estimators_", []))  # machines of two classes
        found = [step.fit_ for step in steps if isinstance(getattr(step, "fit_", None), Fit)]
        if len(found) < 2 or isinstance(self.model, Pipeline):
            return found[0] if found else None
        proofs = [one.certificate for one in found if one.certificate is not None]
        return Fit(
            Status.worst(one.status for one in found),
            sum(one.passes for one in found),
            sum(one.seconds for one in found),
            sum(one.iterations for one in found),
            certificate=Certificate.together(proofs) if len(proofs) == len(found) else None,
        )

    @property
    def actions(self) -> Codes:
        """The codes of the columns of `scores`: classes, and −1 for a rejection."""
        rejects = self.decides and self.rule.reject_cost is not None
        return np.append(self.classes, REJECTED) if rejects else self.classes

    def probabilities(self, X: Float) -> Float | None:
        """Of every class, where the rule has them."""
        if not hasattr(self.rule, "predict_proba"):
            return None
        return self._once("probabilities", X, lambda X: np.asarray(self.rule.predict_proba(X)))

    def scores(self, X: Float) -> Float:
        """One column per action; the largest is the prediction."""
        return self._once("scores", X, self._scores)

    def _scores(self, X: Float) -> Float:
        if self.decides:
            scores = -np.asarray(self.rule.expected_loss(X), dtype=np.float64)
            if self.rule.reject_cost is not None:
                scores = np.column_stack([scores, np.full(len(X), -float(self.rule.reject_cost))])
            return scores
        if self.votes:
            return self._led_pairs(X)
        if self.family.scores is not None:
            return self.family.scores(self.model, X)
        binary = self.binary_scores(X)
        scores = np.asarray(self.rule.decision_function(X), dtype=np.float64) if binary is None else binary
        return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores

    @property
    def votes(self) -> bool:
        """Whether the prediction is a vote of pairs of classes, so that it is not the largest of one score per class."""
        scheme = self.parameters.get("scheme", "pairs")
        return self.family.votes and scheme == "pairs" and len(self.classes) > 2

    def pair_scores(self, X: Float) -> Float:
        """f_kl of every pair k < l, positive for k."""
        machines = getattr(self.model, "estimators_", None)
        if machines is None:
            return np.asarray(self.model.decision_function(X), dtype=np.float64)
        return -np.column_stack([np.ravel(machine.decision_function(X)) for machine in machines])

    def led_by(self, X: Float) -> Float:
        """min_l f_kl of every class: positive for the one that wins all its pairs, if there is one."""
        K = len(self.classes)
        least = np.full((len(X), K), np.inf)
        pairs = [(k, l) for k in range(K) for l in range(k + 1, K)]  # noqa: E741  # names of the formula
        for column, (k, l) in zip(self.pair_scores(X).T, pairs, strict=True):  # noqa: E741  # names of the formula
            least[:, k], least[:, l] = np.minimum(least[:, k], column), np.minimum(least[:, l], -column)
        return least

    def _led_pairs(self, X: Float) -> Float:
        """The same, and positive for the class that is predicted where none wins all; it vanishes at the same lines."""
        scores = self.led_by(X)
        unclear = np.flatnonzero(scores.max(axis=1) <= 0.0)
        if len(unclear):
            winners = np.searchsorted(self.classes, self.rule.predict(X[unclear]))
            scores[unclear, winners] = -scores[unclear].max(axis=1)
        return scores

    def binary_scores(self, X: Float) -> Float | None:
        """f(x) of a model of two classes, positive for the second; None for more, and where there is no such score."""
        if len(self.classes) != 2 or not hasattr(self.model, "decision_function"):
            return None
        if self.family.scores is not None and not self.decides:
            first, second = self.scores(X).T
            return second - first
        return self._once("binary", X, lambda X: np.asarray(self.model.decision_function(X), dtype=np.float64).ravel())

    def predict(self, X: Float) -> Codes:
        """The codes of the actions."""
        return self.actions[self.scores(X).argmax(axis=1)]


def build(state: ExplorerState) -> tuple[ExplorerFamily, dict[str, Any], Any]:
    """The family, its parameters, and its estimator, not fitted."""
    family = family_of(state.family)
    parameters = family.parameters(state.parameters)
    return family, parameters, family.build(**parameters)


def fit(state: ExplorerState) -> FittedRule:
    """Fit what the state describes."""
    points = state.points
    present = np.unique(points.codes[points.weights > 0.0])
    if len(present) < 2:
        raise BadRequest("Draw points of at least two classes: a boundary needs two sides.")
    family, parameters, model = build(state)
    begun = time.perf_counter()
    fit_model(model, state)
    rule = model
    if state.decision is not None:
        rule = decision_rule(model, state, present)
        model = model if hasattr(model, "predict_proba") else rule.estimator_
    return FittedRule(state, family, parameters, model, rule, time.perf_counter() - begun)


def fit_model(model: Any, state: ExplorerState) -> Any:
    """Fit an estimator to the points of a state, with their weights if these differ."""
    X, y, weights = state.points.X, state.points.codes, state.points.counted
    if weights is None:
        return model.fit(X, y)
    if isinstance(model, Pipeline):
        return model.fit(X, y, **{f"{name}__sample_weight": weights for name, _ in model.steps})
    return model.fit(X, y, sample_weight=weights)


def decision_rule(model: Any, state: ExplorerState, present: Codes) -> BayesRule:
    """The rule of least expected loss, for the classes that have points."""
    decision = state.decision
    assert decision is not None
    options: dict[str, Any] = {
        "loss": np.asarray(decision.loss)[np.ix_(present, present)],
        "reject_cost": decision.reject,
        "reject_action": REJECTED,
    }
    if decision.priors is not None:
        priors = np.asarray(decision.priors)[present]
        if not priors.sum() > 0.0 or (priors < 0.0).any():
            raise BadRequest("The priors of the classes that have points must be 0 or more, and not all 0.")
        options["priors"] = priors / priors.sum()
    X, y, weights = state.points.X, state.points.codes, state.points.counted
    if hasattr(model, "predict_proba"):
        return BayesRule(FrozenEstimator(model), **options).fit(X, y)
    return BayesRule(model, calibration="sigmoid", **options).fit(X, y, sample_weight=weights)
