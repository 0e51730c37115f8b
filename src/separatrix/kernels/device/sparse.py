"""Sums over the stored entries of sparse rows on a device, in double precision and in a fixed order.

    margins     Xw      segments are rows
    gradient    Xᵀr     segments are columns, or parts of long ones

On a CUDA device by sparse_rows.cu; elsewhere, or without CuPy, by PyTorch's segment_reduce. A column that is in every row is
cut into parts that are summed side by side, and the parts in order: no sum depends on which thread was first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, resources
from typing import Any

import numpy as np

from separatrix.kernels.device.cuda import available, stream
from separatrix.kernels.device.torch_losses import DeviceSums, of_scores

# Entries of a part of a long segment; rows whose slopes stay in the cache (8 MB) while parts are read.
_PART, _PANEL = 1024, 1 << 20
_THREADS, _BLOCKS, _SUMS, _REST = 256, 1056, 5, 7
# Blocks of threads that a launch may have, for work of one team each.
_MOST_BLOCKS = 1 << 20
_UNIT = 2.0**-52


@dataclass(frozen=True)
class Segments:
    """Entries one after the other, and where those of each sum begin."""

    values: Any
    """(e,) float32 or float64."""
    index: Any
    """(e,) int32: the place in the vector that an entry is multiplied with."""
    starts: Any
    """(s + 1,) int64."""
    lanes: int
    """Lanes of a warp that share a segment, or a part of one."""
    cuts: Any
    """(c + 1,) int64: where the parts begin; `starts` where no segment is long."""
    first: Any
    """(s + 1,) int64: the first part of every segment; None where no segment is long."""
    order: Any
    """(c,) int32: in which order the parts are read; None where they lie so."""

    @classmethod
    def of(cls, values: Any, index: Any, starts: Any, *, even: bool) -> Segments:
        """Segments for many sums; `even` ones are taken in the order in which they lie."""
        torch = import_module("torch")
        lengths = starts.diff()
        mean = len(values) / max(1, int((lengths > 0).sum()))
        if not len(lengths) or int(lengths.max()) <= _PART:
            cuts, first = starts, None
        else:
            parts = (lengths + (_PART - 1)).div(_PART, rounding_mode="floor").clamp(min=1)
            first = torch.zeros_like(starts)
            torch.cumsum(parts, 0, out=first[1:])
            own = torch.repeat_interleave(torch.arange(len(parts), device=starts.device), parts)
            within = torch.arange(len(own), device=starts.device) - first[own]
            cuts = torch.cat([starts[own] + _PART * within, starts[-1:]])
        order = None if even else _beside_each_other(index, cuts, torch)
        return cls(values, index, starts, lanes_for(min(mean, _PART)), cuts, first, order)

    def with_values(self, values: Any) -> Segments:
        """Other numbers in the same places."""
        return replace(self, values=values.contiguous())


def _beside_each_other(index: Any, cuts: Any, torch: Any) -> Any:
    """(c,) int32 parts in the order in which they are read: those of the same panel of rows together, the longest first.

    What they are multiplied with stays in the cache of the device, and the teams of a warp end together.
    """
    lengths = cuts.diff()
    if not len(index):
        return None
    panel = index[cuts[:-1].clamp(max=len(index) - 1)].long() // _PANEL
    return torch.argsort(panel * (_PART + 1) + (_PART - lengths), stable=True).int()


def lanes_for(mean: float) -> int:
    """Lanes for segments of a mean length: four entries to a lane, which are on their way at a time."""
    return int(min(32, max(2, 2 ** int(np.ceil(np.log2(max(1.0, mean / 4)))))))


@cache
def _module(stored: str, lanes: int, columns: int, loss: int, measured: int, squared: int) -> Any:
    head = f"typedef {stored} T;\n#define LOSS {loss}\nconstexpr int LANES = {lanes}, M = {columns}, "
    head += f"MEASURED = {measured}, SQUARED = {squared};\n"
    body = resources.files(__package__).joinpath("sparse_rows.cu").read_text()
    return import_module("cupy").RawModule(code=head + body, options=("-std=c++17",))


def compiled(values: Any) -> bool:
    """Whether sums of these entries are made by compiled kernels."""
    return bool(values.is_cuda) and available()


def _at(tensor: Any) -> Any:
    return np.uint64(0 if tensor is None else tensor.data_ptr())


def _stored(values: Any) -> str:
    return "float" if values.element_size() == 4 else "double"


def segment_sums(segments: Segments, V: Any, *, squared: bool = False) -> Any:
    """(s, m) Σ_e x_e V[index e] of every segment, V (k, m) double; of x_e² where `squared`."""
    return _compiled_sums(segments, V, squared) if compiled(segments.values) else _plain_sums(segments, V, squared)


def _plain_sums(segments: Segments, V: Any, squared: bool) -> Any:
    torch = import_module("torch")
    values, index = segments.values.double(), segments.index.long()
    values = torch.square(values) if squared else values
    out = torch.zeros((len(segments.starts) - 1, V.shape[1]), dtype=torch.float64, device=V.device)
    if len(values):
        for k in range(V.shape[1]):
            out[:, k] = torch.segment_reduce(values * V[:, k][index], "sum", offsets=segments.starts, unsafe=True)
    return out


def _compiled_sums(segments: Segments, V: Any, squared: bool) -> Any:
    cupy, torch = import_module("cupy"), import_module("torch")
    m, parts = int(V.shape[1]), len(segments.cuts) - 1
    place = {"dtype": torch.float64, "device": V.device}
    V, out = V.contiguous(), torch.empty((parts, m), **place)
    if not parts or not m:
        return out
    team = segments.lanes if m == 1 else min(32, 1 << (m - 1).bit_length())
    module = _module(_stored(segments.values), segments.lanes, team, 0, 0, int(squared))
    blocks = min(_MOST_BLOCKS, -(-parts * team // _THREADS))
    rows = (_at(segments.values), _at(segments.index), _at(segments.cuts), _at(segments.order), _at(V))
    with cupy.cuda.Device(V.device.index), stream(cupy, torch, V.device):
        if m == 1:
            module.get_function("dots")((blocks,), (_THREADS,), (*rows, np.int64(parts), _at(out)))
        else:
            module.get_function("products")((blocks,), (_THREADS,), (*rows, np.int32(m), np.int64(parts), _at(out)))
        if segments.first is None:
            return out
        total = torch.empty((len(segments.starts) - 1, m), **place)
        given = (_at(out), _at(segments.first), np.int32(m), np.int64(total.numel()), _at(total))
        module.get_function("collect")((-(-total.numel() * 32 // _THREADS),), (_THREADS,), given)
    return total


def _row_pass(
    rows: Segments, loss: int, codes: Any, weights: Any, offset: Any, w: Any, metric: Any, b: float, bends: Any
) -> tuple[Any, Any]:
    """(n,) slopes, and the sums over all rows: tensors on the device."""
    cupy, torch = import_module("cupy"), import_module("torch")
    n, device = len(rows.starts) - 1, rows.values.device
    place = {"dtype": torch.float64, "device": device}
    slopes, sums = torch.empty(n, **place), torch.zeros(_REST, **place)
    if not n:
        return slopes, sums
    blocks = min(_BLOCKS, -(-n // _THREADS))
    partial = torch.empty((blocks, _REST), **place)
    module = _module(_stored(rows.values), rows.lanes, 32, loss, int(metric is not None), 0)
    with cupy.cuda.Device(device.index), stream(cupy, torch, device):
        entries = (_at(rows.values), _at(rows.index), _at(rows.starts), _at(codes), _at(weights), _at(offset))
        given = (_at(w), _at(metric), np.float64(b), np.int64(n), _at(slopes), _at(bends), _at(partial))
        module.get_function("rows")((blocks,), (_THREADS,), (*entries, *given))
        module.get_function("gather")((1,), (256,), (_at(partial), np.int32(blocks), _at(sums)))
    return slopes, sums


def loss_sums(
    kind: str,
    rows: Segments,
    columns: Segments,
    codes: Any,
    weights: Any,
    offset: Any,
    W: Any,
    b: Any,
    metric: Any,
    keep: bool,
) -> DeviceSums:
    """The sums of one pass; W (m, d), metric (d,), offset (n, m), weights (n,): double tensors there, or None; b (m,) here."""
    torch = import_module("torch")
    n, single = len(rows.starts) - 1, kind == "logistic" and compiled(rows.values)
    if single and codes.element_size() == 1:
        bends = torch.empty(n, dtype=torch.float64, device=W.device) if keep else None
        own = None if offset is None else offset[:, 0].contiguous()
        slopes, sums = _row_pass(rows, 1, codes, weights, own, W[0].contiguous(), metric, float(b[0]), bends)
        gradient = segment_sums(columns, slopes[:, None])
        host = torch.cat([gradient[:, 0], sums]).cpu().numpy()  # one copy
        loss, slope, squares, total, bend, steepest, largest = host[-_REST:].tolist()
        kept: tuple[Any, Any] = (None, None) if bends is None else (bends[:, None], np.array([[bend]]))
        given = (loss, host[None, :-_REST].copy(), np.array([slope]), squares, steepest, total, largest, *kept)
        return DeviceSums(*given, _UNIT)
    eta = segment_sums(rows, W.T) + torch.as_tensor(b).to(W.device)
    eta = eta if offset is None else eta + offset
    losses, slopes, curvatures = of_scores(kind, eta, codes, torch)
    s = torch.ones(n, dtype=torch.float64, device=W.device) if weights is None else weights
    sloped, counts, none = slopes * s[:, None], s > 0, torch.zeros_like(s)
    gradient = segment_sums(columns, sloped)
    steepest = torch.where(counts, eta.abs().amax(dim=1), none).amax() if n else none.sum()
    largest = none.sum()
    if metric is not None and n:
        largest = torch.where(counts, segment_sums(rows, metric[:, None], squared=True)[:, 0], none).amax()
    facts = torch.stack([s @ losses, (sloped * slopes).sum(), s.sum(), steepest, largest]).tolist()
    bend = None
    if keep:
        weighted = curvatures * s[:, None]
        sums = weighted.sum(dim=0)
        bend = (sums[None] if len(W) == 1 else torch.diag(sums) - curvatures.T @ weighted).cpu().numpy()
    loss, squares, total, steepest, largest = facts
    slope, kept = sloped.sum(dim=0).cpu().numpy(), (curvatures if keep else None, bend)
    given = (loss, gradient.T.cpu().numpy(), slope, squares, steepest, total, largest, *kept)
    return DeviceSums(*given, _UNIT)


def curve(rows: Segments, columns: Segments, curvatures: Any, weights: Any, V: Any, last: Any) -> tuple[Any, Any]:
    """(d, m) Σ s ∇²ℓ(Vx + last) xᵀ, and (m,) the same for a column of ones, on the host, where `last` (m,) is too."""
    torch = import_module("torch")
    if len(V) == 1 and compiled(rows.values):
        held = curvatures[:, 0].contiguous()
        moved, sums = _row_pass(rows, 2, None, weights, None, V[0].contiguous(), None, float(last[0]), held)
        host = torch.cat([segment_sums(columns, moved[:, None])[:, 0], sums[1:2]]).cpu().numpy()
        return host[:-1, None].copy(), host[-1:].copy()
    moved = segment_sums(rows, V.T) + torch.as_tensor(last).to(V.device)
    mean = 0.0 if len(V) == 1 else (curvatures * moved).sum(dim=1, keepdim=True)
    moved = curvatures * (moved - mean)
    if weights is not None:
        moved = moved * weights[:, None]
    return segment_sums(columns, moved).cpu().numpy(), moved.sum(dim=0).cpu().numpy()
