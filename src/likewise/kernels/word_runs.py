"""Runs of equal words of two documents, found by a hash table of the runs of so many words of one of them.

A run is (i, j, size): `size` words from word i of the suspect on equal those from word j of the source on, and neither
the words before them nor those behind them are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner
from likewise.kernels.hashing import U0, U1, U6, U63
from likewise.kernels.hashtable import TABLE_ODD, slot_range, table_bits
from likewise.kernels.text import SHINGLE_BASE, shingles

RUN_STEPS = 16
"""Steps that a run counts for, besides its words: it is sorted three times, and its neighbours are looked at on both
sides."""

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


@inner
def make_grams(n):
    """Return room for the runs of n words."""
    slots = 1 << table_bits(n)
    marks = np.empty(max(1, (slots << MARKS) >> 6), np.uint64)
    return Grams(np.empty(n, np.uint64), np.empty(slots, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), marks)


@inner
def enter_grams(units, n, size, grams):
    """Put the runs of `size` words in the table."""
    count = shingles(units, n, size, grams.hashes)
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
def find_grams(grams, n, other, m, size, longer, counting, firsts, limit):
    """Write for every word of the source the first place in the suspect of the run that begins there; -1: none.

    Returns how many places there are in all or, if `counting`, how many steps the runs take to which they belong: a
    place where the run is one word longer to the left, as the table of `longer` ones tells, begins no run, and a run of
    so many places has size - 1 words more. It stops looking when they are more than the limit.
    """
    down, mask = slot_range(n - size + 1)
    longer_down, longer_mask = slot_range(n - size)
    hashes, heads, marks = grams.hashes, grams.heads, grams.marks
    fine = down - np.uint64(MARKS)
    value, gone, total = U0, U1, 0
    for j in range(size - 1):
        value = value * SHINGLE_BASE + other[j]
        gone *= SHINGLE_BASE
    gone *= SHINGLE_BASE
    for j in range(m - size + 1):
        value = value * SHINGLE_BASE + other[j + size - 1]
        if j > 0:
            value -= other[j - 1] * gone
        key = value * TABLE_ODD
        bit = key >> fine
        firsts[j] = -1
        if (marks[bit >> U6] >> (bit & U63)) & U1 == U0:
            continue
        slot = key >> down
        while heads[slot] >= 0 and hashes[heads[slot]] != value:
            slot = (slot + U1) & mask
        if heads[slot] < 0:
            continue
        firsts[j] = heads[slot]
        places = grams.often[firsts[j]]
        total += places
        if counting:
            if j > 0:
                before = other[j - 1] * gone + value
                slot = (before * TABLE_ODD) >> longer_down
                while longer.heads[slot] >= 0 and longer.hashes[longer.heads[slot]] != before:
                    slot = (slot + U1) & longer_mask
                if longer.heads[slot] >= 0:
                    places -= longer.often[longer.heads[slot]]
            total += (size - 1 + RUN_STEPS) * places
        if total > limit:
            break
    return total


@inner
def shared_runs(units, n, nexts, firsts, other, m, least, runs):
    """Write the runs of at least `least` words; return how many there are.

    A run is found from its first words, so once. There is room for all of them.
    """
    count = 0
    for j in range(m - least + 1):
        i = firsts[j]
        while i >= 0:
            if i == 0 or j == 0 or units[i - 1] != other[j - 1]:
                size = 0
                while i + size < n and j + size < m and units[i + size] == other[j + size]:
                    size += 1
                if size >= least:
                    runs[count, 0], runs[count, 1], runs[count, 2] = i, j, size
                    count += 1
            i = nexts[i]
    return count
