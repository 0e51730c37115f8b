"""FeatureMap is the Pipeline of the same two, block by block: same numbers, less memory, boundaries in x."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import sklearn.linear_model as sk
from estimators import named, tight
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler

from separatrix import (
    FeatureMap,
    LinearDiscriminantAnalysis,
    LinearRegression,
    Ridge,
    RidgeClassifier,
    scan_csv,
    scan_parquet,
)
from separatrix.geometry import Surface

TRANSFORMERS = {
    "polynomial": PolynomialFeatures(2, include_bias=False),
    "spline": SplineTransformer(n_knots=4, include_bias=False),
    "rbf": RBFSampler(n_components=15, random_state=0),
    "nystroem": Nystroem(n_components=15, gamma=0.2, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), PolynomialFeatures(2)),
}
ESTIMATORS = tight(
    named(
        "lda",
        "qda, shrunk",
        "ridge classifier",
        "ridge classifier, balanced",
        "ridge",
        "ridge by cg",
        "ridge, leave one out",
    )
)
SMOOTH = {name for name, estimator in ESTIMATORS.items() if is_regressor(estimator)}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows are several blocks, before the map and after it."""
    monkeypatch.setattr("separatrix.data.source._TARGET_BYTES", 1)


def rows(n: int = 1100, d: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def rings(X: np.ndarray, seed: int = 0) -> np.ndarray:
    """Three classes by distance from the origin, with some noise: no line separates them."""
    size = np.square(X).sum(axis=1) + 0.3 * np.random.default_rng(seed).standard_normal(len(X))
    return np.array(["core", "ring", "rim"])[np.digitize(size, np.quantile(size, [0.3, 0.7]))]


def target_for(name: str, X: np.ndarray) -> np.ndarray:
    return np.square(X).sum(axis=1) + X[:, 0] if name in SMOOTH else rings(X)


def scores(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def assert_same(mine: Any, theirs: Any, X: Any, same_as: Any = None) -> None:
    expected = scores(theirs, X if same_as is None else same_as)
    np.testing.assert_allclose(scores(mine, X), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("transformer", TRANSFORMERS)
def test_equals_the_pipeline(transformer: str, estimator: str) -> None:
    X = rows()
    y, phi, model = target_for(estimator, X), TRANSFORMERS[transformer], ESTIMATORS[estimator]
    mine = FeatureMap(phi, model).fit(X, y)
    theirs = make_pipeline(clone(phi), clone(model)).fit(X, y)
    fresh = rows(700, seed=1)
    assert_same(mine, theirs, fresh)
    if estimator not in SMOOTH:
        np.testing.assert_array_equal(mine.predict(fresh), theirs.predict(fresh))
    if hasattr(theirs, "predict_proba"):
        np.testing.assert_allclose(mine.predict_proba(fresh), theirs.predict_proba(fresh), rtol=1e-8, atol=1e-12)
    assert mine.score(fresh, target_for(estimator, fresh)) == pytest.approx(
        theirs.score(fresh, target_for(estimator, fresh))
    )
    assert mine.fit_.certificate is not None or estimator == "qda, shrunk"
    assert mine.fit_ is mine.estimator_.fit_


def test_equals_scikit_learn_s_own_pipeline() -> None:
    X = rows()
    y = rings(X)
    mine = FeatureMap(PolynomialFeatures(3), RidgeClassifier()).fit(X, y)
    theirs = make_pipeline(PolynomialFeatures(3), sk.RidgeClassifier()).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), rtol=1e-8, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 5), st.integers(1, 3))
def test_equals_the_pipeline_for_any_shape(seed: int, n: int, d: int, degree: int) -> None:
    X = rows(n, d, seed)
    Y = np.random.default_rng(seed).standard_normal((n, 2))
    w = np.random.default_rng(seed).integers(0, 3, n) + (np.arange(n) == 0)
    mine = FeatureMap(PolynomialFeatures(degree), Ridge()).fit(X, Y, sample_weight=w)
    theirs = make_pipeline(PolynomialFeatures(degree), Ridge()).fit(X, Y, ridge__sample_weight=w)
    assert_same(mine, theirs, X)


