"""Logistic regression: coefficients with intervals, the verdict on separation, the way of the solver, the posterior."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.explore.drawing import chart, fact, lines, series, table
from separatrix.explore.fitting import FittedRule
from separatrix.explore.surfaces import Contours, line_of
from separatrix.geometry import separability
from separatrix.result import Status

_DRAWS = 30
# Beyond this many rows the linear programme takes longer than a frame.
_QUICK_ROWS = 3000


def coefficients(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """Estimates; with intervals where there are any: after maximum likelihood and Firth's penalty."""
    model, names = fitted.final, [*fitted.state.axes, "intercept"]
    likelihood = fitted.parameters["penalty"] == "firth" or np.isinf(fitted.parameters["C"])
    if likelihood and fitted.record is not None and fitted.record.status is not Status.SEPARATED:
        rows = model.summary().rows
        places = {f"x{j}": name for j, name in enumerate(fitted.state.axes)}
        shown = [
            [
                _class_name(fitted, row.score),
                places.get(row.name, "intercept"),
                f"{row.estimate:.4g}",
                f"{row.lower:.4g} … {row.upper:.4g}",
                f"{row.p_value:.2g}",
            ]
            for row in rows
        ]
        yield table("Coefficients", ["class", "column", "estimate", "95 % interval", "p"], shown)
        return
    values = np.column_stack([model.coef_, model.intercept_])
    scores = [fitted.classes[-1]] if len(values) == 1 else fitted.classes
    listed = [
        [fitted.state.classes[code], name, f"{value:.4g}"]
        for code, row in zip(scores, values, strict=True)
        for name, value in zip(names, row, strict=True)
    ]
    note = "Penalised estimates have no intervals: set C to ∞ or use Firth's penalty for these."
    yield table("Coefficients", ["class", "column", "estimate"], listed, "" if likelihood else note)


def _class_name(fitted: FittedRule, score: Any) -> str:
    return fitted.state.classes[int(score)] if score in fitted.classes else str(score)


def separation(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """Whether a line separates the classes; then the likelihood has no maximum."""
    points = fitted.state.points
    if len(points.X) > _QUICK_ROWS:
        return
    verdict = separability(points.X, points.codes, points.counted).verdict
    words = {"complete": "separable: the likelihood has no maximum", "quasi": "quasi-separable", "overlap": "overlap"}
    yield fact("the classes", words[verdict])


def trace(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """The proven gap to the optimum after every step."""
    record = fitted.record
    steps = [] if record is None else [step for step in record.trace if step.get("gap", 0.0) > 0.0]
    if len(steps) > 1:
        x = [step["iteration"] for step in steps]
        drawn = [series(x, [float(step["gap"]) for step in steps], "gap", kind="dots")]
        yield chart("Distance to the optimum", "step", "gap", drawn, log=True)


def posterior(fitted: FittedRule, contours: Contours) -> Iterator[dict[str, Any]]:
    """Boundaries drawn from the posterior, and where the most probable one alone would be as certain."""
    model, view = fitted.final, fitted.state.view
    if len(fitted.classes) != 2:
        yield fact("draws of boundaries", "shown for two classes")
        return
    weights, constants = model.sample_coef(_DRAWS, random_state=0, return_intercept=True)
    weights, constants = np.reshape(weights, (_DRAWS, -1)), np.reshape(constants, _DRAWS)
    paths = [path for w, b in zip(weights, constants, strict=True) for path in line_of(view, w, float(b))]
    yield lines("draw", paths, label=f"{_DRAWS} boundaries drawn from the posterior")
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    for p in (0.1, 0.9):
        yield lines("mode", line_of(view, w, b - float(np.log(p / (1.0 - p)))), label=f"{p:g} by the mode alone")
    # From mean to mean, as far again on both sides: how the two probabilities part away from the points.
    points, codes = fitted.state.points, fitted.classes
    one, two = (np.average(points.X[points.codes == k], axis=0) for k in codes)
    t = np.linspace(-1.5, 2.5, 81)
    at = one + t[:, None] * (two - one)
    mean, low, high = model.predict_proba(at, level=0.95)
    mode = 1.0 / (1.0 + np.exp(-np.clip(at @ w + b, -700.0, 700.0)))
    drawn = [
        series(t, mean[:, 1], "predictive"),
        series(t, mode, "mode alone", kind="dashed"),
        series(t, low[:, 1], "95 % band", kind="thin"),
        series(t, high[:, 1], "", kind="thin"),
    ]
    name = fitted.state.classes[codes[1]]
    yield chart("Along the line of the means", "from one mean (0) to the other (1)", f"p({name})", drawn)


def coefficient_posterior(fitted: FittedRule, _: Contours) -> Iterator[dict[str, Any]]:
    """Means and credible intervals, and the evidence."""
    model = fitted.final
    low, high = model.coef_interval(0.95)
    codes = [fitted.classes[-1]] if len(model.coef_) == 1 else fitted.classes
    rows = [
        [fitted.state.classes[code], name, f"{mean:.4g}", f"{a:.4g} … {b:.4g}"]
        for code, means, lows, highs in zip(codes, model.coef_, np.atleast_2d(low), np.atleast_2d(high), strict=True)
        for name, mean, a, b in zip(fitted.state.axes, means, lows, highs, strict=False)
    ]
    yield table("Posterior", ["class", "column", "mean", "95 % interval"], rows)
    if isinstance(model.prior_precision_, int | float):
        yield fact("prior precision", f"{model.prior_precision_:.4g}")
    if np.isfinite(getattr(model, "log_evidence_", np.nan)):
        yield fact("log evidence", f"{model.log_evidence_:.5g}")
