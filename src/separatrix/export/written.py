"""The written form of every family that has one: what its attributes mean as scores.

One function a family; `form` says what they return. A model without a form says why, and what to use instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import check_is_fitted

from separatrix.comparison.table_model import TableModel
from separatrix.data.arrow_columns import MISSING
from separatrix.data.block import Float
from separatrix.decide.bayes_rule import BayesRule
from separatrix.export.form import (
    NEVER,
    Additive,
    Decision,
    Feature,
    Form,
    GaussianTerm,
    GroupTerm,
    InputColumn,
    Linear,
    LinkName,
    Quadratic,
    RateTerm,
    TableTerm,
    Term,
)
from separatrix.models.base import LinearRule
from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
from separatrix.models.generative import GaussianClassifier
from separatrix.models.least_squares.ridge_classifier import RidgeClassifier
from separatrix.models.multiclass.one_vs_rest import OneVsRestClassifier
from separatrix.models.naive_bayes import families
from separatrix.models.naive_bayes.bernoulli_nb import BernoulliNB
from separatrix.models.naive_bayes.categorical_nb import CategoricalNB
from separatrix.models.naive_bayes.gaussian_nb import GaussianNB
from separatrix.models.naive_bayes.mixed_nb import MixedNB
from separatrix.models.naive_bayes.naive_bayes import LinearNaiveBayes
from separatrix.models.svm.score_calibration import Platt
from separatrix.models.svm.svc import SVC

_LOG_2PI = float(np.log(2.0 * np.pi))
# How true and false look as text: of booleans and of numbers, in any database.
_TRUE, _FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")


def form_of(model: Any, target: str) -> Form:
    """The written form of a model; one that has none is refused with what to do for `target`."""
    if isinstance(model, TableModel):
        return _table_form(model, target)
    check_is_fitted(model)
    try:
        form = written(model)
    except NotImplementedError as refusal:
        raise ValueError(f"{type(model).__name__} cannot be written as {target}: {refusal}") from None
    if form.columns:
        return form
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]
    columns = tuple(InputColumn(name, "number") for name in names)
    return replace(form, columns=columns, features=tuple(Feature(name, name) for name in names))


def _table_form(model: TableModel, target: str) -> Form:
    try:
        form = written(model.estimator)
    except NotImplementedError as refusal:
        raise ValueError(f"{type(model.estimator).__name__} cannot be written as {target}: {refusal}") from None
    used = {column.name for column in form.columns}
    features: tuple[Feature, ...] = ()
    if model.encoder is not None:
        features = tuple(
            Feature(f.name, f.column, f.what, f.level, f.fill, f.centre, f.scale) for f in model.encoder.features_
        )
        used = {feature.column for feature in features}
    columns = tuple(_read_as(column) for column in model.schema.columns if column.name in used)
    codes = np.asarray(model.estimator.classes_, dtype=np.intp)
    decision = form.decision
    if model.loss is not None:
        actions = model.classes_ if model.actions is None else model.actions
        decision = Decision(np.asarray(model.loss, dtype=np.float64)[codes], plain(actions))
    return replace(
        form, classes=plain(model.classes_[codes]), columns=columns, features=features, decision=decision, of_table=True
    )


def _read_as(column: Any) -> InputColumn:
    if column.kind == "numeric":
        return InputColumn(column.name, "number")
    if column.kind == "categorical":
        return InputColumn(column.name, "text", missing=MISSING)
    words = [name.lower() for name in column.categories if name != column.true]
    return InputColumn(column.name, "flag", (column.true.lower(), *_TRUE), (*words, *_FALSE))


def plain(labels: Any) -> list[Any]:
    """Labels as Python's own strings, numbers and booleans."""
    return list(np.asarray(labels).tolist()) if not isinstance(labels, list) else list(map(_own, labels))


def _own(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _possible(scores: Float) -> Float:
    return np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=np.nan, posinf=-NEVER, neginf=NEVER)


def _linear(weights: Float, constants: Float, centre: Float | None = None, above: float | None = None) -> Linear:
    weights = np.asarray(weights, dtype=np.float64)
    centre = np.zeros(weights.shape[1]) if centre is None else centre
    return Linear(weights, _possible(np.atleast_1d(constants)), centre, above)


@singledispatch
def written(estimator: Any) -> Form:
    """The form of a fitted estimator; columns are added by the caller, unless the estimator names them itself."""
    raise NotImplementedError(
        "it is not a sum over columns. Use a linear model, a discriminant or naive Bayes, or keep Python."
    )


def _refuse_absent_classes(model: Any) -> None:
    if model._places is not None:
        raise NotImplementedError("some class has no rows of positive weight. Fit it to the others alone.")


@written.register
def _linear_rule(model: LinearRule) -> Form:
    W, b = model.linear_form()
    if len(W) == 1 and not np.isfinite(b).all():
        raise NotImplementedError("a single class has rows of positive weight, so there is no rule to write.")
    link: LinkName = "softmax" if hasattr(model, "predict_proba") else "none"
    return Form(plain(model.classes_), _linear(W, b), link)


