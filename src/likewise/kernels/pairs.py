"""Band keys to candidate pairs; sorting; copies written out in full."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel

DIGIT = 11
RADIX = 1 << DIGIT
DIGIT_MASK = np.uint64(RADIX - 1)
MASK32 = np.uint32(RADIX - 1)


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
def radix_sort32(keys):
    """Return the stable order of uint32 keys, fewer than 2**31 of them, and the keys in that order."""
    n = keys.size
    order = np.empty(n, np.int32)
    other = np.empty(n, np.int32)
    sorted_keys = keys.copy()
    other_keys = np.empty_like(keys)
    for i in range(n):
        order[i] = i
    count = np.empty(RADIX, np.int64)
    for shift in range(0, 32, DIGIT):
        down = np.uint32(shift)
        count[:] = 0
        for i in range(n):
            count[(keys[i] >> down) & MASK32] += 1
        total = 0
        for digit in range(RADIX):
            here = count[digit]
            count[digit] = total
            total += here
        for i in range(n):
            key = sorted_keys[i]
            digit = (key >> down) & MASK32
            place = count[digit]
            count[digit] = place + 1
            other[place] = order[i]
            other_keys[place] = key
        order, other = other, order
        sorted_keys, other_keys = other_keys, sorted_keys
    return order, sorted_keys


@kernel
def label_equal(digests, order, first):
    """Write for each row the first row with the same 128 bits; `order` sorts the rows by some of those bits, stably."""
    n = order.size
    start = 0
    while start < n:
        key = np.uint32(digests[order[start], 0])
        stop = start + 1
        while stop < n and np.uint32(digests[order[stop], 0]) == key:
            stop += 1
        for x in range(start, stop):
            i = order[x]
            first[i] = i
            for y in range(start, x):
                j = order[y]
                if first[j] == j and digests[i, 0] == digests[j, 0] and digests[i, 1] == digests[j, 1]:
                    first[i] = j
                    break
        start = stop


@kernel
def scan_band(sorted_keys, members, keys, heavy, band, low, high, cap, fill, left, right):
    """Count, or write if `fill`, the pairs that share a bucket of this band and none of an earlier one.

    `members` are the items in the order of their keys, ascending within a bucket. The first `band` columns of `keys`
    are the bands to be passed over, but for their heavy buckets: where heavy[i, e] is set. Pairs of two items below
    `low`, or of two from `high` on, do not count, and buckets of more than `cap` items are left out.
    """
    count = 0
    n = members.size
    start = 0
    while start < n:
        key = sorted_keys[start]
        stop = start + 1
        while stop < n and sorted_keys[stop] == key:
            stop += 1
        if stop - start > cap:
            start = stop
            continue
        for x in range(start, stop):
            i = members[x]
            if i >= high:
                break
            for y in range(x + 1, stop):
                j = members[y]
                if j < low:
                    continue
                new = True
                for earlier in range(band):
                    if keys[i, earlier] == keys[j, earlier] and (heavy.size == 0 or not heavy[i, earlier]):
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
def heavy_buckets(sorted_keys, members, cap, fill, first, rest):
    """Count, or write if `fill`, the items of buckets of more than `cap`, each beside the first item of its bucket."""
    count = 0
    n = members.size
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and sorted_keys[stop] == sorted_keys[start]:
            stop += 1
        if stop - start > cap:
            if fill:
                for x in range(start, stop):
                    first[count] = members[start]
                    rest[count] = members[x]
                    count += 1
            else:
                count += stop - start
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


@kernel
def spell_all(left, right, similarity, members, offsets, others, other_offsets, within, once, out_left, out_right, out):
    """Write a pair of rows for every member of group left[p] and of group right[p]; return how many there are.

    `within`: both are groups of one collection. Of a group with itself, a pair is written `once` or from both sides; no
    row is paired with itself.
    """
    count = 0
    for p in range(left.size):
        for x in range(offsets[left[p]], offsets[left[p] + 1]):
            same = within and left[p] == right[p]
            for y in range(x + 1 if same and once else other_offsets[right[p]], other_offsets[right[p] + 1]):
                if same and x == y:
                    continue
                out_left[count] = members[x]
                out_right[count] = others[y]
                out[count] = similarity[p]
                count += 1
    return count
