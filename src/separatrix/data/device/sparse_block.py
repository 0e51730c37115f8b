"""A block of sparse rows on a device: the products of every block, from the stored entries.

    Xv, Σ_j m_j x_j²     sums over the entries of rows
    Xᵀr, Σ_i s_i x_i²    sums over the entries of columns, from their own copy

Gram matrices, of few columns, are made of dense runs of rows. All arithmetic is of double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Centred, Codes, Entries, Float
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.centred import DeviceCentred
from separatrix.data.device.csr import CsrRows
from separatrix.data.device.tensors import pytorch
from separatrix.kernels.device.sparse import Segments, curve, loss_sums, segment_sums
from separatrix.kernels.device.torch_losses import DeviceSums, runs


class SparseDeviceBlock(DeviceBlock):
    """Rows of a sparse matrix on a device."""

    X: CsrRows
    margins = False

    def doubles(self, at: Any) -> Any:
        return self.X[at].dense()

    def whole_rows(self) -> bool:
        return False

    def about(self, centre: Float, weights: Any, hidden: bool) -> Float | None:
        return None

    def _sums(self, segments: Segments, V: Float, *, squared: bool = False) -> Float:
        given = self.on_device(V if V.ndim == 2 else V[:, None])
        result: Float = segment_sums(segments, given, squared=squared).cpu().numpy()
        return result.reshape(len(result), *V.shape[1:])

    def matvec(self, v: Float) -> Float:
        return self._sums(self.X.by_row, v)

    def rmatvec(self, r: Float) -> Float:
        return self._sums(self.X.by_column, r)

    def curve(self, weights: Float, v: Float) -> Float:
        return super().curve(weights, v) if v.ndim > 1 else self.curve_with_ones(weights, np.append(v, 0.0))[:-1]

    def curve_with_ones(self, weights: Float, v: Float) -> Float:
        given = (self.on_device(weights[:, None]), None, self.on_device(v[None, :-1]), v[-1:])
        return np.concatenate([part.ravel() for part in curve(self.X.by_row, self.X.by_column, *given)])

    def column_squares(self, weights: Float | None = None) -> Float:
        torch = pytorch()
        ones = torch.ones((self.n, 1), dtype=torch.float64, device=self.X.device)
        given = ones if weights is None else self.on_device(weights[:, None])
        result: Float = segment_sums(self.X.by_column, given, squared=True)[:, 0].cpu().numpy()
        return result

    def row_squares(self, metric: Float) -> Float:
        return self._sums(self.X.by_row, metric, squared=True)

    def largest_row(self, metric: Float) -> float:
        return float(self.row_squares(metric).max(initial=0.0))

    def _gram(self, weights: Any, ones: bool) -> Float:
        torch, d = pytorch(), self.shape[1]
        total = torch.zeros((d + ones, d + ones), dtype=torch.float64, device=self.X.device)
        for at in runs(self.n, d + ones):
            rows = self.doubles(at)
            if ones:
                rows = torch.cat([rows, torch.ones((len(rows), 1), dtype=torch.float64, device=self.X.device)], dim=1)
            total += rows.T @ (rows if weights is None else rows * weights[at][:, None])
        result: Float = total.cpu().numpy()
        return 0.5 * (result + result.T)

    def columns(self, which: Codes) -> SparseDeviceBlock:
        part = copy(self)
        part.X = self.X.of_columns(pytorch().as_tensor(np.asarray(which)).to(self.X.device))
        return part

    def at_hand(self) -> Block:
        return self

    def dense(self) -> Float:
        result: Float = self.X.dense().cpu().numpy()
        return result

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        return SparseDeviceCentred(self, self._tensor(codes, pytorch().int32), n_classes)

    def centre_classes(self, n_classes: int) -> Centred:
        torch = pytorch()
        codes = self.device_codes() if n_classes > 1 else torch.zeros(self.n, dtype=torch.uint8, device=self.X.device)
        return SparseDeviceCentred(self, codes, n_classes)

    def non_finite(self) -> Any:
        return self.X.with_values(~pytorch().isfinite(self.X.values)).host()

    def non_finite_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        torch, weights, d = pytorch(), self.device_weights(), self.shape[1]
        places = self.X.not_finite()
        rows = torch.searchsorted(self.X.starts, places, right=True) - 1
        if weights is not None:
            counts = weights[rows] > 0
            places, rows = places[counts], rows[counts]
        columns, found = self.X.columns[places].cpu().numpy(), self.start + rows.cpu().numpy()
        first = np.full(d, -1, dtype=np.intp)
        first[columns[::-1]] = found[::-1]  # the first row is written last
        return np.bincount(columns, minlength=d), first

    def counted(self) -> SparseDeviceBlock:
        weights = self.device_weights()
        if weights is None or bool((weights > 0).all()):
            return self
        found = self.taken(self.X.kept(weights > 0), pytorch().nonzero(weights)[:, 0], self.start)
        assert isinstance(found, SparseDeviceBlock)
        return found

    def pieces(self, size: int) -> Iterator[Block]:
        yield self

    def least(self) -> float:
        return min(0.0, float(self.X.values.min())) if len(self.X.values) else 0.0

    def column_minima(self) -> Float:
        least = pytorch().zeros(self.shape[1], dtype=pytorch().float64, device=self.X.device)
        least.scatter_reduce_(0, self.X.columns.long(), self.X.values.double(), "amin")
        result: Float = least.cpu().numpy()
        return result

    def stored_entries(self) -> Entries:
        parts = (self.X.values, self.X.row_of(), self.X.columns)
        values, rows, columns = (part.cpu().numpy() for part in parts)
        return Entries(values, rows, columns, self.shape[1], implicit_zeros=True)

    def class_sums(self, codes: Codes, n_classes: int) -> Float:
        block, weights = self.counted(), self.device_weights()  # a row of weight zero may hold anything
        given = self._tensor(codes, pytorch().int64)
        given = given if block is self else given[weights > 0]
        share = membership(given, block.device_weights(), n_classes)
        result: Float = segment_sums(block.X.by_column, share).T.cpu().numpy()
        return np.ascontiguousarray(result)

    def binarised(self, threshold: float) -> SparseDeviceBlock:
        torch, view = pytorch(), copy(self)
        values = self.X.values
        flags = torch.where(torch.isfinite(values), (values > threshold).to(values.dtype), torch.nan)
        view.X = self.X.with_values(flags)
        return view

    def loss_sums(
        self, kind: str, W: Float, b: Float, own: Any, metric: Float | None, keep: bool, width: float = 0.0
    ) -> DeviceSums | None:
        offset = None if own is None else self.on_device(np.broadcast_to(own, (self.n, len(W))))
        measure = None if metric is None else self.on_device(metric)
        given = (self.device_codes(), self.device_weights(), offset, self.on_device(W), b, measure, keep)
        return loss_sums(kind, self.X.by_row, self.X.by_column, *given)

    def loss_curve(self, curvatures: Any, V: Float, last: Float) -> tuple[Float, Float]:
        given = (curvatures, self.device_weights(), self.on_device(V), last)
        return curve(self.X.by_row, self.X.by_column, *given)

    def standardised(self, centre: Float, scale: Float | float) -> Block | None:
        return None  # products through those of the entries, which stay as they are


def membership(codes: Any, weights: Any, n_classes: int) -> Any:
    """(n, K) the weight of each row in the column of its class."""
    share = pytorch().nn.functional.one_hot(codes, n_classes).double()
    return share if weights is None else share * weights[:, None]


class SparseDeviceCentred(DeviceCentred):
    """Class moments of sparse rows: the stored entries less their class means, and these means for what is not stored."""

    _block: SparseDeviceBlock

    def __init__(self, block: SparseDeviceBlock, codes: Any, n_classes: int) -> None:
        weights = block.device_weights()
        if weights is not None and not bool((weights > 0).all()):
            codes, block = codes[weights > 0], block.counted()
        super().__init__(block, codes, n_classes)
        self._share = membership(codes.long(), block.device_weights(), n_classes)

    @cached_property
    def _looked(self) -> tuple[Float, Float, Float]:
        """Class means of all rows; nothing is known of the rest, which is not asked for."""
        counts = self._share.sum(dim=0)[:, None]
        means = segment_sums(self._block.X.by_column, self._share).T / pytorch().where(counts > 0, counts, 1.0)
        unknown = np.full(self._block.shape[1], np.nan)
        return means.cpu().numpy(), unknown, unknown

    @cached_property
    def _sums(self) -> tuple[Float, Float, Float]:
        torch, entries = pytorch(), self._block.X.by_column
        counts, guess = self._share.sum(dim=0), self._guess
        column = torch.repeat_interleave(torch.arange(self._block.shape[1], device=guess.device), entries.starts.diff())
        apart = entries.values.double() - guess[self._codes.long()[entries.index.long()], column]

        def summed(values: Any) -> Any:
            return segment_sums(entries.with_values(values), self._share).T

        left = (counts[:, None] - summed(torch.ones_like(apart))).clamp(min=0.0)  # the weight of what is not stored
        first, second = summed(apart) - left * guess, summed(torch.square(apart)) + left * torch.square(guess)
        return counts.cpu().numpy(), first.cpu().numpy(), second.cpu().numpy()
