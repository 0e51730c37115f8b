"""From posterior to action: the rule, rejection, prior shift, calibration and posterior summaries.

action = argmin_a Σ_k L[k,a] p(k|x)
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimators import Doubled, each, having
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as SkLogistic
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import separatrix
from separatrix import (
    BayesRule,
    FeatureMap,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    MixedNB,
    MultinomialNB,
    as_source,
    estimate_priors,
    posterior_summary,
    shift_priors,
    threshold_for,
)
from separatrix.decide import expected_calibration_error, reliability_diagram
from separatrix.decide.losses import best_actions, expected_losses

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
CLASSIFIERS = having(basic=True, probabilities=True) | {
    "scaled logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "scikit-learn's": make_pipeline(StandardScaler(), SkLogistic()),
    "forest": RandomForestClassifier(n_estimators=10, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=2),
}


class Given(ClassifierMixin, BaseEstimator):
    """A classifier with nothing but classes_ and predict_proba: X holds its probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X, dtype=np.float32)


doubled = Doubled()


def posteriors(n: int, K: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(K), size=n)


def rule_on(proba, labels=None, **parameters) -> BayesRule:
    """A rule whose posterior is what it is given, in float32."""
    labels = np.arange(proba.shape[1]) if labels is None else np.asarray(labels)
    y = labels[np.arange(len(proba)) % len(labels)]
    return BayesRule(Given(), **parameters).fit(proba, y)


# -- scikit-learn's conventions ---------------------------------------------------------------------------------------


def test_clone_pickle_and_get_params():
    loss = np.array([[0.0, 1.0], [3.0, 0.0]])
    rule = BayesRule(GaussianNB(var_smoothing=1e-6), loss, reject_cost=0.2, reject_action=-1)
    assert rule.get_params()["estimator__var_smoothing"] == 1e-6
    X, y = CANCER
    fitted = clone(rule).fit(X, y)
    assert rule.loss is loss and not hasattr(rule, "estimator_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_feature_names_pass_through():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rule = BayesRule(LinearDiscriminantAnalysis()).fit(X, y)
    assert list(rule.feature_names_in_) == list(X.columns) and rule.n_features_in_ == 30
    with pytest.raises(ValueError, match="feature names"):
        rule.predict(X[X.columns[::-1]])
    assert not hasattr(rule.fit(X.to_numpy(), y), "feature_names_in_")


def test_unfitted():
    with pytest.raises(NotFittedError):
        BayesRule(GaussianNB()).decision_regions()


# -- the rule ---------------------------------------------------------------------------------------------------------


@each("estimator", CLASSIFIERS)
def test_zero_one_loss_is_argmax_for_every_classifier(estimator):
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    rule = BayesRule(estimator).fit(X, names)
    posterior = clone(estimator).fit(X, names).predict_proba(X)
    np.testing.assert_array_equal(rule.predict(X), rule.classes_[posterior.argmax(axis=1)])
    np.testing.assert_allclose(rule.predict_proba(X), posterior, rtol=1e-12)
    np.testing.assert_allclose(rule.expected_loss(X), 1 - posterior, atol=1e-12)
    assert rule.score(X, names) == pytest.approx(np.mean(rule.predict(X) == names) - 1)


@given(arrays(np.float64, (20, 5), elements=st.floats(0, 1)))
@settings(max_examples=50)
def test_zero_one_ties_break_as_argmax_does(raw):
    proba = (raw + 1e-3) / (raw + 1e-3).sum(axis=1, keepdims=True)
    proba[::2] = proba[::2, ::-1].copy()
    proba[1::3, 3] = proba[1::3, 1]
    np.testing.assert_array_equal(best_actions(proba, 1.0 - np.eye(5)), proba.argmax(axis=1))


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-10, 10)),
    arrays(np.float64, (3,), elements=st.floats(-10, 10)),
    st.floats(0.1, 10),
)
@settings(max_examples=60)
def test_the_chosen_action_has_the_least_expected_loss(matrix, shift, scale):
    proba = posteriors(40, 3)
    by_hand = np.array([[sum(p[k] * matrix[k, a] for k in range(3)) for a in range(4)] for p in proba])
    np.testing.assert_allclose(expected_losses(proba, matrix), by_hand, atol=1e-12)
    chosen = best_actions(proba, matrix)
    np.testing.assert_allclose(by_hand[np.arange(40), chosen], by_hand.min(axis=1), atol=1e-12)
    moved = best_actions(proba, scale * (matrix + shift[:, None]))
    np.testing.assert_allclose(by_hand[np.arange(40), moved], by_hand.min(axis=1), atol=1e-11)


