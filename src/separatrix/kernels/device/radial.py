"""Radial kernels between rows on a device, a tile at a time: one product of matrices, the exponential in its place, one sum.

    k(x, z) = exp([x, γ‖x‖², 1]·[2γz, −1, −γ‖z‖²])              rows from a centre

Sums of double precision are made of `PART` columns each, so that a term passes through few additions. The order of all sums
is fixed by the shapes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 512
# Bytes of a tile of values.
_TILE = 512 << 20


class RadialRows:
    """Rows [x, γ‖x‖², 1] of double precision on a device, and products of their kernel matrix."""

    def __init__(self, left: NDArray[np.float64], gamma: float, device: str) -> None:
        self._torch, self._gamma = import_module("torch"), gamma
        self._left = {False: self._torch.as_tensor(np.ascontiguousarray(left)).to(device)}

    def _rows(self, single: bool) -> Any:
        if single not in self._left:
            self._left[single] = self._left[False].float()
        return self._left[single]

    def _index(self, rows: Any) -> Any:
        return self._torch.as_tensor(rows).to(self._left[False].device)

    def square(self, which: Any, single: bool) -> NDArray[np.float64]:
        """(q, q) values among some rows, on the host."""
        chosen = self._index(which)
        values = (self._rows(single)[chosen] @ self._right(chosen, single)).exp_()
        result: NDArray[np.float64] = values.double().cpu().numpy()
        return result

    def _right(self, chosen: Any, single: bool) -> Any:
        rows = self._left[False][chosen]
        right = other_side(rows[:, :-2], rows[:, -2], self._gamma, self._torch)
        return right.float() if single else right

    def sums(self, rows: Any, which: Any, change: NDArray[np.float64], single: bool) -> NDArray[np.float64]:
        """(n,) K[rows, which] · change, all rows when `rows` is None, on the host."""
        left = self._rows(single)
        left = left if rows is None else left[self._index(rows)]
        factors = self._torch.as_tensor(change[:, None]).to(left.device, left.dtype)
        total: NDArray[np.float64] = sums(left, self._right(self._index(which), single), factors).cpu().numpy()[:, 0]
        return total


def other_side(rows: Any, lengths: Any, gamma: float, torch: Any) -> Any:
    """(d + 2, m) [2γz, −1, −γ‖z‖²] of rows from the centre, `lengths` being γ‖z‖²."""
    return torch.cat([2.0 * gamma * rows, -torch.ones_like(lengths)[:, None], -lengths[:, None]], dim=1).T


def sums(left: Any, right: Any, factors: Any) -> Any:
    """(n, k) exp(left · right) · factors (m, k), a tensor of double precision."""
    torch, m = import_module("torch"), right.shape[1]
    out = torch.zeros((len(left), factors.shape[1]), dtype=torch.float64, device=left.device)
    width = m if left.element_size() == 4 else min(m, 8 * PART)
    height = max(256, _TILE // (left.element_size() * max(1, width)))
    for first in range(0, m, max(1, width)):
        columns, part = right[:, first : first + width], factors[first : first + width]
        for start in range(0, len(left), height):
            at = slice(start, start + height)
            values = (left[at] @ columns).exp_()
            if left.element_size() == 4:
                out[at] += (values @ part).double()
            else:
                for run in range(0, values.shape[1], PART):
                    out[at] += values[:, run : run + PART] @ part[run : run + PART]
    return out


def expansion(X: Any, centre: Any, vectors: Any, gamma: float, factors: Any, lost: float) -> Any:
    """(n, k) Σ βⱼk(x, zⱼ) of rows X, NaN for rows that are not finite; all are tensors, all but X of double precision.

    ``None`` where a distance would be lost in the squared lengths: γ‖x − centre‖² of the farthest row exceeds `lost`.
    """
    torch, d = import_module("torch"), X.shape[1]
    right = other_side(vectors - centre, gamma * torch.square(vectors - centre).sum(dim=1), gamma, torch)
    out = torch.empty((len(X), factors.shape[1]), dtype=torch.float64, device=X.device)
    height = max(256, _TILE // (8 * (d + 2)))
    for start in range(0, len(X), height):
        at = slice(start, start + height)
        rows = X[at].double() - centre
        lengths = gamma * torch.square(rows).sum(dim=1, keepdim=True)
        finite = torch.isfinite(lengths)
        if bool((torch.where(finite, lengths, 0.0) > lost).any()):
            return None
        found = sums(torch.cat([rows, lengths, torch.ones_like(lengths)], dim=1), right, factors)
        out[at] = torch.where(finite, found, torch.nan)
    return out
