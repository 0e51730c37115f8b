"""A fitted classifier as another language can compute it: from the columns of a table to a decision.

columns → features → scores → probabilities → decision

value    ((x, or fill where x is missing) − centre)/scale       missing   ([x is missing] − centre)/scale
level    ([x = level] − centre)/scale                           target    (t(x) − centre)/scale, t looked up by text
text     the same, t the score of words (JSON only)               pipelines and feature maps: pipelines.py

scores   a linear, quadratic, additive, cumulative or kernel form, or votes between pairs        see the forms in geometry/
platt    p = 1/(1 + e^{As + B}), on the side of ½ that s is on, within [10⁻⁷, 1 − 10⁻⁷]; the other links as there

decision    argmin_a Σ_k p_k L_ka, or the class that wins

A model whose scores are none of these is refused with the reason, and with what to use instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from separatrix.comparison.table_model import TableModel
from separatrix.data.arrow_columns import MISSING
from separatrix.data.block import Float
from separatrix.decide.bayes_rule import BayesRule
from separatrix.export.pipelines import Feature, Products, transformed, unfolded
from separatrix.geometry.additive_form import Additive, GaussianTerm, GroupTerm, RateTerm, TableTerm
from separatrix.geometry.combined_forms import Composition, Integrated, Machines, OneVsRest, PairVote, Placed
from separatrix.geometry.cumulative_form import Cumulative
from separatrix.geometry.score_form import (
    CalibratedLink,
    KernelExpansion,
    Linear,
    NoScoreForm,
    Quadratic,
    ScoreForm,
    ShiftedLink,
    score_form_of,
)
from separatrix.models.generative import GenerativeClassifier
from separatrix.models.svm.score_calibration import Platt
from separatrix.tables.encoding.text_scores import TextScores

# Stands for log 0, the score of a class that is never chosen: its exponential is 0 beside any other.
NEVER = -1e300
# How true and false look as text: of booleans and of numbers, in any database.
_TRUE, _FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")


@dataclass(frozen=True)
class InputColumn:
    """A column that is read: "number", "flag" (0 and 1, from either or from its two words) or "text".

    A number may be written as text, with a `decimal` mark, and `absent` texts stand for none; a plain number has no such mark.
    """

    name: str
    kind: Literal["number", "flag", "text"]
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    decimal: str = ""
    absent: tuple[str, ...] = ()


Rule = Linear | Quadratic | Additive | Cumulative | PairVote | KernelExpansion
LinkName = Literal["softmax", "shares", "platt", "coupled", "none"]


@dataclass(frozen=True)
class Decision:
    """Actions with their (K, A) losses, and when to take none."""

    loss: Float
    actions: list[Any]
    reject_cost: float | None = None
    reject_below: float | None = None
    reject_action: Any = None


@dataclass(frozen=True)
class ExportForm:
    """All that an export needs of a classifier."""

    classes: list[Any]
    rule: Rule
    link: LinkName
    columns: tuple[InputColumn, ...] = ()
    features: tuple[Feature, ...] = ()
    curves: tuple[tuple[float, float], ...] = ()
    """Slope and constant of Platt's curve: of two classes one, of more one for each pair."""
    decision: Decision | None = None
    of_table: bool = False
    products: Products = ()
    """Of the features, by their places, where the rule is one of products of them."""
    votes_only: bool = False
    """Whether votes that tie go to the first class; otherwise the sums of the scores decide between them."""


def of_one_type(labels: list[Any]) -> list[Any]:
    """Labels of one type as they are, of several as texts."""
    return labels if len({type(label) for label in labels}) == 1 else [str(label) for label in labels]


_WORDS = (
    "Column {!r} is free text whose words it reads, which {} has no functions for. Write JSON, keep Python, or compare again "
    "without the column (--drop)."
)


