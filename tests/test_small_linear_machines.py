"""Linear machines solved by compiled code on the rows as they are stored: the optimum of other methods, and true proofs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import separatrix.kernels.support_vectors.squared_hinge  # noqa: F401  # loads numba: compiled steps are taken from then on
from separatrix import LinearSVC, Status
from separatrix.dual import interior_batch, linear_machine
from separatrix.dual.at_hand import few_columns
from separatrix.models.svm import linear_svc

INTERCEPTS: dict[str, dict[str, Any]] = {
    "free": {},
    "penalised": {"intercept_scaling": 2.0},
    "none": {"fit_intercept": False},
}


def text(n: int, d: int, classes: int, seed: int, scales: float = 0.0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=8 / d, rng=rng, format="csr") * 10.0 ** rng.uniform(-scales, scales, d)
    scores = X @ rng.standard_normal((d, classes)) + 0.3 * rng.standard_normal((n, classes))
    return sp.csr_array(X), np.argmax(scores, axis=1)


def values(model: LinearSVC, X: Any, y: np.ndarray) -> np.ndarray:
    """The objectives of the machines."""
    classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    signs = np.where(y[:, None] == classes, 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * (X @ model.coef_.T + model.intercept_))
    held = np.square(model.coef_).sum(axis=1)
    if model.intercept_scaling is not None and model.fit_intercept:
        held = held + np.square(model.intercept_ / model.intercept_scaling)
    power = 1 if model.loss == "hinge" else 2
    return 0.5 * held + model.C * (slack**power).sum(axis=0)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.003, 1.0, 300.0])
@pytest.mark.parametrize(("classes", "scales"), [(2, 0.0), (2, 2.0), (4, 0.0)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_conjugate_gradients_find_the_optimum_of_sparse_machines(intercept, C, classes, scales, dtype):
    X, y = text(700, 90, classes, 1, scales)
    X = X.astype(dtype)
    settings = {"C": C, "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(**settings)
    model.fit(X, y)
    best = LinearSVC(tol=1e-10, **settings).fit(X.toarray().astype(np.float64), y)
    assert model.fit_.status is Status.CONVERGED
    found, least = values(model, X.astype(np.float64), y).sum(), values(best, X.astype(np.float64), y).sum()
    assert found - least <= model.fit_.certificate.gap + 1e-12 * least
    assert found <= least * (1.0 + 1e-4)


@pytest.mark.parametrize("small", [True, False])
def test_sparse_machines_take_conjugate_gradients_or_sweeps(monkeypatch, small):
    X, y = text(700, 90, 2, 2)
    seen = []
    name = "stepped" if small else "near_optima"
    inner = getattr(linear_svc, name)

    def watched(*args, **kwargs):
        seen.append(kwargs.get("conjugate", True))
        return inner(*args, **kwargs)

    monkeypatch.setattr(linear_svc, name, watched)
    if not small:
        monkeypatch.setattr(linear_svc, "_SMALL", 0)
    LinearSVC(C=10.0).fit(X, y)
    assert seen == [True]
    LinearSVC(C=1e-4).fit(X, y)
    assert seen == [True]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.003, 1.0, 1e4])
@pytest.mark.parametrize(("n", "d", "classes"), [(60, 30, 2), (300, 4, 5), (900, 12, 2), (2500, 5, 3)])
@pytest.mark.parametrize("centre", [0.0, 1e3])
def test_compiled_steps_on_few_columns_end_where_the_others_do(monkeypatch, intercept, C, n, d, classes, centre):
    rng = np.random.default_rng(n)
    X = (rng.standard_normal((n, d)) + centre) * 10.0 ** rng.uniform(-2, 2, d)
    y = np.argmax(
        (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal((d, classes)) + rng.standard_normal((n, classes)),
        axis=1,
    )
    models = []
    for narrow in (1_000_000, 0):
        monkeypatch.setattr(few_columns, "_NARROW", narrow)
        models.append(LinearSVC(C=C, random_state=0, **INTERCEPTS[intercept]).fit(X, y))
    found, other = (values(model, X, y).sum() for model in models)
    assert models[0].fit_.status is Status.CONVERGED
    assert found - other <= models[0].fit_.certificate.gap + 1e-10 * other
    np.testing.assert_allclose(found, other, rtol=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(
    ("n", "d", "C"), [(400, 3, 1.0), (5000, 7, 1e-3), (5000, 7, 1e5), (3000, 20, 1.0), (700, 63, 1e6)]
)
def test_a_hessian_that_changes_with_few_rows_leads_to_the_optimum(intercept, n, d, C):
    """The gradient at the end of the compiled steps is zero, from a sample's optimum as from zero, whatever C."""
    from separatrix.kernels.support_vectors.squared_hinge_factor import squared_hinge_factor

    X, y = rows_of(n, d, 2, 8)
    X = (X - X.mean(axis=0)) * 10.0 ** np.random.default_rng(d).uniform(-2, 2, d)
    pull = {"free": [0.0], "penalised": [0.25], "none": []}[intercept]
    A, rho, signs = np.column_stack([X, *(np.ones(n) for _ in pull)]), np.array([1.0] * d + pull), 2.0 * y - 1.0
    theta, alpha, costs = np.zeros(len(rho)), np.zeros(n), np.full(n, 2.0 * C)
    steps, ended = squared_hinge_factor(np.ascontiguousarray(A.T), rho, signs, costs, 1e-12, 50, theta, alpha)
    assert ended
    assert 0 < steps < 50
    np.testing.assert_allclose(alpha, costs * np.maximum(1.0 - signs * (A @ theta), 0.0), atol=1e-7 * alpha.max())
    gradient = rho * theta - A.T @ (signs * alpha)
    value = 0.5 * rho @ theta**2 + C * np.square(np.maximum(1.0 - signs * (A @ theta), 0.0)).sum()
    held = rho > 0.0
    gap = 0.5 * (gradient[held] ** 2 / rho[held]).sum() + np.abs(gradient[~held]).sum() * max(1.0, abs(theta[-1]))
    assert gap <= 1e-10 * value


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_compiled_steps_read_rows_of_any_kind_and_weights_as_repeated_rows(intercept):
    X, y = rows_of(2400, 6, 3, 9, centre=5.0)
    X = np.asarray(X, dtype=np.float32)
    settings = {"C": 0.7, "tol": 1e-9, "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(**settings).fit(X, y)
    least = values(model, X.astype(float), y).sum()
    assert model.fit_.certificate.relative_gap <= 1e-9
    for other in (X.astype(np.float64), np.asfortranarray(X), np.asfortranarray(X.astype(np.float64))):
        found = LinearSVC(**settings).fit(other, y)
        assert abs(values(found, X.astype(float), y).sum() - least) <= 3e-9 * least
    counts = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = LinearSVC(**settings).fit(X, y, sample_weight=counts)
    repeated = LinearSVC(**settings).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    sums = [
        values(one, np.repeat(X, counts, axis=0).astype(float), np.repeat(y, counts)).sum()
        for one in (weighted, repeated)
    ]
    assert abs(sums[0] - sums[1]) <= 3e-9 * sums[1]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-3, 0.1, 30.0])
