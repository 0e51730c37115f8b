"""Factors of the weights of classes, as scikit-learn's `class_weight` means them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Float
from separatrix.data.source import Source

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def class_counts(source: Source) -> Float:
    """(K,) total weight of every class of a labelled source; the features are not read."""
    assert source.classes is not None, "label the source first"
    n_classes = len(source.classes)
    counts = source.each(lambda block: block.class_weight(n_classes))
    return np.sum(list(counts), axis=0, dtype=np.float64)


def class_factors(class_weight: ClassWeight, classes: NDArray[Any], counts: Float) -> Float | None:
    """Factor of the weight of every class; ``None`` when all are one. `check_class_weight` checks them."""
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        present = counts > 0
        return np.where(present, counts.sum() / (present.sum() * np.where(present, counts, 1.0)), 0.0)
    return np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
