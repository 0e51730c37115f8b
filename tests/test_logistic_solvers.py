"""Every solver of logistic regression reaches the optimum in raw units; dependent columns are found and named."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression as Reference

from separatrix import LogisticRegression
from separatrix.data import as_source
from separatrix.kernels.dual_logistic import new_alpha
from separatrix.result import Status
from separatrix.solvers.registry import METHODS
from separatrix.statistics.dependence import dependent_columns

PENGUINS = Path(__file__).parents[1] / "examples" / "data" / "penguins.csv"
SOLVERS = ["newton", "lbfgs", "newton-cg", "prox_newton", "gradient", "sgd", "dual"]
PENALTIES = {"l2": 0.0, "elastic net": 0.5, "l1": 1.0}


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw units; two classes of a set with more of them by their labels, as in "iris 12"."""
    loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}
    base, _, pair = name.partition(" ")
    X, y = loaders[base](return_X_y=True)
    chosen = np.isin(y, [int(label) for label in pair]) if pair else np.ones(len(y), dtype=bool)
    return X[chosen], y[chosen]


def objective(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: np.ndarray, ratio: float) -> float:
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    codes = np.unique(y, return_inverse=True)[1]
    loss = float((logsumexp(scores, axis=1) - scores[np.arange(len(X)), codes]).sum())
    return loss + 0.5 * (1 - ratio) * float(np.square(coef).sum()) + ratio * float(np.abs(coef).sum())


@cache
def optimum(name: str, ratio: float) -> float:
    """The least objective that several methods find at a tolerance far below the one that is tested; scikit-learn's for L2."""
    X, y = data(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Conjugate gradients use up their 500 steps on the digits without a lower value than the others'.
        solvers = [solver for solver in SOLVERS[:4] if not (name == "digits" and solver == "newton-cg")]
        models = [LogisticRegression(tol=1e-11, l1_ratio=ratio, solver=s, max_iter=500).fit(X, y) for s in solvers]
        if ratio == 0.0:
            models.append(Reference(solver="newton-cholesky", tol=1e-10, max_iter=1000).fit(X, y))
    return min(objective(X, y, model.coef_, model.intercept_, ratio) for model in models)


CASES = [
    (solver, name, penalty)
    for solver in SOLVERS
    for name in ("iris", "wine", "cancer", "iris 12", "wine 01", "digits 38", "digits")
    for penalty in PENALTIES
    if not (solver == "dual" and (penalty != "l2" or name in ("iris", "wine", "digits")))
    and not (name == "digits" and (penalty != "l2" or solver in ("newton", "lbfgs", "newton-cg")))
]


@pytest.mark.parametrize(("solver", "name", "penalty"), CASES)
def test_raw_units_within_the_default_limits(solver: str, name: str, penalty: str) -> None:
    (X, y), ratio = data(name), PENALTIES[penalty]
    best = optimum(name, ratio)
    for tol in (1e-4, 1e-6) if name != "digits" else (1e-6,):
        model = LogisticRegression(solver=solver, tol=tol, l1_ratio=ratio).fit(X, y)
        assert model.fit_.status is Status.CONVERGED
        above = objective(X, y, model.coef_, model.intercept_, ratio) - best
        assert above <= tol * max(1.0, best)
        assert above <= model.fit_.certificate.gap + 1e-11 * best  # the rounding of this sum, and of the reference


def test_one_dual_coordinate_is_solved_whatever_its_size() -> None:
    """α' = sσ(t) at the root of m + Q(α' − α) + t, which rises with α': its sign changes within 1e-14 s, in sixty digits."""
    rng = np.random.default_rng(0)
    with mpmath.workdps(60):
        for _ in range(1500):
            s = 10 ** rng.uniform(-8, 8)
            share = rng.choice([rng.random(), 10 ** rng.uniform(-300, 0), 1 - 10 ** rng.uniform(-16, 0), 0.0, 1.0])
            alpha = float(min(s * share, s))
            margin = float(rng.choice([-1, 1]) * 10 ** rng.uniform(-10, 12))
            curvature = float(rng.choice([0.0, 10 ** rng.uniform(-12, 15)]))
            S, A, m, Q = (mpmath.mpf(value) for value in (s, alpha, margin, curvature))
            got, off = mpmath.mpf(new_alpha(alpha, s, margin, curvature)), mpmath.mpf(1e-14) * S
            below, above = got - off, got + off
            case = (alpha, s, margin, curvature)
            assert below <= 0 or m + Q * (below - A) + mpmath.log(below / (S - below)) <= 0, case
            assert above >= S or m + Q * (above - A) + mpmath.log(above / (S - above)) >= 0, case
            assert 0 <= got <= S, case


def test_dual_ascent_of_many_sparse_columns_with_an_intercept() -> None:
    rng = np.random.default_rng(1)
    X = sp.random_array((300, 1500), density=0.01, rng=rng, format="csr")
    y = (X @ rng.standard_normal(1500) + 2.0 + rng.logistic(size=300) > 0).astype(int)
    model = LogisticRegression(solver="dual", tol=1e-6).fit(X, y)
    best = LogisticRegression(tol=1e-10, solver="newton-cg").fit(X, y)
    assert model.fit_.status is Status.CONVERGED
    np.testing.assert_allclose(model.intercept_, best.intercept_, atol=1e-2)
    assert model.fit_.certificate.objective <= best.fit_.certificate.objective * (1 + 1e-6)


def likelihood(X: Any, y: Any, **parameters: Any) -> LogisticRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no advice to raise max_iter
        weights = parameters.pop("sample_weight", None)
        return LogisticRegression(**{"C": np.inf, **parameters}).fit(X, y, weights)


def some_rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3)) * [1.0, 50.0, 1e-3]
    return X, (X[:, 0] + rng.logistic(size=300) > 0).astype(int), np.digitize(X[:, 0] + rng.logistic(size=300), [-1, 1])


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gradient", "sgd"])
@pytest.mark.parametrize("standardised", [False, True])
def test_every_level_of_the_penguins(solver: str, standardised: bool) -> None:
    table = pd.read_csv(PENGUINS).dropna()
    X, y = pd.get_dummies(table.drop(columns="sex"), dtype=float), table["sex"]
    if standardised:
        X = (X - X.mean()) / X.std()
    model = likelihood(X, y, solver=solver)
    assert model.fit_.status is Status.CONVERGED and model.n_iter_[0] <= 25
    assert model.fit_.certificate.gap <= 1e-10 * model.fit_.certificate.objective
    for name in ("species_Gentoo", "island_Torgersen"):
        assert name in model.fit_.detail
        assert model.coef_[0, X.columns.get_loc(name)] == 0.0
    assert "pivoted" in model.fit_.detail
    fewer = X.drop(columns=["species_Gentoo", "island_Torgersen"])
    # A gap of 1e-10 · 63 moves the scores by at most the root of twice that, in the norm of the Hessian.
    np.testing.assert_allclose(model.predict_proba(X), likelihood(fewer, y).predict_proba(fewer), atol=1.2e-4)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("coding", ["softmax", "reference"])
