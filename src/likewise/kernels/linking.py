"""Record linkage: what pairs of records share, blocks, and the nearest records by the weights of shared terms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U1, U6, U63, mix
from likewise.kernels.intrinsics import prefetch
from likewise.kernels.sorting import run_end

AHEAD = 8
"""Pairs further on whose memory is asked for meanwhile, and twice as many whose places are: an access that is not in
the cache takes as long as the comparison of a pair."""

LINE = 8
"""Numbers of eight bytes in a line of the cache."""


@inner
def shared_weights(offsets, terms_, weights, row, other):
    """Return what a row shares with another, both sorted by term: the sum of products, and of squares of its own.

    Which of two terms is the lower one cannot be predicted, so that there is no branch: what is not shared adds 0.
    """
    a, end_a = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
    b, end_b = np.uint64(offsets[other]), np.uint64(offsets[other + 1])
    product, square = 0.0, 0.0
    while a < end_a and b < end_b:
        term, other_term = terms_[a], terms_[b]
        mine, shared = weights[a], np.float32(term == other_term)
        product += shared * (mine * weights[b])
        square += shared * (mine * mine)
        a += np.uint64(term <= other_term)
        b += np.uint64(other_term <= term)
    return product, square


@kernel
def cosines(offsets, terms_, weights, left, right):
    """Return the sum of products of the weights of shared terms, for pairs of rows sorted by term."""
    out = np.zeros(left.size, np.float64)
    for p in range(left.size):
        for side in (left, right):
            if p + 2 * AHEAD < left.size:
                prefetch(offsets, side[p + 2 * AHEAD])
            if p + AHEAD < left.size:
                row = side[p + AHEAD]
                for t in range(offsets[row], offsets[row + 1], LINE):
                    prefetch(terms_, t)
                    prefetch(weights, t)
        out[p] = shared_weights(offsets, terms_, weights, left[p], right[p])[0]
    return out


@kernel
def shared_parts(offsets, terms_, weights, rows, others):
    """Return what rows share with others: the sum of the products of their weights, and of the squares of the row's."""
    products, squares = np.zeros(rows.size, np.float64), np.zeros(rows.size, np.float64)
    for p in range(rows.size):
        products[p], squares[p] = shared_weights(offsets, terms_, weights, rows[p], others[p])
    return products, squares


@kernel
def two_best(side, scores, records):
    """Return for every record the place of its best pair, the first of equal ones (-1: none), and the next best score.

    `side` has the record of each pair. A record of fewer than two pairs has the score -inf in second place.
    """
    place = np.full(records, -1, np.int64)
    second = np.full(records, -np.inf, np.float64)
    for p in range(side.size):
        record = side[p]
        if place[record] < 0:
            place[record] = p
        elif scores[p] > scores[place[record]]:
            second[record] = scores[place[record]]
            place[record] = p
        elif scores[p] > second[record]:
            second[record] = scores[p]
    return place, second


@kernel
def agreement(marks, left, right):
    """Return for pairs of records the part of their marks that agree, of those that one of them has."""
    out = np.empty(left.size, np.float32)
    width = marks.shape[1]
    for p in range(left.size):
        if p + AHEAD < left.size:
            place = width * right[p + AHEAD]
            prefetch(marks, place)
            prefetch(marks, place + width - 1)
        same, there = 0, 0
        ours, theirs = marks[left[p]], marks[right[p]]
        for m in range(width):
            a, b = ours[m], theirs[m]
            there += (a | b) != 0
            same += a == b and a != 0
        out[p] = same / max(1, there)
    return out


@kernel
def equal_worth(codes, rarity, keys, records):
    """Return for pairs of records, given as keys, how many fields are identical, and how rare that is in all."""
    count, worth = np.empty(keys.size, np.int8), np.empty(keys.size, np.float32)
    left, ahead = np.int64(0), np.int64(0)
    for p in range(keys.size):
        if p + AHEAD < keys.size:
            further = keys[p + AHEAD]
            if further < ahead * records or further >= (ahead + 1) * records:
                ahead = further // records
            prefetch(codes, (further - ahead * records) * codes.shape[1])
        if keys[p] < left * records or keys[p] >= (left + 1) * records:
            left = keys[p] // records
        right = keys[p] - left * records
        n, total = 0, 0.0
        for f in range(codes.shape[1]):
            v = codes[left, f]
            if v >= 0 and v == codes[right, f]:
                n += 1
                total += rarity[v]
        count[p], worth[p] = n, total
    return count, worth


@kernel
def best_partners(left, right, scores, records):
    """Return for every record the greatest score of its pairs, -1 without any."""
    best = np.full(records, -1.0, np.float64)
    for p in range(left.size):
        best[left[p]] = max(best[left[p]], scores[p])
        best[right[p]] = max(best[right[p]], scores[p])
    return best


