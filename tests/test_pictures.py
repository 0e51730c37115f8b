"""What the pictures of a course show: regions with their open parts, slacks, predictive contours, densities, ROC."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs, make_moons
from sklearn.inspection import DecisionBoundaryDisplay as ReferenceBoundary
from sklearn.metrics import RocCurveDisplay as ReferenceRoc
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import separatrix as sx
from separatrix import plots
from separatrix.plots import style

mpl.use("Agg")

import matplotlib.pyplot as plt  # after the choice of a backend that needs no window


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    yield
    plt.close("all")


def flowers(*columns: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return X[:, list(columns)], y


def tumours() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X[["mean radius", "mean texture"]], np.array(["malignant", "benign"])[y]


def two_clouds(n: int = 60, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(n, centers=[[0.0, 0.0], [2.2, 1.6]], cluster_std=1.0, random_state=seed)


def lines_of(ax) -> list[np.ndarray]:
    """Vertices of the contour lines, set by set and level by level."""
    sets = [each for each in ax.collections if isinstance(each, mpl.contour.QuadContourSet) and not each.filled]
    return [path.vertices for each in sets for path in each.get_paths() if len(path.vertices)]


# What all share


def every_display(ax_of):
    """One of each kind."""
    X, y = two_clouds()
    svm = sx.SVC(kernel="linear").fit(X, y)
    yield plots.DecisionBoundaryDisplay.from_estimator(svm, X, y, grid_resolution=30, ax=ax_of())
    yield plots.SupportVectorDisplay.from_estimator(svm, X, y, grid_resolution=30, ax=ax_of())
    bayes = sx.BayesianLogisticRegression(1.0).fit(X, y)
    yield plots.PredictiveContourDisplay.from_estimator(bayes, X, y, grid_resolution=30, ax=ax_of())
    lda = sx.LinearDiscriminantAnalysis().fit(X, y)
    yield plots.ClassDensityDisplay.from_estimator(lda, X, y, feature=0, ax=ax_of())
    yield plots.FisherProjectionDisplay.from_estimator(lda, X, y, ax=ax_of())
    yield plots.RocCurveDisplay.from_estimator(lda, X, y, loss=[[0, 1], [3, 0]], ax=ax_of())
    yield plots.CalibrationDisplay.from_estimator(lda, X, y, ax=ax_of())
    yield plots.MarginLossDisplay.from_losses(["hinge"]).plot(ax_of())


def test_a_display_is_told_in_one_short_line():
    for display in every_display(lambda: Figure().subplots()):
        told = repr(display)
        assert told.startswith(f"{type(display).__name__}(") and "\n" not in told and len(told) < 320
        assert "array" not in told
    assert "scores=<30 × 30 float64>" in repr(next(every_display(lambda: Figure().subplots())))


def test_a_theme_is_for_new_figures_only_and_ends():
    ax = Figure().subplots()
    for name, page in (("dark", "#121212"), ("light", "#ffffff")):
        with plots.theme(name):
            for display in every_display(lambda: None):
                figure = display.figure_
                assert to_hex(figure.get_facecolor()) == page and figure.patch.get_alpha() == 1.0
                inks = [display.ax_.xaxis.label.get_color(), *(t.get_color() for t in display.ax_.get_xticklabels())]
                light = [np.mean(mpl.colors.to_rgb(ink)) for ink in inks]
                assert all(abs(one - np.mean(mpl.colors.to_rgb(page))) > 0.6 for one in light)
                plt.close(figure)
            assert plots.MarginLossDisplay.from_losses(["hinge"]).plot(ax).figure_.get_facecolor() != page
    assert plots.MarginLossDisplay.from_losses(["hinge"]).plot().figure_.patch.get_alpha() == 0.0
    with pytest.raises(ValueError, match="theme is 'blue'; give one of 'any', 'light', 'dark'"), plots.theme("blue"):
        pass


def test_legends_of_crowded_pictures_are_beside_them():
    crowded = (plots.DecisionBoundaryDisplay, plots.SupportVectorDisplay, plots.PredictiveContourDisplay)
    for display in every_display(lambda: None):
        display.figure_.canvas.draw()
        legend, inside = display.ax_.get_legend(), display.ax_.get_window_extent()
        if isinstance(display, crowded):
            beside = legend.get_window_extent()
            assert beside.x0 >= inside.x1 - 1.0 and beside.x1 <= display.figure_.bbox.x1 + 1.0  # and not cut off
    assert display.plot(Figure().subplots(), legend=False).ax_.get_legend() is None


# Regions


def test_the_plane_and_the_response_are_those_of_scikit_learn():
    X, y = tumours()
    model = sx.LogisticRegression().fit(X, y)
    for method in ("predict_proba", "decision_function"):
        ours = plots.DecisionBoundaryDisplay.from_estimator(
            model, X, grid_resolution=25, eps=1.5, response_method=method, ax=Figure().subplots()
        )
        theirs = ReferenceBoundary.from_estimator(
            model, X, grid_resolution=25, eps=1.5, response_method=method, ax=Figure().subplots()
        )
        np.testing.assert_allclose(ours.xx0, theirs.xx0)
        np.testing.assert_allclose(ours.xx1, theirs.xx1)
        np.testing.assert_allclose(ours.response[..., 1], theirs.response, rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_steps_of_the_shades_lie_where_the_probability_is_their_level(n_classes):
    X, y = flowers(2, 3)
    X, y = X[y >= 3 - n_classes], y[y >= 3 - n_classes]
    model = sx.LinearDiscriminantAnalysis().fit(X, y)
    levels = [0.6, 0.95]
    display = plots.DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict_proba", levels=levels, grid_resolution=300, ax=Figure().subplots()
    )
    assert display.levels == (0.6, 0.95)
    drawn = lines_of(display.ax_)[: 2 * n_classes]  # the steps come before the boundaries
    largest = [model.predict_proba(line).max(axis=1) for line in drawn]
    near = [min(np.abs(one - level).max() for level in levels) for one in largest]
    assert max(near) < 0.01


@pytest.mark.parametrize("machines", ["K", "K-1", "pairs"])
def test_open_parts_are_hatched_with_their_reason(machines):
    X, y = flowers(0, 1)
    scheme = sx.OneVsRestClassifier(sx.RidgeClassifier(), machines=machines) if machines != "pairs" else None
    model = (scheme or sx.OneVsOneClassifier(sx.LinearSVC(C=0.01))).fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(
        model, X, y, eps=2.0, grid_resolution=60, ax=Figure().subplots()
    )
    reasons = model.indeterminate(np.column_stack([display.xx0.ravel(), display.xx1.ravel()])).reason
    assert set(display.hatched) == set(reasons) - {""} and (machines == "pairs" or display.hatched)
    for name, mask in display.hatched.items():
        np.testing.assert_array_equal(mask.ravel(), reasons == name)
    hatches = [each.hatches for each in display.ax_.collections if any(getattr(each, "hatches", ()))]
    shown = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert len(hatches) == sum(name in shown for name in display.hatched)


def test_a_rejection_is_hatched_and_has_no_colour():
    X, y = flowers(2, 3)
    rule = sx.BayesRule(sx.LogisticRegression(), reject_cost=0.2).fit(X, y)
    display = plots.DecisionBoundaryDisplay.from_estimator(rule, X, y, grid_resolution=60, ax=Figure().subplots())
    assert list(display.hatched) == ["reject"]
    np.testing.assert_array_equal(display.hatched["reject"], display.regions.actions == "reject")
    filled = [each for each in display.ax_.collections if getattr(each, "filled", False)]
    faces = [each.get_facecolor()[0] for each in filled]
    assert {to_hex(face).upper() for face in faces if face[3] > 0} == {*style.COLOURS[:3]}


def test_edges_without_scores_lie_within_a_cell_of_the_truth():
    X, y = flowers(2, 3)
    model = sx.SVC(kernel="linear").fit(X, y)  # a vote of pairs
    display = plots.DecisionBoundaryDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    assert display.scores is None
    cell = np.array([np.diff(display.regions.x[:2])[0], np.diff(display.regions.y[:2])[0]])
    around = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]]) * 1.5
    points = np.concatenate(lines_of(display.ax_))
    here = model.predict(points)
    assert np.any([model.predict(points + move * cell) != here for move in around], axis=0).all()


def test_ways_to_draw_regions_and_their_refusals():
    X, y = flowers(2, 3)
    model = sx.LinearSVC().fit(X, y)
    show = plots.DecisionBoundaryDisplay.from_estimator
    edges = show(model, X, plot_method="contour", grid_resolution=30, ax=Figure().subplots())
    assert edges.surface_ is None and edges.ax_.get_legend() is None and lines_of(edges.ax_)
    cells = show(model, X, plot_method="pcolormesh", grid_resolution=30, ax=Figure().subplots())
    np.testing.assert_array_equal(cells.surface_.get_array(), cells.regions.actions)
    assert show(model, X, response_method="predict", grid_resolution=30, ax=Figure().subplots()).scores is None
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba; give another response_method"):
        show(model, X, response_method="predict_proba")
    with pytest.raises(ValueError, match="plot_method is 'fog'"):
        show(model, X, plot_method="fog")
    with pytest.raises(ValueError, match="response_method is 'score'"):
        show(model, X, response_method="score")


# Support vectors


def test_slacks_stand_at_right_angles_on_their_margins_and_sum_to_the_objective():
    X, y = two_clouds()
    C = 0.7
    model = sx.SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    display = plots.SupportVectorDisplay.from_estimator(model, X, y, ax=Figure().subplots())
    w, signs = model.coef_[0], 2 * y - 1
    np.testing.assert_allclose(display.slacks, np.maximum(0.0, 1.0 - signs * model.decision_function(X)), atol=1e-12)
    assert 0.5 * w @ w + C * display.slacks.sum() == pytest.approx(model.fit_.certificate.objective, rel=1e-6)
    short = display.kinds >= 2
    np.testing.assert_allclose(model.decision_function(display.feet[short]), signs[short], atol=1e-8)
    joints = X[short] - display.feet[short]
    np.testing.assert_allclose(np.linalg.norm(joints, axis=1), display.slacks[short] / np.linalg.norm(w), rtol=1e-6)
    np.testing.assert_allclose(joints @ [-w[1], w[0]], 0.0, atol=1e-8)
    assert np.isnan(display.feet[~short]).all()


def test_kinds_of_rows_are_those_of_the_dual_coordinates():
    X, y = two_clouds(seed=5)
    C = 0.5
    model = sx.SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
    display = plots.SupportVectorDisplay.from_estimator(model, X, y, tol=1e-4, ax=Figure().subplots())
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert (alpha[display.kinds == 0] == 0).all() and np.allclose(alpha[display.kinds >= 2], C)
    free = (alpha > 1e-6) & (alpha < C - 1e-6)
    assert free.any() and (display.kinds[free] == 1).all()
    np.testing.assert_array_equal(display.kinds == 3, model.predict(X) != y)
    assert sum(display.counts.values()) == len(X)


@pytest.mark.parametrize("model", [sx.SVC(gamma=1.0), make_pipeline(StandardScaler(), sx.SVC())])
def test_slacks_of_curved_margins_begin_on_them(model):
    X, y = make_moons(80, noise=0.3, random_state=0)
    display = plots.SupportVectorDisplay.from_estimator(
        model.fit(X, y), X, y, grid_resolution=40, ax=Figure().subplots()
    )
    known = np.isfinite(display.feet).all(axis=1)
    assert known.sum() > 0.8 * (display.kinds >= 2).sum() > 3
    np.testing.assert_allclose(model.decision_function(display.feet[known]), 2 * y[known] - 1, atol=1e-3)
    segments = next(c for c in display.ax_.collections if isinstance(c, mpl.collections.LineCollection)).get_segments()
    np.testing.assert_array_equal(np.array(segments)[:, 1], X[known])


def test_a_machine_without_one_score_has_no_margins():
    X, y = flowers(0, 1)
    with pytest.raises(ValueError, match="SVC is not a fitted machine of two classes"):
        plots.SupportVectorDisplay.from_estimator(sx.SVC().fit(X, y), X, y)


# Posterior


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contours_of_the_average_and_of_the_mode(n_classes):
    X, y = flowers(0, 1)
    X, y = X[y < n_classes], y[y < n_classes]
    model = make_pipeline(StandardScaler(), sx.BayesianLogisticRegression(1.0, posterior="laplace")).fit(X, y)
    display = plots.PredictiveContourDisplay.from_estimator(
        model, X, y, class_of_interest=0, grid_resolution=30, eps=1.0, ax=Figure().subplots()
    )
    plane = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(display.predictive.ravel(), model.predict_proba(plane)[:, 0])
    scores = model[0].transform(plane) @ model[1].coef_.T + model[1].intercept_
    expected = expit(-scores[:, 0]) if n_classes == 2 else softmax(scores, axis=1)[:, 0]
    np.testing.assert_allclose(display.plug_in.ravel(), expected)
    if n_classes == 2:  # an average of two-sided uncertainty is never surer
        assert (np.abs(display.predictive - 0.5) <= np.abs(display.plug_in - 0.5) + 1e-12).all()
    with pytest.raises(ValueError, match="LogisticRegression has no posterior"):
        plots.PredictiveContourDisplay.from_estimator(sx.LogisticRegression().fit(X, y), X)


# Densities and projections


def test_class_densities_are_normal_curves_times_priors_and_cross_at_the_boundaries():
    X, y = flowers(2)
    model = sx.QuadraticDiscriminantAnalysis(priors=[0.2, 0.5, 0.3], store_covariance=True).fit(X, y)
    display = plots.ClassDensityDisplay.from_estimator(model, X, y, eps=3.0, ax=Figure().subplots())
    sizes = [np.sqrt(covariance[0, 0]) for covariance in model.covariance_]
    expected = model.priors_ * norm.pdf(display.values[:, None], model.means_[:, 0], sizes)
    np.testing.assert_allclose(display.densities, expected, rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(np.trapezoid(display.densities, display.values, axis=0), model.priors_, rtol=1e-3)
    assert len(display.boundaries) >= 2
    at = model.priors_ * norm.pdf(display.boundaries[:, None], model.means_[:, 0], sizes)
    top = np.sort(at, axis=1)
    np.testing.assert_allclose(top[:, -1], top[:, -2], rtol=1e-8)
    either = display.boundaries[:, None] + [-1e-6, 1e-6]
    assert all(model.predict([[low], [high]]).tolist().count(model.predict([[low]])[0]) == 1 for low, high in either)


def test_densities_of_a_known_model_and_of_none():
    truth = sx.GaussianClasses([[0.0], [1.5]], [[[4.0]], [[0.5]]], priors=[0.6, 0.4])
    X, y = truth.sample(50, random_state=0)
    display = plots.ClassDensityDisplay.from_estimator(truth, X, y, ax=Figure().subplots())
    np.testing.assert_allclose(display.boundaries, truth.thresholds()[0])
    lost = np.trapezoid(display.densities.min(axis=1), display.values)
    assert lost == pytest.approx(sx.bayes_risk(truth).estimate, abs=2e-3)
    with pytest.raises(ValueError, match="LogisticRegression has no densities of its classes"):
        plots.ClassDensityDisplay.from_estimator(sx.LogisticRegression().fit(X, y), X)


@pytest.mark.parametrize("shares", [(80, 80), (120, 30)])
def test_fishers_threshold_is_that_of_the_linear_discriminant(shares):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], shares)
    X = rng.normal(size=(len(y), 3)) @ rng.normal(size=(3, 3)) + (y == "b")[:, None] * [1.5, -0.5, 1.0]
    display = plots.FisherProjectionDisplay.from_estimator(
        sx.FisherDiscriminant().fit(X, y), X, y, ax=Figure().subplots()
    )
    assert abs(display.threshold) == pytest.approx(abs(sx.FisherDiscriminant().fit(X, y).threshold("data")))
    lda = sx.LinearDiscriminantAnalysis().fit(X, y)
    assert display.errors == int((lda.predict(X) != y).sum())
    assert display.means[0] < display.threshold < display.means[1] and display.spread == pytest.approx(1.0)
    np.testing.assert_allclose((display.counts * np.diff(display.edges)).sum(axis=1), np.array(shares) / len(y))
    below, above = (
        share * norm.pdf(display.threshold, mean, display.spread)
        for share, mean in zip(display.shares, display.means, strict=True)
    )
    assert below == pytest.approx(above)
    with pytest.raises(ValueError, match="FisherDiscriminant with 3 classes has no one direction"):
        three = flowers(0, 1)
        plots.FisherProjectionDisplay.from_estimator(sx.FisherDiscriminant().fit(*three), *three)


# ROC

LOSS = {"benign": {"benign": 0, "malignant": 1}, "malignant": {"benign": 5, "malignant": 0.5}}


@pytest.mark.parametrize("pos_label", [None, "benign"])
def test_the_curve_is_that_of_scikit_learn(pos_label):
    X, y = tumours()
    model = sx.LogisticRegression().fit(X[::2], y[::2])
    weights = np.arange(len(y[1::2])) % 3 + 1.0
    options = {"pos_label": pos_label, "sample_weight": weights}
    ours = plots.RocCurveDisplay.from_estimator(model, X[1::2], y[1::2], **options, ax=Figure().subplots())
    theirs = ReferenceRoc.from_estimator(model, X[1::2], y[1::2], **options, ax=Figure().subplots())
    np.testing.assert_allclose(ours.fpr, np.ravel(theirs.fpr))
    np.testing.assert_allclose(ours.tpr, np.ravel(theirs.tpr))
    assert ours.roc_auc == pytest.approx(float(np.ravel(theirs.roc_auc)[0]))
    assert ours.point is None and "AUC" in ours.line_.get_label()


@pytest.mark.parametrize("pos_label", ["malignant", "benign"])
def test_the_point_of_a_loss_is_where_its_rule_stands(pos_label):
    X, y = tumours()
    held, truth = X[1::2], y[1::2]
    rule = sx.BayesRule(sx.LogisticRegression(), LOSS).fit(X[::2], y[::2])
    display = plots.RocCurveDisplay.from_estimator(
        rule.estimator_, held, truth, pos_label=pos_label, loss=LOSS, ax=Figure().subplots()
    )
    taken = rule.predict(held)
    rates = [
        np.mean(taken[truth == label] == pos_label) for label in sorted({*truth}, key=lambda one: one == pos_label)
    ]
    assert [display.point.fpr, display.point.tpr] == pytest.approx(rates)
    assert display.point.risk == pytest.approx(sx.risk(truth, taken, LOSS).estimate)
    proba = rule.estimator_.predict_proba(held)[:, rule.classes_.tolist().index(pos_label)]
    other = next(label for label in rule.classes_ if label != pos_label)
    every = [sx.risk(truth, np.where(proba >= t, pos_label, other), LOSS).estimate for t in [*np.unique(proba), 2.0]]
    assert display.best.risk == pytest.approx(min(every)) and display.best.risk <= display.point.risk
    # The line of equal risk: a step along it costs what it saves.
    share = np.mean(truth == pos_label)
    costs = {label: LOSS[label][next(o for o in LOSS if o != label)] - LOSS[label][label] for label in LOSS}
    assert display.best.slope == pytest.approx((1 - share) * costs[other] / (share * costs[pos_label]))


def test_scores_that_are_no_probabilities_have_no_threshold_of_their_own():
    X, y = tumours()
    model = sx.LinearSVC().fit(X, y)
    display = plots.RocCurveDisplay.from_estimator(
        model, X, y, loss=[[0, 1], [2, 0]], plot_chance_level=True, ax=Figure().subplots()
    )
    assert display.point is None and display.best is not None
    told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert told[0] == "chance (AUC = 0.5)" and told[-1].startswith("least on these rows: risk")
    iris = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="There are 3 classes, and an ROC curve is of two"):
        plots.RocCurveDisplay.from_estimator(sx.GaussianNB().fit(*iris), *iris)
