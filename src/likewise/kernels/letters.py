"""Record linkage: how alike short texts are, letter by letter, and weighted bags of terms."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.bits import ones

TEXT, DATE, PHONE = 0, 1, 2
WAYS = {"date": DATE, "phone": PHONE}
"""How kinds of fields are compared; all others as texts."""

LOCAL = 7
"""Phone numbers that agree in at least this many last digits, one of them without area code, are one edit apart."""

SPELT = 4
"""Letters of a value, at least, that can be a misspelling of another: most short ones are an edit apart."""

FNV = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)
LETTERS = 256
WORD = 64
U0 = np.uint64(0)
U1 = np.uint64(1)
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
    distance = np.empty(left.size, np.int32)
    letters = np.empty(left.size, np.int32)
    places = np.zeros(LETTERS, np.uint64)
    longest = 0
    for i in range(offsets.size - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    row = np.zeros(longest + 1, np.int32)
    for i in range(left.size):
        a = offsets[left[i]]
        end_a = offsets[left[i] + 1]
        b = offsets[right[i]]
        end_b = offsets[right[i] + 1]
        n = end_a - a
        m = end_b - b
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
