"""Record linkage: the terms of field values, what pairs of records share, and blocks."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import mix
from likewise.kernels.hashtable import numbered_slot, table_bits
from likewise.kernels.sorting import sort_values

FNV = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
TOKEN = np.uint64(0x51)
GRAM = np.uint64(0x52)
EDGE = np.uint64(0x5F)
SPACE = np.uint8(32)
NINE = np.uint8(57)
U0 = np.uint64(0)
U1 = np.uint64(1)


@inner
def is_word(byte):
    """Tell whether a byte of folded text belongs to a word: a digit, a small letter, or part of another script."""
    return (48 <= byte <= NINE) or (97 <= byte <= 122) or byte >= 128


@inner
def _letter_end(data, p, stop):
    """Return where the letter at p ends; all bytes of a UTF-8 sequence but the first are 10xxxxxx."""
    p += 1
    while p < stop and data[p] & 0xC0 == 0x80:
        p += 1
    return p


@inner
def _write_grams(data, first, stop, out, at, write):
    """Write, or only count, the pieces of three letters of a word, whose edges count as letters; return how many."""
    n = 0
    before = here = first
    while here < stop:
        after = _letter_end(data, here, stop)
        if write:
            end = _letter_end(data, after, stop) if after < stop else after
            g = FNV
            if here == first:
                g = (g ^ EDGE) * FNV_PRIME
            for q in range(before, end):
                g = (g ^ np.uint64(data[q])) * FNV_PRIME
            if after == stop:
                g = (g ^ EDGE) * FNV_PRIME
            out[at + n] = mix(g ^ GRAM)
        n += 1
        before = here
        here = after
    return n


@kernel
def terms(data, offsets, grams, starts, out, write):
    """Hash the words of every value and, with grams, the three-letter pieces of its words; count or write them.

    Words joined by punctuation without a blank and with a digit among them ("ps-lx350h") are also hashed as one. If
    `write`, the terms of value i go to out[starts[i]:]; the counts are returned either way.
    """
    counts = np.zeros(offsets.size - 1, np.int64)
    for i in range(offsets.size - 1):
        at = starts[i] if write else 0
        n = 0
        p = offsets[i]
        stop = offsets[i + 1]
        while p < stop:
            while p < stop and data[p] <= SPACE:
                p += 1
            whole = FNV
            parts = 0
            digit = False
            while p < stop and data[p] > SPACE:
                if not is_word(data[p]):
                    p += 1
                    continue
                first = p
                h = FNV
                while p < stop and is_word(data[p]):
                    byte = np.uint64(data[p])
                    h = (h ^ byte) * FNV_PRIME
                    whole = (whole ^ byte) * FNV_PRIME
                    digit = digit or data[p] <= NINE
                    p += 1
                parts += 1
                if write:
                    out[at + n] = mix(h ^ TOKEN)
                n += 1
                if grams:
                    n += _write_grams(data, first, p, out, at + n, write)
            if parts > 1 and digit:
                if write:
                    out[at + n] = mix(whole ^ TOKEN)
                n += 1
        counts[i] = n
    return counts


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
    """Sort the terms of every row, in place, and write each once with its count; return how many were written."""
    n = 0
    out_offsets[0] = 0
    for i in range(offsets.size - 1):
        row = terms_[offsets[i] : offsets[i + 1]]
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
    bits = table_bits(wanted.size)
    down, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    table = np.zeros(1 << bits, np.uint64)
    numbers = np.full(1 << bits, -1, np.int64)
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
def cosines(offsets, terms_, weights, left, right):
    """Return the sum of products of the weights of shared terms, for pairs of rows sorted by term."""
    out = np.zeros(left.size, np.float64)
    for p in range(left.size):
        a = offsets[left[p]]
        b = offsets[right[p]]
        end_a = offsets[left[p] + 1]
        end_b = offsets[right[p] + 1]
        total = 0.0
        while a < end_a and b < end_b:
            if terms_[a] == terms_[b]:
                total += weights[a] * weights[b]
                a += 1
                b += 1
            elif terms_[a] < terms_[b]:
                a += 1
            else:
                b += 1
        out[p] = total
    return out


@kernel
def shared_parts(offsets, terms_, weights, rows, others):
    """Return what rows share with others: the sum of the products of their weights, and of the squares of the row's."""
    products = np.zeros(rows.size, np.float64)
    squares = np.zeros(rows.size, np.float64)
    for p in range(rows.size):
        a = offsets[rows[p]]
        b = offsets[others[p]]
        end_a = offsets[rows[p] + 1]
        end_b = offsets[others[p] + 1]
        product = 0.0
        square = 0.0
        while a < end_a and b < end_b:
            if terms_[a] == terms_[b]:
                product += weights[a] * weights[b]
                square += weights[a] * weights[a]
                a += 1
                b += 1
            elif terms_[a] < terms_[b]:
                a += 1
            else:
                b += 1
        products[p] = product
        squares[p] = square
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


@inner
def stamped(record, stamp, codes, offsets, tokens, stamps):
    """Leave a stamp at all tokens of a record."""
    for f in range(codes.shape[1]):
        v = codes[record, f]
        if v >= 0:
            for t in range(offsets[v], offsets[v + 1]):
                stamps[tokens[t]] = stamp


