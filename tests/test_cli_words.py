"""What commands say of tables on standard input, of rows by number, of times, and of columns that are not there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from separatrix.cli.main import app
from separatrix.comparison.comparison import compare
from separatrix.comparison.folds import stratified_folds
from separatrix.comparison.measures import Score, standard_error
from separatrix.comparison.scores import Candidate, rank, recommend
from separatrix.export.model_file import save_model
from separatrix.tables import TableSchema
from separatrix.tables.columns import of_time


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.normal(size=90)
    return pd.DataFrame({"a": a, "b": rng.normal(size=90), "y": np.where(a + rng.normal(size=90) > 0, "up", "down")})


@pytest.fixture(scope="module")
def model(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_model(compare(table, "y", families=["lda"]).best, path)
    return str(path)


def told(*arguments: str, text: str = "") -> tuple[int, str]:
    """The exit code of a command with a table on standard input, and what it says."""
    done = CliRunner().invoke(app, arguments, input=text, env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_every_command_that_reads_a_table_reads_standard_input(table, model):
    text = table.to_csv(index=False)
    code, said = told("evaluate", model, "-", text=text)
    assert code == 0 and "90 rows" in said
    code, said = told("explain", model, "-", "--row", "3", text=text)
    assert code == 0 and said.startswith("Row 3 is decided to be")


def test_what_is_wrong_with_standard_input_is_not_said_of_a_file_that_nobody_has_seen(model):
    for command in (["evaluate", model, "-"], ["explain", model, "-"], ["predict", model, "-", "-o", "-", "--quiet"]):
        code, said = told(*command)
        assert code == 1 and said.startswith("separatrix: standard input: the file is empty"), said


def test_a_row_that_is_not_there_is_counted_as_the_option_counts(table, model):
    code, said = told("explain", model, "-", "--row", "91", text=table.to_csv(index=False))
    assert code == 1 and "--row 91: stdin.csv has 90 rows, counted from 1." in said


@pytest.mark.parametrize("what", ["duration[us]", "time32[s]", "time64[us]"])
def test_times_without_a_day_are_not_to_be_declared_dates(what):
    assert "type COLUMN=date" not in of_time(what) and "hours" in of_time(what)
    assert "type COLUMN=date" in of_time("timestamp[us]") and "type COLUMN=date" in of_time("date32[day]")


def test_what_is_advised_of_a_column_of_time_works():
    days, times = [f"2024-01-{i:02d}" for i in range(1, 21)], [f"{i}:30" for i in range(20)]
    given = pa.table(
        {
            "day": days,
            "time": times,
            "span": pa.array(range(20), pa.duration("s")),
            "x": [i % 7 for i in range(20)],
            "y": ["p", "q"] * 10,
        }
    )
    schema = TableSchema.infer(given, "y")
    advised = {one.name for one in schema.columns if "--type COLUMN=date" in one.reason}
    assert advised == {"day"} and {one.name for one in schema.columns if one.kind == "left_out"} >= {
        "day",
        "time",
        "span",
    }
    compare(given, "y", families=["lda"], types=dict.fromkeys(advised, "date"))


def test_a_column_of_dates_that_is_missing_is_named_once():
    days = [f"2024-01-{i:02d}" for i in range(1, 21)]
    model = compare(
        pa.table({"day": days, "y": ["p", "q"] * 10}), "y", families=["baseline"], types={"day": "date"}
    ).best
    with pytest.raises(ValueError, match="has no column 'day'; it has 'x'"):
        model.predict(pa.table({"x": [1.0]}))


def test_a_class_of_one_row_comes_with_the_option_that_leaves_it_out():
    with pytest.raises(ValueError, match="--rare-class drop"):
        stratified_folds(np.array([0, 0, 0, 1]), np.array(["a", "b"]), 2, 1, 0)


def test_what_one_model_is_ahead_by_is_compared_with_the_error_that_was_passed():
    def candidate(family: str, simplicity: int, folds: list[float]) -> Candidate:
        values = np.array(folds)
        score = Score(float(values.mean()), standard_error(values, 5), values)
        scores = {name: score for name in ("cost", "accuracy")}
        return Candidate(family, family, simplicity, scores, 0.0, {}, None, "", "overlap", np.zeros(5, dtype=int))

    steady, failing = (
        candidate("lda", 3, [1.0, 1.01, 0.99, 1.0, 1.0]),
        candidate("logistic", 5, [1.0, 1.0, 1.0, 1.0, 2.0]),
    )
    ordered = rank([steady, failing], "cost", 5)
    _, reason = recommend(ordered, "cost", 5)
    assert "is ahead of logistic by 0.2 ± " in reason and "more than the error of its own cost" in reason
