"""Every form in which a model leaves Python, from the registry; and one that is registered here, through the command line."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from separatrix import (
    SVC,
    GaussianNB,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    load_model,
    save_model,
    to_json,
    to_sql,
)
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


@pytest.mark.parametrize(("kernel", "gap"), [("linear", 1.0), ("rbf", 0.3)])
@pytest.mark.parametrize("ties", ["first", "scores"])
def test_calibrated_machines_of_several_classes_leave_as_json(kernel: str, gap: float, ties: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=160)
    X = rng.normal(size=(160, 2)) + gap * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y]
    model = SVC(kernel=kernel, calibration="sigmoid", break_ties=ties == "scores", random_state=0).fit(X, y)
    document = json.loads(to_json(model))
    rule, link = document["rule"], document["link"]
    assert link["kind"] == "coupled"
    assert any("the first of those that tie, this one" in sentence for sentence in document["formula"]) == (
        ties == "first"
    )
    z = np.array(
        [[(x - f["centre"]) / f["scale"] for x, f in zip(row, document["features"], strict=True)] for row in X]
    )
    pairs = rule["pairs"]
    if kernel == "linear":
        f = (z - pairs["centre"]) @ np.transpose(pairs["weights"]) + pairs["constants"]
    else:
        points, k = np.array(pairs["points"]), pairs["kernel"]
        gram = np.exp(-k["gamma"] * ((z[:, None] - points) ** 2).sum(axis=2))
        f = gram @ np.array(pairs["coefficients"]) + pairs["constants"]
    below, above = np.nextafter(0.5, 0.0), np.nextafter(0.5, 1.0)
    found, bent = [], 0
    for scores in f:
        r, votes, sums = np.zeros((4, 4)), np.zeros(4), np.zeros(4)
        for i, (a, b) in enumerate(combinations(range(4), 2)):
            p = 1.0 / (1.0 + np.exp(link["slopes"][i] * scores[i] + link["constants"][i]))
            p = np.clip(max(p, above) if scores[i] > 0 else min(p, below), 1e-7, 1 - 1e-7)
            r[a, b], r[b, a] = p, 1.0 - p
            votes[a if scores[i] >= 0 else b] += 1
            sums[a] += scores[i]
            sums[b] -= scores[i]
        system, right = np.zeros((5, 5)), np.array([0.0, 0, 0, 0, 1])
        for a in range(4):
            system[a, a] = sum(r[b, a] ** 2 for b in range(4))
            for b in range(4):
                if a != b:
                    system[a, b] = -r[a, b] * r[b, a]
            system[a, 4] = system[4, a] = 1.0
        p = np.maximum(np.linalg.solve(system, right)[:4], 1e-7)
        p /= p.sum()
        predicted = votes.argmax() if ties == "first" else (votes + sums / (3 * (np.abs(sums) + 1))).argmax()
        if p.argmax() != predicted:
            bent += 1
            pool = [predicted]
            for other in [a for a in np.argsort(-p) if a != predicted]:
                if p[other] > np.mean(p[pool]):
                    pool.append(other)
                else:
                    break
            p[pool] = np.mean(p[pool])
        found.append(p)
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-9, atol=1e-13)
    assert bent > 0  # the rows that need their class to win are among them
    with pytest.raises(ValueError, match="system of equations"):
        to_sql(model)