@kernel
def paired_values(codes, starts, left, right, values, same):
    """Write for every field the values of both records of each pair, -1 for none, and in how many fields both agree.

    A row of `codes` has the values of a record, each field's from its start on: values[f] are two rows of places in
    field f.
    """
    fields = codes.shape[1]
    for p in range(left.size):
        if p + 2 * AHEAD < left.size:
            prefetch(codes, left[p + 2 * AHEAD] * fields)
            prefetch(codes, right[p + 2 * AHEAD] * fields)
        same[p] = 0
        for f in range(fields):
            a, b = codes[left[p], f], codes[right[p], f]
            values[f, 0, p] = a - starts[f] if a >= 0 else -1
            values[f, 1, p] = b - starts[f] if b >= 0 else -1
            same[p] += a >= 0 and a == b


@kernel
def different_values(values):
    """Return the values of those pairs that have two different ones."""
    n = 0
    left, right = np.empty(values.shape[1], np.int64), np.empty(values.shape[1], np.int64)
    for p in range(values.shape[1]):
        a, b = values[0, p], values[1, p]
        left[n], right[n] = a, b
        n += a >= 0 and b >= 0 and a != b
    return left[:n], right[:n]


class PairLevels(NamedTuple):
    """What a field of pairs is written to: similarity, level and rarity, and which pairs are doubtful in it."""

    similarity: Any
    level: Any
    rarity: Any
    doubtful: Any


@kernel
def value_levels(values, found, rarity, steps, below, likely, loose, out):
    """Write the agreement of the values of each pair, of which `found` has the similarities of different ones in turn.

    Different values have the levels 0 to steps - 1, identical ones have level `steps`, and the rarity of the value;
    -1 and NaN stand for missing. Of `likely` pairs, values less similar than `below` are doubtful and, if `loose`,
    those that one record lacks.
    """
    d = 0
    for p in range(values.shape[1]):
        a, b = values[0, p], values[1, p]
        similarity, level, worth, doubt = np.nan, -1, np.float32(np.nan), False
        if a < 0 or b < 0:
            doubt = loose and (a >= 0 or b >= 0)
        elif a == b:
            similarity, level, worth = 1.0, steps, rarity[a]
        else:
            similarity = found[d]
            level = int(min(similarity * steps, steps - 1.0)) if similarity > 0.0 else 0
            doubt = similarity < below
            d += 1
        out.similarity[p], out.level[p], out.rarity[p] = similarity, level, worth
        out.doubtful[p] = doubt and likely[p]


@kernel
def sums_by_level(levels, worth, sums):
    """Add what every pair is worth to the sum of its level; a missing value, level -1, is left out."""
    for p in range(levels.size):
        if levels[p] >= 0:
            sums[levels[p]] += worth[p]


@kernel
def level_worth(levels, rarity, worth, equal, usual, part, out):
    """Write what the level of each pair is worth, 0 if it is missing (-1).

    At the level `equal`, that is more by `part` of how much rarer the value is than the `usual` one; both are float32.
    """
    for p in range(levels.size):
        level = levels[p]
        out[p] = worth[level] if level >= 0 else 0.0
        if level == equal:
            rarer = rarity[p] - usual
            if not np.isnan(rarer):
                out[p] += part * rarer


@kernel
def sharing(keys, since):
    """Return the rows whose key one of the rows from `since` on has, key 0 excepted, and a few others by chance.

    Keys are hashed to at least sixteen bits for each of these rows.
    """
    bits = 16
    while (1 << bits) < 16 * (keys.size - since):
        bits += 1
    shift = np.uint64(64 - bits)
    there = np.zeros(1 << bits, np.bool_)
    for i in range(since, keys.size):
        there[mix(np.uint64(keys[i])) >> shift] = True
    count = 0
    out = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        if keys[i] != 0 and there[mix(np.uint64(keys[i])) >> shift]:
            out[count] = i
            count += 1
    return out[:count].copy()


@inner
def are_compared(a, b, border, since):
    """Tell whether two records, a < b, are compared: any two of one table (border 0), or one of each table.

    One of them must be `since` or later.
    """
    return b >= since and (border == 0 or a < border <= b)


@kernel
def repeated(keys):
    """Return the rows whose key others have, too, key 0 excepted, and a few others by chance: one of sixteen at most.

    Of each key, given by its lowest bits, two bits say whether it was seen once, and twice.
    """
    bits = 10
    while (1 << bits) < 16 * keys.size:
        bits += 1
    mask = np.uint32((1 << bits) - 1)
    once, twice = np.zeros(1 << (bits - 6), np.uint64), np.zeros(1 << (bits - 6), np.uint64)
    for i in range(keys.size):
        place = np.uint64(keys[i] & mask)
        bit = U1 << (place & U63)
        twice[place >> U6] |= once[place >> U6] & bit
        once[place >> U6] |= bit
    count = np.int64(0)
    out = np.empty(keys.size, np.int32)
    for i in range(keys.size):
        place = np.uint64(keys[i] & mask)
        out[count] = i
        count += np.int64((twice[place >> U6] >> (place & U63)) & U1) & np.int64(keys[i] != 0)
    return out[:count].copy()


