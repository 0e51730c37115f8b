"""Pipelines and feature maps as an export reads them: every column that reaches the model, as a feature of the table.

    scalers        ((v − c)/s − m)/t = (v − (c + ms))/(st)
    imputers       the fill of a feature; an indicator is the feature [x is missing]
    one-hot        [x = level] for every category that was not dropped
    polynomials    products of features

What is none of these is refused by the name of its step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Feature:
    """((v or fill) − centre)/scale of a column, or of [x is missing] or [x = level]; without a fill what is missing stays.

    Of "target" v is looked up in `values`, 0 for a text that is not there; of "text" it is the score of its `words`.
    """

    name: str
    column: str
    what: Literal["value", "missing", "level", "target", "text"] = "value"
    level: Any = ""
    fill: Any = None
    centre: float = 0.0
    scale: float = 1.0
    values: Mapping[str, float] = field(default_factory=dict)
    words: Sequence[tuple[int, float, float]] = ()
    """Of free text hashed words: bucket, idf and weight."""

    def moved(self, centre: float, scale: float) -> Feature:
        """(the feature − centre)/scale."""
        return replace(self, centre=self.centre + float(centre) * self.scale, scale=self.scale * float(scale))


Products = tuple[tuple[int, ...], ...]


def unfolded(model: Any) -> tuple[list[Any], Any]:
    """The transformers that rows pass through, and the estimator behind them."""
    from sklearn.pipeline import Pipeline

    from separatrix.models.feature_map import FeatureMap

    if isinstance(model, Pipeline):
        inner, estimator = unfolded(model.steps[-1][1])
        return [*(step for _, step in model.steps[:-1]), *inner], estimator
    if isinstance(model, FeatureMap):
        inner, estimator = unfolded(model.estimator_)
        return [model.transformer_, *inner], estimator
    return [], model


def transformed(transformers: Sequence[Any], names: Sequence[str]) -> tuple[tuple[Feature, ...], Products]:
    """The features that the transformers make of columns, and the products of them that the estimator reads, if any."""
    features = [Feature(name, name) for name in names]
    products: Products = ()
    for transformer in transformers:
        if products:
            raise NotImplementedError(
                f"{type(transformer).__name__} comes after products of columns. Put it before PolynomialFeatures."
            )
        if type(transformer).__name__ == "PolynomialFeatures" and hasattr(transformer, "powers_"):
            products = tuple(
                tuple(j for j, power in enumerate(row) for _ in range(int(power))) for row in transformer.powers_
            )
        else:
            features = _through(transformer, features)
    return tuple(features), products


def _through(transformer: Any, features: list[Feature]) -> list[Feature]:
    if transformer is None or (isinstance(transformer, str) and transformer == "passthrough"):
        return features
    name = type(transformer).__name__
    if not type(transformer).__module__.startswith("sklearn.") or name not in _STEPS:
        if hasattr(transformer, "get_support"):
            return [features[j] for j in transformer.get_support(indices=True)]
        raise NotImplementedError(
            f"{name} is a step that has no written form. Use {', '.join(_STEPS)} or PolynomialFeatures, or keep Python."
        )
    return _STEPS[name](transformer, features)


def _pipeline(pipeline: Any, features: list[Feature]) -> list[Feature]:
    for _, step in pipeline.steps:
        features = _through(step, features)
    return features


def _columns(transformer: Any, features: list[Feature]) -> list[Feature]:
    if transformer.transformer_weights:
        raise NotImplementedError("its ColumnTransformer has transformer_weights. Leave them out, or keep Python.")
    names = list(getattr(transformer, "feature_names_in_", ()))
    found: list[Feature] = []
    for _, step, columns in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        found += _through(step, [features[j] for j in _places(columns, names, len(features))])
    return found


def _places(columns: Any, names: list[Any], width: int) -> list[int]:
    if isinstance(columns, slice) and any(isinstance(end, str) for end in (columns.start, columns.stop)):
        first = 0 if columns.start is None else names.index(columns.start)
        last = width if columns.stop is None else names.index(columns.stop) + 1  # labels of a slice are both in it
        return list(range(first, last))
    if isinstance(columns, slice):
        return list(range(width)[columns])
    listed = [columns] if isinstance(columns, str | int) else list(columns)
    if len(listed) == width and all(isinstance(one, bool | np.bool_) for one in listed):
        return np.flatnonzero(listed).tolist()
    return [names.index(one) if isinstance(one, str) else range(width)[one] for one in listed]


def _affine(features: list[Feature], centre: Any, scale: Any) -> list[Feature]:
    centres = np.zeros(len(features)) if centre is None else centre
    scales = np.ones(len(features)) if scale is None else scale
    return [feature.moved(c, s) for feature, c, s in zip(features, centres, scales, strict=True)]


def _least_most(scaler: Any, features: list[Feature]) -> list[Feature]:
    if scaler.clip:
        raise NotImplementedError("its MinMaxScaler clips. Use clip=False, or keep Python.")
    return _affine(features, -scaler.min_ / scaler.scale_, 1.0 / scaler.scale_)


def _imputed(imputer: Any, features: list[Feature]) -> list[Feature]:
    if not _is_missing(imputer.missing_values):
        raise NotImplementedError(
            f"its SimpleImputer takes {imputer.missing_values!r} for a missing value. Use np.nan, or keep Python."
        )
    found = []
    for feature, fill in zip(features, imputer.statistics_, strict=True):
        if _is_missing(fill):  # of an empty column, which is dropped
            continue
        if feature.what == "value" and feature.fill is None:
            # The fill is in the units of what came before.
            own = fill if isinstance(fill, str) else float(fill) * feature.scale + feature.centre
            feature = replace(feature, fill=own)
        found.append(feature)
    indicator = imputer.indicator_
    marked = [] if indicator is None else [features[j] for j in indicator.features_]
    return found + [Feature(f"{one.column} is missing", one.column, "missing") for one in marked]


def _encoded(encoder: Any, features: list[Feature]) -> list[Feature]:
    if any(group is not None for group in getattr(encoder, "infrequent_categories_", ())):
        raise NotImplementedError(
            "its OneHotEncoder pools rare categories. Leave out min_frequency and max_categories."
        )
    dropped = [None] * len(features) if encoder.drop_idx_ is None else list(encoder.drop_idx_)
    found = []
    for feature, levels, drop in zip(features, encoder.categories_, dropped, strict=True):
        if feature.what != "value" or feature.centre != 0.0 or feature.scale != 1.0:
            raise NotImplementedError(
                f"its OneHotEncoder reads {feature.name!r} after a scaler. Encode before scaling."
            )
        for at, level in enumerate(levels):
            if at == drop:
                continue
            if _is_missing(level):
                found.append(Feature(f"{feature.column} is missing", feature.column, "missing"))
                continue
            own = level if isinstance(level, str | bool | np.bool_) else float(level)
            own = str(own) if isinstance(own, str) else bool(own) if isinstance(own, np.bool_) else own
            found.append(replace(feature, name=f"{feature.column} = {own}", what="level", level=own))
    return found


def _unchanged(transformer: Any, features: list[Feature]) -> list[Feature]:
    if transformer.func is not None:
        raise NotImplementedError("its FunctionTransformer calls a Python function. Keep Python.")
    return features


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


_STEPS: dict[str, Callable[[Any, list[Feature]], list[Feature]]] = {
    "ColumnTransformer": _columns,
    "FunctionTransformer": _unchanged,
    "MaxAbsScaler": lambda scaler, features: _affine(features, None, scaler.scale_),
    "MinMaxScaler": _least_most,
    "OneHotEncoder": _encoded,
    "Pipeline": _pipeline,
    "RobustScaler": lambda scaler, features: _affine(features, scaler.center_, scaler.scale_),
    "SimpleImputer": _imputed,
    "StandardScaler": lambda scaler, features: _affine(
        features, scaler.mean_ if scaler.with_mean else None, scaler.scale_
    ),
}
