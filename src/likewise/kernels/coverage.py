"""What documents share with many sources: how many hold a span of words, which spans to list, and shared shingles."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U0, U1
from likewise.kernels.hashtable import TABLE_ODD, slot_range, table_bits

MEMBERS = 64
"""Sets of which each has a bit of a word."""


@inner
def add_at(tree, place, value):
    """Add a value at a place of a Fenwick tree."""
    while place < tree.size:
        tree[place] += value
        place += place & -place


@inner
def sum_from(tree, place, total):
    """Return the sum of the values from a place on; `total` is the sum of all."""
    place -= 1
    while place > 0:
        total -= tree[place]
        place -= place & -place
    return total


@making
def count_holders(starts, ends, sources, n, holders, depth):
    """Write how many sources have a span that holds each span, and how many have each of the n words.

    Spans are ordered by source, start and falling end. Those of one source that no other of its spans holds ascend on
    both sides; a span that several of them hold lies in consecutive ones, and in one less of their intersections.
    """
    count = starts.size
    left, right = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    sign = np.empty(2 * count, np.int64)
    points = 0
    depth[:] = 0
    change = np.zeros(n + 1, np.int64)
    last_source, last_end = -1, 0
    for s in range(count):
        if sources[s] != last_source:
            last_source = sources[s]
            last_end = -1
        if ends[s] <= last_end:
            continue
        if last_end >= 0:
            left[points] = starts[s]
            right[points] = last_end
            sign[points] = -1
            points += 1
        left[points], right[points] = starts[s], ends[s]
        sign[points] = 1
        points += 1
        change[max(starts[s], last_end)] += 1
        change[ends[s]] -= 1
        last_end = ends[s]
    now = 0
    for word in range(n):
        now += change[word]
        depth[word] = now
    heads = np.full(n + 1, -1, np.int64)
    follow = np.empty(points, np.int64)
    for point in range(points):
        follow[point] = heads[left[point]]
        heads[left[point]] = point
    asks = np.full(n + 1, -1, np.int64)
    then = np.empty(count, np.int64)
    for s in range(count):
        then[s] = asks[starts[s]]
        asks[starts[s]] = s
    tree = np.zeros(n + 2, np.int64)
    total = 0
    for word in range(n):
        point = heads[word]
        while point >= 0:
            add_at(tree, right[point] + 1, sign[point])
            total += sign[point]
            point = follow[point]
        s = asks[word]
        while s >= 0:
            holders[s] = sum_from(tree, ends[s] + 1, total)
            s = then[s]


@making
def choose_spans(starts, ends, sources, order, depth, many, need, chosen):
    """Choose spans, in this order: with a word that at most `many` sources have, or that too few sources have so far.

    need: how many sources are enough, 1 or 2. What is left out has all its words in what comes before, and it stays
    left out whatever other spans there are.
    """
    one = np.full(depth.size, -1, np.int64)
    two = np.zeros(depth.size, np.bool_)
    for s in order:
        new = False
        for word in range(starts[s], ends[s]):
            if depth[word] <= many or one[word] < 0 or (need > 1 and not two[word]):
                new = True
            if one[word] < 0:
                one[word] = sources[s]
            elif one[word] != sources[s]:
                two[word] = True
        chosen[s] = new


@kernel
def list_spans(groups, starts, ends, sources, order, many, need, holders, chosen):
    """Count the holders of the spans of many documents, and choose which to list; groups[g] is where document g begins.

    Within a document, spans are ordered by source, start and falling end; `order` has their numbers, from 0 in each
    document, by falling rank.
    """
    for g in range(groups.size - 1):
        low = groups[g]
        high = groups[g + 1]
        n = 0
        for s in range(low, high):
            n = max(n, ends[s])
        depth = np.zeros(n, np.int64)
        count_holders(starts[low:high], ends[low:high], sources[low:high], n, holders[low:high], depth)
        choose_spans(
            starts[low:high], ends[low:high], sources[low:high], order[low:high], depth, many, need, chosen[low:high]
        )


@inner
def slot_of_member(members, value, down, mask):
    """Return the slot of a value, or the free slot where it belongs."""
    slot = (value * TABLE_ODD) >> down
    while members[slot, 1] != U0 and members[slot, 0] != value:
        slot = (slot + U1) & mask
    return slot


@kernel
def members_of(values, offsets):
    """Return a hash table of the elements of at most MEMBERS sets: rows of an element and of the sets that have it.

    Bit s stands for set s. A free slot has no set. The table grows with the number of different elements, which may be
    a fraction of all: the fewer caches it takes, the quicker it is asked.
    """
    bits = table_bits(0)
    members, count = np.zeros((1 << bits, 2), np.uint64), 0
    down, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    for owner in range(offsets.size - 1):
        for i in range(offsets[owner], offsets[owner + 1]):
            slot = slot_of_member(members, values[i], down, mask)
            if members[slot, 1] == U0:
                count += 1
            members[slot, 0] = values[i]
            members[slot, 1] |= U1 << np.uint64(owner)
            if 2 * count > members.shape[0]:
                bits += 1
                down, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
                larger = np.zeros((1 << bits, 2), np.uint64)
                for old in range(members.shape[0]):
                    if members[old, 1] != U0:
                        new = slot_of_member(larger, members[old, 0], down, mask)
                        larger[new, 0], larger[new, 1] = members[old, 0], members[old, 1]
                members = larger
    return members


@inner
def add_three(a, b, c):
    """Add three bits at each of 64 places; return the low and the high bits of the sums."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@inner
def add_bits(planes, first, bits):
    """Add 2**first to the 64 counters at whose places a bit is set; planes[b] has bit b of each of them."""
    while bits != U0:
        carried = planes[first] & bits
        planes[first] ^= bits
        bits = carried
        first += 1


@kernel
def count_shared_elements(members, values, offsets, left, right, shared):
    """Write how many elements set left[p] of the members shares with set right[p] of these; `right` ascends.

    All members are counted at once, in 64 counters that lie across a few words.
    """
    down, mask = slot_range(members.shape[0] // 2)
    planes = np.empty(64, np.uint64)
    p = 0
    while p < right.size:
        other = right[p]
        planes[:] = U0
        ones, twos = U0, U0
        start, stop = offsets[other], offsets[other + 1]
        for i in range(start, stop - 3, 4):
            a = members[slot_of_member(members, values[i], down, mask), 1]
            b = members[slot_of_member(members, values[i + 1], down, mask), 1]
            c = members[slot_of_member(members, values[i + 2], down, mask), 1]
            d = members[slot_of_member(members, values[i + 3], down, mask), 1]
            ones, first = add_three(ones, a, b)
            ones, second = add_three(ones, c, d)
            twos, four = add_three(twos, first, second)
            add_bits(planes, 2, four)
        planes[0], planes[1] = ones, twos
        for i in range(stop - (stop - start) % 4, stop):
            add_bits(planes, 0, members[slot_of_member(members, values[i], down, mask), 1])
        while p < right.size and right[p] == other:
            shared[p] = 0
            for b in range(planes.size):
                shared[p] |= np.int64((planes[b] >> np.uint64(left[p])) & U1) << b
            p += 1