@kernel
def block_members(order, keys, limit):
    """Return the records of every block of two to `limit` equal keys (sorted; key 0 is none), block after block.

    The last record of a block is written as its complement. Also return how many records are in larger blocks.
    """
    crowded, count = 0, 0
    out = np.empty(order.size, np.int32)
    start = 0
    while start < order.size:
        stop = run_end(keys, start)
        if keys[start] != 0 and stop - start > limit:
            crowded += stop - start
        elif keys[start] != 0 and stop - start > 1:
            for x in range(start, stop):
                out[count] = order[x]
                count += 1
            out[count - 1] = ~out[count - 1]
        start = stop
    return out[:count].copy(), crowded


@inner
def member(members, x):
    """Return a record of a block."""
    return np.int64(members[x]) if members[x] >= 0 else np.int64(~members[x])


@kernel
def count_block_pairs(members, border, since, shift, counts):
    """Count the pairs of every block by their lower record, in ranges of 2**shift records.

    `border` is the number of the second table's first record, or 0 for one table; pairs of records before `since` are
    left out.
    """
    start = 0
    for last in range(members.size):
        if members[last] < 0:
            for x in range(start, last):
                for y in range(x + 1, last + 1):
                    one, other = member(members, x), member(members, y)
                    a, b = min(one, other), max(one, other)
                    if are_compared(a, b, border, since):
                        counts[a >> shift] += 1
            start = last + 1


@kernel
def block_pairs(members, border, since, records, shift, buckets, places, out):
    """Write these pairs, as one number: the lower record times `records` plus the higher.

    buckets: of the ranges of records; -1 if their pairs are left out. places: where the next pair of each goes.
    """
    start = 0
    for last in range(members.size):
        if members[last] < 0:
            for x in range(start, last):
                for y in range(x + 1, last + 1):
                    one, other = member(members, x), member(members, y)
                    a, b = min(one, other), max(one, other)
                    bucket = buckets[a >> shift]
                    if bucket >= 0 and are_compared(a, b, border, since):
                        out[places[bucket]] = a * records + b
                        places[bucket] += 1
            start = last + 1


@making
def cut_of(scores, n, size):
    """Return the score of the last of the `size` best of the first n scores."""
    heap = np.full(size, -1.0)
    for t in range(n):
        s = scores[t]
        if s > heap[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= size:
                    break
                if child + 1 < size and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= s:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = s
    return heap[0]


@kernel
def nearest(
    rows, row_offsets, row_terms, row_weights, starts, posted, posted_weights, size, first, k, cap, enough, visits
):
    """Return pairs (row, other) of each row and the records nearest to it by the products of shared terms' weights.

    These are the k best, and all from `enough` up to `cap`. Terms are numbered from the rarest on, and no more than
    `visits` records are looked at for a row. `first` is added to a posted number to make it a record's number; a record
    is not paired with itself. The pairs have room for all from the start: arrays that are replaced inside the loop
    would make all of it several times slower.
    """
    scores, touched, reached = np.zeros(size, np.float64), np.empty(size, np.int64), np.empty(size, np.float64)
    left = np.empty(rows.size * min(size, cap + k), np.int64)
    right = np.empty(rows.size * min(size, cap + k), np.int64)
    count = 0
    for r in range(rows.size):
        row = rows[r]
        n, seen = np.int64(0), 0
        for t in range(row_offsets[row], row_offsets[row + 1]):
            term = row_terms[t]
            length = starts[term + 1] - starts[term]
            if seen and seen + length > visits:
                break
            seen += length
            weight = row_weights[t]
            for p in range(starts[term], starts[term + 1]):
                other = posted[p]
                s = scores[other]
                if s == 0.0:
                    touched[n] = other
                    n += 1
                scores[other] = s + weight * posted_weights[p]
        others, plenty = 0, 0
        for t in range(n):
            other = touched[t]
            s = scores[other]
            scores[other] = 0.0
            if other + first != row:
                touched[others], reached[others] = other, s
                others += 1
                plenty += s >= enough
        if others:
            cut = cut_of(reached, others, min(max(k, min(plenty, cap)), others))
            taken = 0
            for t in range(others):
                if reached[t] >= cut and taken < cap + k:
                    left[count] = row
                    right[count] = touched[t] + first
                    count += 1
                    taken += 1
    return left[:count], right[:count]
