"""K-fold losses of regularised discriminants over a grid, from the moments of the folds.

The moments of every fold are added up in one pass; those of a training set are the other folds' merged. Every row is
then scored by the model of the folds it is not in, in a second pass. No model is fitted to rows again.

**Complexity** O(F·A·G·K·(d³ + nd²/F)). **Passes over the data** two.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from separatrix.data.block import Block, Codes, Float
from separatrix.data.source import Source
from separatrix.statistics.loo_grid import Grid
from separatrix.statistics.metric import Metric, metric_of
from separatrix.statistics.mixing import mixed_covariance, regularised
from separatrix.statistics.moments import ClassMoments

Model = tuple[Float, Float, list[list[list[Metric]]]]


def fold_losses(source: Source, folds: Codes, n_classes: int, grid: Grid, tol: float) -> tuple[Float, Float]:
    """(alphas, gammas) mean log-loss and error rate over rows each scored without its own fold."""
    n_folds = int(folds.max()) + 1

    def moments_of(block: Block) -> list[ClassMoments]:
        mine = folds[block.start : block.start + block.n]
        # A weight of zero is the same as not being there, so one block serves all folds.
        parts = []
        given = block.weights
        for fold in range(n_folds):
            block.weights = np.where(mine == fold, 1.0 if given is None else given, 0.0)
            parts.append(ClassMoments.of_block(block, n_classes, "per_class"))
        block.weights = given
        return parts

    def merge(a: list[ClassMoments], b: list[ClassMoments]) -> list[ClassMoments]:
        return [mine.merge(theirs) for mine, theirs in zip(a, b, strict=True)]

    parts = source.reduce(moments_of, merge)
    models = [_model([part for f, part in enumerate(parts) if f != fold], grid, tol) for fold in range(n_folds)]

    def losses_of(block: Block) -> Float:
        weights = block.row_weights
        mine, rows, codes = folds[block.start : block.start + block.n], block.dense(), block.codes
        losses = np.zeros((2, len(grid.alphas), len(grid.gammas)))
        for fold in np.unique(mine[weights > 0]):
            at = (mine == fold) & (weights > 0)
            losses += _losses(rows[at], codes[at], weights[at], models[fold])
        return losses

    total = source.reduce(losses_of, np.add) / sum(part.total for part in parts)
    return total[0], total[1]


def _model(parts: list[ClassMoments], grid: Grid, tol: float) -> Model:
    moments = parts[0].copy()
    for part in parts[1:]:
        moments.merge(part)
    if (moments.counts == 0).any():
        raise ValueError("A class has no rows outside one of the folds; use fewer folds or stratify them.")
    pooled = moments.pooled()
    metrics: list[list[list[Metric]]] = []
    for alpha in grid.alphas:
        mixed = [
            mixed_covariance(moments, pooled, k, float(alpha), grid.mix, grid.divisor) for k in range(moments.n_classes)
        ]
        metrics.append(
            [[metric_of(*regularised(part, float(g), grid.target), tol=tol) for part in mixed] for g in grid.gammas]
        )
    priors = moments.counts / moments.total if grid.priors is None else grid.priors
    with np.errstate(divide="ignore"):  # prior 0: the class is impossible
        return moments.means, np.log(priors), metrics


def _losses(rows: Float, codes: Codes, weights: Float, model: Model) -> Float:
    means, log_priors, metrics = model
    losses = np.empty((2, len(metrics), len(metrics[0])))
    for a, by_gamma in enumerate(metrics):
        for g, classes in enumerate(by_gamma):
            if any(metric.singular for metric in classes):
                losses[:, a, g] = np.inf
                continue
            parts = [
                metric.squared_lengths(rows - mean) + metric.log_det
                for mean, metric in zip(means, classes, strict=True)
            ]
            scores = log_priors - 0.5 * np.column_stack(parts)
            log_posterior = log_softmax(scores, axis=1)
            losses[0, a, g] = -(weights @ np.take_along_axis(log_posterior, codes[:, None], axis=1)[:, 0])
            losses[1, a, g] = weights @ (scores.argmax(axis=1) != codes)
    return losses
