"""LDA, QDA and Fisher's coordinates: scikit-learn's numbers, textbook identities, R's two definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
import sklearn.discriminant_analysis as reference
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS, LedoitWolf
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from separatrix import (
    FisherDiscriminant,
    LinearDiscriminantAnalysis,
    LinearRegression,
    QuadraticDiscriminantAnalysis,
    Status,
)
from separatrix.geometry import Hyperplane, Quadric
from separatrix.models.discriminant import canonical

DATA = {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}
X_CANCER, Y_CANCER = load_breast_cancer(return_X_y=True)
DATA["cancer"] = (X_CANCER[:, :12], Y_CANCER)

LDA_PARAMETERS = [
    {},
    {"solver": "lsqr"},
    {"solver": "eigen"},
    {"solver": "lsqr", "shrinkage": 0.3},
    {"solver": "eigen", "shrinkage": 1.0},
    {"solver": "lsqr", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": "auto", "priors": "uneven"},
    {"priors": "uneven"},
    {"solver": "lsqr", "priors": "uneven"},
    {"solver": "lsqr", "covariance_estimator": OAS()},
    {"solver": "eigen", "covariance_estimator": LedoitWolf()},
]
QDA_PARAMETERS = [
    {},
    {"solver": "eigen"},
    {"reg_param": 0.2},
    {"solver": "eigen", "shrinkage": 0.4},
    {"solver": "eigen", "shrinkage": "auto"},
    {"priors": "uneven", "reg_param": 0.05},
    {"solver": "eigen", "covariance_estimator": OAS()},
]


def fill(parameters, y):
    uneven = {2: [0.3, 0.7], 3: [0.2, 0.3, 0.5]}[len(np.unique(y))]
    return {name: uneven if value == "uneven" else value for name, value in parameters.items()}


@pytest.mark.parametrize("parameters", LDA_PARAMETERS, ids=str)
@pytest.mark.parametrize("name", DATA)
def test_lda_is_scikit_learns(name, parameters):
    X, y = DATA[name]
    ours = LinearDiscriminantAnalysis(**fill(parameters, y)).fit(X, y)
    theirs = reference.LinearDiscriminantAnalysis(**fill(parameters, y)).fit(X, y)
    scale = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.means_, theirs.means_)
    assert (ours.predict(X) == theirs.predict(X)).all()
    if parameters.get("solver") != "lsqr" and not {"shrinkage", "covariance_estimator"} & parameters.keys():
        np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)
    if parameters.get("solver") in ("lsqr", "eigen"):
        np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("parameters", QDA_PARAMETERS, ids=str)
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_qda_is_scikit_learns(name, parameters):
    X, y = DATA[name]
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # scikit-learn's test for singularity depends on the units
    ours = QuadraticDiscriminantAnalysis(**fill(parameters, y), store_covariance=True).fit(X, y)
    theirs = reference.QuadraticDiscriminantAnalysis(**fill(parameters, y), store_covariance=True).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-7, atol=1e-7)
    for one, two in zip(ours.covariance_, theirs.covariance_, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)
    for one, two in zip(ours.scalings_, theirs.scalings_, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-10)


def test_both_definitions_of_r_are_reachable():
    X, y = DATA["iris"]
    unbiased = LinearDiscriminantAnalysis(solver="lsqr", covariance="unbiased").fit(X, y)
    mle = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    within = sum((X[y == k] - X[y == k].mean(axis=0)).T @ (X[y == k] - X[y == k].mean(axis=0)) for k in range(3))
    np.testing.assert_allclose(unbiased.covariance_, within / 147, rtol=1e-10)
    np.testing.assert_allclose(mle.covariance_, within / 150, rtol=1e-10)
    qda = QuadraticDiscriminantAnalysis(covariance="unbiased", store_covariance=True).fit(X, y)
    np.testing.assert_allclose(qda.covariance_[2], np.cov(X[y == 2].T), rtol=1e-10)
    # MASS::lda(Species ~ ., iris): singular values, as R prints them (svd: 48.642644 4.579983).
    fisher = FisherDiscriminant(covariance="unbiased").fit(X, y)
    scores = fisher.transform(X)
    f_ratio = [sum(50 * s[y == k].mean() ** 2 for k in range(3)) / 2 for s in scores.T]
    np.testing.assert_allclose(np.sqrt(f_ratio), [48.642644, 4.579983], rtol=1e-6)


def test_lda_posterior_is_bayes_rule_with_gaussian_densities():
    X, y = DATA["wine"]
    model = LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    densities = np.column_stack(
        [multivariate_normal(mean, model.covariance_, allow_singular=True).logpdf(X) for mean in model.means_]
    ) + np.log(model.priors_)
    np.testing.assert_allclose(model.log_density(X), np.logaddexp.reduce(densities, axis=1), rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_log_proba(X), densities - np.logaddexp.reduce(densities, axis=1)[:, None], rtol=1e-7, atol=1e-7
    )
    np.testing.assert_allclose(model.outlier_score(X), -model.log_density(X))


def test_mahalanobis_distances_are_scipys():
    X, y = DATA["iris"]
    model = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    for k, (mean, covariance) in enumerate(zip(model.means_, model.covariance_, strict=True)):
        expected = np.einsum("ij,jk,ik->i", X - mean, np.linalg.inv(covariance), X - mean)
        np.testing.assert_allclose(model.mahalanobis(X)[:, k], expected, rtol=1e-8)


def test_outliers_by_training_quantile():
    X, y = DATA["iris"]
    model = LinearDiscriminantAnalysis().fit(X, y).fit_outlier_threshold(X, quantile=0.9)
    assert model.is_outlier(X).sum() == 15
    assert model.is_outlier(X.mean(axis=0)[None] + 100.0).all()


def test_fisher_direction_is_the_whitened_mean_difference():
    X, y = DATA["cancer"]
    fisher = FisherDiscriminant().fit(X, y)
    within = sum(np.cov(X[y == k].T, ddof=0) * (y == k).sum() for k in (0, 1)) / len(y)
    direction = np.linalg.solve(within, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    cosine = direction @ fisher.scalings_[:, 0] / np.linalg.norm(direction) / np.linalg.norm(fisher.scalings_)
    np.testing.assert_allclose(cosine, 1.0, rtol=1e-10)
    assert not hasattr(fisher, "predict")


def test_fisher_with_unweighted_class_means_is_its_own_eigenproblem():
    X, y = DATA["wine"]
    fisher = FisherDiscriminant(class_means="unweighted").fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    within = sum(np.cov(X[y == k].T, ddof=0) * (y == k).sum() for k in range(3)) / len(y)
    away = means - means.mean(axis=0)
    values, vectors = scipy.linalg.eigh(away.T @ away, within)
    for j in range(2):
        np.testing.assert_allclose(np.abs(vectors[:, -1 - j] @ within @ fisher.scalings_[:, j]), 1.0, rtol=1e-8)
    np.testing.assert_allclose(fisher.explained_variance_ratio_, values[:-3:-1] / values[-2:].sum(), rtol=1e-8)
    weighted = FisherDiscriminant().fit(X, y)
    assert np.abs(weighted.explained_variance_ratio_ - fisher.explained_variance_ratio_).max() > 1e-3
    X, y = DATA["iris"]  # balanced: the same in both forms
    one, two = FisherDiscriminant().fit(X, y), FisherDiscriminant(class_means="unweighted").fit(X, y)
    np.testing.assert_allclose(one.scalings_, two.scalings_, rtol=1e-10)
    np.testing.assert_allclose(one.explained_variance_ratio_, two.explained_variance_ratio_, rtol=1e-10)
    X, y = DATA["cancer"]  # two classes have one direction in both
    one, two = FisherDiscriminant().fit(X, y), FisherDiscriminant(class_means="unweighted").fit(X, y)
    np.testing.assert_allclose(one.scalings_, two.scalings_, rtol=1e-8)


def test_a_threshold_of_fishers_coordinate_is_a_rule():
    X, y = DATA["cancer"]
    fisher, lda = FisherDiscriminant().fit(X, y), LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    scores = fisher.transform(X)[:, 0]
    means = [scores[y == k].mean() for k in (0, 1)]
    assert fisher.threshold() == pytest.approx(np.mean(means))
    assert np.array_equal(scores > fisher.threshold("data"), lda.predict(X) == 1)
    moved = lda.decision_function(X) + np.log(0.95 / 0.05) - np.log(lda.priors_[1] / lda.priors_[0])
    assert np.array_equal(scores > fisher.threshold([0.05, 0.95]), moved > 0)
    assert fisher.threshold([0.0, 1.0]) == -np.inf
    with pytest.raises(ValueError, match="priors is 'equal'"):
        fisher.threshold("equal")
    with pytest.raises(ValueError, match="between two classes, and there are 3"):
        FisherDiscriminant().fit(*DATA["iris"]).threshold()


def test_fisher_is_least_squares_for_two_classes():
    X, y = DATA["cancer"]
    n, n1 = len(y), (y == 1).sum()
    slopes = LinearRegression().fit(X, np.where(y == 1, n / n1, -n / (n - n1))).coef_
    direction = FisherDiscriminant().fit(X, y).scalings_[:, 0]
    np.testing.assert_allclose(slopes / np.linalg.norm(slopes), direction / np.linalg.norm(direction), rtol=1e-7)


@pytest.mark.parametrize("shrinkage", [0.0, 0.5])
def test_scores_have_unit_covariance_within_classes_and_diagonal_between(shrinkage):
    X, y = DATA["wine"]
    fisher = FisherDiscriminant(shrinkage=shrinkage).fit(X, y)
    scores = fisher.transform(X)
    assert scores.shape == (178, 2)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-9)
    if shrinkage == 0.0:
        within = sum((y == k).sum() * np.cov(scores[y == k].T, ddof=0) for k in range(3)) / len(y)
        np.testing.assert_allclose(within, np.eye(2), atol=1e-9)
        lda = LinearDiscriminantAnalysis().fit(X, y)
        np.testing.assert_allclose(np.abs(lda.transform(X)), np.abs(scores), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(lda.explained_variance_ratio_, fisher.explained_variance_ratio_, rtol=1e-10)
    means = np.stack([scores[y == k].mean(axis=0) * np.sqrt((y == k).sum()) for k in range(3)])
    between = means.T @ means
    np.testing.assert_allclose(between[0, 1], 0.0, atol=1e-9 * between[0, 0])
    np.testing.assert_allclose(np.diag(between) / np.trace(between), fisher.explained_variance_ratio_, rtol=1e-8)


def test_the_linear_form_gives_the_scores_and_boundaries_are_where_posteriors_tie():
    X, y = DATA["iris"]
    labels = np.array(["a", "b", "c"])[y]
    model = LinearDiscriminantAnalysis().fit(X, labels)
    W, b = model.linear_form()
    np.testing.assert_allclose(X @ W.T + b, model.decision_function(X), rtol=1e-12, atol=1e-12)
    plane = model.boundary("a", "c")
    assert isinstance(plane, Hyperplane)
    on_plane = plane.project(X)
    proba = model.predict_proba(on_plane)
    np.testing.assert_allclose(proba[:, 0], proba[:, 2], rtol=1e-7)
    np.testing.assert_allclose(np.abs(plane.signed_distance(X)), np.linalg.norm(X - on_plane, axis=1), rtol=1e-9)
    # Moving along the boundary leaves the score.
    along = np.cross(np.append(plane.normal[:2], 0.0), [0.0, 0.0, 1.0])[:2]
    moved = X.copy()
    moved[:, :2] += 3.0 * along
    np.testing.assert_allclose(plane(moved), plane(X), atol=1e-9)
    np.testing.assert_allclose(model.boundary("c", "a")(X), -plane(X))


def test_two_classes_have_one_signed_distance():
    X, y = DATA["cancer"]
    model = LinearDiscriminantAnalysis().fit(X, y)
    W, b = model.linear_form()
    assert W.shape == (1, X.shape[1])
    np.testing.assert_allclose(model.signed_distance(X), (X @ W[0] + b[0]) / np.linalg.norm(W))
    np.testing.assert_allclose(model.boundary()(X), model.decision_function(X), rtol=1e-9, atol=1e-9)
    assert ((model.signed_distance(X) > 0) == (model.predict(X) == 1)).all()


def test_qda_boundary_is_a_quadric_where_posteriors_tie():
    X, y = DATA["iris"]
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    quadric = model.boundary(1, 2)
    assert isinstance(quadric, Quadric)
    log_proba = model.predict_log_proba(X)
    np.testing.assert_allclose(quadric(X), log_proba[:, 1] - log_proba[:, 2], rtol=1e-6, atol=1e-6)


def test_a_singular_class_is_refused_by_name_or_handled_on_request():
    X, y = DATA["iris"]
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.raises(np.linalg.LinAlgError, match=r"setosa.*4 of 5 directions.*reg_param.*pseudo"):
        QuadraticDiscriminantAnalysis().fit(X, labels)
    pseudo = QuadraticDiscriminantAnalysis(singular="pseudo").fit(X, labels)
    assert pseudo.fit_.status is Status.PSEUDO
    assert np.isfinite(pseudo.predict_proba(X)).all()
    # On the subspace in which the rows lie nothing is lost: an orthonormal basis of it gives the same posteriors.
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4]
    plain = QuadraticDiscriminantAnalysis().fit(X @ basis.T, labels)
    np.testing.assert_allclose(pseudo.predict_proba(X), plain.predict_proba(X @ basis.T), rtol=1e-6, atol=1e-9)


def test_lda_leaves_out_directions_without_variance_as_scikit_learn_does():
    X, y = DATA["iris"]
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(len(X))])
    ours = LinearDiscriminantAnalysis().fit(X, y)
    theirs = reference.LinearDiscriminantAnalysis().fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-9)
    assert ours.fit_.status is Status.PSEUDO
    assert "4 of 6 directions" in ours.fit_.detail


@pytest.mark.parametrize("make", [LinearDiscriminantAnalysis, lambda: QuadraticDiscriminantAnalysis(reg_param=0.1)])
def test_posteriors_do_not_depend_on_row_order_or_storage(make):
    X, y = DATA["wine"]
    order = np.random.default_rng(0).permutation(len(y))
    base = make().fit(X, y).predict_proba(X)
    for X_other, y_other in [(X[order], y[order]), (np.asfortranarray(X), y), (sp.csc_array(X), y)]:
        np.testing.assert_allclose(make().fit(X_other, y_other).predict_proba(X), base, rtol=1e-8, atol=1e-10)


def test_extra_shrinkage_equals_the_plug_in_estimator():
    X, y = DATA["wine"]
    ours = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="oas").fit(X, y)
    plug_in = reference.LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=OAS()).fit(X, y)
    np.testing.assert_allclose(ours.coef_, plug_in.coef_, rtol=1e-8, atol=1e-10)
    quadratic = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="oas").fit(X, y)
    theirs = reference.QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=OAS()).fit(X, y)
    np.testing.assert_allclose(quadratic.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-10)


def test_float32_in_float32_coefficients_out():
    X, y = DATA["iris"]
    model = LinearDiscriminantAnalysis().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    np.testing.assert_allclose(model.coef_, LinearDiscriminantAnalysis().fit(X, y).coef_, rtol=1e-4)


@pytest.mark.parametrize("named", [True, False])
def test_a_column_that_separates_without_variance_is_named(named):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = np.column_stack([rng.normal(size=80), 1.25 + 2.0 * y, np.ones(80)])
    model = LinearDiscriminantAnalysis().fit(pd.DataFrame(X, columns=["a", "key", "one"]) if named else X, y)
    assert ("column 'key'." if named else "column 1.") in str(model.fit_.detail)


@pytest.mark.parametrize("solver", ["svd", "eigen"])
@pytest.mark.parametrize("seed", range(6))
def test_axes_point_as_scikit_learn_s_do(solver, seed):
    """So that figures of them are the same: signs of LAPACK's vectors, for few and many classes, with and without priors."""
    rng = np.random.default_rng(seed)
    n_classes, d = int(rng.integers(2, 6)), int(rng.integers(2, 12))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 150)])
    X = rng.standard_normal((len(y), d)) @ rng.standard_normal((d, d)) + 2.0 * rng.standard_normal((n_classes, d))[y]
    priors = rng.dirichlet(np.full(n_classes, 5.0)) if seed % 2 and solver == "svd" else None
    ours = LinearDiscriminantAnalysis(solver=solver, priors=priors).fit(X, y)
    theirs = reference.LinearDiscriminantAnalysis(solver=solver, priors=priors).fit(X, y)
    expected = theirs.transform(X)
    np.testing.assert_allclose(ours.transform(X), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_axes_are_found_when_asked_for_and_only_once(solver, monkeypatch):
    """The rule needs no axes; a model that was asked is the same as before."""
    calls, search = [], canonical.canonical_directions
    monkeypatch.setattr(canonical, "canonical_directions", lambda *given: calls.append(0) or search(*given))
    X, y = load_iris(return_X_y=True)
    model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    before = dict(vars(model))
    model.predict_proba(X)
    assert not calls
    for _ in range(2):
        model.transform(X)
        assert model.scalings_.shape == (4, 2)
        assert model.explained_variance_ratio_.shape == (2,)
    assert len(calls) == 1
    assert vars(model) == before
    assert not hasattr(LinearDiscriminantAnalysis(), "scalings_")
    assert not hasattr(LinearDiscriminantAnalysis(solver="lsqr").fit(X, y), "scalings_")
