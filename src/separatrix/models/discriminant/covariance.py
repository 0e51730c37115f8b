"""Class covariances as the discriminants read them: shrunk, estimated by a plug-in, or averaged over the classes."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from separatrix.data import Block, Source
from separatrix.data.block import Float
from separatrix.statistics.moments import ClassMoments, Divisor
from separatrix.statistics.scatter import Scatter, combine
from separatrix.statistics.shrinkage import (
    Covariance,
    class_scales,
    fourth_moments,
    ledoit_wolf_intensity,
    oas_intensity,
    shrunk,
    standardised,
)

Shrinkage = float | Literal["auto", "oas"] | None


def class_covariances(
    moments: ClassMoments, shrinkage: Shrinkage, divisor: Divisor, source: Source | None
) -> list[Covariance]:
    """Σ_k of every class, shrunk; classes without rows have a zero matrix. "auto" reads the source a second time."""
    d = moments.n_features
    fourth = scales = None
    if shrinkage == "auto":
        assert source is not None
        scales = class_scales(moments)
        fourth = fourth_moments(source, moments.means, scales)
    result: list[Covariance] = []
    for k, count in enumerate(moments.counts):
        size = moments.class_divisor(k, divisor)
        scatter = moments.of_class(k)
        covariance = combine([(1.0 / size if size > 0 else 0.0, scatter)], d)
        if fourth is not None and scales is not None and count > 0:
            unit = standardised(scatter, scales[k])
            intensity = ledoit_wolf_intensity(unit, count, float(fourth[k]))
            floor = intensity * unit.trace() / (count * d) * np.square(scales[k]) if intensity else None
            result.append((combine([(1.0 - intensity, covariance)], d), floor))
        else:
            intensity = oas_intensity(scatter, count) if shrinkage == "oas" and count > 0 else _number(shrinkage)
            result.append(shrunk(covariance, intensity, "trace"))
    return result


def second_pass_parameter(model: Any) -> str:
    """Which of a discriminant's parameters, if any, needs the rows twice."""
    if model.covariance_estimator is not None:
        return "covariance_estimator"
    return "shrinkage='auto'" if isinstance(model.shrinkage, str) and model.shrinkage == "auto" else ""


def full_matrix(covariance: Covariance) -> Float:
    """A covariance as a new d×d array."""
    scatter, floor = covariance
    return scatter.matrix().copy() if floor is None else scatter.matrix() + np.diag(floor)


def check_one_regulariser(model: Any) -> None:
    """Refuse a discriminant with both a covariance estimator and shrinkage."""
    if model.covariance_estimator is not None and model.shrinkage not in (None, 0):
        raise ValueError("covariance_estimator and shrinkage parameters are not None. Only one of the two can be set.")


def _number(shrinkage: Shrinkage) -> float:
    return 0.0 if shrinkage is None or isinstance(shrinkage, str) else float(shrinkage)


def average(covariances: list[Covariance], weights: Float, n_features: int) -> Covariance:
    """Σ_k π_k Σ_k."""
    scatter = combine(((float(w), part) for w, (part, _) in zip(weights, covariances, strict=True)), n_features)
    floors = [w * floor for w, (_, floor) in zip(weights, covariances, strict=True) if floor is not None]
    return scatter, np.sum(floors, axis=0) if floors else None


def estimated_covariances(estimator: Any, source: Source, n_classes: int) -> list[Covariance]:
    """Σ_k from an object with `fit` and ``covariance_``, which needs the rows of each class together."""
    parts: list[list[Float]] = [[] for _ in range(n_classes)]

    def of_block(block: Block) -> list[Float]:
        if block.weights is not None and not np.isin(block.weights, (0.0, 1.0)).all():
            raise ValueError(
                "covariance_estimator cannot take sample_weight; use shrinkage instead, or weights 0 and 1."
            )
        rows, counted = block.dense(), np.ones(block.n) if block.weights is None else block.weights
        return [rows[(block.codes == k) & (counted > 0)] for k in range(n_classes)]

    for block_rows in source.map(of_block):
        for k, rows in enumerate(block_rows):
            parts[k].append(rows)
    result: list[Covariance] = []
    for class_rows in parts:
        rows = np.concatenate(class_rows)
        if not len(rows):  # a class without weight
            result.append((Scatter.empty(source.n_features), None))
            continue
        estimator.fit(rows)
        if not hasattr(estimator, "covariance_"):
            raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
        result.append((Scatter(matrix=np.asarray(estimator.covariance_, dtype=np.float64)), None))
    return result
