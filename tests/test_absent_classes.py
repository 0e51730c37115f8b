"""A class whose rows all have weight 0 keeps its place, with probability 0; one class left is always predicted."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import REGISTRY, each, having, tight
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

import separatrix as sx
from separatrix import as_source, scan_csv

RNG = np.random.default_rng(0)
CLASSIFIERS = tight(having(classifier=True, weights=True, only_for=("", "three classes")))
# Losses are of all three classes; a constraint on coefficients is on those of every class, and two classes have one.
for name in ("rule, losses", "ridge classifier, positive", "ridge classifier, small norm"):
    del CLASSIFIERS[name]
every = each("model", CLASSIFIERS)
GIVEN = ("priors", "class_prior")  # one number for each of three classes


def counts(n: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Small whole numbers, which every family takes, that tell the classes apart a little; labels are words."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % K
    X = rng.poisson(2.0, (n, 3)) + (np.eye(K)[codes] @ rng.integers(0, 4, (K, 3)))
    return X.astype(float), np.array(["ant", "bee", "cat", "dog"])[codes]


def of_present(model: Any, K: int) -> Any:
    """The same model for the rows that count alone."""
    model = clone(model)
    for name in GIVEN:
        value = model.get_params().get(name)
        if value is not None and not isinstance(value, str):
            model.set_params(**{name: np.array([0.2, 0.5]) / 0.7 if K == 2 else None})
    return model


def quietly(model: Any, X: Any, y: Any = None, w: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y) if w is None else model.fit(X, y, sample_weight=w)


@every
@pytest.mark.parametrize("seed", [0, 1])
def test_a_class_without_weight_is_as_if_its_rows_were_not_there_but_keeps_its_place(model: Any, seed: int) -> None:
    X, y = counts(60, 3, seed)
    w = np.where(y == "bee", 0.0, 1.0 + np.arange(60) % 2)
    kept = w > 0
    fitted = quietly(clone(model), X, y, w)
    alone = quietly(of_present(model, 2), X[kept], y[kept], w[kept])
    assert fitted.classes_.tolist() == ["ant", "bee", "cat"]
    assert alone.classes_.tolist() == ["ant", "cat"]
    T, _ = counts(40, 3, seed + 100)
    np.testing.assert_array_equal(fitted.predict(T), alone.predict(T))
    if hasattr(fitted, "predict_proba"):
        p = fitted.predict_proba(T)
        assert (p[:, 1] == 0).all()
        np.testing.assert_allclose(p[:, [0, 2]], alone.predict_proba(T), atol=2e-6)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
    if hasattr(fitted, "predict_log_proba"):
        logs = fitted.predict_log_proba(T)
        assert np.isneginf(logs[:, 1]).all()
        assert not np.isnan(logs).any()
    if hasattr(fitted, "decision_function"):
        scores = fitted.decision_function(T)
        assert not np.isnan(scores).any()
        if not (isinstance(model, sx.SVC) and model.decision_function_shape == "ovo"):
            assert np.isneginf(scores[:, 1]).all()
            if not isinstance(model, sx.NearestCentroid):  # as in scikit-learn, `predict` has other units
                labels = fitted.classes_[scores.argmax(axis=1)]
                np.testing.assert_array_equal(labels, fitted.predict(T))


@every
@pytest.mark.parametrize("K", [2, 3])
def test_one_class_left_is_always_predicted_and_a_warning_says_so(model: Any, K: int) -> None:
    if K == 2:
        model = of_present(model, 2)
    X, y = counts(60, K, 0)
    w = np.where(y == "bee", 1.0, 0.0)
    with pytest.warns(UserWarning, match="Only class 'bee' has rows of positive weight"):
        fitted = clone(model).fit(X, y, sample_weight=w)
    assert fitted.classes_.tolist() == ["ant", "bee", "cat"][:K]
    T, _ = counts(20, 3, 7)
    assert (fitted.predict(T) == "bee").all()
    if hasattr(fitted, "predict_proba"):
        np.testing.assert_array_equal(fitted.predict_proba(T), np.tile(np.arange(K) == 1, (20, 1)).astype(float))
    if hasattr(fitted, "predict_log_proba"):
        assert (fitted.predict_log_proba(T)[:, 1] == 0).all()
        assert np.isneginf(np.delete(fitted.predict_log_proba(T), 1, axis=1)).all()
    if hasattr(fitted, "decision_function"):
        assert not np.isnan(fitted.decision_function(T)).any()


@every
def test_one_label_is_an_error_with_weights_or_without(model: Any) -> None:
    X, _ = counts(20, 2, 0)
    y = np.full(20, "bee")
    for w in (None, np.arange(20) % 2):
        with pytest.raises(ValueError, match=r"(?i)class"):
            clone(model).fit(X, y, **({} if w is None else {"sample_weight": w}))


@each("model", {name: model for name, model in CLASSIFIERS.items() if REGISTRY[name].class_weight})
@pytest.mark.parametrize("n_zero", [1, 2])
def test_a_class_weight_of_zero_is_no_class(model: Any, n_zero: int) -> None:
    X, y = counts(60, 3, 3)
    zero = {"ant": 0.0} if n_zero == 1 else {"ant": 0.0, "bee": 0}
    one = quietly(clone(model).set_params(class_weight=zero), X, y)
    two = quietly(clone(model).set_params(class_weight=None), X, y, np.isin(y, list(zero), invert=True).astype(float))
    T, _ = counts(40, 3, 8)
    assert one.classes_.tolist() == ["ant", "bee", "cat"]
    np.testing.assert_array_equal(one.predict(T), two.predict(T))
    if hasattr(one, "coef_") and not isinstance(one, sx.SVC):
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-8)
        constants = "thresholds_" if hasattr(one, "thresholds_") else "intercept_"
        np.testing.assert_allclose(getattr(one, constants), getattr(two, constants), atol=1e-8)
    with pytest.raises(ValueError, match="class_weight"):
        clone(model).set_params(class_weight=dict.fromkeys(["ant", "bee", "cat"], 0)).fit(X, y)


BAGGED = {name for name, entry in REGISTRY.items() if not entry.several_rows and not entry.folds}


@each("model", {name: model for name, model in CLASSIFIERS.items() if name in BAGGED})
def test_bagging_and_boosting(model: Any) -> None:
    X, y = counts(36, 3, 5)
    y = np.where(np.arange(36) < 3, "cat", np.where(y == "cat", "ant", y))  # three rows of cat: most bags have none
    bagged = quietly(BaggingClassifier(clone(model), n_estimators=6, max_samples=0.3, random_state=1), X, y)
    assert bagged.predict_proba(X).shape == (36, 3)
    assert np.isfinite(bagged.predict_proba(X)).all()
    boosted = quietly(AdaBoostClassifier(clone(model), n_estimators=3, random_state=0), X, y)
    assert set(boosted.predict(X)) <= {"ant", "bee", "cat"}


@pytest.mark.parametrize("kind", [sx.LogisticRegression, sx.LinearDiscriminantAnalysis, sx.SVC, sx.LinearSVC])
def test_labels_of_any_kind_and_rows_from_anywhere(kind: Any, tmp_path: Any) -> None:
    model = kind()
    X, y = counts(60, 3, 2)
    w = np.where(y == "cat", 0.0, 1.0)
    expected = quietly(clone(model), X, y, w)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, w=w)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = [
        (sp.csr_array(X), y, w),
        (X, y.astype(object), w),
        (as_source(X, y, w),),
        (scan_csv(tmp_path / "rows.csv", target="y", weight="w"),),
    ]
    for rows in given:
        fitted = quietly(clone(model), *rows)
        assert fitted.classes_.tolist() == ["ant", "bee", "cat"]
        np.testing.assert_array_equal(fitted.predict(X), expected.predict(X))
    numbers = quietly(clone(model), X, np.unique(y, return_inverse=True)[1] * 10, w)
    assert numbers.classes_.tolist() == [0, 10, 20]


def test_a_missing_label_in_a_row_of_weight_zero_is_no_class() -> None:
    X, y = counts(30, 2, 0)
    labels = y.astype(object)
    labels[0], labels[1] = None, float("nan")
    w = np.where(np.arange(30) < 2, 0.0, 1.0)
    assert sx.LogisticRegression().fit(X, labels, w).classes_.tolist() == ["ant", "bee"]
