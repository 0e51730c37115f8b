"""Weight 2 is the row twice and weight 0 is no row, also where rows are left out in turn."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import having
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

import separatrix as sx
from separatrix.data.folds import held_out, kernel_keys, row_keys, stratified_folds

SEEDS = st.integers(0, 2**32 - 1)


def rbf(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * np.square(one[:, None] - two[None]).sum(axis=-1))


# -- the folds themselves ---------------------------------------------------------------------------------------------


@given(SEEDS, st.integers(2, 60), st.integers(1, 9), st.integers(2, 10))
@settings(deadline=None, max_examples=40)
def test_folds_know_rows_and_nothing_else(seed: int, n: int, K: int, folds: int) -> None:
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(-2, 3, (n, 2)).astype(float), rng.integers(0, K, n)
    found = stratified_folds(row_keys(X), codes, folds)
    for at in (rng.permutation(n), np.repeat(np.arange(n), rng.integers(1, 4, n)), np.r_[np.arange(n), 0, 0, 0]):
        np.testing.assert_array_equal(stratified_folds(row_keys(X[at]), codes[at], folds), found[at])
    pairs = np.unique(np.column_stack([X, codes, found]), axis=0)
    assert len(pairs) == len(np.unique(np.column_stack([X, codes]), axis=0)), "equal rows of a class part"
    sizes = np.bincount(pairs[:, -1].astype(int), minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for k in range(K):
        own = np.bincount(pairs[pairs[:, -2] == k, -1].astype(int), minlength=folds)
        assert own.max() - own.min() <= 1


@given(SEEDS, st.floats(0.05, 0.9))
@settings(deadline=None, max_examples=40)
def test_rows_held_out_are_a_share_of_every_class(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 80))
    X, codes = rng.integers(-4, 5, (n, 3)).astype(float), np.arange(n) % 3
    found = held_out(row_keys(X), codes, share, seed % 7)
    at = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 3, n)))
    np.testing.assert_array_equal(held_out(row_keys(X[at]), codes[at], share, seed % 7), found[at])
    for k in range(3):
        rows = np.unique(np.column_stack([X, found])[codes == k], axis=0)
        different = len(np.unique(X[codes == k], axis=0))
        assert len(rows) == different
        assert abs(rows[:, -1].sum() - share * different) <= 1
        assert rows[:, -1].sum() < different


@pytest.mark.parametrize(
    ("d", "values"), [(2, range(-9, 10)), (5, (-1, 0, 1)), (7, (0, 0.5)), (3, (1e-300, -1e300, 0.1, 3))]
)
def test_different_rows_have_different_keys(d: int, values: Any) -> None:
    grid = np.array(list(product(values, repeat=d)), dtype=float)
    assert len(np.unique(row_keys(grid))) == len(grid)


def test_a_row_has_one_key_wherever_it_is_stored() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, (40, 6)).astype(np.float64) / 4
    expected = row_keys(X)
    doubled = sp.coo_array((np.r_[X.ravel(), X.ravel()] / 2, np.tile(np.divmod(np.arange(240), 6), 2)), shape=X.shape)
    frame = pd.DataFrame(X)
    stored = [
        X.astype(np.float32),
        np.asfortranarray(X),
        np.where(X == 0, -0.0, X),
        sp.csr_array(X),
        sp.csc_array(X),
        doubled,
        frame,
    ]
    for rows in [*stored, frame.astype(object), frame.astype({0: np.float32})]:
        np.testing.assert_array_equal(row_keys(rows), expected)
    assert len(np.unique(expected)) == len(np.unique(X, axis=0))
    words = pd.DataFrame({"a": ["x", "y", "x", None], "b": [1, 1, 1, 1]})
    keys = row_keys(words)
    assert keys[0] == keys[2] and len(set(keys.tolist())) == 3


@given(SEEDS)
@settings(deadline=None, max_examples=30)
def test_points_of_a_kernel_matrix_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(-3, 4, (15, 2)).astype(float), rng.integers(0, 2, 15)
    at = rng.permutation(np.repeat(np.arange(15), rng.integers(1, 3, 15)))
    for rows in (np.arange(15), at):
        same, _ = kernel_keys(rbf(X[rows], X[rows]), codes[rows])
        equal = (X[rows][:, None] == X[rows][None]).all(axis=-1)
        np.testing.assert_array_equal(same[:, None] == same[None], equal)


# -- every estimator that draws folds ---------------------------------------------------------------------------------

DRAWING = having(classifier=True, folds=True, only_for=("", "kernel matrices"))


def answers(model: Any, X: np.ndarray, y: np.ndarray, w: np.ndarray | None, T: np.ndarray) -> np.ndarray:
    kernel = model.get_params().get("kernel") == "precomputed"
    model = clone(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rbf(X, X) if kernel else X, y, **({} if w is None else {"sample_weight": w}))
    T = rbf(T, X) if kernel else T
    return model.predict_proba(T) if hasattr(model, "predict_proba") else np.atleast_2d(model.decision_function(T).T).T


@pytest.mark.parametrize("name", DRAWING)
@given(seed=SEEDS, K=st.integers(2, 3), integers=st.booleans())
@settings(deadline=None, max_examples=3)
def test_weights_are_repetitions_and_rows_of_weight_zero_are_not_there(
    name: str, seed: int, K: int, integers: bool
) -> None:
    # A constant machine on a grid has scores of 0 but for rounding, and their sign is the class.
    integers = integers and name != "svc linear against rest, platt"
    rng = np.random.default_rng(seed)
    n = 14 * K
    codes = np.arange(n) % K
    X = rng.standard_normal((n, 2)) + 0.8 * np.column_stack([codes, codes % 2])
    X = np.round(2 * X) / 2 if integers else X  # many equal rows
    y = np.array(["a", "b", "c"])[codes]
    w = rng.integers(0, 3, n)
    w[: 6 * K] += 1  # enough rows of every class
    w[-1], w[-2] = 0, 3
    T = rng.standard_normal((12, 2))
    kept = np.flatnonzero(w)
    weighted = answers(DRAWING[name], X, y, w.astype(float), T)
    removed = answers(DRAWING[name], X[kept], y[kept], w[kept].astype(float), T)
    np.testing.assert_allclose(weighted, removed, rtol=1e-6, atol=1e-6)
    repeated = rng.permutation(np.repeat(np.arange(n), w))
    np.testing.assert_allclose(
        weighted, answers(DRAWING[name], X[repeated], y[repeated], None, T), rtol=1e-5, atol=2e-5
    )


def test_a_prior_chosen_by_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("separatrix.models.bayesian.bayesian_logistic.FULL_COEFFICIENTS", 1)
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((60, 3)), rng.integers(0, 4, 60)
    y = (X[:, 0] + rng.logistic(size=60) > 0).astype(int)
    at = rng.permutation(np.repeat(np.arange(60), w))
    one = sx.BayesianLogisticRegression(covariance="full").fit(X, y, w.astype(float))
    two = sx.BayesianLogisticRegression(covariance="full").fit(X[at], y[at])
    assert "cross-validation" in one.fit_.detail
    np.testing.assert_allclose(one.prior_precision_, two.prior_precision_, rtol=1e-3)  # folds are fitted to tol=1e-4


@pytest.mark.parametrize("name", ["rda, folds", "logistic cv", "rule, isotonic"])
def test_a_splitter_or_a_list_of_splits_has_scikit_learns_meaning(name: str) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 2)), rng.integers(0, 2, 60)
    X[:, 0] += y
    zero = np.where(rng.uniform(size=60) < 0.2, 0.0, 1.0)
    kept = np.flatnonzero(zero)
    model, T = DRAWING[name], rng.standard_normal((9, 2))
    for splitter in (KFold(3, shuffle=True, random_state=0), StratifiedKFold(4)):
        model = clone(DRAWING[name]).set_params(cv=splitter)
        listed = clone(model).set_params(cv=list(splitter.split(X, y)))
        np.testing.assert_array_equal(answers(model, X, y, None, T), answers(listed, X, y, None, T))
        # A splitter sees the rows that count; positions in a list are those of all rows.
        np.testing.assert_allclose(answers(model, X, y, zero, T), answers(model, X[kept], y[kept], None, T), rtol=1e-7)
        places = np.cumsum(zero > 0) - 1
        within = [tuple(places[part[zero[part] > 0]] for part in parts) for parts in splitter.split(X, y)]
        listed_kept = clone(model).set_params(cv=within)
        np.testing.assert_allclose(
            answers(listed, X, y, zero, T), answers(listed_kept, X[kept], y[kept], None, T), rtol=1e-7
        )


@pytest.mark.parametrize("name", ["rda, folds", "logistic cv", "rule, isotonic", "logistic cv, alo"])
def test_scikit_learns_check_of_weights(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_sample_weight_equivalence_on_dense_data(name, clone(DRAWING[name]))


def test_too_few_different_rows_are_refused_with_a_reason() -> None:
    X, y = np.repeat([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0], [3.0, 1.0]], 10, axis=0), np.repeat([0, 0, 1, 1], 10)
    with pytest.raises(ValueError, match="different rows"):
        sx.BayesRule(sx.GaussianNB(), calibration="sigmoid", cv=3).fit(X, y)
    with pytest.warns(UserWarning, match="less than the 4 folds"):  # no more folds than different rows
        assert sx.LogisticRegressionCV(cv=5, Cs=2).fit(X, y).n_iter_.shape[0] == 4
    with pytest.raises(ValueError, match="two different rows"):
        sx.SVC(calibration="sigmoid").fit(X[10:], y[10:])
    with pytest.warns(UserWarning, match="least populated class"):
        sx.LogisticRegressionCV(cv=3, Cs=2).fit(X, y)