@written.register
def _ridge(model: RidgeClassifier) -> Form:
    if getattr(model, "_multi_label", False):
        raise NotImplementedError("it gives several labels a row. Fit one classifier a label.")
    return _linear_rule(model)


@written.register
def _lda(model: LinearDiscriminantAnalysis) -> Form:
    model._check_ready()
    weights, constants, centre = model._centred
    return Form(plain(model.classes_), _linear(weights, constants, centre), "softmax")


@written.register
def _bayesian(model: BayesianLogisticRegression) -> Form:
    model._check_ready()
    _refuse_absent_classes(model)
    if len(model.classes_) > 2 or model.predictive != "probit":
        raise NotImplementedError(
            "its probabilities are a formula for two classes and predictive='probit' only. Use LogisticRegression, or keep "
            "Python."
        )
    centre, scale = model._scaling
    mean, d = model._posterior.mean, len(scale)
    values, vectors = np.linalg.eigh(model.predictive_width_ * model._posterior.covariance())
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    constant, floor = (mean[:, -1], factor[-1]) if model.fit_intercept else (np.zeros(1), np.zeros(len(factor)))
    rule = Linear(mean[:, :d] / scale, constant, centre, spread=(factor[:d] / scale[:, None], floor))
    return Form(plain(model.classes_), rule, "softmax")


@written.register
def _counted(model: LinearNaiveBayes) -> Form:
    model.linear_form()  # refuses what alpha=0 makes impossible
    above = getattr(model, "binarize", None) if isinstance(model, BernoulliNB) else None
    constants = model._constants + model._prior_scores()
    return Form(plain(model.classes_), _linear(model._finite, constants, None, above), "softmax")


@written.register
def _gaussian(model: GaussianClassifier) -> Form:
    model._check_ready()
    factors = [metric.half(np.eye(metric.n_features)) for metric in model._metrics]
    volumes = np.array([metric.log_det + metric.rank * _LOG_2PI for metric in model._metrics])
    with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
        constants = np.log(model.priors_) - 0.5 * volumes
    means = np.asarray(model.means_, dtype=np.float64)
    return Form(plain(model.classes_), Quadratic(means, factors, _possible(constants)), "softmax")


@written.register
def _gaussian_nb(model: GaussianNB) -> Form:
    model._check_ready()
    with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
        constants = np.log(model.priors_) - 0.5 * np.log(2.0 * np.pi * model.var_).sum(axis=1)
    factors = [np.diag(1.0 / np.sqrt(variances)) for variances in model.var_]
    return Form(plain(model.classes_), Quadratic(model.theta_, factors, _possible(constants)), "softmax")


@written.register
def _categorical_nb(model: CategoricalNB) -> Form:
    model._check_ready()
    names = getattr(model, "feature_names_in_", None)
    names = [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]
    tables = zip(names, model.feature_log_prob_, model._unseen, strict=True)
    terms: list[Term] = [
        TableTerm(name, list(range(logs.shape[1])), _finite(logs.T), _finite(unseen)) for name, logs, unseen in tables
    ]
    columns = tuple(InputColumn(name, "number") for name in names)
    return Form(plain(model.classes_), Additive(terms, _possible(model.class_log_prior_)), "softmax", columns)


@written.register
def _mixed_nb(model: MixedNB) -> Form:
    model._check_ready()
    numbered = all(isinstance(name, int) for name in model.families_)
    names = {name: f"x{name}" if numbered else str(name) for name in model.families_}
    terms: list[Term] = []
    kinds: dict[str, InputColumn] = {}
    for key, reader in model._readers.items():
        columns = [names[name] for name in key]
        term = _term(reader, columns)
        terms.append(term)
        texts = isinstance(term, TableTerm) and any(isinstance(value, str) for value in term.values)
        for column, own in zip(columns, key, strict=True):
            flag = model.families_[own] == "bernoulli"
            kinds[column] = (
                InputColumn(column, "flag", _TRUE, _FALSE)
                if flag
                else InputColumn(column, "text" if texts else "number")
            )
    ordered = tuple(kinds[name] for name in names.values())
    return Form(plain(model.classes_), Additive(terms, _possible(model.class_log_prior_)), "softmax", ordered)


@singledispatch
def _term(reader: Any, columns: Sequence[str]) -> Term:
    raise NotImplementedError(f"a column of the family {type(reader).__name__} has no written form.")


@_term.register
def _gaussian_term(reader: families.GaussianReader, columns: Sequence[str]) -> Term:
    if not np.isfinite(reader.variance).all():
        raise NotImplementedError(
            f"the variance of column {columns[0]!r} is too large for a double. Use it in a larger unit."
        )
    scales = np.sqrt(reader.variance)
    return GaussianTerm(columns[0], reader.mean, scales, -0.5 * np.log(2.0 * np.pi * reader.variance))


