"""Record linkage: words and trigrams of field values, words that another record has, and values letter by letter."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, mix
from likewise.kernels.hashtable import largest_set, numbered_slot, slot_range, table_bits
from likewise.kernels.intrinsics import ones
from likewise.kernels.sorting import sort_values

FNV = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
TOKEN = np.uint64(0x51)
GRAM = np.uint64(0x52)
EDGE = np.uint64(0x5F)
SPACE = np.uint8(32)
NINE = np.uint8(57)
AMPERSAND = np.uint8(38)
TILDE = np.uint8(126)

FEW_TOKENS = 64
"""Tokens of a record that are searched one by one; more are stamped in an array of all tokens, which is faster for long
texts and, as the array is large, slower for short ones."""


@inner
def is_word(byte):
    """Tell whether a byte of folded text belongs to a word: a digit, a small letter, or part of another script."""
    return (48 <= byte <= NINE) or (97 <= byte <= 122) or byte >= 128


@kernel
def squeeze(data, offsets, words, out, ends, odd):
    """Write texts in small letters, with one space for each run of spaces, none at the ends; return how many are odd.

    With `words`, all but letters and digits are spaces, and capitals stay. A text with a byte other than a visible one
    of ASCII, or with a character reference, is odd: nothing is written of it.
    """
    place = strange = 0
    ends[0] = 0
    for i in range(len(offsets) - 1):
        begin = place
        gap = False
        odd[i] = False
        for at in range(offsets[i], offsets[i + 1]):
            byte = data[at]
            if byte < SPACE or byte > TILDE or (byte == AMPERSAND and not words):
                odd[i] = True
                break
            capital = 65 <= byte <= 90
            if capital and not words:
                byte += SPACE
            if (words and not (capital or is_word(byte))) or byte == SPACE:
                gap = True
                continue
            if gap and place > begin:
                out[place] = SPACE
                place += 1
            gap = False
            out[place] = byte
            place += 1
        if odd[i]:
            place = begin
            strange += 1
        ends[i + 1] = place
    return strange


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
        before, here = here, after
    return n


@kernel
def terms(data, offsets, grams, out, ends, write):
    """Hash the words of every value and, with grams, the three-letter pieces of its words; count or write them.

    Words joined by punctuation without a blank and with a digit among them ("ps-lx350h") are also hashed as one. The
    terms of value i, if `write`, go to out[ends[i] : ends[i + 1]]; `ends` is written either way. A value of n bytes has
    at most 2 n terms with grams, and n without.
    """
    n = 0
    ends[0] = 0
    for i in range(offsets.size - 1):
        p = offsets[i]
        stop = offsets[i + 1]
        while p < stop:
            while p < stop and data[p] <= SPACE:
                p += 1
            whole, parts, digit = FNV, 0, False
            while p < stop and data[p] > SPACE:
                if not is_word(data[p]):
                    p += 1
                    continue
                first, h = p, FNV
                while p < stop and is_word(data[p]):
                    byte = np.uint64(data[p])
                    h, whole = (h ^ byte) * FNV_PRIME, (whole ^ byte) * FNV_PRIME
                    digit = digit or data[p] <= NINE
                    p += 1
                parts += 1
                if write:
                    out[n] = mix(h ^ TOKEN)
                n += 1
                if grams:
                    n += _write_grams(data, first, p, out, n, write)
            if parts > 1 and digit:
                if write:
                    out[n] = mix(whole ^ TOKEN)
                n += 1
        ends[i + 1] = n


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


@inner
def gathered(record, stamp, codes, offsets, tokens, few, stamps):
    """Collect the tokens of a record in `few` and return how many there are, or stamp them all and return -1."""
    n = 0
    for f in range(codes.shape[1]):
        v = codes[record, f]
        if v >= 0:
            for t in range(offsets[v], offsets[v + 1]):
                if n < few.size:
                    few[n] = tokens[t]
                n += 1
    if n <= few.size:
        return n
    for f in range(codes.shape[1]):
        v = codes[record, f]
        if v >= 0:
            for t in range(offsets[v], offsets[v + 1]):
                stamps[tokens[t]] = stamp
    return -1


@inner
def is_gathered(token, n, stamp, few, stamps):
    """Tell whether a token is among those that were gathered last."""
    if n < 0:
        return stamps[token] == stamp
    found = False
    for i in range(n):
        found = found or few[i] == token
    return found


@kernel
def found_elsewhere(wanted, codes, offsets, tokens, rarity, left, right, stamps):
    """Return how much of the tokens of each wanted field, on either side of a pair, occur anywhere on the other.

    `wanted` has a row for every pair and a column for every field; what is not wanted, or has no tokens, is NaN. The
    `stamps`, one for every token, are zeros.
    """
    fields = codes.shape[1]
    out = np.full((left.size, fields), np.nan)
    few = np.empty(FEW_TOKENS, np.int32)
    found, whole = np.empty(fields), np.empty(fields)
    for p in range(left.size):
        if not wanted[p].any():
            continue
        found[:], whole[:] = 0.0, 0.0
        for x, y, stamp in ((left[p], right[p], 2 * p + 1), (right[p], left[p], 2 * p + 2)):
            n = gathered(y, stamp, codes, offsets, tokens, few, stamps)
            for f in range(fields):
                value = codes[x, f]
                if wanted[p, f] and value >= 0:
                    some, of = 0.0, 0.0
                    for t in range(offsets[value], offsets[value + 1]):
                        of += rarity[tokens[t]]
                        if is_gathered(tokens[t], n, stamp, few, stamps):
                            some += rarity[tokens[t]]
                    found[f] += some
                    whole[f] += of
        for f in range(fields):
            if whole[f] > 0.0:
                out[p, f] = found[f] / whole[f]
    return out


TEXT, DATE, PHONE = 0, 1, 2
WAYS = {"date": DATE, "phone": PHONE}
"""How kinds of fields are compared; all others as texts."""

LOCAL = 7
"""Phone numbers that agree in at least this many last digits, one of them without area code, are one edit apart."""

SPELT = 4
"""Letters of a value, at least, that can be a misspelling of another: most short ones are an edit apart."""

LETTERS = 256
WORD = 64
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inner
def common_letters(text, a, end_a, b, end_b, places, row):
    """Return the length of the longest common subsequence of two texts.

    `places` (256 words, all 0, and left so) holds for a letter where it stands in the first text, a bit for each
    place: all are then handled at once (Hyyrö 2004). Texts of more than 64 letters, or with letters of other alphabets,
    are compared place by place, in `row`.
    """
    n = end_a - a
    simple = n <= WORD
    for p in range(a, end_a):
        simple = simple and text[p] < LETTERS
    if simple:
        for p in range(n):
            places[text[a + p]] |= U1 << np.uint64(p)
        state = FULL
        for q in range(b, end_b):
            if text[q] < LETTERS:
                met = state & places[text[q]]
                state = (state + met) | (state - met)
        for p in range(a, end_a):
            places[text[p]] = U0
        low = FULL if n == WORD else (U1 << np.uint64(n)) - U1
        return ones(~state & low)
    row[: n + 1] = 0
    for q in range(b, end_b):
        before = 0
        for p in range(n):
            above = row[p + 1]
            row[p + 1] = before + 1 if text[a + p] == text[q] else max(above, row[p])
            before = above
    return row[n]


@inner
def ends_alike(text, a, end_a, b, end_b):
    """Tell whether the shorter of two texts is the end of the longer."""
    alike = True
    for back in range(1, min(end_a - a, end_b - b) + 1):
        alike = alike and text[end_a - back] == text[end_b - back]
    return alike


@kernel
def edits(text, offsets, left, right, way):
    """Return for pairs of values how many letters must be inserted and deleted, and how many both have together.

    Of dates and phones that are equally long, a digit that differs in its place is two edits; a phone number without
    its area code is one.
    """
    distance, letters = np.empty(left.size, np.int32), np.empty(left.size, np.int32)
    places = np.zeros(LETTERS, np.uint64)
    row = np.zeros(largest_set(offsets) + 1, np.int32)
    for i in range(left.size):
        a, end_a = offsets[left[i]], offsets[left[i] + 1]
        b, end_b = offsets[right[i]], offsets[right[i] + 1]
        n, m = end_a - a, end_b - b
        letters[i] = n + m
        if way != TEXT and n == m:
            differ = 0
            for p in range(n):
                differ += text[a + p] != text[b + p]
            distance[i] = 2 * differ
        elif way == PHONE and min(n, m) >= LOCAL and ends_alike(text, a, end_a, b, end_b):
            distance[i] = 1
        else:
            distance[i] = n + m - 2 * common_letters(text, a, end_a, b, end_b, places, row)
    return distance, letters


@kernel
def spelling_keys(text, offsets, keys, owners):
    """Write hashes of every value and of it without one letter: values an edit apart share one of them.

    The n + 1 keys of a value of n letters are where those of the values before it end. Values of fewer than SPELT
    letters have keys of their own.
    """
    at = 0
    for i in range(offsets.size - 1):
        a = offsets[i]
        end = offsets[i + 1]
        for left_out in range(a, end + 1):
            h = FNV
            for p in range(a, end):
                if p != left_out:
                    h = (h ^ np.uint64(text[p])) * FNV_PRIME
            keys[at] = h if end - a >= SPELT else np.uint64(i)
            owners[at] = i
            at += 1


@kernel
def frequencies(terms, rows, repeats, slots):
    """Add up in `slots`, a power of two of them, how many records have each term, given by the rows it is in."""
    mask = np.uint64(slots.size - 1)
    for t in range(terms.size):
        slots[terms[t] & mask] += repeats[rows[t]]


@kernel
def weigh(offsets, terms, counts, slots, total):
    """Return weights of terms: (1 + log n) · log(1 + N / df), scaled so that the squares of a row add up to 1."""
    mask = np.uint64(slots.size - 1)
    weights = np.empty(terms.size, np.float32)
    for i in range(offsets.size - 1):
        length = 0.0
        for t in range(offsets[i], offsets[i + 1]):
            w = np.log1p(total / max(1, slots[terms[t] & mask]))
            if counts[t] > 1:
                w *= 1.0 + np.log(counts[t])
            weights[t] = w
            length += w * w
        if length > 0.0:
            scale = 1.0 / np.sqrt(length)
            for t in range(offsets[i], offsets[i + 1]):
                weights[t] *= scale
    return weights
