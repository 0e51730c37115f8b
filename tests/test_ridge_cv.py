"""Ridge models that choose their penalty: scikit-learn's answers, refits without each row, and what weights mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.linear_model as reference
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit

import separatrix as sx
from separatrix.solvers.least_squares import fold_rules as rules_of_folds

GRID = np.logspace(-3, 3, 9)
SHAPES = [(60, 5), (20, 50), (200, 30)]
CHOICES: list[dict[str, Any]] = [
    {"store_cv_results": True},
    {"fit_intercept": False, "store_cv_results": True},
    {"scoring": "neg_mean_absolute_error", "store_cv_results": True},
    {"cv": KFold(4)},
    {"cv": ShuffleSplit(3, random_state=0), "fit_intercept": False},
    {"cv": KFold(4), "scoring": "neg_mean_absolute_error"},
]


def targets(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * rng.uniform(0.3, 3.0, d) + 3.0
    return X, X[:, :2] @ rng.standard_normal((2, 3)) + rng.standard_normal((n, 3))


def labels(n: int, d: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, scores = targets(n, d, seed)
    scores = scores[:, :K] - scores[:, :K].mean(axis=0)
    return X, np.array(["a", "b", "c"])[scores.argmax(axis=1)]


def same(ours: Any, theirs: Any, rtol: float = 1e-7) -> None:
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_)
    np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=rtol)
    np.testing.assert_allclose(np.ravel(ours.coef_), np.ravel(theirs.coef_), rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=1e-9)
    assert hasattr(ours, "cv_results_") == hasattr(theirs, "cv_results_")
    if hasattr(ours, "cv_results_"):
        assert ours.cv_results_.shape == theirs.cv_results_.shape
        np.testing.assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y_shape", ["vector", "column", "matrix"])
def test_regression_is_scikit_learn_s(
    shape: tuple[int, int], choice: dict[str, Any], weighted: bool, y_shape: str
) -> None:
    X, Y = targets(*shape)
    y = {"vector": Y[:, 0], "column": Y[:, :1], "matrix": Y}[y_shape]
    w = np.random.default_rng(1).uniform(0.1, 4.0, len(X)) if weighted else None
    ours, theirs = sx.RidgeCV(GRID, **choice).fit(X, y, w), reference.RidgeCV(GRID, **choice).fit(X, y, w)
    same(ours, theirs)
    assert ours.coef_.shape == theirs.coef_.shape
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    assert ours.fit_.certificate.gap <= 1e-6 * ours.fit_.certificate.objective


@pytest.mark.parametrize("scoring", [None, "r2"])
def test_a_penalty_per_target(scoring: str | None) -> None:
    X, Y = targets(80, 6)
    Y[:, 2] = np.random.default_rng(3).standard_normal(80)  # nothing to learn: a large penalty
    choice: dict[str, Any] = {"alpha_per_target": True, "scoring": scoring}
    ours, theirs = sx.RidgeCV(GRID, **choice).fit(X, Y), reference.RidgeCV(GRID, **choice).fit(X, Y)
    same(ours, theirs)
    assert ours.alpha_.shape == (3,) and len(np.unique(ours.alpha_)) > 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "choice",
    [
        {"store_cv_results": True},
        {"store_cv_results": True, "class_weight": "balanced"},
        {"store_cv_results": True, "class_weight": {"a": 3.0}},
        {"cv": KFold(4)},
        {"cv": KFold(4), "class_weight": "balanced"},
        {"cv": KFold(4), "scoring": "f1_macro", "fit_intercept": False},
    ],
    ids=str,
)
def test_classifier_is_scikit_learn_s(shape: tuple[int, int], K: int, choice: dict[str, Any]) -> None:
    X, y = labels(*shape, K)
    ours = sx.RidgeClassifierCV(GRID, **choice).fit(X, y)
    theirs = reference.RidgeClassifierCV(GRID, **choice).fit(X, y)
    same(ours, theirs)
    assert (ours.predict(X) == theirs.predict(X)).all()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-9)


def test_several_labels_per_row() -> None:
    X, Y = targets(90, 5)
    y = (Y.mean(axis=0) < Y).astype(int)
    for choice in ({"store_cv_results": True}, {"cv": KFold(3)}):
        ours, theirs = (module.RidgeClassifierCV(GRID, **choice).fit(X, y) for module in (sx, reference))
        same(ours, theirs)
        assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize("K", [2, 3])
def test_accuracy_of_rows_left_out_is_that_of_refits(shape: tuple[int, int], K: int) -> None:
    X, y = labels(*shape, K)
    model = sx.RidgeClassifierCV([0.01, 1.0, 100.0], scoring="accuracy").fit(X, y)
    scores = []
    for alpha in (0.01, 1.0, 100.0):
        right = [
            sx.RidgeClassifier(alpha).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] == y[i]
            for i in range(len(y))
        ]
        scores.append(np.mean(right))
    assert model.best_score_ == pytest.approx(max(scores))
    assert model.alpha_ == (0.01, 1.0, 100.0)[int(np.argmax(scores))]


@pytest.mark.parametrize("shape", [(25, 4), (12, 30)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["none", "whole", "others"])
def test_errors_are_those_of_refits(shape: tuple[int, int], fit_intercept: bool, weights: str) -> None:
    X, Y = targets(*shape)
    y, rng = Y[:, 0], np.random.default_rng(5)
    X[:, -1] = 2.0  # a constant column
    w = {"none": np.ones(len(X)), "whole": rng.integers(0, 4, len(X)) * 1.0, "others": rng.uniform(0.2, 3, len(X))}[
        weights
    ]
    grid = np.array([1e-3, 0.5, 20.0])
    model = sx.RidgeCV(grid, fit_intercept=fit_intercept, store_cv_results=True).fit(X, y, w)
    expected = np.zeros((len(X), len(grid)))
    for i in np.flatnonzero(w):
        less = w.copy()
        less[i] -= w[i] if weights == "others" else 1.0
        for a, alpha in enumerate(grid):
            fold = sx.Ridge(alpha, fit_intercept=fit_intercept).fit(X, y, less)
            expected[i, a] = w[i] * (y[i] - fold.predict(X[i : i + 1])[0]) ** 2
    np.testing.assert_allclose(model.cv_results_, expected, rtol=1e-6, atol=1e-10)
    size = np.count_nonzero(w) if weights == "others" else w.sum()
    assert model.best_score_ == pytest.approx(-expected.sum(axis=0).min() / size)
    plain = sx.RidgeCV(grid, fit_intercept=fit_intercept).fit(X, y, w)
    assert plain.best_score_ == pytest.approx(model.best_score_) and plain.alpha_ == model.alpha_


@pytest.mark.parametrize("choice", [{}, {"scoring": "r2"}, {"cv": 4}, {"cv": 4, "fit_intercept": False}], ids=str)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_whole_weights_are_repeated_rows(choice: dict[str, Any], classes: int) -> None:
    X, Y = targets(50, 4, seed=2)
    y = labels(50, 4, classes, seed=2)[1] if classes else Y[:, 0]
    if classes and "scoring" in choice:
        choice = {"scoring": "accuracy"}
    rng = np.random.default_rng(6)
    w = rng.integers(0, 4, len(X)).astype(float)
    at = rng.permutation(np.repeat(np.arange(len(X)), w.astype(int)))
    kind = sx.RidgeClassifierCV if classes else sx.RidgeCV
    for more in ({}, {"class_weight": "balanced"}) if classes else ({},):
        weighted = kind(GRID, **choice, **more).fit(X, y, w)
        same(weighted, kind(GRID, **choice, **more).fit(X[at], y[at]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("choice", [{}, {"store_cv_results": True}, {"cv": 3}], ids=str)
def test_storages_agree(shape: tuple[int, int], choice: dict[str, Any], tmp_path: Path) -> None:
    X, Y = targets(*shape)
    X[np.abs(X) < 2.0] = 0.0
    y, code = Y[:, 0], labels(*shape, 3)[1]
    for kind, target in ((sx.RidgeCV, y), (sx.RidgeClassifierCV, code)):
        dense = kind(GRID, **choice).fit(X, target)
        for other in (sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X)):
            same(kind(GRID, **choice).fit(other, target), dense)
        same(kind(GRID, **choice).fit(sx.as_source(X, target)), dense)


def test_folds_that_overlap_and_many_folds_are_fitted_each(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = targets(40, 6)
    choice: dict[str, Any] = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error"}
    merged = sx.RidgeCV(GRID, **choice).fit(X, Y[:, 0])
    same(merged, sx.RidgeCV(GRID).fit(X, Y[:, 0]))
    monkeypatch.setattr(rules_of_folds, "_HELD", 0)
    same(sx.RidgeCV(GRID, **choice).fit(X, Y[:, 0]), merged)


def test_ill_conditioned_columns_keep_their_digits() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 4)) + 1e4
    X[:, 3] = X[:, 0] + 1e-4 * rng.standard_normal(60)
    y = X @ [1.0, 2.0, 3.0, 4.0] + rng.standard_normal(60)
    grid, errors = [1e-8, 1e-6, 1e-2], []
    for alpha in grid:
        folds = [sx.Ridge(alpha).fit(np.delete(X, i, 0), np.delete(y, i)) for i in range(60)]
        errors.append(np.mean([(y[i] - fold.predict(X[i : i + 1])[0]) ** 2 for i, fold in enumerate(folds)]))
    model = sx.RidgeCV(grid).fit(X, y)
    assert model.alpha_ == grid[int(np.argmin(errors))]
    assert model.best_score_ == pytest.approx(-min(errors), rel=1e-5)


def test_one_penalty_single_precision_and_names() -> None:
    pandas = pytest.importorskip("pandas")
    X, Y = targets(50, 3)
    frame = pandas.DataFrame(X, columns=["p", "q", "r"])
    for choice in ({}, {"cv": 3}):
        model = sx.RidgeCV(2.0, **choice).fit(frame, Y[:, 0])
        assert model.alpha_ == 2.0 and list(model.feature_names_in_) == ["p", "q", "r"] and model.n_features_in_ == 3
        assert not hasattr(model, "partial_fit") and not hasattr(model, "merge")
    single = sx.RidgeCV(GRID, store_cv_results=True).fit(X.astype(np.float32), Y[:, 0])
    assert single.coef_.dtype == single.cv_results_.dtype == np.float32


def test_a_scorer_of_one_s_own() -> None:
    X, Y = targets(40, 3)

    def plain(model: Any, X: Any, y: Any) -> float:
        return -float(np.abs(model.predict(X) - y).max())

    def largest(y: Any, predicted: Any) -> float:
        return float(np.abs(predicted - y).max())

    for cv in (None, KFold(3)):
        for scoring in (plain, make_scorer(largest, greater_is_better=False)):
            ours, theirs = (module.RidgeCV(GRID, scoring=scoring, cv=cv).fit(X, Y) for module in (sx, reference))
            same(ours, theirs)
            assert np.isfinite(sx.RidgeCV(GRID, scoring=scoring, cv=cv).fit(X, Y, np.arange(40.0)).best_score_)


def test_groups_are_routed_to_the_splitter() -> None:
    X, Y = targets(40, 3)
    groups = np.arange(40) // 5
    with sklearn.config_context(enable_metadata_routing=True):
        ours, theirs = (
            module.RidgeCV(GRID, cv=GroupKFold(4)).fit(X, Y[:, 0], groups=groups) for module in (sx, reference)
        )
        same(ours, theirs)


def test_what_is_refused() -> None:
    X, Y = targets(30, 3)
    with pytest.raises(ValueError, match=r"alphas\[1\] == -1.0, must be > 0"):
        sx.RidgeCV([1.0, -1.0]).fit(X, Y)
    with pytest.raises(ValueError, match=r"alphas == 0\.0, must be > 0"):
        sx.RidgeCV([0.0]).fit(X, Y)
    with pytest.raises(TypeError, match=r"alphas\[1\] must be an instance of"):
        sx.RidgeClassifierCV([1.0, "x"]).fit(X, Y[:, 0] > 0)
    with pytest.raises(ValueError, match="cv!=None and store_cv_results=True are incompatible"):
        sx.RidgeClassifierCV(cv=3, store_cv_results=True).fit(X, Y[:, 0] > 0)
    with pytest.raises(ValueError, match="cv!=None and alpha_per_target=True are incompatible"):
        sx.RidgeCV(cv=3, alpha_per_target=True).fit(X, Y)
    with pytest.raises(ValueError, match="only one class"):
        sx.RidgeClassifierCV().fit(X, np.zeros(30))
    assert sx.RidgeCV([0.0, 1.0], cv=3).fit(X, Y).alpha_ in (0.0, 1.0)


@pytest.mark.parametrize("least", [1.0, 1e-1, 1e-3, 1e-6, 0.0])
def test_few_long_rows_whatever_their_singular_values(least):
    """Products of the rows are used where they resolve them, and rows of rank n − 1 have no further direction."""
    rng = np.random.default_rng(0)
    left, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    right, _ = np.linalg.qr(rng.standard_normal((70, 12)))
    rows, y = (left * np.linspace(1.0, least, 12)) @ right.T, rng.standard_normal(12)
    for alpha in (1e-3, 1.0):
        ours = sx.RidgeCV(alphas=[alpha], fit_intercept=False, store_cv_results=True).fit(rows, y)
        K = rows @ rows.T + alpha * np.eye(12)
        np.testing.assert_allclose(ours.coef_, rows.T @ np.linalg.solve(K, y), rtol=1e-7, atol=1e-10)
        errors = np.square(np.linalg.solve(K, y) / np.diag(np.linalg.inv(K)))  # e₋ᵢ = (K⁻¹y)ᵢ / (K⁻¹)ᵢᵢ
        np.testing.assert_allclose(ours.cv_results_[:, 0], errors, rtol=1e-7)


@pytest.mark.parametrize("weights", ["none", "whole", "shares"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["dense", "sparse", "single", "repeated"])
def test_products_of_few_rows_give_what_all_rows_give(kind, fit_intercept, weights, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 90)) + 2.0
    if kind == "repeated":
        X[20:] = X[:20]
    elif kind == "sparse":
        X *= rng.random(X.shape) < 0.2
    X = sp.csr_array(X) if kind == "sparse" else X.astype(np.float32) if kind == "single" else X
    Y = X @ rng.standard_normal((90, 2)) + rng.standard_normal((40, 2))
    s = {"none": None, "whole": rng.integers(0, 3, 40), "shares": rng.random(40) + 0.1}[weights]
    grid = [0.5, 5.0, 500.0]
    models = [
        (sx.RidgeCV(grid, fit_intercept=fit_intercept, store_cv_results=True), Y),
        (sx.RidgeCV(grid, fit_intercept=fit_intercept, scoring="r2"), Y[:, 0]),
        (sx.RidgeCV(grid, fit_intercept=fit_intercept, alpha_per_target=True), Y),
        (sx.RidgeClassifierCV(grid, fit_intercept=fit_intercept, class_weight="balanced"), np.arange(40) % 3),
    ]
    for model, y in models:
        few = clone(model).fit(X, y, s)
        proof = few.fit_.certificate  # of coefficients in the precision of the rows
        assert proof.method == "duality gap" and proof.relative_gap < (1e-8 if kind == "single" else 1e-10)
        with monkeypatch.context() as patched:
            patched.setattr("separatrix.solvers.least_squares.few_rows_left_out._HELD", 0)
            every = clone(model).fit(X, y, s)
        assert every.fit_.certificate.method != "duality gap"
        same(few, every, rtol=1e-5 if kind == "single" else 1e-8)


def test_rows_whose_products_have_too_few_digits_are_read_again():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30, 60)) * np.logspace(0, -4, 30)[:, None]  # rows of very different lengths
    y, grid, errors = rng.standard_normal(30), [1e-6, 1e-4], []
    model = sx.RidgeCV(grid, fit_intercept=False).fit(X, y)
    assert model.fit_.certificate.method != "duality gap"
    for alpha in grid:
        ridge = sx.Ridge(alpha, fit_intercept=False)
        refits = [ridge.fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(30)]
        errors.append(np.mean((y - refits) ** 2))
    assert model.best_score_ == pytest.approx(-min(errors), rel=1e-6)
