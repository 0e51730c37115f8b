"""The steps of a fit, one boundary for each: the iterations of logistic regression, the mistakes of the perceptron.

Every frame is a fit of the library: with a limit of 0, 1, 2, … iterations, or fed one row after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.data.block import Float
from separatrix.explore.fitting import build, fit_model
from separatrix.explore.protocol import BadRequest, ExplorerState
from separatrix.explore.surfaces import Contours, leads
from separatrix.models import Perceptron

_MOST_FRAMES, _MOST_VISITS = 120, 4000


def film(state: ExplorerState) -> dict[str, Any]:
    """Frames with their captions."""
    family, parameters, model = build(state)
    if len(np.unique(state.points.codes)) < 2:
        raise BadRequest("Draw points of at least two classes: a boundary needs two sides.")
    if family.film == "iterations":
        return {"frames": _iterations(state, model)}
    if family.film == "mistakes":
        return {"frames": _mistakes(state, bool(parameters["shuffle"]))}
    raise BadRequest(f"{family.title} has no steps to show.")


def _frame(contours: Contours, model: Any, caption: str, place: int | None = None) -> dict[str, Any]:
    scores = np.asarray(model.decision_function(contours.grid), dtype=np.float64)
    edges = [scores] if scores.ndim == 1 else leads(scores).T
    return {"paths": [path for edge in edges for path in contours.level(edge)], "caption": caption, "place": place}


def _iterations(state: ExplorerState, model: Any) -> list[dict[str, Any]]:
    contours, frames = Contours(state.view, min(state.grid, 61)), []
    last = fit_model(model, state).fit_.iterations
    # Long ways are shown in growing strides: what changes, changes early.
    steps: Float = (
        np.unique(np.geomspace(1, last + 1, _MOST_FRAMES).round()) - 1 if last > _MOST_FRAMES else np.arange(last + 1.0)
    )
    for limit in steps.astype(int).tolist():
        fit_model(model.set_params(max_iter=limit), state)
        record = model.fit_
        gap = "" if record.certificate is None else f", at most {record.certificate.gap:.3g} above the optimum"
        frames.append(_frame(contours, model, f"step {limit} of {last}{gap}"))
    return frames


def _mistakes(state: ExplorerState, shuffled: bool) -> list[dict[str, Any]]:
    points, rng = state.points, np.random.default_rng(0)
    classes = np.unique(points.codes)
    model, contours = Perceptron(shuffle=False), Contours(state.view, min(state.grid, 61))
    frames: list[dict[str, Any]] = []
    order, made, quiet = np.arange(len(points.X)), 0, 0
    for visit in range(_MOST_VISITS):
        at = visit % len(order)
        if at == 0 and shuffled:
            rng.shuffle(order)
        row = order[[at]]
        model.partial_fit(points.X[row], points.codes[row], classes=classes, sample_weight=points.weights[row])
        count = int(np.sum(model.n_mistakes_))
        quiet = quiet + 1 if count == made else 0
        if count > made:
            made = count
            frames.append(_frame(contours, model, f"mistake {made}, at visit {visit + 1}", int(row[0])))
        if quiet >= len(order) or len(frames) >= _MOST_FRAMES:
            break
    return frames
