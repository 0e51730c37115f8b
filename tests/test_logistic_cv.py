"""LogisticRegressionCV stands in for scikit-learn's: attributes, scoring, metadata, folds that lack a class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegressionCV as TheirCV
from sklearn.metrics import get_scorer, make_scorer, recall_score
from sklearn.model_selection import GroupKFold, KFold

from separatrix import LogisticRegressionCV

CS = np.array([0.01, 0.3, 10.0])


def data(load: Any, every: int = 2) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    X, y = X[::every, :4], y[::every]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def theirs(X: np.ndarray, y: np.ndarray, fit: dict[str, Any] | None = None, **parameters: Any) -> TheirCV:
    given = {"l1_ratios": (0,), "scoring": None, "use_legacy_attributes": False, "tol": 1e-8, "max_iter": 10_000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TheirCV(Cs=CS, **{**given, **parameters}).fit(X, y, **(fit or {}))


def shape_of(value: Any) -> Any:
    """Shapes, also inside a dict, and whether there is one at all."""
    if isinstance(value, dict):
        return {key: np.shape(entry) for key, entry in value.items()}
    return type(value) if np.ndim(value) == 0 else np.shape(value)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("ratios", [None, np.zeros(1), np.array([0.0, 0.5])])
@pytest.mark.parametrize(("refit", "intercept"), [(True, False), (False, True)])
def test_attributes_have_scikit_learns_shapes(load, legacy, ratios, refit, intercept):
    X, y = data(load)
    labels = np.array(["x", "y", "z"])[y]
    shared: dict[str, Any] = {"l1_ratios": ratios, "cv": 3, "refit": refit, "use_legacy_attributes": legacy}
    one = LogisticRegressionCV(Cs=CS, fit_intercept=intercept, **shared).fit(X, labels)
    quick = {"tol": 1e-2, "solver": "saga", "max_iter": 10}
    two = theirs(X, labels, fit_intercept=intercept, **shared, **quick)
    for name in ("coef_", "intercept_", "classes_", "Cs_", "l1_ratios_", "C_", "scores_", "coefs_paths_", "n_iter_"):
        assert shape_of(getattr(one, name)) == shape_of(getattr(two, name)), name
    if ratios is not None:
        assert shape_of(one.l1_ratio_) == shape_of(two.l1_ratio_)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_steps_of_every_fit(load):
    X, y = data(load)
    model = LogisticRegressionCV(Cs=[0.01, 1.0, 100.0], l1_ratios=[0.0, 1.0], cv=4).fit(X, y)
    assert model.n_iter_.shape == model.scores_.shape == (4, 2, 3)
    assert (model.n_iter_ >= 0).all() and (model.n_iter_.max(axis=(1, 2)) > 1).all()
    assert LogisticRegressionCV(Cs=3, cv="alo").fit(X, y).n_iter_.shape == (1, 1, 3)


@pytest.mark.parametrize(
    "scoring", [None, "accuracy", "neg_log_loss", "f1_macro", make_scorer(recall_score, average="macro")]
)
def test_score_uses_scoring(scoring):
    X, y = data(load_iris)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = LogisticRegressionCV(Cs=CS, cv=3, scoring=scoring).fit(X, y)
    scorer = get_scorer(scoring or "accuracy")
    assert model.score(X, y) == scorer(model, X, y)
    assert model.score(X, y, sample_weight=weights) == scorer(model, X, y, sample_weight=weights)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score", "roc_auc"])
@pytest.mark.parametrize("weight", [None, "balanced", {0: 3.0, 1: 0.5}])
def test_choices_are_scikit_learns_with_class_weights_and_sample_weights(scoring, weight):
    X, y = data(load_breast_cancer)
    rng = np.random.default_rng(1)
    X = X + 2.0 * rng.standard_normal(X.shape)
    w = rng.integers(1, 4, len(y)).astype(float)
    shared: dict[str, Any] = {"cv": KFold(4, shuffle=True, random_state=0), "scoring": scoring, "class_weight": weight}
    one = LogisticRegressionCV(Cs=CS, tol=1e-11, **shared).fit(X, y, w)
    two = theirs(X, y, {"sample_weight": w}, **shared)
    np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-5)
    np.testing.assert_allclose(one.C_, two.C_)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-3, atol=1e-4)


def test_of_equal_scores_the_one_scikit_learn_takes():
    X, y = data(load_iris)
    X, y = X[y < 2], y[y < 2]  # separable: all scores are 1
    shared: dict[str, Any] = {"l1_ratios": (0.0, 1.0), "cv": KFold(3, shuffle=True, random_state=0)}
    one = LogisticRegressionCV(Cs=CS[::-1], **shared).fit(X, y)
    assert CS[::-1][one.scores_.mean(axis=0).max(axis=0).argmax()] == one.C_
    assert one.l1_ratio_ == 0.0


def test_groups_reach_the_splitter_by_metadata_routing():
    X, y = data(load_iris)
    groups = np.random.default_rng(0).integers(0, 9, len(y))
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        LogisticRegressionCV(Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        one = LogisticRegressionCV(Cs=CS, cv=GroupKFold(3), tol=1e-11).fit(X, y, groups=groups)
        two = theirs(X, y, {"groups": groups}, cv=GroupKFold(3))
        np.testing.assert_allclose(one.scores_, two.scores_)
        assert one.C_ == two.C_
        zero = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
        scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
        weighted = LogisticRegressionCV(Cs=CS, cv=GroupKFold(3), tol=1e-11, scoring=scorer)
        kept = zero > 0
        one = weighted.fit(X, y, sample_weight=zero, groups=groups)
        two = LogisticRegressionCV(Cs=CS, cv=GroupKFold(3), tol=1e-11, scoring="neg_log_loss")
        two.fit(X[kept], y[kept], groups=groups[kept])
        np.testing.assert_allclose(one.scores_, two.scores_)
        assert one.score(X, y, sample_weight=zero) == get_scorer("neg_log_loss")(one, X, y, sample_weight=zero)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
@pytest.mark.parametrize("refit", [True, False])
def test_a_fold_that_lacks_a_class_to_learn_or_to_test(scoring, refit):
    X, y = data(load_iris)
    last = np.flatnonzero(y == 2)
    kept = np.sort(np.r_[np.flatnonzero(y < 2), last[:3]])
    X, y = X[kept], y[kept]
    rare = np.flatnonzero(y == 2)
    others = np.random.default_rng(0).permutation(np.flatnonzero(y < 2))
    tests = [np.r_[part, some] for part, some in zip(np.array_split(others, 3), (rare, [], []), strict=True)]
    cv = [(np.setdiff1d(np.arange(len(y)), test), test.astype(int)) for test in tests]
    one = LogisticRegressionCV(Cs=CS, cv=cv, scoring=scoring, refit=refit, tol=1e-11).fit(X, y)
    assert np.isfinite(one.scores_).all() and one.classes_.tolist() == [0, 1, 2]
    assert np.isneginf(one.coefs_paths_[0, :, :, 2, -1]).all()
    assert np.isfinite(one.coefs_paths_[1:]).all()
    assert np.isfinite(one.coef_).all() and np.isfinite(one.intercept_).all()
    two = theirs(X, y, cv=cv, scoring=scoring)
    whole = (
        slice(1, None) if scoring == "neg_log_loss" else slice(None)
    )  # their probability of the absent class is not 0
    tolerance = {"accuracy": 0.0, "neg_log_loss": 1e-4, "neg_brier_score": 2e-3}[scoring]
    np.testing.assert_allclose(one.scores_[whole], two.scores_[whole], atol=tolerance)
    if scoring != "neg_log_loss":
        assert one.C_ == two.C_ if refit else True


def test_a_fold_with_one_class_to_learn_from():
    X, y = data(load_breast_cancer)
    cv = [(np.flatnonzero(y == 0), np.flatnonzero(y == 1)), (np.arange(len(y)), np.arange(len(y)))]
    model = LogisticRegressionCV(Cs=CS, cv=cv).fit(X, y)
    assert (model.scores_[0] == 0).all()
    assert (model.scores_[1] > 0.8).all()


@pytest.mark.parametrize("cv", [5, "alo"])
def test_an_interrupted_choice_keeps_what_it_has(cv, monkeypatch):
    from separatrix.models.logistic.path import RegressionOnGrid
    from separatrix.result import Status

    X, y = data(load_iris)
    solve, count = RegressionOnGrid.along, 0

    def interrupted(*arguments: Any) -> Any:
        nonlocal count
        from dataclasses import replace

        for c, problem, solution in solve(*arguments):
            count += 1
            yield c, problem, replace(solution, status=Status.INTERRUPTED) if count == stop else solution

    monkeypatch.setattr(RegressionOnGrid, "along", interrupted)
    for stop, folds in ((3, 1), (8, 1 if cv == "alo" else 2)):
        count = 0
        model = LogisticRegressionCV(Cs=CS, cv=cv)
        if cv == "alo" and stop == 8:
            continue
        model.fit(X, y)
        assert model.fit_.status is Status.INTERRUPTED
        assert len(model.scores_) == folds
        assert np.isfinite(model.coef_).all()
    stop, count = 1, 0
    with pytest.raises(KeyboardInterrupt):
        LogisticRegressionCV(Cs=CS, cv=cv).fit(X, y)


def test_one_weight_stands_for_all_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    one, all_rows = (LogisticRegressionCV(Cs=3, cv=3).fit(X, y, sample_weight=w) for w in (2.0, np.full(60, 2.0)))
    np.testing.assert_array_equal(one.scores_, all_rows.scores_)
    np.testing.assert_array_equal(one.coef_, all_rows.coef_)
