"""Band keys to candidate pairs, copies written out in full, and the k best partners of every row.

The best are kept while pairs arrive: one heap a row, the worst of its partners on top.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.sorting import run_end


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
        stop = run_end(sorted_keys, start)
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
                        left[count], right[count] = i, j
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
        stop = run_end(sorted_keys, start)
        if stop - start > cap:
            if fill:
                for x in range(start, stop):
                    first[count], rest[count] = members[start], members[x]
                    count += 1
            else:
                count += stop - start
        start = stop
    return count


@kernel
def expand_pairs(
    left, right, similarity, members, offsets, others, other_offsets, within, once, out_left, out_right, out_similarity
):
    """Write a pair of rows for every member of group left[p] and every member of group right[p]; return how many.

    `within`: both are groups of one collection, and no row is paired with itself. With `once` too, a pair of members of
    one group is written once, not from both sides, and the earlier row of every pair comes first.
    """
    count = 0
    for p in range(left.size):
        same = within and left[p] == right[p]
        for x in range(offsets[left[p]], offsets[left[p] + 1]):
            first = x + 1 if same and once else other_offsets[right[p]]
            for y in range(first, other_offsets[right[p] + 1]):
                if same and x == y:
                    continue
                a, b = members[x], others[y]
                turn = within and once and a > b
                out_left[count] = b if turn else a
                out_right[count] = a if turn else b
                out_similarity[count] = similarity[p]
                count += 1
    return count


@inner
def is_worse(score_a, partner_a, score_b, partner_b):
    """Tell whether a partner comes after another: a lower score, or the same and a higher number."""
    return score_a < score_b or (score_a == score_b and partner_a > partner_b)


@inner
def rise(scores, partners, place):
    """Move the last entry of a heap up, above every better one."""
    score, partner = scores[place], partners[place]
    while place > 0:
        above = (place - 1) >> 1
        if not is_worse(score, partner, scores[above], partners[above]):
            break
        scores[place], partners[place] = scores[above], partners[above]
        place = above
    scores[place], partners[place] = score, partner


@inner
def sink(scores, partners, count):
    """Move the first entry of a heap of `count` down, below every worse one."""
    score, partner = scores[0], partners[0]
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and is_worse(scores[child + 1], partners[child + 1], scores[child], partners[child]):
            child += 1
        if not is_worse(scores[child], partners[child], score, partner):
            break
        scores[place], partners[place] = scores[child], partners[child]
        place = child
    scores[place], partners[place] = score, partner


@kernel
def offer(rows, others, scores, best, partners, counts, floors):
    """Offer pairs to the heaps: best[r] has the scores of row r and partners[r] their numbers, counts[r] of them.

    floors[r] becomes the lowest score of a full heap: a pair with a lower one is of no use to the row.
    """
    k = best.shape[1]
    for p in range(rows.size):
        row = rows[p]
        n = counts[row]
        if n < k:
            best[row, n], partners[row, n] = scores[p], others[p]
            rise(best[row], partners[row], n)
            counts[row] = n + 1
            if n + 1 == k:
                floors[row] = best[row, 0]
        elif is_worse(best[row, 0], partners[row, 0], scores[p], others[p]):
            best[row, 0], partners[row, 0] = scores[p], others[p]
            sink(best[row], partners[row], k)
            floors[row] = best[row, 0]
