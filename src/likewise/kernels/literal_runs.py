"""Runs of words that documents share literally with items that are held in memory: the items of test sets.

Every window of k words of an item is in a table. A document's windows are looked up in it, and from each one found the
run is followed to both sides, word by word. Items of fewer than k words are looked up by their first words and must be
there as a whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.documents import document_units, longest_text, working_space
from likewise.kernels.hashing import U1, U3, U7, U8, U32
from likewise.kernels.text import decode, shingles, word_from

CONTINUES, TOP_TWO = np.uint8(0x80), np.uint8(0xC0)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""An odd number: chooses the bit of a filter by other bits than those that choose the slot."""
RECENT = 64
"""Runs of a document that are compared with a new one; a run that is found twice is dropped later."""
SHIFTS = 8
"""Runs with one item that may cover a place of a document, where both repeat the same words over and over."""


class WindowTable(NamedTuple):
    """Windows of k words by their hash, and the items and places where they are.

    coarse, filter: bits that the hashes of windows set, in a small table and in a larger one. slots: an open-addressing
    table of numbers of windows, -1 if free. values: the hash of every window. Window w is in
    items[starts[w]:starts[w + 1]], at the same places of `places`. counters: of short items, which of `counts` is
    theirs.
    """

    k: int
    coarse: Any
    filter: Any
    slots: Any
    values: Any
    starts: Any
    items: Any
    places: Any
    counters: Any


class LiteralItems(NamedTuple):
    """The words of all items, end to end, their windows, and in how many documents each window has been found so far.

    Windows in more than `common` documents begin no run; short items in more than `rare` are not listed.
    """

    words: Any
    offsets: Any
    windows: WindowTable
    short: WindowTable
    counts: Any
    common: int
    rare: int


@kernel
def enter_windows(values, slots, coarse, filter):
    """Put the numbers of windows, whose hashes are all different, in free slots, and set their bits of the filters."""
    for number in range(values.size):
        slot = values[number] & np.uint64(slots.size - 1)
        while slots[slot] >= 0:
            slot = (slot + U1) & np.uint64(slots.size - 1)
        slots[slot] = number
        for bits, bit in ((coarse, coarse_bit(values[number], coarse)), (filter, filter_bit(values[number], filter))):
            bits[bit >> U3] |= np.uint8(1) << np.uint8(bit & U7)


@inner
def coarse_bit(value, bits):
    """Return the bit of the coarse filter that a hash sets: other bits of the hash than those of the other filter."""
    return (value >> U32) & np.uint64(8 * bits.size - 1)


@inner
def filter_bit(value, bits):
    """Return the bit of the filter that a hash sets."""
    return ((value >> U8) * SPREAD >> U8) & np.uint64(8 * bits.size - 1)


@inner
def is_set(bits, bit):
    """Return 1 if a bit is set, else 0."""
    return (bits[bit >> U3] >> np.uint8(bit & U7)) & np.uint8(1)


@inner
def likely_windows(units, n, table, grams, places, passed):
    """Hash every window of a document; write the places of those that pass both filters; return how many there are.

    The coarse filter fits in the cache of a core, and the other is asked about the rest only. It is asked without a
    branch, and without a place that depends on an answer, so that the processor waits for many answers at once.
    """
    if n < table.k or table.values.size == 0:
        return 0
    shingles(units, n, table.k, grams)
    some, count = 0, 0
    for i in range(n - table.k + 1):
        places[some] = i
        some += is_set(table.coarse, coarse_bit(grams[i], table.coarse))
    for j in range(some):
        passed[j] = is_set(table.filter, filter_bit(grams[places[j]], table.filter))
    for j in range(some):
        places[count] = places[j]
        count += passed[j]
    return count


@inner
def window_number(value, table):
    """Return the number of the window with this hash, -1 if there is none."""
    slot = value & np.uint64(table.slots.size - 1)
    while table.slots[slot] >= 0:
        if table.values[table.slots[slot]] == value:
            return np.int64(table.slots[slot])
        slot = (slot + U1) & np.uint64(table.slots.size - 1)
    return -1


