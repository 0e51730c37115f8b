"""Displays in scikit-learn's style: numbers first, then a plot of exactly these."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from matplotlib.figure import Figure
from scipy.special import expit, ndtri
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as ReferenceLDA
from sklearn.linear_model import LogisticRegression as ReferenceLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as ReferenceSVC

import separatrix as sx
from separatrix import plots
from separatrix.data.text import one_line
from separatrix.plots import style

mpl.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a backend that needs no window

ODD = ["a$b_$", "<script>", "_hidden\nname", "$\\frac{$"]


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def flowers(n_classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Iris with names that plots have trouble with."""
    X, y = load_iris(return_X_y=True)
    labels = np.array(["c_$x$", "<b>", "_third"])[y]
    kept = y >= 3 - n_classes
    return pd.DataFrame(X[kept], columns=ODD), labels[kept]


def tumours() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return (X - X.mean()) / X.std(), np.array(["malignant", "benign"])[y]


def decision_boundary(X, y, ax):
    model = sx.LogisticRegression().fit(X, y)
    return plots.DecisionBoundaryDisplay.from_estimator(model, X, y, features=[0, 1], grid_resolution=20, ax=ax)


def support_vectors(X, y, ax):
    model = sx.SVC().fit(X.iloc[:, :2], y)
    return plots.DecisionBoundaryDisplay.from_estimator(model, X.iloc[:, :2], y, grid_resolution=20, ax=ax)


def coefficient_path(X, y, ax):
    return plots.CoefficientPathDisplay.from_path(sx.logistic_path(X, y, Cs=4), feature_names=list(X), ax=ax)


def calibration(X, y, ax):
    return plots.CalibrationDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, y, pos_label=y[0], name=ODD[0], ax=ax)


def risk_coverage(X, y, ax):
    return plots.RiskCoverageDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, y, name=ODD[0], ax=ax)


def posterior_predictive(X, y, ax):
    model = sx.BayesianLogisticRegression(1.0).fit(X, y)
    return plots.PosteriorPredictiveDisplay.from_estimator(model, X, feature=0, class_of_interest=y[0], ax=ax)


def discriminant_coordinates(X, y, ax):
    return plots.DiscriminantCoordinatesDisplay.from_estimator(
        sx.LinearDiscriminantAnalysis().fit(X, y), X, y, grid_resolution=20, ax=ax
    )


def coefficients(X, y, ax):
    return plots.CoefficientDisplay.from_estimator(sx.RidgeClassifier().fit(X, y), ax=ax)


def score_distribution(X, y, ax):
    return plots.ScoreDistributionDisplay.from_estimator(sx.LinearDiscriminantAnalysis().fit(X, y), X, y, ax=ax)


DRAWN = [
    decision_boundary,
    support_vectors,
    coefficient_path,
    calibration,
    risk_coverage,
    posterior_predictive,
    discriminant_coordinates,
    coefficients,
    score_distribution,
]


def svg(figure: Figure) -> str:
    """The figure as a file in which text is text."""
    with mpl.rc_context({"svg.fonttype": "none"}):
        file = io.StringIO()
        figure.savefig(file, format="svg")
    return file.getvalue()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("draw", DRAWN)
def test_odd_names_are_drawn_as_they_are(draw, n_classes):
    X, y = flowers(n_classes)
    display = draw(X, y, None)
    text = svg(display.figure_)
    assert "<script" not in text and "<b>" not in text
    names = [ODD[0], ODD[1], "c_$x$", "<b>", "_third"]
    shown = [name.replace("<", "&lt;").replace(">", "&gt;") for name in names]
    assert any(f">{name}" in text or f" {name}<" in text for name in shown)
    assert "\\$" not in text  # neither read as a formula, nor with the mark that prevents it


@pytest.mark.parametrize("draw", DRAWN)
def test_a_display_plots_twice_and_where_it_is_told_and_changes_no_setting(draw):
    X, y = flowers(3)
    before = dict(mpl.rcParams)
    ax = Figure().subplots()
    display = draw(X, y, ax)
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert ax.patch.get_alpha() is None  # given axes keep their background
    assert display.plot() is display
    assert display.ax_ is not ax and display.figure_.patch.get_alpha() == 0.0
    drawn = [len(each.get_children()) for each in (ax, display.ax_)]
    assert drawn[0] == drawn[1]
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("draw", DRAWN)
def test_the_look_can_be_changed_by_any_of_matplotlibs_names(draw):
    X, y = flowers(3)
    display = draw(X, y, Figure().subplots())
    if draw in (coefficient_path, calibration, risk_coverage, posterior_predictive, coefficients):
        display.plot(Figure().subplots(), lw=3.0)
        assert any(line.get_linewidth() == 3.0 for line in display.ax_.get_lines())
    else:
        display.plot(Figure().subplots(), alpha=0.5)
        artists = [*display.ax_.images, *display.ax_.collections, *display.ax_.patches]
        assert any(artist.get_alpha() == 0.5 for artist in artists)


