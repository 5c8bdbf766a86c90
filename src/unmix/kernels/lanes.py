"""Sixteen numbers at a time, for kernels whose speed depends on what stays in registers.

The compiler makes vectors of plain loops, but neither keeps a tile of sums in registers across an outer loop nor uses
the widest registers that there are, and where loops are short, it spends most of the time around them. `Lanes` is a
value of sixteen (or eight) numbers in a kernel; where registers are narrower it takes several of them. Arrays are flat
and C-contiguous; indices are not checked.
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
NUMBER = {types.float32: ir.FloatType(), types.int32: INDEX, types.float64: ir.DoubleType()}


class Lanes(types.Type):
    """A fixed count of numbers of one type."""

    def __init__(self, dtype: Any, width: int = WIDTH) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Lanes({dtype}, {width})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _vector(kind.dtype, kind.width))


def _vector(dtype: Any, width: int = WIDTH) -> ir.VectorType:
    return ir.VectorType(NUMBER[dtype], width)


def _pointer(context: Any, builder: Any, to: Any, kind: Any, array: Any, index: Any) -> Any:
    start = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(start, [index]), to.as_pointer())


def _mask(places: list[int]) -> ir.Constant:
    return ir.Constant(ir.VectorType(INDEX, len(places)), places)


def _read(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    value.align = 4
    return value


def _write(builder: Any, value: Any, pointer: Any) -> None:
    builder.store(value, pointer).align = 4


def _repeat(builder: Any, number: Any, width: int = WIDTH) -> Any:
    nothing = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, _mask([0] * width))


@inlined()
def aligned(n, dtype):
    """n zeros that share no cache line with other arrays."""
    out = np.zeros(n + WIDTH, dtype)
    skip = -(out.ctypes.data // out.itemsize) % (64 // out.itemsize)
    return out[skip : skip + n]


def _load(array: Any, width: int) -> Any:
    def code(context, builder, signature, args):
        return _read(builder, _pointer(context, builder, _vector(array.dtype, width), signature.args[0], *args))

    return Lanes(array.dtype, width)(array, types.intp), code


@intrinsic
def load(_context, array, index):
    """array[index : index + 16]."""
    return _load(array, WIDTH)


@intrinsic
def load8(_context, array, index):
    """array[index : index + 8]."""
    return _load(array, 8)


@intrinsic
def load_part(_context, array, index, count):
    """The first `count` of array[index : index + 16], zeros after them; the rest is not touched."""

    def code(context, builder, signature, args):
        vector, number = _vector(array.dtype), args[2]
        place = _pointer(context, builder, vector, signature.args[0], *args[:2])
        lanes = ir.Constant(ir.VectorType(number.type, WIDTH), list(range(WIDTH)))
        mask = builder.icmp_signed("<", lanes, _repeat(builder, number))
        kind = ir.FunctionType(vector, [place.type, INDEX, mask.type, vector])
        name = f"llvm.masked.load.v{WIDTH}f{array.dtype.bitwidth}.p0"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [place, ir.Constant(INDEX, 4), mask, ir.Constant(vector, None)])

    return Lanes(array.dtype)(array, types.intp, types.intp), code


@intrinsic
def store(_context, array, index, value):
    """Write the lanes from array[index] on."""

    def code(context, builder, signature, args):
        vector = _vector(value.dtype, value.width)
        _write(builder, args[2], _pointer(context, builder, vector, signature.args[0], *args[:2]))
        return context.get_dummy_value()

    return types.none(array, types.intp, value), code


@intrinsic
def fetch(_context, array, index):
    """Prefetch array[index]; the index may be beyond the end."""

    def code(context, builder, signature, args):
        place = _pointer(context, builder, ir.IntType(8), signature.args[0], *args)
        kind = ir.FunctionType(ir.VoidType(), [place.type, INDEX, INDEX, INDEX])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(INDEX, i) for i in (0, 2, 1))])  # to read, second level, data
        return context.get_dummy_value()

    return types.none(array, types.intp), code


@intrinsic
def splat(_context, number):
    """The number sixteen times."""
    return Lanes(number)(number), lambda _, builder, __, args: _repeat(builder, args[0])


@intrinsic
def splat8(_context, number):
    """The number eight times."""
    return Lanes(number, 8)(number), lambda _, builder, __, args: _repeat(builder, args[0], 8)


@intrinsic
def splat_of(_context, array, index):
    """array[index] sixteen times."""

    def code(context, builder, signature, args):
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _repeat(builder, builder.load(builder.gep(start, [args[1]])))

    return Lanes(array.dtype)(array, types.intp), code


@intrinsic
def wide(_context, a):
    """The lanes as float64."""
    vector = _vector(types.float64, a.width)
    same = a.dtype == types.float64
    code = lambda _, builder, __, args: args[0] if same else builder.fpext(args[0], vector)  # noqa: E731
    return Lanes(types.float64, a.width)(a), code


@intrinsic
def narrow(_context, a):
    """The lanes as float32."""
    vector = _vector(types.float32, a.width)
    same = a.dtype == types.float32
    code = lambda _, builder, __, args: args[0] if same else builder.fptrunc(args[0], vector)  # noqa: E731
    return Lanes(types.float32, a.width)(a), code


@intrinsic
def total(_context, a):
    """The sum of the lanes: of the halves, then of their halves, and so on."""

    def code(context, builder, signature, args):
        value, width = args[0], a.width
        half = width // 2
        while half:
            other = builder.shuffle_vector(value, value, _mask([(i + half) % width for i in range(width)]))
            value = builder.fadd(value, other)
            half //= 2
        return builder.extract_element(value, ir.Constant(INDEX, 0))

    return a.dtype(a), code


@intrinsic
def fma(_context, a, b, c):
    """a·b + c, rounded once."""

    def code(context, builder, signature, args):
        vector, name = _vector(a.dtype, a.width), f"llvm.fma.v{a.width}f{a.dtype.bitwidth}"
        kind = ir.FunctionType(vector, [vector] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return a(a, b, c), code


@intrinsic
def plus(_context, a, b):
    """a + b."""
    return a(a, b), lambda _, builder, __, args: builder.fadd(*args)


@intrinsic
def minus(_context, a, b):
    """a − b."""
    return a(a, b), lambda _, builder, __, args: builder.fsub(*args)


@intrinsic
def times(_context, a, b):
    """a·b."""
    return a(a, b), lambda _, builder, __, args: builder.fmul(*args)


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
        vector = _vector(array.dtype)

        def pointers(which):
            first, step = args[which + 1 : which + 3]
            places = [builder.add(first, builder.mul(step, ir.Constant(step.type, i))) for i in range(WIDTH)]
            return [_pointer(context, builder, vector, signature.args[which], args[which], place) for place in places]

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
