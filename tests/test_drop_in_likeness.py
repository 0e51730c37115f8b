"""What a swapped class shows after a fit is of the kinds that scikit-learn's own shows, for every kind of rows.

types, dimensions and dtypes of fitted attributes and answers ≡ scikit-learn's, but for what is decided otherwise below
"""

from __future__ import annotations

import sys
import warnings
from inspect import getattr_static
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import separatrix as sx
from separatrix.drop_in.swaps import SWAPS

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)
ROWS = np.floor(2.0 * np.abs(RNG.standard_normal((90, 4)))) + 2.0 * (np.arange(4) == Y[:, None])
KINDS = {
    "double": ROWS,
    "single": ROWS.astype(np.float32),
    "whole": ROWS.astype(int),
    "sparse": sp.csr_array(ROWS),
    "sparse single": sp.csr_matrix(ROWS.astype(np.float32)),
}
ORIGINALS = {name: swap.original for name, swap in SWAPS.items()}
ONLINE = ("Perceptron", "SGDClassifier", "PassiveAggressiveClassifier")
DENSE_ONLY = ("GaussianNB", "CategoricalNB", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis")
QUIET = {"LogisticRegressionCV": {"Cs": 3}, "SGDClassifier": {"random_state": 0}}
ANSWERS = ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "decision_function", "transform")


@pytest.fixture
def swapped():
    sx.accelerate()
    yield
    sx.restore()


def kind_of(value: Any) -> Any:
    """Type, dimensions and dtype."""
    if sp.issparse(value) or isinstance(value, np.ndarray):
        return type(value).__name__, value.shape, str(value.dtype)
    if isinstance(value, list):
        return [kind_of(part) for part in value]
    return type(value).__name__


def decided(name: str, attribute: str, kind: str, classes: int) -> bool:
    """Whether it is otherwise on purpose: docs/differences.md and docs/conformance.md have the reasons."""
    ties = name == "NuSVC" and attribute in ("support_", "support_vectors_", "dual_coef_")
    singles = name in ONLINE and "single" in kind and classes == 2 and attribute in ("intercept_", "decision_function")
    return attribute in ("probA_", "probB_") or ties or singles


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SWAPS)
def test_attributes_and_answers_are_of_scikit_learns_kinds(name, kind, swapped):
    if name in DENSE_ONLY and "sparse" in kind:
        return  # scikit-learn's own refuses them
    X = KINDS[kind]
    for classes in (2, 3):
        y = np.minimum(Y, classes - 1)
        pair = [
            ORIGINALS[name](**QUIET.get(name, {})),
            getattr(sys.modules[SWAPS[name].module], name)(**QUIET.get(name, {})),
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (model.fit(X, y) for model in pair)
            assert ours.separatrix_model_ is not None
            attributes = {a for a in dir(theirs) if a.endswith("_") and not a.startswith("_") and hasattr(theirs, a)}
            for attribute in attributes:
                value = getattr(theirs, attribute)
                if callable(value) or decided(name, attribute, kind, classes):
                    continue
                shown, expected = kind_of(getattr(ours, attribute)), kind_of(value)
                assert shown == expected or (name == "SVC" and shown[0] == expected[0] and shown[2] == expected[2]), (
                    attribute
                )
            for method in ANSWERS:
                if hasattr(theirs, method) and not decided(name, method, kind, classes):
                    assert kind_of(getattr(ours, method)(X)) == kind_of(getattr(theirs, method)(X)), method


@pytest.mark.parametrize("name", SWAPS)
def test_methods_have_scikit_learns_documentation_where_they_are_looked_up_without_being_read(name, swapped):
    kind = getattr(sys.modules[SWAPS[name].module], name)
    for method in (found for found in ANSWERS if hasattr(ORIGINALS[name], found)):
        assert getattr_static(kind, method).__doc__ == getattr_static(ORIGINALS[name], method).__doc__


def test_scores_of_three_gaussian_classes_are_scikit_learns(swapped):
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    X = RNG.standard_normal((90, 4)) + ROWS
    for classes in (2, 3):
        y = np.minimum(Y, classes - 1)
        theirs = ORIGINALS["QuadraticDiscriminantAnalysis"]().fit(X, y)
        ours = QuadraticDiscriminantAnalysis().fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)


def test_a_warm_start_takes_the_parameters_of_its_own_fit(swapped):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(warm_start=True, C=1e-3).fit(ROWS, Y)
    model.set_params(C=10.0).fit(ROWS, Y)
    alone = LogisticRegression(C=10.0, tol=1e-8).fit(ROWS, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=2e-2)
    assert model.separatrix_model_.C == 10.0 and np.abs(model.coef_).max() > 0.1
    with pytest.raises(ValueError, match="'C' parameter"):
        model.set_params(C=-1.0).fit(ROWS, Y)