def test_nothing_is_drawn_with_before_it_is_asked_for():
    code = "import sys, separatrix, separatrix.plots; print('matplotlib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


# Machado, Oliveira and Fernandes (2009): what is left of linear RGB without one kind of cone.
_SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear_rgb(colour: str) -> np.ndarray:
    c = np.array(mpl.colors.to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    t = _XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", _SEEN)
def test_colours_can_be_told_apart(sight):
    seen = [lab(np.asarray(_SEEN[sight]) @ linear_rgb(colour)) for colour in style.COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15  # 2.3 is just noticeable


def test_colours_stand_out_on_light_and_on_dark_pages():
    def contrast(a: str, b: str) -> float:
        light, dark = sorted((0.05 + _XYZ[1] @ linear_rgb(c) for c in (a, b)), reverse=True)
        return light / dark

    assert all(contrast(colour, "white") >= 3.0 for colour in (*style.COLOURS, style.INK))
    assert all(contrast(colour, "#121212") >= 2.0 for colour in style.COLOURS)
    assert min(contrast(style.INK, "white"), contrast(style.INK, "black")) > 4.5
    looks = {(style.colour(k), style.marker(k)) for k in range(84)}
    assert len(looks) == 84 and len(style.COLOURS) == 12


def test_names_are_kept_to_one_line():
    assert one_line("a\nb\tc\x00d") == "a b c·d"
    assert one_line("x" * 100) == "x" * 39 + "…"


# Decision boundaries


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_regions_are_the_predictions_at_the_means_of_the_other_columns(n_classes, frame):
    X, y = flowers(n_classes)
    table = frame(X)
    model = sx.QuadraticDiscriminantAnalysis().fit(table, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(
        model, table, y, features=[3, 1], grid_resolution=30, plot_method="pcolormesh", ax=Figure().subplots()
    )
    a, b = np.meshgrid(display.regions.x, display.regions.y)
    rows = np.tile(X.to_numpy().mean(axis=0), (900, 1))
    rows[:, 3], rows[:, 1] = a.ravel(), b.ravel()
    expected = model.predict(rows if frame is np.asarray else frame(pd.DataFrame(rows, columns=ODD)))
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(display.regions.actions.ravel(), expected)
    image = display.surface_.get_array()
    np.testing.assert_array_equal(np.asarray(display.classes)[image].ravel(), expected)
    names = ["x3", "x1"] if frame is np.asarray else [ODD[3], ODD[1]]
    assert [display.xlabel, display.ylabel] == names
    np.testing.assert_array_equal(display.points, X.to_numpy()[:, [3, 1]])
    np.testing.assert_array_equal(np.asarray(display.classes)[display.labels], y)


def test_columns_by_name_and_columns_that_are_no_numbers():
    X, y = flowers(2)
    table = X.assign(kind=pd.Categorical(np.where(np.arange(len(X)) % 3, "often", "seldom")))
    model = sx.MixedNB().fit(table, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(
        model, table, features=[ODD[2], ODD[3]], grid_resolution=15, ax=Figure().subplots()
    )
    a, b = np.meshgrid(display.regions.x, display.regions.y)
    held = X.mean()
    rows = pd.DataFrame({ODD[0]: held.iloc[0], ODD[1]: held.iloc[1], ODD[2]: a.ravel(), ODD[3]: b.ravel()})
    expected = model.predict(rows.assign(kind=pd.Categorical(["often"] * 225, ["often", "seldom"])))
    np.testing.assert_array_equal(display.regions.actions.ravel(), expected)
    with pytest.raises(ValueError, match="Column 'kind' is of type Categorical; give numeric columns"):
        plots.DecisionBoundaryDisplay.from_estimator(model, table, features=["kind", ODD[0]])


def contour_points(ax, at: int) -> np.ndarray:
    sets = [each for each in ax.collections if isinstance(each, mpl.contour.QuadContourSet) and not each.filled]
    return np.concatenate([path.vertices for path in sets[at].get_paths()])


@pytest.mark.parametrize("kind", [sx.SVC, ReferenceSVC])
def test_margins_and_support_vectors_of_a_machine(kind):
    X, y = flowers(2)
    X = X.iloc[:, 2:]
    model = kind(kernel="linear").fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    assert display.margins
    for at, size in ((0, 0.0), (1, 1.0)):  # a linear score is linear between the points of the grid
        rows = pd.DataFrame(contour_points(display.ax_, at), columns=X.columns)
        np.testing.assert_allclose(np.abs(model.decision_function(rows)), size, atol=1e-9)
    np.testing.assert_allclose(display.support, X.to_numpy()[model.support_])
    within = np.abs(model.decision_function(pd.DataFrame(display.support, columns=X.columns)))
    assert (within <= 1.0 + 1e-2).mean() > 0.9


def test_support_vectors_behind_a_pipeline_are_rows_of_the_table():
    X, y = flowers(2)
    X = X.iloc[:, 2:]
    model = make_pipeline(StandardScaler(), sx.SVC()).fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    np.testing.assert_array_equal(display.support, X.to_numpy()[model[-1].support_])
    other = plots.DecisionBoundaryDisplay.from_estimator(model, X.iloc[::-1], y[::-1], ax=Figure().subplots())
    assert other.support is None  # as many rows, but not those it was fitted on


def test_boundaries_lie_where_the_model_says_they_do():
    X, y = flowers(3)
    X = X.iloc[:, 2:]
    model = sx.LinearDiscriminantAnalysis().fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    planes = [model.boundary(k, other) for k, other in combinations(model.classes_, 2)]
    points = contour_points(display.ax_, 0)
    lengths = np.array([np.linalg.norm(plane.normal) for plane in planes])
    distances = np.abs(np.stack([plane(points) for plane in planes])) / lengths[:, None]
    cell = np.hypot(np.diff(display.regions.x[:2]), np.diff(display.regions.y[:2]))
    nearest = distances.min(axis=0)
    assert nearest.max() < cell  # only where three regions meet is the contour not exact
    assert np.median(nearest) < 1e-9


def test_actions_beside_the_classes_have_a_region():
    X, y = flowers(2)
    X = X.iloc[:, 2:]
    rule = sx.BayesRule(sx.LogisticRegression(), reject_cost=0.2).fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(rule, X, y, grid_resolution=40, ax=Figure().subplots())
    assert display.classes == [*rule.classes_.tolist(), "reject"] and display.scores is None
    assert "reject" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_a_wide_table_is_shown_in_parts(monkeypatch):
    X, y = flowers(3)
    whole = decision_boundary(X, y, Figure().subplots()).regions.actions
    coordinates = discriminant_coordinates(X, y, Figure().subplots()).regions.actions
    monkeypatch.setattr("separatrix.plots.section.NUMBERS_AT_ONCE", 37)
    np.testing.assert_array_equal(decision_boundary(X, y, Figure().subplots()).regions.actions, whole)
    again = discriminant_coordinates(X, y, Figure().subplots()).regions.actions
    np.testing.assert_array_equal(again, coordinates)


def test_a_plane_that_cannot_be_shown_is_refused():
    X, y = flowers(3)
    model = sx.GaussianNB().fit(X, y)
    show = plots.DecisionBoundaryDisplay.from_estimator
    with pytest.raises(ValueError, match="X has 4 columns: name the two columns to show with features="):
        show(model, X)
    with pytest.raises(ValueError, match="'width', which is not one of the 4 columns"):
        show(model, X, features=["width", 0])
    with pytest.raises(ValueError, match=r"features is \[1, 1\]; give two columns"):
        show(model, X, features=[1, 1])
    with pytest.raises(ValueError, match="does not vary over a finite range"):
        show(model, X.assign(**{ODD[0]: 1.0}), features=[0, 1])
    with pytest.raises(ValueError, match="Ridge has no classes_"):
        show(sx.Ridge().fit(X, np.arange(len(X))), X, features=[0, 1])
    with pytest.raises(ValueError, match="'unknown' in y is not among the classes"):
        show(model, X, np.where(y == y[0], "unknown", y), features=[0, 1])


# Probabilities


def test_reliability_points_are_those_of_numpy_and_scikit_learn():
    X, y = tumours()
    model = sx.GaussianNB().fit(X[::2], y[::2])
    display = plots.CalibrationDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=7, ax=Figure().subplots())
    p, happened = model.predict_proba(X[1::2])[:, 1], y[1::2] == "malignant"
    places = np.minimum(np.ceil(p * 7).astype(int), 7).clip(1)
    filled = np.unique(places)
    expected = [[p[places == b].mean(), happened[places == b].mean()] for b in filled]
    np.testing.assert_allclose(display.line_.get_xydata(), expected, rtol=1e-12)
    true, predicted = calibration_curve(happened, p, n_bins=7)
    np.testing.assert_allclose(display.line_.get_xydata(), np.column_stack([predicted, true]), rtol=1e-12)
    assert display.name == "GaussianNB" and display.event == "malignant"
    bars = display.ax_.collections[0].get_segments()
    np.testing.assert_allclose(
        [bar[:, 1] for bar in bars], np.column_stack([display.reliability.lower, display.reliability.upper])
    )


def test_reliability_of_the_likeliest_class_of_one_class_and_of_weighted_rows():
    X, y = flowers(3)
    proba = sx.GaussianNB().fit(X, y).predict_proba(X)
    draw = plots.CalibrationDisplay.from_predictions
    likeliest = draw(y, proba, ax=Figure().subplots())
    assert likeliest.event == "the likeliest class"
    top = proba.max(axis=1)
    np.testing.assert_allclose(likeliest.reliability.predicted @ likeliest.reliability.counts, top.sum())
    one = draw(y, proba, pos_label="<b>", strategy="quantile", n_bins=4, ax=Figure().subplots())
    assert one.event == "<b>" and one.reliability.observed @ one.reliability.counts == (y == "<b>").sum()
    weights = np.arange(len(y)) % 3
    weighted = draw(y, proba, sample_weight=weights, ax=Figure().subplots()).reliability
    repeated = draw(np.repeat(y, weights), np.repeat(proba, weights, axis=0), ax=Figure().subplots()).reliability
    np.testing.assert_allclose(weighted.observed, repeated.observed)


def test_curves_on_the_same_axes_differ_and_share_one_diagonal():
    X, y = tumours()
    ax = Figure().subplots()
    first = plots.CalibrationDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, y, ax=ax)
    second = plots.CalibrationDisplay.from_estimator(sx.LogisticRegression().fit(X, y), X, y, ax=ax)
    assert first.line_.get_color() != second.line_.get_color()
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert told == ["perfectly calibrated", "GaussianNB", "LogisticRegression"]
    ax = Figure().subplots()
    first = plots.RiskCoverageDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, y, ax=ax)
    second = plots.RiskCoverageDisplay.from_estimator(sx.LogisticRegression().fit(X, y), X, y, ax=ax)
    assert first.line_.get_linestyle() != second.line_.get_linestyle()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_risk_and_coverage_are_running_means_over_the_surest_rows(n_classes):
    X, y = flowers(n_classes)
    model = sx.LinearDiscriminantAnalysis().fit(X[::2], y[::2])
    display = plots.RiskCoverageDisplay.from_estimator(model, X[1::2], y[1::2], ax=Figure().subplots())
    proba = model.predict_proba(X[1::2])
    order = np.argsort(-proba.max(axis=1), kind="stable")
    wrong = (model.predict(X[1::2]) != y[1::2])[order]
    running = np.cumsum(wrong) / np.arange(1, len(wrong) + 1)
    places = np.round(display.curve.coverage * len(wrong)).astype(int)
    np.testing.assert_allclose(display.curve.risk, running[places - 1], atol=1e-12)
    drawn = display.line_.get_xydata()
    np.testing.assert_allclose(display.risk_at(display.curve.coverage), display.curve.risk, atol=1e-12)
    assert drawn[-1, 1] == pytest.approx(wrong.mean())
    fine = np.linspace(0.0, 1.0, 200_001)[1:]
    assert display.risk_at(fine).mean() == pytest.approx(display.curve.area, abs=1e-4)


def test_rows_that_tie_are_kept_at_random():
    proba = np.array([[0.9, 0.1]] * 4 + [[0.6, 0.4]] * 4)
    display = plots.RiskCoverageDisplay.from_predictions([0, 0, 0, 0, 0, 0, 1, 1], proba, ax=Figure().subplots())
    # Of 6 rows kept two are drawn from the last four, one of them wrong on average.
    np.testing.assert_allclose(display.risk_at([0.25, 0.5, 0.75, 1.0]), [0.0, 0.0, 1.0 / 6.0, 0.25])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_posterior_band_is_that_of_the_model_along_the_column(n_classes):
    X, y = flowers(n_classes)
    model = make_pipeline(StandardScaler(), sx.BayesianLogisticRegression(1.0)).fit(X, y)
    display = plots.PosteriorPredictiveDisplay.from_estimator(
        model, X, feature=ODD[2], level=0.8, grid_resolution=9, ax=Figure().subplots()
    )
    rows = pd.DataFrame(np.tile(X.to_numpy().mean(axis=0), (9, 1)), columns=ODD)
    rows[ODD[2]] = np.linspace(X[ODD[2]].min(), X[ODD[2]].max(), 9)
    proba, lower, upper = model.predict_proba(rows, level=0.8)
    shown = [1] if n_classes == 2 else [0, 1, 2]
    assert display.classes == model.classes_[shown].tolist()
    for drawn, expected in ((display.proba, proba), (display.lower, lower), (display.upper, upper)):
        np.testing.assert_allclose(drawn, expected[:, shown])
    assert (display.lower < display.upper).all()
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), display.proba[:, 0])
    assert "80 % interval" in display.ax_.get_ylabel()