@inner
def found_part(value, stamp, offsets, tokens, rarity, stamps):
    """Return how much of a value's tokens, by rarity, have this stamp, and how much there is."""
    found = 0.0
    whole = 0.0
    for t in range(offsets[value], offsets[value + 1]):
        whole += rarity[tokens[t]]
        if stamps[tokens[t]] == stamp:
            found += rarity[tokens[t]]
    return found, whole


@kernel
def found_elsewhere(field, codes, offsets, tokens, rarity, left, right):
    """Return for pairs of records how much of the field's tokens on either side occur anywhere on the other."""
    out = np.full(left.size, np.nan)
    stamps = np.zeros(rarity.size if left.size else 0, np.int32)
    for p in range(left.size):
        found = 0.0
        whole = 0.0
        for x, y, stamp in ((left[p], right[p], 2 * p + 1), (right[p], left[p], 2 * p + 2)):
            value = codes[x, field]
            if value >= 0:
                stamped(y, stamp, codes, offsets, tokens, stamps)
                some, of = found_part(value, stamp, offsets, tokens, rarity, stamps)
                found += some
                whole += of
        if whole > 0.0:
            out[p] = found / whole
    return out


@kernel
def band_keys(codes, offsets, terms_, bands, rows, seed, keys, marks, at):
    """Write for every record a key for each band, made of `rows` minima of its terms, each of a bin of its own.

    A band with an empty bin has key 0. `marks` gets a byte of every minimum (0: none), from column `at` on.
    """
    bins = np.uint64(bands * rows)
    low = np.empty(bands * rows, np.uint64)
    high = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(codes.shape[0]):
        low[:] = high
        for f in range(codes.shape[1]):
            v = codes[i, f]
            if v >= 0:
                for t in range(offsets[v], offsets[v + 1]):
                    h = mix(terms_[t] ^ seed)
                    place = ((h >> np.uint64(40)) * bins) >> np.uint64(24)
                    if h < low[place]:
                        low[place] = h
        for b in range(bands):
            key = np.uint64(b + 1)
            whole = True
            for r in range(rows):
                h = low[b * rows + r]
                if h == high:
                    whole = False
                else:
                    marks[i, at + b * rows + r] = h % np.uint64(255) + U1
                key = mix(key ^ h)
            keys[i, b] = (key >> np.uint64(33)) + U1 if whole else U0


@kernel
def agreement(marks, left, right):
    """Return for pairs of records the part of their marks that agree, of those that one of them has."""
    out = np.empty(left.size, np.float32)
    for p in range(left.size):
        same = 0
        there = 0
        for m in range(marks.shape[1]):
            a = marks[left[p], m]
            b = marks[right[p], m]
            there += (a | b) != 0
            same += a == b and a != 0
        out[p] = same / max(1, there)
    return out


@kernel
def equal_worth(codes, rarity, keys, records):
    """Return for pairs of records, given as keys, how many fields are identical, and how rare that is in all."""
    count = np.empty(keys.size, np.int8)
    worth = np.empty(keys.size, np.float32)
    for p in range(keys.size):
        left = keys[p] // records
        right = keys[p] - left * records
        n = 0
        total = 0.0
        for f in range(codes.shape[1]):
            v = codes[left, f]
            if v >= 0 and v == codes[right, f]:
                n += 1
                total += rarity[v]
        count[p] = n
        worth[p] = total
    return count, worth


@kernel
def best_partners(left, right, scores, records):
    """Return for every record the greatest score of its pairs, -1 without any."""
    best = np.full(records, -1.0, np.float64)
    for p in range(left.size):
        best[left[p]] = max(best[left[p]], scores[p])
        best[right[p]] = max(best[right[p]], scores[p])
    return best


@inner
def block_end(keys, start):
    """Return where the block of equal keys that begins at `start` ends."""
    stop = start + 1
    while stop < keys.size and keys[stop] == keys[start]:
        stop += 1
    return stop


@inner
def are_compared(a, b, border):
    """Tell whether two records, a < b, are compared: any two of one table (border 0), or one of each table."""
    return border == 0 or a < border <= b


@kernel
def count_block_pairs(order, keys, border, limit, counts, width):
    """Count the pairs of every block of equal keys (sorted; key 0 is none) with at most `limit` records.

    `border` is the number of the second table's first record, or 0 for one table. `counts` gets the pairs by their
    lower record, in ranges of `width` records. Return how many records are in blocks that were too large.
    """
    crowded = 0
    n = order.size
    start = 0
    while start < n:
        stop = block_end(keys, start)
        if keys[start] != U0 and stop - start > 1:
            if stop - start > limit:
                crowded += stop - start
            else:
                for x in range(start, stop):
                    for y in range(x + 1, stop):
                        a = min(order[x], order[y])
                        b = max(order[x], order[y])
                        if are_compared(a, b, border):
                            counts[a // width] += 1
        start = stop
    return crowded


@kernel
def block_pairs(order, keys, border, limit, low, high, records, out):
    """Write the pairs of every such block whose lower record is from `low` on and below `high`; return how many.

    A pair of records is one number, the lower record times `records` plus the higher.
    """
    count = 0
    n = order.size
    start = 0
    while start < n:
        stop = block_end(keys, start)
        if keys[start] != U0 and 1 < stop - start <= limit:
            for x in range(start, stop):
                for y in range(x + 1, stop):
                    a = min(order[x], order[y])
                    b = max(order[x], order[y])
                    if low <= a < high and are_compared(a, b, border):
                        out[count] = np.int64(a) * records + b
                        count += 1
        start = stop
    return count
