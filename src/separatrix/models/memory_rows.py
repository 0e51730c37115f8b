"""All rows that count, in memory at once, for the models that visit them out of order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from separatrix.data import Source
from separatrix.data.block import Codes, Float
from separatrix.models.class_weights import ClassWeight, class_factors


@dataclass(frozen=True)
class MemoryRows:
    """The n rows of positive weight: X as it is stored when every row counts, else a copy of those that do; (n,) class codes
    and sample weights, (K,) factors of the weights of the classes, and which rows were `kept`.
    """

    X: Any
    codes: Codes
    weights: Float
    factors: Float
    kept: NDArray[np.intp]

    @property
    def prices(self) -> Float:
        """(n,) weight times the factor of the class."""
        return self.weights * self.factors[self.codes]

    def by_class(self) -> MemoryRows:
        """The rows of each class beside one another, in their order."""
        order, X = np.argsort(self.codes, kind="stable"), self.X
        columnwise = not sp.issparse(X) and X.flags.f_contiguous
        taken = X.T.take(order, axis=1).T if columnwise else X[order]  # in the order in which it is stored
        return MemoryRows(taken, self.codes[order], self.weights[order], self.factors, self.kept[order])


def memory_rows(source: Source, class_weight: ClassWeight) -> MemoryRows:
    """The rows of a labelled source; NaN and infinity are refused."""
    classes = source.classes
    assert classes is not None, "label the source first"
    blocks = list(source.blocks())
    codes = np.concatenate([block.codes for block in blocks])
    weights = np.concatenate([np.ones(block.n) if block.weights is None else block.weights for block in blocks])
    counts = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    found = class_factors(class_weight, classes, counts)
    factors = np.ones(len(classes)) if found is None else found
    kept = np.flatnonzero(weights * factors[codes] > 0)
    X = source.matrix()
    rows = X if len(kept) == len(codes) else X[kept]
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray((rows.data if sp.issparse(rows) else rows).sum(dtype=np.float64))
    if not np.isfinite(total) and source.explain_non_finite():
        source.check_finite(total)
    return MemoryRows(rows, codes[kept], weights[kept], factors, kept)
