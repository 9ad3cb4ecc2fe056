"""What Numba has no functions for: arrays at given addresses, instructions that count bits, and prefetching.

By its address a kernel reads many values of a memory map in one call. The caller keeps the memory alive, and has
checked that as many numbers are there.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from likewise.kernels import Instruction, config, inner, making, overload

_as_pointer: Any = Instruction("as_pointer")
_count: Any = Instruction("count_ones")
carray: Any = Instruction("carray")


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


words32: Any = _interpreted(ctypes.c_uint32) if config.DISABLE_JIT else making(_words32)
words64: Any = _interpreted(ctypes.c_uint64) if config.DISABLE_JIT else making(_words64)
octets: Any = _interpreted(ctypes.c_uint8) if config.DISABLE_JIT else making(_octets)
floats32: Any = _interpreted(ctypes.c_float) if config.DISABLE_JIT else making(_floats32)
floats64: Any = _interpreted(ctypes.c_double) if config.DISABLE_JIT else making(_floats64)


def ones(x):
    """Return the number of bits set in a 64-bit word."""
    return int(x).bit_count()


@overload(ones)
def _ones(x):
    def count(x):
        return _count(x)

    return count


def _trailing_zeros_interpreted(x):
    return np.uint64((int(x) & -int(x)).bit_length() - 1 if x else 64)


trailing_zeros: Any = _trailing_zeros_interpreted if config.DISABLE_JIT else Instruction("trailing_zeros")
"""trailing_zeros(x): the number of zero bits below the lowest one bit of x; 64 if there is none."""


def _eight_bytes_interpreted(words, place):
    return words.view(np.uint8)[int(place) : int(place) + 8].view(np.uint64)[0]


eight_bytes: Any = _eight_bytes_interpreted if config.DISABLE_JIT else Instruction("eight_bytes")
"""eight_bytes(words, place): the eight bytes from byte `place` on of an array of 64-bit words, the first one lowest."""


def _prefetch_interpreted(array, place):
    pass


prefetch: Any = _prefetch_interpreted if config.DISABLE_JIT else Instruction("prefetch")
"""prefetch(array, place): lets the memory of an element, counted through all of a contiguous array, arrive while other
things are done; it may be anywhere, even outside of the array."""


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
