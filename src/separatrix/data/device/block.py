"""A block of rows (X − 1cᵀ)D⁻¹ of a tensor.

Products are made on the device in double precision, a run of rows at a time, and come back as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from separatrix.data.block import Block, Centred, Codes, Entries, Float, RowSums
from separatrix.data.dense import DenseBlock
from separatrix.data.device.centred import DeviceCentred
from separatrix.data.device.finite import non_finite_columns
from separatrix.data.device.hints import Hints
from separatrix.data.device.labels import label_counts
from separatrix.data.device.tensors import Twin, code_type, host, on_device, pytorch
from separatrix.kernels.device import cuda, softmax
from separatrix.kernels.device.engine import linear_kernel
from separatrix.kernels.device.gram import gram
from separatrix.kernels.device.radial import expansion
from separatrix.kernels.device.torch_losses import DeviceSums, curve, judged, loss_sums, runs, weighted_gram

# Rows of a piece, where sums that are not made on the device are made piece by piece; where compiled loops make them, and keep
# a number of every row.
_PIECE, _PIECE_THERE = 1 << 20, 1 << 24


class DeviceBlock(Block):
    """Rows (X − 1cᵀ)D⁻¹ of a tensor; c and D are zeros and ones unless they are given.

    Targets and weights may be given on the device, on the host, or both; each is copied when the other side first asks for it.
    """

    margins = True
    curved: ClassVar[bool] = True
    _stored = True  # whether X has all columns

    def __init__(self, X: Any, y: Any = None, weights: Any = None, start: int = 0) -> None:
        self.X, self.start = X, start
        self._held = {"y": Twin(y), "weights": Twin(weights)}
        self._centre: Float | None = None
        self._scale: Float | None = None
        self._hints = Hints.none(int(X.shape[1]))
        self._class_rows: Codes | None = None
        self.precise = False

    def taken(self, X: Any, at: Any, start: int) -> DeviceBlock:
        """The block of some rows, X with their targets and weights."""
        part = copy(self)
        part.X, part.start, part._class_rows = X, start, None
        part._held = {name: twin.part(at) for name, twin in self._held.items()}
        return part

    @property
    def y(self) -> NDArray[Any] | None:
        """Targets, on the host."""
        return self._held["y"].host()

    @y.setter
    def y(self, values: NDArray[Any] | None) -> None:
        self._held, self._class_rows = {**self._held, "y": Twin(values)}, None

    @property
    def weights(self) -> Float | None:
        """Weights, on the host."""
        return self._held["weights"].host()

    @weights.setter
    def weights(self, values: Float | None) -> None:
        self._held = {**self._held, "weights": Twin(values)}

    def near(self, hints: Hints) -> None:
        """Numbers near the columns, which the arithmetic of a row is relative to."""
        self._hints = hints

    def counted_as(self, class_rows: Codes) -> None:
        """The number of rows of each class, where it is known."""
        self._class_rows = class_rows

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    def _tensor(self, values: Any, dtype: Any = None) -> Any:
        torch = pytorch()
        return torch.as_tensor(np.ascontiguousarray(values), dtype=dtype or torch.float64).to(self.X.device)

    def device_codes(self) -> Any:
        """Class codes as a tensor of bytes, or of 32 bits where there are many classes."""
        return self._held["y"].there(self.X.device, code_type)

    def regrouped(self, groups: Codes | None, factors: Float | None = None) -> DeviceBlock:
        view, codes, weights = copy(self), self.device_codes().int(), self.device_weights()
        view._class_rows = None
        if groups is not None:
            kind = pytorch().uint8 if groups.max(initial=0) < 256 else pytorch().int32
            view._held = {**view._held, "y": Twin(self._tensor(np.maximum(groups, 0), kind)[codes])}
            factors = (groups >= 0).astype(np.float64) if (groups < 0).any() else None
        if factors is not None:
            own = self._tensor(factors)[codes]
            view._held = {**view._held, "weights": Twin(own if weights is None else own * weights)}
        return view

    def binarised(self, threshold: float) -> DeviceBlock:
        torch, rows = pytorch(), self._whole()
        above = torch.where(torch.isfinite(rows), (rows > threshold).to(self.X.dtype), torch.nan)
        view = DeviceBlock(above, None, None, self.start)
        view._held = self._held
        return view

    def device_weights(self) -> Any:
        """Weights as a tensor; None where all are one."""
        return self._held["weights"].there(self.X.device, lambda values: np.float64)

    def class_rows(self, n_classes: int) -> Codes:
        if self._class_rows is None or len(self._class_rows) != n_classes:
            return label_counts(self.device_codes(), n_classes)
        return self._class_rows.copy()

    def class_weight(self, n_classes: int) -> Float:
        if not self._held["weights"]:
            return self.class_rows(n_classes).astype(np.float64)
        counts = pytorch().bincount(self.device_codes().int(), self.device_weights(), minlength=n_classes)
        return host(counts)

    def centre_classes(self, n_classes: int) -> Centred:
        torch = pytorch()
        codes = self.device_codes() if n_classes > 1 else torch.zeros(self.n, dtype=torch.uint8, device=self.X.device)
        return DeviceCentred(self, codes, n_classes)

    def on_device(self, values: Float) -> Any:
        """Numbers as a tensor of double precision beside the rows."""
        return self._tensor(values)

    def whole_rows(self) -> bool:
        """Whether the rows are of single precision, as they are stored, and a compiled loop can read them."""
        return self.plain() and self.X.element_size() == 4 and self._compiled()

    def plain(self) -> bool:
        """Whether the rows are as they are stored."""
        return self._centre is None and self._scale is None

    def doubles(self, at: Any) -> Any:
        """A run of the rows in double precision."""
        rows = self.X[at].double()
        if self._centre is not None:
            rows = rows - self._tensor(self._centre)
        return rows if self._scale is None else rows / self._tensor(self._scale)

    def _whole(self) -> Any:
        """The rows for sums that convert runs themselves: the tensor, or a converted copy where it is seen through a view."""
        return self.X if self.plain() else self.doubles(slice(None))

    def matvec(self, v: Float) -> Float:
        torch, direction = pytorch(), self._tensor(v)
        parts = [self.doubles(at) @ direction for at in runs(*self.shape)]
        return host(torch.cat(parts) if parts else self._tensor(np.zeros((0, *v.shape[1:]))))

    def rmatvec(self, r: Float) -> Float:
        torch = pytorch()
        total = torch.zeros((self.shape[1], *r.shape[1:]), dtype=torch.float64, device=self.X.device)
        for at in runs(*self.shape):
            total += self.doubles(at).T @ self._tensor(r[at])
        return host(total)

    def gram(self, weights: Float | None = None) -> Float:
        return self._gram(None if weights is None else self._tensor(weights), False)

    def _gram(self, weights: Any, ones: bool) -> Float:
        """Σ s [x, 1][x, 1]ᵀ of tensors of weights; the last row and column only with `ones`."""
        if not self._read_in_rows():
            result: Float = weighted_gram(self._whole(), weights, ones, pytorch())
            return result
        total = gram(
            self.X, weights, None if self._centre is None else self._tensor(self._centre), bool(self._held["weights"])
        )
        if self._scale is not None:
            units = np.append(self._scale, 1.0)
            total /= np.outer(units, units)
        return total if ones else np.ascontiguousarray(total[:-1, :-1])

    def about(self, centre: Float, weights: Callable[[], Any], hidden: bool) -> Float | None:
        """Σ s(x − centre)(x − centre)ᵀ of rows as stored, weights() a tensor; ``None`` where no compiled loop reads them."""
        if not (self.plain() and self._read_in_rows()):
            return None
        total: Float = gram(self.X, weights(), self._tensor(centre), hidden)[:-1, :-1]
        return total

    def column_squares(self, weights: Float | None = None) -> Float:
        torch = pytorch()
        total = torch.zeros(self.shape[1], dtype=torch.float64, device=self.X.device)
        given = None if weights is None else self._tensor(weights)
        for at in runs(*self.shape):
            squares = torch.square(self.doubles(at))
            total += squares.sum(dim=0) if given is None else given[at] @ squares
        return host(total)

    def columns(self, which: Codes) -> DeviceBlock:
        torch = pytorch()
        X = self.X[:, torch.as_tensor(np.asarray(which), device=self.X.device)]
        part = copy(self)
        part.X, part._hints = X, self._hints.columns(which)
        part._centre = None if self._centre is None else self._centre[which]
        part._scale = None if self._scale is None else self._scale[which]
        return part

    def row_squares(self, metric: Float) -> Float:
        torch, measure = pytorch(), self._tensor(metric)
        parts = [torch.square(self.doubles(at)) @ measure for at in runs(*self.shape)]
        return host(torch.cat(parts) if parts else self._tensor(np.zeros((0, *metric.shape[1:]))))

    def largest_row(self, metric: Float) -> float:
        torch, measure = pytorch(), self._tensor(metric)
        found = [float((torch.square(self.doubles(at)) @ measure).max()) for at in runs(*self.shape)]
        return max(found, default=0.0)

    def dense(self) -> Float:
        return host(self.doubles(slice(None)))

    def at_hand(self) -> Block:
        return DenseBlock(self.dense(), None, self.weights, self.start)

    def centre(self, codes: Codes, n_classes: int) -> Centred:
        return DeviceCentred(self, self._tensor(codes, pytorch().int32), n_classes)

    def join(self, columns: Float) -> Block:
        return JoinedBlock(self, self._tensor(columns))

    def non_finite(self) -> NDArray[np.bool_]:
        result: NDArray[np.bool_] = (~pytorch().isfinite(self.X)).cpu().numpy()
        return result

    def non_finite_columns(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return non_finite_columns(self.X, self.device_weights(), self.start)

    def counted(self) -> DeviceBlock:
        weights = self.device_weights()
        if weights is None or bool((weights > 0).all()):
            return self
        kept = pytorch().nonzero(weights)[:, 0]
        return self.taken(self.X[kept], kept, self.start)

    def part(self, rows: slice) -> DeviceBlock:
        return self.taken(self.X[rows], rows, self.start + rows.start)

    def pieces(self, size: int) -> Iterator[Block]:
        return self.cut(_PIECE_THERE if self._compiled() else _PIECE)

    def least(self) -> float:
        return min(0.0, float(self.X.min())) if self.n else 0.0

    def column_minima(self) -> Float:
        if not self.n:
            return np.zeros(self.shape[1])
        return host(self.doubles(slice(None)).min(dim=0).values)

    def stored_entries(self) -> Entries:
        return DenseBlock(self.dense()).stored_entries()

    def class_sums(self, codes: Codes, n_classes: int) -> Float:
        torch = pytorch()
        given = self._tensor(codes, torch.int32)
        weights, total = self.device_weights(), 0.0
        for at in runs(*self.shape):
            share = torch.nn.functional.one_hot(given[at].long(), n_classes).double()
            share = share if weights is None else share * weights[at][:, None]
            total = total + share.T @ self.doubles(at)
        return np.zeros((n_classes, self.shape[1])) if isinstance(total, float) else total.cpu().numpy()

    def radial_sums(self, gamma: float, centre: Any, vectors: Any, factors: Float, lost: float) -> Float | None:
        given = (self._tensor(centre), self._tensor(vectors), gamma, self._tensor(factors), lost)
        found = expansion(self._whole(), *given)
        return None if found is None else found.cpu().numpy()

    def row_sums(self) -> tuple[RowSums, bool] | None:
        return self, False

    def loss_sums(
        self, kind: str, W: Float, b: Float, own: Any, metric: Float | None, keep: bool, width: float = 0.0
    ) -> DeviceSums | None:
        make = linear_kernel(kind, self.X, self.device_codes()) if self._stored else None
        if make is not None:
            return self._linear_sums(partial(make, kind), W[0], float(b[0]), own, metric, keep, width)
        if kind == "softmax" and not keep and own is None and self._softmax_compiled():
            sums = self._softmax_sums(W, b, metric)
            if sums is not None:
                return sums
        offset = None if own is None else self._beside(own).broadcast_to(self.n, len(W))
        measure = None if metric is None else self._tensor(metric)
        given = (self.device_codes(), self.device_weights(), offset, self._tensor(W), self._tensor(b), measure, keep)
        return loss_sums(kind, self._whole(), *given, pytorch(), width)

    def judged(
        self, kinds: tuple[str, str], w: Float, b: float, own: Any, width: float
    ) -> tuple[Float, Float, float, Any]:
        offset = None if own is None else self._beside(own)
        given = (self.device_codes(), self.device_weights(), offset, self._tensor(w), b, width)
        return judged(kinds, self._whole(), *given, pytorch())

    def _beside(self, own: Any) -> Any:
        """Offsets from either side as a tensor."""
        return own if on_device(own) else self._tensor(own)

    def _read_in_rows(self) -> bool:
        here = self.X.is_cuda and self.X.stride(1) == 1 and self.n > 0
        return here and 0 < self.shape[1] <= cuda.MOST_COLUMNS and cuda.available()

    def _compiled(self) -> bool:
        return self._read_in_rows() and (self.X.stride(0) == self.shape[1] or self.shape[1] > cuda.MOST_IN_ONE)

    def _softmax_compiled(self) -> bool:
        quick = self.X.element_size() == 4 and not self.precise and self._read_in_rows()
        return quick and self.device_codes().element_size() == 1

    def _relative(self, W: Float, metric: Float | None) -> tuple[Float, Float, Float]:
        """Rows for the kernels that take x relative to a shift m of the stored numbers, where η = b + Σ_j w_j (x_j − c_j)/D_j.

        (·, d) W/D, m and, where there is one, metric/D²; (d,) D; (d,) m − c.
        """
        centre = np.zeros(self.shape[1]) if self._centre is None else self._centre
        scale = np.ones(self.shape[1]) if self._scale is None else self._scale
        shift = self._hints.means if self._centre is None else centre
        shift = shift.astype(np.float32 if self.X.element_size() == 4 else np.float64).astype(np.float64)
        rows = [W / scale, shift[None]]
        if metric is not None:
            rows.append((metric / np.square(scale))[None])
        return np.concatenate(rows), scale, shift - centre

    def _linear_sums(
        self, make: Any, w: Float, b: float, own: Any, metric: Float | None, keep: bool, width: float
    ) -> DeviceSums:
        columns, scale, apart = self._relative(w[None], metric)
        offset = None if own is None else self._beside(own)[:, 0]
        given = (self.X, self.device_codes(), self.device_weights(), offset, columns, b + float(columns[0] @ apart))
        sums: DeviceSums = make(*given, self._centre is not None, keep, self.precise, width)
        return replace(sums, gradient=(sums.gradient + apart * sums.slopes[0]) / scale)

    def _softmax_sums(self, W: Float, b: Float, metric: Float | None) -> DeviceSums | None:
        columns, scale, apart = self._relative(W, metric)
        given = (self.X, self.device_codes(), self.device_weights(), columns, b + columns[: len(W)] @ apart, len(W))
        sums = softmax.softmax_sums(*given, self._centre is not None, self._hints.units)
        if sums is None:
            return None
        return replace(sums, gradient=(sums.gradient + np.outer(sums.slopes, apart)) / scale)

    def loss_curve(self, curvatures: Any, V: Float, last: Float) -> tuple[Float, Float]:
        weights = self.device_weights()
        return curve(self._whole(), curvatures, weights, self._tensor(V), self._tensor(last), pytorch())

    def loss_hessian(self, curvatures: Any, ones: bool) -> Float:
        weights, s = self.device_weights(), curvatures[:, 0]
        return self._gram(s if weights is None else s * weights, ones)

    def standardised(self, centre: Float, scale: Float | float) -> Block | None:
        given = np.broadcast_to(np.asarray(scale, dtype=np.float64), centre.shape)
        if self._centre is not None or self._scale is not None:
            return DenseBlock((self.dense() - centre) / given, self.y, self.weights, self.start)
        view = copy(self)
        view._centre, view._scale = centre, np.array(given)
        return view


class JoinedBlock(DeviceBlock):
    """Rows of a block with columns of double precision beside them, joined where they are read."""

    _stored = False

    def __init__(self, block: DeviceBlock, columns: Any) -> None:
        super().__init__(block.X, None, None, block.start)
        self._held = {**block._held, "y": Twin(None)}
        self._inner, self._columns = block, columns

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self._inner.shape
        return n, d + int(self._columns.shape[1])

    def doubles(self, at: Any) -> Any:
        return pytorch().cat([self._inner.doubles(at), self._columns[at]], dim=1)

    def _whole(self) -> Any:
        return self.doubles(slice(None))

    def whole_rows(self) -> bool:
        return False

    def _read_in_rows(self) -> bool:
        return False
