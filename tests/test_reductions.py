"""K classes by binary machines: scikit-learn's answers, the regions they leave open, and one pass for all machines."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sklearn_linear
import sklearn.multiclass as peers
import sklearn.naive_bayes as sklearn_bayes
from estimators import REGISTRY, named
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from separatrix import (
    FeatureMap,
    FisherDiscriminant,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LinearRegression,
    LogisticRegression,
    MixedNB,
    OneVsOneClassifier,
    OneVsRestClassifier,
    RegularizedDiscriminantAnalysis,
    RidgeClassifier,
    as_source,
    scan_parquet,
)

WINE = load_wine(return_X_y=True)
Z = StandardScaler().fit_transform(WINE[0])
Y = WINE[1]
SCHEMES = [
    lambda base, **more: OneVsRestClassifier(base, **more),
    lambda base, **more: OneVsRestClassifier(base, machines="K-1", **more),
    lambda base, **more: OneVsOneClassifier(base, **more),
]
NAMES = ["rest", "rest without the last", "one"]
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=NAMES)


# -- scikit-learn's answers -------------------------------------------------------------------------------------------

BASES = [
    sklearn_linear.LogisticRegression(),
    LinearSVC(),
    SVC(),
    sklearn_bayes.GaussianNB(),  # no decision_function
    DecisionTreeClassifier(max_depth=2, random_state=0),  # neither, and many equal scores
    LinearDiscriminantAnalysis(),
    RidgeClassifier(),
    GaussianNB(),
    LogisticRegression(),
]


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("base", BASES, ids=repr)
def test_the_answers_are_those_of_scikit_learn(base, classes):
    X, y = make_classification(
        240, 6, n_informative=4, n_classes=classes, n_clusters_per_class=1, class_sep=0.6, random_state=classes
    )
    y = np.array(["ash", "beech", "cedar", "date", "elm"])[y]
    pairs = [
        (OneVsRestClassifier(base).fit(X, y), peers.OneVsRestClassifier(base).fit(X, y)),
        (OneVsOneClassifier(base).fit(X, y), peers.OneVsOneClassifier(base).fit(X, y)),
    ]
    grid = np.vstack([X, np.random.default_rng(0).normal(size=(200, 6))])
    for mine, theirs in pairs:
        np.testing.assert_array_equal(mine.predict(grid), theirs.predict(grid))
        np.testing.assert_array_equal(mine.classes_, theirs.classes_)
        assert len(mine.estimators_) == len(theirs.estimators_) and mine.n_classes_ == classes
        if hasattr(base, "decision_function"):
            np.testing.assert_allclose(
                mine.decision_function(grid), theirs.decision_function(grid), rtol=1e-8, atol=1e-8
            )
        elif classes > 2 and hasattr(theirs, "decision_function"):
            np.testing.assert_allclose(mine.decision_function(grid), theirs.decision_function(grid), rtol=1e-12)
    if hasattr(base, "predict_proba"):
        np.testing.assert_allclose(pairs[0][0].predict_proba(grid), pairs[0][1].predict_proba(grid), atol=1e-9)
    else:
        assert not hasattr(pairs[0][0], "predict_proba")


def test_precomputed_kernels_are_cut_with_the_rows():
    X, y = load_iris(return_X_y=True)
    K = X @ X.T
    for mine, theirs in [
        (OneVsOneClassifier, peers.OneVsOneClassifier),
        (OneVsRestClassifier, peers.OneVsRestClassifier),
    ]:
        base = SVC(kernel="precomputed")
        ours, other = mine(base).fit(K, y), theirs(base).fit(K, y)
        np.testing.assert_allclose(ours.decision_function(K), other.decision_function(K))


# -- what the schemes leave open --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane():
    """Three classes around the origin of the plane, and a fine grid."""
    X, y = make_blobs(
        [150, 100, 50], centers=[[0, 2], [-1.8, -1], [1.8, -1]], cluster_std=[1.5, 0.75, 1.8], random_state=3
    )
    axis = np.linspace(-6, 6, 241)
    return X, y, np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize("base", [LinearDiscriminantAnalysis(), LogisticRegression(), LinearSVC()], ids=repr)
def test_three_classes_in_the_plane_have_points_in_every_open_region(plane, base):
    X, y, grid = plane
    rest = OneVsRestClassifier(base).fit(X, y)
    claims = np.column_stack([machine.decision_function(grid) for machine in rest.estimators_]) > 0
    open_ = rest.indeterminate(grid)
    # Each of the three pairs claims some point together, and some point is claimed by none.
    assert all((claims == pattern).all(axis=1).any() for pattern in ([1, 1, 0], [1, 0, 1], [0, 1, 1]))
    assert open_.counts == {
        "none claims": int((claims.sum(axis=1) == 0).sum()),
        "several claim": int((claims.sum(axis=1) > 1).sum()),
    }
    assert min(open_.counts.values()) > 0
    np.testing.assert_array_equal(open_.mask, claims.sum(axis=1) != 1)
    np.testing.assert_array_equal(open_.reason == "", ~open_.mask)

    fewer = OneVsRestClassifier(base, machines="K-1").fit(X, y)
    assert len(fewer.estimators_) == 2
    open_ = fewer.indeterminate(grid)
    both = claims[:, :2].all(axis=1)
    np.testing.assert_array_equal(open_.mask, both)
    assert open_.counts == {"several claim": int(both.sum())} and both.any()
    nobody = ~claims[:, :2].any(axis=1)
    assert (fewer.predict(grid)[nobody] == 2).all() and (fewer.predict(grid)[~nobody] < 2).all()

    one = OneVsOneClassifier(base).fit(X, y)
    assert one.pairs_ == [(0, 1), (0, 2), (1, 2)]
    winners = np.column_stack(
        [
            np.where(machine.predict(grid) == 1, b, a)
            for machine, (a, b) in zip(one.estimators_, one.pairs_, strict=True)
        ]
    )
    cycle = np.array([len(set(row)) == 3 for row in winners])
    open_ = one.indeterminate(grid)
    np.testing.assert_array_equal(open_.mask, cycle)
    assert open_.counts == {"votes tie": int(cycle.sum())} and cycle.any()
    # Three lines that do not meet in a point leave a triangle, and that is where.
    corners = corners_of(one)
    inside = np.linalg.solve(np.vstack([corners.T, np.ones(3)]), np.vstack([grid.T, np.ones(len(grid))])).T
    sure = np.abs(inside).min(axis=1) > 1e-9
    np.testing.assert_array_equal(cycle[sure], (inside > 0).all(axis=1)[sure])
    for scheme, resolved in [(rest, "largest score"), (fewer, "largest score"), (one, "largest sum of confidences")]:
        open_ = scheme.indeterminate(grid)
        np.testing.assert_array_equal(open_.prediction, scheme.predict(grid))
        assert resolved in open_.resolution and f"{open_.mask.sum()} of {len(grid)} rows" in str(open_)
    # The direct rule has a largest score everywhere: no region is open.
    if not isinstance(base, LinearSVC):
        scores = np.sort(clone(base).fit(X, y).decision_function(grid), axis=1)
        assert (scores[:, -1] > scores[:, -2]).all()


def corners_of(one):
    """The three points where two of the three lines of one-against-one meet."""
    lines = [np.append(np.ravel(m.coef_), np.ravel(m.intercept_)) for m in one.estimators_]
    return np.array([np.linalg.solve([a[:2], b[:2]], [-a[2], -b[2]]) for a, b in combinations(lines, 2)])


def test_ties_of_votes_go_to_the_larger_sum_of_confidences(plane):
    X, y, grid = plane
    one = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    tied = grid[one.indeterminate(grid).mask]
    f01, f02, f12 = (machine.decision_function(tied) for machine in one.estimators_)
    sums = np.column_stack([-f01 - f02, f01 - f12, f02 + f12])
    np.testing.assert_array_equal(one.predict(tied), sums.argmax(axis=1))
    assert len(set(one.predict(tied))) > 1


def test_two_classes_leave_nothing_open():
    X, y = load_iris(return_X_y=True)
    for scheme in SCHEMES:
        model = scheme(LinearDiscriminantAnalysis()).fit(X[y > 0], y[y > 0])
        plain = LinearDiscriminantAnalysis().fit(X[y > 0], y[y > 0])
        assert len(model.estimators_) == 1 and not model.indeterminate(X).mask.any()
        assert str(model.indeterminate(X)) == "None of 150 rows is indeterminate."
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        assert model.decision_function(X).shape == (150,)


def test_a_score_of_zero_claims_nothing():
    """With K−1 machines a row on the edge of the only region that could claim it is the last class's."""

    class Half(sklearn_bayes.GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    model = OneVsRestClassifier(Half(), machines="K-1").fit(Z, Y)
    assert (model.predict(Z) == 2).all()
    assert OneVsRestClassifier(Half()).fit(Z, Y).indeterminate(Z).counts == {"none claims": len(Z)}


def test_probabilities_of_the_last_class_are_deduced():
    model = OneVsRestClassifier(LogisticRegression(), machines="K-1").fit(Z, Y)
    p = np.column_stack([machine.predict_proba(Z)[:, 1] for machine in model.estimators_])
    alone = np.column_stack([p[:, 0] * (1 - p[:, 1]), p[:, 1] * (1 - p[:, 0]), (1 - p).prod(axis=1)])
    np.testing.assert_allclose(model.predict_proba(Z), alone / alone.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_array_equal(model.predict_proba(Z).argmax(axis=1), model.predict(Z))


@pytest.mark.parametrize("machines", ["K", "K-1"])
def test_machines_that_are_sure_still_give_probabilities(machines):
    class Sure(sklearn_bayes.GaussianNB):
        def predict_proba(self, X):
            return np.tile([1.0 - self.answer, self.answer], (len(X), 1))

    for answer in (0.0, 1.0):
        Sure.answer = answer
        p = OneVsRestClassifier(Sure(), machines=machines).fit(Z, Y).predict_proba(Z)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)


# -- one pass for all machines ----------------------------------------------------------------------------------------

COUNTS = np.random.default_rng(1).poisson(2.0 * (1 + (np.arange(6) % 3 == Y[:, None])), (len(Y), 6)).astype(float)
BASES_OF_ONE_PASS = named(
    "lda",
    "lda unbiased",
    "lda lsqr, shrunk",
    "lda eigen, oas",
    "qda, shrunk",
    "qda",
    "rda",
    "rda, oas",
    "gaussian",
    "gaussian shared",
    "multinomial",
    "complement",
    "bernoulli above 2",
    "categorical",
    "ridge classifier",
    "ridge classifier without either",
    "ridge classifier, balanced",
    "ridge classifier, small norm",
) | {"lda, priors": LinearDiscriminantAnalysis(priors=[0.3, 0.7])}


def rows_for(name):
    if name == "qda":
        return Z[:, :5]
    return COUNTS if REGISTRY[name].family == "naive_bayes" and "gaussian" not in name else Z


ONE_PASS = [(base, rows_for("lda" if name == "lda, priors" else name)) for name, base in BASES_OF_ONE_PASS.items()]
IDS = [repr(base) for base, _ in ONE_PASS]


def separate(model, base, X, y, w=None):
    """Every machine fitted by itself on the rows of its own problem."""
    labels = model.classes_
    if isinstance(model, OneVsOneClassifier):
        jobs = [(np.isin(y, pair), y == pair[1]) for pair in model.pairs_]
    else:
        jobs = [(np.ones(len(y), dtype=bool), y == label) for label in labels[: len(model.estimators_)]]
    return [
        clone(base).fit(X[rows], target[rows].astype(int), **({} if w is None else {"sample_weight": w[rows]}))
        for rows, target in jobs
    ]


def scores_of(machine, X):
    return machine.decision_function(X) if hasattr(machine, "decision_function") else machine.predict_log_proba(X)


@every_scheme
@pytest.mark.parametrize(("base", "X"), ONE_PASS, ids=IDS)
def test_one_pass_is_enough_and_equals_separate_fits(base, X, scheme):
    w = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    for weights in (None, w):
        model = scheme(base).fit(X, Y, sample_weight=weights)
        assert model.passes_ == 1
        for mine, alone in zip(model.estimators_, separate(model, base, X, Y, weights), strict=True):
            expected = scores_of(alone, X)
            np.testing.assert_allclose(scores_of(mine, X), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
            assert mine.classes_.tolist() == [0, 1] and mine.n_features_in_ == X.shape[1]
            assert mine.fit_.status == alone.fit_.status and mine.fit_.passes == 0
            if alone.fit_.certificate is not None:
                assert mine.fit_.certificate is not None


@every_scheme
def test_one_pass_of_any_storage(scheme, tmp_path):
    base = LinearDiscriminantAnalysis()
    expected = scheme(base).fit(Z, Y).decision_function(Z)
    frame = pd.DataFrame(Z, columns=[f"x{j}" for j in range(Z.shape[1])])
    frame.assign(kind=Y).to_parquet(tmp_path / "wine.parquet")
    for data, names in [
        ((sp.csr_array(Z), Y), False),
        ((frame, Y), True),
        ((as_source(Z, Y),), False),
        ((scan_parquet(tmp_path / "wine.parquet", target="kind"),), True),
    ]:
        model = scheme(base).fit(*data)
        np.testing.assert_allclose(model.decision_function(data[0]), expected, rtol=1e-8, atol=1e-9)
        assert model.passes_ == 1 + isinstance(data[0], type(scan_parquet(tmp_path / "wine.parquet")))  # labels first
        assert hasattr(model, "feature_names_in_") == names


@every_scheme
def test_wide_data_and_far_from_the_origin(scheme):
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(60, 200)) + 3.0 * np.eye(3, 200)[np.arange(60) % 3] + 1e6
    y = np.arange(60) % 3
    for base in (RidgeClassifier(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5)):
        model = scheme(base).fit(wide, y)
        assert model.passes_ == 1
        for mine, alone in zip(model.estimators_, separate(model, base, wide, y), strict=True):
            np.testing.assert_allclose(mine.coef_, alone.coef_, rtol=1e-6, atol=1e-9 * np.abs(alone.coef_).max())
    single = scheme(LinearDiscriminantAnalysis()).fit(Z.astype(np.float32), Y)
    assert single.estimators_[0].coef_.dtype == np.float32


@every_scheme
def test_a_column_that_is_constant_in_some_classes(scheme):
    X = np.column_stack([Z[:, :3], np.where(Y == 2, Z[:, 3], 0.1), np.full(len(Y), 0.3)])
    for base in (LinearDiscriminantAnalysis(), RidgeClassifier(alpha=0.0), GaussianNB()):
        model = scheme(base).fit(X, Y)
        for mine, alone in zip(model.estimators_, separate(model, base, X, Y), strict=True):
            np.testing.assert_allclose(mine.decision_function(X), alone.decision_function(X), rtol=1e-8, atol=1e-8)
            assert mine.fit_.status == alone.fit_.status


@every_scheme
@pytest.mark.parametrize(
    "base",
    [
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),  # reads the rows twice
        RegularizedDiscriminantAnalysis("loo", "loo"),
        RidgeClassifier(solver="cg"),
        FeatureMap(StandardScaler(), LinearDiscriminantAnalysis()),
        MixedNB(),  # chooses families by the rows of each problem
        LogisticRegression(),
    ],
    ids=repr,
)
def test_models_that_need_more_fit_machine_by_machine(base, scheme):
    model = scheme(base).fit(Z, Y)
    alone = separate(model, base, Z, Y)
    assert model.passes_ == sum(machine.fit_.passes for machine in alone)
    for mine, other in zip(model.estimators_, alone, strict=True):
        np.testing.assert_array_equal(scores_of(mine, Z), scores_of(other, Z))