@pytest.mark.parametrize("how", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("estimator", ["lda", "ridge classifier", "ridge"])
def test_sparse_rows_equal_the_pipeline(how: Any, estimator: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (900, 4)) * (rng.random((900, 4)) < 0.5)
    y, model = target_for(estimator, X.astype(float)), ESTIMATORS[estimator]
    phi = PolynomialFeatures(2, include_bias=False)
    mine = FeatureMap(phi, model).fit(how(X), y)
    assert_same(mine, make_pipeline(phi, clone(model)).fit(X.astype(float), y), how(X), X.astype(float))
    encoded = FeatureMap(OneHotEncoder(drop="first"), Ridge()).fit(X, X[:, 0] + 0.5 * X[:, 1])  # dense in, sparse out
    assert_same(encoded, make_pipeline(OneHotEncoder(drop="first"), Ridge()).fit(X, X[:, 0] + 0.5 * X[:, 1]), X)


@pytest.mark.parametrize("scan", [scan_parquet, scan_csv])
def test_files_equal_the_pipeline(scan: Any, tmp_path: Path) -> None:
    X = np.round(rows(), 3)
    labels, values, w = rings(X), X[:, 0] ** 2, np.arange(len(X)) % 3 + 1.0
    table = pa.table({f"x{j}": X[:, j] for j in range(3)} | {"label": labels, "value": values, "w": w})
    for k, start in enumerate((0, 400)):
        piece = table.slice(start, 400 if k == 0 else None)
        if scan is scan_parquet:
            pq.write_table(piece, tmp_path / f"{k}.parquet", row_group_size=150)
        else:
            piece.to_pandas().to_csv(tmp_path / f"{k}.csv", index=False)
    paths = sorted(tmp_path.iterdir())
    names, phi = ["x0", "x1", "x2"], PolynomialFeatures(2, include_bias=False)
    for target, y, model in (("label", labels, LinearDiscriminantAnalysis()), ("value", values, Ridge())):
        source = scan(paths, target=target, features=names, weight="w")
        mine = FeatureMap(phi, model).fit(source)
        theirs = clone(model).fit(phi.fit_transform(X), y, sample_weight=w)
        expected = scores(theirs, phi.transform(X))
        np.testing.assert_allclose(scores(mine, X), expected, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(scores(mine, scan(paths, features=names)), expected, rtol=1e-10, atol=1e-10)
        assert mine.fit_.passes == 1


def test_a_data_frame_equals_the_pipeline() -> None:
    X = pd.DataFrame(np.sort(rows(), axis=0), columns=["a", "b", "c"])  # the first rows are not like the others
    y = np.sin(X["a"]) + X["b"] ** 2
    for phi in (PolynomialFeatures(2), SplineTransformer(n_knots=4, include_bias=False)):
        mine, theirs = FeatureMap(phi, Ridge()).fit(X, y), make_pipeline(phi, Ridge()).fit(X, y)
        assert_same(mine, theirs, X)
        assert list(mine.feature_names_in_) == ["a", "b", "c"]


def test_columns_of_a_data_frame_can_be_named() -> None:
    X = pd.DataFrame(rows(), columns=["a", "b", "c"])
    y = np.sin(X["a"]) + X["b"] ** 2
    phi = ColumnTransformer(
        [("curved", PolynomialFeatures(2, include_bias=False), ["b"]), ("as is", "passthrough", ["a"])]
    )
    mine, theirs = FeatureMap(phi, Ridge()).fit(X, y), make_pipeline(phi, Ridge()).fit(X, y)
    assert_same(mine, theirs, X)


def test_columns_can_be_numbered() -> None:
    X = rows()
    phi = ColumnTransformer([("curved", PolynomialFeatures(2), [1]), ("as is", "passthrough", [0, 2])])
    assert_same(FeatureMap(phi, Ridge()).fit(X, X[:, 1] ** 2), make_pipeline(phi, Ridge()).fit(X, X[:, 1] ** 2), X)


def test_several_labels_a_row_equal_the_pipeline() -> None:
    X = rows()
    Y = np.c_[np.square(X).sum(axis=1) > 3, X[:, 0] > 0].astype(int)
    phi = PolynomialFeatures(2)
    mine, theirs = FeatureMap(phi, RidgeClassifier()).fit(X, Y), make_pipeline(phi, RidgeClassifier()).fit(X, Y)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("estimator", ["lda", "qda, shrunk", "ridge classifier", "ridge"])
def test_parts_equal_the_whole(estimator: str) -> None:
    X = rows()
    y, phi = target_for(estimator, X), PolynomialFeatures(2, include_bias=False)
    whole, stream = FeatureMap(phi, ESTIMATORS[estimator]).fit(X, y), FeatureMap(phi, ESTIMATORS[estimator])
    for part in np.array_split(np.arange(len(X)), 4):
        stream.partial_fit(X[part], y[part])
    assert_same(stream, whole, X)


def test_weights_count_repeated_rows() -> None:
    X = rows(300)
    y, counts = rings(X), np.random.default_rng(1).integers(0, 3, 300)
    phi = PolynomialFeatures(2, include_bias=False)
    weighted = FeatureMap(phi, LinearDiscriminantAnalysis()).fit(X, y, sample_weight=counts)
    repeated = FeatureMap(phi, LinearDiscriminantAnalysis()).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same(weighted, repeated, X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", ["lda", "qda, shrunk", "ridge classifier"])
def test_the_boundary_is_a_surface_in_x_that_agrees_with_predict(estimator: str, n_classes: int) -> None:
    X = rows()
    y = rings(X) if n_classes == 3 else np.where(rings(X) == "core", "in", "out")
    model = FeatureMap(PolynomialFeatures(2, include_bias=False), ESTIMATORS[estimator]).fit(X, y)
    fresh = 1.5 * rows(500, seed=2)
    predicted = model.predict(fresh)
    for k in model.classes_:
        for other in model.classes_:
            if k == other:
                with pytest.raises(ValueError, match="no boundary with itself"):
                    model.boundary(k, other)
                continue
            surface = model.boundary(k, other)
            assert isinstance(surface, Surface)
            value = surface(fresh)
            assert value.shape == (500,)
            assert (value[predicted == k] > 0).all() and (value[predicted == other] < 0).all()
            np.testing.assert_allclose(value, -model.boundary(other, k)(fresh))
    if n_classes == 2:
        value = model.boundary()(fresh)
        np.testing.assert_array_equal(value > 0, predicted == model.classes_[1])
    else:
        with pytest.raises(ValueError, match="Name the two classes"):
            model.boundary()


def test_a_circle_is_found_where_it_is() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (4000, 2))
    y = np.square(X).sum(axis=1) < 2.0
    surface = FeatureMap(PolynomialFeatures(2, include_bias=False), RidgeClassifier(alpha=0)).fit(X, y).boundary()
    angle = np.linspace(0, 2 * np.pi, 50)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    assert (surface(1.1 * ring) > 0).all() and (surface(1.9 * ring) < 0).all()


def test_what_it_cannot_do_is_said() -> None:
    X = rows(50)
    y = rings(X)
    with pytest.raises(TypeError, match="make_pipeline"):
        FeatureMap(PolynomialFeatures(2), sk.LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="requires y"):
        FeatureMap(PolynomialFeatures(2), Ridge()).fit(X)
    model = FeatureMap(PolynomialFeatures(2), LinearRegression()).fit(X, X[:, 0])
    assert not hasattr(model, "predict_proba") and not hasattr(model, "boundary")
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:, :2])
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        FeatureMap(PolynomialFeatures(2), Ridge()).fit(X, np.zeros(50))


