"""Sixteen float32 numbers at a time, for kernels whose speed depends on what stays in registers.

The compiler makes vectors of plain loops, but neither keeps a tile of sums in registers across an outer loop nor uses
the widest registers that there are. `Lanes` is a value of sixteen numbers in a kernel; on machines with narrower
registers it takes several of them. Arrays are flat and C-contiguous; indices are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from unmix.kernels import inlined

WIDTH = 16
INDEX = ir.IntType(32)
NUMBER = {types.float32: ir.FloatType(), types.int32: INDEX}


class Lanes(types.Type):
    """Sixteen numbers of a type."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.dtype))


def _vector(dtype: Any) -> ir.VectorType:
    return ir.VectorType(NUMBER[dtype], WIDTH)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    start = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(start, [index]), _vector(kind.dtype).as_pointer())


def _mask(places: list[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(INDEX, WIDTH), places)


def _read(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    value.align = 4
    return value


def _write(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, pointer).align = 4


@inlined()
def aligned(n):
    """n float32 numbers whose lanes share no line of the cache with others."""
    out = np.zeros(n + WIDTH, np.float32)
    skip = -(out.ctypes.data // 4) % WIDTH
    return out[skip : skip + n]


@intrinsic
def load(_context, array, index):
    """array[index : index + 16]."""

    def code(context, builder, signature, args):
        return _read(builder, _pointer(context, builder, signature.args[0], *args))

    return Lanes(array.dtype)(array, types.intp), code


@intrinsic
def store(_context, array, index, value):
    """array[index : index + 16] = value."""

    def code(context, builder, signature, args):
        _write(builder, args[2], _pointer(context, builder, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.none(array, types.intp, value), code


def _repeat(builder: Any, number: Any, dtype: Any) -> Any:
    nothing = ir.Constant(_vector(dtype), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, _mask([0] * WIDTH))


@intrinsic
def splat(_context, number):
    """The number sixteen times."""
    return Lanes(number)(number), lambda _, builder, __, args: _repeat(builder, args[0], number)


@intrinsic
def splat_of(_context, array, index):
    """array[index] sixteen times."""

    def code(context, builder, signature, args):
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _repeat(builder, builder.load(builder.gep(start, [args[1]])), array.dtype)

    return Lanes(array.dtype)(array, types.intp), code


@intrinsic
def fma(_context, a, b, c):
    """a·b + c, rounded once."""

    def code(context, builder, signature, args):
        vector = _vector(types.float32)
        kind = ir.FunctionType(vector, [vector] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{WIDTH}f32"), args)

    return a(a, b, c), code


@intrinsic
def lower(_context, a, b):
    """a where it is below b, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), code


@intrinsic
def higher(_context, a, b):
    """a where it is above b, else b."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), code


@intrinsic
def where_lower(_context, a, b, yes, no):
    """`yes` where a is below b, else `no`."""

    def code(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args[:2]), *args[2:])

    return yes(a, b, yes, no), code


@intrinsic
def transpose(_context, array, index, step, out, place, stride):
    """out[place + i·stride + j] = array[index + j·step + i] for i, j < 16.

    In four rounds rows i and i + s exchange the off-diagonal quarters of their blocks of 2s, s = 1, 2, 4, 8.
    """

    def code(context, builder, signature, args):
        def pointers(which):
            first, step = args[which + 1 : which + 3]
            places = [builder.add(first, builder.mul(step, ir.Constant(step.type, i))) for i in range(WIDTH)]
            return [_pointer(context, builder, signature.args[which], args[which], place) for place in places]

        rows = [_read(builder, pointer) for pointer in pointers(0)]
        for s in (1, 2, 4, 8):
            upper = _mask([j if not j & s else WIDTH + j - s for j in range(WIDTH)])
            under = _mask([j + s if not j & s else WIDTH + j for j in range(WIDTH)])
            for i in range(WIDTH):
                if not i & s:
                    a, b = rows[i], rows[i + s]
                    rows[i], rows[i + s] = builder.shuffle_vector(a, b, upper), builder.shuffle_vector(a, b, under)
        for row, pointer in zip(rows, pointers(3), strict=True):
            _write(builder, row, pointer)
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp, out, types.intp, types.intp), code