def test_machines_that_are_swept_together_end_as_each_alone(intercept, loss, C):
    X, y = text(500, 700, 5, 3)
    settings = {"loss": loss, "C": C, "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(**settings).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    least = [values(LinearSVC(tol=1e-9, **settings).fit(X, y == k), X, y == k)[0] for k in range(5)]
    found = values(model, X, y)
    assert (found <= np.array(least) * (1.0 + 1e-4)).all()
    assert found.sum() - np.sum(least) <= model.fit_.certificate.gap + 1e-8 * np.sum(least)


def rows_of(n: int, d: int, classes: int, seed: int, centre: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d) + centre
    scores = (X - centre) / X.std(axis=0) @ rng.standard_normal((d, classes)) + rng.standard_normal((n, classes))
    return X, np.argmax(scores, axis=1)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.001, 1.0, 300.0])
@pytest.mark.parametrize(("n", "d", "classes"), [(90, 3, 2), (150, 40, 3), (700, 5, 4), (400, 60, 2)])
def test_compiled_interior_points_end_where_the_others_do(monkeypatch, intercept, C, n, d, classes):
    X, y = rows_of(n, d, classes, 3)
    settings = {"C": C, "loss": "hinge", "tol": 1e-6, "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(**settings).fit(X, y)
    monkeypatch.setattr(linear_machine, "is_looped", lambda *shape: False)
    best = LinearSVC(**{**settings, "tol": 1e-10}).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    found, least = values(model, X, y).sum(), values(best, X, y).sum()
    assert abs(found - least) <= model.fit_.certificate.gap + best.fit_.certificate.gap + 1e-12 * least


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_machines_have_the_same_bits_one_by_one_on_threads(monkeypatch, intercept, loss):
    X, y = rows_of(300, 22, 9, 6)
    models = []
    for alone in (0, np.inf):
        monkeypatch.setattr(linear_machine, "ALONE", alone)
        monkeypatch.setattr(few_columns, "ALONE", alone)
        models.append(LinearSVC(C=0.3, loss=loss, random_state=0, **INTERCEPTS[intercept]).fit(X, y))
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].intercept_, models[1].intercept_)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sweeps_over_rows_of_any_length(loss, dtype):
    """Rows are asked for ahead of their visit: empty ones, the last ones, and those longer than a line of the cache."""
    rng = np.random.default_rng(7)
    lengths = rng.choice([0, 1, 7, 8, 9, 40, 200], 300)
    columns = [rng.choice(400, length, replace=False) for length in lengths]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = sp.csr_array((rng.standard_normal(starts[-1]).astype(dtype), np.concatenate(columns), starts), shape=(300, 400))
    y = rng.integers(2, size=300)
    settings = {"loss": loss, "dual": True, "C": 0.1, "random_state": 0}
    found = LinearSVC(**settings).fit(X, y).fit_.certificate
    best = LinearSVC(**settings).fit(X.toarray().astype(np.float64), y).fit_.certificate
    assert abs(found.objective - best.objective) <= found.gap + best.gap + 1e-12 * best.objective


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(
    ("C", "centre", "dtype"), [(1e-4, 0.0, np.float64), (1.0, 50.0, np.float32), (200.0, 0.0, np.float64)]
)
@pytest.mark.parametrize("without_numba", [False, True])
def test_many_rows_are_solved_near_the_margin(monkeypatch, intercept, C, centre, dtype, without_numba):
    X, y = rows_of(13_000, 4, 3, 4, centre)
    X = X.astype(dtype)
    assert interior_batch.is_looped(*X.shape)
    settings = {"C": C, "loss": "hinge", "random_state": 0, **INTERCEPTS[intercept]}
    if without_numba:
        monkeypatch.setattr(interior_batch, "compiled_pays_by_now", lambda seconds: False)
    model = LinearSVC(**settings).fit(X, y)
    monkeypatch.setattr(interior_batch, "WORTH_SAMPLING", np.inf)
    best = LinearSVC(**{**settings, "tol": 1e-9}).fit(X, y)
    X = X.astype(np.float64)
    assert model.fit_.status is Status.CONVERGED
    found, least = values(model, X, y).sum(), values(best, X, y).sum()
    assert abs(found - least) <= model.fit_.certificate.gap + best.fit_.certificate.gap + 1e-12 * least


