"""Sorting in place and by digits. NumPy's sorts take Numba several seconds to compile; these take a tenth of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.kernels import inner, kernel, making

FEW = 24
"""Up to this many values are sorted by insertion: fewer than that gain nothing from being partitioned."""

DEPTH = 64
"""Parts that wait to be sorted: the larger part always waits, so there are at most as many as the bits of a size."""

PATIENCE = 2
"""A part that was cut from larger ones more than twice log2(n) times is sorted by a heap: random order needs about 1.4
times, and an order that was made to defeat the choice of the pivot would need n/2."""

DIGIT = 11
"""Bits per pass of a radix sort: its 2,048 counters stay in the first-level cache, and 32 bits take three passes."""

RADIX = 1 << DIGIT


@inner
def most_cuts(n):
    """Return how often a part of n values is cut before it is sorted by a heap: PATIENCE times log2(n)."""
    cuts = 0
    while n > 0:
        cuts += PATIENCE
        n >>= 1
    return cuts


@inner
def heap_sort(values, low, high):
    """Sort values[low] to values[high] in place, in n log n steps whatever their order."""
    for top in range((high - low - 1) >> 1, -1, -1):
        sink(values, low, top, high - low)
    for last in range(high - low, 0, -1):
        value = values[low]
        values[low] = values[low + last]
        values[low + last] = value
        sink(values, low, 0, last - 1)


@inner
def sink(values, low, place, last):
    """Move a value of the heap values[low:low + last + 1] down, below every larger one."""
    value = values[low + place]
    while 2 * place + 1 <= last:
        child = 2 * place + 1
        if child < last and values[low + child] < values[low + child + 1]:
            child += 1
        if not value < values[low + child]:
            break
        values[low + place] = values[low + child]
        place = child
    values[low + place] = value


@inner
def heap_sort_pairs(keys, others, low, high):
    """Sort the pairs from `low` to `high` in place, in n log n steps whatever their order."""
    for top in range((high - low - 1) >> 1, -1, -1):
        sink_pair(keys, others, low, top, high - low)
    for last in range(high - low, 0, -1):
        keys[low], keys[low + last] = keys[low + last], keys[low]
        others[low], others[low + last] = others[low + last], others[low]
        sink_pair(keys, others, low, 0, last - 1)


@inner
def sink_pair(keys, others, low, place, last):
    """Move a pair of the heap from `low` to `low + last` down, below every later one."""
    key, other = keys[low + place], others[low + place]
    while 2 * place + 1 <= last:
        child = low + 2 * place + 1
        if child < low + last and is_before(keys[child], others[child], keys[child + 1], others[child + 1]):
            child += 1
        if not is_before(key, other, keys[child], others[child]):
            break
        keys[low + place], others[low + place] = keys[child], others[child]
        place = child - low
    keys[low + place], others[low + place] = key, other


@making
def sort_values(values, n):
    """Sort the first n values in place (quicksort, then insertion; parts of a hostile order by a heap)."""
    if n > FEW:
        lows, highs, cuts = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
        lows[0] = 0
        highs[0] = n - 1
        cuts[0] = most_cuts(n)
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low, high, left = lows[waiting], highs[waiting], cuts[waiting]
            while high - low >= FEW:
                if left == 0:
                    heap_sort(values, low, high)
                    break
                left -= 1
                a = values[low]
                b = values[(low + high) >> 1]
                c = values[high]
                pivot = max(min(a, b), min(max(a, b), c))
                i, j = low, high
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
                cuts[waiting] = left
                if j - low < high - i:
                    lows[waiting], highs[waiting] = i, high
                    high = j
                else:
                    lows[waiting], highs[waiting] = low, j
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
def first_between(values, low, high, least):
    """Return the place of the first of values[low:high], which ascend, that is not below `least`, or `high`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def first_from(values, least):
    """Return the place of the first of these ascending values that is not below `least`, or how many there are."""
    return first_between(values, 0, values.size, least)


@inner
def run_end(keys, start):
    """Return where the run of equal keys that begins at `start` ends."""
    stop = start + 1
    while stop < keys.size and keys[stop] == keys[start]:
        stop += 1
    return stop