@kernel
def window_hashes(words, offsets, k, first_only, hashes, items, places):
    """Write the hash of every window of k words of every item (or only of its first), its item and place; count."""
    count = 0
    for item in range(offsets.size - 1):
        n = offsets[item + 1] - offsets[item]
        if n < k:
            continue
        stop = 1 if first_only else n - k + 1
        shingles(words[offsets[item] : offsets[item + 1]], stop + k - 1, k, hashes[count:])
        for place in range(stop):
            items[count] = item
            places[count] = place
            count += 1
    return count


@kernel
def item_words(data, offsets, units, words, word_offsets):
    """Write the hashes of the words of all items; return how many there are."""
    room = np.empty(working_space(longest_text(offsets)), np.uint64)
    at = 0
    word_offsets[0] = 0
    for row in range(offsets.size - 1):
        at += document_units(data, offsets[row], offsets[row + 1], units, room, words[at:])
        word_offsets[row + 1] = at
    return at


@inner
def is_known(runs, first, written, item, diagonal, i, repeats):
    """Tell whether a place of a document is in one of its last runs with this item and this shift against it.

    Where the item `repeats` the words found there, a document that repeats them too would have a run for every shift:
    it is enough if several cover the place.
    """
    several = 0
    for r in range(written - 1, max(first, written - RECENT) - 1, -1):
        if runs[r, 1] == item and i < runs[r, 2] + runs[r, 4]:
            if runs[r, 2] - runs[r, 3] == diagonal:
                return True
            several += 1
    return repeats and several >= SHIFTS


@kernel
def search_documents(data, offsets, first, units_of, known, runs, seen):
    """Write the runs that documents from `first` on share with items, and the counters of the windows they have.

    A run is: document, item, first word in the document, first word in the item, number of words. `seen` gets document
    and counter. Returns the number of documents done, runs and counters written: it stops before the document that
    does not fit.
    """
    largest = longest_text(offsets)
    units = np.empty(largest, np.uint64)
    grams, places = np.empty(largest, np.uint64), np.empty(largest, np.int64)
    room, passed = np.empty(working_space(largest), np.uint64), np.empty(largest, np.uint8)
    long, short, words = known.windows, known.short, known.words
    written, marked = 0, 0
    for row in range(first, offsets.size - 1):
        n = document_units(data, offsets[row], offsets[row + 1], units_of, room, units)
        before, marked_before = written, marked
        full = False
        for c in range(likely_windows(units, n, long, grams, places, passed)):
            i = places[c]
            window = window_number(grams[i], long)
            if window < 0:
                continue
            if marked == seen.shape[0]:
                full = True
                break
            seen[marked, 0], seen[marked, 1] = row, window
            marked += 1
            if known.counts[window] > known.common:
                continue
            for p in range(long.starts[window], long.starts[window + 1]):
                item, place = np.int64(long.items[p]), np.int64(long.places[p])
                repeats = p > long.starts[window] and long.items[p - 1] == item
                repeats |= p + 1 < long.starts[window + 1] and long.items[p + 1] == item
                if is_known(runs, before, written, item, i - place, i, repeats):
                    continue
                start, stop = known.offsets[item], known.offsets[item + 1]
                low = 0
                while low < i and low < place and units[i - low - 1] == words[start + place - low - 1]:
                    low += 1
                high = 0
                while i + high < n and start + place + high < stop and units[i + high] == words[start + place + high]:
                    high += 1
                if high < long.k:
                    continue
                if written == runs.shape[0]:
                    full = True
                    break
                runs[written, 0], runs[written, 1] = row, item
                runs[written, 2], runs[written, 3], runs[written, 4] = i - low, place - low, low + high
                written += 1
            if full:
                break
        for c in range(0 if full else likely_windows(units, n, short, grams, places, passed)):
            i = places[c]
            window = window_number(grams[i], short)
            if window < 0:
                continue
            for p in range(short.starts[window], short.starts[window + 1]):
                item = np.int64(short.items[p])
                start, size = known.offsets[item], known.offsets[item + 1] - known.offsets[item]
                high = 0
                while high < size and i + high < n and units[i + high] == words[start + high]:
                    high += 1
                if high < size:
                    continue
                if marked == seen.shape[0] or written == runs.shape[0]:
                    full = True
                    break
                seen[marked, 0], seen[marked, 1] = row, short.counters[p]
                marked += 1
                if known.counts[short.counters[p]] > known.rare:
                    continue
                runs[written, 0], runs[written, 1] = row, item
                runs[written, 2], runs[written, 3], runs[written, 4] = i, 0, size
                written += 1
            if full:
                break
        if full:
            return row, before, marked_before
    return offsets.size - 1, written, marked