def test_a_subclass_that_fits_in_its_own_way_is_asked_to():
    class Loud(LinearDiscriminantAnalysis):
        def fit(self, X, y=None, sample_weight=None):
            self.heard_ = len(y)
            return super().fit(X, y, sample_weight)

    model = OneVsOneClassifier(Loud()).fit(Z, Y)
    assert [machine.heard_ for machine in model.estimators_] == [130, 107, 119]


@every_scheme
def test_sources_for_models_that_iterate(scheme):
    base = LogisticRegression(tol=1e-10)
    w = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    arrays = scheme(base).fit(Z, Y, sample_weight=w)
    streamed = scheme(base).fit(as_source(Z, Y, w))
    np.testing.assert_allclose(streamed.decision_function(as_source(Z)), arrays.decision_function(Z), atol=1e-4)
    assert streamed.n_features_in_ == Z.shape[1]


@every_scheme
@pytest.mark.parametrize("base", [LinearDiscriminantAnalysis(), LogisticRegression()], ids=repr)
def test_threads_give_the_same_answer(base, scheme):
    one, two = scheme(base).fit(Z, Y), scheme(base, n_jobs=2).fit(Z, Y)
    np.testing.assert_array_equal(one.decision_function(Z), two.decision_function(Z))


# -- conventions ------------------------------------------------------------------------------------------------------


