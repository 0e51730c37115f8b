"""The perceptron against scikit-learn's, against loops written out, and against the theorem about its mistakes."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.linear_model
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from separatrix import Perceptron, Status, as_source, config, scan_parquet
from separatrix.data.arrays import ArraySource
from separatrix.geometry.least_distance import nearest_shares
from separatrix.online import visits
from separatrix.online.machine import BinaryPerceptron, Rule

VARIANTS = ["plain", "averaged", "pocket"]
PENALTIES: list[dict[str, Any]] = [
    {"penalty": None},
    {"penalty": "l2", "alpha": 1e-3},
    {"penalty": "l1", "alpha": 1e-3},
    {"penalty": "elasticnet", "alpha": 1e-2, "l1_ratio": 0.4},
    {"penalty": "l2", "alpha": 0.3},  # the scale of the vector is put back into it many times
    {"penalty": "l2", "alpha": 2.0},  # the vector is emptied before every step
]
STORAGES: dict[str, Any] = {"dense": lambda X: X, "sparse": sp.csr_array}
DATA = {"two": load_breast_cancer, "three": load_iris, "ten": load_digits}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = DATA[name](return_X_y=True)
    return X[:400], y[:400]


def separable(seed: int, n: int = 40, d: int = 3, gap: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Rows on both sides of a hyperplane, none nearer to it than half the gap."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(d)
    normal /= np.linalg.norm(normal)
    X = rng.standard_normal((n, d))
    y = np.arange(n) % 2
    X += np.outer((y - 0.5) * gap - X @ normal + (2 * y - 1) * rng.exponential(size=n), normal)
    return X + 0.3 * normal, y


def augmented(X: np.ndarray, codes: np.ndarray, lift: float = 1.0) -> np.ndarray:
    return (2.0 * codes - 1.0)[:, None] * np.column_stack([X, np.full(len(X), lift)])


# -- scikit-learn's answers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: f"{p['penalty']}-{p.get('alpha')}")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_in_order_the_coefficients_are_scikit_learns(data, penalty, storage, weighted):
    X, y = rows_of(data)
    parameters = {"shuffle": False, "tol": None, "max_iter": 7, **penalty}
    weights = None
    if weighted:
        parameters["class_weight"] = {0: 0.5, 1: 3.0}
        weights = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    rows = STORAGES[storage](X)
    ours = Perceptron(**parameters).fit(rows, y, sample_weight=weights)
    theirs = sklearn.linear_model.Perceptron(**parameters).fit(rows, y, sample_weight=weights)
    size = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12, atol=1e-12 * size)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"tol": 1e-2, "n_iter_no_change": 2},
        {"class_weight": "balanced", "eta0": 0.3},
        {"fit_intercept": False},
        {"early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 3},
        {"warm_start": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("data", DATA)
def test_the_epoch_in_which_it_stops_is_scikit_learns(data, parameters):
    X, y = rows_of(data)
    ours = Perceptron(shuffle=False, **parameters)
    theirs = sklearn.linear_model.Perceptron(shuffle=False, **parameters)
    for _ in range(2 if "warm_start" in parameters else 1):
        ours.fit(X, y)
        theirs.fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-12)
    assert ours.n_iter_ <= theirs.n_iter_  # after an epoch without a mistake scikit-learn goes on for nothing
    if data == "two":
        assert (ours.n_iter_, ours.t_) == (theirs.n_iter_, theirs.t_)


def test_partial_fit_and_given_starts_are_scikit_learns():
    X, y = rows_of("three")
    ours, theirs = Perceptron(shuffle=False), sklearn.linear_model.Perceptron(shuffle=False)
    for part in (slice(0, 40), slice(40, 130), slice(0, 150)):
        ours.partial_fit(X[part], y[part], classes=[0, 1, 2])
        theirs.partial_fit(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    assert ours.t_ == theirs.t_
    start, constants = np.ones((3, 4)), [1.0, 2.0, 3.0]
    parameters: dict[str, Any] = {"shuffle": False, "tol": None, "max_iter": 2}
    ours = Perceptron(**parameters).fit(X, y, start, constants)
    theirs = sklearn.linear_model.Perceptron(**parameters).fit(X, y, start.copy(), constants)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-12)


@pytest.mark.parametrize("data", ["two", "three"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_penalty_that_is_taken_away_leaves_the_vector_as_it_is(data, storage):
    X, y = rows_of(data)
    rows = STORAGES[storage](X)
    model = Perceptron(penalty="l2", alpha=1e-2).partial_fit(rows, y, classes=np.unique(y))
    start, constants = model.coef_, model.intercept_
    model.set_params(penalty=None).partial_fit(rows, y)
    fresh = Perceptron(tol=None, max_iter=1).fit(rows, y, start, constants)
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-9, atol=1e-9 * np.abs(fresh.coef_).max())
    np.testing.assert_allclose(model.intercept_, fresh.intercept_, rtol=1e-9)


@pytest.mark.parametrize("tol", [None, 1e-3])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("data", ["two", "three"])
def test_the_plain_loop_makes_the_visits_of_the_general_one(data, storage, shuffle, tol):
    X, y = rows_of(data)
    rng = np.random.default_rng(0)
    X = np.where(rng.random(X.shape) < 0.5, X, 0.0)
    source = as_source(STORAGES[storage](X), y).labelled()
    rows = visits.Visits.of_block(source.one_block(), None, shuffle)
    rule = Rule(1.0, 0.01, 0.0, 0.0, "plain", shuffle, 3, 9, tol, 2, 1)
    salts, found = visits.salts(3, 0, 9), []
    for general in (False, True):
        machine = BinaryPerceptron(1, np.array([1.0, 2.0]), np.zeros(X.shape[1]), 0.5, "plain")
        machine.begin()
        if general:
            machine.plain = lambda rule: False
        trace = machine.run_epochs(rows, salts, rule)
        found.append(
            (trace, *machine.running, machine.done, *(machine.get(name) for name in ("visits", "loss", "run")))
        )
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_epoch_of_partial_fit_is_one_epoch_of_fit(variant):
    X, y = rows_of("three")
    whole = Perceptron(variant=variant, shuffle=False, tol=None, max_iter=1).fit(X, y)
    parts = Perceptron(variant=variant, shuffle=False).partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.coef_, whole.coef_)
    np.testing.assert_array_equal(parts.n_mistakes_, whole.n_mistakes_)


# -- the theorem ------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 6),
    gap=st.floats(0.05, 2.0),
    shuffle=st.booleans(),
    intercept=st.booleans(),
    sparse=st.booleans(),
)
def test_no_more_mistakes_than_the_bound(seed, d, gap, shuffle, intercept, sparse):
    X, y = separable(seed, d=d, gap=gap)
    if not intercept:
        X = X * np.where((2 * y - 1) * X[:, 0] >= 0, 1.0, -1.0)[:, None]  # a hyperplane through the origin
        assume(np.abs(X[:, 0]).min() > 0.01)
    model = Perceptron(tol=None, max_iter=100_000, shuffle=shuffle, fit_intercept=intercept, random_state=seed)
    rows = sp.csr_array(X) if sparse else X
    model.fit(rows, y)
    assert model.fit_.status is Status.SEPARATES
    assert (model.predict(rows) == y).all() and model.margin_[0] > 0
    lift = (0.1 if sparse else 1.0) if intercept else 0.0
    z = augmented(X, y, lift)
    assert model.radius_ == pytest.approx(np.linalg.norm(z, axis=1).max(), rel=1e-12)
    vector = np.append(model.coef_[0], model.intercept_[0] / lift if lift else 0.0)
    assert model.margin_[0] == pytest.approx((z @ vector).min() / np.linalg.norm(vector), rel=1e-9)
    bound = model.mistake_bound(rows, y)[0]
    assert 1 <= model.n_mistakes_[0] <= bound
    # The margin that was attained is no better than the best one.
    assert model.margin_[0] <= model.radius_ / np.sqrt(bound) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_margin_is_that_of_a_hard_margin_svm_through_the_origin(seed):
    X, y = separable(seed, n=60, d=4)
    model = Perceptron(tol=None).fit(X, y)
    z = augmented(X, y)
    # A hard-margin machine on the rows and their mirror images has its hyperplane through the origin.
    svm = SVC(kernel="linear", C=1e10, tol=1e-10).fit(np.vstack([z, -z]), np.repeat([1, -1], len(z)))
    delta = 1.0 / np.linalg.norm(svm.coef_)
    assert model.mistake_bound(X, y)[0] == pytest.approx((model.radius_ / delta) ** 2, rel=1e-5)


def test_the_best_margin_of_each_machine_block_by_block(monkeypatch):
    rng = np.random.default_rng(0)
    centres = np.array([[6.0, 0.0], [-6.0, 5.0], [-5.0, -6.0]])
    y = rng.integers(0, 3, 600)
    X = centres[y] + rng.uniform(-1, 1, (600, 2))
    whole = Perceptron(tol=None).fit(X, y).mistake_bound(X, y)
    assert whole.shape == (3,)
    monkeypatch.setattr("separatrix.data.arrays.rows_per_block", lambda n_features: 100)
    model = Perceptron(tol=None).fit(X, y)
    np.testing.assert_allclose(model.mistake_bound(X, y), whole, rtol=1e-9)
    assert (model.n_mistakes_ <= whole).all()
    for k in range(3):
        z = augmented(X, y == k)
        found = scipy.optimize.nnls(np.column_stack([z, np.ones(len(z))]).T, [0.0, 0.0, 0.0, 1.0])[0]
        nearest = found @ z / found.sum()
        assert whole[k] == pytest.approx((model.radius_ / np.linalg.norm(nearest)) ** 2, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), d=st.integers(1, 8), shift=st.floats(0.0, 4.0))
def test_nearest_point_of_a_hull_has_no_duality_gap(seed, n, d, shift):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (n, d)) + shift  # with ties and repeated rows
    shares = nearest_shares(rows)
    point = shares @ rows
    assert shares.min() >= 0 and shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert point @ point - (rows @ point).min() <= 1e-9 * (1.0 + np.abs(rows).max() ** 2)


def test_no_bound_where_no_hyperplane_separates():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    with pytest.raises(
        ValueError, match=r"no hyperplane separates class 1 from the others \(separability: 'overlap'\)"
    ):
        Perceptron(max_iter=5, tol=None).fit(X, y).mistake_bound(X, y)
    with pytest.raises(ValueError, match=r"separability: 'quasi'"):
        Perceptron(max_iter=5, tol=None).fit([[0.0], [1.0], [1.0]], [0, 0, 1]).mistake_bound(
            [[0.0], [1.0], [1.0]], [0, 0, 1]
        )
    model = Perceptron(max_iter=5, tol=None).fit([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    with pytest.raises(ValueError, match="no hyperplane separates class 'b' from the others"):
        model.mistake_bound([[0.0], [1.0], [2.0]], ["a", "b", "c"])
    with pytest.raises(ValueError, match="penalty='l2' nothing bounds"):
        Perceptron(penalty="l2").fit([[0.0], [1.0]], [0, 1]).mistake_bound([[0.0], [1.0]], [0, 1])


# -- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("penalty", [None, "elasticnet"])
@pytest.mark.parametrize("storage", STORAGES)
def test_weight_zero_is_the_row_not_there(variant, shuffle, penalty, storage):
    X, y = rows_of("three")
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], len(y))
    kept = weights > 0
    model = Perceptron(variant=variant, shuffle=shuffle, penalty=penalty, max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = clone(model).fit(STORAGES[storage](np.where(kept[:, None], X, np.nan)), y, sample_weight=weights)
        two = clone(model).fit(STORAGES[storage](X[kept]), y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.n_mistakes_, two.n_mistakes_)
    assert (one.n_iter_, one.t_, one.radius_) == (two.n_iter_, two.t_, two.radius_)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("penalty", [None, "l1"])
def test_shuffled_a_weight_is_a_number_of_rows_and_the_order_given_is_none(variant, penalty):
    X, y = rows_of("three")
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 4, len(y))
    order = rng.permutation(int(weights.sum()))
    model = Perceptron(variant=variant, penalty=penalty, max_iter=30, tol=None)
    one = clone(model).fit(X, y, sample_weight=weights)
    two = clone(model).fit(np.repeat(X, weights, axis=0)[order], np.repeat(y, weights)[order])
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)
    np.testing.assert_array_equal(one.n_mistakes_, two.n_mistakes_)


def test_shuffled_dense_and_sparse_rows_are_visited_in_the_same_order():
    X, y = rows_of("ten")
    dense, sparse = (Perceptron(fit_intercept=False, max_iter=5, tol=None).fit(A, y) for A in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense.coef_, sparse.coef_)


@pytest.mark.parametrize("seed", [0, 1])
def test_visits_are_in_proportion_to_the_weights_and_few(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((50, 2)), rng.exponential(size=50) ** 3 * 1e6
    block = next(as_source(X, np.arange(50) % 2, weights).labelled().blocks())
    rows = visits.Visits.of_block(block, None, True)
    np.testing.assert_allclose(np.bincount(rows.rows, rows.weights, 50), weights, rtol=1e-12)
    assert 50 <= len(rows.rows) <= 100
    assert rows.weights.max() <= weights.mean() * (1 + 1e-8)
    first, second = rows.order(*visits.salts(0, 0, 1)), rows.order(*visits.salts(0, 1, 2))
    assert sorted(first) == sorted(second) == list(range(len(rows.rows)))
    assert (first != second).any()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), shuffle=st.booleans())
def test_the_bound_holds_with_weights_and_repeated_rows(seed, shuffle):
    X, y = separable(seed, n=20, d=2, gap=0.5)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], len(y))
    weights[:2] = 1.0
    model = Perceptron(tol=None, max_iter=100_000, shuffle=shuffle, class_weight={1: 2.0})
    model.fit(np.vstack([X, X[:5]]), np.append(y, y[:5]), sample_weight=np.append(weights, weights[:5]))
    assert model.fit_.status is Status.SEPARATES
    assert model.n_mistakes_[0] <= model.mistake_bound(X, y, weights)[0]


# -- the variants -----------------------------------------------------------------------------------------------------


def written_out(
    X: np.ndarray, codes: np.ndarray, epochs: int, weights: np.ndarray, shrink: float = 1.0
) -> tuple[np.ndarray, np.ndarray, int]:
    """The last vector and the mean over all steps, as they are defined; `shrink` multiplies w before every step."""
    z, u, total, mistakes = augmented(X, codes), np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), 0
    factors = np.append(np.full(X.shape[1], shrink), 1.0)
    for _ in range(epochs):
        for row, weight in zip(z, weights, strict=True):
            wrong = row @ u <= 0
            u = u * factors + wrong * weight * row
            mistakes += int(wrong)
            total += weight * u
    return u, total / (epochs * weights.sum()), mistakes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", ["dense", "float32", "fortran", "frame"])
def test_averaged_is_the_mean_of_the_vectors_after_every_row(storage, weighted):
    X, y = rows_of("two")
    X = np.round(X[:, :5], 1).astype(np.float32)
    rows = {"dense": X.astype(float), "float32": X, "fortran": np.asfortranarray(X), "frame": pd.DataFrame(X)}[storage]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    last, mean, mistakes = written_out(X.astype(float), y, 3, weights)
    parameters: dict[str, Any] = {"shuffle": False, "tol": None, "max_iter": 3}
    plain = Perceptron(**parameters).fit(rows, y, sample_weight=weights)
    averaged = Perceptron(**parameters, variant="averaged").fit(rows, y, sample_weight=weights)
    np.testing.assert_allclose(np.append(plain.coef_, plain.intercept_), last, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.append(averaged.coef_, averaged.intercept_), mean, rtol=1e-9, atol=1e-9)
    assert plain.n_mistakes_.tolist() == averaged.n_mistakes_.tolist() == [mistakes]


def test_averaged_is_scikit_learns_average():
    X, y = rows_of("ten")
    common: dict[str, Any] = {"shuffle": False, "tol": None, "max_iter": 2, "penalty": None}
    ours = Perceptron(**common, variant="averaged").fit(X, y)
    theirs = SGDClassifier(loss="perceptron", learning_rate="constant", eta0=1.0, average=True, **common).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("alpha", [1e-4, 0.01, 0.5, 2.0])
def test_averaged_under_an_l2_penalty_is_the_mean_too(alpha):
    X, y = rows_of("two")
    X = X / X.max(axis=0)
    model = Perceptron(penalty="l2", alpha=alpha, variant="averaged", shuffle=False, tol=None, max_iter=4).fit(X, y)
    _, mean, _ = written_out(X, y, 4, np.ones(len(y)), max(0.0, 1.0 - alpha))
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), mean, rtol=1e-9, atol=1e-10)


def test_averaged_under_an_l1_penalty_is_the_mean_of_what_partial_fits_leave():
    X, y = rows_of("two")
    common: dict[str, Any] = {"shuffle": False, "penalty": "elasticnet", "alpha": 0.05, "l1_ratio": 0.5}
    # After n rows of one epoch the plain rule is where it stands after a fit to the first n rows.
    n, first = 40, int(np.argmax(y != y[0])) + 1
    vectors = [Perceptron(**common).partial_fit(X[:m], y[:m], classes=[0, 1]).coef_ for m in range(1, n + 1)]
    assert first < n
    averaged = Perceptron(**common, variant="averaged").partial_fit(X[:n], y[:n], classes=[0, 1])
    np.testing.assert_allclose(averaged.coef_, np.mean(vectors, axis=0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_pocket_is_never_worse_than_the_end_of_any_epoch(shuffle, weighted):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    weights = rng.integers(1, 5, 200).astype(float) if weighted else np.ones(200)

    def mistakes(model: Perceptron) -> float:
        return float(weights @ ((2 * y - 1) * model.decision_function(X) <= 0))

    best = np.inf
    for epochs in range(1, 16):
        parameters: dict[str, Any] = {"shuffle": shuffle, "tol": None, "max_iter": epochs}
        best = min(best, mistakes(Perceptron(**parameters).fit(X, y, sample_weight=weights)))
        pocket = Perceptron(**parameters, variant="pocket").fit(X, y, sample_weight=weights)
        assert mistakes(pocket) <= best
    assert mistakes(pocket) < mistakes(
        Perceptron(shuffle=shuffle, tol=None, max_iter=15).fit(X, y, sample_weight=weights)
    )


def test_the_longest_run_gets_into_the_pocket():
    """The last row of the epoch spoils a vector that had all other rows right; the pocket keeps that vector."""
    X, y = np.array([[1.0]] * 20 + [[-0.5]]), np.array([1] * 20 + [1])
    X, y = np.vstack([[[-1.0]], X]), np.append(0, y)
    pocket = Perceptron(variant="pocket", fit_intercept=False, shuffle=False, tol=None, max_iter=1).fit(X, y)
    plain = Perceptron(fit_intercept=False, shuffle=False, tol=None, max_iter=1).fit(X, y)
    assert (pocket.coef_[0, 0], plain.coef_[0, 0]) == (1.0, 0.5)
    assert pocket.coef_[0, 0] * 1 > 0 and "1 row is on the wrong side" in pocket.fit_.detail


# -- when it stops ----------------------------------------------------------------------------------------------------


def test_separable_rows_end_in_an_epoch_without_a_mistake():
    X, y = separable(5)
    model = Perceptron(tol=None, max_iter=10_000).fit(X, y)
    assert model.fit_.trace[-1]["mistakes"] == 0 and all(entry["mistakes"] > 0 for entry in model.fit_.trace[:-1])
    assert model.n_iter_ == len(model.fit_.trace) < 10_000
    assert "without a mistake. Every row is on its side." in model.fit_.detail
    assert model.fit_.certificate.gap == 0.0


def test_other_rows_end_at_the_limits_and_the_sentence_says_so():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    model = Perceptron(tol=None, max_iter=50).fit(X, y)
    assert model.fit_.status is Status.MISTAKES_LEFT and model.n_iter_ == 50 and model.margin_[0] <= 0
    assert (
        "It made 50 epochs, as many as it may." in model.fit_.detail
        and "separability(X, y) can prove" in model.fit_.detail
    )
    wrong = int(((2 * y - 1) * model.decision_function(X) <= 0).sum())
    assert f"{wrong} row" in model.fit_.detail and model.fit_.certificate.gap == wrong
    with pytest.warns(ConvergenceWarning, match="on the wrong side"):
        Perceptron(tol=0.0, n_iter_no_change=100, max_iter=10).fit(X, y)
    assert "by tol=0.1 for 3 epochs" in Perceptron(tol=0.1, n_iter_no_change=3).fit(X, y).fit_.detail
    three = Perceptron(tol=None, max_iter=5).fit(X[:3], ["a", "b", "c"])
    assert "separability(X, y == 'b')" in three.fit_.detail


@pytest.mark.parametrize("variant", ["plain", "averaged"])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, sp.csr_array])
def test_epochs_made_at_once_are_those_made_one_by_one(variant, shuffle, storage, monkeypatch):
    rng = np.random.default_rng(3)
    X, y = storage(rng.normal(size=(120, 5))), rng.integers(0, 4, 120)
    model = Perceptron(variant=variant, shuffle=shuffle, tol=1e-3, max_iter=40)
    together = clone(model).fit(X, y)
    monkeypatch.setattr("separatrix.online.perceptron._AT_ONCE", 1.0)
    one_by_one = clone(model).fit(X, y)
    np.testing.assert_array_equal(together.coef_, one_by_one.coef_)
    np.testing.assert_array_equal(together.n_mistakes_, one_by_one.n_mistakes_)
    assert together.n_iter_ == one_by_one.n_iter_ and together.fit_.trace == one_by_one.fit_.trace
    # In order, every machine is that of its class against the rest, alone.
    for k, label in enumerate([] if shuffle else together.classes_):
        alone = clone(model).fit(X, y == label)
        np.testing.assert_allclose(alone.coef_[0], together.coef_[k], rtol=1e-12, atol=1e-12)


class Interrupting(ArraySource):
    """Somebody presses Ctrl-C in the third pass over the blocks, after the first of them."""

    reads = 0

    def sample(self, rows: int) -> None:
        return None

    def one_block(self, any_order: bool = False) -> None:
        return None

    def blocks(self) -> Any:
        self.reads += 1
        for block in super().blocks():
            if self.reads == self.stop_at and block.start > 0:
                raise KeyboardInterrupt
            yield block

    stop_at = 0


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("epoch", [1, 3])
def test_ctrl_c_leaves_the_model_so_far(variant, epoch, monkeypatch):
    monkeypatch.setattr("separatrix.data.arrays.rows_per_block", lambda n_features: 64)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    source = Interrupting(X, y, None)
    source.labelled = lambda classes=None: labelled  # type: ignore[method-assign]  # one object, so that reads are counted
    labelled = ArraySource.labelled(source)
    calm = Perceptron(variant=variant, tol=None, max_iter=epoch - 1 or 1, shuffle=False)
    # Two reads before the first epoch find the kind of the rows and the weights of the classes, one the norms; the pocket
    # reads once more an epoch.
    before = 3
    labelled.stop_at = before + (epoch - 1) * (2 if variant == "pocket" else 1) + 1
    model = Perceptron(variant=variant, tol=None, max_iter=50, shuffle=False).fit(source)
    assert model.fit_.status is Status.INTERRUPTED and model.n_iter_ == epoch - 1
    assert f"Ctrl-C ended it in epoch {epoch}." in model.fit_.detail
    assert np.isfinite(model.coef_).all() and model.coef_.any()
    if variant == "pocket" and epoch > 1:
        np.testing.assert_array_equal(model.coef_, calm.fit(X, y).coef_)


# -- where the rows live ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_in_a_file_are_visited_like_rows_in_memory(tmp_path, variant):
    X, y = rows_of("two")
    table = pd.DataFrame(X[:, :6], columns=[f"x{j}" for j in range(6)])
    table.assign(label=np.array(["no", "yes"])[y], weight=1.0 + y).to_parquet(tmp_path / "rows.parquet")
    model = Perceptron(variant=variant, max_iter=8, tol=None)
    source = scan_parquet(tmp_path / "rows.parquet", target="label", weight="weight")
    filed = clone(model).fit(source)
    framed = clone(model).fit(table, np.array(["no", "yes"])[y], sample_weight=1.0 + y)
    np.testing.assert_array_equal(filed.coef_, framed.coef_)
    assert filed.predict(table).tolist() == framed.predict(table).tolist()
    assert filed.fit_.passes >= 8


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_blocks_make_no_difference_in_order_and_little_when_shuffled(storage, variant, monkeypatch):
    X, y = rows_of("two")
    X = STORAGES[storage]((X - X.mean(axis=0)) / X.std(axis=0))
    order = np.argsort(y, kind="stable")
    model = Perceptron(variant=variant, shuffle=False, max_iter=5, tol=None)
    whole = clone(model).fit(X, y)
    monkeypatch.setattr("separatrix.data.arrays.rows_per_block", lambda n_features: 50)
    monkeypatch.setattr(
        "separatrix.data.arrays.max", lambda *numbers: min(numbers), raising=False
    )  # small sparse blocks too
    monkeypatch.setattr(visits, "_TURN", 4)
    blocks = clone(model).fit(X, y)
    np.testing.assert_array_equal(blocks.coef_, whole.coef_)
    # Sorted by class: blocks take turns, so that the last rows visited are not all of one class.
    turns = clone(model).set_params(shuffle=True).fit(X[order], y[order])
    assert turns.score(X, y) > 0.94


def test_threads_change_nothing():
    X, y = rows_of("ten")
    one, two = (Perceptron(n_jobs=jobs, max_iter=5, tol=None).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.n_mistakes_, two.n_mistakes_)


@pytest.mark.parametrize("scale", [1e-100, 1e-20, 1e20, 1e100])
def test_the_rule_does_not_notice_units(scale):
    X, y = separable(7)
    plain = Perceptron(tol=None, fit_intercept=False, max_iter=20, shuffle=False)
    here, there = clone(plain).fit(X, y), clone(plain).fit(scale * X, y)
    np.testing.assert_allclose(there.coef_ / scale, here.coef_, rtol=1e-9)
    np.testing.assert_array_equal(there.n_mistakes_, here.n_mistakes_)
    assert there.margin_[0] / scale == pytest.approx(here.margin_[0], rel=1e-9)


# -- conventions and bad input ----------------------------------------------------------------------------------------


def test_grid_search_pipelines_and_pickles():
    X, y = rows_of("three")
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    pipeline = make_pipeline(StandardScaler(), Perceptron(max_iter=100, tol=None))
    search = GridSearchCV(pipeline, {"perceptron__variant": VARIANTS}, cv=3).fit(X, names)
    assert search.best_score_ > 0.9
    model = search.best_estimator_[-1]
    copy = pickle.loads(pickle.dumps(model))
    Z = search.best_estimator_[0].transform(X)
    np.testing.assert_array_equal(copy.decision_function(Z), model.decision_function(Z))
    assert copy.partial_fit(Z, names).n_mistakes_.sum() >= model.n_mistakes_.sum()
    W, b = model.linear_form()
    np.testing.assert_allclose(model.decision_function(Z), Z @ W.T + b)
    plane = model.boundary("setosa", "virginica")
    np.testing.assert_allclose(plane(Z), model.decision_function(Z)[:, 0] - model.decision_function(Z)[:, 2])


def test_a_refused_fit_leaves_the_model_as_it_was():
    X, y = rows_of("three")
    model = Perceptron().fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="NaN or infinity: column 2 has 1 such row"):
        model.fit(np.where(np.arange(150)[:, None] * [0, 0, 1, 0] == 7, np.nan, X), y)
    np.testing.assert_array_equal(model.coef_, before)
    fresh = Perceptron()
    with pytest.raises(ValueError, match="NaN or infinity"):
        fresh.partial_fit([[np.inf]], [0], classes=[0, 1])
    with pytest.raises(NotFittedError):
        fresh.predict([[1.0]])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        fresh.partial_fit([[1.0]], [0])


@pytest.mark.parametrize(
    ("parameters", "arguments", "words"),
    [
        ({}, {"y": None}, "requires y to be passed"),
        ({}, {"y": [0, 0, 0]}, "at least two classes"),
        ({}, {"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight is negative in 1 rows"),
        ({}, {"sample_weight": [0.0, 0.0, 0.0]}, "total of sample_weight is zero"),
        ({}, {"X": [[1.0], [1e200], [2.0]]}, "so large that their squares overflow"),
        ({}, {"coef_init": [[1.0, 2.0]]}, r"coef_init has shape \(1, 2\); .* must be \(1, 1\)"),
        ({}, {"intercept_init": [1.0, 2.0]}, r"intercept_init has shape \(2,\)"),
        ({}, {"coef_init": [[np.nan]]}, "coef_init contains NaN"),
        ({"class_weight": {2: 1.0}}, {}, "class_weight names 2"),
        ({"variant": "voted"}, {}, "'variant' parameter"),
        ({"tol": -1.0}, {}, "'tol' parameter"),
        ({"max_iter": 0}, {}, "'max_iter' parameter"),
        ({"early_stopping": True, "shuffle": False}, {"y": ["a", "b", "b"]}, "only 1 member"),
        ({"early_stopping": True}, {"y": ["a", "b"], "X": [[1.0], [2.0]]}, "no row to hold out"),
    ],
    ids=str,
)
def test_bad_input_is_named(parameters, arguments, words):
    given_arguments = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 1], **arguments}
    with pytest.raises(ValueError, match=words):
        Perceptron(**parameters).fit(**given_arguments)


def test_partial_fit_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="class_weight='balanced' needs the shares"):
        Perceptron(class_weight="balanced").partial_fit([[1.0]], [0], classes=[0, 1])
    with pytest.raises(ValueError, match="set early_stopping=False"):
        Perceptron(early_stopping=True).partial_fit([[1.0]], [0], classes=[0, 1])
    model = Perceptron().partial_fit([[1.0]], [0], classes=[0, 1])
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit([[1.0]], [0], classes=[0, 2])
    with pytest.raises(ValueError, match="is not among the classes"):
        model.partial_fit([[1.0]], [5])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_how_an_array_lies_in_memory_makes_no_difference(classes, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 7)), rng.integers(0, classes, 500)
    weights = rng.integers(1, 4, 500).astype(float) if weighted else None
    one, two = (
        Perceptron(max_iter=5, tol=None).fit(rows, y, sample_weight=weights) for rows in (X, np.asfortranarray(X))
    )
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_trace_adds_up_the_machines_that_still_learn(classes, threads):
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, 300)
    X = rng.standard_normal((300, 4)) + 2.0 * rng.standard_normal((classes, 4))[y]
    with config(threads=threads):
        model = Perceptron(tol=1e-3, n_iter_no_change=3).fit(X, y)
    assert [state["iteration"] for state in model.fit_.trace] == list(range(1, model.n_iter_ + 1))
    assert sum(state["mistakes"] for state in model.fit_.trace) == model.n_mistakes_.sum()
    assert all(isinstance(state["mistakes"], int) and state["objective"] >= 0 for state in model.fit_.trace)
    one_by_one = Perceptron(tol=1e-3, n_iter_no_change=3, record=True).fit(X, y)  # which visits them epoch by epoch
    assert len(one_by_one.fit_.trace) == model.n_iter_
    for found, wanted in zip(model.fit_.trace, one_by_one.fit_.trace, strict=True):
        assert found == {**wanted, "objective": pytest.approx(wanted["objective"], rel=1e-9)}
    for epochs in (1, 2, model.n_iter_ // 2 + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short = Perceptron(tol=1e-3, n_iter_no_change=3, max_iter=epochs).fit(X, y)
        assert short.fit_.trace == model.fit_.trace[:epochs]
