"""Band keys to candidate pairs; sorting; copies written out in full."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel

DIGIT = 11
RADIX = 1 << DIGIT
DIGIT_MASK = np.uint64(RADIX - 1)


@kernel
def radix_argsort(keys, bits):
    """Return the stable order of uint64 keys, of which only the low `bits` bits differ."""
    n = keys.size
    order = np.arange(n)
    other = np.empty_like(order)
    sorted_keys = keys.copy()
    other_keys = np.empty_like(keys)
    count = np.empty(RADIX, np.int64)
    for shift in range(0, bits, DIGIT):
        down = np.uint64(shift)
        count[:] = 0
        for i in range(n):
            count[(sorted_keys[i] >> down) & DIGIT_MASK] += 1
        total = 0
        for digit in range(RADIX):
            here = count[digit]
            count[digit] = total
            total += here
        for i in range(n):
            digit = (sorted_keys[i] >> down) & DIGIT_MASK
            place = count[digit]
            count[digit] = place + 1
            other[place] = order[i]
            other_keys[place] = sorted_keys[i]
        order, other = other, order
        sorted_keys, other_keys = other_keys, sorted_keys
    return order


@kernel
def scan_band(keys, band, order, split, fill, left, right):
    """Count, or write if `fill`, the pairs that share this band's key and no earlier band's; return their number.

    `order` sorts the items by the band's key, stably, so that within a bucket the items ascend. With split >= 0
    only pairs of an item before `split` and one from `split` on count.
    """
    count = 0
    n = order.size
    start = 0
    while start < n:
        key = keys[order[start], band]
        stop = start + 1
        while stop < n and keys[order[stop], band] == key:
            stop += 1
        for x in range(start, stop):
            i = order[x]
            for y in range(x + 1, stop):
                j = order[y]
                if split >= 0 and (i >= split or j < split):
                    continue
                new = True
                for earlier in range(band):
                    if keys[i, earlier] == keys[j, earlier]:
                        new = False
                        break
                if new:
                    if fill:
                        left[count] = i
                        right[count] = j
                    count += 1
        start = stop
    return count


@kernel
def spell_out(left, right, similarity, members, offsets, out_left, out_right, out_similarity):
    """Write a pair of rows for every pair of members of two similar groups (or of one), the earlier row first."""
    count = 0
    for p in range(left.size):
        a = left[p]
        b = right[p]
        for x in range(offsets[a], offsets[a + 1]):
            first = x + 1 if a == b else offsets[b]
            for y in range(first, offsets[b + 1]):
                out_left[count] = min(members[x], members[y])
                out_right[count] = max(members[x], members[y])
                out_similarity[count] = similarity[p]
                count += 1
