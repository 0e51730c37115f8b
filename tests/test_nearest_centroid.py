"""Nearest centroids: scikit-learn's answers, weights, parts, storages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.neighbors as reference

import separatrix as sx

FITTED = ("centroids_", "deviations_", "within_class_std_dev_", "class_prior_")


def data(n: int, d: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.1, 5.0, d) + 3.0
    y = np.array(list("abcdefg"))[rng.integers(0, K, n)]
    X[:, 0] += 4.0 * (y == "a")
    X[np.abs(X) < 1.0] = 0.0
    return X, y


def same(one: Any, two: Any, rtol: float = 1e-9) -> None:
    for name in FITTED:
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=rtol, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("shape", [(60, 5, 3), (20, 50, 2), (200, 30, 7)])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("shrink", [None, 0.3, 2.0])
@pytest.mark.parametrize("priors", ["uniform", "empirical", "given"])
def test_answers_are_scikit_learn_s(
    shape: tuple[int, int, int], metric: str, shrink: float | None, priors: str
) -> None:
    X, y = data(*shape)
    given = np.arange(1.0, shape[2] + 1.0)
    options = {"metric": metric, "shrink_threshold": shrink}
    options["priors"] = (given / given.sum()).tolist() if priors == "given" else priors
    theirs = reference.NearestCentroid(**options).fit(X, y)
    for rows in (X, sp.csr_array(X), np.asfortranarray(X)):
        ours = sx.NearestCentroid(**options).fit(rows, y)
        same(ours, theirs)
        assert (ours.predict(rows) == theirs.predict(X)).all()
        for method in ("decision_function", "predict_proba", "predict_log_proba"):
            assert hasattr(ours, method) == hasattr(theirs, method)
            if hasattr(ours, method):
                np.testing.assert_allclose(getattr(ours, method)(rows), getattr(theirs, method)(X), atol=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_the_class_is_that_of_the_largest_score_or_with_equal_priors_of_the_nearest_centroid(seed: int) -> None:
    """scikit-learn's two rules: which of them `predict` is depends on the priors alone, wherever they come from."""
    rng = np.random.default_rng(seed)
    K, d = int(rng.integers(2, 6)), int(rng.integers(1, 8))
    X = rng.standard_normal((K * 30, d)) * 10.0 ** rng.uniform(-2, 2, d)
    y = np.repeat(np.arange(K), 30)  # as many rows of each class: their shares are equal priors
    unequal = rng.permutation(np.arange(1.0, K + 1.0))
    for priors in ("uniform", "empirical", [1.0 / K] * K, (unequal / unequal.sum()).tolist()):
        ours, theirs = (one.NearestCentroid(priors=priors).fit(X, y) for one in (sx, reference))
        found = ours.predict(X)
        assert (found == theirs.predict(X)).all()
        scores = ours.predict_proba(X)
        assert scores.argmax(axis=1).tolist() == theirs.predict_proba(X).argmax(axis=1).tolist()
        if np.ptp(ours.class_prior_) < 1e-12:
            away = np.square(X[:, None] - ours.centroids_).sum(axis=2)
            assert (found == away.argmin(axis=1)).all() and not hasattr(ours, "score_form")
        else:
            assert (found == scores.argmax(axis=1)).all()
            assert (found == ours.score_form().scores(X).argmax(axis=1)).all()


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_weights_are_repeated_rows(metric: str) -> None:
    X, y = data(80, 4, 3)
    w = np.random.default_rng(1).integers(0, 4, 80)
    repeated = np.repeat(np.arange(80), w)
    model = sx.NearestCentroid(metric, shrink_threshold=0.2, priors="empirical")
    same(model.fit(X, y, w.astype(float)), sx.NearestCentroid(**model.get_params()).fit(X[repeated], y[repeated]))


def test_parts_are_the_whole() -> None:
    X, y = data(90, 4, 3)
    whole = sx.NearestCentroid(shrink_threshold=0.2).fit(X, y)
    parts = sx.NearestCentroid(shrink_threshold=0.2)
    for rows in np.array_split(np.arange(90), 3):
        parts.partial_fit(X[rows], y[rows])
    same(parts, whole)
    halves = [sx.NearestCentroid(shrink_threshold=0.2).fit(X[at::2], y[at::2]) for at in (0, 1)]
    same(halves[0].merge(halves[1]), whole)
    assert not hasattr(sx.NearestCentroid("manhattan"), "partial_fit")


def test_columns_at_a_hundred_million_keep_their_digits() -> None:
    X, y = data(90, 4, 3)
    near, far = sx.NearestCentroid().fit(X, y), sx.NearestCentroid().fit(X + 2.0**27, y)
    np.testing.assert_allclose(far.decision_function(X + 2.0**27), near.decision_function(X), atol=1e-6)


def test_constant_columns_and_what_is_refused() -> None:
    X, y = data(60, 3, 3)
    X[:, 1] = 7.0
    model = sx.NearestCentroid(shrink_threshold=0.1).fit(X, y)
    assert model.within_class_std_dev_[1] == 0 and np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ValueError, match="All features have zero variance"):
        sx.NearestCentroid().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="only one class"):
        sx.NearestCentroid().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="priors must be non-negative"):
        sx.NearestCentroid(priors=[2.0, -2.0, 1.0]).fit(X, y)
    with pytest.warns(UserWarning, match=r"The priors do not sum to 1\. Normalizing"):
        assert sx.NearestCentroid(priors=[2.0, 1.0, 1.0]).fit(X, y).class_prior_.tolist() == [0.5, 0.25, 0.25]
