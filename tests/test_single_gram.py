"""The Gram matrix of few rows in single precision: it only leads to a point, and what it is worth is proven on the rows."""

import numpy as np
import pytest

from separatrix import LinearSVC
from separatrix.dual import centred_rows
from separatrix.dual.at_hand.dense_gram import dense_gram
from separatrix.dual.centred_rows import CentredRows
from separatrix.result import Status


def wide(n, d, seed, scales=0.0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-scales, scales, d) + shift
    y = (X[:, :5].sum(axis=1) + rng.standard_normal(n) > np.median(X[:, :5].sum(axis=1))).astype(int)
    return X, y


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths_are_in_double_precision_whatever_the_products_are(dtype):
    X = wide(210, 5000, 0, scales=2.0)[0].astype(dtype)
    gram, squares = dense_gram(X, None, single=True)
    exact = np.square(X.astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(squares, exact, rtol=1e-13)
    assert 1e-13 < np.abs(gram.diagonal() / exact - 1.0).max() < 1e-5


def test_rows_beyond_the_range_of_single_precision_have_products_in_double():
    X, _ = wide(210, 600, 1)
    assert CentredRows.of(X, True, single=True).single
    for far in (X * 1e30, X + 1e5):
        rows, centred = CentredRows.of(far, True, single=True), far - far.mean(axis=0)
        exact = centred @ centred.T
        assert not rows.single and rows.gram is not None
        np.testing.assert_allclose(rows.gram, exact, atol=1e-11 * exact.diagonal().max())


@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize(
    "scales, shift, unit, C",
    [(0.0, 0.0, 1.0, 1.0), (3.0, 0.0, 1.0, 1e4), (0.0, 50.0, 1.0, 1.0), (1.0, 0.0, 1e25, 1e-50)],
)
def test_the_squared_hinge_is_proven_at_any_tolerance(scaling, scales, shift, unit, C):
    X, y = wide(230, 700, 2, scales, shift)
    parameters = {"C": C, "loss": "squared_hinge", "intercept_scaling": scaling}
    roughly = LinearSVC(tol=1e-4, **parameters).fit(X * unit, y)
    tight = LinearSVC(tol=1e-8, **parameters).fit(X * unit, y)
    for model, tol in ((roughly, 1e-4), (tight, 1e-8)):
        proof = model.fit_.certificate
        assert model.fit_.status is Status.CONVERGED
        assert proof.gap <= tol * proof.objective
    assert roughly.fit_.certificate.objective - tight.fit_.certificate.objective <= roughly.fit_.certificate.gap * (
        1.0 + 1e-6
    ) + 1e-12 * abs(tight.fit_.certificate.objective)


def test_a_matrix_that_is_hardly_enough_is_multiplied_once(monkeypatch):
    made = []
    monkeypatch.setattr(centred_rows, "dense_gram", lambda *given: made.append(given[2:]) or dense_gram(*given))
    X, y = wide(230, 900, 4, scales=3.0)
    assert LinearSVC(C=100.0, tol=1e-4).fit(X, y).fit_.status is Status.CONVERGED
    assert len(made) == 1 and not any(made[0])
    made.clear()
    LinearSVC(C=1e-6, tol=1e-4).fit(X / np.sqrt(np.square(X).sum(axis=1).mean()), y)
    assert made == [(True,)]


def test_many_classes_share_the_matrix():
    X, _ = wide(300, 900, 3)
    y = np.arange(300) % 4
    model = LinearSVC(tol=1e-6).fit(X, y)
    alone = LinearSVC(tol=1e-10).fit(X, (y == 2).astype(int))
    assert model.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(model.coef_[2], alone.coef_[0], atol=1e-3 * np.abs(alone.coef_).max())
