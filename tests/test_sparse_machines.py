"""Few sparse rows: search and proof in one compiled call are those of the long way, and the proofs are true."""

from __future__ import annotations

from fractions import Fraction
from threading import Event
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from separatrix import LinearSVC, Status, config
from separatrix.dual.at_hand import sparse_machines
from separatrix.dual.centred_rows import CentredRows
from separatrix.dual.linear_machine import LinearMachine
from separatrix.kernels.support_vectors.sparse_machines import prove
from separatrix.models.svm import linear_svc

INTERCEPTS: dict[str, dict[str, Any]] = {
    "free": {},
    "penalised": {"intercept_scaling": 2.0},
    "none": {"fit_intercept": False},
}
SCALINGS = {"free": None, "penalised": 2.0, "none": 0.0}


def text(n: int, d: int, classes: int, seed: int, scales: float = 0.0) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=min(0.4, 8 / d), rng=rng, format="csr") * 10.0 ** rng.uniform(
        -scales, scales, d
    )
    scores = X @ rng.standard_normal((d, classes)) + 0.3 * rng.standard_normal((n, classes))
    return sp.csr_array(X), np.argmax(scores, axis=1)


def exact_value(machine: LinearMachine, w: np.ndarray, b: float) -> Fraction:
    """The objective in rational arithmetic."""
    X, half = machine.rows.X, Fraction(1, 2)
    total = half * sum(Fraction(float(v)) ** 2 for v in w)
    if machine.scaling:
        total += half * (Fraction(b) / Fraction(machine.scaling)) ** 2
    for i, (sign, price) in enumerate(zip(machine.signs, machine.price, strict=True)):
        at = slice(X.indptr[i], X.indptr[i + 1])
        pairs = zip(X.indices[at], X.data[at], strict=True)
        score = Fraction(b) + sum((Fraction(float(w[j])) * Fraction(float(x)) for j, x in pairs), Fraction(0))
        total += Fraction(float(price)) * max(Fraction(0), 1 - Fraction(float(sign)) * score) ** machine.power
    return total


@pytest.mark.parametrize("intercept", SCALINGS)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("near", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_proof_is_that_of_the_long_way(intercept, power, near, seed):
    rng = np.random.default_rng(seed)
    X, y = text(60, 40, 2, seed, 1.0)
    signs, price = np.where(y == 1, 1.0, -1.0), rng.uniform(0.1, 2.0, 60)
    rows = CentredRows.of(X, SCALINGS[intercept] is None)
    machine = LinearMachine(rows, signs, price, power, SCALINGS[intercept])
    optimum = machine.solve(1e-9, 2000)
    w = optimum.w + near * rng.standard_normal(40)
    alpha = np.maximum(0.0, optimum.alpha + near * rng.standard_normal(60))
    alpha = np.minimum(alpha, price) if power == 1 else alpha
    beta = 0.0 if intercept == "none" else optimum.b + near * rng.standard_normal()
    expected = machine.prove(w.copy(), beta, alpha.copy())
    arrays, lengths, rule = sparse_machines.loop_arguments(machine)
    figures, own = np.zeros(6), alpha.copy()
    prove(*arrays, lengths, signs, *rule, w, beta, own, np.empty(60), figures)
    b, value, upper, lower, imbalance, complementary = figures
    np.testing.assert_allclose([value, upper, lower], [expected.value, expected.upper, expected.lower], rtol=1e-10)
    np.testing.assert_allclose(imbalance, expected.imbalance, atol=1e-10)
    if power == 2:  # the hinge may be flat between two rows
        np.testing.assert_allclose(b, expected.b, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(complementary, expected.complementary, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(own, expected.alpha, rtol=1e-9, atol=1e-12)
    assert exact_value(machine, w, b) <= Fraction(upper)
    assert lower <= optimum.certificate.objective


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e3])
@pytest.mark.parametrize(("n", "d", "classes"), [(90, 700, 2), (60, 900, 4), (400, 60, 2), (300, 300, 5)])
def test_fits_are_proven_and_those_of_the_long_way(monkeypatch, intercept, loss, C, n, d, classes):
    X, y = text(n, d, classes, 5)
    settings = {"loss": loss, "C": C, "random_state": 0, **INTERCEPTS[intercept]}
    model = LinearSVC(tol=1e-5, **settings).fit(X, y)
    monkeypatch.setattr(linear_svc, "_SMALL", 0)
    other = LinearSVC(tol=1e-8, max_iter=20_000, **settings).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    found, least = model.fit_.certificate, other.fit_.certificate
    assert found.objective - least.objective <= found.gap + 1e-12 * least.objective
    assert found.objective <= least.objective * (1.0 + 1.1e-5)
    assert found.objective - found.gap <= least.objective * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_weight_is_a_repeated_row(loss, intercept):
    X, y = text(80, 400, 3, 7)
    weights = np.random.default_rng(0).integers(0, 4, 80)
    settings = {"loss": loss, "C": 0.5, "tol": 1e-10, "random_state": 0, **INTERCEPTS[intercept]}
    weighted = LinearSVC(**settings).fit(X, y, sample_weight=weights)
    at = np.repeat(np.arange(80), weights)
    repeated = LinearSVC(**settings).fit(X[at], y[at])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-4)
    np.testing.assert_allclose(weighted.fit_.certificate.objective, repeated.fit_.certificate.objective, rtol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_same_bits_on_any_number_of_threads_and_of_machines(monkeypatch, loss):
    X, y = text(300, 500, 6, 8)
    coefs = []
    for alone, threads in ((np.inf, 1), (0.0, 1), (0.0, 2)):
        monkeypatch.setattr(sparse_machines, "_ALONE", alone)
        with config(threads=threads):
            coefs.append(LinearSVC(loss=loss, C=0.1, random_state=0).fit(X, y).coef_)
    assert np.array_equal(coefs[0], coefs[1])
    assert np.array_equal(coefs[0], coefs[2])


def test_sweeps_that_come_nowhere_near_are_left_to_other_methods():
    X, y = text(500, 60, 2, 9, 2.0)
    model = LinearSVC(loss="hinge", C=1e4, random_state=0).fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    machine = LinearMachine(CentredRows.of(X, True), np.where(y == 1, 1.0, -1.0), np.full(500, 1e4), 1, None)
    assert sparse_machines.swept([machine], 1e-4, 20, [0], Event()) == [None]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_without_entries(dtype):
    X = sp.csr_array((8, 50), dtype=dtype)
    y = np.array([0, 1, 1, 1, 0, 1, 1, 0])
    for loss in ("hinge", "squared_hinge"):
        model = LinearSVC(loss=loss).fit(X, y)
        assert model.fit_.status is Status.CONVERGED
        assert not model.coef_.any()
