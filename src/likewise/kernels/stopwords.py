"""Stop-word shingles: a stop word and the words that follow it (MMDS §3.2.4).

`stops` is a hash table (see hashtable.py) of the hashes of stop words; bit b of `tongues`, at the same place, tells
whether the word is one in language b. With several languages, a document counts as written in the one of which it has
most.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner
from likewise.kernels.hashing import U0, U1, mix
from likewise.kernels.hashtable import slot_of
from likewise.kernels.text import MARK, OTHER, SHINGLE_BASE, SHORT_SEED, SOLO, SPACE, decode

MOST_LANGUAGES = 64


@inner
def language_of(units, n, stops, tongues, languages, votes):
    """Return the language with most stop words among the units; of several, the first; -1 if there is no stop word."""
    votes[:languages] = 0
    for i in range(n):
        slot = slot_of(stops, units[i])
        if stops[slot] != U0:
            spoken = tongues[slot]
            for b in range(languages):
                votes[b] += np.int64((spoken >> np.uint64(b)) & U1)
    best = 0
    for b in range(1, languages):
        if votes[b] > votes[best]:
            best = b
    return best if votes[best] > 0 else -1


@inner
def mark_short(data, start, stop, kinds, letters, flags):
    """Write for every word, as in text.words, 1 if it has at most `letters` letters, else 0; return how many.

    Combining marks are not counted.
    """
    i = np.uint64(start)
    end = np.uint64(stop)
    n = 0
    count = -1
    solo = False
    while i < end:
        point, i = decode(data, i)
        kind = kinds[point]
        if count >= 0 and (kind == OTHER or kind == SPACE or (kind != MARK and (solo or kind == SOLO))):
            flags[n] = np.uint64(count <= letters)
            n += 1
            count = -1
            solo = False
        if kind != OTHER and kind != SPACE:
            count = max(count, 0) + (kind != MARK)
            solo |= kind == SOLO
    if count >= 0:
        flags[n] = np.uint64(count <= letters)
        n += 1
    return n


@inner
def stop_shingles(units, n, k, stops, tongues, language, marked, flags, out):
    """Hash every run of k units that begins with a stop word, as text.shingles does; return how many there are.

    `marked`: units with a flag are stop words too. No such run: all units together are one shingle.
    """
    if n == 0:
        return 0
    value = U0
    count = 0
    if n >= k:
        gone = U1
        for i in range(k - 1):
            value = value * SHINGLE_BASE + units[i]
            gone *= SHINGLE_BASE
        bit = np.uint64(max(language, 0))
        for i in range(n - k + 1):
            value = value * SHINGLE_BASE + units[i + k - 1]
            slot = slot_of(stops, units[i])
            stop = stops[slot] != U0 and (tongues[slot] >> bit) & U1 != U0
            if stop or (marked and flags[i] != U0):
                out[count] = value
                count += 1
            value -= units[i] * gone
    if count == 0:
        value = U0
        for i in range(n):
            value = value * SHINGLE_BASE + units[i]
        out[0] = mix(value ^ SHORT_SEED ^ np.uint64(n))
        count = 1
    return count
