"""Record linkage: the terms of rows counted, numbered, and weighted by how rare they are."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.hashtable import numbered_slot, slot_range, spread, table_bits
from likewise.kernels.intrinsics import prefetch
from likewise.kernels.sorting import sort_values

FEW_TERMS = 64
"""Terms of a row, at most, that are sorted by comparing each with each."""

AHEAD = 12
"""Terms further on whose slots are asked for meanwhile: most are not in the cache."""


@kernel
def number_terms(terms_, places, table, numbers, count):
    """Write the number of every term, in the order in which they first occur; return what is known for further terms.

    That is a hash table, the number of each of its terms (-1: none), and how many there are; a table is replaced by a
    larger one when it is half full.
    """
    bits = 0
    while 1 << bits < table.size:
        bits += 1
    down, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    for i in range(terms_.size):
        if i + AHEAD < terms_.size:
            home = spread(terms_[i + AHEAD]) >> down
            prefetch(table, home)
            prefetch(numbers, home)
        slot = numbered_slot(terms_[i], table, numbers, down, mask)
        if numbers[slot] < 0:
            if 2 * count >= table.size:
                bits += 1
                down, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
                old, before = table, numbers
                table = np.zeros(1 << bits, np.uint64)
                numbers = np.full(1 << bits, -1, np.int32)
                for s in range(old.size):
                    if before[s] >= 0:
                        slot = numbered_slot(old[s], table, numbers, down, mask)
                        table[slot], numbers[slot] = old[s], before[s]
                slot = numbered_slot(terms_[i], table, numbers, down, mask)
            table[slot] = terms_[i]
            numbers[slot] = count
            count += 1
        places[i] = numbers[slot]
    return table, numbers, count


@kernel
def add_counts(offsets, places, counts, out):
    """Add the count of each row to all numbers in it."""
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            out[places[t]] += counts[i]


@kernel
def gather(codes, value_offsets, value_terms, row_offsets, out):
    """Write the terms of all values of each record one after another; codes are values, -1 for a missing one."""
    for i in range(codes.shape[0]):
        at = row_offsets[i]
        for f in range(codes.shape[1]):
            v = codes[i, f]
            if v >= 0:
                for t in range(value_offsets[v], value_offsets[v + 1]):
                    out[at] = value_terms[t]
                    at += 1


@kernel
def bag(offsets, terms_, out_terms, out_counts, out_offsets):
    """Write the terms of every row sorted, each once with its count; return how many were written.

    Of a few terms it is counted how many are lower than each, which takes no branches; more are sorted in place.
    """
    n = 0
    out_offsets[0] = 0
    placed, repeats = np.empty(FEW_TERMS, np.uint64), np.empty(FEW_TERMS, np.int64)
    for i in range(offsets.size - 1):
        row = terms_[offsets[i] : offsets[i + 1]]
        if row.size <= FEW_TERMS:
            repeats[: row.size] = 0
            for t in range(row.size):
                term = row[t]
                lower = 0
                for other in range(row.size):
                    lower += row[other] < term
                placed[lower] = term
                repeats[lower] += 1
            t = 0
            while t < row.size:
                out_terms[n], out_counts[n] = placed[t], repeats[t]
                t += repeats[t]
                n += 1
        else:
            sort_values(row, row.size)
            for t in range(row.size):
                if t and row[t] == row[t - 1]:
                    out_counts[n - 1] += 1
                else:
                    out_terms[n] = row[t]
                    out_counts[n] = 1
                    n += 1
        out_offsets[i + 1] = n
    return n


@kernel
def records_having(wanted, offsets, terms_, counts):
    """Return for each of some distinct terms how many records have it; counts[i] records have the terms of row i."""
    down, mask = slot_range(wanted.size)
    table = np.zeros(1 << table_bits(wanted.size), np.uint64)
    numbers = np.full(table.size, -1, np.int64)
    for i in range(wanted.size):
        slot = numbered_slot(wanted[i], table, numbers, down, mask)
        table[slot] = wanted[i]
        numbers[slot] = i
    found = np.zeros(wanted.size, np.int64)
    last = np.full(wanted.size, -1, np.int64)
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            number = numbers[numbered_slot(terms_[t], table, numbers, down, mask)]
            if number >= 0 and last[number] != i:
                last[number] = i
                found[number] += counts[i]
    return found


@kernel
def frequencies(offsets, terms_, repeats, slots):
    """Add up in `slots`, a power of two of them, how many records have each term; repeats[i] have those of row i."""
    mask = np.uint64(slots.size - 1)
    for i in range(offsets.size - 1):
        for t in range(offsets[i], offsets[i + 1]):
            slots[terms_[t] & mask] += repeats[i]


@kernel
def slot_weights(slots, total, out):
    """Write what the terms of each slot weigh, log(1 + N / df): there are many times fewer slots in use than terms."""
    most = np.log1p(total)
    for s in range(slots.size):
        out[s] = np.log1p(total / slots[s]) if slots[s] > 1 else most


@kernel
def weigh(offsets, terms, counts, slots):
    """Return weights of terms: (1 + log n) times that of its slot, scaled so that the squares of a row add up to 1."""
    mask = np.uint64(slots.size - 1)
    weights = np.empty(terms.size, np.float32)
    for i in range(offsets.size - 1):
        length = 0.0
        for t in range(offsets[i], offsets[i + 1]):
            w = slots[terms[t] & mask]
            if counts[t] > 1:
                w *= 1.0 + np.log(counts[t])
            weights[t] = w
            length += w * w
        if length > 0.0:
            scale = 1.0 / np.sqrt(length)
            for t in range(offsets[i], offsets[i + 1]):
                weights[t] *= scale
    return weights
