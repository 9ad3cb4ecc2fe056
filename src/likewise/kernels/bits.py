"""Population count: the number of bits set in a word, by the instruction that processors have for it."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic, overload


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
