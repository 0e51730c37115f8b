"""Where the columns of a tensor hold a number that is NaN or infinite: how many rows of weight, and which comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.device.tensors import pytorch
from separatrix.kernels.device.torch_losses import runs


def non_finite_columns(X: Any, weights: Any, start: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Of each column the number of such rows and the first, from `start` on, or -1; rows of weight zero are passed over."""
    torch, (n, d) = pytorch(), X.shape
    count, first = np.zeros(d, dtype=np.intp), np.full(d, -1, dtype=np.intp)
    for at in runs(n, d):
        bad = ~torch.isfinite(X[at])
        if weights is not None:
            bad &= (weights[at] > 0)[:, None]
        found = bad.sum(dim=0)
        if not bool(found.any()):
            continue
        fresh = np.flatnonzero((found.cpu().numpy() > 0) & (first < 0))
        places = bad[:, torch.as_tensor(fresh).to(bad.device)].byte().argmax(dim=0).cpu().numpy()
        first[fresh] = start + at.start + places
        count += found.cpu().numpy()
    return count, first
