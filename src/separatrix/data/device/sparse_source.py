"""A sparse matrix on a device with its targets and weights as a source: one block, which keeps its entries by columns too."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.device.csr import CsrRows, csr_rows, moved_rows
from separatrix.data.device.source import DeviceSource, beside_rows
from separatrix.data.device.sparse_block import SparseDeviceBlock
from separatrix.data.source import Source


class SparseDeviceSource(DeviceSource):
    """Sparse rows on any device; all arithmetic is of double precision."""

    def __init__(self, X: CsrRows, y: Any, weights: Any) -> None:
        super().__init__(X, y, weights)
        self.entries = len(X.values)

    def _whole(self, X: Any, weights: Any) -> SparseDeviceBlock:
        return SparseDeviceBlock(X, None, weights)

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._X[which], None, None)

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        drawn, which = super().sample(rows) or (None, None)
        assert isinstance(drawn, SparseDeviceSource) and which is not None
        drawn.entries = len(drawn._X.values)
        return drawn, which

    def precise(self) -> Self:
        return self

    def matrix(self) -> Any:
        return self._X.host()


def sparse_device_source(X: Any, y: Any, sample_weight: Any) -> Source:
    """`source_of` of a PyTorch or CuPy sparse matrix, with targets and weights from the host or from the same device."""
    rows = csr_rows(X)
    return SparseDeviceSource(rows, *beside_rows(rows, y, sample_weight))


def moved_sparse_source(X: Any, y: Any, sample_weight: Any, device: str) -> Source:
    """`source_of` of a SciPy matrix whose entries are moved to a device."""
    rows = moved_rows(X, device)
    return SparseDeviceSource(rows, *beside_rows(rows, y, sample_weight))