@pytest.mark.parametrize("kind", ["twice", "constant", "sum of counts", "free beside a penalty", "weights"])
def test_dependent_columns_change_no_probability(kind: str, K: int, coding: str) -> None:
    X, two, three = some_rows()
    y = two if K == 2 else three
    more: dict[str, Any] = {"multi_class": coding, "tol": 1e-12}
    fewer, extra = dict(more), X[:, 0]
    if kind == "constant":
        extra = np.full(len(X), 0.1)
    elif kind == "sum of counts":
        X = np.round(X * [10, 1, 1e4])
        extra = X.sum(axis=1)
    elif kind == "free beside a penalty":
        more |= {"C": 1.0, "penalty_factors": [0, 1, 1, 0]}
        fewer |= {"C": 1.0, "penalty_factors": [0, 1, 1]}
    elif kind == "weights":  # dependent in the rows that count
        weights = np.where(np.arange(len(X)) % 4, 2.0, 0.0)
        extra = np.where(weights > 0, extra, 7.0)
        more["sample_weight"] = fewer["sample_weight"] = weights
    wider = np.column_stack([X, extra])
    model = likelihood(wider, y, **more)
    assert model.fit_.status is Status.CONVERGED and "column 3" in model.fit_.detail
    np.testing.assert_allclose(model.predict_proba(wider), likelihood(X, y, **fewer).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gradient", "sgd"])
@pytest.mark.parametrize("apart", ["ulp", "1e-12", "1e-9"])
def test_columns_that_are_nearly_equal_prove_nothing(solver: str, apart: str) -> None:
    """Their difference separates the classes: the infimum is 0, however well the rest fits."""
    X, y, _ = some_rows()
    towards = np.where(y == 1, np.inf, -np.inf)
    other = np.nextafter(X[:, 0], towards) if apart == "ulp" else X[:, 0] + float(apart) * (2 * y - 1)
    model = likelihood(np.column_stack([X, other]), y, solver=solver)
    assert model.fit_.status is Status.UNPROVEN
    assert model.fit_.certificate.gap >= model.fit_.certificate.objective
    assert "column 3" in model.fit_.detail


def test_dependence_is_that_of_exact_arithmetic() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 3))
    levels = np.eye(4)[rng.integers(0, 4, 200)]

    def of(*columns: Any, intercept: bool = True) -> Any:
        rows = np.column_stack(columns)
        return dependent_columns(as_source(rows, np.zeros(len(rows))), np.arange(rows.shape[1]), intercept)

    assert of(X) is None and of(X, levels, intercept=False) is None
    assert of(X, levels).exact == (6,)
    assert of(X, levels * [0.1, 0.7, 1 / 3, 1.3] + 0.1).exact == (6,)
    assert of(X, np.ldexp(X[:, 0], -300)).exact == ()  # too small for exact products: no proof
    assert of(X, np.zeros(200), np.full(200, 0.3)).exact == (3, 4)
    rounded = of(X, X[:, 0] + X[:, 1])  # the sum is rounded: not a combination
    assert rounded.exact == () and rounded.nearly == (3,)


