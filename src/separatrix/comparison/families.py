"""The families that are compared, how each is built, and how its penalty is chosen from the rows it is trained on.

    logistic (L2, L1)      C by folds along the path of penalties; beyond 20 000 rows by approximate leave-one-out
    RDA, least squares     (α, γ) and α by exact leave-one-out
    machines               C, and γ of a kernel, by three folds and the share of right answers, step by step uphill
    the others             nothing to choose, or chosen by the fit itself (the evidence, for the Bayesian one)

A choice is made from the training part of a fold alone. Where rows belong together, those of a group or of the past, it is made
by folds that keep them so, and not by leave-one-out, which would leave the rest of the group. Among equal choices the stronger
penalty wins. A choice at the end of what was tried is tried beyond (search.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from separatrix.comparison.folds import UNRELATED, Fold, Related, inner_folds
from separatrix.comparison.search import climb, least_loss
from separatrix.data.block import Codes, Float
from separatrix.models.bayesian.bayesian_logistic import BayesianLogisticRegression
from separatrix.models.discriminant.linear_discriminant import LinearDiscriminantAnalysis
from separatrix.models.discriminant.quadratic_discriminant import QuadraticDiscriminantAnalysis
from separatrix.models.discriminant.regularized_discriminant import RegularizedDiscriminantAnalysis
from separatrix.models.least_squares.ridge import Ridge
from separatrix.models.least_squares.ridge_classifier import RidgeClassifier
from separatrix.models.logistic.cross_validation import LogisticRegressionCV
from separatrix.models.logistic.logistic_regression import LogisticRegression
from separatrix.models.logistic.path import logistic_path
from separatrix.models.naive_bayes.mixed_nb import MixedNB
from separatrix.models.ordered.ordered_logistic import OrderedLogisticRegression
from separatrix.models.perceptron.perceptron import Perceptron
from separatrix.models.svm.linear_svc import LinearSVC
from separatrix.models.svm.svc import SVC

Tuner = Callable[..., dict[str, Any]]
"""Parameters chosen from rows, class codes, a seed, how often each row counts, and which rows belong together."""

# Beyond these numbers of rows a machine with a kernel, or one that is fitted six times for its probabilities, takes minutes.
RBF_ROWS, CALIBRATED_ROWS = 5_000, 3_000
FIRST_CURVED = 9
"""The least simplicity of a family whose boundaries between classes may be curved; naive Bayes has few parameters instead."""
SHRUNK = frozenset({"logistic", "bayesian-logistic"})
"""Families whose coefficients go to zero where the columns say nothing."""
_MANY_ROWS, _MANY_COLUMNS = 20_000, 50
_STEADY_ROWS, _MOST_REPEATS = 400, 5
_CS, _ALPHAS = np.logspace(-3, 2, 11), np.logspace(4, -4, 17)
_TOLERANCE = 1e-8


def _nothing_to_tune(
    X: Any, y: Codes, seed: int, weights: Float | None = None, related: Related = UNRELATED
) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class ModelFamily:
    """A kind of model."""

    name: str  # on the command line
    label: str  # in a table
    simplicity: int  # among models that predict equally well the one with the smallest number is recommended
    encoded: bool  # whether it reads the numbers of a `TableEncoder`; otherwise the columns themselves
    build: Callable[..., Any]  # an estimator, from parameters
    tune: Tuner = _nothing_to_tune
    limit: int | None = None  # most rows for which it is compared
    beyond: Callable[..., Any] | None = None  # what is built for more rows than that; None leaves the family out
    tune_beyond: Tuner = _nothing_to_tune
    by_class: bool = False  # whether each class has a covariance of its own, which indicators of rare things break
    within_classes: bool = False  # whether differences are measured by the variance within classes, and nothing else


def part_of(weights: Float | None, rows: Codes) -> Float | None:
    """The weights of some rows."""
    return None if weights is None else weights[rows]


def _repeated(y: Codes, seed: int, related: Related) -> list[Fold]:
    """Five folds, drawn again and again for few rows, whose choice of C depends on the draw otherwise; time has one draw."""
    repeats = 1 if related.times is not None else int(np.clip(_STEADY_ROWS // len(y), 1, _MOST_REPEATS))
    return [fold for r in range(repeats) for fold in inner_folds(y, 5, seed + r, related)]


def _tune_logistic(
    l1_ratio: float, X: Any, y: Codes, seed: int, weights: Float | None = None, related: Related = UNRELATED
) -> dict[str, Any]:
    if len(y) > _MANY_ROWS and not related:

        def approximate(Cs: Float) -> Float:
            search = LogisticRegressionCV(Cs=Cs, l1_ratios=[l1_ratio], cv="alo", scoring="neg_log_loss")
            search.fit(X, y, sample_weight=weights)
            return np.where(np.isclose(Cs, search.C_, rtol=1e-9), -1.0, 0.0)

        return {"C": least_loss(_CS, approximate, restart=True)}
    folds = _repeated(y, seed, related)
    if not folds:
        return {}

    def left_out(Cs: Float) -> Float:
        losses = np.zeros(len(Cs))
        for inside, outside in folds:
            path = logistic_path(X[inside], y[inside], part_of(weights, inside), Cs=Cs, l1_ratio=l1_ratio)
            scores = path.coefs @ X[outside].T + path.intercepts[:, :, None]  # (Cs, 1 or classes, rows)
            if scores.shape[1] == 1:
                scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
            right = log_softmax(scores, axis=1)[:, y[outside], np.arange(len(outside))]
            losses -= right.sum(axis=1) if weights is None else right @ weights[outside]
        return losses

    return {"C": least_loss(_CS, left_out)}


def _tune_least_squares(
    X: Any, y: Codes, seed: int, weights: Float | None = None, related: Related = UNRELATED
) -> dict[str, Any]:
    targets = 2.0 * np.eye(int(y.max()) + 1)[y] - 1.0
    if not related:
        return {"alpha": float(Ridge(alpha="loo").fit(X, targets, sample_weight=weights).alpha_)}

    def loss(given: dict[str, Any], inside: Codes, outside: Codes) -> float:
        model = Ridge(**given).fit(X[inside], targets[inside], sample_weight=part_of(weights, inside))
        errors = np.square(model.predict(X[outside]) - targets[outside]).sum(axis=1)
        return float(errors.sum() if weights is None else errors @ weights[outside])

    return _least_of([{"alpha": alpha} for alpha in _ALPHAS], inner_folds(y, 5, seed, related), loss)


def _tune_rda(
    X: Any, y: Codes, seed: int, weights: Float | None = None, related: Related = UNRELATED
) -> dict[str, Any]:
    if not inner_folds(y, 2, seed):
        return {}
    if not related:
        grid = np.linspace(0.0, 1.0, 11 if X.shape[1] <= _MANY_COLUMNS else 5)
        chosen = RegularizedDiscriminantAnalysis(alpha="loo", gamma="loo", alphas=grid, gammas=grid)
        chosen.fit(X, y, sample_weight=weights)
        return {"alpha": chosen.alpha_, "gamma": chosen.gamma_}

    def loss(given: dict[str, Any], inside: Codes, outside: Codes) -> float:
        with catch_warnings():
            simplefilter("ignore")  # of a covariance that this part does not have
            try:
                model = RegularizedDiscriminantAnalysis(**given)
                model.fit(X[inside], y[inside], sample_weight=part_of(weights, inside))
            except ValueError:
                return np.inf
        right = model.predict_log_proba(X[outside])[np.arange(len(outside)), y[outside]]
        return -float(right.sum() if weights is None else right @ weights[outside])

    grid = np.linspace(0.0, 1.0, 5)
    candidates = [{"alpha": float(alpha), "gamma": float(gamma)} for alpha in grid for gamma in grid]
    return _least_of(candidates, inner_folds(y, 5, seed, related), loss)


def _least_of(
    candidates: list[dict[str, Any]], folds: list[Fold], loss: Callable[[dict[str, Any], Codes, Codes], float]
) -> dict[str, Any]:
    """The first of the parameters with the least loss over the folds; none where there are no folds."""
    return min(candidates, key=lambda given: sum(loss(given, *fold) for fold in folds)) if folds else {}


def _tune_machine(
    estimator: Any,
    with_gamma: bool,
    X: Any,
    y: Codes,
    seed: int,
    weights: Float | None = None,
    related: Related = UNRELATED,
) -> dict[str, Any]:
    folds = inner_folds(y, 3, seed, related)
    if not folds:
        return {}
    scale = 1.0 / (X.shape[1] * max(float(X.var()), 1e-300))  # what gamma="scale" means

    def right(place: tuple[int, ...]) -> float:
        machine, found = clone(estimator).set_params(**_machine_at(place, scale)), 0.0
        for inside, outside in folds:
            machine.fit(X[inside], y[inside], sample_weight=part_of(weights, inside))
            hits = machine.predict(X[outside]) == y[outside]
            found += float(hits.sum() if weights is None else hits @ weights[outside])
        return found

    return _machine_at(climb(right, (0, 0) if with_gamma else (0,), ("C", "gamma")), scale)


def _machine_at(place: tuple[int, ...], scale: float) -> dict[str, Any]:
    """C by powers of 10, gamma by powers of 4 about its usual value."""
    gamma = {"gamma": scale * 4.0 ** place[1]} if len(place) > 1 else {}
    return {"C": 10.0 ** place[0], **gamma}


_CALIBRATED: dict[str, Any] = {"calibration": "sigmoid", "random_state": 0}
_LISTED = [
    ModelFamily("baseline", "class shares", 0, True, partial(DummyClassifier, strategy="prior")),
    ModelFamily("naive-bayes", "naive Bayes", 1, False, MixedNB),
    ModelFamily("least-squares", "least squares", 2, True, RidgeClassifier, _tune_least_squares),
    ModelFamily("lda", "linear discriminant analysis", 3, True, LinearDiscriminantAnalysis, within_classes=True),
    ModelFamily(
        "logistic-l1",
        "logistic regression, L1",
        4,
        True,
        partial(LogisticRegression, l1_ratio=1.0, tol=_TOLERANCE),
        partial(_tune_logistic, 1.0),
    ),
    ModelFamily(
        "logistic",
        "logistic regression",
        5,
        True,
        partial(LogisticRegression, tol=_TOLERANCE),
        partial(_tune_logistic, 0.0),
    ),
    ModelFamily("bayesian-logistic", "Bayesian logistic regression", 6, True, BayesianLogisticRegression),
    ModelFamily("perceptron", "averaged perceptron", 7, True, partial(Perceptron, variant="averaged")),
    ModelFamily(
        "linear-svm",
        "linear support vector machine",
        8,
        True,
        partial(SVC, kernel="linear", **_CALIBRATED),
        partial(_tune_machine, SVC(kernel="linear"), False),
        CALIBRATED_ROWS,
        partial(LinearSVC, random_state=0),
        partial(_tune_machine, LinearSVC(random_state=0), False),
    ),
    ModelFamily(
        "rda",
        "regularised discriminant analysis",
        9,
        True,
        RegularizedDiscriminantAnalysis,
        _tune_rda,
        by_class=True,
    ),
    ModelFamily(
        "qda",
        "quadratic discriminant analysis",
        10,
        True,
        QuadraticDiscriminantAnalysis,
        by_class=True,
        within_classes=True,
    ),
    ModelFamily(
        "svm-rbf",
        "support vector machine, RBF kernel",
        11,
        True,
        partial(SVC, **_CALIBRATED),
        partial(_tune_machine, SVC(), True),
        RBF_ROWS,
    ),
]
FAMILIES: dict[str, ModelFamily] = {family.name: family for family in _LISTED}
"""The families by name, the simplest first."""


def ordered_families(ordered: Sequence[Any] | str | None, classes: Sequence[Any]) -> list[ModelFamily]:
    """The cumulative logistic model, where the classes are declared to have an order, from the lowest to the highest.

    Examples
    --------
    >>> from separatrix.comparison.families import ordered_families
    >>> [family.name for family in ordered_families("low,mid,high", ["high", "low", "mid"])]
    ['ordered-logistic']
    >>> ordered_families("low,high", ["high", "low", "mid"])
    Traceback (most recent call last):
    ValueError: The classes in order are 'low', 'high'; name each of 'high', 'low', 'mid' once, from the lowest to the highest.
    """
    if ordered is None:
        return []
    given = [one.strip() for one in ordered.split(",")] if isinstance(ordered, str) else [str(one) for one in ordered]
    names = [str(label) for label in classes]
    if sorted(given) != sorted(names):
        raise ValueError(
            f"The classes in order are {', '.join(map(repr, given))}; name each of {', '.join(map(repr, names))} once, from "
            "the lowest to the highest."
        )
    build = partial(OrderedLogisticRegression, order=[names.index(one) for one in given], tol=_TOLERANCE)
    return [
        ModelFamily("ordered-logistic", "ordered logistic regression", 4, True, build, partial(_tune_ordered, build))
    ]


def _tune_ordered(
    build: Callable[..., Any],
    X: Any,
    y: Codes,
    seed: int,
    weights: Float | None = None,
    related: Related = UNRELATED,
) -> dict[str, Any]:
    folds = inner_folds(y, 5, seed, related)
    if not folds or len(y) > _MANY_ROWS:
        return {}

    def left_out(Cs: Float) -> Float:
        losses = np.zeros(len(Cs))
        for inside, outside in folds:
            for at, C in enumerate(Cs):
                model = build(C=C).fit(X[inside], y[inside], sample_weight=part_of(weights, inside))
                proba = model.predict_proba(X[outside])[np.arange(len(outside)), y[outside]]
                losses[at] -= np.average(np.log(np.maximum(proba, 1e-300)), weights=part_of(weights, outside))
        return losses

    return {"C": least_loss(_CS, left_out)}


def families_of(names: Sequence[str] | str | None) -> list[ModelFamily]:
    """The families of these names, of names in a string with commas between them, or all."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    found = [find_family(name) for name in dict.fromkeys(FAMILIES if given is None else given) if name]
    if not found:
        raise ValueError(f"families is empty; choose from {', '.join(FAMILIES)}.")
    return found


def find_family(name: str) -> ModelFamily:
    """The family of this name; an unknown one is an error with the name that was probably meant."""
    if name not in FAMILIES:
        raise ValueError(f"There is no family {name!r}{_meant(name, list(FAMILIES))}")
    return FAMILIES[name]


def build(name: str, **parameters: Any) -> Any:
    """An estimator of a family, not fitted; `parameters` take the place of the family's own.

    Examples
    --------
    >>> from separatrix.comparison.families import build
    >>> build("logistic-l1", C=0.5).get_params()["l1_ratio"]
    1.0
    >>> build("logistc")
    Traceback (most recent call last):
    ValueError: There is no family 'logistc'; did you mean 'logistic'?
    """
    family = find_family(name)
    known = list(family.build().get_params(deep=False))
    for parameter in parameters:
        if parameter not in known:
            raise ValueError(f"{family.label} has no parameter {parameter!r}{_meant(parameter, known)}")
    return family.build(**parameters)


def _meant(given: str, known: list[str]) -> str:
    spelt = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), spelt, 1)
    return f"; did you mean {spelt[close[0]]!r}?" if close else f"; choose from {', '.join(known)}."
