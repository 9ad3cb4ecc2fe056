"""Record linkage: the terms of rows counted, numbered, weighted by how rare they are, and hashed to keys of bands."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, mix
from likewise.kernels.hashtable import numbered_slot, slot_range, spread, table_bits
from likewise.kernels.intrinsics import prefetch
from likewise.kernels.record_words import write_terms
from likewise.kernels.sorting import sort_values

MIX, SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)

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


@inner
def _bag_row(row, placed, repeats, out_terms, out_counts, n):
    """Write the terms of a row sorted from place n on, each once with its count; return the place after the last.

    Of a few terms it is counted how many are lower than each, which takes no branches; more are sorted in place.
    """
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
        return n
    sort_values(row, row.size)
    for t in range(row.size):
        if t and row[t] == row[t - 1]:
            out_counts[n - 1] += 1
        else:
            out_terms[n] = row[t]
            out_counts[n] = 1
            n += 1
    return n


@kernel
def bag(offsets, terms_, out_terms, out_counts, out_offsets):
    """Write the terms of every row sorted, each once with its count; return how many were written."""
    n = 0
    out_offsets[0] = 0
    placed, repeats = np.empty(FEW_TERMS, np.uint64), np.empty(FEW_TERMS, np.int64)
    for i in range(offsets.size - 1):
        row = terms_[offsets[i] : offsets[i + 1]]
        n = _bag_row(row, placed, repeats, out_terms, out_counts, n)
        out_offsets[i + 1] = n
    return n


@kernel
def bag_values(data, offsets, most, out_terms, out_counts, out_offsets):
    """Write the words and trigrams of every value, `most` at most, in the same way; return how many were written."""
    n = 0
    out_offsets[0] = 0
    placed, repeats = np.empty(FEW_TERMS, np.uint64), np.empty(FEW_TERMS, np.int64)
    row = np.empty(most, np.uint64)
    for i in range(offsets.size - 1):
        size = write_terms(data, offsets[i], offsets[i + 1], True, row, 0)
        n = _bag_row(row[:size], placed, repeats, out_terms, out_counts, n)
        out_offsets[i + 1] = n
    return n


@kernel
def lower_minima(data, starts, stops, most, seeds, bins, low):
    """Lower the minima of each record, `bins` for each seed, by the words and trigrams, `most` at most, of its value.

    Each term belongs to a bin. Terms are well-mixed hashes, so that their products with an odd number from the seed are
    as good as hashed again. low[i] has the minima of the record whose value is data[starts[i] : stops[i]].
    """
    terms_, wide = np.empty(most, np.uint64), np.uint64(bins)
    for i in range(starts.size):
        if i + AHEAD < starts.size:
            prefetch(data, starts[i + AHEAD])
        n = write_terms(data, starts[i], stops[i], True, terms_, 0)
        for s in range(seeds.size):
            odd, mine = seeds[s] | U1, low[i, s * bins : (s + 1) * bins]
            for t in range(n):
                h = terms_[t] * odd
                place = ((h >> np.uint64(40)) * wide) >> np.uint64(24)
                mine[place] = min(h, mine[place])


@kernel
def band_keys(low, bands, rows, keys, marks):
    """Write for every record a key for each of so many bands of each seed, made of `rows` of its minima.

    A band with an empty bin has key 0. `marks` gets a byte of every minimum (0: none).
    """
    high = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(low.shape[0]):
        for b in range(keys.shape[1]):
            key = np.uint64(b % bands + 1)
            whole = True
            for r in range(b * rows, (b + 1) * rows):
                h = low[i, r]
                if h == high:
                    whole = False
                else:
                    marks[i, r] = h % np.uint64(255) + U1
                key = mix(key ^ h)
            keys[i, b] = (key >> np.uint64(33)) + U1 if whole else U0


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
def joint_keys(first, second, part, keys, owners):
    """Write the keys of rows by their values in two columns, given as hashes, 0 for none; return how many there are.

    Rows that lack a value are left out, and of all keys only one of `part` is written, with its row among the `owners`.
    Without rows, the second column does not count.
    """
    n = 0
    for i in range(first.size):
        if first[i] and (second.size == 0 or second[i]):
            key = first[i] * MIX
            key ^= key >> SHIFT
            if second.size:
                key = (key ^ second[i]) * MIX
                key ^= key >> SHIFT
            if ((key * MIX) >> np.uint64(40)) % part == 0:
                keys[n], owners[n] = key, i
                n += 1
    return n


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