def test_two_classes_act_by_the_threshold():
    X, y = CANCER
    loss = [[0.0, 3.0], [7.0, 0.0]]
    rule = BayesRule(LogisticRegression(), loss).fit(X, y)
    assert threshold_for(loss) == pytest.approx(0.3)
    np.testing.assert_array_equal(rule.predict(X), (rule.predict_proba(X)[:, 1] > 0.3).astype(int))
    exact = rule_on(np.array([[0.75, 0.25], [0.5, 0.5]]), loss=[[0.0, 1.0], [3.0, 0.0]])
    assert exact.predict([[0.75, 0.25], [0.5, 0.5]]).tolist() == [0, 1]  # a tie goes to the first action


def test_more_and_fewer_actions_than_classes():
    X, y = IRIS
    loss = [[0, 5, 1, 2], [5, 0, 1, 2], [9, 9, 1, 0.5]]
    rule = BayesRule(GaussianNB(), loss, actions=["water", "cut", "wait", "ask"]).fit(X, y)
    expected = rule.predict_proba(X) @ np.array(loss)
    np.testing.assert_array_equal(rule.predict(X), np.array(["water", "cut", "wait", "ask"])[expected.argmin(axis=1)])
    assert rule.expected_loss(X).shape == (150, 4)
    fewer = BayesRule(GaussianNB(), [[0, 1], [0, 1], [1, 0]], actions=["leave", "take"]).fit(X, y)
    np.testing.assert_array_equal(fewer.predict(X) == "take", fewer.predict_proba(X)[:, 2] > 0.5)


def test_a_function_is_called_with_labels_and_names():
    X, y = IRIS
    labels = np.array(["a", "b", "c"])[y]

    def loss(truth, action):
        return {"a": 1.0, "b": 2.0, "c": 4.0}[truth] * (action != f"treat {truth}")

    rule = BayesRule(GaussianNB(), loss, actions=["treat a", "treat b", "treat c"]).fit(X, labels)
    np.testing.assert_array_equal(rule.loss_matrix_, [[0, 1, 1], [2, 0, 2], [4, 4, 0]])
    assert -rule.score(X, labels) == pytest.approx(
        np.mean([loss(k, a) for k, a in zip(labels, rule.predict(X), strict=True)])
    )


def test_labels_keep_their_type():
    X, y = CANCER
    for labels in (y, y.astype(bool), np.array(["no", "yes"])[y], np.array(["no", "yes"], dtype=object)[y]):
        predicted = BayesRule(GaussianNB()).fit(X, labels).predict(X)
        assert predicted.dtype == labels.dtype and set(predicted) <= set(labels)


def test_weights_are_repetitions():
    X, y = CANCER
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    loss = [[0, 2], [5, 0]]
    weighted = BayesRule(GaussianNB(), loss).fit(X, y, sample_weight=repeats)
    repeated = BayesRule(GaussianNB(), loss).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(weighted.expected_loss(X), repeated.expected_loss(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.training_priors_, repeated.training_priors_)
    assert weighted.score(X, y, sample_weight=repeats) == pytest.approx(
        repeated.score(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    )


def test_sparse_frames_and_sources():
    X, y = IRIS
    dense = BayesRule(LogisticRegression()).fit(X, y)
    sparse = BayesRule(LogisticRegression()).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_array(X)), dense.predict_proba(X), atol=1e-6)
    weights = np.arange(150.0)
    source = as_source(X, y, weights)
    from_source = BayesRule(LogisticRegression()).fit(source)
    from_array = BayesRule(LogisticRegression()).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(from_source.training_priors_, from_array.training_priors_)
    np.testing.assert_array_equal(from_source.predict(as_source(X)), from_array.predict(X))
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"])
    np.testing.assert_array_equal(BayesRule(MixedNB()).fit(frame, y).predict(frame).shape, (150,))