@inner
def count_common(a, i, stop_i, b, j, stop_j):
    """Return how many values a[i:stop_i] and b[j:stop_j] share, both ascending and without repetition."""
    shared = 0
    while i < stop_i and j < stop_j:
        if a[i] == b[j]:
            shared += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return shared


@inner
def is_before(key_a, other_a, key_b, other_b):
    """Tell whether the pair (key_a, other_a) sorts before (key_b, other_b)."""
    return key_a < key_b or (key_a == key_b and other_a < other_b)


@making
def sort_pairs(keys, others, n, most):
    """Sort the first n pairs (keys[i], others[i]) in place, at least until the first `most` are in their places."""
    end = n
    if n > FEW:
        lows, highs, cuts = np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64), np.empty(DEPTH, np.int64)
        lows[0] = 0
        highs[0] = n - 1
        cuts[0] = most_cuts(n)
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low, high, left = lows[waiting], highs[waiting], cuts[waiting]
            while high - low >= FEW:
                if left == 0:
                    heap_sort_pairs(keys, others, low, high)
                    break
                left -= 1
                middle = (low + high) >> 1
                key, other = keys[middle], others[middle]
                i, j = low, high
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
                cuts[waiting] = left
                if i >= most:
                    end = min(end, i)
                    high = j
                elif j - low < high - i:
                    lows[waiting], highs[waiting] = i, high
                    waiting += 1
                    high = j
                else:
                    lows[waiting], highs[waiting] = low, j
                    waiting += 1
                    low = i
    for i in range(1, end):
        key, other = keys[i], others[i]
        j = i
        while j > 0 and is_before(key, other, keys[j - 1], others[j - 1]):
            keys[j], others[j] = keys[j - 1], others[j - 1]
            j -= 1
        keys[j], others[j] = key, other


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


def stable_order(keys: Any) -> Any:
    """Return the stable order of keys of which few are equal: NumPy's fastest sort, and equal ones put right after.

    >>> stable_order(np.array([3, 1, 3, 0])).tolist()
    [3, 1, 0, 2]
    """
    order = np.argsort(keys)
    same = keys[order[1:]] == keys[order[:-1]]
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, keys[rows]))]
    return order


def radix_sort32(keys: Any) -> tuple[Any, Any]:
    """Return the stable order of uint32 keys, fewer than 2**31 of them, and the keys in that order."""
    order, ordered = radix_sort(keys, 32, np.arange(keys.size, dtype=np.int32))
    return order, ordered


@kernel
def sort_ties(hashes, order):
    """Sort hashes, which ascend by their upper halves, and their order with them; equal ones by their order."""
    down = np.uint64(32)
    start = 0
    while start < hashes.size:
        stop, ascend = start + 1, True
        while stop < hashes.size and hashes[stop] >> down == hashes[start] >> down:
            ascend &= hashes[stop - 1] <= hashes[stop]
            stop += 1
        if not ascend:
            sort_pairs(hashes[start:stop], order[start:stop], stop - start, stop - start)
        start = stop


def hash_argsort(hashes: Any) -> tuple[Any, Any]:
    """Return the stable order of fewer than 2**32 hashes of 64 bits, and the hashes in that order.

    NumPy sorts plain words by vector instructions: here the upper half of a hash and its place, which tells the rest.
    """
    low = np.uint64(2**32 - 1)
    words = hashes & ~low
    words |= np.arange(hashes.size, dtype=np.uint64)
    words.sort()
    words &= low
    order = words.astype(np.uint32)
    del words
    ordered = hashes[order]
    sort_ties(ordered, order)
    return order, ordered


@kernel
def group_rows(rows, groups, out, bounds):
    """Copy rows in the order of their groups, otherwise as they are; group g gets out[bounds[g]:bounds[g + 1]]."""
    bounds[:] = 0
    for group in groups:
        bounds[group + 1] += 1
    for g in range(1, bounds.size):
        bounds[g] += bounds[g - 1]
    places = bounds[:-1].copy()
    for r in range(groups.size):
        for c in range(rows.shape[1]):
            out[places[groups[r]], c] = rows[r, c]
        places[groups[r]] += 1
