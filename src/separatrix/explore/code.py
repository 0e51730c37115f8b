"""The Python code of what is on the screen: the points, the estimator with its parameters, the decision.

It is written from the estimator that the explorer fits, so that running it gives the same predictions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from separatrix.explore.fitting import REJECTED, build
from separatrix.explore.protocol import ExplorerState

# Beyond this many points the code reads the file that the page exports.
_MOST_WRITTEN = 2000


def code_of(state: ExplorerState) -> str:
    """A script that fits `model`, or `rule` where there is a decision, and predicts the rows `X`."""
    _, _, model = build(state)
    estimator = _expression(model)
    names = sorted({type(one).__name__ for one in _parts(model) if type(one).__module__.startswith("separatrix")})
    text = "\n".join([*_points(state), f"model = {estimator}", _fit("model", model, state)])
    if state.decision is not None:
        names.append("BayesRule")
        text += "\n" + _decision(state, hasattr(model, "predict_proba"))
    last = "model" if state.decision is None else "rule"
    text += f"\n\nprint({last}.predict(X))\n"
    if state.decision is None:
        text += "print(getattr(model, 'fit_', ''))\n"
    imports = ["import numpy as np"]
    imports += ["from sklearn.frozen import FrozenEstimator"] if "FrozenEstimator" in text else []
    imports += ["from sklearn.pipeline import Pipeline"] if isinstance(model, Pipeline) else []
    imports += ["", f"from separatrix import {', '.join(sorted(set(names), key=str.lower))}"]
    return "\n".join(imports) + "\n\n" + text


def _expression(model: Any) -> str:
    """The estimator with the parameters that differ from their defaults."""
    text = " ".join(model.__repr__(N_CHAR_MAX=10**6).split())
    return text.replace("=inf", "=np.inf")


def _parts(model: Any) -> list[Any]:
    return [model, *(one for one in model.get_params(deep=True).values() if isinstance(one, BaseEstimator))]


def _points(state: ExplorerState) -> list[str]:
    points = state.points
    classes = f"classes = {list(state.classes)!r}  # y holds places in this list"
    if len(points.X) > _MOST_WRITTEN:
        return [
            'x, y, weight = np.loadtxt("points.csv", delimiter=",", skiprows=1, usecols=(0, 1, 3)).T  # exported from the page',
            'labels = np.loadtxt("points.csv", delimiter=",", skiprows=1, usecols=2, dtype=int)',
            "X, y = np.column_stack([x, y]), labels",
            classes,
        ]
    rows = [f"X = np.array({points.X.tolist()!r})", f"y = np.array({points.codes.tolist()!r})"]
    if points.counted is not None:
        rows.append(f"weight = np.array({points.weights.tolist()!r})")
    return [*rows, classes]


def _fit(name: str, model: Any, state: ExplorerState) -> str:
    if state.points.counted is None:
        return f"{name}.fit(X, y)"
    if isinstance(model, Pipeline):
        given = ", ".join(f"{step}__sample_weight=weight" for step, _ in model.steps)
        return f"{name}.fit(X, y, {given})"
    return f"{name}.fit(X, y, sample_weight=weight)"


def _decision(state: ExplorerState, probabilistic: bool) -> str:
    decision, present = state.decision, np.unique(state.points.codes[state.points.weights > 0.0])
    assert decision is not None
    options = [f"loss={np.asarray(decision.loss)[np.ix_(present, present)].tolist()!r}"]
    if decision.reject is not None:
        options.append(f"reject_cost={decision.reject!r}")
    options.append(f"reject_action={REJECTED}")
    if decision.priors is not None:
        priors = np.asarray(decision.priors)[present]
        options.append(f"priors={(priors / priors.sum()).tolist()!r}")
    if probabilistic:
        inner, fit = f"{FrozenEstimator.__name__}(model)", "X, y"
    else:
        inner, fit = "model", "X, y" if state.points.counted is None else "X, y, sample_weight=weight"
        options.append("calibration='sigmoid'")
    return f"rule = BayesRule({inner}, {', '.join(options)}).fit({fit})"
