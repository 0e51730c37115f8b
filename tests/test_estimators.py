"""scikit-learn's conventions, to the letter, for every estimator from one list."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from estimators import REGISTRY, each, having, named, tight
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.datasets import load_wine, make_regression
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import separatrix
from separatrix import (
    FeatureMap,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    Ridge,
)

ESTIMATORS = having(family=("discriminant", "least_squares", "feature_map"), folds=False)
CLASSIFIERS = {
    name: estimator
    for name, estimator in ESTIMATORS.items()
    if is_classifier(estimator) and not estimator.get_params().get("positive")  # positive coefficients tell wines badly
}
X, Y = load_wine(return_X_y=True)


def test_the_registry_has_every_estimator_of_the_library_and_each_is_checked():
    public = {name for name in separatrix.__all__ if inspect.isclass(getattr(separatrix, name))}
    public = {name for name in public if issubclass(getattr(separatrix, name), BaseEstimator)}
    public -= {
        "TableModel"
    }  # it holds a fitted model and is asked with tables, not arrays: tests/test_compare_columns.py
    for chosen in ({}, {"basic": True}):
        assert public == {type(estimator).__name__ for estimator in having(**chosen).values()}
    assert public - set(EXCUSED) == {type(estimator).__name__ for estimator in having(checked=True).values()}


# Steps of one row after the other are not those of repeated rows; a share of margin errors changes with the rows and weights,
# and may then be impossible. scikit-learn excuses its own classes from these checks.
WEIGHTED = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
EXCUSED = {
    "SGDClassifier": WEIGHTED,
    "PassiveAggressiveClassifier": WEIGHTED,
    "NuSVC": WEIGHTED | {"check_class_weight_classifiers"},
}


@pytest.mark.parametrize("name", EXCUSED)
def test_classes_that_scikit_learn_excuses_pass_all_other_checks(name):
    results = check_estimator(getattr(separatrix, name)(), on_fail=None, on_skip=None)
    assert {result["check_name"] for result in results if result["status"] == "failed"} <= EXCUSED[name]


@parametrize_with_checks(
    list(having(checked=True, only_for=tuple({entry.only_for for entry in REGISTRY.values()})).values())
)
def test_check_estimator_with_nothing_excused(estimator, check):
    check(estimator)


def test_plain_qda_fails_only_the_checks_that_fit_singular_classes():
    """Those checks give it classes of too few distinct rows; it must refuse them by name (M11), and passes the others."""
    results = check_estimator(QuadraticDiscriminantAnalysis(), on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert set(failed) == {
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }
    for exception in failed.values():
        assert isinstance(exception, np.linalg.LinAlgError)
        assert "is not full rank" in str(exception)


def targets_of(estimator):
    return make_regression(178, 13, random_state=0)[1] if is_regressor(estimator) else Y


def answers(estimator, X):
    method = "predict" if hasattr(estimator, "predict") else "transform"
    results = [np.asarray(getattr(estimator, method)(X))]
    if hasattr(estimator, "decision_function"):
        results.append(estimator.decision_function(X))
    return results


def assert_same_answers(a, b, X, rtol=1e-8):
    for one, two in zip(answers(a, X), answers(b, X), strict=True):
        scale = np.abs(two).max()
        np.testing.assert_allclose(one, two, rtol=rtol, atol=rtol * scale)


@each("estimator", tight(ESTIMATORS))
def test_weights_repetition_zero_weights_and_merge(estimator):
    rng = np.random.default_rng(0)
    w, y = rng.integers(0, 3, len(Y)).astype(float), targets_of(estimator)
    tol = 1e-5 if getattr(estimator, "solver", "") == "cg" else 1e-8
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    weighted = clone(estimator).fit(Z, y, sample_weight=w)
    repeated = np.repeat(np.arange(len(y)), w.astype(int))
    assert_same_answers(weighted, clone(estimator).fit(Z[repeated], y[repeated]), Z, tol)
    if not hasattr(estimator, "partial_fit"):
        return
    parts = clone(estimator)
    for at in np.array_split(rng.permutation(len(y)), 5):
        parts.partial_fit(Z[at], y[at], sample_weight=w[at])
    if not isinstance(estimator, FeatureMap):  # its transformer is fitted on the first part
        assert_same_answers(parts, weighted, Z)
        halves = [
            clone(estimator).fit(Z[at], y[at], sample_weight=w[at]) for at in (slice(0, None, 2), slice(1, None, 2))
        ]
        merged = halves[0].merge(halves[1])
        assert_same_answers(merged, weighted, Z)
        assert merged is not halves[0]


@each("estimator", CLASSIFIERS)
@pytest.mark.parametrize("labels", [["x", "y", "z"], [10, -3, 7], [False, True, True]], ids=str)
def test_labels_of_any_kind(estimator, labels):
    y = np.array(labels)[Y]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = clone(estimator).fit(Z, y)
    assert model.classes_.tolist() == sorted(set(labels))
    assert set(model.predict(Z).tolist()) <= set(labels)
    assert model.score(Z, y) > 0.9


@each("estimator", having(folds=False))
def test_pickle_clone_and_html(estimator):
    counts, y = np.round((X - X.min(axis=0)) / X.std(axis=0))[:, :5], targets_of(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = clone(estimator).fit(counts, y)
    for mine, again in zip(answers(model, counts), answers(pickle.loads(pickle.dumps(model)), counts), strict=True):
        np.testing.assert_array_equal(again, mine)
    assert type(estimator).__name__ in model._repr_html_()
    assert repr(clone(model)) == repr(estimator)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@each("estimator", named("lda", "fisher"))
def test_feature_names_and_set_output(estimator, frame):
    table = frame({f"column {j}": X[:, j] for j in range(5)})
    model = clone(estimator).set_output(transform="pandas").fit(table, Y)
    assert model.feature_names_in_.tolist() == list(table.columns)
    out = model.transform(table)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == model.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(table[list(table.columns)[::-1]])


def test_grid_search_and_pipelines():
    pipeline = make_pipeline(StandardScaler(), RegularizedDiscriminantAnalysis())
    grid = {f"regularizeddiscriminantanalysis__{name}": [0.1, 0.9] for name in ("alpha", "gamma")}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.95
    voting = VotingClassifier([("lda", LinearDiscriminantAnalysis()), ("rda", RegularizedDiscriminantAnalysis())])
    assert voting.set_params(voting="soft").fit(X, Y).score(X, Y) > 0.95


def test_weights_are_routed_through_a_pipeline():
    w = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = LinearDiscriminantAnalysis().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        routed = make_pipeline(scaler, model).fit(X, Y, sample_weight=w)
        cross_validate(make_pipeline(scaler, model), X, Y, params={"sample_weight": w}, error_score="raise")
    Z = StandardScaler().fit(X, sample_weight=w).transform(X)
    direct = LinearDiscriminantAnalysis().fit(Z, Y, sample_weight=w)
    np.testing.assert_allclose(routed[-1].coef_, direct.coef_, rtol=1e-10)


def test_parameters_that_read_the_rows_twice_have_no_partial_fit():
    for estimator in (
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        RegularizedDiscriminantAnalysis("loo", 0.5),
        Ridge(alpha="loo"),
    ):
        assert not hasattr(estimator, "partial_fit")
        with pytest.raises(AttributeError):
            estimator.merge(estimator)


def test_every_public_name_is_exported_and_documented():
    for name in separatrix.__all__:
        thing = getattr(separatrix, name)
        assert thing.__doc__, name


def test_import_leaves_heavy_packages_alone():
    code = "import sklearn.base, sys; before = set(sys.modules); import separatrix; print(*set(sys.modules) - before)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "matplotlib", "typer", "dask", "torch"} & set(out.stdout.split())
