"""A tensor with its targets and weights as a source: one block, and samples in runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import MemorySource
from separatrix.data.block import Block, Float
from separatrix.data.checks import check_numbers
from separatrix.data.device.block import DeviceBlock
from separatrix.data.device.hints import Hints
from separatrix.data.device.labels import label_counts
from separatrix.data.device.tensors import as_tensor, on_device, pytorch, there, to_host
from separatrix.data.labels import as_target, as_weights, check_finite_target, encode, known_labels
from separatrix.data.source import Source
from separatrix.kernels.device.cuda import take_runs

# Rows that follow each other in a sample.
_SAMPLED_RUN = 64
# Labels among which all of a wider range are mostly found.
_LOOKED_AT = 1 << 16
# Whole numbers within so many of each other are looked up in a table.
_NARROW = 1 << 16


class DeviceSource(MemorySource):
    """A dense tensor on any device, read in place as one block."""

    shared_out = True

    def __init__(self, X: Any, y: Any, weights: Any) -> None:
        super().__init__((int(X.shape[0]), int(X.shape[1])), None, None)
        self._X, self._given, self._rows_per_block = X, y, max(1, int(X.shape[0]))
        self.dtype = np.dtype(np.float32 if X.element_size() == 4 else np.float64)
        self.device = self.place = str(X.device)
        self._block_of_all = self._whole(X, weights)
        self._seen_by: DeviceSource | None = None

    def _whole(self, X: Any, weights: Any) -> DeviceBlock:
        """The block of all rows."""
        block = DeviceBlock(X, None, weights)
        block.near(Hints.of(X))
        return block

    def with_targets(self, y: Any) -> Self:
        """The same rows with other targets."""
        view = copy(self)
        view._block_of_all = copy(self._block_of_all)
        view._block_of_all.y = y
        return view

    def blocks(self) -> Iterator[Block]:
        if self.n_rows:
            yield self._block_of_all

    def one_block(self, any_order: bool = False) -> Block | None:
        return None

    def _target(self) -> NDArray[Any]:
        if self._given is None:
            raise ValueError("This model requires y to be passed, but the target y is None.")
        target = as_target(to_host(self._given), self.n_rows)
        return target

    def labelled(self, classes: NDArray[Any] | None = None) -> Self:
        weights = self._block_of_all
        quick = labels_there(self._given) if classes is None and weights.weights is None else None
        if quick is not None:
            known, codes, counts = quick
            view = self.with_targets(codes)
            view.classes = view.all_classes = known
            if counts is not None:
                view._block_of_all.counted_as(counts)
            return view
        target = self._target()
        known, codes = encode(target, classes, weights.weights)
        view = self.with_targets(codes)
        view.classes = known
        view.all_classes = known_labels(target, known, weights.weights) if classes is None else None
        return view

    def valued(self) -> Self:
        target = self._target()
        check_numbers(target, "y")
        numbers = target.astype(np.float64)
        check_finite_target(numbers)
        return self.with_targets(numbers.reshape(self.n_rows, -1))

    def targets(self) -> NDArray[Any]:
        held = self._block_of_all.y
        assert held is not None, "this source has no targets"
        return held

    def sample(self, rows: int) -> tuple[Source, NDArray[np.intp]] | None:
        """Rows spread over the data in runs, each at a random place of its stretch: they are read at the speed of memory."""
        starts, run = spread_runs(self.n_rows, rows)
        torch, drawn = pytorch(), copy(self)
        drawn._seen_by = None
        with self.within_memory():
            begins = torch.tensor(starts, device=self._X.device)
            which = (begins[:, None] + torch.arange(run, device=self._X.device)).ravel()
            drawn._X = take_runs(self._X, begins, run) if isinstance(self._X, torch.Tensor) else self._X[which]
            drawn.n_rows = int(which.numel())
            drawn._block_of_all = self._block_of_all.taken(drawn._X, which, 0)
        return drawn, Spread(starts, run)  # type: ignore[return-value]  # an array where it is asked for one

    def _block(self, rows: slice, y: NDArray[Any] | None, weights: Float | None) -> Block:
        return self._block_of_all.part(rows)

    def _rows(self, which: NDArray[np.intp]) -> Self:
        return type(self)(self._X[pytorch().as_tensor(which).to(self._X.device)], None, None)

    def share(self, work: Callable[[int, Block], None], rows: int | None = None) -> None:
        """All rows at once: a block is not cut finer."""
        super().share(work)

    @contextmanager
    def within_memory(self) -> Iterator[None]:
        """Nothing of what was taken on the device is kept where its memory did not suffice."""
        torch = pytorch()
        try:
            yield
        except torch.cuda.OutOfMemoryError as error:
            message = str(error)
        else:
            return
        torch.cuda.empty_cache()  # outside: the error holds on to what the calls have taken
        raise MemoryError(
            f"The memory of {self.device} is full: {self.n_rows} rows of {self.n_features} columns and what a pass needs "
            f"beside them do not fit. Free tensors that are not needed, or give fewer rows at a time. ({message})"
        )

    def precise(self) -> Self:
        if self._block_of_all.precise or self.dtype == np.float64 or not self._X.is_cuda:
            return self
        view = copy(self)
        view._block_of_all = copy(self._block_of_all)
        view._block_of_all.precise = True
        view._seen_by = self
        return view

    def count_pass(self) -> None:
        super().count_pass()
        if self._seen_by is not None:  # a pass in double precision is one over the same rows
            self._seen_by.count_pass()

    def matrix(self) -> Any:
        return self._X.cpu().numpy()


class Spread:
    """The rows of runs that begin at some places: an array where it is asked for one."""

    def __init__(self, starts: NDArray[np.intp], run: int) -> None:
        self._starts, self._run = starts, run

    def __len__(self) -> int:
        return len(self._starts) * self._run

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return (self._starts[:, None] + np.arange(self._run)).ravel().astype(dtype or np.intp)


@lru_cache(maxsize=16)
def spread_runs(n_rows: int, rows: int) -> tuple[NDArray[np.intp], int]:
    """Where runs of rows begin that are spread over all rows, and their length: the same in every run."""
    run = min(_SAMPLED_RUN, max(1, rows // 256))
    count = min(-(-rows // run), n_rows // run)
    stretch = n_rows / max(1, count)  # each run ends in its own: no row is drawn twice, on which bounds rely
    places = np.arange(count) * stretch + np.random.default_rng(0).random(count) * (stretch - run)
    starts = places.astype(np.intp)
    starts.flags.writeable = False  # it is kept
    return starts, run


def labels_there(y: Any) -> tuple[NDArray[Any], Any, NDArray[np.intp] | None] | None:
    """Sorted labels, the codes on the device, of whole numbers in a narrow range that lie there, and their counts where they
    are known; else ``None``.
    """
    torch = pytorch()
    if y is None or not on_device(y):
        return None
    values = there(y)
    if values.ndim != 1 or values.is_floating_point() or values.is_complex() or not values.numel():
        return None
    kind = np.dtype(str(values.dtype).removeprefix("torch."))
    counts = None
    if kind.itemsize == 1 and kind.kind in "ub":  # one reading finds which there are and how many
        shifted, low = values.view(torch.uint8), 0
        counts = label_counts(shifted, 256)
        found = np.flatnonzero(counts)
        high = int(found[-1])
    else:
        low, high = torch.stack(torch.aminmax(values)).tolist()
        if high - low >= _NARROW:
            return None
        if (low, high) == (0, 1):
            return np.array([0, 1], dtype=kind), values.to(torch.uint8), None
        if high - low < 256:
            shifted = (values if low == 0 else values - low).to(torch.uint8)
            counts = label_counts(shifted, high - low + 1)
            found = np.flatnonzero(counts)
        else:
            shifted = (values.to(torch.int64) - low).to(torch.int32)
            found = _numbers_in(shifted[:: max(1, len(shifted) // _LOOKED_AT)], high - low + 1)
            if len(found) <= high - low:  # some may be rare
                found = _numbers_in(shifted, high - low + 1)
    known = (found + low).astype(kind)
    if len(found) <= high - low:
        place = torch.zeros(high - low + 1, dtype=torch.int32, device=values.device)
        codes = torch.arange(len(found), dtype=torch.int32, device=values.device)
        place[torch.as_tensor(found).to(values.device)] = codes
        shifted = place[shifted.long()]
    codes = shifted.to(torch.uint8) if len(found) <= 256 else shifted
    return known, codes, None if counts is None else counts[found]


def _numbers_in(values: Any, count: int) -> NDArray[np.intp]:
    """Those of 0 … count − 1 that are among the values."""
    return np.flatnonzero(pytorch().bincount(values, minlength=count).cpu().numpy())


def device_source(X: Any, y: Any, sample_weight: Any) -> Source:
    """`source_of` of a tensor, with targets and weights from the host or from the same device."""
    tensor = as_tensor(X)
    if tensor.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {tensor.ndim}D array instead (shape {tuple(tensor.shape)}). Reshape your data: one row "
            "per sample, one column per feature."
        )
    return DeviceSource(tensor, *beside_rows(tensor, y, sample_weight))


def beside_rows(tensor: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Targets and weights for rows on a device; what is wrong with them is refused."""
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if on_device(values) and there(values).device != tensor.device:
            raise ValueError(
                f"X is on {tensor.device} and {name} on {there(values).device}; move one of them to the other's device."
            )
    n_rows = int(tensor.shape[0])
    if y is not None and (not on_device(y) or y.shape[0] != n_rows):
        y = as_target(to_host(y), n_rows)  # refuses what is wrong with it
    weights = None if sample_weight is None else as_weights(to_host(sample_weight), n_rows)
    return y, weights