def test_a_frozen_estimator_is_not_fitted_again():
    X, y = CANCER
    model = LinearDiscriminantAnalysis().fit(X[:300], y[:300])
    rule = BayesRule(FrozenEstimator(model), [[0, 1], [5, 0]]).fit(X[300:], y[300:])
    np.testing.assert_array_equal(rule.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(rule.training_priors_, model.priors_)


# -- costs of single rows, and metadata routing -----------------------------------------------------------------------


def test_costs_of_rows():
    X, y = CANCER
    n, rng = len(y), np.random.default_rng(1)
    loss = np.array([[0.0, 1.0], [4.0, 0.0]])
    rule = BayesRule(GaussianNB(), loss).fit(X, y)
    same = np.broadcast_to(loss, (n, 2, 2))
    np.testing.assert_array_equal(rule.predict(X, costs=same), rule.predict(X))
    costs = rng.exponential(size=(n, 2, 2))
    proba = rule.predict_proba(X)
    expected = np.stack([p @ c for p, c in zip(proba, costs, strict=True)])
    np.testing.assert_allclose(rule.expected_loss(X, costs=costs), expected)
    np.testing.assert_array_equal(rule.predict(X, costs=costs), expected.argmin(axis=1))
    assert -rule.score(X, y, costs=costs) == pytest.approx(costs[np.arange(n), y, expected.argmin(axis=1)].mean())
    prices = rng.exponential(size=(n, 2))
    np.testing.assert_allclose(rule.expected_loss(X, costs=prices), proba @ loss + prices)
    np.testing.assert_array_equal(
        rule.predict(X, costs=prices), rule.predict(X, costs=loss + np.repeat(prices[:, None], 2, axis=1))
    )


def test_costs_are_routed_through_pipelines_and_searches():
    X, y = CANCER
    costs = np.random.default_rng(2).exponential(size=(len(y), 2, 2)) * (1 - np.eye(2))
    with config_context(enable_metadata_routing=True):
        rule = BayesRule(GaussianNB()).set_predict_request(costs=True).set_score_request(costs=True)
        pipeline = make_pipeline(StandardScaler(), rule).fit(X, y)
        direct = BayesRule(GaussianNB()).fit(StandardScaler().fit_transform(X), y)
        np.testing.assert_array_equal(
            pipeline.predict(X, costs=costs), direct.predict(StandardScaler().fit_transform(X), costs=costs)
        )
        search = GridSearchCV(rule, {"estimator__var_smoothing": [1e-9, 1e-2]}, cv=3).fit(X, y, costs=costs)
        for smoothing, mean in zip([1e-9, 1e-2], search.cv_results_["mean_test_score"], strict=True):
            scores = []
            for train, test in StratifiedKFold(3).split(X, y):
                fold = BayesRule(GaussianNB(var_smoothing=smoothing)).fit(X[train], y[train])
                scores.append(fold.score(X[test], y[test], costs=costs[test]))
            assert mean == pytest.approx(np.mean(scores))


def test_sample_weight_is_routed_to_the_estimator():
    X, y = CANCER
    weights = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    direct = GaussianNB().fit(X, y, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        inner = GaussianNB().set_fit_request(sample_weight=True)
        rule = BayesRule(make_pipeline(inner)).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(rule.predict_proba(X), direct.predict_proba(X))
        outer = make_pipeline(BayesRule(inner).set_fit_request(sample_weight=True)).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(outer.predict_proba(X), direct.predict_proba(X))
        with pytest.raises(ValueError, match="sample_weight"):
            BayesRule(GaussianNB()).fit(X, y, sample_weight=weights)
        calibrated = BayesRule(inner, calibration="isotonic", cv=StratifiedKFold(3)).fit(X, y, sample_weight=weights)
        reference = CalibratedClassifierCV(inner, method="isotonic", cv=StratifiedKFold(3)).set_fit_request(
            sample_weight=True
        )
        kept = weights > 0
        reference.fit(X[kept], y[kept], sample_weight=weights[kept])
        np.testing.assert_array_equal(calibrated.predict_proba(X), reference.predict_proba(X))


def test_without_routing_weights_reach_only_estimators_that_take_them():
    X, y = CANCER
    with pytest.raises(ValueError, match="metadata routing"):
        BayesRule(make_pipeline(GaussianNB())).fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        BayesRule(GaussianNB()).fit(X, y, colour=np.ones(len(y)))


def test_grid_search_minimises_the_risk():
    X, y = CANCER
    loss = [[0, 20], [1, 0]]
    search = GridSearchCV(BayesRule(GaussianNB(), loss), {"estimator__var_smoothing": [1e-9, 1e-3, 1.0]}, cv=3)
    search.fit(X, y)
    risks = [
        -cross_val_score(BayesRule(GaussianNB(var_smoothing=v), loss), X, y, cv=3).mean() for v in (1e-9, 1e-3, 1.0)
    ]
    np.testing.assert_allclose(-search.cv_results_["mean_test_score"], risks)
    assert search.best_params_["estimator__var_smoothing"] == [1e-9, 1e-3, 1.0][int(np.argmin(risks))]


# -- rejection --------------------------------------------------------------------------------------------------------


def test_rejection_by_cost_and_by_posterior():
    proba = posteriors(200, 3)
    wrong = 1 - proba.max(axis=1)
    by_cost = rule_on(proba, reject_cost=0.25, reject_action=-1).predict(proba)
    np.testing.assert_array_equal(by_cost == -1, wrong > 0.25)
    by_posterior = rule_on(proba, reject_below=0.75, reject_action=-1).predict(proba)
    np.testing.assert_array_equal(by_posterior, by_cost)  # Chow: under the 0–1 loss they are one
    both = rule_on(proba, reject_cost=0.25, reject_below=0.9, reject_action=-1).predict(proba)
    np.testing.assert_array_equal(both == -1, wrong > 0.1)


@pytest.mark.parametrize("loss", ["zero-one", [[0, 5, 2], [1, 0, 7], [3, 3, 0]], [[5, 5, 5], [5, 5, 5], [5, 5, 5]]])
def test_extreme_costs_of_rejection(loss):
    proba = posteriors(500, 3)
    worst = 1.0 if isinstance(loss, str) else float(np.max(loss))
    assert (rule_on(proba, loss=loss, reject_cost=0.0, reject_action=-1).predict(proba) == -1).all()
    assert (rule_on(proba, loss=loss, reject_cost=worst, reject_action=-1).predict(proba) != -1).all()


def test_a_certain_row_is_not_rejected_at_cost_zero():
    rule = rule_on(np.eye(2), reject_cost=0.0, reject_action=-1)
    assert rule.predict([[1.0, 0.0], [0.5, 0.5]]).tolist() == [0, -1]
    assert rule_on(np.eye(2), reject_below=0.5, reject_action=-1).predict([[0.5, 0.5]]).tolist() == [0]


def test_more_rejection_where_it_is_cheaper():
    X, y = CANCER
    rejected = [
        (BayesRule(GaussianNB(), reject_cost=c, reject_action=-1).fit(X, y).predict(X) == -1).mean()
        for c in (0.0, 1e-6, 1e-3, 0.1, 0.5)
    ]
    assert rejected == sorted(rejected, reverse=True) and rejected[-1] == 0 < rejected[0]


@pytest.mark.parametrize(
    ("labels", "mark", "kind"),
    [
        ([0, 1], "reject", "O"),
        ([0, 1], None, "O"),
        ([0, 1], -1, "i"),
        ([0, 1], np.nan, "f"),
        ([False, True], "reject", "O"),
        (["no", "yes"], "reject", "U"),
        (["no", "yes"], None, "O"),
    ],
)
def test_predictions_have_one_type(labels, mark, kind):
    proba = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    rule = rule_on(proba, labels, reject_cost=0.2, reject_action=mark)
    some, none = rule.predict(proba), rule.predict(proba[:1])
    assert some.dtype.kind == none.dtype.kind == kind and some.dtype == none.dtype
    assert some[0] == labels[0] and some[2] == labels[1]
    assert some[1] is mark or some[1] == mark or (kind == "f" and np.isnan(some[1]))


def test_score_prices_rejections():
    proba, y = np.array([[0.9, 0.1], [0.55, 0.45], [0.2, 0.8], [0.05, 0.95]]), np.array([0, 1, 0, 1])
    rule = BayesRule(Given(), reject_cost=0.3, reject_action=-1).fit(proba, y)
    assert rule.predict(proba).tolist() == [0, -1, 1, 1]
    assert rule.score(proba, y) == pytest.approx(-(0.3 + 1.0) / 4)
    with pytest.raises(ValueError, match="reject_cost"):
        BayesRule(Given(), reject_below=0.7).fit(proba, y).score(proba, y)


# -- regions ----------------------------------------------------------------------------------------------------------


@given(
    arrays(np.float64, (2, 4), elements=st.integers(-8, 8).map(float)),
    st.one_of(st.none(), st.integers(-4, 8).map(float)),
    st.one_of(st.none(), st.sampled_from([0.25, 0.5, 0.6, 1.0])),
)
@settings(max_examples=150)
def test_regions_of_two_classes_agree_with_predict(matrix, cost, below):
    rule = rule_on(
        np.eye(2), loss=matrix, actions=[10, 11, 12, 13], reject_cost=cost, reject_below=below, reject_action=-1
    )
    regions = rule.decision_regions()
    assert len(regions.actions) == len(regions.breakpoints) + 1
    assert (np.diff(regions.breakpoints) > 0).all() and (regions.actions[1:] != regions.actions[:-1]).all()
    p = np.linspace(0.0007, 0.9993, 997)
    p = p[np.abs(p[:, None] - regions.breakpoints).min(axis=1, initial=1.0) > 1e-6]
    predicted = rule.predict(np.column_stack([1 - p, p]))
    inside = regions.actions[np.searchsorted(regions.breakpoints, p)]
    # Where two actions cost the same everywhere, rounding may choose either: compare what they cost.
    for a, b, x in zip(predicted, inside, p, strict=True):
        if a != b:
            losses = [cost if a == -1 else (1 - x) * matrix[0, a - 10] + x * matrix[1, a - 10] for a in (a, b)]
            assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def test_regions_by_hand():
    rule = rule_on(np.eye(2), loss=[[0, 1], [4, 0]], reject_cost=0.5, reject_action=-1)
    assert rule.decision_regions().breakpoints.tolist() == [0.125, 0.5]
    assert rule.decision_regions().actions.tolist() == [0, -1, 1]
    chow = rule_on(np.eye(2), reject_below=0.75, labels=["n", "y"]).decision_regions()
    assert chow.breakpoints.tolist() == [0.25, 0.75] and chow.actions.tolist() == ["n", "reject", "y"]
    assert len(rule_on(np.eye(2), loss=[[1, 0], [1, 0]], actions=["a", "b"]).decision_regions().breakpoints) == 0


@given(st.floats(0.01, 0.99), st.floats(-3, 3), st.lists(st.floats(-5, 5), min_size=3, max_size=6, unique=True))
@settings(max_examples=100)
def test_lines_that_meet_in_one_point_have_one_breakpoint(p, height, slopes):
    slopes = np.round(slopes, 2)
    loss = [height - slopes * p, height + slopes * (1 - p)]
    regions = rule_on(np.eye(2), loss=loss, actions=range(10, 10 + len(slopes))).decision_regions()
    if np.ptp(slopes) == 0:
        assert len(regions.breakpoints) == 0
        return
    np.testing.assert_allclose(regions.breakpoints, [p], rtol=1e-9)
    assert slopes[regions.actions - 10].tolist() == [slopes.max(), slopes.min()]


def test_regions_of_the_plane():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.iloc[:, :2]
    rule = BayesRule(LinearDiscriminantAnalysis()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the grid has the names of the columns
        regions = rule.decision_regions(X, grid_resolution=30)
    assert regions.actions.shape == (30, 30) and set(regions.actions.ravel()) == {0, 1, 2}
    assert regions.x[0] < X.iloc[:, 0].min() and regions.y[-1] > X.iloc[:, 1].max()
    point = pd.DataFrame([[regions.x[4], regions.y[17]]], columns=X.columns)
    assert rule.predict(point)[0] == regions.actions[17, 4]
    with pytest.raises(ValueError, match="two classes only"):
        rule.decision_regions()
    with pytest.raises(ValueError, match="two features"):
        BayesRule(GaussianNB()).fit(*IRIS).decision_regions(IRIS[0])


# -- prior shift ------------------------------------------------------------------------------------------------------


def test_priors_reweigh_as_the_model_itself_would():
    X, y = IRIS
    priors = [0.7, 0.2, 0.1]
    rule = BayesRule(LinearDiscriminantAnalysis()).fit(X, y)
    moved = rule.with_priors(priors)
    np.testing.assert_allclose(
        moved.predict_proba(X), LinearDiscriminantAnalysis(priors=priors).fit(X, y).predict_proba(X), atol=1e-9
    )
    np.testing.assert_allclose(BayesRule(LinearDiscriminantAnalysis(), priors=priors).fit(X, y).predict_proba(X),
                               moved.predict_proba(X))  # fmt: skip
    assert moved.estimator_ is rule.estimator_ and rule.priors is None
    np.testing.assert_allclose(clone(moved).fit(X, y).predict_proba(X), moved.predict_proba(X))
    np.testing.assert_allclose(moved.with_priors(rule.priors_).predict_proba(X), rule.predict_proba(X))


def test_training_priors_are_those_the_posteriors_refer_to():
    X, y = CANCER
    shares = np.bincount(y) / len(y)
    for estimator, expected in [
        (LogisticRegression(), shares),
        (LogisticRegression(class_weight="balanced"), [0.5, 0.5]),
        (LogisticRegression(class_weight={0: 3.0}), shares * [3, 1] / (shares @ [3, 1])),
        (LinearDiscriminantAnalysis(priors=[0.2, 0.8]), [0.2, 0.8]),
        (make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(priors=[0.2, 0.8])), [0.2, 0.8]),
        (GaussianNB(priors=[0.9, 0.1]), [0.9, 0.1]),
        (GridSearchCV(MultinomialNB(fit_prior=False), {"alpha": [1.0]}, cv=2), [0.5, 0.5]),
        (FeatureMap(StandardScaler(), LinearDiscriminantAnalysis(priors=[0.2, 0.8])), [0.2, 0.8]),
    ]:
        np.testing.assert_allclose(BayesRule(estimator).fit(X, y).training_priors_, expected)
    calibrated = BayesRule(LinearDiscriminantAnalysis(priors=[0.2, 0.8]), calibration="sigmoid").fit(X, y)
    np.testing.assert_allclose(calibrated.training_priors_, shares)


def test_shift_composes_and_survives_impossible_rows():
    proba, a, b = posteriors(50, 3), [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]
    once = shift_priors(proba, b, training_priors=a)
    np.testing.assert_allclose(shift_priors(once, a, training_priors=b), proba, atol=1e-12)
    np.testing.assert_allclose(once.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shift_priors([[1.0, 0.0]], [0.0, 1.0], training_priors=[0.5, 0.5]), [[0.0, 1.0]])
    with pytest.raises(ValueError, match="prior 0 in training"):
        shift_priors([[1.0, 0.0]], [0.5, 0.5], training_priors=[1.0, 0.0])


def gaussian_rows(priors, n, seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=priors)
    return rng.standard_normal((n, 2)) + np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[y], y


def test_em_recovers_known_priors_within_its_error():
    truth = separatrix.GaussianClasses([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], np.eye(2))
    new = np.array([0.1, 0.6, 0.3])
    z = []
    for seed in range(8):
        X, _ = gaussian_rows(new, 3000, seed)
        found = estimate_priors(truth.predict_proba(X), training_priors=truth.priors_)
        z.append((found.priors - new) / found.standard_error)
        assert found.gap <= 1e-9 and found.priors.sum() == pytest.approx(1.0)
    assert np.abs(z).max() < 3.5 and 0.5 < np.std(z) < 1.6
    X, y = gaussian_rows([1 / 3] * 3, 5000, 100)
    shifted, labels = gaussian_rows(new, 5000, 101)
    rule = BayesRule(LinearDiscriminantAnalysis()).fit(X, y)
    estimate = rule.estimate_priors(shifted)
    np.testing.assert_allclose(estimate.priors, new, atol=0.03)
    moved = rule.with_priors(estimate.priors)
    assert moved.score(shifted, labels) > rule.score(shifted, labels) + 0.02


def test_em_climbs_to_the_maximum_of_the_likelihood():
    from scipy.optimize import minimize_scalar

    proba, trained = posteriors(300, 2, seed=4), np.array([0.3, 0.7])
    found = estimate_priors(proba, training_priors=trained, tol=1e-12)

    def minus_likelihood(pi):
        return -np.log(proba[:, 0] / trained[0] * pi + proba[:, 1] / trained[1] * (1 - pi)).sum()

    best = minimize_scalar(minus_likelihood, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    assert found.priors[0] == pytest.approx(best.x, abs=1e-6)
    step = 1e-4
    curvature = (
        minus_likelihood(best.x + step) - 2 * minus_likelihood(best.x) + minus_likelihood(best.x - step)
    ) / step**2
    assert found.standard_error[0] == pytest.approx(curvature**-0.5, rel=1e-4)
    early = estimate_priors(proba, training_priors=trained, tol=1e-2)
    assert minus_likelihood(early.priors[0]) - best.fun <= 300 * early.gap


def test_em_weights_are_repetitions_and_its_limit_warns():
    proba = posteriors(60, 3)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    weighted = estimate_priors(proba, training_priors=[0.2, 0.3, 0.5], sample_weight=weights)
    repeated = estimate_priors(np.repeat(proba, weights, axis=0), training_priors=[0.2, 0.3, 0.5])
    np.testing.assert_allclose(weighted.priors, repeated.priors, rtol=1e-10)
    np.testing.assert_allclose(weighted.standard_error, repeated.standard_error, rtol=1e-8)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        estimate_priors(proba, training_priors=[0.2, 0.3, 0.5], max_iter=2)
    assert np.isnan(estimate_priors(np.full((5, 2), 0.5), training_priors=[0.5, 0.5]).standard_error).all()


# -- calibration ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "temperature"])
def test_calibration_is_scikit_learns_out_of_fold(calibration):
    X, y = CANCER
    rule = BayesRule(GaussianNB(), calibration=calibration, cv=StratifiedKFold(3)).fit(X, y)
    reference = CalibratedClassifierCV(GaussianNB(), method=calibration, cv=StratifiedKFold(3)).fit(X, y)
    np.testing.assert_array_equal(rule.predict_proba(X), reference.predict_proba(X))


def test_calibration_gives_probabilities_to_a_scorer_and_betters_naive_bayes():
    X, y = CANCER
    train, test = np.arange(0, len(y), 2), np.arange(1, len(y), 2)
    machine = BayesRule(LinearSVC(), [[0, 10], [1, 0]], calibration="sigmoid").fit(X[train], y[train])
    assert machine.predict(X[test]).shape == test.shape
    plain = BayesRule(GaussianNB()).fit(X[train], y[train])
    better = BayesRule(GaussianNB(), calibration="isotonic").fit(X[train], y[train])
    errors = [expected_calibration_error(y[test], rule.predict_proba(X[test])) for rule in (plain, better)]
    assert errors[1] < 0.75 * errors[0]


def test_reliability_against_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = rng.random(400) < p**2
    ours = reliability_diagram(y, p, n_bins=7)
    observed, predicted = calibration_curve(y, p, n_bins=7)
    np.testing.assert_allclose(ours.observed, observed)
    np.testing.assert_allclose(ours.predicted, predicted)
    assert ours.counts.sum() == 400
    for k in range(7):
        happened, n = round(observed[k] * ours.counts[k]), int(ours.counts[k])
        interval = stats.binomtest(happened, n).proportion_ci(method="wilson")
        assert ours.lower[k] <= interval.low + 1e-12 and ours.upper[k] >= interval.high - 1e-12
        if 3 < happened < n - 3:  # what is rarer has a longer interval, whose coverage test_risk counts
            assert (ours.lower[k], ours.upper[k]) == pytest.approx((interval.low, interval.high))
    equal = reliability_diagram(y, p, n_bins=8, strategy="quantile")
    np.testing.assert_array_equal(equal.counts, 50)
    assert ((equal.predicted > equal.left) & (equal.predicted <= equal.right)).all()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_weights_are_repetitions(strategy):
    rng = np.random.default_rng(1)
    p, y, w = rng.random(80), rng.integers(0, 2, 80), rng.integers(0, 4, 80)
    weighted = reliability_diagram(y, p, strategy=strategy, n_bins=6, sample_weight=w)
    repeated = reliability_diagram(np.repeat(y, w), np.repeat(p, w), strategy=strategy, n_bins=6)
    for name in ("predicted", "observed", "lower", "upper", "counts", "left", "right"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-12, atol=1e-14)


def test_calibration_error_by_hand_and_in_its_kinds():
    y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.2, 0.9])
    two = np.column_stack([1 - p, p])
    by_hand = 0.75 * abs(1 / 3 - 0.5 / 3) + 0.25 * abs(1 - 0.9)
    assert expected_calibration_error(y, two, n_bins=2) == pytest.approx(by_hand)
    assert expected_calibration_error(y, two, n_bins=2, kind="classwise") == pytest.approx(by_hand)
    proba = posteriors(300, 3)
    rng = np.random.default_rng(5)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    top = expected_calibration_error(labels, proba)
    confidence, right = proba.max(axis=1), labels == proba.argmax(axis=1)
    places = np.ceil(confidence * 10).astype(int)
    expected = sum(abs((right - confidence)[places == b].sum()) for b in range(11)) / 300
    assert top == pytest.approx(expected)
    classwise = expected_calibration_error(labels, proba, kind="classwise")
    each = [reliability_diagram(labels, proba, pos_label=k).error for k in range(3)]
    assert classwise == pytest.approx(np.mean(each)) and top < 0.1 and classwise < 0.1
    overconfident = np.eye(3)[proba.argmax(axis=1)]
    assert expected_calibration_error(labels, overconfident) == pytest.approx(1 - right.mean())


def test_calibrated_probabilities_stay_inside_their_intervals():
    rng = np.random.default_rng(6)
    p = rng.random(20_000)
    points = reliability_diagram(rng.random(20_000) < p, p, n_bins=20, level=0.999)
    assert ((points.lower <= points.predicted) & (points.predicted <= points.upper)).all()


# -- posterior summaries ----------------------------------------------------------------------------------------------


def test_summaries_are_mean_median_and_quantile():
    draws = np.random.default_rng(0).standard_normal((7, 100)) ** 3
    np.testing.assert_allclose(posterior_summary(draws), draws.mean(axis=1))
    np.testing.assert_array_equal(posterior_summary(draws, "absolute"), np.median(draws, axis=1))
    np.testing.assert_array_equal(posterior_summary(draws[:, :99], "absolute"), np.median(draws[:, :99], axis=1))
    for q in (0.05, 0.25, 0.331, 0.9):
        reference = np.quantile(draws, q, axis=1, method="averaged_inverted_cdf")
        np.testing.assert_allclose(posterior_summary(draws, ("pinball", q)), reference)


@given(
    arrays(np.float64, (1, 9), elements=st.integers(-5, 5).map(float)),
    arrays(np.int64, (9,), elements=st.integers(0, 3)).filter(lambda w: w.any()),
    st.sampled_from([0.1, 0.25, 0.5, 0.8]),
)
@settings(max_examples=100)
def test_summaries_minimise_the_loss_and_weights_are_repetitions(draws, weights, q):
    repeated = np.repeat(draws, weights, axis=1)
    for loss in ("squared", "absolute", ("pinball", q)):
        found = posterior_summary(draws, loss, weights=weights)
        np.testing.assert_allclose(found, posterior_summary(repeated, loss), atol=1e-12)
    quantile = posterior_summary(draws, ("pinball", q), weights=weights)[0]
    values = repeated[0]
    losses = [
        mean_pinball_loss(values, np.full(values.shape, a), alpha=q) for a in np.append(np.unique(values), quantile)
    ]
    assert losses[-1] == pytest.approx(min(losses), abs=1e-12)


def test_gaussian_summaries():
    mean, std = np.array([0.0, 3.0]), np.array([1.0, 0.5])
    for loss in ("squared", "absolute"):
        np.testing.assert_array_equal(posterior_summary((mean, std), loss), mean)
    np.testing.assert_allclose(posterior_summary((mean, std), ("pinball", 0.9)), stats.norm(mean, std).ppf(0.9))
    per_row = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    assert posterior_summary([[1.0, 2.0, 3.0]] * 2, "absolute", weights=per_row).tolist() == [1.0, 3.0]


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"loss": np.zeros((2, 3))}, r"shape \(2, 3\), but there are 3 classes"),
        ({"loss": np.zeros((3, 2))}, "name the columns with actions"),
        ({"loss": np.zeros(3)}, "one row per class"),
        ({"loss": np.zeros((3, 2)), "actions": ["a"]}, "1 actions are named"),
        ({"loss": np.zeros((3, 2)), "actions": ["a", "a"]}, "named twice"),
        ({"loss": [[0, 1, 1], [1, np.nan, 1], [1, 1, 0]]}, "action 1 when the truth is 1 is nan"),
        ({"loss": [[0, 1, 1], [1, 0, np.inf], [1, 1, 0]]}, "action 2 when the truth is 1 is inf"),
        ({"loss": "hinge"}, "loss"),
        ({"actions": ["yes", "no"]}, "every action is a class"),
        ({"reject_below": 1.5}, "reject_below"),
        ({"reject_cost": 0.1, "reject_action": 2}, "also the name of an action"),
        ({"priors": [0.5, 0.5]}, "one prior per class"),
        ({"priors": [0.5, 0.6, 0.1]}, "sum to 1"),
        ({"calibration": "platt"}, "calibration"),
    ],
)
def test_parameters_that_are_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        BayesRule(GaussianNB(), **parameters).fit(*IRIS)