@kernel
def place_runs(data, offsets, runs, units_of, out):
    """Write where runs, ordered by document, start and end: in bytes and in characters; and the document's words."""
    largest = longest_text(offsets)
    places = np.empty((largest, 4), np.int64)
    document, n = -1, 0
    for r in range(runs.shape[0]):
        if runs[r, 0] != document:
            document = runs[r, 0]
            n = place_words(data, offsets[document], offsets[document + 1], units_of, places)
        last = runs[r, 2] + runs[r, 4] - 1
        out[r, 0], out[r, 1] = places[runs[r, 2], 0], places[last, 1]
        out[r, 2], out[r, 3] = places[runs[r, 2], 2], places[last, 3]
        out[r, 4] = n


@inner
def place_words(data, start, stop, units_of, out):
    """Write the first byte and the end of every word of a document, and the same in characters; return how many."""
    i, begin, stop = np.uint64(start), np.uint64(start), np.uint64(stop)
    n, character = 0, 0
    while i < stop:
        _, found, after = word_from(data, i, stop, units_of.kinds, units_of.folds, units_of.expansions)
        size = 0
        for j in range(i, after):
            size += (data[j] & TOP_TWO) != CONTINUES
        if found:
            out[n, 0], out[n, 1] = i - begin, after - begin
            out[n, 2], out[n, 3] = character, character + size
            n += 1
        i = after
        character += size
    return n


@inner
def written_words(data, start, stop, units_of, skip, count, out):
    """Write the folded characters of `count` words after the first `skip`, a 0 behind each; return how many."""
    i, stop = np.uint64(start), np.uint64(stop)
    n, word = 0, 0
    while i < stop and word < skip + count:
        _, found, after = word_from(data, i, stop, units_of.kinds, units_of.folds, units_of.expansions)
        if found:
            if word >= skip:
                while i < after:
                    point, i = decode(data, i)
                    folded = units_of.folds[point]
                    if folded >= 0:
                        out[n] = folded
                        n += 1
                    else:
                        for part in units_of.expansions[-folded]:
                            if part != 0:
                                out[n] = part
                                n += 1
                out[n] = 0
                n += 1
            word += 1
        i = after
    return n


@kernel
def check_words(data, offsets, item_data, item_offsets, runs, units_of, out):
    """Write for each passage whether its words are, letter by letter, those of its run in the item."""
    longest = max(longest_text(offsets), longest_text(item_offsets))
    ours, theirs = np.empty(8 * longest, np.int32), np.empty(8 * longest, np.int32)
    for r in range(runs.shape[0]):
        item = runs[r, 1]
        a = written_words(data, offsets[r], offsets[r + 1], units_of, 0, runs[r, 4] + 1, ours)
        b = written_words(
            item_data, item_offsets[item], item_offsets[item + 1], units_of, runs[r, 3], runs[r, 4], theirs
        )
        same = a == b
        for i in range(min(a, b)):
            same &= ours[i] == theirs[i]
        out[r] = same


@kernel
def rarest_windows(runs, k, word_offsets, counter_of, counts, out):
    """Write in how few documents the rarest window of each run is; of a short item, the whole item."""
    for r in range(runs.shape[0]):
        first = word_offsets[runs[r, 1]] + runs[r, 3]
        least = np.int64(1) << 62
        for place in range(first, first + max(1, runs[r, 4] - k + 1)):
            if counter_of[place] >= 0:
                least = min(least, np.int64(counts[counter_of[place]]))
        out[r] = least


@kernel
def covered_words(groups, starts, lengths, out):
    """Write for stretches, ordered by group and start, how many words all those of their group cover together."""
    first = 0
    while first < groups.size:
        stop, total, end = first, 0, 0
        while stop < groups.size and groups[stop] == groups[first]:
            total += max(0, starts[stop] + lengths[stop] - max(end, starts[stop]))
            end = max(end, starts[stop] + lengths[stop])
            stop += 1
        for i in range(first, stop):
            out[i] = total
        first = stop
