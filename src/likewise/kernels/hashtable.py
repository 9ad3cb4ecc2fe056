"""Open-addressing hash tables of 64-bit values: how a slot is found, and how many values a table and a set share.

Three kinds of table mark their free slots differently. In a table with *owners* an entry counts only if its owner is
the current stamp, so that the table needs no clearing from one set to the next. In a table of *numbers* a free slot has
a negative number. A table without either is for values that are not 0, and a free slot holds 0: that of common
shingles, for instance, those of too many documents, which are left out.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U0, U1, U32

TABLE_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, an odd number: the multiplier of Fibonacci hashing, which uses the high bits."""

SPREAD_ODD = np.uint64(0xD1342543DE82EF95)
"""The second multiplier of `spread`: an odd number without a pattern, known from linear congruential generators."""

NOBODY = np.int32(-1)
"""The owner of a slot that no set has used."""

STRIDE = 16
"""Every 16th element of a set is looked up first: documents often share their beginning (a licence, a header) and
nothing else, and the misses that rule out a pair are found sooner."""


@kernel
def table_bits(n):
    """Return the binary logarithm of the size of a hash table that n entries fill at most half."""
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    return bits


@inner
def slot_range(n):
    """Return the shift and the mask of the slots of a hash table that n entries fill at most half."""
    bits = table_bits(n)
    return np.uint64(64 - bits), np.uint64((1 << bits) - 1)


@making
def owned_table(n):
    """Return an empty table with owners for n entries: room for the values, and the owners."""
    size = 1 << table_bits(n)
    return np.empty(size, np.uint64), np.full(size, NOBODY)


@inner
def largest_set(offsets):
    """Return the size of the largest set of a ragged array."""
    largest = np.int64(0)
    for i in range(offsets.size - 1):
        largest = max(largest, offsets[i + 1] - offsets[i])
    return largest


@inner
def spread(value):
    """Scramble 64 bits so that the high ones, which choose a slot, depend on all of them: a bijection.

    One multiplication is not enough: values that were chosen by their product (an exact join breaks ties by it) or that
    are multiples of a number with a small product would fill one stretch of a table, and every probe walk through it.
    """
    value = (value ^ (value >> U32)) * TABLE_ODD
    return (value ^ (value >> U32)) * SPREAD_ODD


@inner
def owned_slot(value, stamp, table, owner, down, mask):
    """Return the slot of a value among the entries of `stamp`, or the free slot where it belongs."""
    slot = spread(value) >> down
    while owner[slot] == stamp and table[slot] != value:
        slot = (slot + U1) & mask
    return slot


@inner
def numbered_slot(value, table, numbers, down, mask):
    """Return the slot of a value in a table of numbers, or the free slot where it belongs."""
    slot = spread(value) >> down
    while numbers[slot] >= 0 and table[slot] != value:
        slot = (slot + U1) & mask
    return slot


@kernel
def number_values(known, values, out):
    """Write the place of each value among the known ones, which are all different, or -1."""
    down, mask = slot_range(known.size)
    table, numbers = np.empty(mask + U1, np.uint64), np.full(mask + U1, np.int64(-1))
    for i in range(known.size):
        value = np.uint64(known[i])
        slot = numbered_slot(value, table, numbers, down, mask)
        table[slot], numbers[slot] = value, i
    for i in range(values.size):
        out[i] = numbers[numbered_slot(np.uint64(values[i]), table, numbers, down, mask)]


@kernel
def slot_of(table, value):
    """Return the slot of a value in a table whose free slots are 0, or the free slot where it belongs.

    The size of the table is a power of two, and at least one slot is free.
    """
    mask = np.uint64(table.size - 1)
    slot = (spread(value) >> U32) & mask
    while table[slot] != value and table[slot] != U0:
        slot = (slot + U1) & mask
    return slot


@kernel
def slots_of(table, values, out):
    """Write the slot of each of these values in a table whose free slots are 0."""
    for i in range(values.size):
        out[i] = slot_of(table, values[i])


@kernel
def fill_table(values, table):
    """Put values, none of them 0, in a table of zeros."""
    for value in values:
        table[slot_of(table, value)] = value


@inner
def enter_set(values, start, stop, stamp, table, owner):
    """Put the distinct values[start:stop] in a table with owners; return the shift and the mask of its slots."""
    down, mask = slot_range(stop - start)
    for i in range(start, stop):
        value = np.uint64(values[i])
        slot = spread(value) >> down
        while owner[slot] == stamp:
            slot = (slot + U1) & mask
        owner[slot], table[slot] = stamp, value
    return down, mask


@inner
def spared(values, start, stop, stamp, table, owner, down, mask, spare):
    """Return `spare` less the number of values[start:stop] that are not in the table; any negative number if negative.

    It stops looking when the result is negative.
    """
    for first in range(start, min(start + STRIDE, stop)):
        for i in range(first, stop, STRIDE):
            slot = owned_slot(np.uint64(values[i]), stamp, table, owner, down, mask)
            spare -= np.int64(owner[slot] != stamp)
        if spare < 0:
            break
    return spare


@kernel
def move_numbers(table, numbers, new_table, new_numbers):
    """Copy a table of numbers to a larger one, full of negative numbers."""
    shift, mask = slot_range(new_table.size // 2)
    for i in range(table.size):
        if numbers[i] >= 0:
            slot = numbered_slot(table[i], new_table, new_numbers, shift, mask)
            new_table[slot], new_numbers[slot] = table[i], numbers[i]


@kernel
def count_carriers(values, offsets, table, counts):
    """Add 1 to counts[s] for every set that has table[s] among its elements."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            slot = slot_of(table, np.uint64(values[j]))
            if table[slot] != U0:
                counts[slot] += 1


@inner
def without(values, n, table):
    """Drop the values that are in the table, unless none would remain; return how many remain."""
    left = 0
    for i in range(n):
        if table[slot_of(table, values[i])] == U0:
            left += 1
    if left == 0 or left == n:
        return n
    count = 0
    for i in range(n):
        if table[slot_of(table, values[i])] == U0:
            values[count] = values[i]
            count += 1
    return count


@kernel
def sets_without(values, offsets, table, out, out_offsets):
    """Drop the values of the table from every set; return how many values remain."""
    written = 0
    out_offsets[0] = 0
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i]
        for j in range(n):
            out[written + j] = values[offsets[i] + j]
        written += without(out[written : written + n], n, table)
        out_offsets[i + 1] = written
    return written