def test_a_refused_fit_leaves_no_half_a_rule():
    rule = BayesRule(GaussianNB(), [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="3 classes"):
        rule.fit(*IRIS)
    with pytest.raises(NotFittedError):
        rule.predict(IRIS[0])
    with pytest.raises(ValueError, match="leave out y"):
        BayesRule(GaussianNB()).fit(as_source(*IRIS), IRIS[1])


def test_a_transposed_loss_is_noticed():
    with pytest.warns(UserWarning, match=r"truth is class 1 the correct action costs 5 .* action 0 only 1.*transposed"):
        BayesRule(GaussianNB(), [[0, 1], [1, 5]]).fit(*CANCER)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesRule(GaussianNB(), [[0, 1], [1, 5]], actions=["a", "b"]).fit(*CANCER)  # no action is called correct


def test_an_estimator_without_probabilities():
    with pytest.raises(
        TypeError, match=r"LinearSVC gives no probabilities.*calibration='sigmoid'.*CalibratedClassifierCV"
    ):
        BayesRule(LinearSVC()).fit(*CANCER)


def test_bad_probabilities_and_costs():
    rule = rule_on(np.eye(2))
    with pytest.raises(ValueError, match=r"row 1.*not scores"):
        rule.predict([[0.5, 0.5], [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"give \(2, 2, 2\).*\(2, 2\)"):
        rule.predict(np.eye(2), costs=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="NaN or infinity in 1 rows"):
        rule.predict(np.eye(2), costs=[[0.0, np.nan], [0.0, 0.0]])
    with pytest.raises(ValueError, match="y is None"):
        rule.fit(np.eye(2))


def test_bad_thresholds_and_summaries():
    with pytest.raises(ValueError, match="truth is class 1 the correct action costs 3"):
        threshold_for([[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="truth is class 0"):
        threshold_for([[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="decision_regions"):
        threshold_for(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        threshold_for([[0, np.nan], [1, 0]])
    for bad, words in [
        ((np.zeros(3),), "mean, std"),
        (([0.0], [-1.0]), "not negative"),
        (np.zeros(3), "n_samples, n_draws"),
        (np.full((2, 2), np.nan), "in 2 rows"),
    ]:
        with pytest.raises(ValueError, match=words):
            posterior_summary(bad)
    with pytest.raises(ValueError, match="0 < q < 1"):
        posterior_summary(np.zeros((1, 2)), ("pinball", 1.0))
    with pytest.raises(ValueError, match="all zero"):
        posterior_summary(np.zeros((1, 2)), weights=[0.0, 0.0])
    with pytest.raises(ValueError, match="belong to draws"):
        posterior_summary(([0.0], [1.0]), weights=[1.0])
    with pytest.raises(ValueError, match="one per draw"):
        posterior_summary(np.zeros((1, 2)), weights=[1.0])


def test_bad_reliability():
    with pytest.raises(ValueError, match="classes="):
        reliability_diagram([0, 0], [0.1, 0.2])
    assert reliability_diagram([0, 0], [0.1, 0.2], classes=[0, 1]).observed.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="not one of the classes"):
        reliability_diagram([0, 1], [0.1, 0.2], pos_label=7)
    with pytest.raises(ValueError, match="'uniform' or 'quantile'"):
        reliability_diagram([0, 1], [0.1, 0.2], strategy="equal")
    with pytest.raises(ValueError, match="'confidence' or 'classwise'"):
        expected_calibration_error([0, 1], [0.1, 0.2], kind="top")
