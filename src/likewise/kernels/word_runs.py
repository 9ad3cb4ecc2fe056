"""Runs of equal words of two documents, found by a hash table of the runs of so many words of one of them.

A run is (i, j, size): `size` words from word i of the suspect on equal those from word j of the source on, and neither
the words before them nor those behind them are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U0, U1, U6, U32, U63
from likewise.kernels.hashtable import TABLE_ODD, slot_range, table_bits
from likewise.kernels.text import SHINGLE_BASE, shingles

U52 = np.uint64(52)

RUN_STEPS = 16
"""Steps that a run counts for, besides its words: it is sorted three times, and its neighbours are looked at on both
sides."""

HEAVY = 4
"""A run of words of a suspect is heavy unless the most frequent one is more than so many times as frequent."""

MARKS = 4
"""A table of runs of words has 2^MARKS bits for each slot: few runs that are not in it need a look at the slots."""


class Grams(NamedTuple):
    """The runs of so many words of a document, in a hash table.

    heads[slot] is the first with a hash, nexts leads on; often[i] is how many have the hash of the first one, i. Bits
    of `marks` are set where there is any.
    """

    hashes: Any
    heads: Any
    nexts: Any
    often: Any
    marks: Any


@making
def make_grams(n):
    """Return room for the runs of n words."""
    slots = 1 << table_bits(n)
    marks = np.empty(max(1, (slots << MARKS) >> 6), np.uint64)
    heads, nexts, often = np.empty(slots, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    return Grams(np.empty(n, np.uint64), heads, nexts, often, marks)


@inner
def enter_grams(units, n, size, grams):
    """Put the runs of `size` words in the table."""
    count = shingles(units, n, size, grams.hashes)
    enter_hashes(grams, count)


@inner
def enter_hashes(grams, count):
    """Fill the table with its first so many hashes."""
    hashes, heads, nexts, often, marks = grams
    down, mask = slot_range(count)
    slots = 1 << table_bits(count)
    heads[:slots] = -1
    marks[: max(1, (slots << MARKS) >> 6)] = U0
    for i in range(count - 1, -1, -1):
        key = hashes[i] * TABLE_ODD
        bit = key >> (down - np.uint64(MARKS))
        marks[bit >> U6] |= U1 << (bit & U63)
        slot = key >> down
        while heads[slot] >= 0 and hashes[heads[slot]] != hashes[i]:
            slot = (slot + U1) & mask
        nexts[i] = heads[slot]
        often[i] = 1 if heads[slot] < 0 else often[heads[slot]] + 1
        heads[slot] = i


@inner
def slot_of_gram(heads, hashes, value, down, mask):
    """Return the slot of a hash, or the free slot where it belongs."""
    slot = (value * TABLE_ODD) >> down
    while heads[slot] >= 0 and hashes[heads[slot]] != value:
        slot = (slot + U1) & mask
    return slot


@inner
def is_marked(marks, bit):
    """Tell whether a bit is set."""
    return (marks[bit >> U6] >> (bit & U63)) & U1 != U0


@inner
def gram_at(words, place, size):
    """Return the hash of the run of `size` words that begins at a place, the one that `shingles` writes."""
    value = U0
    for i in range(place, place + size):
        value = value * SHINGLE_BASE + words[i]
    return value


@inner
def find_grams(grams, n, other, m, size, hits, limit):
    """Write the places of the source at which a run of the suspect begins, and the first place of that run there.

    Returns how many they are, and how many places there are in the suspect in all; it stops looking when these are more
    than the limit.
    """
    hashes, heads, _, often, marks = grams
    down, mask = slot_range(n - size + 1)
    fine = down - np.uint64(MARKS)
    count, total, j = 0, 0, 0
    while j < m - size + 1 and total <= limit:
        value = gram_at(other, j, size)
        if is_marked(marks, (value * TABLE_ODD) >> fine):
            first = heads[slot_of_gram(heads, hashes, value, down, mask)]
            if first >= 0:
                hits[count, 0], hits[count, 1] = j, first
                count += 1
                total += often[first]
        j += 1
    return count, total


@inner
def mark_heavy(units, n, size, grams, heavy):
    """Set in 4,096 bits those of the words with which the most frequent runs begin."""
    most = 0
    for i in range(n - size + 1):
        most = max(most, grams.often[i])
    heavy[:] = U0
    for i in range(n - size + 1):
        if HEAVY * grams.often[i] >= most:
            bit = units[i] >> U52
            heavy[bit >> U6] |= U1 << (bit & U63)


@inner
def count_steps(grams, longer, n, other, m, size, chosen, hits, limit):
    """Do what `find_grams` does, and count in place of places the steps that the runs take to which they belong.

    A place where the run is one word longer to the left, as the table of `longer` ones tells, begins no run; a run has
    size - 1 words more than places. It stops looking when the steps are more than the limit, and looks only at words
    whose bits are among the `chosen`.
    """
    hashes, heads, _, often, marks = grams
    down, mask = slot_range(n - size + 1)
    longer_down, longer_mask = slot_range(n - size)
    fine = down - np.uint64(MARKS)
    gone = U1
    for _ in range(size):
        gone *= SHINGLE_BASE
    count, steps, j = 0, 0, 0
    while j < m - size + 1 and steps <= limit:
        first = np.int32(-1)
        if is_marked(chosen, other[j] >> U52):
            value = gram_at(other, j, size)
            if is_marked(marks, (value * TABLE_ODD) >> fine):
                first = heads[slot_of_gram(heads, hashes, value, down, mask)]
        if first >= 0:
            hits[count, 0], hits[count, 1] = j, first
            count += 1
            begun = often[first]
            steps += begun
            if j > 0:
                before = other[j - 1] * gone + value
                known = longer.heads[slot_of_gram(longer.heads, longer.hashes, before, longer_down, longer_mask)]
                if known >= 0:
                    begun -= longer.often[known]
            steps += (size - 1 + RUN_STEPS) * begun
        j += 1
    return count, steps


@inner
def seed_shape(length):
    """Return how many words a seed has, and that from every so many words on one is looked at.

    Any run of `length` words has such a seed within it.
    """
    size = length // 2 + 1
    return size, length - size + 1


@kernel
def seeds_of(words, length):
    """Return the hashes of seeds of the sources, whose words lie end to end: 32 bits each, for runs are compared."""
    size, step = seed_shape(length)
    seeds = np.empty(max(0, (words.size - size) // step + 1), np.uint32)
    for at in range(seeds.size):
        seeds[at] = gram_at(words, at * step, size) >> U32
    return seeds


@inner
def enter_seeds(units, n, length, grams):
    """Put the seeds of a suspect, which begin at each of its words, in the table."""
    size, _ = seed_shape(length)
    count = shingles(units, n, size, grams.hashes)
    for i in range(count):
        grams.hashes[i] >>= U32
    enter_hashes(grams, count)


@inner
def find_seeds(grams, n, seeds, begin, m, length, hits, limit):
    """Do what `find_grams` does, for the seeds of the source of m words whose first one is word `begin` of all."""
    hashes, heads, _, often, marks = grams
    size, step = seed_shape(length)
    down, mask = slot_range(n - size + 1)
    fine = down - np.uint64(MARKS)
    at = (begin + step - 1) // step
    j = at * step - begin
    count, total = 0, 0
    while j + size <= m and total <= limit:
        value = np.uint64(seeds[at])
        if is_marked(marks, (value * TABLE_ODD) >> fine):
            first = heads[slot_of_gram(heads, hashes, value, down, mask)]
            if first >= 0:
                hits[count, 0], hits[count, 1] = j, first
                count += 1
                total += often[first]
        at += 1
        j += step
    return count, total


@inner
def shared_runs(units, n, nexts, other, m, hits, size, step, least, runs):
    """Write the runs of at least `least` words; return how many there are, and how many words they have in all.

    hits: the places where runs of `size` words begin, of every `step` words of the source. A run is found from the
    first of them that it has, so once. There is room for all of them.
    """
    count, equal = 0, 0
    for hit in range(hits.shape[0]):
        j, i = np.int64(hits[hit, 0]), np.int64(hits[hit, 1])
        while i >= 0:
            back = 0
            while back < step and back < i and back < j and units[i - back - 1] == other[j - back - 1]:
                back += 1
            if back < step:
                fore = 0
                while i + fore < n and j + fore < m and units[i + fore] == other[j + fore]:
                    fore += 1
                if fore >= size and back + fore >= least:
                    runs[count, 0], runs[count, 1], runs[count, 2] = i - back, j - back, back + fore
                    count += 1
                    equal += back + fore
            i = np.int64(nexts[i])
    return count, equal