@pytest.mark.parametrize("sorted_rows", [False, True])
def test_a_sample_that_misleads_is_no_matter(sorted_rows):
    """Rows that the sample does not meet, or that are heavy, move the margin out of the band."""
    X, y = rows_of(13_000, 4, 2, 5)
    order = np.argsort(X[:, 0]) if sorted_rows else np.arange(len(X))
    X, y = X[order], y[order]
    weights = np.where(np.arange(len(X)) % 6 == 1, 500.0, 0.01)
    model = LinearSVC(C=0.1, loss="hinge").fit(X, y, weights)
    best = LinearSVC(C=0.1, loss="hinge", tol=1e-9, dual=True).fit(X, y, weights)
    assert model.fit_.status is Status.CONVERGED
    assert model.fit_.certificate.objective - model.fit_.certificate.gap <= best.fit_.certificate.objective * (
        1 + 1e-12
    )
    assert model.fit_.certificate.objective <= best.fit_.certificate.objective * (1 + 1e-4)


@pytest.mark.parametrize(("n", "classes"), [(90, 2), (700, 3), (13_000, 3)])
def test_an_interrupt_between_interior_points(monkeypatch, n, classes):
    X, y = rows_of(n, 4, classes, 6)
    inner, seen = linear_machine.hinge_optimum, []

    def interrupted(*args):
        seen.append(inner(*args))
        if len(seen) == classes - 1:
            raise KeyboardInterrupt
        return seen[-1]

    monkeypatch.setattr(linear_machine, "hinge_optimum", interrupted)
    model = LinearSVC(loss="hinge").fit(X, y)
    assert model.fit_.status is Status.INTERRUPTED
    assert np.isfinite(model.coef_).all() and np.isfinite(model.fit_.certificate.gap)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.1, 300.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_interior_points_on_sparse_rows_end_where_they_do_on_dense_ones(intercept, C, seed, monkeypatch):
    X, y = text(1500, 60, 3, seed, scales=3.0)
    frame = linear_machine.CentredRows.of(X, intercept == "free")
    assert frame.has_sparse_copy and not linear_machine.CentredRows.of(X[:50], False).has_sparse_copy
    seen: list[bool] = []
    gram = interior_batch.weighted_gram
    monkeypatch.setattr(interior_batch, "weighted_gram", lambda A, w: (seen.append(sp.issparse(A)), gram(A, w))[1])
    monkeypatch.setattr(linear_svc.LinearSVC, "_way", lambda self, source: "interior")
    monkeypatch.setattr(linear_machine.LinearMachine, "try_sweeps", lambda self, *settings: None)
    models = [LinearSVC(loss="hinge", C=C, tol=1e-7, **INTERCEPTS[intercept]).fit(each, y) for each in (X, X.toarray())]
    assert any(seen)
    assert all(model.fit_.status is Status.CONVERGED for model in models)
    one, other = (values(model, X, y).sum() for model in models)
    proofs = [model.fit_.certificate for model in models]
    assert one - other <= proofs[0].gap + 1e-12 * one
    assert other - one <= proofs[1].gap + 1e-12 * one