def export_form(model: Any, target: str) -> ExportForm:
    """The form of a table model or an estimator; one that cannot be exported is refused with what to do for `target`."""
    table = model if isinstance(model, TableModel) else None
    whole = model if table is None else table.estimator
    check_is_fitted(whole)
    transformers, estimator = unfolded(whole)
    try:
        form = _estimator_form(estimator, target)
        if transformers and table is None:
            return _mapped_form(model, transformers, form)
        if transformers:
            raise NotImplementedError(_NO_SUM)
    except NotImplementedError as refusal:
        raise ValueError(f"{type(estimator).__name__} cannot be written as {target}: {refusal}") from None
    if table is not None:
        form = _table_form(table, form)
        prose = next((feature.column for feature in form.features if feature.what == "text"), None)
        if prose is not None and target != "JSON":
            raise ValueError(_WORDS.format(prose, target))
        return form
    if form.columns:
        return form
    names = _names(model)
    columns = tuple(InputColumn(name, "number") for name in names)
    return replace(form, columns=columns, features=tuple(Feature(name, name) for name in names))


def _names(model: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]


def _mapped_form(model: Any, transformers: list[Any], form: ExportForm) -> ExportForm:
    """The form of a pipeline or a feature map. Texts are a column each; of numbers alone all columns are read."""
    names = _names(model)
    features, products = transformed(transformers, names)
    if isinstance(form.rule, Additive):
        raise NotImplementedError(
            "its naive Bayes reads columns as they are. Use GaussianNB, or drop the steps before it."
        )
    columns = []
    texts = any(isinstance(feature.level, str) and feature.what == "level" for feature in features)
    for name in names:
        levels = [feature.level for feature in features if feature.column == name and feature.what == "level"]
        if not texts or any(feature.column == name for feature in features):
            text, flag = any(isinstance(one, str) for one in levels), any(isinstance(one, bool) for one in levels)
            words = (_TRUE, _FALSE) if flag and not text else ()
            columns.append(InputColumn(name, "text" if text else "flag" if flag else "number", *words))
    return replace(form, columns=tuple(columns), features=features, products=products)


def _table_form(model: TableModel, form: ExportForm) -> ExportForm:
    used = {column.name for column in form.columns}
    features: tuple[Feature, ...] = ()
    if model.encoder is not None:
        features = tuple(
            Feature(
                *(f.name, f.column, f.what, f.level, f.fill if f.what == "value" else None, f.centre, f.scale),
                values={text: own[f.place] for text, own in model.encoder.targets_.get(f.column, {}).items()},
                words=_words_of(model.encoder.texts_[f.column], f.place) if f.what == "text" else (),
            )
            for f in model.encoder.features_
        )
        used = {feature.column for feature in features}
    dates = [column.source for column in model.schema.columns if column.part and column.name in used]
    if dates:
        raise ValueError(
            f"The model reads parts of the date {dates[0]!r}, which only Python makes of it; add them to the table as columns "
            "of numbers to have the model elsewhere."
        )
    decimal = model.schema.decimal
    columns = tuple(_read_as(column, decimal) for column in model.schema.columns if column.name in used)
    codes = np.asarray(model.estimator.classes_, dtype=np.intp)
    decision = form.decision
    if model.loss is not None:
        actions = model.classes_ if model.actions is None else model.actions
        decision = Decision(np.asarray(model.loss, dtype=np.float64)[codes], _plain(actions))
    classes = _plain(model.classes_[codes])
    return replace(form, classes=classes, columns=columns, features=features, decision=decision, of_table=True)


def _words_of(scores: TextScores, place: int) -> list[tuple[int, float, float]]:
    """The buckets that are known, their idf, and what they say of one class."""
    return list(zip(scores.buckets.tolist(), scores.idf.tolist(), scores.weights[:, place].tolist(), strict=True))


def _read_as(column: Any, decimal: str) -> InputColumn:
    if column.kind == "numeric":
        absent = (*MISSING, *([column.absent] if column.absent else []))
        return InputColumn(column.name, "number", decimal=decimal, absent=absent)
    if column.kind == "categorical":
        return InputColumn(column.name, "text", missing=MISSING)
    words = [name.lower() for name in column.categories if name != column.true]
    own = (*words, column.true.lower())  # these before what is usual: a flag may be written 1 and 2
    true, false = (tuple(word for word in usual if word not in own) for usual in (_TRUE, _FALSE))
    return InputColumn(column.name, "flag", (column.true.lower(), *true), (*words, *false))


