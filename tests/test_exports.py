"""Every form in which a model leaves Python, from the registry; and one that is registered here, through the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from separatrix import GaussianNB, LinearDiscriminantAnalysis, LogisticRegression, load_model, save_model
from separatrix.cli.main import app
from separatrix.export.formats import FORMATS


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis(), GaussianNB(), LogisticRegression()], ids=repr)
def test_every_form_is_written_and_is_the_same_twice(name: str, model: object) -> None:
    fitted = model.fit(*load_iris(return_X_y=True))  # type: ignore[attr-defined]  # scikit-learn ships no types
    written = FORMATS[name](fitted)
    assert written and written == FORMATS[name](fitted)


def test_a_form_that_is_registered_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One function and one entry: the command line offers it, and the score form is all that it reads."""

    def weights(model: object, **options: object) -> bytes:
        return np.asarray(model.score_form().weights).tobytes()  # type: ignore[attr-defined]

    monkeypatch.setitem(FORMATS, "weights", weights)
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression().fit(X, y == 2)
    save_model(model, tmp_path / "model.safetensors")
    command = ["export", str(tmp_path / "model.safetensors"), "-o", str(tmp_path / "out"), "--to"]
    assert CliRunner().invoke(app, [*command, "weights"]).exit_code == 0
    np.testing.assert_allclose(np.frombuffer((tmp_path / "out").read_bytes()), model.coef_[0], rtol=1e-12)
    refused = CliRunner().invoke(app, [*command, "tables"])
    assert refused.exit_code == 2 and "json, onnx, sql, weights" in " ".join(refused.output.split())


def test_only_families_that_can_be_exported(tmp_path: Path) -> None:
    """The others are left out with the reason; the model that is written goes to the format that was asked for."""
    iris = load_iris(as_frame=True).frame
    iris.to_csv(tmp_path / "iris.csv", index=False)
    command = ["compare", str(tmp_path / "iris.csv"), "--target", "target", "--out", str(tmp_path / "out"), "--quiet"]
    command += ["--families", "lda,linear-svm,svm-rbf", "--folds", "3", "--exportable"]
    done = CliRunner().invoke(app, [*command, "sql", "--exportable", "json"])
    words = " ".join(done.output.split())
    assert done.exit_code == 0 and "Recommended: lda" in words
    assert "svm-rbf: SVC cannot be written as SQL" in words and "linear-svm: SVC cannot be written as SQL" in words
    assert "SELECT" in FORMATS["sql"](load_model(tmp_path / "out" / "model.safetensors")).decode()
    refused = CliRunner().invoke(app, [*command, "excel"])
    assert refused.exit_code != 0 and "no format; choose from json, onnx, sql" in " ".join(refused.output.split())