def test_the_posterior_band_of_two_classes_is_that_of_a_gaussian_score():
    X, y = flowers(2)
    model = sx.BayesianLogisticRegression(1.0).fit(X, y)
    display = plots.PosteriorPredictiveDisplay.from_estimator(model, X, feature=1, ax=Figure().subplots())
    rows = np.tile(np.append(X.to_numpy().mean(axis=0), 1.0), (200, 1))
    rows[:, 1] = display.values
    score = rows @ np.append(model.coef_[0], model.intercept_)
    half = ndtri(0.975) * np.sqrt(np.einsum("ij,jk,ik->i", rows, model.covariance_, rows))
    np.testing.assert_allclose(display.lower[:, 0], expit(score - half), rtol=1e-6)
    np.testing.assert_allclose(display.upper[:, 0], expit(score + half), rtol=1e-6)


def test_a_model_without_a_posterior_has_no_band():
    X, y = flowers(2)
    with pytest.raises(ValueError, match="GaussianNB has no intervals of its probabilities"):
        plots.PosteriorPredictiveDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, feature=0)
    model = sx.BayesianLogisticRegression(1.0).fit(X, y)
    with pytest.raises(ValueError, match="name the one column to show"):
        plots.PosteriorPredictiveDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match="class_of_interest is 'none'; give one of"):
        plots.PosteriorPredictiveDisplay.from_estimator(model, X, feature=0, class_of_interest="none")