@every_scheme
@pytest.mark.parametrize("base", [RidgeClassifier(), LogisticRegression(tol=1e-12)], ids=repr)
def test_weights_are_repetitions_and_order_is_nothing(base, scheme):
    rng = np.random.default_rng(0)
    w = rng.integers(0, 3, len(Y))
    weighted = scheme(base).fit(Z, Y, sample_weight=w)
    rows = rng.permutation(np.repeat(np.arange(len(Y)), w))
    repeated = scheme(base).fit(Z[rows], Y[rows])
    np.testing.assert_allclose(weighted.decision_function(Z), repeated.decision_function(Z), rtol=1e-5, atol=1e-5)


@every_scheme
@pytest.mark.parametrize("base", [LinearDiscriminantAnalysis(), sklearn_bayes.GaussianNB()], ids=repr)
def test_a_class_of_weight_zero_has_a_place_and_no_rows(base, scheme):
    model = scheme(base).fit(Z, Y, sample_weight=(Y != 1).astype(float))
    plain = scheme(base).fit(Z[Y != 1], Y[Y != 1])
    assert model.classes_.tolist() == [0, 1, 2] and plain.classes_.tolist() == [0, 2]
    scores, own = model.decision_function(Z), plain.decision_function(Z)
    assert np.isneginf(scores[:, 1]).all()
    np.testing.assert_allclose(scores[:, [0, 2]], np.column_stack([-own, own]), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(Z), plain.predict(Z))


