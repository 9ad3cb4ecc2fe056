"""Arrays at given addresses: how a kernel reads many values of a memory map in one call.

The caller keeps the memory alive, and has checked that as many numbers are there.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
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