# Coefficients


def test_paths_are_drawn_as_they_are_with_the_weakest_penalty_on_the_right():
    X, y = tumours()
    path = sx.logistic_path(X, y, Cs=[1.0, 0.01, 0.1], l1_ratio=1.0)
    display = plots.CoefficientPathDisplay.from_path(path, feature_names=list(X), ax=Figure().subplots())
    assert len(display.lines_) == X.shape[1]
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_xdata(), [0.01, 0.1, 1.0])
        np.testing.assert_array_equal(line.get_ydata(), path.coefs[[1, 2, 0], 0, j])
    assert not display.ax_.xaxis_inverted() and display.ax_.get_xscale() == "log"
    named = [line.get_label() for line in display.lines_ if not line.get_label().startswith("_")]
    largest = np.argsort(-np.abs(path.coefs[:, 0]).max(axis=0))[:8]
    assert set(named) == set(X.columns[largest])
    alphas = [0.0, 1.0, 100.0]
    path = sx.ridge_path(X, y == "benign", alphas=alphas)
    ridge = plots.CoefficientPathDisplay.from_path(path, ax=Figure().subplots())
    np.testing.assert_array_equal(ridge.penalties, alphas)
    assert ridge.ax_.xaxis_inverted() and ridge.ax_.get_xscale() == "symlog"  # 0 has its place
    np.testing.assert_allclose(ridge.coefs[1], sx.Ridge(1.0).fit(X, y == "benign").coef_)


