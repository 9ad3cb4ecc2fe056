"""What Numba has no functions for, told to its compiler; intrinsics.py has the names, and the same for the interpreter.

This module is imported when something is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import carray as carray


def _pointer(context, address):
    """Emit the conversion of a whole number to a pointer: Numba has no function for it."""

    def emit(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), emit


def _ones(context, word):
    """Emit LLVM's instruction that counts bits."""

    def emit(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), emit


def _trailing_zeros(context, x):
    """Emit LLVM's instruction for it: Numba has no function of that name."""

    def emit(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), emit


def _eight_bytes(context, words, place):
    """Emit one load from an address that need not be a multiple of eight: Numba indexes whole elements only."""

    def emit(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        first = builder.bitcast(array.data, cgutils.voidptr_t)
        at = builder.bitcast(builder.gep(first, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(at, align=1)

    return types.uint64(words, types.uint64), emit


def _prefetch(context, array, place):
    """Emit LLVM's instruction that brings the memory around an element nearer, to be read soon and often."""

    def emit(context, builder, signature, arguments):
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        at = builder.bitcast(builder.gep(made.data, [arguments[1]]), cgutils.voidptr_t)
        builder.call(function, [at, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), emit


as_pointer: Any = intrinsic(_pointer)
count_ones: Any = intrinsic(_ones)
trailing_zeros: Any = intrinsic(_trailing_zeros)
eight_bytes: Any = intrinsic(_eight_bytes)
prefetch: Any = intrinsic(_prefetch)
