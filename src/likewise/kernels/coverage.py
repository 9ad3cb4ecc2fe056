"""What documents share with many sources: how many hold a span of words, which spans to list, and shared shingles."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U1
from likewise.kernels.hashtable import TABLE_ODD, slot_range


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


@inner
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


@inner
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


@kernel
def make_postings(values, offsets, table, numbers, begins, owners):
    """Put the elements of sets in a hash table, with the sets that have each: owners[begins[e]:begins[e + 1]]."""
    down, mask = slot_range(values.size)
    numbers[:] = -1
    count = 0
    begins[:] = 0
    for i in range(values.size):
        slot = (values[i] * TABLE_ODD) >> down
        while numbers[slot] >= 0 and table[slot] != values[i]:
            slot = (slot + U1) & mask
        if numbers[slot] < 0:
            numbers[slot] = count
            table[slot] = values[i]
            count += 1
        begins[numbers[slot] + 1] += 1
    for e in range(count):
        begins[e + 1] += begins[e]
    places = begins[:count].copy()
    for owner in range(offsets.size - 1):
        for i in range(offsets[owner], offsets[owner + 1]):
            slot = (values[i] * TABLE_ODD) >> down
            while table[slot] != values[i]:
                slot = (slot + U1) & mask
            owners[places[numbers[slot]]] = owner
            places[numbers[slot]] += 1


@kernel
def count_shared_elements(table, numbers, begins, owners, sets, values, offsets, left, right, shared):
    """Write how many elements set left[p] in the postings shares with set right[p] of these; `right` ascends.

    `sets` is the number of sets in the postings.
    """
    down, mask = slot_range(owners.size)
    counts = np.empty(sets, np.int64)
    p = 0
    while p < right.size:
        other = right[p]
        counts[:] = 0
        for i in range(offsets[other], offsets[other + 1]):
            slot = (values[i] * TABLE_ODD) >> down
            while numbers[slot] >= 0 and table[slot] != values[i]:
                slot = (slot + U1) & mask
            if numbers[slot] >= 0:
                for entry in range(begins[numbers[slot]], begins[numbers[slot] + 1]):
                    counts[owners[entry]] += 1
        while p < right.size and right[p] == other:
            shared[p] = counts[left[p]]
            p += 1