def test_a_path_of_many_classes_shows_one_or_the_length_of_all():
    X, y = flowers(3)
    path = sx.logistic_path(X, y, Cs=5)
    length = plots.CoefficientPathDisplay.from_path(path, ax=Figure().subplots())
    np.testing.assert_allclose(length.coefs**2, (path.coefs**2).sum(axis=1))
    one = plots.CoefficientPathDisplay.from_path(path, class_of_interest="<b>", ax=Figure().subplots())
    np.testing.assert_array_equal(one.coefs, path.coefs[:, 0])
    with pytest.raises(ValueError, match="class_of_interest is 'none'; give one of"):
        plots.CoefficientPathDisplay.from_path(path, class_of_interest="none")
    with pytest.raises(ValueError, match="3 names for 4 columns"):
        plots.CoefficientPathDisplay.from_path(path, feature_names=["a", "b", "c"])
    targets = sx.ridge_path(X, np.asarray(X)[:, :2], alphas=[1.0, 2.0])
    second = plots.CoefficientPathDisplay.from_path(targets, class_of_interest=1, ax=Figure().subplots())
    np.testing.assert_array_equal(second.coefs, targets.coefs[:, 1])


def forest(display) -> dict[str, tuple[float, ...]]:
    """What is drawn: name → (estimate, lower, upper), from the top."""
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    estimates = next(line for line in display.ax_.get_lines() if line.get_marker() == "o").get_xdata()
    bars = [bar[:, 0] for each in display.ax_.collections for bar in each.get_segments()]
    return {name: (x, *(bars[i] if bars else ())) for i, (name, x) in enumerate(zip(names, estimates, strict=True))}


