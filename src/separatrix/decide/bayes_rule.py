"""The decision stage: a posterior in, an action out.

    action(x) = argmin_a Σ_k L[k,a] p(k|x),      or none when even that costs more than abstaining

A row is rejected when its least expected loss exceeds `reject_cost`, or when its largest posterior is below `reject_below`,
strictly: at equality the rule acts. A cost of 0 rejects every row that is not certain, a cost of the worst loss rejects none.
References: Chow, IEEE Trans. Information Theory 16, 1970; Bishop, Pattern Recognition and Machine Learning, sect. 1.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from numbers import Real
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.data.checks import check_unmasked
from separatrix.data.labels import as_weights
from separatrix.decide.calibrated import calibrated, fit_clone
from separatrix.decide.losses import (
    REJECTED,
    Loss,
    best_actions,
    check_proba,
    class_codes,
    expected_losses,
    loss_table,
    row_losses,
    suffered_losses,
    with_rejection,
)
from separatrix.decide.prior_shift import (
    PriorEstimate,
    check_priors,
    class_counts,
    estimate_priors,
    priors_behind,
    priors_in_use,
    shift_priors,
)
from separatrix.decide.regions import PlaneRegions, PosteriorRegions, plane_regions, posterior_regions, reject
from separatrix.geometry.score_form import ScoreForm, score_form_of
from separatrix.models.scikit_learn import HasMethods, Interval, StrOptions, raise_for_params, routing_enabled


class BayesRule(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """The action of least expected loss under the posterior of any classifier with probabilities.

    Parameters
    ----------
    estimator : classifier
        Of this library or any other with `predict_proba`; a clone of it is fitted. Wrap one that is fitted already in
        `sklearn.frozen.FrozenEstimator`. One without probabilities needs `calibration`.
    loss : "zero-one", array-like of shape (n_classes, n_actions), data frame, dict, Series or callable, default="zero-one"
        ``loss[k][a]`` is the loss of action a when the truth is class k. A bare array is in the order of ``classes_``. Labels
        are matched: of a data frame (index or first column the truth), {truth: {action: cost}}, one cost per class. A function
        is called as ``loss(truth, action)``. Negative losses are gains.
    reject_cost : float, optional
        Price of abstaining: rows whose least expected loss exceeds it are rejected.
    reject_below : float in [0, 1], optional
        Rows in which no class has a posterior of at least this are rejected.
    actions : array-like of shape (n_actions,), optional
        Names of the columns of the loss; by default they are the classes.
    reject_action : label, default="reject"
        What `predict` gives for a rejected row. Where rejection is possible predictions have one type, whatever the rows: that
        of the actions where this name has it too (-1 or NaN among numbers, a string among strings), else objects.
    priors : array-like of shape (n_classes,), optional
        Class frequencies where the rule is used, when they differ from those in training; see `with_priors`.
    calibration : {"sigmoid", "isotonic", "temperature"}, optional
        Calibrate the probabilities on rows held out from their fit, by `sklearn.calibration.CalibratedClassifierCV`, first.
    cv : int, splitter or iterable, optional
        Folds for the calibration, by default five; drawn or taken as in `LogisticRegressionCV`.

    Attributes
    ----------
    estimator_ : fitted classifier
        Calibrated where `calibration` is set.
    classes_ : ndarray of shape (n_classes,)
    actions_ : ndarray of shape (n_actions,)
    loss_matrix_ : ndarray of shape (n_classes, n_actions)
    training_priors_ : ndarray of shape (n_classes,)
        The class frequencies that the estimator's posteriors refer to: its own priors where it has some, else the shares of
        the classes in y, multiplied by its class_weight.
    priors_ : ndarray of shape (n_classes,)
        Those of `predict_proba`: `priors`, or the training's.

    Examples
    --------
    Missing a malignant tumour (class 0) is ten times worse than a false alarm, and a second opinion costs half of one.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from separatrix import BayesRule, LinearDiscriminantAnalysis
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> rule = BayesRule(LinearDiscriminantAnalysis(), loss=[[0, 10], [1, 0]], reject_cost=0.5, reject_action=-1)
    >>> rule.fit(X, y).predict(X[:8])
    array([0, 0, 0, 0, 0, 0, 0, 0])
    >>> rule.decision_regions()
    PosteriorRegions(breakpoints=array([0.5 , 0.95]), actions=array([ 0, -1,  1]))
    """

    estimator_: Any
    actions_: NDArray[Any]
    loss_matrix_: Float
    training_priors_: Float
    priors_: Float

    _parameter_constraints: dict[str, list[Any]] = {
        "loss": [StrOptions({"zero-one"}), callable, "array-like", Mapping, HasMethods("to_pydict")],
        "reject_cost": [Interval(Real, None, None, closed="neither"), None],
        "reject_below": [Interval(Real, 0, 1, closed="both"), None],
        "actions": ["array-like", None],
        "priors": ["array-like", Mapping, None],
        "calibration": [StrOptions({"sigmoid", "isotonic", "temperature"}), None],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        estimator: Any,
        loss: Loss = "zero-one",
        *,
        reject_cost: float | None = None,
        reject_below: float | None = None,
        actions: Iterable[Any] | None = None,
        reject_action: Any = "reject",
        priors: ArrayLike | None = None,
        calibration: Literal["sigmoid", "isotonic", "temperature"] | None = None,
        cv: Any = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.reject_cost = reject_cost
        self.reject_below = reject_below
        self.actions = actions
        self.reject_action = reject_action
        self.priors = priors
        self.calibration = calibration
        self.cv = cv

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags, tags.classifier_tags = inner.input_tags, inner.classifier_tags
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """What is passed where: `sample_weight` and the rest to the estimator's `fit`; `costs` stay here."""
        router, mapping = MetadataRouter(owner=self), MethodMapping().add(caller="fit", callee="fit")
        return router.add_self_request(self).add(estimator=self._probabilistic(), method_mapping=mapping)

    def _probabilistic(self) -> Any:
        """The estimator, calibrated where `calibration` is set; not fitted."""
        return self.estimator if self.calibration is None else calibrated(self.estimator, self.calibration, self.cv)

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, **params: Any) -> Self:
        """Fit the estimator, and check the loss against its classes.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Not needed for a `Source`, which carries its own.
        sample_weight : array-like of shape (n_samples,), optional
        **params : dict
            Metadata for the estimator's `fit`, when scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
        """
        self._validate_params()
        if self.calibration is None and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"{type(self.estimator).__name__} gives no probabilities (it has no predict_proba), and a decision needs them: "
                "set calibration='sigmoid' here, or wrap it in sklearn.calibration.CalibratedClassifierCV."
            )
        if isinstance(X, Source):
            if not (y is None and sample_weight is None and self.calibration is None):
                raise ValueError(
                    "A Source carries its own y and weights and has no folds: leave out y, sample_weight and calibration."
                )
            fitted = clone(self.estimator).fit(X, **params)
        else:
            if y is None:
                raise ValueError("BayesRule requires y to be passed, but the target y is None.")
            check_unmasked(y, "y")
            y = column_or_1d(y, warn=True)
            fitted = fit_clone(self._probabilistic(), X, y, self._routed(sample_weight, params), self.calibration)
        classes = fitted.classes_
        matrix, actions = loss_table(self.loss, classes, self.actions)
        rejects = self.reject_cost is not None or self.reject_below is not None
        self._names = with_rejection(actions, self.reject_action) if rejects else actions
        training_priors = priors_behind(fitted, classes, lambda: class_counts(X, y, sample_weight, classes))
        self.training_priors_, self.priors_ = training_priors, priors_in_use(self.priors, training_priors, classes)
        self.estimator_, self.loss_matrix_, self.actions_ = fitted, matrix, actions
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self

    def _routed(self, sample_weight: ArrayLike | None, params: dict[str, Any]) -> dict[str, Any]:
        """What goes to the estimator's fit."""
        if routing_enabled():
            return dict(process_routing(self, "fit", sample_weight=sample_weight, **params).estimator.fit)
        raise_for_params(params, self, "fit")
        if sample_weight is None:
            return {}
        if self.calibration is None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"The fit of {type(self.estimator).__name__} takes no sample_weight. For a Pipeline or a search enable "
                "scikit-learn's metadata routing, and call set_fit_request(sample_weight=True) on the estimator inside."
            )
        return {"sample_weight": sample_weight}

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes."""
        return self.estimator_.classes_

    def predict_proba(self, X: Any) -> Float:
        """Posterior of every class under ``priors_``.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "estimator_")
        proba = check_proba(self.estimator_.predict_proba(X))
        if np.array_equal(self.priors_, self.training_priors_):
            return proba
        return shift_priors(proba, self.priors_, training_priors=self.training_priors_)

    def score_form(self) -> ScoreForm:
        """The scores of the estimator as a formula of the columns, under ``priors_``.

        Returns
        -------
        ScoreForm
            With the ``probabilities`` of `predict_proba`; a `NoScoreForm` error for an estimator of another library.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from separatrix import BayesRule, GaussianNB
        >>> BayesRule(GaussianNB()).fit(*load_iris(return_X_y=True)).score_form().link
        'softmax'
        """
        check_is_fitted(self, "estimator_")
        form, moved = score_form_of(self.estimator_), not np.array_equal(self.priors_, self.training_priors_)
        return form.with_priors(self.priors_, self.training_priors_) if moved else form

    def expected_loss(self, X: Any, costs: ArrayLike | None = None) -> Float:
        """Posterior expected loss of every action, for every row.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)
        costs : array-like of shape (n_samples, n_classes, n_actions) or (n_samples, n_actions), optional
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_actions)
            In the order of ``actions_``; the smallest of a row is the loss that `predict` compares with `reject_cost`.
        """
        proba = self.predict_proba(X)
        return expected_losses(proba, row_losses(self.loss_matrix_, self.actions_, costs, len(proba)))

    def predict(self, X: Any, costs: ArrayLike | None = None) -> NDArray[Any]:
        """The action of least expected loss, for every row; the first of those that tie.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)
        costs : array-like of shape (n_samples, n_classes, n_actions) or (n_samples, n_actions), optional
            Costs of each row: with three axes they stand for the loss, with two they are prices of the actions, whatever the
            truth, and are added to it.

        Returns
        -------
        ndarray of shape (n_samples,)
            Names of actions, or `reject_action`.
        """
        codes, _ = self._decide(X, costs)
        return self._names[codes]

    def _decide(self, X: Any, costs: ArrayLike | None) -> tuple[Codes, Float]:
        """The code of every row's action, and the losses it was chosen from."""
        proba = self.predict_proba(X)
        losses = row_losses(self.loss_matrix_, self.actions_, costs, len(proba))
        codes = best_actions(proba, losses)
        least = expected_losses(proba, losses).min(axis=1)
        codes[reject(proba, least, self.reject_cost, self.reject_below)] = REJECTED
        return codes, losses

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, costs: ArrayLike | None = None
    ) -> float:
        """Minus the mean loss, so that a search for the largest score finds the smallest risk.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        costs : array-like of shape (n_samples, n_classes, n_actions) or (n_samples, n_actions), optional
            As for `predict`.

        Returns
        -------
        float
        """
        codes, losses = self._decide(X, costs)
        weights = as_weights(sample_weight, len(codes))
        _, truth = class_codes(y, self.classes_, weights)
        return -float(np.average(suffered_losses(truth, codes, losses, self.reject_cost), weights=weights))

    def with_priors(self, priors: ArrayLike, *, training_priors: ArrayLike | None = None) -> Self:
        """The same rule where the classes have other frequencies; nothing is fitted again.

        Parameters
        ----------
        priors : array-like of shape (n_classes,)
            Class frequencies where the rule will be used, in the order of ``classes_``.
        training_priors : array-like of shape (n_classes,), optional
            Those that the estimator's posteriors refer to, where ``training_priors_`` is not right: for a frozen estimator
            that was trained on rows of other frequencies than those given to `fit`.

        Returns
        -------
        A new fitted rule that shares the estimator with this one.
        """
        check_is_fitted(self, "estimator_")
        moved = copy(self)
        moved.priors = priors
        moved.priors_ = check_priors(priors, len(self.classes_), classes=self.classes_)
        if training_priors is not None:
            moved.training_priors_ = check_priors(training_priors, len(self.classes_), "training_priors", self.classes_)
        return moved

    def estimate_priors(self, X: Any) -> PriorEstimate:
        """Class frequencies among rows without labels, by EM; give them to `with_priors`.

        Parameters
        ----------
        X : whatever the estimator takes, of shape (n_samples, n_features)

        Returns
        -------
        PriorEstimate
        """
        check_is_fitted(self, "estimator_")
        return estimate_priors(self.estimator_.predict_proba(X), training_priors=self.training_priors_)

    @overload
    def decision_regions(self, X: None = None) -> PosteriorRegions: ...
    @overload
    def decision_regions(self, X: Any, grid_resolution: int = 200) -> PlaneRegions: ...
    def decision_regions(self, X: Any = None, grid_resolution: int = 200) -> PosteriorRegions | PlaneRegions:
        """Where the rule takes which action.

        Parameters
        ----------
        X : data of two features, optional
            Without it, for two classes: intervals of the posterior of ``classes_[1]`` (under ``priors_``), exactly. With it,
            for any number of classes: actions on a grid that covers these rows.
        grid_resolution : int, default=200
            Points of the grid along each feature.

        Returns
        -------
        PosteriorRegions or PlaneRegions
        """
        check_is_fitted(self, "estimator_")
        if X is None:
            return posterior_regions(self.loss_matrix_, self._names, self.reject_cost, self.reject_below)
        return plane_regions(self.predict, X, grid_resolution)
