"""Shingles to distinct sets, and the exact overlap of candidate pairs."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U0, U1, U6, U32, U63, hash_separated, mix, mix_all, unpack_numbers
from likewise.kernels.hashtable import (
    TABLE_ODD,
    enter_set,
    largest_set,
    owned_slot,
    owned_table,
    slot_range,
    spared,
    spread,
)
from likewise.kernels.intrinsics import ones
from likewise.kernels.overlap import JACCARD, least_overlap
from likewise.kernels.sorting import sort_values

HUGE = 1 << 22
"""A set of more values than this is sorted to find the distinct ones: a hash table would be larger than any cache."""


@making
def distinct(values, n, table, owner, stamp, out):
    """Write the distinct values in order of first appearance (of a HUGE set, sorted); return how many there are.

    `table` and `owner` are an open-addressing hash table; an entry counts only if its owner is `stamp`, so that it
    needs no clearing between documents.
    """
    count = 0
    if n > HUGE:
        ordered = values[:n].copy()
        sort_values(ordered, n)
        for i in range(n):
            if i == 0 or ordered[i] != ordered[i - 1]:
                out[count] = ordered[i]
                count += 1
        return count
    down, mask = slot_range(n)
    for i in range(n):
        x = np.uint64(values[i])
        slot = owned_slot(x, stamp, table, owner, down, mask)
        if owner[slot] != stamp:
            owner[slot], table[slot], out[count] = stamp, x, x
            count += 1
    return count


@inner
def numbered(values, n, table, owner, counts, stamp, out):
    """Turn a bag into a set: copy c of x becomes mix(x) + c; Jaccard of such sets is Σ min / Σ max of the counts."""
    down, mask = slot_range(n)
    for i in range(n):
        x = np.uint64(values[i])
        slot = owned_slot(x, stamp, table, owner, down, mask)
        if owner[slot] != stamp:
            owner[slot], table[slot], counts[slot] = stamp, x, U0
        out[i] = mix(x) + counts[slot]
        counts[slot] += U1
    return n


@making
def distinct_sets(values, offsets, out, out_offsets):
    """Drop the repeated values of every set of a ragged array; return how many values are left in all."""
    table, owner = owned_table(min(largest_set(offsets), HUGE))
    written = 0
    out_offsets[0] = 0
    for i in range(offsets.size - 1):
        start = offsets[i]
        n = offsets[i + 1] - start
        written += distinct(values[start : start + n], n, table, owner, i, out[written:])
        out_offsets[i + 1] = written
    return written


@kernel
def bitmaps(values, offsets, out):
    """Set in out[i] one bit for every element of set i, chosen by its hash; a row has a power of two of bits."""
    mask = np.uint64(out.shape[1] * 64 - 1)
    for i in range(out.shape[0]):
        out[i] = U0
        for j in range(offsets[i], offsets[i + 1]):
            bit = (spread(np.uint64(values[j])) >> U32) & mask
            out[i, bit >> U6] |= U1 << (bit & U63)


@inner
def differing_bits(a, b):
    """Count the bits in which two bitmaps differ; popcount is one instruction."""
    total = 0
    for i in range(a.size):
        total += ones(a[i] ^ b[i])
    return total


@kernel
def verify(left, right, values, offsets, maps, p, q, out):
    """out[k] = Jaccard similarity of the sets left[k] and right[k] if it reaches the threshold p/q, else -1.

    Pairs come grouped by `left`: its set is put in a hash table once, and each partner is looked up in it until the
    misses rule the threshold out.
    """
    largest = np.int64(0)
    for k in range(left.size):
        largest = max(largest, offsets[left[k] + 1] - offsets[left[k]])
    table, owner = owned_table(largest)
    down, mask, last = U0, U0, np.int64(-1)
    for k in range(left.size):
        a, b = np.int64(left[k]), np.int64(right[k])
        size_a, size_b = offsets[a + 1] - offsets[a], offsets[b + 1] - offsets[b]
        least = least_overlap(np.int64(JACCARD), p, q, 0.0, size_a, size_b)
        out[k] = -1.0
        if min(size_a, size_b) < least:
            continue
        # Each differing bit of the bitmaps is at least one element that only one of the sets has.
        if size_a + size_b - differing_bits(maps[a], maps[b]) < 2 * least:
            continue
        if a != last:
            last = a
            down, mask = enter_set(values, offsets[a], offsets[a + 1], a, table, owner)
        spare = spared(values, offsets[b], offsets[b + 1], a, table, owner, down, mask, size_b - least)
        if spare >= 0:
            shared = spare + least
            union = size_a + size_b - shared
            out[k] = shared / union if union > 0 else 1.0


@kernel
def digest_sets(values, offsets, out):
    """Fingerprint every set with 128 bits, whatever the order of its values."""
    for i in range(offsets.size - 1):
        a = np.uint64(offsets[i + 1] - offsets[i])
        b = a
        for j in range(offsets[i], offsets[i + 1]):
            x = mix(np.uint64(values[j]) ^ TABLE_ODD)
            a += x
            b += mix(x ^ (x << U32) ^ np.uint64(1))
        out[i, 0] = mix(a)
        out[i, 1] = mix(b)


@making
def numbered_sets(values, offsets, out, out_offsets):
    """Number the repeated values of every bag of a ragged array; return how many values there are in all."""
    table, owner = owned_table(largest_set(offsets))
    counts = np.empty(table.size, np.uint64)
    out_offsets[0] = offsets[0]
    for i in range(offsets.size - 1):
        start = offsets[i]
        n = offsets[i + 1] - start
        out_offsets[i + 1] = offsets[i + 1]
        numbered(values[start : start + n], n, table, owner, counts, i, out[start:])
    return values.size


@kernel
def sets_of_hashes(values, offsets, bag, out, out_offsets):
    """Drop or number the repeated values of every set of a ragged array; return how many values there are in all."""
    if bag:
        return numbered_sets(values, offsets, out, out_offsets)
    return distinct_sets(values, offsets, out, out_offsets)


@kernel
def sets_of_numbers(data, seed, bag, out, out_offsets):
    """Make sets of lists of whole numbers as marshal writes them; -1 if there is anything else.

    All in one call: between two calls a thread may have to wait for another that holds Python.
    """
    values, offsets = np.empty(out.size, np.int64), np.empty(out_offsets.size, np.int64)
    count = unpack_numbers(data, values, offsets)
    if count < 0:
        return -1
    hashes = np.empty(count, np.uint64)
    mix_all(values[:count], seed, hashes)
    return sets_of_hashes(hashes, offsets, bag, out, out_offsets)


@kernel
def sets_of_strings(data, offsets, bag, out, out_offsets):
    """Make sets of strings that each end with a zero byte."""
    return sets_of_hashes(hash_separated(data), offsets, bag, out, out_offsets)
