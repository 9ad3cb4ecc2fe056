"""Record linkage: words and trigrams of field values, words that another record has, and values letter by letter."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, mix
from likewise.kernels.hashtable import largest_set
from likewise.kernels.intrinsics import ones, prefetch

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

AHEAD = 4
"""Pairs further on whose memory is asked for meanwhile."""


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
def _write_grams(data, first, stop, out, at):
    """Write the pieces of three letters of a word, whose edges count as letters; return how many there are."""
    n = 0
    before = here = first
    while here < stop:
        after = _letter_end(data, here, stop)
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


@inner
def write_terms(data, p, stop, grams, out, n):
    """Write hashes of the words of a value and, with grams, of the three-letter pieces of its words, from out[n] on.

    Words joined by punctuation without a blank and with a digit among them ("ps-lx350h") are also hashed as one. Return
    the place after the last term. A value of n bytes has at most 2 n terms with grams, and n without.
    """
    while p < stop:
        while p < stop and data[p] <= SPACE:
            p += 1
        whole, parts, digit = FNV, 0, False
        while p < stop and data[p] > SPACE:
            if not is_word(data[p]):
                p += 1
                continue
            first, h, plain = p, FNV, True
            while p < stop and is_word(data[p]):
                byte = np.uint64(data[p])
                h, whole = (h ^ byte) * FNV_PRIME, (whole ^ byte) * FNV_PRIME
                digit = digit or data[p] <= NINE
                plain = plain and data[p] < 128
                p += 1
            parts += 1
            out[n] = mix(h ^ TOKEN)
            n += 1
            if grams and not plain:
                n += _write_grams(data, first, p, out, n)
            elif grams:  # the same for letters of one byte, most of all
                before, here = EDGE, np.uint64(data[first])
                for q in range(first + 1, p + 1):
                    after = np.uint64(data[q]) if q < p else EDGE
                    g = (((FNV ^ before) * FNV_PRIME ^ here) * FNV_PRIME ^ after) * FNV_PRIME
                    out[n + q - first - 1] = mix(g ^ GRAM)
                    before, here = here, after
                n += p - first
        if parts > 1 and digit:
            out[n] = mix(whole ^ TOKEN)
            n += 1
    return n


@kernel
def terms(data, offsets, grams, out, ends):
    """Write the terms of every value; those of value i are out[ends[i] : ends[i + 1]]."""
    n = 0
    ends[0] = 0
    for i in range(offsets.size - 1):
        n = write_terms(data, offsets[i], offsets[i + 1], grams, out, n)
        ends[i + 1] = n


@kernel
def count_terms(data, offsets, counts):
    """Count the words of every value and their three-letter pieces, of which there is one for each letter."""
    for i in range(offsets.size - 1):
        n, parts, digit, inside = 0, 0, False, False
        for p in range(offsets[i], offsets[i + 1]):
            byte = data[p]
            if is_word(byte):
                parts += not inside
                n += not inside
                n += byte & 0xC0 != 0x80
                digit = digit or byte <= NINE
            elif byte <= SPACE:
                n += parts > 1 and digit
                parts, digit = 0, False
            inside = is_word(byte)
        counts[i] = n + (parts > 1 and digit)


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
        for side in (left, right):
            if p + 3 * AHEAD < left.size:
                prefetch(codes, side[p + 3 * AHEAD] * fields)
            for near in (1, 2):
                if p + near * AHEAD < left.size:
                    for f in range(fields):
                        value = codes[side[p + near * AHEAD], f]
                        if value >= 0:
                            if near == 2:
                                prefetch(offsets, value)
                            else:
                                prefetch(tokens, offsets[value])
        if not wanted[p].any():
            continue
        found[:], whole[:] = 0.0, 0.0
        for x, y, stamp in ((left[p], right[p], 2 * p + 1), (right[p], left[p], 2 * p + 2)):
            n = 0
            for f in range(fields):
                value = codes[y, f]
                if value >= 0:
                    for t in range(offsets[value], offsets[value + 1]):
                        if n < few.size:
                            few[n] = tokens[t]
                        n += 1
            many = n > few.size
            if many:
                for f in range(fields):
                    value = codes[y, f]
                    if value >= 0:
                        for t in range(offsets[value], offsets[value + 1]):
                            stamps[tokens[t]] = stamp
            for f in range(fields):
                value = codes[x, f]
                if wanted[p, f] and value >= 0:
                    some, of = 0.0, 0.0
                    for t in range(offsets[value], offsets[value + 1]):
                        token = tokens[t]
                        there = many and stamps[token] == stamp
                        if not many:
                            for i in range(n):
                                there |= few[i] == token
                        of += rarity[token]
                        if there:
                            some += rarity[token]
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
