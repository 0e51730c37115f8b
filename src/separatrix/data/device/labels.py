"""Labels on a device, counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.device.tensors import pytorch
from separatrix.kernels.device import cuda

# Classes that are counted one after the other.
_FEW_CLASSES = 16


def label_counts(codes: Any, n_classes: int) -> NDArray[np.intp]:
    """(K,) how many of the labels 0 … K − 1 are of each class."""
    torch = pytorch()
    if codes.is_cuda and codes.element_size() == 1 and len(codes) and cuda.available():
        counts = cuda.label_counts(codes.contiguous(), n_classes)
    elif n_classes <= _FEW_CLASSES and len(codes):  # many threads that add to few numbers wait for each other
        counts = torch.stack([(codes == k).sum() for k in range(n_classes)]).cpu().numpy()
    else:
        counts = torch.bincount(codes.int(), minlength=n_classes).cpu().numpy()
    result: NDArray[np.intp] = counts.astype(np.intp)
    return result
