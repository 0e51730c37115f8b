"""The decision stage: expected losses as lines in p, where the action changes, and what the rule costs on the points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from separatrix.decide import risk
from separatrix.explore.drawing import chart, fact, series
from separatrix.explore.fitting import REJECTED, FittedRule


def decisions(fitted: FittedRule) -> Iterator[dict[str, Any]]:
    """Nothing where there is no decision stage."""
    if not fitted.decides:
        return
    rule, state, codes = fitted.rule, fitted.state, fitted.classes.tolist()
    points, matrix = state.points, np.asarray(rule.loss_matrix_)
    actions = fitted.predict(points.X)
    counted = points.weights > 0.0
    found = risk(
        points.codes[counted],
        actions[counted],
        matrix,
        classes=codes,
        reject_cost=rule.reject_cost,
        reject_action=REJECTED,
        sample_weight=points.weights[counted],
        n_resamples=200,  # quick; only a loss that is not 0 or 1 needs them
        random_state=0,
    )
    yield fact("mean loss on the points", f"{found.estimate:.4g} ({found.lower:.3g} … {found.upper:.3g})")
    if rule.reject_cost is not None:
        yield fact("rejected", f"{int((actions == REJECTED).sum())} of {len(actions)} points")
    if not hasattr(fitted.family.build(**fitted.parameters), "predict_proba"):
        yield fact("probabilities", "by a sigmoid of the score, on five folds")
    if len(codes) != 2:
        return
    p = np.array([0.0, 1.0])
    drawn = [
        series(p, matrix[0, a] + p * (matrix[1, a] - matrix[0, a]), state.classes[code], action=code)
        for a, code in enumerate(codes)
    ]
    if rule.reject_cost is not None:
        drawn.append(series(p, [rule.reject_cost] * 2, "reject", kind="dashed", action=REJECTED))
    breaks = rule.decision_regions().breakpoints
    note = "The action changes at " + " and ".join(f"{at:.3g}" for at in breaks) + "." if len(breaks) else ""
    name = state.classes[codes[1]]
    yield chart("Expected loss of each action", f"p({name})", "loss", drawn, marks=breaks, note=note)
