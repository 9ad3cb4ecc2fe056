"""Common shingles, those of too many documents: counting the documents that have them, and leaving them out."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashtable import U0, slot_of


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
