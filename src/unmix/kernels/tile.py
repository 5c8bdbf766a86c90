"""A tile of sums that stays in registers while the columns go by, as large as the host's registers allow.

Rows lie in the lanes, several values of 64 bytes side by side; numbers of the other factor are repeated in all lanes.
Every sum takes its terms one by one, in their order, whatever the shape of the tile: hosts with other registers give
the same bits.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from unmix.kernels.lanes import _pointer, _read, _repeat, _vector, _write

LINE = 64  # bytes of a value: sixteen float32 or eight float64


def registers() -> tuple[int, int]:
    """How many vector registers the code is compiled for, and their bytes."""
    triple, _, features = cpu_target.target_context.codegen().magic_tuple()
    if triple.startswith(("aarch64", "arm64")):
        return 32, 16
    return (32, 64) if "+avx512f" in features.split(",") else (16, 32)


def shape(count: int, size: int) -> tuple[int, int]:
    """Values of LINE bytes, and numbers of the other factor, in a tile: with the fewest loads per product.

    A value takes `each` registers. Its sums, the rows and one repeated number must fit.
    """
    each = LINE // size
    fitting = [(r, c) for r, c in product((1, 2, 4), range(1, 9)) if (r * c + r) * each + 1 <= count]
    return min(fitting, key=lambda rc: (rc[0] * each + rc[1]) / (rc[0] * rc[1] * each))


VALUES, NUMBERS = shape(*registers())


def _tile(values: int) -> Any:
    """The intrinsic for tiles of so many values."""

    @intrinsic
    def accumulate(_context, rows, p, stride, numbers, q, pace, terms, sums, at, step, started):
        """sums[at + c·step + r] ← … + Σ_j numbers[q + pace·j + c] · rows[p + stride·j + r]; … is 0 unless `started`.

        For r < values · LINE bytes, c < NUMBERS and j < terms; arrays are flat.
        """
        width = LINE // (rows.dtype.bitwidth // 8)

        def code(context, builder, signature, args):
            vector, kinds = _vector(rows.dtype, width), signature.args
            a, p, stride, b, q, pace, terms, out, at, step, started = args

            def moved(place, by, times):
                return builder.add(place, builder.mul(by, ir.Constant(place.type, times)))

            def value(array, kind, place, r):
                return _pointer(context, builder, vector, kind, array, builder.add(place, place.type(width * r)))

            places = [value(out, kinds[7], moved(at, step, c), r) for c, r in product(range(NUMBERS), range(values))]
            tile = [cgutils.alloca_once(builder, vector) for _ in places]
            go_on, nothing = builder.icmp_signed("!=", started, started.type(0)), ir.Constant(vector, None)
            for place, total in zip(places, tile, strict=True):
                builder.store(builder.select(go_on, _read(builder, place), nothing), total)
            name = f"llvm.fma.v{width}f{rows.dtype.bitwidth}"
            fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
            first = context.make_array(kinds[3])(context, builder, b).data
            with cgutils.for_range(builder, terms) as loop:
                here, there = (builder.add(at, builder.mul(by, loop.index)) for at, by in ((p, stride), (q, pace)))
                x = [_read(builder, value(a, kinds[0], here, r)) for r in range(values)]
                for c in range(NUMBERS):
                    number = builder.load(builder.gep(first, [builder.add(there, there.type(c))]))
                    u = _repeat(builder, number, width)
                    for r in range(values):
                        total = tile[c * values + r]
                        builder.store(builder.call(fma, [u, x[r], builder.load(total)]), total)
            for place, total in zip(places, tile, strict=True):
                _write(builder, builder.load(total), place)
            return context.get_dummy_value()

        i = types.intp
        return types.none(rows, i, i, numbers, i, i, i, sums, i, i, i), code

    return accumulate


accumulate = _tile(VALUES)
accumulate_one = _tile(1)  # for what is left


@intrinsic
def multiply(_context, rows, p, by, out, at):
    """out[at + r] ← by · rows[p + r] for LINE bytes of numbers."""
    width = LINE // (rows.dtype.bitwidth // 8)

    def code(context, builder, signature, args):
        vector, kinds = _vector(rows.dtype, width), signature.args
        value = _read(builder, _pointer(context, builder, vector, kinds[0], *args[:2]))
        scaled = builder.fmul(_repeat(builder, args[2], width), value)
        _write(builder, scaled, _pointer(context, builder, vector, kinds[3], *args[3:]))
        return context.get_dummy_value()

    return types.none(rows, types.intp, rows.dtype, out, types.intp), code
