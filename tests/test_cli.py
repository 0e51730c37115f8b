"""The command line, end to end: files in, files and exit codes out.

What ends a process (Ctrl-C, pipes, exit codes of the installed command) runs in processes of its own; the rest runs in this
one, through the same entry point.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from separatrix import load_model
from separatrix.cli import inspect as inspect_command
from separatrix.cli import main
from separatrix.cli.main import app
from separatrix.comparison import FAMILIES
from separatrix.tables.reading import read_table

ROOT = Path(__file__).resolve().parents[1]
PENGUINS = ROOT / "examples" / "data" / "penguins.csv"
COMMAND = Path(sys.executable).with_name("separatrix")


def call(*arguments):
    """The command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.stderr
    return result


def failed(*arguments, words):
    """The command ends with 1 and one line on stderr that has these words; what it says."""
    result = call(*arguments)
    assert result.exit_code == 1, (result.exit_code, result.output)
    assert result.stderr.startswith("separatrix: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr
    return result.stderr


def start(*arguments):
    """The installed command in a process of its own, which listens to Ctrl-C whatever started us."""
    return subprocess.Popen(
        [COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """The folder of a comparison, and what the command printed."""
    out = tmp_path_factory.mktemp("compared") / "deep" / "folder"
    ran = subprocess.run(
        [COMMAND, "compare", PENGUINS, "--target", "sex", "--families", "baseline,lda,logistic", "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return out, ran


@pytest.fixture(scope="module")
def species(tmp_path_factory):
    """A model of three classes."""
    path = tmp_path_factory.mktemp("model") / "species.safetensors"
    done("fit", PENGUINS, "--target", "species", "--model", "lda", "-o", path)
    return path


# -- compare and predict ----------------------------------------------------------------------------------------------


def test_compare_ranks_recommends_and_writes(compared):
    out, ran = compared
    assert sorted(path.name for path in out.iterdir()) == ["model.safetensors", "report.html"]
    assert (out / "report.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    lines = ran.stdout.splitlines()
    assert (
        max(len(line) for line in lines if str(out.parent) not in line) <= 80
    )  # how long a path is, is not ours to say
    ranked = [re.match(r" *(\d+)([*= ]) +(\S+) +\d\.\d{3} ± \d\.\d{3}", line) for line in lines]
    ranks = {match[3]: (match[1], match[2]) for match in ranked if match}
    assert list(ranks)[-1] == "baseline"
    assert [rank for rank, _ in ranks.values()] == ["1", "2", "3"]
    model = load_model(out / "model.safetensors")
    assert ranks[model.family][1] == "*"
    assert f"Recommended: {model.family}." in ran.stdout
    for said in ("log-loss", "accuracy", "AUC", "certificate", "overlap", "by guessing", "333 rows"):
        assert said in ran.stdout
    assert "11" in next(line for line in lines if line.startswith("- ") and "sex" in line)  # rows without a target
    assert str(out / "report.html") in ran.stdout.replace("\n", "")
    assert "%" in ran.stderr  # plain lines
    assert "\x1b" not in ran.stdout + ran.stderr


def test_a_wide_terminal_has_one_table(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "150")
    result = done(
        "compare", PENGUINS, "--target", "sex", "--families", "lda", "--folds", 2, "--out", tmp_path, "--quiet"
    )
    head = next(line for line in result.stdout.splitlines() if "log-loss" in line and "model" in line)
    assert " ".join(head.split()) == "model log-loss accuracy AUC balanced F1 Brier calibration fit certificate"
    assert result.stderr == ""


def test_predictions_of_a_compared_model_are_those_of_python(compared, tmp_path):
    out, _ = compared
    path = tmp_path / "predictions.csv"
    result = done("predict", out / "model.safetensors", PENGUINS, "-o", path, "--keep", "species,year")
    model, table = load_model(out / "model.safetensors"), read_table(PENGUINS)
    written = pd.read_csv(path, keep_default_na=False)
    assert written.columns.tolist() == ["species", "year", "prediction", "prob_female", "prob_male"]
    assert np.array_equal(written[["prob_female", "prob_male"]].to_numpy(), model.predict_proba(table))
    assert written["prediction"].tolist() == model.predict(table).tolist()
    assert written["species"].tolist() == table["species"].to_pylist()
    assert "Wrote 344 predictions" in result.stdout
    assert "'body_mass_g': 2 values missing" in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["predictions.csv"]


@pytest.mark.parametrize("family", ["naive-bayes", "least-squares", "rda", "linear-svm", "baseline"])
def test_every_kind_of_model_predicts_as_in_python(family, tmp_path):
    path = tmp_path / "model.safetensors"
    done("fit", PENGUINS, "--target", "species", "--model", family, "-o", path)
    done("predict", path, PENGUINS, "-o", tmp_path / "p.parquet")
    model, table = load_model(path), read_table(PENGUINS)
    written = pd.read_parquet(tmp_path / "p.parquet")
    assert written["prediction"].tolist() == model.predict(table).tolist()
    if model.has_probabilities:
        assert np.array_equal(written.filter(like="prob_").to_numpy(), model.predict_proba(table))
    else:
        assert written.columns.tolist() == ["prediction"]


def test_every_format_gives_the_same_predictions(species, tmp_path):
    table = pd.read_csv(PENGUINS)
    given = {
        "in.csv": lambda path: table.to_csv(path, index=False),
        "in.tsv": lambda path: table.to_csv(path, index=False, sep="\t"),
        "in.csv.gz": lambda path: path.write_bytes(gzip.compress(PENGUINS.read_bytes())),
        "in.parquet": lambda path: table.to_parquet(path, index=False),
        "in.arrow": lambda path: table.to_feather(path),
    }
    read = {
        "csv": pd.read_csv,
        "tsv": lambda path: pd.read_csv(path, sep="\t"),
        "parquet": pd.read_parquet,
        "arrow": lambda path: pa.ipc.open_file(path).read_all().to_pandas(),
    }
    model = load_model(species)
    expected = model.predict_proba(read_table(PENGUINS))
    for (name, write), (suffix, back) in zip(given.items(), [*read.items(), ("csv", read["csv"])], strict=True):
        write(tmp_path / name)
        done("predict", species, tmp_path / name, "-o", tmp_path / f"out.{suffix}", "--quiet")
        written = back(tmp_path / f"out.{suffix}")
        assert written.columns.tolist() == ["prediction", *(f"prob_{label}" for label in model.classes_)]
        np.testing.assert_allclose(written.iloc[:, 1:].to_numpy(), expected, rtol=1e-12, atol=1e-300)


# A byte-order mark, semicolons, decimal commas, missing codes, quotes, newlines inside them, a counter and a constant.
MESSY = "\ufeffno;size;colour;note;site;sold\r\n" + "".join(
    f'{i};{size};{colour};"a ""note""; {i}\r\nin two lines";north;{sold}\r\n'
    for i, size, colour, sold in (
        (
            i,
            "NA" if i % 11 == 3 else f"{i % 7},{i % 10}",
            "?" if i % 13 == 5 else ["red", '"blue;green"', "grey"][i % 3],
            "yes" if (i % 7 > 3) ^ (i % 9 == 0) else "no",
        )
        for i in range(1, 121)
    )
)


def test_a_messy_file_from_end_to_end(tmp_path):
    data, new, out = tmp_path / "messy.csv", tmp_path / "new.csv", tmp_path / "out"
    data.write_bytes(MESSY.encode())
    result = done("compare", data, "--target", "sold", "--families", "naive-bayes,logistic", "--out", out, "--quiet")
    said = " ".join(result.stdout.split())
    for words in ("no: It counts the rows", "site: It is constant", "note: It has 120 different texts"):
        assert words in said
    model = load_model(out / "model.safetensors")
    kinds = {column.name: column.kind for column in model.schema.columns}
    assert kinds == {
        "no": "left_out",
        "size": "numeric",
        "colour": "categorical",
        "note": "left_out",
        "site": "left_out",
    }
    # Other columns, another order, another delimiter that the values need quotes for, and a colour never seen.
    new.write_text('colour,extra,size\nviolet,1,"4,5"\n"blue;green",2,"1,0"\n,3,\nred,4,-\n', encoding="utf-8")
    result = done("predict", out / "model.safetensors", new, "-o", tmp_path / "p.tsv", "--keep", "extra,colour")
    assert "Column 'colour': 1 value of no category that the model has, such as 'violet'." in result.stderr
    assert "Column 'colour': 1 value missing." in result.stderr
    assert "Column 'size': 2 values missing." in result.stderr
    written = pd.read_csv(tmp_path / "p.tsv", sep="\t")
    assert written["extra"].tolist() == [1, 2, 3, 4]
    assert written["colour"].tolist()[:2] == ["violet", "blue;green"]
    assert set(written["prediction"]) <= {"yes", "no"}
    np.testing.assert_allclose(written[["prob_no", "prob_yes"]].sum(axis=1), 1.0, rtol=1e-12)


def test_an_unseen_value_of_a_flag_is_missing_and_counted(tmp_path):
    data = written(tmp_path, "data.csv", "size,flag,y\n" + "1.5,yes,a\n2.5,no,b\n4,yes,b\n3,no,a\n" * 5)
    done("fit", data, "--target", "y", "--model", "logistic", "-o", tmp_path / "m.safetensors")
    new = written(tmp_path, "new.csv", "size,flag\n1,yes\n2,maybe\n3,\n4,maybe\n")
    result = done("predict", tmp_path / "m.safetensors", new, "-o", tmp_path / "p.csv")
    assert "Column 'flag': 1 value missing." in result.stderr
    assert (
        "Column 'flag': 2 values of no category that the model has, such as 'maybe', read as missing." in result.stderr
    )
    assert "100% 4 rows" in result.stderr
    assert len(pd.read_csv(tmp_path / "p.csv")) == 4


def test_lists_are_kept_in_parquet_only(tmp_path, species):
    pd.read_csv(PENGUINS).head(3).assign(tags=[["a"], [], ["b", "c"]]).to_parquet(tmp_path / "in.parquet")
    failed(
        *("predict", species, tmp_path / "in.parquet", "-o", tmp_path / "p.csv", "--keep", "tags", "--quiet"),
        words=["'tags'", ".parquet"],
    )
    done("predict", species, tmp_path / "in.parquet", "-o", tmp_path / "p.parquet", "--keep", "tags")
    assert pq.read_table(tmp_path / "p.parquet").column("tags").to_pylist() == [["a"], [], ["b", "c"]]
    assert not (tmp_path / "p.csv").exists()


def test_text_output_is_quoted_where_it_must_be(tmp_path, species):
    notes = ["a,b", 'say "hi"', "two\nlines", "plain"]
    pd.read_csv(PENGUINS).head(4).assign(**{"a, b": notes}).to_parquet(tmp_path / "in.parquet")
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        out = tmp_path / f"out{suffix}"
        done("predict", species, tmp_path / "in.parquet", "-o", out, "--keep", 'year,"a, b"')
        written = pd.read_csv(out, sep=delimiter)
        assert written.columns.tolist()[:2] == ["year", "a, b"]
        assert written["a, b"].tolist() == notes


def test_costs_choose_the_action(tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("sex,male,female,ask again\nmale,0,1,0.01\nfemale,50,0,0.01\n", encoding="utf-8")
    options = ("--target", "sex", "--loss", costs)
    ran = done("compare", PENGUINS, *options, "--families", "lda", "--out", tmp_path / "out", "--quiet")
    assert re.search(r"model +cost", ran.stdout)
    done("fit", PENGUINS, *options, "--model", "lda", "-o", tmp_path / "m.safetensors")
    for model in (tmp_path / "out" / "model.safetensors", tmp_path / "m.safetensors"):
        done("predict", model, PENGUINS, "-o", tmp_path / "p.csv")
        written = pd.read_csv(tmp_path / "p.csv")
        expected = written[["prob_female", "prob_male"]].to_numpy() @ [[50, 0, 0.01], [0, 1, 0.01]]
        assert (
            written["prediction"].tolist()
            == np.array(["male", "female", "ask again"])[expected.argmin(axis=1)].tolist()
        )
        assert "ask again" in set(written["prediction"])


def test_whole_numbers_as_classes_stay_numbers(tmp_path):
    table = pd.read_csv(PENGUINS).assign(heavy=lambda t: (t["body_mass_g"] > 4200).astype(int))
    table.drop(columns="body_mass_g").to_parquet(tmp_path / "in.parquet")
    done("fit", tmp_path / "in.parquet", "--target", "heavy", "--model", "lda", "-o", tmp_path / "m.safetensors")
    done("predict", tmp_path / "m.safetensors", tmp_path / "in.parquet", "-o", tmp_path / "p.parquet")
    written = pq.read_table(tmp_path / "p.parquet")
    assert written.column_names == ["prediction", "prob_0", "prob_1"]
    assert pa.types.is_integer(written.schema.field("prediction").type)


# -- fit, inspect, export ---------------------------------------------------------------------------------------------


def test_settings_reach_the_model(tmp_path):
    path = tmp_path / "m.safetensors"
    settings = ("--set", "C=0.25", "--set", "fit_intercept=false", "--set", "solver=lbfgs")
    result = done("fit", PENGUINS, "--target", "sex", "--model", "logistic", *settings, "-o", path)
    parameters = load_model(path).estimator.get_params()
    assert (parameters["C"], parameters["fit_intercept"], parameters["solver"]) == (0.25, False, "lbfgs")
    assert "Converged" in result.stdout


def test_class_weights_go_by_label(tmp_path):
    options = ("fit", PENGUINS, "--target", "sex", "--model", "logistic", "-o", tmp_path / "m.safetensors")
    done(*options, "--set", 'class_weight={"male": 3, "female": 1}')
    assert load_model(tmp_path / "m.safetensors").estimator.class_weight == {0: 1, 1: 3}
    failed(*options, "--set", 'class_weight={"mael": 3}', words=["'mael'", "not a class", "female, male"])


def test_warnings_are_sentences(tmp_path):
    options = ("--model", "logistic", "--set", "C=Infinity", "-o", tmp_path / "m.safetensors")
    said = done("fit", PENGUINS, "--target", "species", *options).stderr
    assert said.startswith("separatrix: ")
    assert "separable" in said
    assert "Warning" not in said


def test_inspect_says_what_a_file_holds(compared, species):
    out, _ = compared
    said = done("inspect", out / "model.safetensors").stdout
    for words in (
        "classes: female, male",
        "target: sex",
        "species: categorical (Adelie, Chinstrap, Gentoo)",
        "log loss: 0.",
    ):
        assert words in said
    assert "classes: Adelie, Chinstrap, Gentoo" in done("inspect", species).stdout


def test_exports_hold_the_model(species, tmp_path):
    done("export", species, "--to", "sql", "--dialect", "sqlite", "--table", "birds", "-o", tmp_path / "m.sql")
    table = pd.read_csv(PENGUINS)
    with sqlite3.connect(":memory:") as database:
        table.to_sql("birds", database, index=False)
        found = pd.read_sql((tmp_path / "m.sql").read_text(encoding="utf-8"), database)
    proba = load_model(species).predict_proba(read_table(PENGUINS))
    assert all(
        any(np.allclose(found[name], p, atol=1e-9) for name in found if found[name].dtype == float) for p in proba.T
    )
    done("export", species, "--to", "json", "-o", tmp_path / "m.json")
    assert "Chinstrap" in (tmp_path / "m.json").read_text(encoding="utf-8")
    done("export", species, "--to", "onnx", "-o", tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size > 100


# -- errors: a code, a sentence, and nothing left behind --------------------------------------------------------------


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        (None, "y", ["nothing.csv", "no file"]),
        ("", "y", ["data.csv", "empty"]),
        ("x,y\n", "y", ["data.csv", "no rows"]),
        ("x,speceis\n1,a\n2,b\n", "species", ["'species'", "did you mean 'speceis'"]),
        ("x,y\n1,a\n2,a\n3,a\n", "y", ["'y'", "one class", "'a'"]),
        ("x,y\n1,a\n2,b,c\n3,a\n", "y", ["line 3", "3 fields"]),
        ("x,x,y\n1,1,a\n2,2,b\n", "y", ["'x'", "rename"]),
        ("x,y\n1,a\n1,b\n1,a\n1,b\n", "y", ["constant"]),
    ],
)
@pytest.mark.parametrize("command", ["compare", "fit"])
def test_bad_tables_are_sentences(command, text, target, words, tmp_path):
    data = tmp_path / "nothing.csv" if text is None else written(tmp_path, "data.csv", text)
    before = set(tmp_path.iterdir())
    options = (
        ("--out", tmp_path / "out") if command == "compare" else ("--model", "lda", "-o", tmp_path / "m.safetensors")
    )
    failed(command, data, "--target", target, *options, words=words)
    assert set(tmp_path.iterdir()) == before


def test_a_folder_that_was_there_is_left_as_it_was(tmp_path):
    mine = written(tmp_path, "report.html", "mine")
    failed("compare", PENGUINS, "--target", "sxe", "--out", tmp_path, words=["'sxe'", "did you mean 'sex'"])
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert mine.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "logistc"), ["'logistc'", "did you mean 'logistic'"]),
        (("--model", "logistic", "--set", "c=1"), ["no parameter 'c'", "C"]),
        (("--model", "logistic", "--set", "C"), ["--set C", "key=value"]),
        (("--model", "logistic", "--set", "C=1", "--set", "C=2"), ["C twice"]),
        (("--model", "logistic", "--set", "C=-1"), ["C"]),
    ],
)
def test_bad_settings_are_sentences(options, words, tmp_path):
    failed("fit", PENGUINS, "--target", "sex", *options, "-o", tmp_path / "m.safetensors", words=words)
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_be_fitted_names_the_class(tmp_path):
    out = tmp_path / "m.safetensors"
    failed("fit", PENGUINS, "--target", "species", "--model", "qda", "-o", out, words=["of class '", "not full rank"])


def test_bad_costs_and_families_are_sentences(tmp_path):
    costs = written(tmp_path, "costs.csv", "sex,male,female\nmale,0,1\n")
    options = ("--target", "sex", "--out", tmp_path / "out")
    failed("compare", PENGUINS, *options, "--loss", costs, words=["costs.csv", "no row for class", "female"])
    failed("compare", PENGUINS, *options, "--loss", tmp_path / "no.csv", words=["no file", "no.csv"])
    failed("compare", PENGUINS, *options, "--families", "lda,qad", words=["'qad'", "did you mean"])
    assert [path.name for path in tmp_path.iterdir()] == ["costs.csv"]


def test_unreadable_models_are_sentences(species, tmp_path):
    text = written(tmp_path, "text.safetensors", "not a model")
    short, changed = tmp_path / "short.safetensors", tmp_path / "changed.safetensors"
    content = species.read_bytes()
    short.write_bytes(content[:-9])
    changed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for command, *options in (("inspect",), ("export", "--to", "json", "-o", tmp_path / "m.json")):
        failed(command, tmp_path / "none.safetensors", *options, words=["no file", "none.safetensors"])
        failed(command, text, *options, words=["text.safetensors", "not a model file"])
        failed(command, changed, *options, words=["changed.safetensors", "checksum"])
        failed(command, short, *options, words=["short.safetensors"])
    failed("predict", text, PENGUINS, "-o", tmp_path / "p.csv", words=["text.safetensors", "not a model file"])
    assert len(list(tmp_path.iterdir())) == 3


def test_tables_that_a_model_cannot_read_are_sentences(species, tmp_path):
    table = pd.read_csv(PENGUINS)
    out = ("-o", tmp_path / "out.csv")
    table.drop(columns="island").to_csv(tmp_path / "lacks.csv", index=False)
    failed("predict", species, tmp_path / "lacks.csv", *out, words=["schema mismatch", "'island'"])
    wrong = table.astype({"year": object})
    wrong.loc[100, "year"] = "MMVII"
    wrong.to_csv(tmp_path / "wrong.csv", index=False)
    failed("predict", species, tmp_path / "wrong.csv", *out, words=["'year'", "row 101", "'MMVII'"])
    failed("predict", species, tmp_path / "none.csv", *out, words=["no file", "none.csv"])
    failed("predict", species, written(tmp_path, "empty.csv", ""), *out, words=["empty.csv", "empty"])
    failed("predict", species, PENGUINS, *out, "--keep", "iland", words=["'iland'", "did you mean 'island'"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.csv", "lacks.csv", "wrong.csv"]


def test_an_error_late_in_a_file_leaves_nothing(species, tmp_path):
    head, _, rows = PENGUINS.read_text(encoding="utf-8").partition("\n")
    data = written(tmp_path, "long.csv", head + "\n" + rows * 600 + "Adelie,Dream,1,2,3,4,male,late\n")
    failed("predict", species, data, "-o", tmp_path / "out.csv", "--quiet", words=["'year'", f"row {344 * 600 + 1} "])
    assert [path.name for path in tmp_path.iterdir()] == ["long.csv"]


def test_outputs_that_cannot_be_written_are_sentences(species, tmp_path):
    data = shutil.copy(PENGUINS, tmp_path / "data.csv")
    failed("predict", species, data, "-o", tmp_path / "out.xlsx", words=["out.xlsx", ".parquet"])
    failed("predict", species, data, "-o", tmp_path / "no" / "out.csv", words=["no folder", "no"])
    failed("predict", species, data, "-o", data, words=["data.csv", "another file"])
    failed("predict", species, data, "-o", tmp_path / "p.csv", "--keep", "sex,sex", words=["two columns 'sex'"])
    (tmp_path / "folder.json").mkdir()
    failed("export", species, "--to", "json", "-o", tmp_path / "folder.json", words=["folder.json", "not a file"])
    failed("fit", data, "--target", "sex", "--model", "lda", "-o", tmp_path / "no" / "m", words=["no folder"])
    failed("compare", data, "--target", "sex", "--families", "lda", "--out", data, words=["data.csv"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "folder.json"]


def test_surprises_ask_to_be_reported(monkeypatch, species):
    def surprise(path):
        raise KeyError("unheard of")

    monkeypatch.setattr(inspect_command, "run", surprise)
    said = failed("inspect", species, words=["unheard of", "Please report it", "--debug"])
    assert "Traceback" not in said
    result = call("inspect", species, "--debug")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "m"),
        ("compare", "d.csv"),
        ("export", "m", "--to", "xml", "-o", "x"),
        ("compute",),
        ("fit", "--nonsense"),
    ],
)
def test_wrong_usage_is_two(arguments):
    assert call(*arguments).exit_code == 2


# -- processes of their own -------------------------------------------------------------------------------------------


def test_the_installed_command_ends_with_codes_and_one_line(tmp_path):
    ran = subprocess.run([COMMAND, "inspect", tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == f"separatrix: There is no file {tmp_path / 'none'}.\n"
    ran = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert all(name in ran.stdout for name in ("compare", "fit", "predict", "inspect", "export"))


def test_help_loads_nothing_heavy():
    code = (
        "import sys, separatrix; before = set(sys.modules); from separatrix.cli import main\n"
        "loaded = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(loaded & {'matplotlib', 'pyarrow', 'jinja2', 'onnx', 'rich', 'numpy', 'scipy', 'sklearn', 'numba'}))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_help_names_every_family():
    assert tuple(FAMILIES) == main.FAMILY_NAMES
    for command in ("compare", "fit"):
        shown = " ".join(done(command, "--help").stdout.replace("│", " ").split())
        assert all(name in shown for name in FAMILIES), command


@pytest.mark.parametrize("option", ["-o", "--out", "--output"])
def test_where_to_write_is_said_in_one_way(option, species, tmp_path):
    done("predict", species, PENGUINS, option, tmp_path / "p.csv", "--quiet")
    done("export", species, "--to", "json", option, tmp_path / "m.json")
    done("evaluate", species, PENGUINS, option, tmp_path / "e.json")
    assert (tmp_path / "e.json").exists()
    assert (tmp_path / "p.csv").exists()
    assert (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("separatrix comp", ["compare"]),
        ("separatrix fit d.csv --model logi", ["logistic", "logistic-l1"]),
        ("separatrix compare d.csv --families lda,q", ["lda,qda"]),
        ("separatrix export m --to s", ["sql"]),
        ("separatrix compare d.csv --targ", ["--target"]),
    ],
)
def test_tab_completes_commands_options_and_names(typed, offered):
    code = "import sys; sys.argv[0] = 'separatrix'; from separatrix.cli.command import main; main()"
    asked = {"_SEPARATRIX_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert sorted(ran.stdout.split()) == offered, ran.stderr


@pytest.mark.parametrize("package", ["typer", "sklearn"])
def test_ctrl_c_during_imports_is_quiet(package, tmp_path):
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupting:
    def find_spec(self, name, *rest):
        if name == {package!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["separatrix", "compare", {str(PENGUINS)!r}, "--target", "sex", "--out", {str(tmp_path / "out")!r}]
from separatrix.cli.command import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 130, ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") <= 1
    assert not (tmp_path / "out").exists()


def test_predictions_go_through_a_pipe(species):
    process = start("predict", species, PENGUINS, "-o", "-", "--quiet")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    lines = output.splitlines()
    assert lines[0] == "prediction,prob_Adelie,prob_Chinstrap,prob_Gentoo"
    assert len(lines) == 345


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """Enough rows to be interrupted, about 60 MB."""
    path = tmp_path_factory.mktemp("long") / "long.csv"
    head, _, rows = PENGUINS.read_bytes().partition(b"\n")
    path.write_bytes(head + b"\n" + rows * 4000)
    return path


def test_a_closed_pipe_ends_quietly(species, long_table):
    process = start("predict", species, long_table, "-o", "-", "--quiet")
    assert process.stdout.readline().startswith("prediction,")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 141


def test_ctrl_c_in_predict_leaves_nothing(species, long_table, tmp_path):
    process = start("predict", species, long_table, "-o", tmp_path / "out.csv", "--quiet")
    _until(lambda: any(path.stat().st_size > 0 for path in tmp_path.iterdir()), process)
    assert not (tmp_path / "out.csv").exists()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "separatrix: Interrupted; no file was written.\n")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_in_compare_leaves_nothing(tmp_path):
    process = start("compare", PENGUINS, "--target", "species", "--out", tmp_path / "out")
    assert "%" in process.stderr.readline()  # it is at work
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "separatrix: Interrupted; no file was written."
    assert "Traceback" not in errors
    assert not list(tmp_path.iterdir())


def _until(condition, process):
    for _ in range(6000):
        if condition():
            return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    pytest.fail("it did not happen within a minute")


# -- documentation ----------------------------------------------------------------------------------------------------


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    (tmp_path / "costs.csv").write_text(re.search(r"```text\n(.*?)```", page, flags=re.S)[1], encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    lines = [line for block in re.findall(r"```console\n(.*?)```", page, flags=re.S) for line in block.splitlines()]
    lines = [
        line for line in lines if " explore" not in line
    ]  # it serves until Ctrl-C; tests/test_explore.py starts it
    assert len(lines) == 9
    for line in lines:
        program, command, *arguments = shlex.split(line)
        assert program == "separatrix"
        done(command, *arguments, *(("--families", "lda,qda", "--folds", 2) if command == "compare" else ()))
    assert {"separatrix-out", "with-costs", "species.safetensors", "predictions.csv", "species.sql"} <= set(
        os.listdir()
    )
