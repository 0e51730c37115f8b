"""Gaussian classes: distances, posteriors, score forms and rows drawn from means and metrics.

δ_k(x) = log π_k − ½ log|2πΣ_k| − ½ (x−μ_k)ᵀΣ_k⁻¹(x−μ_k)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from separatrix.data import Block
from separatrix.data.block import Codes, Float
from separatrix.geometry import Quadratic, ScoreForm
from separatrix.models.generative import GenerativeClassifier
from separatrix.statistics.gaussian_rows import gaussian_rows
from separatrix.statistics.metric import Metric
from separatrix.statistics.scatter import Scatter

_LOG_2PI = float(np.log(2.0 * np.pi))


class GaussianClassifier(GenerativeClassifier):
    """Gaussian classes: one mean and one metric each."""

    means_: Float
    _metrics: list[Metric]
    """One per class; the same object where classes share a covariance."""
    _covariances: Sequence[tuple[Scatter, Float | None]]
    """Of every class, as a scatter and a diagonal to add."""

    def _distances(self, rows: Float) -> Float:
        means, metrics = self.means_.astype(np.float64), self._metrics
        with np.errstate(invalid="ignore", over="ignore"):  # bad input is reported by the caller, by column
            return np.column_stack(
                [metric.squared_lengths(rows - mean) for mean, metric in zip(means, metrics, strict=True)]
            )

    def mahalanobis(self, X: Any) -> Float:
        """Squared Mahalanobis distance of every row to every class mean.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        self._check_ready()
        return self._map_rows(X, lambda block: self._distances(block.dense()))

    @property
    def shares_covariance_(self) -> bool:
        """Whether all classes have one covariance, so that their boundaries are hyperplanes."""
        self._check_ready()
        return all(metric is self._metrics[0] for metric in self._metrics)

    def _draw_rows(self, codes: Codes, rng: Any) -> Float:
        return gaussian_rows(self.means_, self._covariances, codes, rng)

    def score_form(self) -> ScoreForm:
        self._check_ready()
        factors = {id(metric): metric.half(np.eye(metric.n_features)) for metric in self._metrics}
        volumes = np.array([metric.log_det + metric.rank * _LOG_2PI for metric in self._metrics])
        with np.errstate(divide="ignore"):  # a class of prior 0 is never chosen
            constants = np.log(self.priors_) - 0.5 * volumes
        means = np.asarray(self.means_, dtype=np.float64)
        return Quadratic(means, [factors[id(metric)] for metric in self._metrics], constants)

    def _log_joint(self, X: Any) -> Float:
        self._check_ready()

        def of_block(block: Block) -> Float:
            rows = block.dense()
            distances = self._distances(rows)
            far = np.isinf(distances).all(axis=1) & np.isfinite(rows).all(axis=1)
            if far.any():  # beyond 1e154 the squares overflow: the same rows nearer by, in the same direction
                distances[far] = self._distances(rows[far] / np.abs(rows[far]).max(axis=1, keepdims=True) * 1e100)
            return distances

        distances = self._map_rows(X, of_block)
        log_dets = np.array([metric.log_det + metric.rank * _LOG_2PI for metric in self._metrics])
        with np.errstate(divide="ignore"):  # a class of prior 0 has log prior −inf: it is never chosen
            return -0.5 * (distances + log_dets) + np.log(self.priors_)
