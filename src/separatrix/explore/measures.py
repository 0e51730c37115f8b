"""How well a rule does on the points on the screen: accuracy, confusion, the ROC curve of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import auc, roc_curve

from separatrix.explore.fitting import REJECTED, FittedRule

_ROC_POINTS = 150


def measures(fitted: FittedRule) -> dict[str, Any]:
    """Weighted by the points; on the points that were fitted."""
    points, codes, actions = fitted.state.points, fitted.classes, fitted.actions
    predicted = fitted.predict(points.X)
    confusion = np.array(
        [[points.weights[(points.codes == k) & (predicted == a)].sum() for a in actions] for k in codes]
    )
    total = float(points.weights.sum())
    right = float(points.weights[points.codes == predicted].sum())
    found: dict[str, Any] = {
        "accuracy": right / total,
        "confusion": {"truths": codes, "actions": actions, "counts": confusion},
        "wrong": np.flatnonzero((predicted != points.codes) & (predicted != REJECTED)),
        "roc": None,
    }
    scores = _ranking_scores(fitted)
    counted = points.weights > 0.0
    if scores is not None and np.isfinite(scores).all():
        truth = points.codes[counted] == codes[1]
        weights = points.weights[counted]
        false, true, _ = roc_curve(truth, scores[counted], sample_weight=weights)
        keep = np.unique(np.linspace(0, len(false) - 1, _ROC_POINTS).astype(int))
        found["roc"] = {"false": false[keep].round(5), "true": true[keep].round(5), "area": float(auc(false, true))}
    return found


def _ranking_scores(fitted: FittedRule) -> Any:
    scores = fitted.binary_scores(fitted.state.points.X)
    if scores is None and len(fitted.classes) == 2 and hasattr(fitted.model, "predict_proba"):
        return fitted.model.predict_proba(fitted.state.points.X)[:, 1]
    return scores