def _plain(labels: Any) -> list[Any]:
    """Labels as Python's own strings, numbers and booleans."""
    return list(map(_own, labels)) if isinstance(labels, list) else list(np.asarray(labels).tolist())


def _own(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _estimator_form(estimator: Any, target: str) -> ExportForm:
    """The form of a fitted estimator; features, and columns unless the rule names them, are added by the caller."""
    try:
        found = score_form_of(estimator)
    except NoScoreForm as reason:
        sentence = "it answers at random. Use strategy='prior'." if reason.at_random else _NO_SUM
        raise NotImplementedError(sentence) from None
    rule = _exportable(found, target)
    if isinstance(rule, Linear) and len(rule.weights) == 1 and not np.isfinite(rule.constants).all():
        inner = estimator.estimator_ if isinstance(estimator, BayesRule) else estimator
        if not isinstance(inner, GenerativeClassifier) and not np.isfinite(getattr(inner, "intercept_", 0.0)).all():
            raise NotImplementedError("a single class has rows of positive weight, so there is no rule to write.")
    link, curves = _link(rule, target)
    columns: tuple[InputColumn, ...] = ()
    if isinstance(rule, Additive):
        words = {"flag": (_TRUE, _FALSE)}
        columns = tuple(InputColumn(name, kind, *words.get(kind, ())) for name, kind in rule.columns.items())
    decision = None
    if isinstance(estimator, BayesRule):
        if link == "none":
            raise NotImplementedError("its estimator's probabilities have no written form.")
        limits = (estimator.reject_cost, estimator.reject_below, _own(estimator.reject_action))
        loss = np.asarray(estimator.loss_matrix_, dtype=np.float64)
        decision = Decision(loss, _plain(estimator.actions_), *limits)
    if isinstance(rule, Linear | Quadratic | Additive):
        possible = np.nan_to_num(rule.constants, nan=np.nan, posinf=-NEVER, neginf=NEVER)
        rule = replace(rule, constants=possible)
    votes_only = isinstance(rule, PairVote) and not getattr(estimator, "break_ties", True)
    made = ExportForm(_plain(estimator.classes_), rule, link, columns, curves=curves, decision=decision)
    return replace(made, votes_only=votes_only)


_NO_SUM = "it is not a sum over columns. Use a linear model, a discriminant or naive Bayes, or keep Python."
_IMPOSSIBLE = (
    "with alpha=0 a class is impossible where a value occurs that it never had, and sums cannot express that. Fit with "
    "alpha > 0."
)


def _exportable(form: ScoreForm, target: str) -> Rule:
    """The form, if arithmetic, exponentials and logarithms of the columns are enough for it."""
    if isinstance(form, Placed):
        raise NotImplementedError("some class has no rows of positive weight. Fit it to the others alone.")
    if isinstance(form, Composition):
        _exportable(form.form, target)  # which may have a reason of its own
        raise NotImplementedError(_NO_SUM)
    if isinstance(form, PairVote):
        return _votes(form, target)
    if isinstance(form, KernelExpansion):
        return _expansion(form, target)
    if isinstance(form, Integrated):
        raise NotImplementedError(
            "its probabilities are a formula for two classes and predictive='probit' only. Use LogisticRegression, or keep "
            "Python."
        )
    if isinstance(form, OneVsRest):
        if all(isinstance(machine, Linear) and len(machine.weights) == 1 for machine in form.machines.machines):
            raise NotImplementedError("its machines have no common form. Use machines='K' of linear classifiers.")
        raise NotImplementedError("its machines are not linear.")
    if isinstance(form, Linear) and np.isneginf(form.weights).any():
        raise NotImplementedError(_IMPOSSIBLE)
    if isinstance(form, Additive):
        _check_terms(form)
    if isinstance(form, Quadratic):
        return replace(form, factors=[np.diag(f) if f.ndim == 1 else f for f in form.factors])
    if isinstance(form, Linear | Additive | Cumulative):
        return form
    raise NotImplementedError(_NO_SUM)


def _votes(form: PairVote, target: str) -> PairVote:
    """Machines between pairs of three classes or more, all of them linear or on one kernel, positive for the first class."""
    pairs = form.pairs
    if isinstance(pairs, Machines):
        own = [one for one in pairs.machines if isinstance(one, Linear) and _one_score(one)]
        scored = isinstance(form.confidences, Machines) and form.confidences.threshold is None
        if len(own) < len(pairs.machines) or not scored:
            raise NotImplementedError(
                "its machines are not linear, each with one score. Use pairs of LogisticRegression or LinearSVC."
            )
        constants = [float(one.constants[0] - one.weights[0] @ one.centre) for one in own]
        pairs = Linear.of(np.vstack([one.weights for one in own]), constants, "none")
    if form.n_classes < 3 or not isinstance(pairs, Linear | KernelExpansion):
        raise NotImplementedError(_NO_SUM)
    pairs = _expansion(pairs, target) if isinstance(pairs, KernelExpansion) else pairs
    if form.second:
        assert isinstance(pairs, Linear)
        pairs = replace(pairs, weights=-pairs.weights, constants=-pairs.constants)
    return PairVote(pairs, form.n_classes, link=form.link)


def _one_score(form: Linear) -> bool:
    bare = form.above is None and form.spread is None
    return bare and len(form.weights) == 1 and bool(np.isfinite(form.weights).all())


def _expansion(form: KernelExpansion, target: str) -> KernelExpansion:
    from separatrix.dual.given_kernels import Function, Precomputed  # seldom needed
    from separatrix.export.sql_kernels import check_size

    if any(isinstance(kernel, Function | Precomputed) for kernel in every_part(form.kernel)):
        raise NotImplementedError("its kernel is a Python function or a matrix of values. Use a kernel of separatrix.")
    if target == "SQL":
        check_size(form)
    return form


def every_part(kernel: Any) -> list[Any]:
    """A kernel, and those that it is made of."""
    return [kernel, *(one for part in getattr(kernel, "parts", ()) for one in every_part(part))]


def _check_terms(form: Additive) -> None:
    for term in form.terms:
        if isinstance(term, GaussianTerm) and not np.isfinite(term.scales).all():
            raise NotImplementedError(
                f"the variance of column {term.column!r} is too large for a double. Use it in a larger unit."
            )
        rare = isinstance(term, RateTerm) and (term.rates == 0).any()
        rare = rare or (isinstance(term, GroupTerm) and (term.shares == 0).any())
        if rare or (isinstance(term, TableTerm) and not np.isfinite([*term.logs, term.other]).all()):
            raise NotImplementedError(_IMPOSSIBLE)


def _link(rule: Rule, target: str) -> tuple[LinkName, tuple[tuple[float, float], ...]]:
    """How probabilities are made of the scores, and the slopes and constants of Platt's curves."""
    link = rule.link
    if isinstance(link, ShiftedLink):
        if isinstance(rule, Linear) and rule.spread is not None:
            raise NotImplementedError("other priors and uncertain weights have no common form. Use LogisticRegression.")
        raise NotImplementedError("other priors need probabilities that are a softmax. Use a logistic regression.")
    if isinstance(link, CalibratedLink):
        curves = tuple((one.slope, one.constant) for one in link.curves if isinstance(one, Platt))
        if len(curves) < len(link.curves):
            raise NotImplementedError("its probabilities are isotonic steps. Use calibration='sigmoid'.")
        if len(curves) == 1:
            return "platt", curves
        if not isinstance(rule, PairVote):
            raise NotImplementedError("its probabilities come from several curves. Use a logistic regression.")
        if target != "JSON":
            raise NotImplementedError(
                "the probabilities of three classes or more solve a system of equations for each row. Write JSON, fit it with "
                "calibration=None for its decisions alone, or use a logistic regression."
            )
        return "coupled", curves
    if link == "labels":
        raise NotImplementedError("it gives several labels per row. Fit one classifier per label.")
    return link, ()
