"""The learning curve of the recommended family: would more rows help?

Of each fold's training part a share is learnt from, with the parameters that all of it chose, and the fold is predicted. Larger
shares contain smaller ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss

from separatrix.comparison.fitting import predictions, train
from separatrix.comparison.measures import standard_error
from separatrix.comparison.validation import Step, Task, Trial
from separatrix.data.block import Codes, Float
from separatrix.geometry.programmes import Deadline, OutOfTime

LEARNING_SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)


def learning_curve(task: Task, trial: Trial, step: Step) -> dict[str, Any]:
    """Scores on the rows learnt from and on those left out, for five sizes of the training part of each fold.

    The parameters are those that the full training part of the fold chose; its model is known. A size too small to fit is
    left out; a curve that takes longer than a stage may says so under "given_up".
    """
    codes, family = task.codes, trial.family
    limit = Deadline(task.stage_seconds)
    found: list[tuple[float, Float]] = []
    curve: dict[str, Any] = {"score": "accuracy" if trial.proba is None else "log_loss", "given_up": ""}
    for share in LEARNING_SHARES:
        sizes, scores = [], []
        for k in range(task.n_folds):
            step(f"learning curve: {share:.0%} of the rows")
            inside, outside = task.fold(k)
            inside = _first(inside, codes, share, task.seed)
            known = trial.models[k] if share == 1.0 else None
            part = task.part(inside, outside, None if known is None else known.encoder)
            try:
                if task.schema.prose and family.encoded and known is None:
                    part.learn(limit)
                X, X_left_out = part.of(family)
                y, given = codes[inside], trial.parameters[k]
                related = task.related.take(inside)
                model = known or train(family, trial.build, X, y, task.seed, given, limit, part.weights, related)
                weights = None if task.weights is None else task.weights[outside]
                left_out = _score(model.estimator, X_left_out, codes[outside], weights)
                scores.append([_score(model.estimator, X, y, part.weights), left_out])
            except OutOfTime:
                after = f"after {task.stage_seconds:.3g} s; raise stage_seconds (--stage-seconds) to wait."
                curve["given_up"] = f"The learning curve was given up {after}"
                break
            except Exception:  # too few rows for this family, hence a gap in the curve
                break
            sizes.append(len(inside))
        if len(sizes) == task.n_folds:
            found.append((float(np.mean(sizes)), np.array(scores)))
    curve["sizes"] = [round(size) for size, _ in found]
    for at, side in enumerate(("train", "test")):
        curve[f"{side}_mean"] = [float(scores[:, at].mean()) for _, scores in found]
        curve[f"{side}_error"] = [standard_error(scores[:, at], task.n_folds) for _, scores in found]
    return curve


def _score(estimator: Any, X: Any, codes: Codes, weights: Float | None) -> float:
    predicted, proba = predictions(estimator, X)
    if proba is None:
        return float(accuracy_score(codes, predicted, sample_weight=weights))
    return float(log_loss(codes, proba, labels=np.arange(proba.shape[1]), sample_weight=weights))


def _first(inside: Codes, codes: Codes, share: float, seed: int) -> Codes:
    """A share of the rows, the same of every class, two of each at least; larger shares contain smaller ones."""
    order = np.random.default_rng(seed).permutation(inside)
    depth = np.empty(len(order))
    fewest = 0
    for code in np.unique(codes[order]):
        own = np.flatnonzero(codes[order] == code)
        depth[own] = (np.arange(len(own)) + 0.5) / len(own)
        depth[own[:2]] = 0.0
        fewest += min(2, len(own))
    size = max(fewest, round(share * len(order)))
    return np.sort(order[np.argsort(depth, kind="stable")[:size]])
