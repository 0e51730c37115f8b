"""Rows in the order of their classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Codes, Float


def class_runs(codes: Codes, n_classes: int, weights: Float | None) -> tuple[NDArray[Any], Codes, Codes, Float | None]:
    """Order that sorts rows by class without those of weight 0, the class of each run, its length, sorted weights."""
    small = codes.astype(np.int16, copy=False) if n_classes < 2**15 else codes  # 16-bit keys sort by radix
    if weights is None:
        order = np.argsort(small, kind="stable")
    else:
        kept = np.flatnonzero(weights)
        order = kept[np.argsort(small[kept], kind="stable")]
        weights = weights[order]
    lengths = np.bincount(codes[order], minlength=n_classes)
    present = np.flatnonzero(lengths)
    return order, present, lengths[present], weights
