"""Exact set similarity joins: the inverted index of prefixes, and the probes that scan its lists."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashtable import numbered_slot, table_bits
from likewise.kernels.overlap import least_overlap, useful_overlap
from likewise.kernels.sets import differing_bits

LENGTH, PREFIX, POSITION, SUFFIX = 0, 1, 2, 3


@kernel
def number_symbols(symbols, positions, offsets, first, prefix, table, numbers, out):
    """Number the symbols that are indexed (those before position `prefix[i]`): out[k] = number, or -1 for the others.

    `first` is the number to begin with. `table` (full of 0) and `numbers` (full of -1) are a hash table with room for
    all of them.
    """
    down = np.uint64(64 - table_bits(table.size // 2))
    mask = np.uint64(table.size - 1)
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
    down = np.uint64(64 - table_bits(table.size // 2))
    mask = np.uint64(table.size - 1)
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
    if low == high or sets[low] >= rank:
        return low
    while low < high:
        middle = (low + high) >> 1
        if sets[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def needs(measure, p, q, threshold, size, sizes, low, high, out):
    """out[c] = the least overlap of a set of `size` with one of sizes[c], for c from low to high."""
    for c in range(low, high):
        out[c] = least_overlap(measure, p, q, threshold, size, sizes[c])


@kernel
def probe(
    first,
    symbols,
    positions,
    offsets,
    probe_sizes,
    low,
    high,
    itself,
    starts,
    entry_sets,
    entry_rests,
    entry_classes,
    classes,
    class_sizes,
    class_starts,
    measure,
    p,
    q,
    threshold,
    times,
    probe_maps,
    maps,
    probe_floors,
    floors,
    seen,
    left,
    right,
    shared,
    facts,
):
    """Write the pairs of a probe and an indexed set that no filter can rule out; return the next probe.

    They share at least `times` symbols of their prefixes, which are longer by as many less one, or as many as they must
    share. Probe x (from `first` on) meets the indexed sets from low[x] to high[x], and not the one numbered itself[x].
    Indexed sets ascend in size; `classes` numbers the sizes, class c begins at class_starts[c]. `seen` holds 0 for each
    indexed set. With floors (see `useful_overlap`), pairs that cannot reach one of them are counted and not written.
    `shared` is the most that two sets can share. Stops when the next probe might overflow `left` and `right`; facts:
    pairs written, entries looked at, pairs that the positions allow, pairs that the bitmaps allow.
    """
    count = facts[0]
    entries = facts[1]
    allowed = facts[2]
    alike = facts[3]
    touched = np.empty(seen.size, np.int32)
    need = np.empty(class_sizes.size, np.int64)
    last_size = -1
    last_low = -1
    last_high = -1
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
            last_size = size
            last_low = bottom
            last_high = top + 1
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
                        left[count] = x
                        right[count] = y
                        shared[count] = most >> 1
                        count += 1
            seen[y] = 0
        x += 1
    facts[0] = count
    facts[1] = entries
    facts[2] = allowed
    facts[3] = alike
    return x


@kernel
def meet(
    filter,
    first,
    symbols,
    positions,
    offsets,
    probe_sizes,
    low,
    high,
    itself,
    starts,
    entry_sets,
    entry_rests,
    entry_classes,
    classes,
    class_sizes,
    measure,
    p,
    q,
    threshold,
    seen,
    left,
    right,
    facts,
):
    """Write the pairs that one of the filters of MMDS §3.9 lets through; return the next probe. See `probe`.

    LENGTH: all pairs whose lengths allow it. PREFIX: those that share a symbol of their prefixes. POSITION: those
    where what comes before and after it in the probe leaves room for the threshold. SUFFIX: and in the other set.
    """
    count = facts[0]
    entries = facts[1]
    x = first
    while x < offsets.size - 1:
        if count + seen.size > left.size:
            break
        begun = count
        if filter == LENGTH:
            for y in range(low[x], high[x]):
                if y != itself[x]:
                    left[count] = x
                    right[count] = y
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
                room = remaining
                if filter == POSITION:
                    other = other - entry_rests[e] + remaining
                elif filter == SUFFIX:
                    room = min(remaining, entry_rests[e])
                if filter == PREFIX or least_overlap(measure, p, q, threshold, size, other) <= room:
                    seen[y] = 1
                    left[count] = x
                    right[count] = y
                    count += 1
        for i in range(begun, count):
            seen[right[i]] = 0
        x += 1
    facts[0] = count
    facts[1] = entries
    facts[2] = count
    facts[3] = count
    return x
