"""What a swapped class shows after a fit is of the kinds that scikit-learn's own shows, for every kind of rows.

types, dimensions and dtypes of fitted attributes and answers ≡ scikit-learn's, but for what is decided otherwise below
"""

from __future__ import annotations

import sys
import warnings
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
