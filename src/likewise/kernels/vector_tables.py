"""Hash tables over bits: rows that agree in some groups of bits meet in a bucket, and are compared by all their bits.

A row is a few words of 64 bits. A group is a run of bits; a table is made for some groups, and two rows meet in it if
they agree in all of them. A pair that meets in several tables is taken from the first.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, U64
from likewise.kernels.hashtable import TABLE_ODD
from likewise.kernels.intrinsics import ones
from likewise.kernels.sorting import first_between

MIX = np.uint64(0xBF58476D1CE4E5B9)
HELD = 256
FEW = 6


@kernel
def pack_signs(values, words):
    """Set bit j of a row where its value j is not negative."""
    for i in range(values.shape[0]):
        for w in range(words.shape[1]):
            word = U0
            for j in range(64):
                word |= np.uint64(values[i, 64 * w + j] >= 0) << np.uint64(j)
            words[i, w] = word


@kernel
def pack_parities(values, words):
    """Set bit j of a row where the whole part of its value j is odd."""
    for i in range(values.shape[0]):
        for w in range(words.shape[1]):
            word = U0
            for j in range(64):
                whole = np.int64(np.floor(values[i, 64 * w + j]))
                word |= np.uint64(whole & 1) << np.uint64(j)
            words[i, w] = word


@kernel
def pack_chosen(rows, places, words):
    """Set bit j of a row as bit places[j] of the row given; places beyond the end are not written."""
    for i in range(rows.shape[0]):
        for w in range(words.shape[1]):
            word = U0
            for j in range(min(64, places.size - 64 * w)):
                place = places[64 * w + j]
                word |= ((rows[i, place >> 6] >> np.uint64(place & 63)) & U1) << np.uint64(j)
            words[i, w] = word


@kernel
def table_keys(words, starts, lengths, chosen, keys):
    """Write the bits of the chosen groups of every row as one number; together they are at most 64."""
    keys[:] = U0
    for c in range(chosen.size):
        word = starts[chosen[c]] >> 6
        low = np.uint64(starts[chosen[c]] & 63)
        length = np.uint64(lengths[chosen[c]])
        mask = ~U0 >> (U64 - length)
        up = length if c > 0 else U0
        if low + length <= U64:
            for i in range(keys.size):
                keys[i] = (keys[i] << up) | ((words[i, word] >> low) & mask)
        else:
            for i in range(keys.size):
                value = (words[i, word] >> low) | (words[i, word + 1] << (U64 - low))
                keys[i] = (keys[i] << up) | (value & mask)


@kernel
def fill_buckets(keys, shift, ends, rows, ordered):
    """Put rows in the buckets of a table of 2**(64 − shift), in ascending order; return how many pairs share a bucket.

    `ends` has one place more than there are buckets; the first of them become the ends of the buckets.
    """
    move = np.uint64(shift)
    ends[:] = 0
    for i in range(keys.size):
        ends[((keys[i] * TABLE_ODD) >> move) + U1] += 1
    pairs = np.int64(0)
    for bucket in range(1, ends.size):
        size = np.int64(ends[bucket])
        pairs += size * (size - 1) // 2
        ends[bucket] += ends[bucket - 1]
    for i in range(keys.size):
        bucket = (keys[i] * TABLE_ODD) >> move
        rows[ends[bucket]] = i
        ordered[ends[bucket]] = keys[i]
        ends[bucket] += 1
    return pairs


@inner
def is_first(words, i, j, starts, lengths, chosen):
    """Tell whether the chosen groups are the first ones in which two rows agree."""
    found, group = 0, 0
    while found < chosen.size:
        word = starts[group] >> 6
        low = np.uint64(starts[group] & 63)
        length = np.uint64(lengths[group])
        differ = (words[i, word] ^ words[j, word]) >> low
        if low + length > U64:
            differ |= (words[i, word + 1] ^ words[j, word + 1]) << (U64 - low)
        if differ << (U64 - length) == U0:
            if chosen[found] != group:
                return False
            found += 1
        group += 1
    return True


@inner
def hold(seen, rows, first, end, held):
    """Copy the bits of the rows of a bucket, word by word."""
    for w in range(seen.shape[1]):
        for x in range(first, end):
            held[w, x - first] = seen[rows[x], w]


@inner
def nearest_held(held, x, begin, size, width, apart):
    """Write in how many bits the rows of a bucket from `begin` on differ from row x; return the least of them."""
    for y in range(begin, size):
        apart[y] = ones(held[0, x] ^ held[0, y])
    for w in range(1, width):
        for y in range(begin, size):
            apart[y] += ones(held[w, x] ^ held[w, y])
    least = apart[begin]
    for y in range(begin + 1, size):
        least = min(least, apart[y])
    return least


@kernel
def pairs_across(ends, rows, split):
    """Return how many pairs share a bucket of which one row is below `split` and the other is not."""
    pairs, at = np.int64(0), 0
    for bucket in range(ends.size - 1):
        end = ends[bucket]
        if end - at > 1:
            below = first_between(rows, at, end, split) - at
            pairs += np.int64(below) * np.int64(end - at - below)
        at = end
    return pairs


@kernel
def meet(ends, rows, ordered, place, words, starts, lengths, chosen, seen, most, split, left, right):
    """Write the pairs of rows that meet, differ in at most `most` bits of `seen`, and did not meet in an earlier table.

    With a `split` above 0, one row is below it and the other is not. Goes on at place[0], a bucket, and place[1], a
    row of it, and stops there when the room may not do for another row. Returns how many pairs were written.
    Rows of a bucket whose keys differ are there by chance; they are few, so bits are compared first and keys after.
    """
    count = 0
    width = seen.shape[1]
    held = np.empty((width, HELD), np.uint64)
    apart = np.empty(HELD, np.int64)
    bucket, at = place[0], place[1]
    while bucket < ends.size - 1:
        end = ends[bucket]
        size = end - at
        below = first_between(rows, at, end, split) - at if split > 0 else size
        others = below if split > 0 else 0
        if split > 0 and (below == 0 or below == size):
            at = end
            bucket += 1
            continue
        close = FEW <= size <= HELD
        if close:
            hold(seen, rows, at, end, held)
        for x in range(min(below, size - 1)):
            begin = max(x + 1, others)
            if count + size - begin > left.size:
                place[0] = bucket
                place[1] = at + x
                return count
            i = rows[at + x]
            if close and nearest_held(held, x, begin, size, width, apart) > most:
                continue
            for y in range(begin, size):
                j = rows[at + y]
                if close:
                    far = apart[y]
                else:
                    far = 0
                    for w in range(width):
                        far += ones(seen[i, w] ^ seen[j, w])
                if far > most or ordered[at + x] != ordered[at + y]:
                    continue
                if is_first(words, i, j, starts, lengths, chosen):
                    left[count], right[count] = i, j
                    count += 1
        at = end
        bucket += 1
    place[0], place[1] = bucket, at
    return count


@kernel
def digest_rows(data, digests):
    """Write a fingerprint of 128 bits for every row of words."""
    for i in range(data.shape[0]):
        a, b = TABLE_ODD, MIX
        for j in range(data.shape[1]):
            a = (a ^ data[i, j]) * MIX
            a ^= a >> np.uint64(29)
            b = (b + data[i, j]) * TABLE_ODD
            b ^= b >> np.uint64(31)
        digests[i, 0] = a ^ (a >> np.uint64(32))
        digests[i, 1] = b ^ (b >> np.uint64(32))
