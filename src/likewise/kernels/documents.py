"""Whole batches of documents: text to sets, and text straight to band keys without keeping the sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.common_shingles import slot_of, without
from likewise.kernels.hashing import LOW32, U0, U1, U32, mix
from likewise.kernels.probe import meet, neighbours
from likewise.kernels.sets import HUGE, NOBODY, distinct, numbered, table_bits
from likewise.kernels.sketch import EMPTY, band_keys, fast_rounds, sketch_one
from likewise.kernels.stopwords import MOST_LANGUAGES, language_of, mark_short, stop_shingles
from likewise.kernels.text import SHINGLE_BASE, U31, chars, digest_shingles, shingles, tokens, words

NOTHING_COMMON = np.zeros(1, np.uint64)
NO_WORDS = np.zeros(1, np.uint64)


class Recipe(NamedTuple):
    """How text becomes shingles: everything a kernel must know of a shingler. The tables are explained in text.py.

    `separator` is -1, or how tokens are told apart (see tokens in text.py), which then take the place of words.
    `common` is a hash table of shingles to be left out (see common.py); one of size 1 is empty.
    `stops`, `tongues` and `languages` make stop-word shingles (see stopwords.py) if the table is larger than 1; so are
    words of at most so many `letters`, unless that is 0.
    """

    words: bool
    k: int
    whitespace: int
    short: bool
    bag: bool
    lower: bool
    ascii_hashes: Any
    kinds: Any
    folds: Any
    expansions: Any
    separator: int = -1
    common: Any = NOTHING_COMMON
    stops: Any = NO_WORDS
    tongues: Any = NO_WORDS
    languages: int = 1
    letters: int = 0


@kernel
def capacity(offsets, rows, recipe):
    """Return the largest number of units that any of these documents can have."""
    largest = 0
    for row in rows:
        largest = max(largest, offsets[row + 1] - offsets[row])
    if recipe.words:
        return largest // 2 + 1 if recipe.separator < 0 else largest + 1
    return largest + largest // 2 + 1  # two bytes may fold to three characters


@kernel
def document_units(data, start, stop, recipe, room, units):
    """Write the units of one document; return how many there are.

    `room` is space to work in; if the recipe has letters, it holds the flags of mark_short then.
    """
    if recipe.separator >= 0:
        return tokens(data, start, stop, recipe.separator, units)
    if recipe.words:
        n = words(data, start, stop, recipe.lower, recipe.kinds, recipe.folds, recipe.expansions, room, units)
        if recipe.letters > 0:
            mark_short(data, start, stop, recipe.kinds, recipe.letters, room)
        return n
    return chars(
        data,
        start,
        stop,
        recipe.ascii_hashes,
        recipe.whitespace,
        recipe.kinds,
        recipe.folds,
        recipe.expansions,
        units,
    )


@kernel
def document_shingles(units, n, recipe, flags, values):
    """Write the shingles of one document, with repetitions; return how many there are.

    `flags`: those of mark_short, if the recipe has letters.
    """
    if recipe.stops.size > 1:
        language = 0
        if recipe.languages > 1:
            votes = np.empty(MOST_LANGUAGES, np.int64)
            language = language_of(units, n, recipe.stops, recipe.tongues, recipe.languages, votes)
        n = stop_shingles(
            units, n, recipe.k, recipe.stops, recipe.tongues, language, recipe.letters > 0, flags, values
        )  # fmt: skip
    else:
        n = shingles(units, n, recipe.k, values)
    if recipe.short:
        for i in range(n):
            values[i] >>= U32
    if recipe.common.size > 1:
        return without(values, n, recipe.common)
    return n


@kernel
def set_documents(data, offsets, rows, recipe, values, set_offsets):
    """Write the set of distinct shingles of each of these documents; return the number of values in all.

    Returns before the document that does not fit, with its offset left at -1: the caller gives more room.
    """
    largest = capacity(offsets, rows, recipe)
    units = np.empty(largest, np.uint64)
    room = np.empty(2 * largest + largest // 4 + 32, np.uint64)
    parts = np.empty(largest, np.uint64)
    size = 1 << 12
    table = np.empty(size, np.uint64)
    owner = np.full(size, NOBODY)
    counts = np.empty(size, np.uint64)
    written = 0
    set_offsets[0] = 0
    set_offsets[1:] = -1
    for place in range(rows.size):
        row = rows[place]
        n = document_units(data, offsets[row], offsets[row + 1], recipe, room, units)
        n = document_shingles(units, n, recipe, room, parts)
        if written + n > values.size:
            break
        need = n if recipe.bag else min(n, HUGE)
        if 1 << table_bits(need) > size:
            size = 1 << table_bits(need)
            table = np.empty(size, np.uint64)
            owner = np.full(size, NOBODY)
            counts = np.empty(size if recipe.bag else 1, np.uint64)
        if recipe.bag:
            written += numbered(parts, n, table, owner, counts, place, values[written:])
        else:
            written += distinct(parts, n, table, owner, place, values[written:])
        set_offsets[place + 1] = written
    return written


@kernel
def sketch_units(units, n, recipe, seeds, slots, signature, values, digest):
    """Do document_shingles, digest_shingles and sketch.fast together, for a document of at least k units.

    One loop keeps the multiplier busy that each of the three would wait for; the answer is the same.
    """
    t = signature.size
    size = np.uint64(np.uint32(t))
    slots[:t] = EMPTY
    k = recipe.k
    down = U32 if recipe.short else U0
    gone = U1
    value = U0
    for i in range(k - 1):
        value = value * SHINGLE_BASE + units[i]
        gone *= SHINGLE_BASE
    seed = seeds[0]
    count = n - k + 1
    total = U0
    other = np.uint64(count)
    for i in range(count):
        value = value * SHINGLE_BASE + units[i + k - 1]
        x = value >> down
        values[i] = x
        u = mix(x ^ seed)
        total += u
        other += u ^ (u >> U31)
        slot = (np.uint64(np.uint32(u >> U32)) * size) >> U32
        low = u & LOW32
        if low < slots[slot]:
            slots[slot] = low
        value -= units[i] * gone
    digest[0] = mix(total)
    digest[1] = mix(other)
    empty = 0
    for i in range(t):
        empty += slots[i] == EMPTY
    if count > 4 * t and empty > 3 * t * np.exp(-count / t) + 10:
        # Emptier than so many different shingles would leave it: the rounds that follow need each of them only once.
        values = np.sort(values[:count])
        different = 1
        for i in range(1, count):
            if values[i] != values[different - 1]:
                values[different] = values[i]
                different += 1
        count = different
    fast_rounds(values, count, 1, empty, seeds, slots, signature)


@kernel
def key_documents(data, offsets, rows, recipe, method, seeds, band_rows, keys, digests, sample, hits):
    """Write the band keys of each of these documents, and the 128-bit fingerprint of its shingles.

    Repeated shingles do not change a minhash, so no set is made — but for bags, whose copies count.
    An empty document gets the fingerprint 0, 0, which no other document has but by a chance of 2**-128.
    The neighbours of a sample (see probe.py) are written to `hits`. Returns how many documents were done — it stops
    before the one whose hits may not fit — and how many hits there are.
    """
    largest = capacity(offsets, rows, recipe)
    units = np.empty(largest, np.uint64)
    room = np.empty(2 * largest + largest // 4 + 32, np.uint64)
    parts = np.empty(largest, np.uint64)
    size = 1 << 12
    table = np.empty(size, np.uint64)
    owner = np.full(size, NOBODY)
    counts = np.empty(size, np.uint64)
    signature = np.empty(keys.shape[1] * band_rows, np.uint32)
    slots = np.empty(signature.size, np.uint64)
    probing = sample.entries.size > 1
    sets = sample.offsets.size - 1
    seen = np.full(sets, NOBODY)
    tally = np.zeros(sets, np.int32)
    met = np.empty(sets, np.int32)
    stamp = 0
    written = 0
    for place in range(rows.size):
        if probing and written + sets > hits.sample.size:
            return place, written
        row = rows[place]
        n = document_units(data, offsets[row], offsets[row + 1], recipe, room, units)
        plain = recipe.common.size == 1 and recipe.stops.size == 1 and not recipe.bag
        if n >= recipe.k and method == 0 and plain:
            sketch_units(units, n, recipe, seeds, slots, signature, parts, digests[place])
            n = n - recipe.k + 1
        else:
            n = document_shingles(units, n, recipe, room, parts)
            digest_shingles(parts, n, seeds[0], digests[place])
            if n == 0:
                digests[place] = 0
            if recipe.bag:
                if 1 << table_bits(n) > size:
                    size = 1 << table_bits(n)
                    table = np.empty(size, np.uint64)
                    owner = np.full(size, NOBODY)
                    counts = np.empty(size, np.uint64)
                stamp += 1
                numbered(parts, n, table, owner, counts, stamp, units)
                units, parts = parts, units
            sketch_one(parts, n, method, seeds, slots, signature)
        band_keys(signature, band_rows, keys[place])
        if probing and 0 < n <= HUGE:
            count = meet(parts, n, sample, seen, tally, place, met)
            if count:
                if 1 << table_bits(n) > size:
                    size = 1 << table_bits(n)
                    table = np.empty(size, np.uint64)
                    owner = np.full(size, NOBODY)
                    counts = np.empty(size, np.uint64)
                stamp += 1
                written = neighbours(parts, n, sample, met, count, table, owner, stamp, room, place, hits, written)
    return rows.size, written


@kernel
def survey_documents(data, offsets, rows, recipe, languages, sizes):
    """Write for each of these documents the language it has most stop words of, and the number of its words.

    The language is -1 if no shingle of the document begins with a stop word.
    """
    largest = capacity(offsets, rows, recipe)
    units = np.empty(largest, np.uint64)
    room = np.empty(2 * largest + largest // 4 + 32, np.uint64)
    votes = np.empty(MOST_LANGUAGES, np.int64)
    for place in range(rows.size):
        row = rows[place]
        n = document_units(data, offsets[row], offsets[row + 1], recipe, room, units)
        sizes[place] = n
        firsts = max(0, n - recipe.k + 1)
        language = language_of(units, n, recipe.stops, recipe.tongues, recipe.languages, votes)
        found = False
        for i in range(firsts):
            slot = slot_of(recipe.stops, units[i])
            spoken = recipe.tongues[slot] >> np.uint64(max(language, 0))
            if (recipe.stops[slot] != U0 and spoken & U1 != U0) or (recipe.letters > 0 and room[i] != U0):
                found = True
                break
        languages[place] = max(language, 0) if found else -1
