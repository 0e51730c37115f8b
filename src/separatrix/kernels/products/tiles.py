"""A tile of a product of matrices, held in the registers of the processor while the sums run.

    out[i, j] (+)= Σ_k L[i, k] · P[k, j]     for `rows` rows i and COLUMNS columns j that lie side by side in P and in out

A loop over arrays reads and writes its sums in every step; here they stay in ROWS × VECTORS vector registers, and a step reads
one line of P and one entry per row of L: two multiplications in every cycle, which is all that a processor can do. A library
for products reaches this on large matrices only: it copies both sides first. The vectors are written in LLVM's language, which
numba compiles; where a processor has shorter ones, LLVM takes several.

Where L and P are addressed by strides, one tile serves matrices, their transposes and rows in a wider array. The sums run in
the order of k whatever the shape of the tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]  # numba brings it, without types
from numba import types
from numba.extending import intrinsic

from separatrix.kernels import compiled

_FEATURES = binding.get_host_cpu_features()
_WIDE = bool(_FEATURES.get("avx512f"))
# Bytes of a vector; rows and vectors of a tile that fill 32 registers, or 16.
_VECTOR = 64 if _WIDE else 32 if _FEATURES.get("avx") else 16
_MANY_REGISTERS = _WIDE or not _FEATURES.get("sse2")
ROWS, VECTORS = (5, 4) if _MANY_REGISTERS else (6, 2)
# Columns of a tile in double precision; in single precision there are twice as many.
COLUMNS = VECTORS * _VECTOR // 8
_CONTRACT = ("contract",)
_as_tile: Any = intrinsic  # its type is that of the generator, not of what is called


def _code(rows: int) -> Callable[..., Any]:
    """What writes the code of the tile of so many rows."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, first, across, down, panel, start, stride, depth, out, to, width, add = arguments
        number = context.get_value_type(signature.args[0].dtype)
        size = 8 if signature.args[0].dtype == types.float64 else 4
        lanes = _VECTOR // size
        vector, place = ir.VectorType(number, lanes), context.get_value_type(types.intp)
        of_lanes = ir.VectorType(ir.IntType(32), lanes)

        def beginning(position: int, array: Any, offset: Any) -> Any:
            data = context.make_array(signature.args[position])(context, builder, array).data
            return builder.gep(data, [offset])

        def side_by_side(pointer: Any, v: int) -> Any:
            return builder.bitcast(builder.gep(pointer, [place(v * lanes)]), vector.as_pointer())

        def in_all_lanes(x: Any) -> Any:
            undefined = ir.Constant(vector, ir.Undefined)
            one = builder.insert_element(undefined, x, ir.IntType(32)(0))
            return builder.shuffle_vector(one, undefined, ir.Constant(of_lanes, [0] * lanes))

        entries = [builder.gep(beginning(0, left, first), [builder.mul(down, place(i))]) for i in range(rows)]
        lines = [builder.gep(beginning(8, out, to), [builder.mul(width, place(i))]) for i in range(rows)]
        top, before = beginning(4, panel, start), builder.block
        loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)

        builder.position_at_end(loop)
        k, along, line = builder.phi(place), builder.phi(place), builder.phi(top.type)
        sums = [[builder.phi(vector) for _ in range(VECTORS)] for _ in range(rows)]
        # Arrays begin anywhere: no more than a number is aligned.
        loaded = [builder.load(side_by_side(line, v), align=size) for v in range(VECTORS)]
        more = []
        for entry, row in zip(entries, sums, strict=True):
            x = in_all_lanes(builder.load(builder.gep(entry, [along])))
            products = [builder.fmul(x, one, flags=_CONTRACT) for one in loaded]
            more.append([builder.fadd(s, one, flags=_CONTRACT) for s, one in zip(row, products, strict=True)])
        nothing = ir.Constant(vector, [0.0] * lanes)
        steps = [(k, place(0), builder.add(k, place(1))), (along, place(0), builder.add(along, across))]
        steps += [(line, top, builder.gep(line, [stride]))]
        steps += [
            (s, nothing, m) for row, found in zip(sums, more, strict=True) for s, m in zip(row, found, strict=True)
        ]
        for variable, at_first, later in steps:
            variable.add_incoming(at_first, before)
            variable.add_incoming(later, loop)
        builder.cbranch(builder.icmp_signed("<", steps[0][2], depth), loop, after)

        builder.position_at_end(after)
        for pointer, found in zip(lines, more, strict=True):
            for v, value in enumerate(found):
                target = side_by_side(pointer, v)
                old = builder.select(add, builder.load(target, align=size), nothing)
                builder.store(builder.fadd(old, value), target, align=size)
        return context.get_dummy_value()

    return generate


def _of_rows(rows: int) -> Any:
    """The tile of so many rows, for compiled loops."""
    generate, whole = _code(rows), types.intp

    @_as_tile
    def of_rows(
        typing_context: Any, left: Any, first: Any, across: Any, down: Any, panel: Any, start: Any, stride: Any, depth: Any,
        out: Any, to: Any, width: Any, add: Any,
    ) -> Any:  # fmt: skip
        """What `tile` does for so many rows."""
        return types.void(
            left, whole, whole, whole, panel, whole, whole, whole, out, whole, whole, types.boolean
        ), generate  # fmt: skip

    return of_rows


_one, _two, _three, _four, _five, _six = (_of_rows(rows) for rows in range(1, 7))


@compiled()
def tile(
    rows: Any, left: Any, first: Any, across: Any, down: Any, panel: Any, start: Any, stride: Any, depth: Any,
    out: Any, to: Any, width: Any, add: Any,
) -> None:  # fmt: skip
    """`rows` rows and COLUMNS columns of `out`, from place `to` on, become, or with `add` gain, a sum of `depth` products.

    The entries of L are at `first` + i·`down` + k·`across`, the columns of P begin at `start` + k·`stride`, the rows of `out`
    at `to` + i·`width`: places in arrays that lie in memory without gaps. `depth` is at least one.
    """
    if rows == 6:
        _six(left, first, across, down, panel, start, stride, depth, out, to, width, add)
    elif rows == 5:
        _five(left, first, across, down, panel, start, stride, depth, out, to, width, add)
    elif rows == 4:
        _four(left, first, across, down, panel, start, stride, depth, out, to, width, add)
    elif rows == 3:
        _three(left, first, across, down, panel, start, stride, depth, out, to, width, add)
    elif rows == 2:
        _two(left, first, across, down, panel, start, stride, depth, out, to, width, add)
    elif rows == 1:
        _one(left, first, across, down, panel, start, stride, depth, out, to, width, add)
