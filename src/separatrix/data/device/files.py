"""Rows of files that are summed on a device: decoded into pinned memory, copied while the next ones are decoded.

The reader writes the columns of a batch where the device fetches them from: nothing is copied in between. A worker waits for
its copy, on a stream of its own, while another decodes and the device computes on earlier rows; they are turned from columns to
rows there.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, StoredBlock
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints
from separatrix.data.device.tensors import pytorch, usable
from separatrix.data.files import FileSource
from separatrix.data.source import Source
from separatrix.data.views import View

# Bytes of the rows that are copied at a time.
BLOCK_BYTES = 32 << 20


class DeviceFiles(View):
    """The blocks of files of numbers, each on the device while it is read."""

    def __init__(self, files: FileSource, device: str) -> None:
        place = usable(device)
        super().__init__(files.laid_out(BLOCK_BYTES, _pinned if place.type == "cuda" else None))
        self.device = self.place = str(place)
        self.shared_out, self._precise = True, False

    def map_block(self, block: Block) -> Block:
        assert isinstance(block, StoredBlock), "files give blocks of an array"
        X = block.X if block.X.flags.writeable else np.array(block.X)
        rows = DeviceBlock(_moved(pytorch().from_numpy(X.T), self.device), block.y, block.weights, block.start)
        rows.near(Hints.of(rows.X))
        rows.precise = self._precise
        return rows

    def precise(self) -> Source:
        if self._precise or self.dtype == np.float64 or not str(self.device).startswith("cuda"):
            return self
        view = copy(self)
        view._precise = True
        return view

    def _over(self, source: Source) -> Self:
        view = super()._over(source)
        view.device = self.device
        return view

    @property
    def identity(self) -> list[Any]:
        return self.source.identity

    @property
    def encoding(self) -> Any:
        return self.source.encoding


def _pinned(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory for columns that the device can fetch while the processor does something else."""
    torch = pytorch()
    kind = torch.float32 if dtype == np.float32 else torch.float64
    columns: NDArray[Any] = torch.empty(shape[::-1], dtype=kind, pin_memory=True).numpy()
    return columns.T


def _moved(columns: Any, device: str | None) -> Any:
    """(n, d) rows on the device of (d, n) columns here."""
    torch = pytorch()
    if not str(device).startswith("cuda"):
        return columns.to(device).T.contiguous()
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        rows = columns.to(device, non_blocking=True).T.contiguous()
    stream.synchronize()  # the pinned memory is free for other rows now, and the device may read these on any stream
    return rows
