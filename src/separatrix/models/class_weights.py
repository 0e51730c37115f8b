"""Factors of the weights of classes, as scikit-learn's `class_weight` means them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.labels import listed
from separatrix.data.source import Source

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def class_counts(source: Source) -> Float:
    """(K,) total weight of every class of a labelled source; the features are not read."""
    assert source.classes is not None, "label the source first"
    n_classes = len(source.classes)
    counts = [np.bincount(block.codes, block.weights, n_classes) for block in source.blocks()]
    return np.sum(counts, axis=0, dtype=np.float64)


def class_factors(class_weight: ClassWeight, classes: NDArray[Any], counts: Float) -> Float | None:
    """Factor of the weight of every class; ``None`` when all are one."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        present = counts > 0
        return np.where(present, counts.sum() / (present.sum() * np.where(present, counts, 1.0)), 0.0)
    odd = [value for value in class_weight.values() if not (np.isfinite(value) and value >= 0)]
    if odd:
        raise ValueError(f"class_weight has the value {odd[0]!r}; weights must be finite and ≥ 0.")
    unknown = [label for label in class_weight if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes {listed(classes)}.")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    if ((factors > 0) & (counts > 0)).sum() < 2:
        raise ValueError("class_weight leaves fewer than two classes with a positive weight; a classifier needs two.")
    return factors
