"""Some rows of a table, drawn while all of them are read for its schema: a sample for solvers to begin on.

    row i is drawn   ⇔   h(i) < share · 2⁶⁴                 h(i) the well mixed bits of its place among all

However the table is cut, these are the same rows. They are kept as Arrow streams: plain bytes, which travel and which a journal
of passes may hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.data.arrays import enough_rows

DRAWN_BYTES = 1 << 27
"""The most that drawn rows take."""
# Features that a column becomes, about; of few rows a larger share is drawn.
_WIDENED, _SHARE, _LEAST = 3, 1 / 8, 4096


def share_to_draw(n_rows: int, n_columns: int, row_bytes: float = 0.0, room: int = DRAWN_BYTES) -> float:
    """The share of about so many rows that is drawn, into so many bytes; none of tables that are read without as well."""
    if n_rows < 2 * _LEAST:
        return 0.0
    most = int(room / max(8.0 * n_columns, row_bytes, 1.0))
    enough = enough_rows(n_rows, _WIDENED * n_columns)
    return min(most, max(_LEAST, min(_SHARE * n_rows, enough))) / n_rows


@dataclass(frozen=True)
class DrawnRows:
    """Rows of a run that were drawn, and their places among those of the run that have a label."""

    streams: tuple[bytes, ...] = ()
    places: tuple[NDArray[np.intp], ...] = ()

    @classmethod
    def of(cls, batch: Any, marks: NDArray[np.uint64], known: Any, share: float) -> DrawnRows:
        """Rows of a batch; `known` tells which have a label, `marks` are the mixed bits of these."""
        at = np.flatnonzero(marks < np.uint64(min(share * 2.0**64, 2.0**64 - 2048.0))) if share else ()
        if not len(at):
            return cls()
        import pyarrow as pa

        taken = batch.take(pa.array(at if isinstance(known, slice) else np.flatnonzero(known)[at]))
        columns = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in taken.columns]
        plain = pa.RecordBatch.from_arrays(columns, names=taken.schema.names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, plain.schema) as writer:
            writer.write_batch(plain)
        return cls((sink.getvalue().to_pybytes(),), (np.asarray(at, dtype=np.intp),))

    def followed_by(self, after: DrawnRows, n_known: int) -> DrawnRows:
        """With those of the next run, `n_known` rows with a label being in this one."""
        if not after.streams:
            return self
        return DrawnRows(self.streams + after.streams, (*self.places, *(own + n_known for own in after.places)))

    def batches(self, rows: int) -> Iterator[Any]:
        """All of them as Arrow batches of at least so many rows, where they are as many and of one type."""
        import pyarrow as pa

        held: list[Any] = []
        for stream in self.streams:
            (batch,) = pa.ipc.open_stream(stream)
            if held and (batch.schema != held[0].schema or sum(one.num_rows for one in held) >= rows):
                yield _joined(held)
                held = []
            held.append(batch)
        if held:
            yield _joined(held)

    @property
    def which(self) -> NDArray[np.intp]:
        """Places of all."""
        return np.concatenate([np.empty(0, dtype=np.intp), *self.places])


def _joined(batches: list[Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
