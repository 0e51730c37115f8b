"""Comparisons and fits of tables that are never held: what they give is what the table in memory gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, log_loss, roc_auc_score
from typer.testing import CliRunner

import separatrix as sx
from separatrix.cli import streaming
from separatrix.cli.main import app
from separatrix.comparison.families import FAMILIES
from separatrix.comparison.streamed import compare_stream
from separatrix.export.model_file import load_model
from separatrix.tables import TableEncoder, TableSchema, table_files
from separatrix.tables.row_hashes import hashed_folds, row_hashes

STREAMED = ["baseline", "naive-bayes", "least-squares", "lda", "logistic-l1", "logistic", "qda"]


def people(n: int, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"age": draw.normal(50, 10, n), "dose": draw.normal(size=n), "site": draw.choice(list("abc"), n)}
    )
    score = 0.1 * (table["age"] - 50) + (table["site"] == "a") + table["dose"] + draw.logistic(size=n)
    table["ill"] = np.where(score > 1.5, "very", np.where(score > 0, "yes", "no"))
    table.loc[draw.random(n) < 0.1, "dose"] = np.nan
    table.loc[draw.random(n) < 0.05, "ill"] = None
    return table


def written(table: pd.DataFrame, folder, parts: int = 3):
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), parts)):
        table.iloc[part].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def test_a_streamed_comparison_scores_and_ranks_as_one_in_memory_with_the_same_folds(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "ROWS", 100)
    table = people(700)
    loss = {"no": {"a": 0, "b": 1}, "yes": {"a": 2, "b": 0}, "very": {"a": 3, "b": 0}}
    found = compare_stream(
        streaming.table_source(written(table, tmp_path / "t"), "ill"), cv=4, random_state=3, loss=loss
    )
    schema, rows, codes = TableSchema.infer_and_read(table, "ill")
    folds = hashed_folds(rows, 4, 3)
    X = TableEncoder(schema).fit(rows).transform(rows)
    assert found.n_rows == len(codes) and sorted(one.family for one in found.candidates) == sorted(STREAMED)
    assert np.array_equal(found.counts, [np.bincount(codes[folds == k], minlength=3) for k in range(4)])
    means = {}
    for one in found.candidates:
        family, right, logs = FAMILIES[one.family], [], []
        others: dict[str, list[float]] = {"balanced_accuracy": [], "f1": [], "brier": [], "auc": []}
        for k in range(4):
            inside, outside = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
            train, test = ((X[at] if family.encoded else rows.take(at).frame()) for at in (inside, outside))
            model = family.build().fit(train, codes[inside])
            truth, answers = codes[outside], model.predict(test)
            right.append(accuracy_score(truth, answers))
            others["balanced_accuracy"].append(balanced_accuracy_score(truth, answers))
            others["f1"].append(f1_score(truth, answers, average="macro"))
            if hasattr(model, "predict_proba"):
                proba = model.predict_proba(test)
                logs.append(log_loss(truth, proba, labels=[0, 1, 2]))
                others["brier"].append(((proba - np.eye(3)[truth]) ** 2).sum(axis=1).mean())
                others["auc"].append(roc_auc_score(truth, proba, multi_class="ovr", labels=[0, 1, 2]))
        assert np.allclose(one.scores["accuracy"].folds, right, atol=1e-12)
        for name in [*others][: 4 if logs else 2]:  # areas are of bins of log-odds
            np.testing.assert_allclose(one.scores[name].folds, others[name], atol=2e-3 if name == "auc" else 1e-9)
        assert one.confusion.sum() == len(codes)
        assert np.isclose(np.trace(one.confusion), sum(r * (folds == k).sum() for k, r in enumerate(right)))
        if logs:
            assert np.allclose(one.scores["log_loss"].folds, logs, rtol=1e-6)
            means[one.family] = float(np.mean(logs))
    assert set(found.failures) == set(FAMILIES) - set(STREAMED)
    assert found.ranked_by == "cost"
    again = compare_stream(streaming.table_source(tmp_path / "t", "ill"), cv=4, random_state=3)
    assert [one.family for one in again.candidates if "log_loss" in one.scores] == sorted(means, key=means.__getitem__)


def test_folds_do_not_depend_on_the_order_of_rows_columns_and_files():
    table = people(300)
    _, rows, _ = TableSchema.infer_and_read(table, "ill")
    order = np.random.default_rng(1).permutation(len(table))
    _, mixed, _ = TableSchema.infer_and_read(table.iloc[order][["ill", "site", "dose", "age"]], "ill")
    assert np.array_equal(np.sort(row_hashes(rows)), np.sort(row_hashes(mixed)))
    assert len(np.unique(row_hashes(rows))) == len(rows)
    shares = np.bincount(hashed_folds(rows, 5, 0), minlength=5) / len(rows)
    assert (np.abs(shares - 0.2) < 0.1).all()
    assert (hashed_folds(rows, 5, 0) != hashed_folds(rows, 5, 1)).any()


def test_too_few_different_rows_for_the_folds_are_refused(tmp_path):
    table = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["p", "q", "q", "p"] * 10})
    with pytest.raises(ValueError, match="too few different rows"):
        compare_stream(streaming.table_source(written(table, tmp_path / "t"), "b"), cv=5)
    with pytest.raises(ValueError, match="these can: baseline"):
        compare_stream(streaming.table_source(tmp_path / "t", "b"), families="svm-rbf")


def test_the_commands_stream_where_memory_is_small_or_they_are_told_to(tmp_path, monkeypatch):
    table = people(400)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    call = CliRunner().invoke
    assert not streaming.is_streamed(tmp_path / "t.parquet", False)
    monkeypatch.setattr(streaming, "_memory_at_hand", lambda: 1000)
    assert streaming.is_streamed(tmp_path / "t.parquet", False)
    out = tmp_path / "out"
    families = ["--families", "lda,logistic,svm-rbf", "--folds", "3", "--quiet"]
    done = call(app, ["compare", str(tmp_path / "t.parquet"), "--target", "ill", "--out", str(out), *families])
    assert done.exit_code == 0, done.output
    assert "never held" in " ".join(done.output.split()) and "svm-rbf" in done.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "never held" in page and "Confusion matrix" in page and "Out of fold it made none" not in page
    best = load_model(out / "model.safetensors")
    assert len(best.predict(table.head(5))) == 5


@pytest.mark.parametrize("name", ["lda", "naive-bayes", "logistic", "baseline"])
def test_a_streamed_fit_is_the_fit_in_memory(tmp_path, name):
    table = people(500)
    table.to_csv(tmp_path / "t.csv", index=False)
    proba = []
    for flag in ([], ["--stream"]):
        path = str(tmp_path / f"model{len(flag)}.safetensors")
        command = ["fit", str(tmp_path / "t.csv"), "--target", "ill", "--model", name, "-o", path, *flag]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        model = load_model(path)
        proba.append(model.predict_proba(table))
        assert list(model.classes_) == ["no", "very", "yes"]
    assert np.allclose(*proba, atol=1e-7)


def test_a_machine_with_a_kernel_is_not_fitted_to_a_stream(tmp_path):
    people(50).to_csv(tmp_path / "t.csv", index=False)
    command = ["fit", str(tmp_path / "t.csv"), "--target", "ill", "--model", "svm-rbf", "--stream"]
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "m.safetensors")])
    assert done.exit_code == 1 and "cannot be fitted in a stream" in done.output


def test_the_pass_that_learns_the_encoding_counts(tmp_path):
    people(100).to_csv(tmp_path / "t.csv", index=False)
    source = sx.scan_csv(tmp_path / "t.csv", target="ill")
    assert sx.LinearDiscriminantAnalysis().fit(source).fit_.passes == 2
    assert sx.LinearDiscriminantAnalysis().fit(source).fit_.passes == 1  # what was learnt is known


def test_a_streamed_fit_shows_its_passes_and_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("separatrix.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    written(people(300), tmp_path / "t")
    command = [
        "fit",
        "--stream",
        str(tmp_path / "t"),
        "--target",
        "ill",
        "--model",
        "lda",
        "-o",
        str(tmp_path / "m.safetensors"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    size = sum(file.stat().st_size for file in (tmp_path / "t").iterdir()) / 1e6
    assert [f"pass {k}, {size:.1f} MB of {size:.1f} MB" in done.output for k in (1, 2)] == [True, True]
    assert "pass 1" not in CliRunner().invoke(app, [*command, "--quiet"]).output


@pytest.mark.parametrize("metric", ["auc", "balanced_accuracy", "f1", "brier", "log_loss", "accuracy"])
def test_a_stream_is_ranked_by_any_metric(tmp_path, metric):
    source = streaming.table_source(written(people(300), tmp_path / "t"), "ill")
    found = compare_stream(source, cv=3, families="baseline,lda,naive-bayes", metric=metric)
    assert found.ranked_by == metric
    means = [one.scores[metric].mean for one in found.candidates]
    assert means == sorted(means, reverse=metric not in ("brier", "log_loss"))


def test_areas_of_two_classes_are_of_the_second(tmp_path):
    table = people(400)
    table["ill"] = table["ill"].replace({"very": "yes"})
    found = compare_stream(streaming.table_source(written(table, tmp_path / "t"), "ill"), cv=3, families="baseline,lda")
    scores = {one.family: one.scores["auc"].mean for one in found.candidates}
    assert scores["baseline"] == 0.5 and 0.5 < scores["lda"] <= 1.0