def test_a_forest_plot_of_maximum_likelihood_has_the_intervals_of_statsmodels():
    X, y = tumours()
    X = X[["mean radius", "mean texture", "mean smoothness"]]
    model = sx.LogisticRegression(C=np.inf).fit(X, y)
    display = plots.CoefficientDisplay.from_estimator(model, level=0.9, ax=Figure().subplots())
    reference = sm.Logit((y == "malignant").astype(float), sm.add_constant(X)).fit(disp=0, tol=1e-10)
    limits = reference.conf_int(0.1)
    for name, drawn in forest(display).items():
        np.testing.assert_allclose(drawn, [reference.params[name], *limits.loc[name]], rtol=1e-4)
    sizes = [abs(drawn[0]) for drawn in forest(display).values()]
    assert sizes == sorted(sizes, reverse=True) and display.ax_.yaxis_inverted()


def test_a_forest_plot_of_a_posterior_has_its_intervals():
    X, y = flowers(3)
    model = sx.BayesianLogisticRegression(1.0).fit(X, y)
    display = plots.CoefficientDisplay.from_estimator(model, class_of_interest="<b>", ax=Figure().subplots())
    half = ndtri(0.975) * np.sqrt(np.diag(model.coef_cov_)[:4])
    np.testing.assert_allclose(display.lower, model.coef_[0] - half, rtol=1e-6)
    np.testing.assert_allclose(display.upper, model.coef_[0] + half, rtol=1e-6)


def test_a_forest_plot_without_errors_has_points_only():
    X, y = tumours()
    model = make_pipeline(StandardScaler(), ReferenceLogistic()).fit(X, y)
    display = plots.CoefficientDisplay.from_estimator(model, ax=Figure().subplots())
    assert display.lower is None and not display.ax_.collections
    coef = dict(zip(X.columns, model[-1].coef_[0], strict=True))
    assert {name: value for name, (value,) in forest(display).items()} == coef
    penalised = plots.CoefficientDisplay.from_estimator(sx.LogisticRegression().fit(X, y), ax=Figure().subplots())
    assert penalised.lower is None


def test_a_forest_plot_of_many_classes_names_class_and_column():
    X, y = flowers(3)
    X.columns = list("abcd")
    softmax = plots.CoefficientDisplay.from_estimator(sx.LogisticRegression().fit(X, y), ax=Figure().subplots())
    assert set(softmax.names) == {f"{column}, {label}" for column in "abcd" for label in np.unique(y)}
    pairs = sx.SVC(kernel="linear").fit(X, y)
    display = plots.CoefficientDisplay.from_estimator(pairs, ax=Figure().subplots())
    assert len(display.names) == 12
    regression = plots.CoefficientDisplay.from_estimator(sx.Ridge().fit(X, np.arange(len(X))), ax=Figure().subplots())
    assert list(regression.names) == list("abcd")
    four = np.array(["p", "q", "r", "s"])[np.arange(len(y)) % 4]
    six = plots.CoefficientDisplay.from_estimator(sx.SVC(kernel="linear").fit(X, four), ax=Figure().subplots())
    assert six.names[:4] == [f"{column}, p against q" for column in "abcd"]


def test_contrasts_are_told_as_such():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.array(["a", "b", "c"])[rng.integers(3, size=300)]
    model = sx.LogisticRegression(C=np.inf).fit(X, y)
    display = plots.CoefficientDisplay.from_estimator(model, ax=Figure().subplots())
    np.testing.assert_allclose(display.estimates, (model.coef_[1:] - model.coef_[0]).ravel(), rtol=1e-6)
    assert "against a" in display.ax_.get_xlabel() and display.names[0] == "x0, b"