def test_parameters_are_left_as_they_were() -> None:
    phi, estimator = PolynomialFeatures(2), Ridge()
    model = FeatureMap(phi, estimator).fit(rows(50), np.arange(50.0))
    assert model.transformer is phi and model.estimator is estimator
    assert not hasattr(phi, "n_output_features_") and not hasattr(estimator, "coef_")
    other = clone(model).set_params(transformer__degree=3, estimator__alpha=2.0).fit(rows(50), np.arange(50.0))
    assert other.estimator_.alpha_ == 2.0 and other.transformer_.degree == 3


_CHILD = """
import json, sys
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
import separatrix
from separatrix import FeatureMap, RidgeClassifier

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

X = np.random.default_rng(0).standard_normal((40_000, 12))
y = (X**2).sum(axis=1) > 11
phi = PolynomialFeatures(3, include_bias=False)
make = {"map": FeatureMap, "pipeline": make_pipeline}[sys.argv[1]]
make(phi, RidgeClassifier()).fit(X[:1000], y[:1000])
before = peak()
model = make(phi, RidgeClassifier()).fit(X, y)
fitted = model.estimator_ if sys.argv[1] == "map" else model[-1]
print(json.dumps({"kib": peak() - before, "norm": float(np.linalg.norm(fitted.coef_))}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak memory from /proc")
def test_memory_is_a_fraction_of_the_pipeline_s() -> None:
    found = {}
    for kind in ("map", "pipeline"):
        child = subprocess.run([sys.executable, "-c", _CHILD, kind], capture_output=True, text=True, check=True)
        found[kind] = json.loads(child.stdout)
    assert found["map"]["norm"] == pytest.approx(found["pipeline"]["norm"], rel=1e-10)
    expanded = 40_000 * 454 * 8 // 1024  # the matrix that is never stored
    assert found["pipeline"]["kib"] > 0.8 * expanded
    assert found["map"]["kib"] < 0.5 * found["pipeline"]["kib"]


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis(), Ridge()])
def test_a_supervised_transformer_is_given_the_targets(scanned: bool, estimator: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(11).standard_normal((300, 6))
    classifies = isinstance(estimator, LinearDiscriminantAnalysis)
    y: Any = np.where(X[:, 4] > 0.0, "yes", "no") if classifies else X[:, 4] ** 3
    chooser = SelectKBest(f_classif if classifies else f_regression, k=2)
    expected = scores(clone(estimator).fit(chooser.fit_transform(X, y), y), chooser.transform(X))
    if scanned:
        pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(6)} | {"y": y}), tmp_path / "t.parquet")
        found = FeatureMap(chooser, estimator).fit(scan_parquet(tmp_path / "t.parquet", target="y"))
    else:
        found = FeatureMap(chooser, estimator).fit(X, y)
    assert found.transformer_.get_support()[4]
    np.testing.assert_allclose(scores(found, X), expected, rtol=1e-10, atol=1e-10)
    if not scanned and classifies:
        assert FeatureMap(chooser, estimator).partial_fit(X, y, classes=["no", "yes"]).transformer_.get_support()[4]