@every_scheme
def test_pipelines_searches_clones_and_pickles(scheme):
    pipeline = make_pipeline(StandardScaler(), scheme(RidgeClassifier()))
    step = pipeline.steps[1][0]
    search = GridSearchCV(pipeline, {f"{step}__estimator__alpha": [0.1, 1e4]}, cv=3).fit(*WINE)
    assert search.best_params_ == {f"{step}__estimator__alpha": 0.1} and search.best_score_ > 0.9
    inner = scheme(make_pipeline(StandardScaler(), LogisticRegression())).fit(*WINE)
    assert inner.score(*WINE) > 0.97 and inner.passes_ is None
    model = scheme(LinearDiscriminantAnalysis()).fit(Z, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(Z), model.decision_function(Z))
    assert repr(clone(model)) == repr(scheme(LinearDiscriminantAnalysis()))
    assert not hasattr(clone(model), "estimators_")


@every_scheme
@pytest.mark.parametrize("base", [LinearDiscriminantAnalysis(), sklearn_linear.LogisticRegression()], ids=repr)
def test_weights_are_routed_to_the_machines(base, scheme):
    w = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    expected = scheme(base).fit(Z, Y, sample_weight=w).decision_function(Z)
    with config_context(enable_metadata_routing=True):
        asking = clone(base).set_fit_request(sample_weight=True)
        np.testing.assert_array_equal(scheme(asking).fit(Z, Y, sample_weight=w).decision_function(Z), expected)
        routed = make_pipeline(scheme(asking)).fit(Z, Y, sample_weight=w)
        np.testing.assert_array_equal(routed.decision_function(Z), expected)
        scored = cross_validate(
            scheme(asking).set_score_request(sample_weight=True), Z, Y, params={"sample_weight": w}, error_score="raise"
        )
        assert scored["test_score"].mean() > 0.9
        with pytest.raises(TypeError, match="not routed to any object"):
            scheme(clone(base).set_fit_request(sample_weight=False)).fit(Z, Y, sample_weight=w)
        with pytest.raises(ValueError, match="sample_weight"):
            scheme(base).fit(Z, Y, sample_weight=w)
        through = scheme(make_pipeline(StandardScaler().set_fit_request(sample_weight=True), asking))
        assert through.fit(Z, Y, sample_weight=w).score(Z, Y) > 0.9


