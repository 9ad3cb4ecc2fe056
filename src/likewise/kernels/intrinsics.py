"""What Numba has no functions for: arrays at given addresses, and instructions that count bits.

By its address a kernel reads many values of a memory map in one call. The caller keeps the memory alive, and has
checked that as many numbers are there.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.numpy_support import carray

from likewise.kernels import config, inner


def _pointer(context, address):
    """Emit the conversion of a whole number to a pointer: Numba has no function for it."""

    def emit(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), emit


_as_pointer: Any = None if config.DISABLE_JIT else intrinsic(_pointer)


def _words32(address, n):
    """Return the n 32-bit numbers at an address."""
    return carray(_as_pointer(address), (n,), np.uint32)


def _words64(address, n):
    """Return the n 64-bit numbers at an address."""
    return carray(_as_pointer(address), (n,), np.uint64)


def _octets(address, n):
    """Return the n bytes at an address."""
    return carray(_as_pointer(address), (n,), np.uint8)


def _floats32(address, n):
    """Return the n numbers of single precision at an address."""
    return carray(_as_pointer(address), (n,), np.float32)


def _floats64(address, n):
    """Return the n numbers of double precision at an address."""
    return carray(_as_pointer(address), (n,), np.float64)


def _interpreted(kind):
    """Return the same function for the Python interpreter."""

    def view(address, n):
        return np.frombuffer((kind * int(n)).from_address(int(address)), kind) if n else np.zeros(0, kind)

    return view


words32: Any = _interpreted(ctypes.c_uint32) if config.DISABLE_JIT else inner(_words32)
words64: Any = _interpreted(ctypes.c_uint64) if config.DISABLE_JIT else inner(_words64)
octets: Any = _interpreted(ctypes.c_uint8) if config.DISABLE_JIT else inner(_octets)
floats32: Any = _interpreted(ctypes.c_float) if config.DISABLE_JIT else inner(_floats32)
floats64: Any = _interpreted(ctypes.c_double) if config.DISABLE_JIT else inner(_floats64)


def ones(x):
    """Return the number of bits set in a 64-bit word."""
    return int(x).bit_count()


@intrinsic
def _instruction(context, word):
    def code(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), code


_count: Any = _instruction


@overload(ones, inline="always")
def _ones(x):
    def count(x):
        return _count(x)

    return count


def _trailing_zeros(context, x):
    """Emit LLVM's instruction for it: Numba has no function of that name."""

    def emit(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), emit


def _trailing_zeros_interpreted(x):
    return np.uint64((int(x) & -int(x)).bit_length() - 1 if x else 64)


trailing_zeros: Any = _trailing_zeros_interpreted if config.DISABLE_JIT else intrinsic(_trailing_zeros)
"""trailing_zeros(x): the number of zero bits below the lowest one bit of x; 64 if there is none."""


def _eight_bytes(context, words, place):
    """Emit one load from an address that need not be a multiple of eight: Numba indexes whole elements only."""

    def emit(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        first = builder.bitcast(array.data, cgutils.voidptr_t)
        at = builder.bitcast(builder.gep(first, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(at, align=1)

    return types.uint64(words, types.uint64), emit


def _eight_bytes_interpreted(words, place):
    return words.view(np.uint8)[int(place) : int(place) + 8].view(np.uint64)[0]


eight_bytes: Any = _eight_bytes_interpreted if config.DISABLE_JIT else intrinsic(_eight_bytes)
"""eight_bytes(words, place): the eight bytes from byte `place` on of an array of 64-bit words, the first one lowest."""


@inner
def chunk_of(chunks, number):
    """Return which chunk of a stored index holds a set or row, by the first numbers of the chunks, in column 0."""
    low = 0
    high = chunks.shape[0]
    while high - low > 1:
        middle = (low + high) >> 1
        if chunks[middle, 0] <= number:
            low = middle
        else:
            high = middle
    return low
