"""Columns without entries: the fit does without them, and says the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LogisticRegression
from separatrix.data import as_source
from separatrix.models.logistic import logistic_regression


def rows(classes: int, seed: int = 0, n: int = 60, d: int = 900, dtype: Any = np.float64) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=4 / d, rng=rng, format="csr", dtype=np.float64).astype(dtype)
    return sp.csr_array(X), np.arange(n) % classes


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("multi_class", ["softmax", "reference"])
def test_the_fit_without_them_is_that_with_them(monkeypatch, classes, l1_ratio, intercept, multi_class):
    X, y = rows(classes)
    settings = {"C": 3.0, "l1_ratio": l1_ratio, "fit_intercept": intercept, "multi_class": multi_class, "tol": 1e-9}
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    model = LogisticRegression(**settings).fit(X, y, weights)
    empty = np.setdiff1d(np.arange(900), X.indices)
    assert model.coef_.shape == (1 if classes == 2 else classes, 900)
    assert len(empty) > 450
    assert not model.coef_[:, empty].any()
    monkeypatch.setattr(logistic_regression, "without_empty_columns", lambda source: (source, None))
    other = LogisticRegression(**settings).fit(X, y, weights)
    ours, theirs = model.fit_.certificate, other.fit_.certificate
    assert abs(ours.objective - theirs.objective) <= ours.gap + theirs.gap + 1e-12 * theirs.objective
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-4)


def test_every_column_is_published_in_its_place():
    X, y = rows(3)
    given = as_source(X, y).labelled()
    narrow, columns = given.without_empty_columns()
    full = np.zeros(X.shape)
    full[:, columns] = narrow.matrix().toarray()
    assert np.array_equal(full, X.toarray())
    assert narrow.matrix().has_canonical_format


def test_a_value_that_is_not_finite_is_reported_by_its_column():
    X, y = rows(2)
    X.data[5] = np.nan
    column = X.indices[5]
    with pytest.raises(ValueError, match=rf"column {column}\b"):
        LogisticRegression().fit(X, y)


@pytest.mark.parametrize(
    "more", [{"bounds": (0.5, 2.0)}, {"prior": (1.0, 1.0)}, {"C": np.inf, "max_iter": 3}, {"penalize_intercept": True}]
)
def test_what_may_hold_an_empty_column_elsewhere_is_left_alone(monkeypatch, more):
    def refused(source):
        raise AssertionError("it was asked for")

    X, y = rows(2)
    monkeypatch.setattr(logistic_regression, "without_empty_columns", refused)
    LogisticRegression(**more).fit(X, y)


def test_rows_with_hardly_an_empty_column_are_taken_as_they_are():
    X, y = rows(2, n=600, d=60)
    assert as_source(X, y).labelled().without_empty_columns() is None