def test_values_that_were_valid_before_do_not_hide_the_first_that_is_not(swapped):
    from sklearn.linear_model import Ridge

    Ridge(alpha=2.0, tol=1e-3).fit(ROWS, Y)
    for wrong in ({"alpha": -1.0}, {"tol": -1.0, "alpha": "x"}, {"fit_intercept": 3, "tol": 1e-3}, {"alpha": True}):
        told = []
        for kind in (ORIGINALS["Ridge"], Ridge):
            try:
                kind(**{"alpha": 2.0, **wrong}).fit(ROWS, Y)
            except ValueError as error:
                told.append(str(error))
        assert len(told) in (0, 2) and len(set(told)) <= 1, wrong


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_shares_that_were_not_given_are_shown_as_scikit_learn_shows_them(classes, legacy, swapped):
    from sklearn.linear_model import LogisticRegressionCV

    y = np.minimum(Y, classes - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pair = [
            kind(Cs=2, cv=2, use_legacy_attributes=legacy, scoring="accuracy").fit(ROWS, y)
            for kind in (ORIGINALS["LogisticRegressionCV"], LogisticRegressionCV)
        ]
    for name in ("C_", "l1_ratio_", "l1_ratios_"):
        theirs, ours = (getattr(model, name) for model in pair)
        assert type(theirs) is type(ours) and np.shape(theirs) == np.shape(ours), name
        if "ratio" in name:
            np.testing.assert_array_equal(ours, theirs)


VARIANTS = [
    ("LogisticRegression", {"solver": "liblinear", "fit_intercept": False}),
    ("LogisticRegressionCV", {"Cs": 2, "refit": False}),
    ("RidgeClassifier", {"fit_intercept": False}),
    ("RidgeClassifierCV", {"fit_intercept": False}),
    ("RidgeClassifierCV", {"cv": 3}),
    ("RidgeClassifierCV", {"scoring": "accuracy"}),
    ("RidgeCV", {"cv": 3}),
    ("RidgeCV", {"scoring": "r2"}),
    ("RidgeCV", {"alphas": [1.0, 2.0]}),
]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_attributes_are_of_scikit_learns_kinds_for_other_parameters(name, parameters, classes, swapped):
    if classes == 3 and parameters.get("solver") == "liblinear":
        return  # which takes two classes only
    for kind in ("double", "single", "sparse"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (
                model(**parameters).fit(KINDS[kind], np.minimum(Y, classes - 1))
                for model in (ORIGINALS[name], getattr(sys.modules[SWAPS[name].module], name))
            )
            assert ours.separatrix_model_ is not None
            for attribute in (
                a for a in dir(theirs) if a.endswith("_") and not a.startswith("_") and hasattr(theirs, a)
            ):
                value = getattr(theirs, attribute)
                if not callable(value):
                    assert kind_of(getattr(ours, attribute)) == kind_of(value), attribute


@pytest.mark.parametrize("name", [name for name in SWAPS if name not in ("LinearRegression", "Ridge", "RidgeCV")])
def test_labels_have_scikit_learns_dtype(name, swapped):
    for labels in (
        np.array(["a", "b", "c", "much longer"]),
        np.array(["a", "b", "c"], dtype=object),
        np.arange(3, dtype=np.int8),
    ):
        y = labels[Y]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (
                model(**QUIET.get(name, {})).fit(ROWS, y)
                for model in (ORIGINALS[name], getattr(sys.modules[SWAPS[name].module], name))
            )
        assert ours.separatrix_model_ is not None
        assert kind_of(ours.classes_) == kind_of(theirs.classes_)
        assert kind_of(ours.predict(ROWS)) == kind_of(theirs.predict(ROWS))


@pytest.mark.parametrize(
    "name", ["LogisticRegression", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier", "SVC", "LinearSVC"]
)
def test_balanced_classes_of_rows_with_weights_weigh_what_they_do_in_scikit_learn(name, swapped):
    y = np.minimum(Y, 1) if name == "LinearSVC" else Y  # of one class against the rest LIBLINEAR weighs the one only
    weights = np.where(Y == 0, 3.0, 0.5) + np.arange(90) / 90.0
    more = {
        "LogisticRegression": {"tol": 1e-8, "max_iter": 1000},
        "SGDClassifier": {"shuffle": False, "max_iter": 5, "tol": None},
        "SVC": {"tol": 1e-8, "kernel": "linear"},
        "LinearSVC": {"tol": 1e-10, "dual": False, "max_iter": 10000},
    }.get(name, {})
    theirs, ours = (
        model(class_weight="balanced", **more).fit(ROWS, y, sample_weight=weights)
        for model in (ORIGINALS[name], getattr(sys.modules[SWAPS[name].module], name))
    )
    assert ours.separatrix_model_ is not None and ours.class_weight == "balanced"
    np.testing.assert_allclose(ours.decision_function(ROWS), theirs.decision_function(ROWS), rtol=1e-3, atol=2e-3)


def test_folds_of_rows_with_weights_score_as_scikit_learns(swapped):
    weights = 0.2 + np.arange(90) / 30.0
    for name in ("RidgeCV", "RidgeClassifierCV"):
        theirs, ours = (
            model(cv=3, alphas=[0.1, 10.0, 1000.0]).fit(ROWS, Y, sample_weight=weights)
            for model in (ORIGINALS[name], getattr(sys.modules[SWAPS[name].module], name))
        )
        assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-8) and ours.alpha_ == theirs.alpha_