def test_a_forest_plot_says_how_many_it_leaves_out():
    rng = np.random.default_rng(1)
    sizes = rng.standard_normal(100)
    named = [f"c{j}" for j in range(100)]
    display = plots.CoefficientDisplay(named, sizes, sizes - 1, sizes + 1, xlabel="$" * 200).plot()
    np.testing.assert_array_equal(display.order_, np.argsort(-np.abs(sizes))[:30])
    assert "70 smaller ones are left out" in display.ax_.get_xlabel()
    assert len(forest(display.plot(max_rows=5))) == 5
    endless = plots.CoefficientDisplay(["a", "b"], [3.0, 1.0], [-np.inf, 0.5], [np.inf, 1.5]).plot(Figure().subplots())
    assert np.isfinite(np.array(list(forest(endless).values()))).all()


def test_models_and_names_that_do_not_fit_a_forest_plot_are_refused():
    X, y = flowers(2)
    with pytest.raises(ValueError, match="GaussianNB has no coef_"):
        plots.CoefficientDisplay.from_estimator(sx.GaussianNB().fit(X, y))
    with pytest.raises(ValueError, match="2 names for 4 columns"):
        plots.CoefficientDisplay.from_estimator(sx.RidgeClassifier().fit(X, y), feature_names=["a", "b"])
    with pytest.raises(ValueError, match="level is 95; give a probability"):
        plots.CoefficientDisplay.from_estimator(sx.RidgeClassifier().fit(X, y), level=95)


# Classes apart


