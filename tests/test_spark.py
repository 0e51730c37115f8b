"""Spark data frames as sources, in local mode: the models of an array, to nine digits, and scores where the rows are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import separatrix as sx
from separatrix.data.dispatch import as_source
from separatrix.data.engines import spark_source
from separatrix.tables.quantiles import SIZE

pytest.importorskip("pyspark", reason="pyspark is not installed: make test-engines sets it up")


def java_is_missing() -> str:
    """Why Spark cannot run here; empty where it can."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        return "Spark needs a Java runtime, which is not here"
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', asked.stderr)
    if version is None or int(version[1]) < 17:
        return f"Spark needs Java 17; {java} is another: {(asked.stderr.splitlines() or ['it does not run'])[0]}"
    return ""


if reason := java_is_missing():
    pytest.skip(reason, allow_module_level=True)

NAMES = ["p", "q", "r", "s"]
MODELS = {
    "lda": sx.LinearDiscriminantAnalysis(),
    "qda": sx.QuadraticDiscriminantAnalysis(),
    "gaussian": sx.GaussianNB(),
    "ridge": sx.RidgeClassifier(),
    "softmax": sx.LogisticRegression(tol=1e-12),
    "l1": sx.LogisticRegression(tol=1e-12, l1_ratio=1.0, C=0.05),
}


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("separatrix")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",  # a plan made again for every stage of tiny jobs
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def rows_stay_in_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few they are."""
    monkeypatch.setattr(spark_source, "FEW_BYTES", 0)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, len(NAMES)))
    frame = pd.DataFrame(X, columns=NAMES)
    frame["label"] = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + rng.gumbel(size=(900, 3)), axis=1)]
    return frame.assign(w=rng.integers(0, 3, 900).astype(float))


@pytest.fixture(scope="module")
def frame(spark: Any, rows: pd.DataFrame) -> Any:
    whole = spark.createDataFrame(rows).repartition(2)
    return whole.union(whole.limit(0)).cache()  # one partition without rows


@pytest.fixture(scope="module")
def source(frame: Any) -> Any:
    """One for all models: its rows are cached and measured once."""
    return as_source(frame, "label", "w")


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_that_of_the_array(name: str, source: Any, rows: pd.DataFrame) -> None:
    there = clone(MODELS[name]).fit(source)
    here = clone(MODELS[name]).fit(rows[NAMES], rows["label"], sample_weight=rows["w"])
    assert list(there.classes_) == ["a", "b", "c"] and list(there.feature_names_in_) == NAMES
    method = "predict_proba" if hasattr(here, "predict_proba") else "decision_function"
    found, expected = (getattr(model, method)(rows[NAMES]) for model in (there, here))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    if here.fit_.certificate is not None and np.isfinite(here.fit_.certificate.gap):
        above = there.fit_.certificate.objective - here.fit_.certificate.objective
        assert above <= there.fit_.certificate.gap + 1e-12 * abs(here.fit_.certificate.objective)


def test_solvers_that_hold_values_run_though_workers_keep_nothing(frame: Any, rows: pd.DataFrame) -> None:
    """Second derivatives, and the multipliers of a hinge, are made again from the rows."""
    two, known = ["p", "q"], rows["label"] != "c"
    there = as_source(frame.where("label != 'c'").select(*two, "label"), "label")
    X, y = rows.loc[known, two], rows.loc[known, "label"]
    by_products = sx.LogisticRegression(tol=1e-12, solver="newton-cg")
    np.testing.assert_allclose(clone(by_products).fit(there).coef_, clone(by_products).fit(X, y).coef_, rtol=1e-9)
    hinge = sx.LinearClassifier("hinge", tol=0.3)
    proofs = [model.fit_.certificate for model in (clone(hinge).fit(there), clone(hinge).fit(X, y))]
    for one, other in (proofs, proofs[::-1]):
        assert one.objective - one.gap <= other.objective * (1 + 1e-12)


def test_few_rows_are_brought_here_once(frame: Any, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_source, "FEW_BYTES", 1 << 26)
    source = as_source(frame, "label", "w")
    assert source.engine is None
    for model in (sx.LogisticRegression(tol=1e-12), sx.GaussianNB()):
        there = clone(model).fit(source)
        here = clone(model).fit(rows[NAMES], rows["label"], sample_weight=rows["w"])
        assert list(there.classes_) == ["a", "b", "c"] and list(there.feature_names_in_) == NAMES
        found, expected = (fitted.predict_proba(rows[NAMES]) for fitted in (there, here))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert frame.storageLevel.useMemory  # as its owner left it
    monkeypatch.setattr(spark_source, "FEW_BYTES", 8 * len(NAMES) * len(rows) - 1)
    assert as_source(frame, "label", "w").engine is not None


def test_few_vectors_are_brought_here_whoever_made_them(
    frame: Any, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql.functions import array

    monkeypatch.setattr(spark_source, "FEW_BYTES", 8 * len(NAMES) * len(rows))
    vectors = VectorAssembler(inputCols=NAMES, outputCol="x").transform(frame).select("x", "label")
    arrays = frame.select(array(*NAMES).alias("x"), "label")  # of which nothing is written down
    expected = sx.LinearDiscriminantAnalysis().fit(rows[NAMES].to_numpy(), rows["label"])
    for made in (vectors, arrays):
        source = as_source(made, "label")
        assert source.engine is None and (source.n_rows, source.n_features) == (len(rows), len(NAMES))
        np.testing.assert_allclose(sx.LinearDiscriminantAnalysis().fit(source).coef_, expected.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="no rows"):
        as_source(vectors.limit(0), "label")


def test_a_sample_is_that_of_the_array(source: Any) -> None:
    labelled = source.labelled()
    drawn = labelled.sample(60)
    assert drawn is not None
    some, which = drawn
    np.testing.assert_array_equal(some.matrix(), labelled.matrix()[which])
    np.testing.assert_array_equal(some.targets(), labelled.targets()[which])


def test_tables_of_mixed_columns(spark: Any, tmp_path: Path) -> None:
    """Levels, medians and scales are learnt by the workers; models and folds are those of the same table in a file."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.normal(40, 10, 600).round(1), "city": rng.choice(["Ulm", "Bonn", None], 600)})
    score = 0.1 * (table["age"] - 40) + (table["city"] == "Ulm") + rng.logistic(size=600)
    table["ill"] = np.where(score > 0, "yes", "no")
    table.loc[rng.random(600) < 0.1, "age"] = np.nan
    table.loc[rng.random(600) < 0.05, "ill"] = None
    table.to_parquet(tmp_path / "people.parquet", index=False)
    file, frame = sx.scan_parquet(tmp_path / "people.parquet", target="ill"), spark.read.parquet(f"{tmp_path}")
    there = sx.scan_spark(frame.repartition(2), "ill")
    model = sx.LogisticRegression(tol=1e-12)
    here, elsewhere = clone(model).fit(file), clone(model).fit(there)
    assert elsewhere.feature_names_in_.tolist() == here.feature_names_in_.tolist()
    np.testing.assert_allclose(elsewhere.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    naive = sx.MixedNB().fit(frame, "ill")
    np.testing.assert_allclose(
        naive.predict_proba(table), sx.MixedNB().fit(file).predict_proba(table), rtol=1e-9, atol=1e-12
    )
    for scored in (elsewhere, naive):
        found = scored.transform(frame).toPandas()
        np.testing.assert_allclose(found["probability_yes"], scored.predict_proba(found)[:, 1], rtol=1e-12)
    families = ["baseline", "lda", "naive-bayes", "logistic"]
    one, other = (sx.compare(data, "ill", cv=2, families=families) for data in (there, file))
    np.testing.assert_array_equal(one.counts, other.counts)
    for candidate, known in zip(one.candidates, other.candidates, strict=True):
        assert candidate.family == known.family
        np.testing.assert_allclose(candidate.scores["log_loss"].folds, known.scores["log_loss"].folds, rtol=1e-9)


def test_holes_of_a_long_table_are_filled_as_those_of_its_file(spark: Any, tmp_path: Path) -> None:
    """More rows than a sketch of quantiles holds, cut as Spark likes."""
    rng, n = np.random.default_rng(2), 2 * SIZE + 11
    table = pd.DataFrame({"age": rng.lognormal(size=n), "city": rng.choice(["Ulm", "Bonn"], n)})
    table["ill"] = np.where(table["age"] + rng.logistic(size=n) > 1, "yes", "no")
    table.loc[rng.random(n) < 0.3, "age"] = np.nan
    table.to_parquet(tmp_path / "people.parquet", index=False)
    file = sx.scan_parquet(tmp_path / "people.parquet", target="ill")
    there = sx.scan_spark(spark.read.parquet(f"{tmp_path}"), "ill")
    assert there.encoding.encoder.medians_ == file.encoding.encoder.medians_
    here, elsewhere = (sx.LogisticRegression(tol=1e-13).fit(source) for source in (file, there))
    np.testing.assert_allclose(elsewhere.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    one, other = here.fit_.certificate, elsewhere.fit_.certificate
    assert abs(one.objective - other.objective) <= one.gap + other.gap + 1e-12 * abs(one.objective)


def test_columns_of_vectors_and_tables_by_name(spark: Any, frame: Any, rows: pd.DataFrame) -> None:
    from pyspark.ml.feature import VectorAssembler

    vectors = VectorAssembler(inputCols=NAMES, outputCol="x").transform(frame).select("x", "label")
    there = sx.LinearDiscriminantAnalysis().fit(as_source(vectors, "label"))
    here = sx.LinearDiscriminantAnalysis().fit(rows[NAMES].to_numpy(), rows["label"])
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9)
    scored = there.transform(vectors).toPandas()
    assert {"prediction", "probability_a"} <= set(scored.columns)
    frame.createOrReplaceTempView("flowers")
    source = sx.scan_spark("flowers", "label", weight="w", features=["p", "q"])
    assert (source.n_rows, source.n_features) == (len(rows), 2)
    assert "900 rows" in repr(source)
    known, named = (sx.GaussianNB().fit(one, "label", "w") for one in (frame, "flowers"))
    np.testing.assert_allclose(named.theta_, known.theta_, rtol=1e-12)
    frame.select(*NAMES).createOrReplaceTempView("petals")
    scored = sx.GaussianNB().fit(rows[NAMES], rows["label"]).predict_proba("petals")
    assert scored.columns == [*NAMES, "probability_a", "probability_b", "probability_c"]
    with pytest.raises(ValueError, match=r"no table 'flower'; it has .*'flowers'"):
        sx.GaussianNB().fit("flower", "label")


def test_scores_are_columns_beside_the_others(frame: Any, rows: pd.DataFrame) -> None:
    model = sx.LogisticRegression().fit(rows[NAMES], rows["label"])
    found = model.predict_proba(model.predict(frame)).toPandas()
    expected = model.predict_proba(found[NAMES])
    np.testing.assert_allclose(found[[f"probability_{k}" for k in "abc"]], expected, rtol=1e-12)
    assert (found["prediction"] == model.predict(found[NAMES])).all()
    assert list(found.columns[: len(frame.columns)]) == frame.columns
    with pytest.raises(ValueError, match="'prediction' already"):
        model.predict(model.predict(frame))
    there = clone(model).fit(frame.select(*NAMES, "label"), "label")
    assert there.transform(frame).columns == list(found.columns) and not hasattr(model, "transform")


def test_the_example_of_the_documentation_runs(spark: Any) -> None:
    page = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```py\n(.*?)```", page, flags=re.S)
    exec(compile(example, "docs/scaling.md", "exec"), {})


def test_what_is_wrong_is_said_in_words(spark: Any, frame: Any, rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="no column 'lable'"):
        sx.GaussianNB().fit(frame, "lable")
    with pytest.raises(TypeError, match="name of one of its columns"):
        sx.GaussianNB().fit(frame, rows["label"])
    holes = spark.createDataFrame(rows.assign(p=rows["p"].where(rows.index != 5)))
    with pytest.raises(ValueError, match="'p'"):
        sx.LinearDiscriminantAnalysis().fit(holes.select(*NAMES, "label"), "label")
    with pytest.raises(ValueError, match="no rows"):
        as_source(frame.limit(0), "label")