@_term.register
def _bernoulli_term(reader: families.BernoulliReader, columns: Sequence[str]) -> Term:
    with np.errstate(divide="ignore"):  # refused just below
        logs = np.stack([np.log1p(-reader.rate), np.log(reader.rate)])
    return TableTerm(columns[0], [0, 1], _finite(logs), np.zeros(len(reader.rate)))


@_term.register
def _categorical_term(reader: families.CategoricalReader, columns: Sequence[str]) -> Term:
    return TableTerm(columns[0], plain(list(reader.values)), _finite(reader.logs[:-1]), _finite(reader.logs[-1]))


@_term.register
def _poisson_term(reader: families.PoissonReader, columns: Sequence[str]) -> Term:
    with np.errstate(divide="ignore"):  # refused just below
        _finite(np.log(reader.rate))
    return RateTerm(columns[0], reader.rate)


@_term.register
def _multinomial_term(reader: families.MultinomialReader, columns: Sequence[str]) -> Term:
    with np.errstate(divide="ignore"):  # refused just below
        _finite(np.log(reader.share))
    return GroupTerm(tuple(columns), reader.share)


def _finite(logs: Float) -> Float:
    if not np.isfinite(logs).all():
        raise NotImplementedError(
            "with alpha=0 a class is impossible where a value occurs that it never had, and sums cannot say that. Fit with "
            "alpha > 0."
        )
    return np.asarray(logs, dtype=np.float64)


@written.register
def _svc(model: SVC) -> Form:
    model._check_ready()
    _refuse_absent_classes(model)
    if not model._kernel.linear:
        raise NotImplementedError(
            "a kernel compares each row with the support vectors. Use kernel='linear', or keep Python."
        )
    if len(model.classes_) > 2:
        raise NotImplementedError(
            "its machines vote between pairs of classes. Use LinearSVC, or OneVsRestClassifier(LogisticRegression())."
        )
    centre = np.zeros(model.n_features_in_) if model._centre is None else model._centre
    weights = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    rule = _linear(weights, model._intercepts, centre)
    if not model._calibrators:
        return Form(plain(model.classes_), rule, "none")
    curve = model._calibrators[0]
    if not isinstance(curve, Platt):
        raise NotImplementedError("its probabilities are isotonic steps. Use calibration='platt'.")
    return Form(plain(model.classes_), rule, "platt", platt=(curve.slope, curve.constant))


@written.register
def _one_vs_rest(model: OneVsRestClassifier) -> Form:
    _refuse_absent_classes(model)
    forms = [written(machine) for machine in model.estimators_]
    if not all(isinstance(form.rule, Linear) and len(form.rule.weights) == 1 for form in forms):
        raise NotImplementedError("its machines are not linear.")
    rules = [form.rule for form in forms if isinstance(form.rule, Linear)]
    links = {form.link for form in forms}
    plainly = all(rule.above is None and rule.spread is None for rule in rules)
    if model._deduces or not links <= {"softmax", "none"} or not plainly:
        raise NotImplementedError("its machines have no common form. Use machines='K' of linear classifiers.")
    weights = np.vstack([rule.weights for rule in rules])
    constants = np.array([float(rule.constants[0] - rule.weights[0] @ rule.centre) for rule in rules])
    link: LinkName = "none" if links == {"none"} else "softmax" if len(rules) == 1 else "shares"
    return Form(plain(model.classes_), _linear(weights, constants), link)


@written.register
def _bayes_rule(model: BayesRule) -> Form:
    form = written(model.estimator_)
    if form.link == "none":
        raise NotImplementedError("its estimator's probabilities have no written form.")
    if not np.array_equal(model.priors_, model.training_priors_):
        if form.link != "softmax":
            raise NotImplementedError("other priors need probabilities that are a softmax. Use a logistic regression.")
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            shift = np.log(model.priors_) - np.log(model.training_priors_)
        if isinstance(form.rule, Linear) and form.rule.spread is not None:
            raise NotImplementedError("other priors and uncertain weights have no common form. Use LogisticRegression.")
        single = isinstance(form.rule, Linear) and len(form.rule.weights) == 1
        moved = form.rule.constants + (shift[1:] - shift[:1] if single else shift)
        form = replace(form, rule=replace(form.rule, constants=_possible(moved)))
    actions = plain(model.actions_)
    limits = (model.reject_cost, model.reject_below, _own(model.reject_action))
    return replace(form, decision=Decision(np.asarray(model.loss_matrix_, dtype=np.float64), actions, *limits))


@written.register
def _shares(model: DummyClassifier) -> Form:
    if model.strategy not in ("prior", "most_frequent", "constant"):
        raise NotImplementedError("it answers at random. Use strategy='prior'.")
    p = model.predict_proba(np.zeros((1, 1)))[0]
    with np.errstate(divide="ignore"):  # a class of share 0 is never chosen
        constants = np.log(p)
    rule = Linear(np.zeros((len(p), model.n_features_in_)), _possible(constants), np.zeros(model.n_features_in_))
    return Form(plain(model.classes_), rule, "softmax")