@pytest.mark.parametrize("solver", ["svd", "eigen"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_canonical_variates_are_those_of_scikit_learn_up_to_sign(n_classes, solver):
    X, y = flowers(n_classes)
    model = sx.LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    display = plots.DiscriminantCoordinatesDisplay.from_estimator(
        model, X, y, grid_resolution=25, ax=Figure().subplots()
    )
    reference = ReferenceLDA(solver=solver).fit(X, y).transform(X)
    sign = np.sign((display.coordinates * reference).sum(axis=0))
    np.testing.assert_allclose(display.coordinates * sign, reference, rtol=1e-6, atol=1e-6)
    for k, label in enumerate(display.classes):
        np.testing.assert_allclose(display.means[k], display.coordinates[y == label].mean(axis=0))
    assert (display.regions is None) == (n_classes == 2)


@pytest.mark.parametrize("kind", [sx.LinearDiscriminantAnalysis, ReferenceLDA])
def test_regions_in_the_plane_are_those_of_the_nearest_mean(kind):
    rng = np.random.default_rng(2)
    centres = 3.0 * rng.standard_normal((5, 4))
    codes = rng.choice(5, size=400, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    X = centres[codes] + rng.standard_normal((400, 4)) @ rng.standard_normal((4, 4))
    model = kind().fit(X, codes)
    display = plots.DiscriminantCoordinatesDisplay.from_estimator(
        model, X, codes, grid_resolution=40, ax=Figure().subplots()
    )
    all_means = model.transform(model.means_)  # in these coordinates the common covariance is the identity
    plane = np.stack(np.meshgrid(display.regions.x, display.regions.y), axis=-1).reshape(-1, 2)
    full = np.column_stack([plane, np.zeros((len(plane), all_means.shape[1] - 2))])
    scores = -0.5 * ((full[:, None, :] - all_means) ** 2).sum(axis=2) + np.log(model.priors_)
    np.testing.assert_array_equal(display.regions.actions.ravel(), scores.argmax(axis=1))


def test_fishers_coordinates_have_no_regions_and_those_of_a_pipeline_are_of_its_last_step():
    X, y = flowers(3)
    fisher = plots.DiscriminantCoordinatesDisplay.from_estimator(
        sx.FisherDiscriminant().fit(X, y), X, y, ax=Figure().subplots()
    )
    assert fisher.regions is None and not fisher.ax_.images
    model = make_pipeline(StandardScaler(), sx.LinearDiscriminantAnalysis()).fit(X, y)
    behind = plots.DiscriminantCoordinatesDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    np.testing.assert_allclose(np.abs(behind.coordinates), np.abs(fisher.coordinates), rtol=1e-6)
    assert behind.regions is not None and "99.1 %" in behind.ax_.get_xlabel()
    with pytest.raises(ValueError, match="GaussianNB has no canonical variates"):
        plots.DiscriminantCoordinatesDisplay.from_estimator(sx.GaussianNB().fit(X, y), X, y)
    with pytest.raises(ValueError, match="with solver='svd' or 'eigen'"):
        lsqr = sx.LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
        plots.DiscriminantCoordinatesDisplay.from_estimator(lsqr, X, y)


def test_score_distributions_are_numpys_histograms():
    X, y = tumours()
    model = sx.LinearDiscriminantAnalysis().fit(X, y)
    draw = plots.ScoreDistributionDisplay.from_estimator
    display = draw(model, X, y, bins=12, ax=Figure().subplots())
    scores = model.decision_function(X)
    for k, label in enumerate(display.classes):
        expected, _ = np.histogram(scores[y == label], display.edges, density=True)
        np.testing.assert_allclose(display.densities[k], expected)
        np.testing.assert_allclose(display.ax_.patches[2 * k].get_data().values, expected)
    assert display.threshold == 0.0 and display.xlabel == "score of malignant"
    opposite = draw(model, X, y, pos_label="benign", bins=-display.edges[::-1], ax=Figure().subplots())
    np.testing.assert_allclose(opposite.densities[:, ::-1], display.densities)
    proba = draw(model, X, y, response_method="predict_proba", bins=[0.0, 0.5, 1.0], ax=Figure().subplots())
    assert proba.threshold == 0.5
    right = (model.predict(X) == y)[y == "malignant"].mean()
    assert proba.densities[1, 1] * 0.5 == pytest.approx(right)


def test_the_lead_of_the_own_class_is_positive_where_the_row_is_right():
    X, y = flowers(3)
    model = sx.GaussianNB().fit(X, y)
    display = plots.ScoreDistributionDisplay.from_predictions(
        y, model.predict_proba(X), bins=[-1.0, 0.0, 1.0], ax=Figure().subplots()
    )
    shares = [(model.predict(X) == y)[y == label].mean() for label in display.classes]
    np.testing.assert_allclose(display.densities[:, 1], shares)
    assert display.threshold == 0.0
    one = plots.ScoreDistributionDisplay.from_estimator(model, X, y, pos_label="<b>", ax=Figure().subplots())
    assert one.threshold is None and one.xlabel == "score of <b>"
    weights = np.arange(len(y)) % 4
    proba, bins = model.predict_proba(X), np.linspace(-1, 1, 9)
    weighted = plots.ScoreDistributionDisplay.from_predictions(
        y, proba, bins=bins, sample_weight=weights, ax=Figure().subplots()
    )
    repeated = plots.ScoreDistributionDisplay.from_predictions(
        np.repeat(y, weights), np.repeat(proba, weights, axis=0), bins=bins, ax=Figure().subplots()
    )
    np.testing.assert_allclose(weighted.densities, repeated.densities)


def test_scores_that_cannot_be_shown_are_refused():
    X, y = flowers(3)
    model = sx.SVC(decision_function_shape="ovr").fit(X, y)
    draw = plots.ScoreDistributionDisplay.from_predictions
    with pytest.raises(ValueError, match="give one column per class"):
        draw(y, model.decision_function(X)[:, :2])
    with pytest.raises(ValueError, match="pos_label is 'none'; give one of"):
        draw(y, model.decision_function(X), pos_label="none")
    with pytest.raises(ValueError, match="1 scores are NaN or infinite"):
        draw([0, 1, 1], [0.5, np.inf, 1.0])
    with pytest.raises(ValueError, match="Ridge has no decision_function and no predict_proba"):
        plots.ScoreDistributionDisplay.from_estimator(sx.Ridge().fit(X, np.arange(len(X))), X, y)


# Margin losses


def test_losses_are_their_formulas_and_bound_the_misclassification():
    display = plots.MarginLossDisplay.from_losses()
    m, values = display.margins, display.values
    np.testing.assert_allclose(values["logistic"], np.logaddexp(0.0, -m), rtol=1e-14)
    np.testing.assert_allclose(values["hinge"], np.maximum(0.0, 1.0 - m))
    np.testing.assert_allclose(values["perceptron"], np.maximum(0.0, -m))
    np.testing.assert_allclose(values["sigmoid"], 1.0 / (1.0 + np.exp(m)), rtol=1e-13)
    for name in ("hinge", "squared_hinge", "huberised"):
        assert (values[name] >= (m < 0)).all()


def test_the_plot_shows_these_numbers():
    display = plots.MarginLossDisplay.from_losses(["hinge", "logistic"]).plot()
    lines = {line.get_label(): line for line in display.ax_.get_lines()}
    assert set(lines) == {"misclassification", "hinge", "logistic"}
    np.testing.assert_array_equal(lines["hinge"].get_ydata(), display.values["hinge"])
    again = plots.MarginLossDisplay.from_losses().plot(display.ax_)
    assert again.figure_ is display.figure_


def test_an_unknown_loss_is_named():
    with pytest.raises(ValueError, match="'cubic' is not a loss; the losses are logistic"):
        plots.MarginLossDisplay.from_losses(["cubic"])
