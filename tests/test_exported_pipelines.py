"""Pipelines of scikit-learn's steps and our models: as SQL, ONNX and JSON, and in model files, against the pipelines."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from test_sql import answers, recomputed

import separatrix as sx


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.15, np.nan, rng.normal(50, 15, n)),
            "income": np.exp(rng.normal(10, 1, n)),
            "children": rng.integers(0, 4, n).astype(float),
            "city": pd.Series(rng.choice(["Ghent", "Lyon", "it's; --"], n), dtype=object),
            "unused": rng.normal(size=n),
        }
    )
    score = 0.05 * (frame["age"].fillna(50) - 50) + (frame["city"] == "Ghent") + rng.logistic(size=n)
    frame.loc[rng.random(n) < 0.1, "city"] = np.nan
    return frame, np.array(["no", "a little", "very"])[np.select([score < -0.5, score < 1.2], [0, 1], 2)]


NUMBERS = ["age", "income"]
FRAME, CLASSES = people()
NEW = people(120, seed=1)[0]
NEW.loc[::9, "city"] = "Nowhere"
MATRIX, NEW_MATRIX = (
    FRAME[["income", "children", "unused"]].to_numpy(),
    NEW[["income", "children", "unused"]].to_numpy(),
)


def columns(model, **options):
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    steps = [("n", numbers, NUMBERS), ("t", texts, ["city"]), ("k", OneHotEncoder(drop="first"), ["children"])]
    return make_pipeline(ColumnTransformer(steps, **options), model)


filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
OF_FRAMES = {
    "logistic": columns(sx.LogisticRegression()),
    "all of the rest": Pipeline(
        [
            ("c", ColumnTransformer([("t", filled, ["city"]), ("d", "drop", ["age"])], remainder="passthrough")),
            ("s", StandardScaler(with_mean=False)),
            ("m", sx.LinearDiscriminantAnalysis()),
        ]
    ),
    "columns by their type": make_pipeline(
        ColumnTransformer(
            [
                ("n", SimpleImputer(), make_column_selector(dtype_include=float)),
                ("t", OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include=object)),
            ],
            sparse_threshold=0,
        ),
        StandardScaler(),
        sx.QuadraticDiscriminantAnalysis(reg_param=0.1),
    ),
    "machines": columns(sx.LinearSVC()),
    "pairs": columns(sx.OneVsOneClassifier(sx.LogisticRegression())),
    "rest": columns(sx.OneVsRestClassifier(sx.LogisticRegression())),
    "ordered": columns(sx.OrderedLogisticRegression(order=["no", "a little", "very"])),
    "rule": columns(sx.BayesRule(sx.LogisticRegression(), reject_below=0.5)),
}
OF_MATRICES = {
    "scaled": make_pipeline(StandardScaler(), sx.LogisticRegression()),
    "scaled thrice": make_pipeline(MinMaxScaler((-1, 3)), RobustScaler(), MaxAbsScaler(), sx.LinearSVC()),
    "chosen": make_pipeline(VarianceThreshold(), SelectKBest(k=2), "passthrough", sx.RidgeClassifier()),
    "levels of numbers": make_pipeline(
        ColumnTransformer([("k", OneHotEncoder(), [1]), ("s", StandardScaler(), slice(0, 1))]), sx.LogisticRegression()
    ),
    "naive Bayes": make_pipeline(FunctionTransformer(), StandardScaler(), sx.GaussianNB()),
    "products": make_pipeline(StandardScaler(), PolynomialFeatures(3), sx.LogisticRegression()),
    "mapped": make_pipeline(
        StandardScaler(), sx.FeatureMap(PolynomialFeatures(2, interaction_only=True), sx.LinearDiscriminantAnalysis())
    ),
    "feature map": sx.FeatureMap(make_pipeline(StandardScaler(), MinMaxScaler()), sx.LinearDiscriminantAnalysis()),
}
KERNELS = {"rbf": make_pipeline(StandardScaler(), sx.SVC(gamma=0.3)), "rbf on columns": columns(sx.SVC(gamma=0.3))}


def made(name):
    of_frames = name in OF_FRAMES or name == "rbf on columns"
    model = clone({**OF_FRAMES, **OF_MATRICES, **KERNELS}[name])
    return (model.fit(FRAME, CLASSES), NEW) if of_frames else (model.fit(MATRIX, CLASSES), NEW_MATRIX)


def expected(model, new):
    found = model.predict_proba(new) if hasattr(model, "predict_proba") else model.decision_function(new)
    return np.asarray(found).reshape(len(new), -1)


@pytest.mark.parametrize("name", [*OF_FRAMES, *OF_MATRICES, *KERNELS])
def test_graphs(name):
    model, new = made(name)
    run = onnxruntime.InferenceSession(sx.to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in run.get_inputs()]
    texts = {"city"}
    feed = {"X": np.asarray(new)} if names == ["X"] else {
        one: new[[one]].fillna("").to_numpy(dtype=object) if one in texts else new[[one]].to_numpy() for one in names
    }  # fmt: skip
    values, labels = run.run(None, feed)
    np.testing.assert_allclose(values, expected(model, new), rtol=1e-9, atol=1e-10)
    assert labels.tolist() == model.predict(new).tolist()
    if name == "logistic":  # columns that no step reads are not asked for
        assert names == ["age", "income", "children", "city"]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", [*OF_FRAMES, *OF_MATRICES])
def test_queries(name, dialect):
    model, new = made(name)
    frame = new if isinstance(new, pd.DataFrame) else pd.DataFrame(new, columns=["x0", "x1", "x2"])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    _, rows = answers(sx.to_sql(model, dialect=dialect), dialect, table)
    found = np.array([row[:-1] for row in rows], dtype=float)
    np.testing.assert_allclose(found, expected(model, new), rtol=1e-9, atol=1e-10)
    assert [row[-1] for row in rows] == model.predict(new).tolist()


@pytest.mark.parametrize("name", [*OF_FRAMES, *OF_MATRICES, *KERNELS])
def test_documents(name):
    model, new = made(name)
    new = new[:25]
    document = json.loads(sx.to_json(model))
    rows = (
        new.astype(object).where(new.notna(), None).to_dict("records")
        if isinstance(new, pd.DataFrame)
        else [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in new.tolist()]
    )
    found = [recomputed(document, row) for row in rows]
    np.testing.assert_allclose([values for values, _ in found], expected(model, new), rtol=1e-9, atol=1e-10)
    assert [label for _, label in found] == model.predict(new).tolist()


def test_steps_without_a_written_form_are_named():
    for words, steps in {
        "PCA is a step that has no written form": [PCA(2)],
        "FunctionTransformer calls a Python function": [FunctionTransformer(np.log1p)],
        "MinMaxScaler clips": [MinMaxScaler(clip=True)],
        "StandardScaler comes after products": [PolynomialFeatures(2), StandardScaler()],
        "pools rare categories": [OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist")],
    }.items():
        rows = np.round(MATRIX[:, 1:2] if "rare" in words else np.abs(MATRIX))
        model = make_pipeline(*steps, sx.LogisticRegression()).fit(rows, CLASSES)
        for write in (sx.to_sql, sx.to_onnx, sx.to_json):
            with pytest.raises(ValueError, match=words):
                write(model)


# -- model files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*OF_FRAMES, *OF_MATRICES, *KERNELS} - {"chosen"}))
def test_files_give_the_same_bits(name, tmp_path):
    model, new = made(name)
    sx.save_model(model, tmp_path / "model.safetensors")
    loaded = sx.load_model(tmp_path / "model.safetensors")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(expected(loaded, new), expected(model, new))
    assert loaded.predict(new).tolist() == model.predict(new).tolist()
    assert sx.to_json(loaded) == sx.to_json(model)
    assert sx.inspect_model(tmp_path / "model.safetensors")["classes"] == model.classes_.tolist()


def test_what_a_pipeline_may_not_hold_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match=r"holds a SelectKBest"):
        sx.save_model(made("chosen")[0], path)
    logs = make_pipeline(FunctionTransformer(np.log1p), sx.GaussianNB()).fit(np.abs(MATRIX), CLASSES)
    with pytest.raises(ValueError, match=r"func holds a"):
        sx.save_model(logs, path)
    kept = Pipeline([("s", StandardScaler()), ("m", sx.GaussianNB())], memory=str(tmp_path / "kept")).fit(
        MATRIX, CLASSES
    )
    with pytest.raises(ValueError, match="memory=None"):
        sx.save_model(kept, path)
    with pytest.raises(ValueError, match="ends in StandardScaler, not in a model of separatrix"):
        sx.save_model(make_pipeline(StandardScaler()).fit(MATRIX), path)
    assert not path.exists()
