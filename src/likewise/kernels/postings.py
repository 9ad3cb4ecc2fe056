"""Sorted keys with their postings: the tables of a stored index, how they are built and merged.

A table has the same number of entries in each of its bands. The entries of a band ascend by key; `starts` says where
the entries begin whose keys have the same highest bits, so that a key is found in one step, whatever the number of
entries.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.sorting import sort_values

GONE = np.uint32(0xFFFFFFFF)
"""The new number of a set that is left out of a merged table."""


@kernel
def fill_starts(keys, bits, starts):
    """starts[band, d] = the first entry of the band whose key has highest bits of at least d; the last is their end."""
    down = np.uint32(32 - bits)
    for band in range(keys.shape[0]):
        at = 0
        for i in range(keys.shape[1]):
            while at <= np.int64(keys[band, i] >> down):
                starts[band, at] = i
                at += 1
        while at < starts.shape[1]:
            starts[band, at] = keys.shape[1]
            at += 1


@kernel
def merge_entries(keys_a, sets_a, map_a, keys_b, sets_b, map_b, keys, sets):
    """Merge two bands of sorted entries and renumber their sets, leaving out those that are GONE; return how many."""
    i = 0
    j = 0
    written = 0
    while i < keys_a.size or j < keys_b.size:
        if j == keys_b.size or (i < keys_a.size and keys_a[i] <= keys_b[j]):
            key = keys_a[i]
            new = map_a[sets_a[i]]
            i += 1
        else:
            key = keys_b[j]
            new = map_b[sets_b[j]]
            j += 1
        if new != GONE:
            keys[written] = key
            sets[written] = new
            written += 1
    return written


@kernel
def sort_sets(values, offsets):
    """Sort the elements of every set of a ragged array."""
    for i in range(offsets.size - 1):
        sort_values(values[offsets[i] : offsets[i + 1]], offsets[i + 1] - offsets[i])


@kernel
def put_rows(order, offsets, members):
    """Write row r to the place offsets[order[r]] of its group and move the place on: a counting sort of rows."""
    for row in range(order.size):
        group = order[row]
        members[offsets[group]] = row
        offsets[group] += 1


@inner
def first_key(keys, low, high, key):
    """Return the first place in keys[low:high], which ascend, whose key is not below this one."""
    while high - low > 8:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    while low < high and keys[low] < key:
        low += 1
    return low


@inner
def after_key(keys, low, high, key):
    """Return the first place in keys[low:high], which ascend, whose key is above this one; runs may be long."""
    step = 1
    while low < high and keys[low] == key:
        if low + step < high and keys[low + step] == key:
            low += step
            step *= 2
        else:
            low += 1
            step = max(1, step // 2)
    return low
