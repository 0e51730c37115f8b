"""The stored entries of sparse rows on a device, by rows (CSR) and, once products ask for them so, by columns.

    row i        values[starts_i : starts_{i+1}] in the columns of the same places
    column j     the same entries in the order of their columns, and in a column in that of their rows

The order by columns is made once, by a stable sort, and shared by all views of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import scipy.sparse as sp

from separatrix.data.device.tensors import moved, placed, pytorch
from separatrix.kernels.device.sparse import Segments, segment_sums

# Entries that are sorted, or looked through, at a time: PyTorch takes no more than 2³¹, and needs several times their memory.
_AT_A_TIME = 1 << 29


class CsrRows:
    """Rows as three tensors on one device; columns of a row ascend, and none stands twice."""

    def __init__(self, values: Any, columns: Any, starts: Any, n_columns: int) -> None:
        self.values, self.columns, self.starts = values, columns, starts
        self.shape = (len(starts) - 1, n_columns)
        self._some: tuple[Any, CsrRows] | None = None

    @property
    def device(self) -> Any:
        """Where the entries are."""
        return self.values.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        return bool(self.values.is_cuda)

    def element_size(self) -> int:
        """Bytes of a stored number."""
        return int(self.values.element_size())

    @cached_property
    def by_row(self) -> Segments:
        """Entries by rows, for products."""
        return Segments.of(self.values, self.columns, self.starts, even=True)

    def row_of(self) -> Any:
        """(e,) int32 the row of every entry."""
        torch, (n, _) = pytorch(), self.shape
        return torch.repeat_interleave(torch.arange(n, dtype=torch.int32, device=self.device), self.starts.diff())

    @cached_property
    def by_column(self) -> Segments:
        """Entries by columns, for products."""
        torch, (_, d) = pytorch(), self.shape
        every, owners = torch.arange(d + 1, dtype=torch.int32, device=self.device), self.row_of()
        if len(self.columns) <= _AT_A_TIME:
            columns, order = torch.sort(self.columns, stable=True)
            starts = torch.searchsorted(columns, every)
            return Segments.of(self.values[order], owners[order], starts, even=False)
        starts = torch.zeros(d + 1, dtype=torch.int64, device=self.device)
        for at in self._runs():
            starts[1:] += torch.bincount(self.columns[at], minlength=d)
        starts = starts.cumsum(0)
        values, rows, behind = torch.empty_like(self.values), torch.empty_like(owners), starts[:-1].clone()
        for at in self._runs():  # each behind the entries that earlier ones have in the same columns
            columns, order = torch.sort(self.columns[at], stable=True)
            begins = torch.searchsorted(columns, every)
            places = torch.arange(len(order), device=self.device) + (behind - begins[:-1])[columns.long()]
            values[places], rows[places] = self.values[at][order], owners[at][order]
            behind += begins.diff()
        return Segments.of(values, rows, starts, even=False)

    def _runs(self) -> Iterator[slice]:
        return (slice(start, start + _AT_A_TIME) for start in range(0, len(self.columns), _AT_A_TIME))

    def not_finite(self) -> Any:
        """Places of the stored numbers that are NaN or infinite."""
        torch = pytorch()
        found = [torch.nonzero(~torch.isfinite(self.values[at]))[:, 0] + at.start for at in self._runs()]
        return torch.cat([*found, self.starts[:0]])

    def with_values(self, values: Any) -> CsrRows:
        """Other numbers in the same places."""
        return type(self)(values, self.columns, self.starts, self.shape[1])

    def __getitem__(self, at: Any) -> CsrRows:
        """Some rows: a slice, or a tensor of places or of flags."""
        torch, (n, d) = pytorch(), self.shape
        if isinstance(at, slice) and at.step in (None, 1):
            start, stop, _ = at.indices(n)
            starts = self.starts[start : max(start, stop) + 1]
            first, last = int(starts[0]), int(starts[-1])
            return type(self)(self.values[first:last], self.columns[first:last], starts - first, d)
        which = torch.arange(n, device=self.device)[
            at if isinstance(at, slice) else torch.as_tensor(at).to(self.device)
        ]
        lengths = self.starts.diff()[which]
        starts = torch.zeros(len(which) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(lengths, 0, out=starts[1:])
        shift = torch.repeat_interleave(self.starts[which] - starts[:-1], lengths)
        places = shift + torch.arange(len(shift), device=self.device)
        return type(self)(self.values[places], self.columns[places], starts, d)

    def kept(self, flags: Any) -> CsrRows:
        """The rows whose flags are set; the last such choice is remembered, with its order by columns."""
        if self._some is None or not bool(pytorch().equal(self._some[0], flags)):
            self._some = flags, self[flags]
        return self._some[1]

    def of_columns(self, which: Any) -> CsrRows:
        """Some of the columns, in their order."""
        torch = pytorch()
        place = torch.full((self.shape[1],), -1, dtype=torch.int32, device=self.device)
        place[which] = torch.arange(len(which), dtype=torch.int32, device=self.device)
        columns = place[self.columns]
        there = columns >= 0
        before = torch.zeros(len(there) + 1, dtype=torch.int64, device=self.device)
        torch.cumsum(there, 0, out=before[1:])
        return type(self)(self.values[there], columns[there], before[self.starts], len(which))

    def dense(self) -> Any:
        """(n, d) a tensor of double precision."""
        torch = pytorch()
        rows = torch.zeros(self.shape, dtype=torch.float64, device=self.device)
        rows[self.row_of().long(), self.columns.long()] = self.values.double()
        return rows

    def host(self) -> Any:
        """A SciPy array."""
        values, columns, starts = (part.cpu().numpy() for part in (self.values, self.columns, self.starts))
        return sp.csr_array((values, columns, starts), shape=self.shape)

    @classmethod
    def checked(cls, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Self:
        """Rows of any three tensors: what is out of range is refused, columns are sorted, entries of one place added."""
        torch, (n, d) = pytorch(), shape
        if values.is_complex():
            raise ValueError(f"Complex data not supported: X is a sparse tensor of {values.dtype}.")
        values = values if values.dtype in (torch.float32, torch.float64) else values.double()
        values, starts = values.detach().contiguous(), starts.to(torch.int64).contiguous()
        if len(starts) != n + 1 or len(columns) != len(values):
            raise ValueError(
                f"X is a broken sparse matrix: it has {len(starts)} row pointers for {n} rows, and {len(columns)} columns for "
                f"{len(values)} values."
            )
        lengths = starts.diff()
        if n and (int(starts[0]) != 0 or int(starts[-1]) != len(values) or bool((lengths < 0).any())):
            raise ValueError(
                "X is a broken sparse matrix: its row pointers do not ascend from 0 to the number of stored values."
            )
        if len(columns):
            low, high = (int(end) for end in torch.aminmax(columns))
            if low < 0 or high >= d:
                raise ValueError(
                    f"X is a broken sparse matrix: a stored value is in column {low if low < 0 else high} of {d}."
                )
        if d >= 2**31 or n >= 2**31:
            raise ValueError(f"X has {n} rows and {d} columns; on a device each must be fewer than 2³¹.")
        rows = cls(values, columns.to(torch.int32).contiguous(), starts, d)
        if len(columns) > 1:
            ascends = rows.columns[1:] > rows.columns[:-1]  # but where a row begins
            ascends[starts[(starts > 0) & (starts < len(columns))] - 1] = True
            if not bool(ascends.all()):
                return rows._in_order()
        return rows

    def _in_order(self) -> Self:
        """The same rows with ascending columns, and the sums of entries that share a place."""
        torch, (n, d) = pytorch(), self.shape
        key, order = torch.sort(self.row_of().long() * d + self.columns, stable=True)
        fresh = torch.ones(len(key), dtype=torch.bool, device=self.device)
        fresh[1:] = key[1:] != key[:-1]
        places = torch.nonzero(fresh)[:, 0]
        own = key[places]
        starts = torch.searchsorted(own, torch.arange(n + 1, device=self.device) * d)
        cuts = torch.cat([places, torch.full((1,), len(key), device=self.device)])
        ones = torch.ones((1, 1), dtype=torch.float64, device=self.device)
        nowhere = torch.zeros(len(key), dtype=torch.int32, device=self.device)
        values = segment_sums(Segments.of(self.values[order], nowhere, cuts, even=True), ones)[:, 0]
        return type(self)(values.to(self.values.dtype), (own % d).int(), starts, d)


def csr_rows(X: Any) -> CsrRows:
    """The rows of a PyTorch or CuPy matrix in CSR, or in another sparse format, which is converted; CSR shares its memory."""
    torch = pytorch()
    if not isinstance(X, torch.Tensor):
        found = X.tocsr()
        values, columns, starts = (torch.from_dlpack(part) for part in (found.data, found.indices, found.indptr))
        return CsrRows.checked(values, columns, starts, tuple(found.shape))
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a sparse tensor of {X.ndim} dimensions instead (shape {tuple(X.shape)})."
        )
    found = X.detach() if X.layout == torch.sparse_csr else X.detach().to_sparse_csr()
    return CsrRows.checked(found.values(), found.col_indices(), found.crow_indices(), tuple(found.shape))


def moved_rows(X: Any, device: str) -> CsrRows:
    """A SciPy matrix on a device by its name."""
    found = X.tocsr()
    columns, starts = (placed(part, device) for part in (found.indices, found.indptr))
    return CsrRows.checked(moved(found.data, device), columns, starts, found.shape)
