"""Exact set similarity joins: the inverted index of prefixes, the probes that scan its lists, and an index that grows.

Arrays are taken out of their records before loops: references to them would be counted at every access.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashtable import numbered_slot, slot_range
from likewise.kernels.overlap import least_overlap, useful_overlap
from likewise.kernels.sets import differing_bits
from likewise.kernels.sorting import first_between

LENGTH, PREFIX, POSITION, SUFFIX = 0, 1, 2, 3


class Probes(NamedTuple):
    """Sets that are looked up: the numbers of their symbols in the index (-1: none), the positions of these, sizes.

    Probe x meets the indexed sets from low[x] to high[x], and not the one numbered itself[x].
    """

    symbols: Any
    positions: Any
    offsets: Any
    sizes: Any
    low: Any
    high: Any
    itself: Any
    maps: Any
    floors: Any


class PrefixIndex(NamedTuple):
    """The index: for each symbol a list of entries, from starts[symbol] on, as `fill_lists` writes them.

    Indexed sets ascend in size; `classes` numbers the sizes of the sets, and class c begins at class_starts[c].
    """

    starts: Any
    entry_sets: Any
    entry_rests: Any
    entry_classes: Any
    classes: Any
    class_sizes: Any
    class_starts: Any
    maps: Any
    floors: Any


class JoinRoom(NamedTuple):
    """Room for pairs, and for what they share at most. `seen` holds 0 for each indexed set, and so it is left.

    facts: pairs written, entries looked at, pairs that the positions allow, pairs that the bitmaps allow.
    """

    seen: Any
    left: Any
    right: Any
    shared: Any
    facts: Any


class GrowingLists(NamedTuple):
    """An index that grows: `table` and `heads` (-1: free) are a hash table of symbols, each with its latest entry.

    `nexts` leads to the entry before; used: how many entries and symbols there are.
    """

    table: Any
    heads: Any
    nexts: Any
    entry_sets: Any
    entry_places: Any
    used: Any


@kernel
def number_symbols(symbols, positions, offsets, first, prefix, table, numbers, out):
    """Number the symbols that are indexed (those before position `prefix[i]`): out[k] = number, or -1 for the others.

    `first` is the number to begin with. `table` (full of 0) and `numbers` (full of -1) are a hash table with room for
    all of them.
    """
    down, mask = slot_range(table.size // 2)
    count = first
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            if positions[k] >= prefix[i]:
                out[k] = -1
                continue
            slot = numbered_slot(symbols[k], table, numbers, down, mask)
            if numbers[slot] < 0:
                table[slot] = symbols[k]
                numbers[slot] = count
                count += 1
            out[k] = numbers[slot]
    return count


@kernel
def look_up(symbols, table, numbers, out):
    """out[k] = the number of symbol k in the index, or -1."""
    down, mask = slot_range(table.size // 2)
    for k in range(symbols.size):
        out[k] = numbers[numbered_slot(symbols[k], table, numbers, down, mask)]


@kernel
def fill_lists(numbered, positions, offsets, classes, class_sizes, starts, sets, rests, set_classes):
    """Write the lists of the index: for each symbol the sets that have it in their prefix, ascending.

    Each entry also holds how many symbols of the set are left from this one on, and the class of its size.

    `starts` begins as the number of every list's entries and ends as where each list begins, with the end of all.
    """
    total = 0
    for symbol in range(starts.size):
        here = starts[symbol]
        starts[symbol] = total
        total += here
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            symbol = numbered[k]
            if symbol >= 0:
                place = starts[symbol]
                starts[symbol] = place + 1
                sets[place] = i
                rests[place] = class_sizes[classes[i]] - positions[k]
                set_classes[place] = classes[i]
    for symbol in range(starts.size - 1, 0, -1):
        starts[symbol] = starts[symbol - 1]
    starts[0] = 0


@kernel
def count_lists(numbered, counts):
    """Count the entries of every list."""
    for k in range(numbered.size):
        if numbered[k] >= 0:
            counts[numbered[k]] += 1


@inner
def not_before(sets, low, high, rank):
    """Return the first entry of a list, between low and high, whose set is not before `rank`."""
    return low if low == high or sets[low] >= rank else first_between(sets, low, high, rank)


@inner
def needs(measure, p, q, threshold, size, sizes, low, high, out):
    """out[c] = the least overlap of a set of `size` with one of sizes[c], for c from low to high."""
    for c in range(low, high):
        out[c] = least_overlap(measure, p, q, threshold, size, sizes[c])


@kernel
def probe(first, probes, index, bounds, times, room):
    """Write the pairs of a probe and an indexed set that no filter can rule out; return the next probe.

    They share at least `times` symbols of their prefixes, which are longer by as many less one, or as many as they must
    share. With floors (see `useful_overlap`), pairs that cannot reach one of them are counted and not written. Stops
    when the next probe might overflow the room. bounds: the measure, p, q, and the threshold.
    """
    measure, p, q, threshold = bounds
    symbols, positions, offsets, probe_sizes, low, high, itself, probe_maps, probe_floors = probes
    starts, entry_sets, entry_rests, entry_classes, classes, class_sizes, class_starts, maps, floors = index
    seen, left, right, shared, facts = room
    count, entries, allowed = facts[0], facts[1], facts[2]
    alike = facts[3]
    touched = np.empty(seen.size, np.int32)
    need = np.empty(class_sizes.size, np.int64)
    last_size, last_low, last_high = -1, -1, -1
    x = first
    while x < offsets.size - 1:
        if count + seen.size > left.size:
            break
        if low[x] >= high[x]:
            x += 1
            continue
        size = probe_sizes[x]
        bottom = classes[low[x]]
        top = classes[high[x] - 1]
        if size != last_size or bottom < last_low or top >= last_high:
            needs(measure, p, q, threshold, size, class_sizes, bottom, top + 1, need)
            last_size, last_low, last_high = size, bottom, top + 1
        n = 0
        for k in range(offsets[x], offsets[x + 1]):
            symbol = symbols[k]
            if symbol < 0:
                continue
            remaining = size - positions[k]
            while top >= bottom and need[top] >= remaining + times:
                top -= 1
            if top < bottom:
                break
            stop = min(high[x], class_starts[top + 1])
            begin = not_before(entry_sets, starts[symbol], starts[symbol + 1], low[x])
            for e in range(begin, starts[symbol + 1]):
                y = entry_sets[e]
                if y >= stop:
                    break
                entries += 1
                # A pair that has not shared `times` symbols before this one must have enough left for the threshold.
                if min(remaining, entry_rests[e]) + times > need[entry_classes[e]]:
                    so_far = seen[y]
                    if so_far == 0:
                        touched[n] = y
                        n += 1
                    if so_far < times:
                        seen[y] = so_far + 1
        for i in range(n):
            y = touched[i]
            if seen[y] >= min(times, need[classes[y]]) and y != itself[x]:
                allowed += 1
                other = class_sizes[classes[y]]
                most = size + probe_sizes.dtype.type(other) - differing_bits(probe_maps[x], maps[y])
                least = need[classes[y]]
                if most >= 2 * least:
                    alike += 1
                    if most >= 2 * useful_overlap(least, measure, probe_floors, floors, x, y, size, other):
                        left[count], right[count], shared[count] = x, y, most >> 1
                        count += 1
            seen[y] = 0
        x += 1
    facts[0], facts[1], facts[2] = count, entries, allowed
    facts[3] = alike
    return x


@kernel
def meet(filter, first, probes, index, bounds, room):
    """Write the pairs that one of the filters of MMDS §3.9 lets through; return the next probe. See `probe`.

    LENGTH: all pairs whose lengths allow it. PREFIX: those that share a symbol of their prefixes. POSITION: those
    where what comes before and after it in the probe leaves room for the threshold. SUFFIX: and in the other set.
    """
    measure, p, q, threshold = bounds
    symbols, positions, offsets, probe_sizes, low, high, itself, _, _ = probes
    starts, entry_sets, entry_rests, entry_classes, _, class_sizes, _, _, _ = index
    seen, left, right, _, facts = room
    count, entries = facts[0], facts[1]
    x = first
    while x < offsets.size - 1:
        if count + seen.size > left.size:
            break
        begun = count
        if filter == LENGTH:
            for y in range(low[x], high[x]):
                if y != itself[x]:
                    left[count], right[count] = x, y
                    count += 1
            x += 1
            continue
        size = probe_sizes[x]
        for k in range(offsets[x], offsets[x + 1]):
            symbol = symbols[k]
            if symbol < 0:
                continue
            remaining = size - positions[k]
            begin = not_before(entry_sets, starts[symbol], starts[symbol + 1], low[x])
            for e in range(begin, starts[symbol + 1]):
                y = entry_sets[e]
                if y >= high[x]:
                    break
                entries += 1
                if seen[y] != 0 or y == itself[x]:
                    continue
                other = class_sizes[entry_classes[e]]
                enough = remaining
                if filter == POSITION:
                    other = other - entry_rests[e] + remaining
                elif filter == SUFFIX:
                    enough = min(remaining, entry_rests[e])
                if filter == PREFIX or least_overlap(measure, p, q, threshold, size, other) <= enough:
                    seen[y] = 1
                    left[count], right[count] = x, y
                    count += 1
        for i in range(begun, count):
            seen[right[i]] = 0
        x += 1
    facts[0], facts[1], facts[2] = count, entries, count
    facts[3] = count
    return x


@inner
def enter(symbols, positions, start, stop, number, lists):
    """Put the string of set `number` in an index that grows."""
    table, heads, nexts, entry_sets, entry_places, used = lists
    down, mask = slot_range(table.size // 2)
    for k in range(start, stop):
        token = symbols[k]
        slot = numbered_slot(token, table, heads, down, mask)
        entry = used[0]
        used[0] += 1
        if heads[slot] < 0:
            used[1] += 1
            table[slot] = token
        nexts[entry] = heads[slot]
        heads[slot] = entry
        entry_sets[entry] = number
        entry_places[entry] = positions[k]


@kernel
def enter_strings(symbols, positions, offsets, number, lists):
    """Put strings in an index that grows, those of set `number` and the following ones."""
    for i in range(offsets.size - 1):
        enter(symbols, positions, offsets[i], offsets[i + 1], number + i, lists)


@kernel
def consult(first, queries, indexed, lists, bounds, add_from, added, room):
    """Write the pairs of a query and an indexed set that no filter can rule out; return the next query. See `probe`.

    With add_from ≥ 0, query x is set number add_from + x and is put in the index after it was asked, with those of
    its symbols whose positions are before added[x]. queries: symbols, positions, offsets, sizes and bitmaps; indexed:
    the sizes and bitmaps of all sets of the index.
    """
    measure, p, q, threshold = bounds
    symbols, positions, offsets, query_sizes, query_maps = queries
    sizes, maps = indexed
    table, heads, nexts, entry_sets, entry_places, _ = lists
    seen, left, right, _, facts = room
    down, mask = slot_range(table.size // 2)
    touched = np.empty(seen.size, np.int32)
    count = facts[0]
    x = first
    while x < offsets.size - 1:
        if count + seen.size > left.size:
            break
        size = query_sizes[x]
        n = 0
        for k in range(offsets[x], offsets[x + 1]):
            remaining = size - positions[k]
            entry = heads[numbered_slot(symbols[k], table, heads, down, mask)]
            while entry >= 0:
                facts[1] += 1
                y = entry_sets[entry]
                so_far = seen[y]
                if so_far >= 0:
                    rest = min(remaining, sizes[y] - entry_places[entry])
                    if so_far + rest >= least_overlap(measure, p, q, threshold, size, sizes[y]):
                        if so_far == 0:
                            touched[n] = y
                            n += 1
                        seen[y] = so_far + 1
                    elif so_far > 0:
                        seen[y] = -1
                entry = nexts[entry]
        for i in range(n):
            y = touched[i]
            if seen[y] > 0:
                facts[2] += 1
                least = least_overlap(measure, p, q, threshold, size, sizes[y])
                if size + sizes[y] - differing_bits(query_maps[x], maps[y]) >= 2 * least:
                    left[count], right[count] = x, y
                    count += 1
            seen[y] = 0
        if add_from >= 0:
            stop = offsets[x]
            while stop < offsets[x + 1] and positions[stop] < added[x]:
                stop += 1
            enter(symbols, positions, offsets[x], stop, add_from + x, lists)
        x += 1
    facts[0] = count
    return x
