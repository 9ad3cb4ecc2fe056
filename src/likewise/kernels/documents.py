"""Whole batches of documents: text to sets, straight to band keys without keeping the sets, and to fingerprints.

How text becomes shingles is a Recipe. What it says of the units (words, characters or tokens) and of stop words is part
of its type, so that a kernel is compiled for one kind of units and holds no code for the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making, overload
from likewise.kernels.hashing import LOW32, U0, U1, U32, mix
from likewise.kernels.hashtable import NOBODY, largest_set, owned_table, slot_of, table_bits, without
from likewise.kernels.probe import counted, meet, neighbours
from likewise.kernels.sets import HUGE, distinct, numbered
from likewise.kernels.sketch import EMPTY, band_keys, fast_rounds, sketch_one
from likewise.kernels.sorting import sort_values
from likewise.kernels.text import (
    AT_ONCE,
    MOST_LANGUAGES,
    SHINGLE_BASE,
    U31,
    chars,
    digest_shingles,
    find_runs,
    fold_ascii,
    language_of,
    mark_short,
    shingles,
    stop_shingles,
    tokens,
    word_from,
    words,
)

NOTHING_COMMON = np.zeros(1, np.uint64)
WORDS_PER_TWO_BYTES, TOKENS_PER_TWO_BYTES, CHARS_PER_TWO_BYTES = 1, 2, 3
"""The most units that two bytes of text can make: two bytes may fold to three characters."""


class WordUnits(NamedTuple):
    """Words, in lower case if `lower`; the tables are explained in text.py."""

    lower: bool
    kinds: Any
    folds: Any
    expansions: Any
    per_two_bytes: int = WORDS_PER_TWO_BYTES


class CharUnits(NamedTuple):
    """Characters; the tables, and the ways to treat white space, are explained in text.py."""

    whitespace: int
    ascii_hashes: Any
    kinds: Any
    folds: Any
    expansions: Any
    per_two_bytes: int = CHARS_PER_TWO_BYTES


class TokenUnits(NamedTuple):
    """Tokens, divided by a separator (see text.tokens)."""

    separator: int
    per_two_bytes: int = TOKENS_PER_TWO_BYTES


class StopTable(NamedTuple):
    """Stop words (see text.py); words of up to `letters` letters are stop words too, unless that is 0."""

    words: Any
    tongues: Any
    languages: int
    letters: int


class Recipe(NamedTuple):
    """How text becomes shingles: everything a kernel must know of a shingler.

    `units` is WordUnits, CharUnits or TokenUnits. `stops`, a StopTable or None, makes stop-word shingles of words.
    `common` is a hash table of shingles to leave out (see hashtable.py); one of size 1 is empty.
    """

    k: int
    short: bool
    bag: bool
    units: Any
    stops: Any = None
    common: Any = NOTHING_COMMON


def _write_words(data, start, stop, how, room, out):
    return words(data, start, stop, how.lower, how.kinds, how.folds, how.expansions, room, out)


def _write_chars(data, start, stop, how, room, out):
    return chars(data, start, stop, how.ascii_hashes, how.whitespace, how.kinds, how.folds, how.expansions, out)


def _write_tokens(data, start, stop, how, room, out):
    return tokens(data, start, stop, how.separator, out)


WRITERS = {WordUnits: _write_words, CharUnits: _write_chars, TokenUnits: _write_tokens}


def document_units(data, start, stop, how, room, out):
    """Write the units of one document; return how many there are. `room` is space to work in."""
    return WRITERS[type(how)](data, start, stop, how, room, out)


@overload(document_units)
def _document_units(data, start, stop, how, room, out):
    return WRITERS[how.instance_class]


def _all_shingles(data, start, stop, units, n, recipe, room, out):
    return shingles(units, n, recipe.k, out)


def _stop_shingles(data, start, stop, units, n, recipe, room, out):
    stops = recipe.stops
    if stops.letters > 0:
        mark_short(data, start, stop, recipe.units.kinds, stops.letters, room)
    language = np.int64(0)
    if stops.languages > 1:
        votes = np.empty(MOST_LANGUAGES, np.int64)
        language = language_of(units, n, stops.words, stops.tongues, stops.languages, votes)
    return stop_shingles(units, n, recipe.k, stops.words, stops.tongues, language, stops.letters > 0, room, out)


def _chosen_shingles(data, start, stop, units, n, recipe, room, out):
    writer = _all_shingles if recipe.stops is None else _stop_shingles
    return writer(data, start, stop, units, n, recipe, room, out)


@overload(_chosen_shingles)
def _choose_shingles(data, start, stop, units, n, recipe, room, out):
    stops = recipe.types[recipe.fields.index("stops")]
    return _all_shingles if stops.name == "none" else _stop_shingles


@inner
def longest_of(offsets, rows):
    """Return the number of bytes of the longest of these documents."""
    longest = np.int64(0)
    for row in rows:
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest


@inner
def working_space(units):
    """Return how many 64-bit words a document of this many units needs to work in (see text.words)."""
    return 2 * units + units // 4 + 48


@making
def document_shingles(data, start, stop, units, n, recipe, room, values):
    """Write the shingles of one document, with repetitions; return how many there are."""
    n = _chosen_shingles(data, start, stop, units, n, recipe, room, values)
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
    largest = longest_of(offsets, rows) * recipe.units.per_two_bytes // 2 + 1
    units = np.empty(largest, np.uint64)
    room = np.empty(working_space(largest), np.uint64)
    parts = np.empty(largest, np.uint64)
    table, owner = owned_table(1 << 11)
    counts = np.empty(table.size, np.uint64)
    written = np.int64(0)
    set_offsets[0] = 0
    set_offsets[1:] = -1
    for place in range(rows.size):
        start = offsets[rows[place]]
        stop = offsets[rows[place] + 1]
        n = document_units(data, start, stop, recipe.units, room, units)
        n = document_shingles(data, start, stop, units, n, recipe, room, parts)
        if written + n > values.size:
            break
        need = n if recipe.bag else min(n, HUGE)
        if 1 << table_bits(need) > table.size:
            table, owner = owned_table(need)
            counts = np.empty(table.size if recipe.bag else 1, np.uint64)
        if recipe.bag:
            written += numbered(parts, n, table, owner, counts, place, values[written:])
        else:
            written += distinct(parts, n, table, owner, place, values[written:])
        set_offsets[place + 1] = written
    return written


@making
def sketch_units(units, n, k, short, seeds, slots, signature, values, digest):
    """Do document_shingles, digest_shingles and sketch.fast together, for a document of at least k units.

    One loop keeps the multiplier busy that each of the three would wait for; the answer is the same.
    """
    t = signature.size
    size = np.uint64(np.uint32(t))
    slots[:t] = EMPTY
    down = U32 if short else U0
    gone, value = U1, U0
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
        slots[slot] = min(slots[slot], u & LOW32)  # a branch would often be guessed wrong
        value -= units[i] * gone
    digest[0] = mix(total)
    digest[1] = mix(other)
    empty = np.int64(0)
    for i in range(t):
        empty += np.int64(slots[i] == EMPTY)
    if count > 4 * t and empty > 3 * t * np.exp(-count / t) + 10:
        # More slots are empty than `count` different shingles would leave: drop repetitions before the next rounds.
        values = values[:count].copy()
        sort_values(values, count)
        different = 1
        for i in range(1, count):
            if values[i] != values[different - 1]:
                values[different] = values[i]
                different += 1
        count = different
    fast_rounds(values, count, np.int64(1), empty, seeds, slots, signature)


@kernel
def key_documents(data, offsets, rows, recipe, method, seeds, band_rows, keys, digests, sample, hits):
    """Write the band keys of each of these documents, and the 128-bit fingerprint of its shingles.

    Repeated shingles do not change a minhash, so no set is made — except for bags, whose copies count.
    An empty document gets the fingerprint 0, 0, which another document has with probability 2**-128.
    The neighbours of a sample (see probe.py) are written to `hits`. Returns how many documents were processed (it
    stops before the one whose hits may not fit) and how many hits there are.
    """
    largest = longest_of(offsets, rows) * recipe.units.per_two_bytes // 2 + 1
    units = np.empty(largest, np.uint64)
    room = np.empty(working_space(largest), np.uint64)
    parts = np.empty(largest, np.uint64)
    table, owner = owned_table(1 << 11)
    counts = np.empty(table.size, np.uint64)
    signature = np.empty(keys.shape[1] * band_rows, np.uint32)
    slots = np.empty(signature.size, np.uint64)
    probing = sample.entries.size > 1
    sets = sample.offsets.size - 1
    seen = np.full(sets, NOBODY)
    tally, met = np.zeros(sets, np.int32), np.empty(sets, np.int32)
    stamp, written = np.int64(0), np.int64(0)
    plain = recipe.common.size == 1 and recipe.stops is None and not recipe.bag
    for place in range(rows.size):
        if probing and written + sets > hits.sample.size:
            return place, written
        start = offsets[rows[place]]
        stop = offsets[rows[place] + 1]
        n = document_units(data, start, stop, recipe.units, room, units)
        if n >= recipe.k and method == 0 and plain:
            sketch_units(units, n, recipe.k, recipe.short, seeds, slots, signature, parts, digests[place])
            n = n - recipe.k + 1
        else:
            n = document_shingles(data, start, stop, units, n, recipe, room, parts)
            digest_shingles(parts, n, seeds[0], digests[place])
            if n == 0:
                digests[place] = 0
            if recipe.bag:
                if 1 << table_bits(n) > table.size:
                    table, owner = owned_table(n)
                    counts = np.empty(table.size, np.uint64)
                stamp += 1
                numbered(parts, n, table, owner, counts, stamp, units)
                units, parts = parts, units
            sketch_one(parts, n, method, seeds, slots, signature)
        band_keys(signature, band_rows, keys[place])
        if probing and 0 < n <= HUGE and counted(sample, place):
            count = meet(parts, n, sample, seen, tally, place, met)
            if count:
                if 1 << table_bits(n) > table.size:
                    table, owner = owned_table(n)
                    counts = np.empty(table.size, np.uint64)
                stamp += 1
                written = neighbours(parts, n, sample, met, count, table, owner, stamp, room, place, hits, written)
    return rows.size, written


@kernel
def survey_documents(data, offsets, rows, recipe, languages, sizes):
    """Write for each of these documents the language it has most stop words of, and the number of its words.

    The language is -1 if no shingle of the document begins with a stop word.
    """
    largest = longest_of(offsets, rows) * recipe.units.per_two_bytes // 2 + 1
    units = np.empty(largest, np.uint64)
    room = np.empty(working_space(largest), np.uint64)
    votes = np.empty(MOST_LANGUAGES, np.int64)
    stops = recipe.stops
    for place in range(rows.size):
        start = offsets[rows[place]]
        stop = offsets[rows[place] + 1]
        n = document_units(data, start, stop, recipe.units, room, units)
        if stops.letters > 0:
            mark_short(data, start, stop, recipe.units.kinds, stops.letters, room)
        sizes[place] = n
        firsts = max(0, n - recipe.k + 1)
        language = language_of(units, n, stops.words, stops.tongues, stops.languages, votes)
        found = False
        for i in range(firsts):
            slot = slot_of(stops.words, units[i])
            spoken = stops.tongues[slot] >> np.uint64(max(language, 0))
            if (stops.words[slot] != U0 and spoken & U1 != U0) or (stops.letters > 0 and room[i] != U0):
                found = True
                break
        languages[place] = max(language, 0) if found else -1


CONTINUES, TOP_TWO = np.uint8(0x80), np.uint8(0xC0)


@kernel
def placed_words(data, start, stop, kinds, folds, expansions, starts, ends):
    """Write the characters at which every word starts and ends; return how many words there are."""
    size = stop - start
    width = size // 64 * 8 + 16
    folded, runs = np.zeros(width, np.uint64), np.empty(size + 2 + AT_ONCE, np.int64)
    if not fold_ascii(data[start:stop], False, folded.view(np.uint8)[:size]):
        count = find_runs(folded, size, runs) // 2
        for n in range(count):
            starts[n], ends[n] = runs[2 * n], runs[2 * n + 1]
        return count
    i, stop = np.uint64(start), np.uint64(stop)
    count, place = 0, 0
    while i < stop:
        _, found, after = word_from(data, i, stop, kinds, folds, expansions)
        size = 0
        while i < after:
            if (data[i] & TOP_TWO) != CONTINUES:
                size += 1
            i += U1
        if found:
            starts[count], ends[count] = place, place + size
            count += 1
        place += size
    return count


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
    chosen, best = 0, -1
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
    return largest_set(offsets) // 2 + 1


@kernel
def fingerprint_documents(data, offsets, recipe, window, words, word_offsets, values, owners):
    """Write the words of documents, and their fingerprints with the document of each; return how many there are."""
    largest = longest_text(offsets)
    room = np.empty(working_space(largest), np.uint64)
    grams, places = np.empty(largest, np.uint64), np.empty(largest, np.int64)
    at, count = 0, 0
    word_offsets[0] = 0
    for row in range(offsets.size - 1):
        n = document_units(data, offsets[row], offsets[row + 1], recipe.units, room, words[at:])
        more = winnow(words[at:], n, recipe.k, window, grams, values[count:], places)
        owners[count : count + more] = row
        count += more
        at += n
        word_offsets[row + 1] = at
    return count
