"""Sorting in place and by digits. NumPy's sorts take Numba several seconds to compile; these take a tenth of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.kernels import inner, kernel

FEW = 24
"""Up to this many values are sorted by insertion: fewer than that gain nothing from being partitioned."""

DEPTH = 64
"""Parts that wait to be sorted: the larger part always waits, so there are at most as many as the bits of a size."""

DIGIT = 11
"""Bits per pass of a radix sort: its 2,048 counters stay in the first-level cache, and 32 bits take three passes."""

RADIX = 1 << DIGIT


@inner
def sort_values(values, n):
    """Sort the first n values in place (quicksort, then insertion)."""
    if n > FEW:
        lows = np.empty(DEPTH, np.int64)
        highs = np.empty(DEPTH, np.int64)
        lows[0] = 0
        highs[0] = n - 1
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low = lows[waiting]
            high = highs[waiting]
            while high - low >= FEW:
                a = values[low]
                b = values[(low + high) >> 1]
                c = values[high]
                pivot = max(min(a, b), min(max(a, b), c))
                i = low
                j = high
                while i <= j:
                    while values[i] < pivot:
                        i += 1
                    while values[j] > pivot:
                        j -= 1
                    if i <= j:
                        value = values[i]
                        values[i] = values[j]
                        values[j] = value
                        i += 1
                        j -= 1
                if j - low < high - i:
                    lows[waiting] = i
                    highs[waiting] = high
                    high = j
                else:
                    lows[waiting] = low
                    highs[waiting] = j
                    low = i
                waiting += 1
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@inner
def first_from(values, least):
    """Return the place of the first of these ascending values that is not below `least`, or how many there are."""
    low = 0
    high = values.size
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def is_before(key_a, other_a, key_b, other_b):
    """Tell whether the pair (key_a, other_a) sorts before (key_b, other_b)."""
    return key_a < key_b or (key_a == key_b and other_a < other_b)


@inner
def sort_pairs(keys, others, n, most):
    """Sort the first n pairs (keys[i], others[i]) in place, at least until the first `most` are in their places."""
    end = n
    if n > FEW:
        lows = np.empty(DEPTH, np.int64)
        highs = np.empty(DEPTH, np.int64)
        lows[0] = 0
        highs[0] = n - 1
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low = lows[waiting]
            high = highs[waiting]
            while high - low >= FEW:
                middle = (low + high) >> 1
                key = keys[middle]
                other = others[middle]
                i = low
                j = high
                while i <= j:
                    while is_before(keys[i], others[i], key, other):
                        i += 1
                    while is_before(key, other, keys[j], others[j]):
                        j -= 1
                    if i <= j:
                        keys[i], keys[j] = keys[j], keys[i]
                        others[i], others[j] = others[j], others[i]
                        i += 1
                        j -= 1
                if i >= most:
                    end = min(end, i)
                    high = j
                elif j - low < high - i:
                    lows[waiting] = i
                    highs[waiting] = high
                    waiting += 1
                    high = j
                else:
                    lows[waiting] = low
                    highs[waiting] = j
                    waiting += 1
                    low = i
    for i in range(1, end):
        key = keys[i]
        other = others[i]
        j = i
        while j > 0 and is_before(key, other, keys[j - 1], others[j - 1]):
            keys[j] = keys[j - 1]
            others[j] = others[j - 1]
            j -= 1
        keys[j] = key
        others[j] = other


@inner
def count_digits(keys, down, places):
    """Make places[d] the number of keys whose digit, the bits from `down` on, is below d."""
    mask = keys.dtype.type(RADIX - 1)
    places[:] = 0
    for i in range(keys.size):
        places[(keys[i] >> down) & mask] += 1
    total = 0
    for digit in range(RADIX):
        here = places[digit]
        places[digit] = total
        total += here


@kernel
def radix_sort(keys, bits, order):
    """Sort unsigned keys, of which only the low `bits` bits differ, stably; return `order` and the keys so arranged.

    `order` has one entry per key and is used up.
    """
    kind = keys.dtype.type
    mask = kind(RADIX - 1)
    other = np.empty_like(order)
    sorted_keys = keys.copy()
    other_keys = np.empty_like(keys)
    places = np.empty(RADIX, np.int64)
    for shift in range(0, bits, DIGIT):
        down = kind(shift)
        count_digits(sorted_keys, down, places)
        for i in range(keys.size):
            key = sorted_keys[i]
            digit = (key >> down) & mask
            place = places[digit]
            places[digit] = place + 1
            other[place] = order[i]
            other_keys[place] = key
        order, other = other, order
        sorted_keys, other_keys = other_keys, sorted_keys
    return order, sorted_keys


@kernel
def sort_words(words, low, high):
    """Return uint64 words sorted stably by their bits `low` to `high`."""
    mask = np.uint64(RADIX - 1)
    source = words.copy()
    target = np.empty_like(source)
    places = np.empty(RADIX, np.int64)
    for shift in range(low, high, DIGIT):
        down = np.uint64(shift)
        count_digits(source, down, places)
        for i in range(source.size):
            digit = (source[i] >> down) & mask
            target[places[digit]] = source[i]
            places[digit] += 1
        source, target = target, source
    return source


@kernel
def split_words(words, out, starts):
    """Group uint64 words by their highest digit, stably; starts[d] is where the words of digit d begin in `out`."""
    down = np.uint64(64 - DIGIT)
    places = np.empty(RADIX, np.int64)
    count_digits(words, down, places)
    for digit in range(RADIX):
        starts[digit] = places[digit]
    starts[RADIX] = words.size
    for i in range(words.size):
        digit = words[i] >> down
        out[places[digit]] = words[i]
        places[digit] += 1


def radix_argsort(keys: Any, bits: int) -> Any:
    """Return the stable order of uint64 keys, of which only the low `bits` bits differ."""
    return radix_sort(keys, bits, np.arange(keys.size))[0]


def radix_sort32(keys: Any) -> tuple[Any, Any]:
    """Return the stable order of uint32 keys, fewer than 2**31 of them, and the keys in that order."""
    order, ordered = radix_sort(keys, 32, np.arange(keys.size, dtype=np.int32))
    return order, ordered