def test_a_weighted_gram_matrix_of_sparse_rows_is_that_of_dense_ones():
    X, _ = text(200, 30, 2, 5, scales=2.0)
    weights = np.random.default_rng(0).random(200)
    dense = interior_batch.weighted_gram(X.toarray(), weights)
    np.testing.assert_allclose(interior_batch.weighted_gram(X, weights), dense, rtol=1e-12, atol=1e-12 * dense.max())


def wide(n: int, d: int, classes: int, seed: int, scales: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.argmax(X @ rng.standard_normal((d, classes)) + np.sqrt(d) * rng.standard_normal((n, classes)), axis=1)
    return X * 10.0 ** rng.uniform(-scales, scales, d) + 0.5, y


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-4, 0.01, 1.0, 1e4])
@pytest.mark.parametrize(("n", "d", "classes"), [(40, 60, 2), (150, 151, 3), (260, 400, 2), (300, 180, 3)])
def test_pairs_of_few_rows_end_where_interior_points_do(monkeypatch, intercept, C, n, d, classes):
    X, y = wide(n, d, classes, n)
    settings = {"C": C, "loss": "hinge", "tol": 1e-6, "random_state": 0, **INTERCEPTS[intercept]}
    seen = []
    inner = linear_machine.paired_points

    def watched(*args):
        seen.append(inner(*args))
        return seen[-1]

    monkeypatch.setattr(linear_machine, "paired_points", watched)
    model = LinearSVC(**settings).fit(X, y)
    if n < d:  # of others sweeps may be enough, and hard ones end before they are solved
        assert [len(points) for points, _ in seen] == [len(model.coef_)]
    assert model.fit_.status is Status.CONVERGED
    monkeypatch.setattr(linear_machine, "paired_points", lambda *args: ([], np.inf))
    other = LinearSVC(**settings).fit(X, y)
    found, least = values(model, X, y).sum(), values(other, X, y).sum()
    assert abs(found - least) <= model.fit_.certificate.gap + other.fit_.certificate.gap + 1e-12 * least
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3 * np.abs(other.coef_).max())


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("scales", [0.0, 3.0])
def test_few_rows_of_any_kind_have_the_optimum_that_is_proven(intercept, scales):
    X, y = wide(90, 140, 3, 4, scales)
    X = np.asarray(X, dtype=np.float32)
    settings = {"C": 0.3, "loss": "hinge", "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(**settings).fit(X, y)
    least = values(model, X.astype(float), y).sum()
    assert model.fit_.status is Status.CONVERGED
    for other in (np.asfortranarray(X), X.astype(np.float64), sp.csr_array(X)):
        found = LinearSVC(**settings).fit(other, y)
        assert abs(values(found, X.astype(float), y).sum() - least) <= 1e-7 * least
    counts = np.random.default_rng(2).integers(1, 3, len(y))
    every = (np.repeat(X, counts, axis=0), np.repeat(y, counts))
    sums = [
        values(fitted, every[0].astype(float), every[1]).sum()
        for fitted in (
            LinearSVC(**settings).fit(X, y, sample_weight=counts),
            LinearSVC(**settings, tol=1e-7).fit(*every),
        )
    ]
    assert abs(sums[0] - sums[1]) <= 2e-7 * sums[1]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_pairs_of_few_sparse_rows_end_where_sweeps_do_not(monkeypatch, intercept, loss, C):
    X, y = text(250, 1500, 2, 3, scales=3.0)
    settings = {"C": C, "loss": loss, "tol": 1e-6, "random_state": 0, "max_iter": 20_000, **INTERCEPTS[intercept]}
    proven = []
    inner = linear_machine.paired_points

    def watched(machines, gram, *args):
        assert sp.issparse(machines[0].rows.X)
        assert len(gram) == len(y)
        proven.append(inner(machines, gram, *args))
        return proven[-1]

    monkeypatch.setattr(linear_machine, "paired_points", watched)
    monkeypatch.setattr(linear_svc, "swept", lambda machines, *args: [None] * len(machines))
    model = LinearSVC(**settings).fit(X, y)
    assert len(proven[0][0]) == 1
    assert model.fit_.status is Status.CONVERGED
    monkeypatch.setattr(linear_machine, "paired_points", lambda *args: ([], np.inf))
    other = LinearSVC(**settings).fit(X.toarray(), y)
    found, least = values(model, X, y).sum(), values(other, X, y).sum()
    assert abs(found - least) <= model.fit_.certificate.gap + other.fit_.certificate.gap + 1e-12 * least


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_pairs_of_few_rows_have_the_same_bits_on_threads(monkeypatch, intercept):
    from separatrix.dual.at_hand import few_rows

    X, y = wide(210, 300, 6, 5)
    models = []
    for alone in (0, np.inf):
        monkeypatch.setattr(few_rows, "_ALONE", alone)
        models.append(LinearSVC(C=0.3, loss="hinge", random_state=0, **INTERCEPTS[intercept]).fit(X, y))
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].intercept_, models[1].intercept_)