def test_other_arguments_of_fit_are_cut_with_the_rows():
    class Curious(sklearn_bayes.GaussianNB):
        def fit(self, X, y, seen=None, flag=None):
            self.seen_, self.flag_ = seen, flag
            return super().fit(X, y)

    model = OneVsOneClassifier(Curious()).fit(Z, Y, seen=np.arange(len(Y)), flag="yes")
    np.testing.assert_array_equal(model.estimators_[0].seen_, np.flatnonzero(Y < 2))
    assert model.estimators_[0].flag_ == "yes"


@pytest.mark.parametrize("machines", ["K", "K-1"])
@pytest.mark.parametrize("base", [LinearDiscriminantAnalysis(), sklearn_linear.RidgeClassifier()], ids=repr)
def test_linear_machines_make_a_linear_rule(base, machines):
    for kept in (Y >= 0, Y != 1):
        model = OneVsRestClassifier(base, machines=machines).fit(Z[kept], Y[kept])
        W, b = model.linear_form()
        np.testing.assert_allclose((Z @ W.T + b).squeeze(), model.decision_function(Z).squeeze(), rtol=1e-8, atol=1e-8)
        for machine, distances in zip(model.estimators_, model.signed_distance(Z).reshape(len(Z), -1).T, strict=True):
            expected = machine.decision_function(Z) / np.linalg.norm(machine.coef_)
            np.testing.assert_allclose(distances, expected, rtol=1e-10)
        side = model.boundary(2, 0)(Z) > 0
        two = np.isin(model.predict(Z), [0, 2])
        np.testing.assert_array_equal(side[two], model.predict(Z)[two] == 2)
    assert not hasattr(OneVsRestClassifier(SVC()).fit(Z, Y), "boundary")
    assert not hasattr(OneVsRestClassifier(base), "linear_form")
    with pytest.raises(ValueError, match="Name the two classes"):
        OneVsRestClassifier(base).fit(Z, Y).boundary()


