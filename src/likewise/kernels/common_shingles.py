"""Shingles that too many documents carry: a hash table of them, counting their carriers, leaving them out."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel

ODD = np.uint64(0x9E3779B97F4A7C15)
U0 = np.uint64(0)
U1 = np.uint64(1)


@kernel
def slot_of(table, value):
    """Return where a value stands in a table, a power of two in size with at least one free slot, or where it would."""
    mask = np.uint64(table.size - 1)
    slot = ((value * ODD) >> np.uint64(32)) & mask
    while table[slot] != value and table[slot] != U0:
        slot = (slot + U1) & mask
    return slot


@kernel
def fill_table(values, table):
    """Put values, none of them 0, in a table of zeros."""
    for value in values:
        table[slot_of(table, value)] = value


@kernel
def count_carriers(values, offsets, table, counts):
    """Add to counts[s], for every set, 1 where table[s] is one of its elements."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            slot = slot_of(table, np.uint64(values[j]))
            if table[slot] != U0:
                counts[slot] += 1


@kernel
def without(values, n, table):
    """Leave out the values that stand in the table, but not if none were left; return how many remain."""
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
    """Leave the values of the table out of every set; return how many values there are then."""
    written = 0
    out_offsets[0] = 0
    for i in range(offsets.size - 1):
        n = offsets[i + 1] - offsets[i]
        out[written : written + n] = values[offsets[i] : offsets[i + 1]]
        written += without(out[written : written + n], n, table)
        out_offsets[i + 1] = written
    return written
