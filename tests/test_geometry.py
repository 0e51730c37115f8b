"""Boundaries, neighbouring regions and counterfactuals, against projections, other solvers and the definitions."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sklearn_linear
from estimators import each, named
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear, minimize, nnls
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import separatrix
from separatrix import (
    BernoulliNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MultinomialNB,
    OneVsRestClassifier,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    RidgeClassifier,
    as_source,
    counterfactual,
)
from separatrix.geometry import Hyperplane, Quadric, adjacency
from separatrix.geometry.least_distance import least_distance
from separatrix.geometry.regions import linear_rule

IRIS = load_iris(return_X_y=True)
LINEAR = named("lda", "lda eigen, shrunk", "logistic", "ridge classifier", "gaussian shared", "rda of one covariance")
REDUCED = named("against rest of lda", "against rest of ridge, K - 1")
FOREIGN = [
    sklearn_linear.LogisticRegression(max_iter=1000),
    sklearn_linear.RidgeClassifier(),
    sklearn_linear.Perceptron(),
    OneVsRestClassifier(sklearn_linear.RidgeClassifier()),
]


class Rule:
    """A linear rule given by its numbers."""

    def __init__(self, W, b, classes=None):
        self.W, self.b = np.atleast_2d(np.asarray(W, dtype=float)), np.asarray(b, dtype=float)
        self.classes_ = np.arange(len(self.b)) if classes is None else np.asarray(classes)

    def linear_form(self):
        return self.W, self.b

    def predict(self, X):
        return self.classes_[(np.asarray(X) @ self.W.T + self.b).argmax(axis=1)]


def random_rule(rng, K, d):
    return Rule(rng.normal(size=(K, d)), rng.normal(size=K))


# -- boundaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("two", [True, False])
@each("estimator", LINEAR | REDUCED)
def test_along_the_boundary_the_label_stays_and_across_it_changes(estimator, two):
    X, y = IRIS
    X, y = (X[y > 0], y[y > 0]) if two else (X, y)
    model = estimator.fit(X, y)
    plane = model.boundary(2, 1)
    assert isinstance(plane, Hyperplane)
    W, b = model.linear_form()
    assert W.shape == (len(b), 4) and len(b) == (1 if two else 3)
    on = plane.project(X)
    np.testing.assert_allclose(plane(on), 0.0, atol=1e-9 * np.abs(plane(X)).max())
    np.testing.assert_allclose(np.linalg.norm(X - on, axis=1), np.abs(plane.signed_distance(X)), atol=1e-9)
    along = np.linalg.svd(plane.normal[None, :])[2][1:]
    np.testing.assert_allclose(plane(X + 3.0 * along[0] - along[2]), plane(X), atol=1e-9 * np.abs(plane(X)).max())
    if two:
        np.testing.assert_array_equal(model.predict(X), np.where(plane(X) > 0, 2, 1))
        np.testing.assert_array_equal(model.predict(X + along[1]), model.predict(X))
        step = plane.normal / np.linalg.norm(plane.normal) * (1e-6 * np.abs(X).max())
        assert (model.predict(on + step) == 2).all() and (model.predict(on - step) == 1).all()


@pytest.mark.parametrize(
    "estimator", [QuadraticDiscriminantAnalysis(), GaussianNB(), RegularizedDiscriminantAnalysis(0.5, 0.9)], ids=repr
)
def test_quadratic_rules_have_quadrics(estimator):
    X, y = IRIS
    model = estimator.fit(X, y)
    for k, l in combinations(range(3), 2):  # noqa: E741  # names of the formulas
        surface = model.boundary(k, l)
        assert isinstance(surface, Quadric)
        scores = model.decision_function(X)
        np.testing.assert_allclose(surface(X), scores[:, k] - scores[:, l], rtol=1e-8, atol=1e-8)


# -- neighbours -------------------------------------------------------------------------------------------------------


def one_programme(S, k, l):  # noqa: E741  # names of the formulas
    """The definition at once, over all rows: the largest lead, or None if the two are equal nowhere."""
    n, K = S.shape
    others = [j for j in range(K) if j not in (k, l)]
    A = np.hstack([(S[:, others] - S[:, [k]]).T, np.ones((len(others), 1))]) if others else None
    answer = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=A,
        b_ub=np.zeros(len(others)) if others else None,
        A_eq=np.array([np.append(S[:, k] - S[:, l], 0.0), np.append(np.ones(n), 0.0)]),
        b_eq=[0.0, 1.0],
        bounds=[*[(0, None)] * n, (None, 1e3 if others else 0.0)],
    )
    return -answer.fun if answer.status == 0 else None


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 6), d=st.integers(1, 4), n=st.integers(1, 40))
def test_neighbours_are_those_of_the_definition(seed, K, d, n):
    rng = np.random.default_rng(seed)
    rule, X = random_rule(rng, K, d), rng.normal(size=(n, d))
    found = adjacency(rule, X)
    S = X @ rule.W.T + rule.b
    size = np.abs(S - S.mean(axis=1, keepdims=True)).max()
    for k, l in combinations(range(K), 2):  # noqa: E741  # names of the formulas
        lead = one_programme(S, k, l)
        if lead is not None and abs(lead) < 1e-6 * size and K > 2:
            continue  # too near a corner for the other programme's tolerance
        assert found.matrix[k, l] == (lead is not None and lead >= 0)
        assert found.matrix[l, k] == found.matrix[k, l]
        if not found.matrix[k, l]:
            assert (k, l) not in found.witnesses and np.isnan(found.clearance[k, l])
            continue
        x = found.witnesses[k, l]
        scores = rule.W @ x + rule.b
        assert abs(scores[k] - scores[l]) <= 1e-8 * size
        rest = np.delete(scores, [k, l])
        assert (scores[k] >= rest - 1e-8 * size).all()
        if K > 2:
            np.testing.assert_allclose(found.clearance[k, l], lead, atol=1e-6 * size)
            np.testing.assert_allclose(found.clearance[k, l], (scores[k] - rest).min(), atol=1e-7 * size)
        else:
            assert np.isinf(found.clearance[k, l])
        # Inside the hull: a convex combination of the rows.
        _, off = nnls(np.vstack([X.T, np.full(n, 10.0)]), np.append(x, 10.0))
        assert off < 1e-7 * (1 + np.abs(X).max())
    assert not found.matrix.diagonal().any()


@pytest.mark.parametrize("estimator", [*(LINEAR | REDUCED).values(), *FOREIGN], ids=repr)
def test_iris_lies_in_a_row(estimator):
    """Setosa, versicolor, virginica: whoever is between is the neighbour of both; walking between rows agrees."""
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])
    model = estimator.fit(X, names[y])
    found = adjacency(model, X)
    assert "versicolor" in found.neighbours("setosa") and "virginica" in found.neighbours("versicolor")
    # Where the label changes between two near points of a segment the two classes are neighbours.
    rng = np.random.default_rng(0)
    ends = rng.integers(0, len(X), (60, 2))
    steps = np.linspace(0, 1, 401)[:, None]
    place = {name: k for k, name in enumerate(names)}
    for a, b in ends:
        labels = [place[label] for label in model.predict(X[a] + steps * (X[b] - X[a]))]
        for one, two in pairwise(labels):
            assert one == two or found.matrix[one, two]


def test_a_masked_class_has_no_neighbours_and_quadrants_meet_in_a_corner():
    line = np.array([[0.0], [1.0], [4.0], [5.0], [8.0], [9.0]])
    ridge = RidgeClassifier(alpha=0.0).fit(line, ["a", "a", "b", "b", "c", "c"])
    found = adjacency(ridge, line)
    assert found.matrix[0, 2]  # the middle is masked: the outer classes meet, all three in the one point
    np.testing.assert_allclose(found.witnesses["a", "c"], [4.5], atol=1e-9)
    quadrants = Rule([[1, 1], [-1, 1], [-1, -1], [1, -1]], np.zeros(4), ["ne", "nw", "sw", "se"])
    square = np.array([[2.0, 1.0], [-1.0, 2.0], [-2.0, -1.0], [1.0, -2.0]])
    corner = adjacency(quadrants, square)
    assert corner.matrix.sum() == 12
    assert corner.clearance[0, 1] > 1.0 and corner.clearance[0, 2] == 0.0
    np.testing.assert_allclose(corner.witnesses["ne", "sw"], 0.0, atol=1e-9)
    # A hull that stops short of the corner keeps the neighbours across an axis only.
    east = adjacency(quadrants, [[1.0, 3.0], [1.0, -3.0], [4.0, 0.0]])
    assert east.neighbours("ne") == ["se"] and east.neighbours("nw") == []
    assert str(east) == "Neighbours within the hull of the rows: 'ne' and 'se'."
    # Touching the boundary from one side is meeting it.
    assert adjacency(quadrants, [[1.0, 3.0], [1.0, 0.0]]).neighbours("ne") == ["se"]
    assert not adjacency(quadrants, [[1.0, 3.0], [1.0, 0.5]]).matrix.any()


def test_many_rows_of_any_storage_give_one_answer():
    X, y = make_blobs(8_000, 6, centers=5, random_state=3, cluster_std=4.0)
    model = LinearDiscriminantAnalysis().fit(X, y)
    whole = adjacency(model, X)
    S = X @ model.coef_.T + model.intercept_
    order = np.random.default_rng(0).permutation(len(X))
    for other in (
        X[order],
        sp.csr_array(X),
        pd.DataFrame(X),
        as_source(
            np.vstack([X[:50] * 1e3, X, X[:50] * np.nan]),
            sample_weight=np.r_[np.zeros(50), np.ones(len(X)), np.zeros(50)],
        ),
    ):
        found = adjacency(model, other)
        np.testing.assert_array_equal(found.matrix, whole.matrix)
        np.testing.assert_allclose(found.clearance, whole.clearance, rtol=1e-7)
        points = np.array([*found.witnesses.values()])
        scores = np.sort(points @ model.coef_.T + model.intercept_, axis=1)
        np.testing.assert_allclose(scores[:, -1], scores[:, -2], atol=1e-8 * np.abs(S).max())
    for k, l in [(0, 1), (2, 4)]:  # noqa: E741  # names of the formulas
        np.testing.assert_allclose(one_programme(S, k, l), whole.clearance[k, l], rtol=1e-6)


def test_regions_refuse_what_is_not_one_linear_score_a_class():
    X, y = IRIS
    for model, words in [
        (SVC(kernel="linear").fit(X, y), "not the largest of one linear score"),
        (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), "of a pipeline its last step"),
        (QuadraticDiscriminantAnalysis().fit(X, y), "no linear form"),
    ]:
        with pytest.raises(TypeError, match=words):
            adjacency(model, X)
        with pytest.raises(TypeError, match=words):
            counterfactual(model, X[0])
    with pytest.raises(ValueError, match="quadratic when each class has its own variances"):
        adjacency(GaussianNB().fit(X, y), X)
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but the rule has 4"):
        adjacency(model, X[:, :3])
    with pytest.raises(ValueError, match="column 2 has 1 such row"):
        adjacency(model, np.where(np.arange(4) == 2, np.nan, X[:1]))
    with pytest.raises(ValueError, match="'x' is not a class"):
        adjacency(model, X).neighbours("x")


def test_a_class_of_prior_zero_has_no_region():
    X, y = IRIS
    model = LinearDiscriminantAnalysis(priors=[0.5, 0.0, 0.5]).fit(X, y)
    assert adjacency(model, X).neighbours(0) == [2]
    assert counterfactual(model, X[0], target=1).status == "No change leads to class 1: the rule decides so nowhere."
    assert counterfactual(model, X[0]).target == 2


# -- counterfactuals --------------------------------------------------------------------------------------------------


def is_nearest(found, rule, x, low=-np.inf, high=np.inf, free=None, M=None):
    """Karush–Kuhn–Tucker: M times the change is a non-negative combination of the constraints that hold with equality."""
    classes, W, b = linear_rule(rule)
    goal = int(np.flatnonzero(classes == found.target)[0])
    d = len(x)
    free = np.ones(d, dtype=bool) if free is None else free
    M = np.eye(d) if M is None else M
    low, high = np.broadcast_to(low, d), np.broadcast_to(high, d)
    others = np.delete(np.arange(len(b)), goal)
    normals = W[goal] - W[others]
    slack = normals @ found.x + b[goal] - b[others]
    size = (np.abs(W[others]) + np.abs(W[goal])) @ np.abs(found.x) + np.abs(b[others]) + abs(b[goal])
    assert (slack >= 0).all()
    active = [*normals[slack <= 1e-8 * size]]
    active += [*np.eye(d)[found.x == low], *-np.eye(d)[found.x == high]]
    gradient = (M @ found.change)[free]
    if not len(active):
        np.testing.assert_allclose(gradient, 0.0, atol=1e-9)
        return
    _, off = nnls(np.array(active)[:, free].T, gradient)
    assert off <= 1e-6 * np.linalg.norm(gradient) + 1e-12


@pytest.mark.parametrize("estimator", [*LINEAR.values(), *FOREIGN[:-1]], ids=repr)
def test_two_classes_have_the_closed_form(estimator):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :8]
    model = estimator.fit(X, y)
    W, b = model.linear_form() if hasattr(model, "linear_form") else (model.coef_, model.intercept_)
    plane = Hyperplane(np.ravel(W), float(b[0]))
    for x in X[:10]:
        found = counterfactual(model, x)
        assert model.predict(found.x[None])[0] == found.target != model.predict(x[None])[0]
        np.testing.assert_allclose(found.x, plane.project(x[None])[0], atol=1e-9)
        np.testing.assert_allclose(found.distance, abs(plane.signed_distance(x[None])[0]), rtol=1e-9)
        np.testing.assert_array_equal(found.x - x, found.change)


@pytest.mark.parametrize("estimator", [*(LINEAR | REDUCED).values(), *FOREIGN], ids=repr)
def test_every_target_is_reached_at_the_least_distance(estimator):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = estimator.fit(X, y)
    rng = np.random.default_rng(0)
    for x in X[::30]:
        now = model.predict(x[None])[0]
        each = {}
        for target in range(3):
            found = counterfactual(model, x, target)
            assert model.predict(found.x[None])[0] == target == found.target
            is_nearest(found, model, x)
            each[target] = found.distance
            if target == now:
                assert found.distance == 0.0 and found.status == f"The row is of class {now} already."
                continue
            # No nearer row has the class.
            sphere = rng.normal(size=(2000, 13))
            sphere *= 0.999 * found.distance / np.linalg.norm(sphere, axis=1, keepdims=True)
            assert (model.predict(x + sphere) != target).all()
            assert (model.predict(x + 0.999 * found.change[None])[0]) != target
        best = counterfactual(model, x)
        assert best.target == min(set(each) - {now}, key=each.get) and best.distance == each[best.target]


@given(seed=st.integers(0, 10**6), K=st.integers(2, 6), d=st.integers(1, 7), scale=st.sampled_from([1e-6, 1.0, 1e6]))
def test_bounds_fixed_columns_and_metrics(seed, K, d, scale):
    rng = np.random.default_rng(seed)
    rule, x = random_rule(rng, K, d), scale * rng.normal(size=d)
    rule.b *= scale
    low = np.where(rng.random(d) < 0.4, x - scale * rng.exponential(0.3, d), -np.inf)
    high = np.where(rng.random(d) < 0.4, x + scale * rng.exponential(0.3, d), np.inf)
    free = rng.random(d) < 0.8
    root = rng.normal(size=(d, d)) + 2 * np.eye(d)
    metric = [None, rng.uniform(0.5, 2.0, d), root @ root.T][rng.integers(3)]
    M = np.eye(d) if metric is None else np.diag(metric**-2.0) if metric.ndim == 1 else np.linalg.inv(metric)
    target = int(rng.integers(K))
    found = counterfactual(rule, x, target, bounds=(low, high), fixed=np.flatnonzero(~free), metric=metric)
    # Whether any row will do is a linear programme.
    others = np.delete(np.arange(K), target)
    A, c = rule.W[others] - rule.W[target], rule.b[target] - rule.b[others]
    held = [(x[j] / scale,) * 2 if not free[j] else (low[j] / scale, high[j] / scale) for j in range(d)]
    deepest = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([A, np.ones((len(others), 1))]),
        b_ub=c / scale,
        bounds=[*held, (None, 1.0)],
    )
    if found.x is None:
        assert deepest.status == 2 or -deepest.fun < 1e-7
        assert found.distance == np.inf and "No change leads to class" in found.status
        return
    assert -deepest.fun > -1e-7
    assert rule.predict(found.x[None])[0] == target
    assert (found.x >= low).all() and (found.x <= high).all()
    np.testing.assert_array_equal(found.x[~free], x[~free])
    np.testing.assert_allclose(found.distance, np.sqrt(found.change @ M @ found.change), rtol=1e-7, atol=1e-9 * scale)
    is_nearest(found, rule, x, low, high, free, M)


def test_another_solver_finds_nothing_nearer():
    rng = np.random.default_rng(5)
    for _ in range(10):
        rule, x = random_rule(rng, 4, 5), rng.normal(size=5)
        low, high = x - 1.0, x + 1.0
        found = counterfactual(rule, x, 2, bounds=(low, high))
        if found.x is None:
            continue
        answer = minimize(
            lambda z, x=x: ((z - x) ** 2).sum(),
            np.clip(found.x + 0.1 * rng.normal(size=5), low, high),
            jac=lambda z, x=x: 2 * (z - x),
            bounds=list(zip(low, high, strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda z, r=rule: np.delete(r.W[2] - r.W, 2, 0) @ z + np.delete(r.b[2] - r.b, 2),
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(found.distance, np.sqrt(answer.fun), atol=1e-5)


@given(seed=st.integers(0, 10**6), m=st.integers(0, 12), d=st.integers(1, 6))
def test_least_distance_meets_the_kkt_conditions_or_has_a_farkas_certificate(seed, m, d):
    rng = np.random.default_rng(seed)
    G, h = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, (m, 1)), rng.normal(size=m)
    if m > 2 and rng.random() < 0.5:  # parallel and repeated constraints
        G[0], h[0] = 2 * G[1], 2 * h[1]
        G[2] = -G[1]
    answer = least_distance(G, h)
    lengths = np.linalg.norm(G, axis=1)
    if answer.z is None:
        # u ≥ 0 with Gᵀu = 0 and hᵀu = 1.
        _, off = nnls(np.vstack([(G / lengths[:, None]).T, h / lengths]), np.append(np.zeros(d), 1.0), maxiter=1000)
        assert off < 1e-6
        assert answer.multipliers.min() >= 0 and answer.multipliers @ h[answer.active] > 0
        sizes = answer.multipliers * lengths[answer.active]
        assert np.abs(answer.multipliers @ G[answer.active]).max() <= 1e-8 * sizes.sum()
        return
    z, active = answer.z, answer.active
    slack = (G @ z - h) / np.where(lengths > 0, lengths, 1.0)
    assert (slack >= -1e-9 * (1 + np.linalg.norm(z))).all()
    np.testing.assert_allclose(slack[active], 0.0, atol=1e-9 * (1 + np.linalg.norm(z)))
    if z.any():
        _, off = nnls((G[active] / lengths[active, None]).T, z, maxiter=1000)
        assert off <= 1e-7 * np.linalg.norm(z)


def test_bounds_by_box_agree_with_bounded_least_squares():
    """One boundary: the multiplier is found by hand, then the rest is a projection on the box."""
    rng = np.random.default_rng(1)
    w, x = rng.normal(size=40), rng.normal(size=40)
    rule = Rule(np.vstack([np.zeros(40), w]), [0.0, -float(w @ x) - 2.0])
    found = counterfactual(rule, x, 1, bounds=(x - 0.05, None))
    answer = lsq_linear(
        np.vstack([1e6 * w, np.eye(40)]), np.append(2e6, np.zeros(40)), bounds=(-0.05, np.inf), tol=1e-14, method="bvls"
    )
    np.testing.assert_allclose(found.change, answer.x, atol=1e-7)
    assert (found.x >= x - 0.05).all() and (found.x == x - 0.05).sum() > 5


def test_scales_and_covariances_are_one_notion():
    X, y = IRIS
    model = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    scales = np.array([1.0, 2.0, 0.5, 3.0])
    one, two = (
        counterfactual(model, X[60], 2, metric=scales),
        counterfactual(model, X[60], 2, metric=np.diag(scales**2)),
    )
    np.testing.assert_allclose(one.x, two.x, rtol=1e-10)
    # In Mahalanobis' metric the nearest point of a boundary lies in the direction of the difference of the means.
    found = counterfactual(model, X[60], 2, metric=model.covariance_)
    direction = model.means_[2] - model.means_[1]
    cosine = found.change @ direction / np.linalg.norm(found.change) / np.linalg.norm(direction)
    np.testing.assert_allclose(cosine, 1.0, rtol=1e-10)


def test_columns_go_by_name_and_impossible_demands_get_a_sentence():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.columns = ["length", "width", "petal length", "petal width"]
    model = LogisticRegression().fit(X, y)
    x = X.iloc[0]
    found = counterfactual(model, x, 1, bounds={"petal length": (None, 2.75), 0: (4.0, 6.0)}, fixed=["width"])
    assert found.x[2] == 2.75 and found.change[1] == 0.0 and 4.0 <= found.x[0] <= 6.0
    assert counterfactual(model, x.to_frame().T, 1).distance < found.distance
    assert counterfactual(model, sp.csr_array(x.to_numpy()[None]), 1).target == 1
    none = counterfactual(model, x, 2, bounds=(x - 0.1, x + 0.1))
    assert none.x is None and none.change is None
    assert str(none) == "No change leads to class 2: the bounds and fixed columns forbid it; relax some."
    everything = counterfactual(model, x, fixed=range(4))
    assert everything.status.startswith("No change leads to another class: the bounds and fixed columns forbid it")
    stuck = counterfactual(model, x, 1, bounds={"width": (9.0, 10.0)}, fixed=["width"])
    assert (
        stuck.status
        == "No change leads to class 1: column 'width' is fixed outside its bounds; free it, or widen them."
    )
    # A row outside its bounds has to move even if its class may stay.
    moved = counterfactual(model, x, 0, bounds={"width": (3.75, None)})
    np.testing.assert_allclose(moved.change, [0.0, 0.25, 0.0, 0.0])


def test_bad_input_of_counterfactuals():
    X, y = IRIS
    model = LinearDiscriminantAnalysis().fit(X, y)
    for arguments, words in [
        ({"x": X[0, :3]}, "x has 3 entries, but the rule has 4 features"),
        ({"x": [1.0, np.nan, 0.0, 0.0]}, "NaN or infinity in column 1"),
        ({"target": 7}, r"target=7 is not a class of this model; the classes are \[0, 1, 2\]"),
        ({"fixed": ["age"]}, "fixed names the column 'age', which the model does not have"),
        ({"bounds": {9: (0, 1)}}, "bounds names the column 9, which the model does not have; its columns are 0 to 3"),
        ({"bounds": {1: (2.0, 1.0)}}, "The bounds of column 1 are empty: 2 to 1"),
        ({"metric": [1.0, 2.0]}, r"metric has shape \(2,\); give \(4,\) scales or a \(4, 4\) covariance"),
        ({"metric": [1.0, 2.0, 0.0, 1.0]}, "scales that are not positive"),
        ({"metric": np.ones((4, 4))}, "metric has no inverse"),
        ({"metric": np.triu(np.ones((4, 4)))}, "metric is not symmetric"),
    ]:
        with pytest.raises(ValueError, match=words):
            counterfactual(model, **{"x": X[0], **arguments})


def test_models_that_cut_columns_into_flags_are_found_out():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3)).astype(float)
    y = (X[:, 0] + rng.random(60) > 0.8).astype(int)
    model = BernoulliNB().fit(X, y)
    with pytest.raises(ValueError, match="does not decide by its linear form"):
        counterfactual(model, [1.0, 1.0, 1.0], 0, bounds=(0.01, None))  # all flags stay set
    counts = MultinomialNB().fit(X, y)  # linear in x: nothing to find
    assert counts.predict(counterfactual(counts, X[0] + 1.0).x[None])[0] != counts.predict(X[:1] + 1.0)[0]


def test_many_columns_cost_no_square_matrix():
    rng = np.random.default_rng(2)
    d = 20_000
    rule, x = random_rule(rng, 3, d), rng.normal(size=d)
    found = counterfactual(rule, x, bounds={3: (x[3], x[3]), 7: (None, 0.0)}, metric=rng.uniform(1.0, 2.0, d))
    assert rule.predict(found.x[None])[0] == found.target
    assert found.change[3] == 0.0 and found.x[7] <= 0.0


@pytest.mark.parametrize("K", [2, 3])
def test_every_rule_with_a_linear_form_measures_distances(K):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < K], y[y < K]
    models = [
        separatrix.GaussianNB(shared_variance=True),
        separatrix.RegularizedDiscriminantAnalysis(alpha=0.0, gamma=1.0),
        separatrix.LinearDiscriminantAnalysis(),
        separatrix.LinearSVC(),
        separatrix.SVC(kernel="linear", multi_class="ovr"),
    ]
    for model in models:
        W, b = model.fit(X, y).linear_form()
        expected = (X @ W.T + b) / np.linalg.norm(W, axis=1)
        np.testing.assert_allclose(
            model.signed_distance(X), expected[:, 0] if K == 2 else expected, rtol=1e-9, atol=1e-9
        )


def test_boundaries_of_a_machine():
    X, y = load_iris(return_X_y=True)
    pairs = separatrix.SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    scores = pairs.decision_function(X)
    for m, (k, l) in enumerate([(0, 1), (0, 2), (1, 2)]):  # noqa: E741  # names of the formulas
        np.testing.assert_allclose(pairs.boundary(k, l)(X), scores[:, m], atol=1e-10)
        np.testing.assert_allclose(pairs.boundary(l, k)(X), -scores[:, m], atol=1e-10)
    with pytest.raises(ValueError, match="vote of pairs"):
        pairs.linear_form()
    curved = separatrix.SVC().fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(curved.boundary()(X), curved.decision_function(X), atol=1e-12)
