"""A fit that is killed after any pass goes on from its checkpoint to the same bits; checkpoints of other fits are refused."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone
from test_table_source import people

import separatrix as sx
from separatrix.data.journal import Journal


class Killed(BaseException):
    pass


def answers(model, source):
    ask = getattr(model, "predict_proba", None) or getattr(model, "decision_function", None) or model.predict
    return ask(source)


@pytest.fixture
def path(tmp_path):
    people(3000).to_parquet(tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def fit_and_be_killed(model, source, folder, reads):
    """Fit again and again, each time for so many passes, until it is done."""
    whole, deaths = Journal.result, 0
    while True:
        left = [reads]

        def result(self, key, read, count_pass, left=left):
            def once():
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return read()

            return whole(self, key, once, count_pass)

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Journal, "result", result)
                return clone(model).fit(source(), checkpoint=folder), deaths
        except Killed:
            deaths += 1
            assert deaths < 100


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        (sx.LogisticRegression(tol=1e-10), 1),
        (sx.LogisticRegression(solver="newton-cg"), 1),
        (sx.LogisticRegression(C=0.01, l1_ratio=1.0), 1),
        (sx.LinearClassifier(), 6),  # some of its passes leave values with the rows, and are read again
        (sx.LinearDiscriminantAnalysis(), 1),
        (sx.MixedNB(), 1),
        (sx.RidgeClassifier(), 1),
        (sx.OneVsRestClassifier(sx.LogisticRegression()), 1),
    ],
    ids=str,
)
def test_a_killed_fit_goes_on_to_the_same_bits(path, tmp_path, model, reads):
    def source():
        return sx.scan_parquet(path, target="ill")

    whole = clone(model).fit(source())
    resumed, deaths = fit_and_be_killed(model, source, tmp_path / "checkpoint", reads)
    assert deaths
    np.testing.assert_array_equal(answers(resumed, source()), answers(whole, source()))
    if hasattr(whole, "fit_"):
        assert resumed.fit_.passes == whole.fit_.passes and str(resumed.fit_.certificate) == str(whole.fit_.certificate)


def test_numbers_of_a_csv_file_go_on_too(tmp_path):
    people(2000)[["children", "height", "code"]].to_csv(tmp_path / "a.csv", index=False)

    def source():
        return sx.scan_csv(tmp_path / "a.csv", target="height")

    whole = sx.Ridge().fit(source())
    resumed, _ = fit_and_be_killed(sx.Ridge(), source, tmp_path / "checkpoint", 1)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


def test_a_killed_process_leaves_a_checkpoint_that_can_be_used(path, tmp_path):
    program = """
import sys, time, separatrix as sx
from separatrix.data.journal import Journal
write = Journal._write
def slowly(self, name, content):
    write(self, name, content)
    if name == "pass-000003":
        time.sleep(60)
Journal._write = slowly
sx.LogisticRegression(tol=1e-10).fit(sx.scan_parquet(sys.argv[1], target="ill"), checkpoint=sys.argv[2])
"""
    folder = tmp_path / "checkpoint"
    child = subprocess.Popen([sys.executable, "-c", program, str(path), str(folder)])
    try:
        for _ in range(600):
            if (folder / "pass-000003").exists():
                break
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    read = []

    def result(self, key, read_rows, count_pass, whole=Journal.result):
        return whole(self, key, lambda: (read.append(key), read_rows())[1], count_pass)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "result", result)
        resumed = sx.LogisticRegression(tol=1e-10).fit(sx.scan_parquet(path, target="ill"), checkpoint=folder)
    whole = sx.LogisticRegression(tol=1e-10).fit(sx.scan_parquet(path, target="ill"))
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert len(read) == len(list(folder.glob("pass-*"))) - 3


def test_a_checkpoint_of_anything_else_is_refused(path, tmp_path):
    folder = tmp_path / "checkpoint"
    source = sx.scan_parquet(path, target="ill")
    sx.LogisticRegression().fit(source, checkpoint=folder)
    sx.LogisticRegression().fit(source, checkpoint=folder)
    with pytest.raises(ValueError, match=r"checkpoint.* is of another fit: another model, or other parameters"):
        sx.LogisticRegression(C=2.0).fit(source, checkpoint=folder)
    with pytest.raises(ValueError, match="another fit"):
        sx.LinearDiscriminantAnalysis().fit(source, checkpoint=folder)
    with pytest.raises(ValueError, match="other data"):
        sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill", features=["age", "city"]), checkpoint=folder)
    os.utime(path, (1, 1))
    with pytest.raises(ValueError, match="other data"):
        sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=folder)
    head = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps({**head, "version": "0.0.1"}))
    with pytest.raises(ValueError, match=r"written by version 0\.0\.1"):
        sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=folder)
    with pytest.raises(ValueError, match="is a file"):
        sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=path)
    with pytest.raises(ValueError, match="holds other files"):
        sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="rows in files"):
        sx.LogisticRegression().fit(np.eye(2), [0, 1], checkpoint=tmp_path / "new")


class Foreign:
    def __reduce__(self):
        return os.system, ("touch executed",)


@pytest.mark.parametrize("content", [b"", b"torn", pickle.dumps(("key", True, Foreign()))])
def test_entries_that_are_not_ours_are_read_again_and_never_run(path, tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "checkpoint"
    first = sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=folder)
    (folder / "pass-000002").write_bytes(content)
    again = sx.LogisticRegression().fit(sx.scan_parquet(path, target="ill"), checkpoint=folder)
    np.testing.assert_array_equal(first.coef_, again.coef_)
    assert not (tmp_path / "executed").exists()
