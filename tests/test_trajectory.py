"""The display of a recorded path: its numbers are those of the fit, and its files open."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from separatrix import SVC, LinearClassifier, LogisticRegression, Perceptron
from separatrix.plots import TrajectoryDisplay

mpl.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a backend that needs no window
from PIL import Image


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Any:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 3))
    return X, (X @ [1.0, 0.5, 0.0] + rng.standard_normal(50) > 0).astype(int)


MODELS = [
    LogisticRegression(solver="gradient", eta0=0.05, record=True),
    LogisticRegression(C=np.inf, solver="irls", record=True),
    LinearClassifier("hinge", class_weight="balanced", record=True),
    SVC(kernel="linear", record=True),
    Perceptron(max_iter=3, tol=None, record=True),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_surface_is_the_objective_that_the_path_falls_on(rows: Any, model: Any) -> None:
    X, y = rows[0][:, :2], rows[1]
    model.fit(X, y)
    display = TrajectoryDisplay.from_estimator(model, X, y, grid_resolution=25)
    path = model.fit_.history
    assert np.array_equal(display.path, path.coef[:, 0]) and np.array_equal(display.objective, path.objective)
    assert display.surface.shape == (25, 25)
    last, at = path.intercept[-1, 0], (7, 19)
    w = np.array([display.x[at[1]], display.y[at[0]]])
    margins = (2 * y - 1) * (X @ w + last)
    value = {
        "LogisticRegression": lambda: np.logaddexp(0.0, -margins).sum() + (0.0 if np.isinf(model.C) else 0.5 * w @ w),
        "SVC": lambda: np.maximum(0.0, 1.0 - margins).sum() + 0.5 * w @ w,
        "LinearClassifier": lambda: (len(y) / 2 / np.bincount(y))[y] @ np.maximum(0.0, 1.0 - margins) + 0.5 * w @ w,
        "Perceptron": lambda: np.maximum(0.0, -margins).sum(),
    }[type(model).__name__]()
    assert display.surface[at] == pytest.approx(value, rel=1e-10)
    if not isinstance(model, Perceptron):  # what it ends at is the least of the objective
        ends = model.fit_.certificate.objective
        assert (display.surface >= ends - model.fit_.certificate.gap - 1e-9).all()


def test_columns_are_chosen_by_name_and_the_others_held(rows: Any) -> None:
    X, y = rows
    table = pd.DataFrame(X, columns=["a$", "b", "c"])
    model = LogisticRegression(solver="irls", record=True).fit(table, y)
    display = TrajectoryDisplay.from_estimator(model, table, y, features=["c", "a$"], grid_resolution=10)
    assert np.array_equal(display.path, model.fit_.history.coef[:, 0, [2, 0]])
    assert display.xlabel == "coefficient of c"
    i, j = 4, 8
    w = np.array([display.y[i], model.coef_[0, 1], display.x[j]])
    p = expit(X @ w + model.intercept_)
    assert display.surface[i, j] == pytest.approx(-np.log(np.where(y == 1, p, 1 - p)).sum() + 0.5 * w @ w, rel=1e-10)
    lines = TrajectoryDisplay.from_estimator(model, table, y, kind="boundaries", features=["c", "a$"])
    score = lines.planes[-1] @ [1.5, -0.5, 1.0]
    assert score == pytest.approx(
        model.decision_function(pd.DataFrame([[-0.5, X[:, 1].mean(), 1.5]], columns=table.columns))[0]
    )
    mixed = TrajectoryDisplay.from_estimator(model, table, y, features=["b", "intercept"], grid_resolution=10)
    assert np.array_equal(mixed.path[:, 1], model.fit_.history.intercept[:, 0]) and mixed.ylabel == "intercept"
    single = LogisticRegression(solver="irls", record=True).fit(X[:, :1], y)
    assert TrajectoryDisplay.from_estimator(single, X[:, :1], y, grid_resolution=5).ylabel == "intercept"


def test_boundaries_are_where_the_scores_vanish(rows: Any) -> None:
    X, y = rows[0][:, :2], rows[1]
    model = Perceptron(max_iter=3, tol=None, record=True).fit(X, y)
    display = TrajectoryDisplay.from_estimator(model, X, y, kind="boundaries")
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) == 2]
    assert 2 < len(lines) <= 24
    x, y_ = lines[-1].get_data()
    assert np.allclose(np.column_stack([x, y_]) @ model.coef_[0] + model.intercept_, 0.0, atol=1e-9)


def test_animations_are_written_whole(rows: Any, tmp_path: Any) -> None:
    X, y = rows[0][:, :2], rows[1]
    model = LogisticRegression(solver="gradient", eta0=0.02, record=True).fit(X, y)
    display = TrajectoryDisplay.from_estimator(model, X, y, grid_resolution=10)
    assert len(display.path) > 5
    display.save(tmp_path / "path.gif", max_frames=4, dpi=30)
    with Image.open(tmp_path / "path.gif") as picture:
        assert picture.format == "GIF" and picture.n_frames == 4
    lines = TrajectoryDisplay.from_estimator(model, X, y, kind="boundaries")
    lines.save(tmp_path / "path.html", max_frames=2, dpi=30)
    page = (tmp_path / "path.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64") == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["path.gif", "path.html"]
    with pytest.raises(ValueError, match=r"\.gif, \.html"):
        display.save(tmp_path / "path.mp4")


def test_what_has_no_path_is_refused(rows: Any) -> None:
    X, y = rows
    for model, options, sentence in (
        (LogisticRegression(), {}, "record=True"),
        (SVC(record=True), {}, "linear rule"),
        (LogisticRegression(record=True), {"kind": "movie"}, "kind is 'movie'"),
        (LogisticRegression(record=True), {}, "name the two columns"),
        (LogisticRegression(record=True), {"features": ["intercept", "x9"]}, "'x9'"),
        (LogisticRegression(record=True), {"features": ["intercept"]}, "give two columns"),
    ):
        with pytest.raises(ValueError, match=sentence):
            TrajectoryDisplay.from_estimator(model.fit(X, y), X, y, **options)
    several = LogisticRegression(record=True).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    with pytest.raises(ValueError, match="two classes"):
        TrajectoryDisplay.from_estimator(several, X, y)
