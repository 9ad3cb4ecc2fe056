"""Python values as the arrays that kernels take, and the values that hypothesis makes of them."""

import functools
import itertools

import numba
import numpy as np
from hypothesis import strategies as st

from likewise.kernels.hashtable import SPREAD_ODD, TABLE_ODD

EDGES = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
WORDS_64 = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)
FEW_64 = st.sampled_from(EDGES)


def spread(value):
    """Return the 64 bits whose highest ones choose the slot of a value in a hash table."""
    product = (value ^ value >> 32) * int(TABLE_ODD) % 2**64
    return (product ^ product >> 32) * int(SPREAD_ODD) % 2**64


def gathered(code):
    """Return the value whose `spread` is this."""
    product = code * pow(int(SPREAD_ODD), -1, 2**64) % 2**64
    value = (product ^ product >> 32) * pow(int(TABLE_ODD), -1, 2**64) % 2**64
    return value ^ value >> 32


LAST_SLOTS = [gathered(2**64 - 1 - i) for i in range(8)]
"""Values that belong in the last slot of any table, so that probing must go round."""


def hashes(values):
    return np.array(values, np.uint64)


def words(values):
    return np.array(values, np.uint32)


def ints(values):
    return np.array(values, np.int64)


def numbers(array):
    return [int(x) for x in array]


def ragged(lists):
    """Join lists of hashes to (values, offsets)."""
    return hashes([x for part in lists for x in part]), ints(np.cumsum([0, *map(len, lists)]))


def parts(values, offsets):
    """Cut (values, offsets) up again."""
    return [numbers(values[a:b]) for a, b in itertools.pairwise(offsets)]


def utf8(texts, before=b""):
    """Lay texts end to end in one read-only buffer, behind some other bytes: (data, offsets)."""
    encoded = [text if isinstance(text, bytes) else text.encode() for text in texts]
    data = np.frombuffer(before + b"".join(encoded), np.uint8)
    if data.size == 0:
        data = np.zeros(0, np.uint8)
        data.flags.writeable = False
    return data, ints(np.cumsum([len(before), *map(len, encoded)]))


class Opened:
    """A module of kernels in which Python can also call those that only kernels call."""

    def __init__(self, module):
        self._module = module

    @functools.cache  # noqa: B019
    def __getattr__(self, name):
        function = getattr(self._module, name)
        if not getattr(function, "targetoptions", {}).get("no_cpython_wrapper"):
            return function
        return numba.njit(lambda *args: function(*args))
