"""Rows that are read soon, in a random order: fetched into the cache while the one before is worked on.

A row that is not in cache takes some hundred nanoseconds to arrive, as long as the arithmetic on it; asked for in time it is
there. Nothing is computed, so no number depends on it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # numba brings it, without types
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

from separatrix.kernels import compiled

_LINE = 64  # bytes of the cache
_READ, _KEEP, _DATA = 0, 3, 1
cgutils: Any = untyped_cgutils


def _fetch(typing: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of an entry of an array of one dimension, or of the first row of one of two."""
    if not (isinstance(array, types.Array) and array.ndim in (1, 2) and isinstance(at, types.Integer)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, at_type = signature.args
        held = context.make_array(array_type)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], at_type, types.intp)
        places = [ir.Constant(place.type, 0)] * (array_type.ndim - 1) + [place]
        entry = cgutils.get_item_pointer(context, builder, array_type, held, places, wraparound=False)
        flag, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [builder.bitcast(entry, byte), flag(_READ), flag(_KEEP), flag(_DATA)])
        return context.get_dummy_value()

    return types.none(array, at), generate


fetch: Any = intrinsic(_fetch)  # numba has no types


@compiled()
def _fetch_span(array: Any, first: Any, last: Any) -> None:
    """Ask for the entries from `first` to before `last`."""
    for at in range(first, last, _LINE // array.itemsize):
        fetch(array, at)
    if last > first:
        fetch(array, last - 1)


@compiled()
def fetch_row(data: Any, indices: Any, indptr: Any, i: Any) -> None:
    """Ask for row i of a CSR matrix, `data` being (1, entries): a view of it would be counted, and that takes longer."""
    first, last = indptr[i], indptr[i + 1]
    _fetch_span(data, first, last)
    _fetch_span(indices, first, last)