@every_scheme
def test_bad_input_is_refused_in_sentences(scheme):
    model = scheme(LinearDiscriminantAnalysis())
    for apart in (model, scheme(sklearn_linear.LogisticRegression())):
        with pytest.raises(ValueError, match="requires y to be passed"):
            clone(apart).fit(Z)
        with pytest.raises(ValueError, match="only one class"):
            clone(apart).fit(Z, np.zeros(len(Y)))
        with pytest.raises(ValueError, match="Unknown label type"):
            clone(apart).fit(Z, Z[:, 0])
        with pytest.raises(ValueError, match="1d array"):
            clone(apart).fit(Z, np.eye(3)[Y])
        with pytest.raises(ValueError, match="sample_weight is negative in 178 rows"):
            clone(apart).fit(Z, Y, sample_weight=-np.ones(len(Y)))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            clone(apart).fit(Z, Y[:-1])
        with pytest.raises(NotFittedError):
            clone(apart).predict(Z)
        with pytest.raises(NotFittedError):
            clone(apart).indeterminate(Z)
    with pytest.raises(ValueError, match="column 3 has 1 such row"):
        model.fit(np.where((np.arange(len(Z))[:, None] == 5) & (np.arange(13) == 3), np.nan, Z), Y)
    fitted = scheme(LogisticRegression()).fit(Z, Y)
    before = fitted.predict(Z)
    with pytest.raises(ValueError, match="column 0 has"):
        fitted.fit(np.where(np.arange(13) == 0, np.nan, Z), Y > 0)
    np.testing.assert_array_equal(fitted.predict(Z), before)  # a refused fit leaves the model as it was
    with pytest.raises(ValueError, match="X has 3 features"):
        scheme(LinearDiscriminantAnalysis()).fit(Z, Y).predict(Z[:, :3])
    with pytest.raises(TypeError, match="LinearRegression has neither decision_function nor predict_proba"):
        scheme(LinearRegression()).fit(Z, Y)
    with pytest.raises(ValueError, match="The 'estimator' parameter"):
        scheme(FisherDiscriminant()).fit(Z, Y)
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit takes no sample_weight"):
        scheme(KNeighborsClassifier()).fit(Z, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(TypeError, match="X is a source, which SVC cannot read"):
        scheme(SVC()).fit(as_source(Z, Y))
    with pytest.raises(ValueError, match="The 'machines' parameter"):
        OneVsRestClassifier(LinearDiscriminantAnalysis(), machines="2K").fit(Z, Y)
