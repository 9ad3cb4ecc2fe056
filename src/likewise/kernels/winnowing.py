"""Words of documents with their places, and fingerprints chosen from them by winnowing (Schleimer et al. 2003)."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.documents import document_units, working_space
from likewise.kernels.hashing import U1, mix
from likewise.kernels.text import shingles, word_from

CONTINUES, TOP_TWO = np.uint8(0x80), np.uint8(0xC0)


@kernel
def placed_words(data, start, stop, kinds, folds, expansions, hashes, starts, ends):
    """Write every word's hash, and the characters at which it starts and ends; return how many words there are."""
    i = np.uint64(start)
    stop = np.uint64(stop)
    n = 0
    place = 0
    while i < stop:
        value, found, after = word_from(data, i, stop, kinds, folds, expansions)
        size = 0
        while i < after:
            if (data[i] & TOP_TWO) != CONTINUES:
                size += 1
            i += U1
        if found:
            hashes[n] = value
            starts[n] = place
            ends[n] = place + size
            n += 1
        place += size
    return n


@inner
def winnow(units, n, k, window, grams, values, places):
    """Choose the least of each `window` hashes of k words in a row; return how many different ones that makes.

    Two documents that share a run of k + window - 1 words have a whole window in common, and so its least hash. Of
    equal ones the last is taken, but one that was taken stays while it is in the window.
    """
    count = n - k + 1
    if count < window:
        return 0
    shingles(units, n, k, grams)
    for i in range(count):
        grams[i] = mix(grams[i])
    chosen = 0
    best = -1
    for last in range(window - 1, count):
        first = last - window + 1
        if best < first:
            best = first
            for i in range(first + 1, last + 1):
                if grams[i] <= grams[best]:
                    best = i
        elif grams[last] < grams[best]:
            best = last
        else:
            continue
        values[chosen] = grams[best]
        places[chosen] = best
        chosen += 1
    return chosen


@inner
def longest_text(offsets):
    """Return the largest number of words that any of these documents can have."""
    largest = 0
    for i in range(offsets.size - 1):
        largest = max(largest, offsets[i + 1] - offsets[i])
    return largest // 2 + 1


@kernel
def fingerprint_documents(data, offsets, recipe, window, words, word_offsets, values, places):
    """Write the words of documents, and their fingerprints with their places among all these words; count them."""
    largest = longest_text(offsets)
    room = np.empty(working_space(largest), np.uint64)
    grams = np.empty(largest, np.uint64)
    at = 0
    count = 0
    word_offsets[0] = 0
    for row in range(offsets.size - 1):
        n = document_units(data, offsets[row], offsets[row + 1], recipe.units, room, words[at:])
        more = winnow(words[at:], n, recipe.k, window, grams, values[count:], places[count:])
        for i in range(count, count + more):
            places[i] += at
        count += more
        at += n
        word_offsets[row + 1] = at
    return count
