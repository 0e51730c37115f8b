"""Classifiers are Spark's transformers without being scikit-learn's: with a pyspark that is played by a few lines."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import separatrix as sx

NAMES = ["a", "b", "c", "d"]


class Frame:
    """As much of a Spark data frame as is asked for by a fit of few rows and by its scores."""

    storageLevel = SimpleNamespace(useMemory=True, useDisk=False)

    def __init__(self, table: pa.Table) -> None:
        self.table, self.columns = table, table.column_names
        number = sys.modules["pyspark.sql.types"].NumericType()
        self.schema = Schema([SimpleNamespace(name=name, dataType=number) for name in self.columns])

    def select(self, *names: str) -> Frame:
        return Frame(self.table.select(list(names)))

    def count(self) -> int:
        return int(self.table.num_rows)

    def toArrow(self) -> pa.Table:
        return self.table

    def mapInArrow(self, function: Callable[..., Any], schema: Any) -> Frame:
        found = Frame(pa.Table.from_batches(function(iter(self.table.to_batches()))))
        assert found.columns == [field.name for field in schema.fields]
        return found


class Schema:
    def __init__(self, fields: list[Any]) -> None:
        self.fields = fields

    def __getitem__(self, name: str) -> Any:
        return next(field for field in self.fields if field.name == name)


@pytest.fixture
def frame(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Iris as a frame of the played pyspark."""
    modules = {name: ModuleType(name) for name in ("pyspark", "pyspark.sql", "pyspark.sql.types")}
    types: Any = modules["pyspark.sql.types"]
    for name in ("NumericType", "BooleanType", "DoubleType", "FloatType", "LongType", "StringType"):
        setattr(types, name, type(name, (), {}))
    types.StructField = lambda name, kind: SimpleNamespace(name=name, dataType=kind)
    types.StructType = Schema
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(Frame, "__module__", "pyspark.sql.dataframe")
    X, y = load_iris(return_X_y=True)
    return Frame(pa.table({**dict(zip(NAMES, X.T, strict=True)), "label": y}))


MODELS = [sx.LogisticRegression(), sx.GaussianNB(), sx.LinearSVC(), sx.RidgeClassifier(), sx.Perceptron()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_of_other_rows_is_no_transformer(model: Any, frame: Any) -> None:
    """In the eyes of scikit-learn, which goes by the name of the method, with pyspark imported or not."""
    X, y = load_iris(return_X_y=True)
    assert not hasattr(model, "transform")
    fitted = clone(model).fit(X, y)
    assert not hasattr(fitted, "transform") and not hasattr(make_pipeline(fitted), "transform")
    with pytest.raises(AttributeError, match="transform") as refused:
        fitted.transform(X)
    assert "predict_proba add columns" in str(refused.value.__cause__)
    # Which of scikit-learn's checks apply, and what those of all methods do, depends on the names of the methods.
    for estimator, check in estimator_checks_generator(model):
        name = getattr(check, "func", check).__name__
        assert not name.startswith("check_transformer")
        if name.startswith("check_methods"):
            check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_of_spark_s_rows_transforms_them(model: Any, frame: Any) -> None:
    X, y = load_iris(return_X_y=True)
    there = clone(model).fit(frame, "label")
    found = there.transform(frame)
    np.testing.assert_array_equal(found.table["prediction"].to_numpy(), there.predict(frame.table.select(NAMES)))
    assert ("probability_0" in found.columns) == hasattr(model, "predict_proba")
    assert pickle.loads(pickle.dumps(there)).transform(frame).columns == found.columns
    with pytest.raises(TypeError, match="takes a Spark data frame"):
        there.transform(X)
    assert not hasattr(clone(there), "transform") and not hasattr(there.fit(X, y), "transform")


def test_a_model_of_other_rows_scores_a_frame_of_spark(frame: Any) -> None:
    model: Any = sx.LogisticRegression().fit(frame.table.select(NAMES), frame.table["label"].to_numpy())
    found = model.predict_proba(model.predict(frame))
    assert found.columns == [*frame.columns, "prediction", "probability_0", "probability_1", "probability_2"]