@pytest.mark.parametrize("solver", [*METHODS])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_column_may_be_left(solver, classes, intercept):
    """Columns of zeros without a penalty are left out; with all of them gone the answer is that of no columns at all."""
    X, y = np.zeros((9, 2)), np.arange(9) % classes
    solver = "auto" if solver == "dual" and classes == 3 else solver  # it is for two classes
    model = LogisticRegression(C=np.inf, fit_intercept=intercept, solver=solver).fit(X, y)
    assert model.fit_.status is Status.CONVERGED and not model.coef_.any()
    shares = np.bincount(y) / 9 if intercept else np.full(classes, 1 / classes)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], shares, atol=1e-5)  # a gap of 1e-10 leaves as much


@pytest.mark.parametrize("solver", ["gradient", "sgd", "prox_newton"])
@pytest.mark.parametrize("seed", [151, 346, 609, 722, 990, 1410])
def test_steps_to_where_the_loss_overflows_are_not_taken(solver, seed):
    """A column twice, far from the origin, bounded on one side and not penalised: quadratic models have no minimum there."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 13)), 40
    X = 1000.0 + rng.standard_normal((n, d))
    X[:, -1] = X[:, 0]
    weights, low = rng.choice([0.0, 0.1, 1.0, 2.0, 100.0], n), np.full(d, -np.inf)
    low[[d // 2, -1]] = -1.0
    steps = int(rng.integers(2, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounded: dict[str, Any] = {"C": np.inf, "bounds": (low, np.full(d, np.inf)), "fit_intercept": False}
        model = LogisticRegression(solver=solver, max_iter=steps, tol=0.01, **bounded)
        model.fit(X, rng.integers(0, 2, n), weights)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.fit_.certificate.objective)
    assert model.fit_.certificate.objective <= weights.sum() * np.log(2) * (1 + 1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.1, 20.0])
def test_an_intercept_costs_a_sparse_fit_few_passes(n_classes: int, C: float) -> None:
    """Columns that are nowhere negative lean towards the ones; the proof needs the intercept's condition to be met."""
    rng = np.random.default_rng(0)
    n, d = 1500, 2000
    X = sp.random_array(
        (n, d), density=0.01, format="csr", rng=rng, data_sampler=lambda size: rng.exponential(size=size)
    )
    scores = X @ rng.standard_normal((d, n_classes)) + np.arange(n_classes) + rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    with_one, without = (
        LogisticRegression(C=C, tol=1e-8, fit_intercept=intercept).fit(X, y) for intercept in (True, False)
    )
    assert with_one.solver_ == "newton-cg" and with_one.fit_.status is Status.CONVERGED
    assert with_one.fit_.passes <= 1.5 * without.fit_.passes + 10
    dense = LogisticRegression(C=C, tol=1e-9).fit(X.toarray(), y)
    assert with_one.fit_.certificate.objective - dense.fit_.certificate.objective <= with_one.fit_.certificate.gap
    np.testing.assert_allclose(with_one.predict_proba(X), dense.predict_proba(X.toarray()), atol=1e-3)


@pytest.mark.parametrize("away", [0.0, 30.0, 80.0, 95.0])
@pytest.mark.parametrize("low", [[-0.5, -0.5, 0.2], [0.4, -np.inf, -2.0]])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_bounds_may_begin_where_every_row_is_far_out(away: float, low: list[float], l1_ratio: float) -> None:
    """Zeros are outside the bounds, so the search begins where the loss is flat: curvature of 1e-20, steps of 1e20.

    With an intercept that is free it does not matter where the columns begin.
    """
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    high = np.where(np.array(low) > -0.6, np.inf, -0.5)
    settings: dict[str, Any] = {"C": 2.0, "l1_ratio": l1_ratio, "bounds": (np.array(low), high), "tol": 1e-8}
    here, there = (LogisticRegression(**settings).fit(X + shift, y) for shift in (0.0, away))
    assert here.fit_.status is there.fit_.status is Status.CONVERGED
    certificates = here.fit_.certificate, there.fit_.certificate
    assert abs(certificates[0].objective - certificates[1].objective) <= max(one.gap for one in certificates) + 1e-9
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-3)


def test_steps_that_lead_nowhere_end() -> None:
    """Weights over fourteen decades: what rounding leaves of a step must not be repeated until the limit."""
    rng = np.random.default_rng(4)
    n, ended = 18, 0
    for _ in range(6):
        X, y = rng.standard_normal((n, 4)) * [200.0, 30.0, 1.0, 5e-3], rng.integers(0, 4, n)
        y[:4], weights, offset = np.arange(4), 10.0 ** rng.uniform(-8, 7, n), 3.0 * rng.standard_normal((n, 4))
        model = LogisticRegression(C=12.0, l1_ratio=0.4, tol=1e-8, max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, weights, offset)
        ended += model.fit_.status is not Status.MAX_ITER
    assert ended == 6
