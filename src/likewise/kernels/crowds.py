"""Crowds: documents that share a template, distinguished by the shingles that few of them have.

A word is 64 bits: a key in the high half, a row in the low half, so that sorting words by their key groups the rows.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import LOW32, U0, U1, U32, mix
from likewise.kernels.hashtable import NOBODY, TABLE_ODD, enter_set, numbered_slot, spared, table_bits
from likewise.kernels.overlap import JACCARD, least_overlap
from likewise.kernels.sets import U6, U63, differing_bits
from likewise.kernels.sketch import band_keys, sketch_one
from likewise.kernels.sorting import sort_values

SLACK = 1e-6
DEPUTIES = 2
TURN = 16
GRACE = 1000


@kernel
def count_values(values, down, counts):
    """Count every value in one of the 2**(64 - down) counters, chosen by its hash: none is ever counted too low."""
    for i in range(values.size):
        counts[(np.uint64(values[i]) * TABLE_ODD) >> down] += np.uint32(1)


@kernel
def value_counts(values, down, counts, out):
    """out[i] = the counter of values[i]."""
    for i in range(values.size):
        out[i] = counts[(np.uint64(values[i]) * TABLE_ODD) >> down]


@kernel
def exact_counts(values, wanted, out):
    """out[w] = how often the value wanted[w] occurs; the wanted values are all different."""
    bits = table_bits(4 * wanted.size)
    down = np.uint64(64 - bits)
    mask = np.uint64((1 << bits) - 1)
    table = np.empty(1 << bits, np.uint64)
    numbers = np.full(1 << bits, -1)
    for w in range(wanted.size):
        slot = numbered_slot(wanted[w], table, numbers, down, mask)
        table[slot] = wanted[w]
        numbers[slot] = w
    for i in range(values.size):
        w = numbers[numbered_slot(values[i], table, numbers, down, mask)]
        if w >= 0:
            out[w] += 1


@kernel
def mark_heavy(values, offsets, down, counts, most, heavy, out):
    """Mark in `heavy` the values whose counter is above `most`; out[i] = how many of them set i has."""
    for i in range(offsets.size - 1):
        total = 0
        for j in range(offsets[i], offsets[i + 1]):
            heavy[j] = counts[(np.uint64(values[j]) * TABLE_ODD) >> down] > most
            if heavy[j]:
                total += 1
        out[i] = total


@kernel
def light_words(values, offsets, heavy, seed, first, lengths, out):
    """Write for set i, row first + i, the words of the lengths[i] lowest hashes among its values that are not heavy."""
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
            if not heavy[j]:
                buffer[n] = mix(np.uint64(values[j]) ^ seed) >> U32
                n += 1
        if lengths[i] < n:
            sort_values(buffer, n)
        for k in range(lengths[i]):
            out[written] = (buffer[k] << U32) | np.uint64(first + i)
            written += 1


@kernel
def run_pairs(words, sizes, threshold, fill, out):
    """Count, or write if `fill`, the pairs of rows whose words, sorted, have the same key and whose sizes allow it.

    A pair is a word again: the lower row in the high half.
    """
    count = 0
    start = 0
    while start < words.size:
        key = words[start] >> U32
        stop = start + 1
        while stop < words.size and words[stop] >> U32 == key:
            stop += 1
        for x in range(start, stop):
            a = words[x] & LOW32
            for y in range(x + 1, stop):
                b = words[y] & LOW32
                less = min(sizes[a], sizes[b])
                more = max(sizes[a], sizes[b])
                if a != b and less >= threshold * more - SLACK:
                    if fill:
                        out[count] = (a << U32) | b
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


@kernel
def heavy_keys(values, offsets, heavy, rows, seeds, per_band, out):
    """Sketch the heavy values of these sets and keep the band keys."""
    longest = 0
    for row in rows:
        longest = max(longest, offsets[row + 1] - offsets[row])
    buffer = np.empty(longest, np.uint64)
    signature = np.empty(out.shape[1] * per_band, np.uint32)
    slots = np.empty(signature.size, np.uint64)
    for i in range(rows.size):
        n = np.int64(0)
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            if heavy[j]:
                buffer[n] = np.uint64(values[j])
                n += 1
        sketch_one(buffer, n, np.int64(0), seeds, slots, signature)
        band_keys(signature, per_band, out[i])


@kernel
def heavy_maps(values, offsets, heavy, out):
    """Set in out[i] one bit for every heavy value of set i, chosen by its hash; a row has a power of two of bits."""
    mask = np.uint64(out.shape[1] * 64 - 1)
    for i in range(out.shape[0]):
        out[i] = U0
        for j in range(offsets[i], offsets[i + 1]):
            if heavy[j]:
                bit = ((np.uint64(values[j]) * TABLE_ODD) >> U32) & mask
                out[i, bit >> U6] |= U1 << (bit & U63)


@kernel
def bucket_pairs(keys, band, order, lack, limit, throngs, number, out):
    """Count, or write unless `out` is empty, the pairs of this band that may be similar by their heavy values alone.

    Those are the pairs with lack[i] + lack[j] <= 0; `order` sorts the items by key, and within a bucket `lack` ascends.
    Pairs that agree in an earlier band are left out. A bucket of more than `limit` such pairs per member is a throng:
    it gives no pairs; throngs are numbered from `number` on, and throngs[i, band] is set to the one that i is in.
    Return the number of pairs and the number of the next throng.
    """
    count = 0
    start = 0
    while start < order.size:
        key = keys[order[start], band]
        stop = start + 1
        while stop < order.size and keys[order[stop], band] == key:
            stop += 1
        total = 0
        y = stop
        for x in range(start, stop):
            while y > start and lack[order[x]] + lack[order[y - 1]] > SLACK:
                y -= 1
            if y <= x + 1:
                break
            total += y - x - 1
        if total > limit * (stop - start):
            for x in range(start, stop):
                if lack[order[x]] + lack[order[start]] <= SLACK:
                    throngs[order[x], band] = number
            number += 1
            start = stop
            continue
        for x in range(start, stop):
            i = order[x]
            for y in range(x + 1, stop):
                j = order[y]
                if lack[i] + lack[j] > SLACK:
                    break
                new = True
                for earlier in range(band):
                    if keys[i, earlier] == keys[j, earlier] and throngs[i, earlier] < 0:
                        new = False
                        break
                if new:
                    if out.size > 0:
                        out[count] = (np.uint64(i) << U32) | np.uint64(j)
                    count += 1
        start = stop
    return count, number


@kernel
def pairs_in_reach(pairs, rows, sizes, heavy, maps, p, q):
    """Move those pairs of places in `rows` to the front, as pairs of rows, that their heavy values may make similar.

    heavy[i] is how many row i has, maps[i] a bitmap of them. Return the number of pairs.
    """
    count = 0
    for i in range(pairs.size):
        a = rows[pairs[i] >> U32]
        b = rows[pairs[i] & LOW32]
        least = least_overlap(np.int64(JACCARD), p, q, 0.0, sizes[a], sizes[b])
        if heavy[a] + heavy[b] - differing_bits(maps[a], maps[b]) >= 2 * least:
            pairs[count] = (np.uint64(min(a, b)) << U32) | np.uint64(max(a, b))
            count += 1
    return count


@inner
def similarity_to(values, offsets, a, b, table, owner, down, mask, least):
    """Return the Jaccard similarity of `b` to the set `a` in the table, or -1 if they share fewer than `least`."""
    size_b = offsets[b + 1] - offsets[b]
    spare = spared(values, offsets[b], offsets[b + 1], a, table, owner, down, mask, size_b - least)
    if spare < 0:
        return -1.0
    shared = spare + least
    union = offsets[a + 1] - offsets[a] + size_b - shared
    return shared / union if union > 0 else 1.0


@inner
def enlist(members, listed, most, i, lack):
    """Put row i in its place in a list of rows in which `lack` ascends, no longer than `most`; return its length."""
    if listed == most and lack[members[listed - 1]] <= lack[i]:
        return listed
    k = min(listed, most - 1)
    while k > 0 and lack[members[k - 1]] > lack[i]:
        members[k] = members[k - 1]
        k -= 1
    members[k] = i
    return min(listed + 1, most)


@kernel
def lead(
    left,
    right,
    values,
    offsets,
    maps,
    heavy,
    lack,
    place,
    throngs,
    lists,
    most,
    income,
    p,
    q,
    leaders,
    out_left,
    out_right,
    out_similarity,
):
    """Walk the rows in order; one that no earlier leader is found similar to becomes a leader. Return the new pairs.

    Leaders are looked for among the partners of the verified pairs (left, right), which come sorted by `right`, and
    then in the lists of the throngs that the row is in: throngs[place[i]], or in none where place[i] is -1. The list of
    throng t has room for lists[t + 1] - lists[t] leaders, those that lack least. At most about `most` leaders are
    looked at, by turns from the lists; and of those looked at in vain there are no more than `income` a row, so that
    hopeless throngs cost little. Two rows of a throng that share a light value are a pair already, so only heavy values
    count here: heavy[i] of them, drawn in maps[i].
    A row that follows a leader is also compared with the leader's first followers, its deputies: should the leader go,
    they take over.
    """
    n = offsets.size - 1
    largest = np.int64(0)
    for i in range(n):
        largest = max(largest, offsets[i + 1] - offsets[i])
    size = 1 << table_bits(largest)
    table = np.empty(size, np.uint64)
    owner = np.full(size, NOBODY)
    listed = np.zeros(lists.size - 1, np.int64)
    members = np.empty(lists[-1], np.int64)
    seen_by = np.full(n, -1)
    deputies = np.full((n, DEPUTIES), -1)
    written = 0
    credit = income * GRACE
    pair = 0
    for i in range(n):
        follows = False
        while pair < right.size and right[pair] == i:
            follows |= leaders[left[pair]]
            pair += 1
        leaders[i] = not follows
        if follows or place[i] < 0:
            continue
        size_i = offsets[i + 1] - offsets[i]
        down = np.uint64(0)
        mask = np.uint64(0)
        tabulated = False
        found = -1
        credit += income
        allowed = min(most, credit)
        checks = 0
        ahead = 0
        longest = TURN
        while ahead < longest and found < 0 and checks < allowed:
            for t in throngs[place[i]]:
                if t < 0 or found >= 0:
                    continue
                longest = max(longest, listed[t])
                for k in range(lists[t] + ahead, lists[t] + min(ahead + TURN, listed[t])):
                    b = members[k]
                    if lack[i] + lack[b] > SLACK:
                        break
                    if seen_by[b] == i:
                        continue
                    seen_by[b] = i
                    checks += 1
                    least = least_overlap(np.int64(JACCARD), p, q, 0.0, size_i, offsets[b + 1] - offsets[b])
                    if heavy[i] + heavy[b] - differing_bits(maps[i], maps[b]) < 2 * least:
                        continue
                    if not tabulated:
                        down, mask = enter_set(values, offsets[i], offsets[i + 1], i, table, owner)
                        tabulated = True
                    similarity = similarity_to(values, offsets, i, b, table, owner, down, mask, least)
                    if similarity >= 0:
                        found = b
                        out_left[written] = b
                        out_right[written] = i
                        out_similarity[written] = similarity
                        written += 1
                        break
            ahead += TURN
        if found < 0:
            credit -= checks
            for t in throngs[place[i]]:
                if t >= 0:
                    listed[t] = enlist(members[lists[t] :], listed[t], lists[t + 1] - lists[t], i, lack)
            continue
        leaders[i] = False
        for rank in range(DEPUTIES):
            b = deputies[found, rank]
            if b < 0:
                deputies[found, rank] = i
                break
            least = least_overlap(np.int64(JACCARD), p, q, 0.0, size_i, offsets[b + 1] - offsets[b])
            similarity = similarity_to(values, offsets, i, b, table, owner, down, mask, least)
            if similarity >= 0:
                out_left[written] = b
                out_right[written] = i
                out_similarity[written] = similarity
                written += 1
    return written
