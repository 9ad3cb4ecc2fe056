"""Crowds: documents that share a template, distinguished by the shingles that few of them have.

A value is *salted* with the crowd of its set, so that crowds are told apart in one table. A word is 64 bits: a key in
the high half, a row in the low half, so that sorting words by their key groups the rows.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import LOW32, U1, U6, U32, U63, mix
from likewise.kernels.hashtable import TABLE_ODD, numbered_slot, slot_range
from likewise.kernels.overlap import JACCARD, least_overlap
from likewise.kernels.sets import differing_bits
from likewise.kernels.sorting import sort_values

SLACK = 1e-6
"""Room for rounding in sums of a few products of sizes and the threshold."""


@inner
def salted(value, crowd):
    """Return a hash of a value in a crowd: different crowds have different ones."""
    return mix(np.uint64(value) ^ (np.uint64(crowd) * TABLE_ODD))


@kernel
def count_values(values, offsets, crowds, down, counts):
    """Count every value in one of the 2**(64 - down) counters, chosen by its hash: none is ever counted too low."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            counts[salted(values[j], crowds[i]) >> down] += np.uint32(1)


@kernel
def value_counts(values, offsets, crowds, down, counts, out):
    """out[j] = the counter of values[j]."""
    for i in range(offsets.size - 1):
        for j in range(offsets[i], offsets[i + 1]):
            out[j] = counts[salted(values[j], crowds[i]) >> down]


@kernel
def collect_heavy(first, values, offsets, crowds, down, counts, most, table, numbers, used, raw, owners, carriers):
    """Number the values whose counters are above `most`, and count the sets that have each; return the next set.

    `table` (of hashes) and `numbers` (-1: free) are a hash table; used[0] is how many are numbered. Stops before a set
    that the table may not have room for. raw: the values themselves; owners: their crowds.
    """
    shift, mask = slot_range(table.size // 2)
    room = min(raw.size, table.size // 2)
    for i in range(first, offsets.size - 1):
        if used[0] + offsets[i + 1] - offsets[i] > room:
            return i
        for j in range(offsets[i], offsets[i + 1]):
            x = salted(values[j], crowds[i])
            if counts[x >> down] <= most:
                continue
            slot = numbered_slot(x, table, numbers, shift, mask)
            if numbers[slot] < 0:
                table[slot] = x
                numbers[slot] = used[0]
                raw[used[0]] = np.uint64(values[j])
                owners[used[0]] = crowds[i]
                carriers[used[0]] = 0
                used[0] += 1
            carriers[numbers[slot]] += 1
    return offsets.size - 1


@kernel
def add_heavy(more_raw, more_owners, more_carriers, table, numbers, used, raw, owners, carriers):
    """Add values that were numbered elsewhere, and the numbers of sets that have them; there is room for all."""
    shift, mask = slot_range(table.size // 2)
    for i in range(more_raw.size):
        x = salted(more_raw[i], more_owners[i])
        slot = numbered_slot(x, table, numbers, shift, mask)
        if numbers[slot] < 0:
            table[slot] = x
            numbers[slot] = used[0]
            raw[used[0]] = more_raw[i]
            owners[used[0]] = more_owners[i]
            carriers[used[0]] = 0
            used[0] += 1
        carriers[numbers[slot]] += more_carriers[i]


@kernel
def draw_heavy(values, offsets, crowds, table, numbers, bits, dense, maps, heavy, dense_counts):
    """Set in maps[i] the bit bits[n] for every heavy value of set i, numbered n; count them.

    dense[n]: whether value n is one of those that many sets have; dense_counts[i]: how many of them set i has.
    """
    shift, mask = slot_range(table.size // 2)
    for i in range(offsets.size - 1):
        maps[i] = 0
        total, often = 0, 0
        for j in range(offsets[i], offsets[i + 1]):
            number = numbers[numbered_slot(salted(values[j], crowds[i]), table, numbers, shift, mask)]
            if number >= 0:
                bit = np.uint64(bits[number])
                maps[i, bit >> U6] |= U1 << (bit & U63)
                total += 1
                if dense[number]:
                    often += 1
        heavy[i], dense_counts[i] = total, often


@kernel
def light_words(values, offsets, crowds, table, numbers, seed, first, lengths, out):
    """Write for set i, row first + i, the words of the lengths[i] lowest hashes among its values that are not heavy."""
    shift, mask = slot_range(table.size // 2)
    longest = 0
    for i in range(lengths.size):
        longest = max(longest, offsets[i + 1] - offsets[i])
    buffer = np.empty(longest, np.uint64)
    written = 0
    for i in range(lengths.size):
        if lengths[i] == 0:
            continue
        n = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            x = salted(values[j], crowds[i])
            if numbers[numbered_slot(x, table, numbers, shift, mask)] < 0:
                buffer[n] = mix(x ^ seed) >> U32
                n += 1
        if lengths[i] < n:
            sort_values(buffer, n)
        for k in range(lengths[i]):
            out[written] = (buffer[k] << U32) | np.uint64(first + i)
            written += 1


@kernel
def run_pairs(words, sizes, heavy, maps, low, high, p, q, fill, out):
    """Count, or write if `fill`, the pairs of rows whose words, sorted, have the same key and that may be similar.

    heavy[i] is the number of heavy values of row i and maps[i] a bitmap of them; a pair that is similar shares no more
    than those and the lesser number of other values. Pairs of two rows below `low`, or of two from `high` on, do not
    count. A pair is a word again: the lower row in the high half.
    """
    count, start = 0, 0
    while start < words.size:
        key = words[start] >> U32
        stop = start + 1
        while stop < words.size and words[stop] >> U32 == key:
            stop += 1
        for x in range(start, stop):
            a = np.int64(words[x] & LOW32)
            for y in range(x + 1, stop):
                b = np.int64(words[y] & LOW32)
                if a == b or max(a, b) < low or min(a, b) >= high:
                    continue
                least = least_overlap(np.int64(JACCARD), p, q, 0.0, sizes[a], sizes[b])
                if least > min(sizes[a], sizes[b]):
                    continue
                rest = min(sizes[a] - heavy[a], sizes[b] - heavy[b])
                if heavy[a] + heavy[b] - differing_bits(maps[a], maps[b]) + 2 * rest >= 2 * least:
                    if fill:
                        out[count] = (np.uint64(min(a, b)) << U32) | np.uint64(max(a, b))
                    count += 1
        start = stop
    return count


@kernel
def distinct_words(words):
    """Move the first of every run of equal words to the front; return how many there are."""
    count = 0
    for i in range(words.size):
        if i == 0 or words[i] != words[i - 1]:
            words[count] = words[i]
            count += 1
    return count
