"""The sums of linear_rows.cu by Triton, for a device without CuPy: each row read once, all arithmetic in double precision.

Rows are dealt to a fixed number of programs, tile by tile; each keeps its sums in double precision and leaves them in a row of
its own, and these are added in their order: the same bits on every run.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import LOSSES, ROUNDED_UP
from separatrix.kernels.device.torch_losses import DeviceSums
from separatrix.kernels.device.triton_kernel import CONSTANTS, linear_pass

_PROGRAMS, _TILE, _REST = 1056, 1024, 8


@cache
def found() -> bool:
    """Whether Triton is installed, and a device that it compiles for."""
    return find_spec("triton") is not None and bool(import_module("torch").cuda.is_available())


@cache
def _kernel() -> Any:
    linear_pass.__annotations__.update(dict.fromkeys(CONSTANTS, "tl.constexpr"))
    return import_module("triton").jit(linear_pass)


def linear_sums(
    kind: str,
    X: Any,
    codes: Any,
    weights: Any,
    offset: Any,
    columns: Any,
    b: float,
    centred: bool,
    keep: bool,
    precise: bool,
    width: float = 0.0,
) -> DeviceSums:
    """As that of cuda.py; always of double precision."""
    torch = import_module("torch")
    n, d = X.shape
    padded = max(16, 1 << (d - 1).bit_length())
    rows = max(1, _TILE // padded)
    # Numbers that Triton is given as such are of single precision.
    moved = torch.as_tensor(np.concatenate([np.ravel(columns), [b, width]]).astype(np.float64)).to(X.device)
    held = [X if a is None else a.double().contiguous() for a in (weights, offset)]  # in place of none: never read
    partial = torch.empty((_PROGRAMS, padded + _REST), dtype=torch.float64, device=X.device)
    bends = torch.empty(n if keep else 1, dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _kernel()[(_PROGRAMS,)](
            *(X, X.stride(0), X.stride(1), codes.contiguous(), *held, moved, moved[-2:], n, partial, bends),
            D=d,
            LOSS=LOSSES[kind],
            ROWS=rows,
            COLUMNS=padded,
            WEIGHTED=weights is not None,
            MOVED=offset is not None,
            KEEP=keep,
            MEASURED=0 if len(columns) == 2 else 2 if centred else 1,
            num_warps=4,
        )
    sums = torch.cat([partial[:, :-2].sum(dim=0), partial[:, -2:].amax(dim=0)]).cpu().numpy()
    _, loss, slopes, squares, total, bend, steepest, largest = sums[padded:].tolist()
    gradient, one = sums[None, :d].copy(), np.array([[bend]])
    facts = (squares, steepest, total, ROUNDED_UP * largest)
    return DeviceSums(
        loss, gradient, np.array([slopes]), *facts, bends[:, None] if keep else None, one if keep else None, 2.0**-52
    )
