"""Exact joins: least overlaps, sets as strings of their rarest symbols, the index of prefixes, probes, verification.

A *string* is what the join knows of a set: the first symbols of its prefix, rarest first, each with its position.
Symbols that no other set has take a position and are not written.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.hashing import U32, mix
from likewise.kernels.sets import NOBODY, STRIDE, TABLE_ODD, differing_bits, table_bits

JACCARD, DICE, COSINE, OVERLAP, CONTAINMENT = 0, 1, 2, 3, 4
LENGTH, PREFIX, POSITION, SUFFIX = 0, 1, 2, 3
FEW = 24
U16 = np.uint64(16)
U48 = np.uint64(48)
U58 = np.uint64(58)
SAMPLE_ODD = np.uint64(0x9FB21C651E98DF25)
MOST = np.uint16(65535)


@kernel
def least_overlap(measure, p, q, threshold, a, b):
    """Return the least overlap with which sets of a and b elements reach the threshold, which is p/q (see bounds.py).

    a, b ≥ 1. Whole numbers throughout, but for the cosine: there the very test that brute force makes settles it.
    """
    if measure == JACCARD:
        return (p * (a + b) + p + q - 1) // (p + q)
    if measure == DICE:
        return (p * (a + b) + 2 * q - 1) // (2 * q)
    if measure == OVERLAP:
        return (p * min(a, b) + q - 1) // q
    if measure == CONTAINMENT:
        return (p * a + q - 1) // q
    root = np.sqrt(np.float64(a) * np.float64(b))
    least = np.int64(max(1.0, threshold * root))
    while least > 1 and (least - 1) / root >= threshold:
        least -= 1
    while least / root < threshold:
        least += 1
    return least


@kernel
def shortest_partner(measure, p, q, threshold, size):
    """Return the least size, up to `size` itself, of a set that one of `size` elements can reach the threshold with."""
    low = 1
    high = size
    while low < high:
        middle = (low + high) >> 1
        if least_overlap(measure, p, q, threshold, size, middle) <= middle:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def longest_partner(measure, p, q, threshold, size, limit):
    """Return the greatest size, from `size` up to `limit`, of a set that one of `size` can reach the threshold with."""
    low = size
    high = max(size, limit)
    while low < high:
        middle = (low + high + 1) >> 1
        if least_overlap(measure, p, q, threshold, size, middle) <= size:
            low = middle
        else:
            high = middle - 1
    return low


@kernel
def similarity_of(measure, shared, a, b):
    """Return the similarity of sets of a and b elements, not both empty, that share so many."""
    if measure == JACCARD:
        return shared / (a + b - shared)
    if measure == DICE:
        return 2 * shared / (a + b)
    if measure == OVERLAP:
        return shared / min(a, b) if min(a, b) > 0 else 0.0
    if measure == CONTAINMENT:
        return shared / a if a > 0 else 1.0
    root = np.sqrt(np.float64(a) * np.float64(b))
    return shared / root if root > 0 else 0.0


@kernel
def sample_symbols(values, out):
    """Write the symbols of a sixty-fourth of all hashes, as many as there is room for; return how many there are."""
    count = 0
    for i in range(values.size):
        token = np.uint64(values[i])
        if (token * SAMPLE_ODD) >> U58 == 0:
            if count < out.size:
                out[count] = token
            count += 1
    return count


@kernel
def survey(values, offsets, counts, maps, digests):
    """Count the symbols of these sets by their hash, and write a bitmap and a fingerprint of each set, in one pass.

    An empty set has the fingerprint 0, 0. Counts stop at 65,535; symbols with the same slot are counted together,
    which makes an order less good and no answer different.
    """
    down = np.uint64(64 - table_bits(counts.size // 2))
    mask = np.uint64(maps.shape[1] * 64 - 1)
    for i in range(offsets.size - 1):
        a = np.uint64(offsets[i + 1] - offsets[i])
        b = a
        maps[i] = np.uint64(0)
        for j in range(offsets[i], offsets[i + 1]):
            token = np.uint64(values[j])
            spread = token * TABLE_ODD
            slot = spread >> down
            seen = counts[slot]
            counts[slot] = seen + np.uint16(seen != MOST)
            bit = (spread >> U32) & mask
            maps[i, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
            x = mix(token ^ TABLE_ODD)
            a += x
            b += mix(x ^ (x << U32) ^ np.uint64(1))
        digests[i, 0] = mix(a) if offsets[i + 1] > offsets[i] else np.uint64(0)
        digests[i, 1] = mix(b) if offsets[i + 1] > offsets[i] else np.uint64(0)


@kernel
def add_counts(counts, more):
    """Add one table of counts to another, up to 65,535."""
    for i in range(counts.size):
        total = np.uint32(counts[i]) + np.uint32(more[i])
        counts[i] = np.uint16(min(total, np.uint32(65535)))


@kernel
def comes_before(key_a, token_a, key_b, token_b):
    """Tell whether symbol a is before symbol b: the rarer one is, then the one with the lower hash."""
    return key_a < key_b or (key_a == key_b and token_a < token_b)


@kernel
def sort_symbols(keys, tokens, n):
    """Sort the first n symbols by their keys, then tokens."""
    if n > FEW:
        order = np.argsort(keys[:n])
        keys[:n] = keys[:n][order]
        tokens[:n] = tokens[:n][order]
    for i in range(1, n):
        key = keys[i]
        token = tokens[i]
        j = i - 1
        while j >= 0 and comes_before(key, token, keys[j], tokens[j]):
            keys[j + 1] = keys[j]
            tokens[j + 1] = tokens[j]
            j -= 1
        keys[j + 1] = key
        tokens[j + 1] = token


@kernel
def strings(values, offsets, rows, prefix, counts, least, symbols, positions, out_offsets):
    """Write the strings of these sets: the symbols of their first `prefix[i]` positions that were counted at least
    `least` times.

    Return how many were written. `symbols` and `positions` have room for all of the prefixes.
    """
    down = np.uint64(64 - table_bits(counts.size // 2))
    largest = 0
    for r in range(rows.size):
        largest = max(largest, offsets[rows[r] + 1] - offsets[rows[r]])
    keys = np.empty(largest, np.uint64)
    tokens = np.empty(largest, np.uint64)
    written = 0
    out_offsets[0] = 0
    for r in range(rows.size):
        start = offsets[rows[r]]
        size = offsets[rows[r] + 1] - start
        p = prefix[r]
        n = 0
        few = p <= FEW
        for j in range(start, start + size):
            token = np.uint64(values[j])
            spread = token * TABLE_ODD
            key = (np.uint64(counts[spread >> down]) << U48) | (spread >> U16)
            if not few:
                keys[n] = key
                tokens[n] = token
                n += 1
                continue
            if n == p:
                if not comes_before(key, token, keys[n - 1], tokens[n - 1]):
                    continue
                n -= 1
            place = n
            while place > 0 and comes_before(key, token, keys[place - 1], tokens[place - 1]):
                keys[place] = keys[place - 1]
                tokens[place] = tokens[place - 1]
                place -= 1
            keys[place] = key
            tokens[place] = token
            n += 1
        if not few:
            sort_symbols(keys, tokens, n)
        for j in range(min(p, size)):
            if keys[j] >> U48 >= least:
                symbols[written] = tokens[j]
                positions[written] = j
                written += 1
        out_offsets[r + 1] = written
    return written


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
            token = symbols[k]
            slot = (token * TABLE_ODD) >> down
            while numbers[slot] >= 0 and table[slot] != token:
                slot = (slot + np.uint64(1)) & mask
            if numbers[slot] < 0:
                table[slot] = token
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
        token = symbols[k]
        slot = (token * TABLE_ODD) >> down
        while numbers[slot] >= 0 and table[slot] != token:
            slot = (slot + np.uint64(1)) & mask
        out[k] = numbers[slot]


@kernel
def fill_lists(numbered, positions, offsets, classes, class_sizes, starts, sets, rests, set_classes):
    """Write the lists of the index: for each symbol the sets that have it in their prefix, ascending.

    Beside each set stands how many of its symbols are left from this one on, and the class of its size.

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


@kernel
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


@kernel
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
    seen,
    left,
    right,
    facts,
):
    """Write the pairs of a probe and an indexed set that no filter can rule out; return the next probe.

    They share at least `times` symbols of their prefixes, which are longer by as many less one, or as many as they must
    share. Probe x (from `first` on) meets the indexed sets from low[x] to high[x], and not the one numbered itself[x].
    Indexed sets ascend in size; `classes` numbers the sizes, class c begins at class_starts[c]. `seen` holds 0 for each
    indexed set. Stops when the next probe might overflow `left` and `right`; facts: pairs written, entries
    looked at, pairs that the positions allow.
    """
    count = facts[0]
    entries = facts[1]
    allowed = facts[2]
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
                both = size + probe_sizes.dtype.type(class_sizes[classes[y]])
                if both - differing_bits(probe_maps[x], maps[y]) >= 2 * need[classes[y]]:
                    left[count] = x
                    right[count] = y
                    count += 1
            seen[y] = 0
        x += 1
    facts[0] = count
    facts[1] = entries
    facts[2] = allowed
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
    """Write the pairs that one of the chapter's filters lets through; return the next probe. See `probe`.

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
    return x


@kernel
def enter(symbols, positions, start, stop, number, table, heads, nexts, entry_sets, entry_places, used):
    """Put the string of set `number` in an index that grows; return how many entries and symbols there are now.

    `table` and `heads` (-1: free) are a hash table of symbols, each with its latest entry; `nexts` leads to the one
    before.
    """
    down = np.uint64(64 - table_bits(table.size // 2))
    mask = np.uint64(table.size - 1)
    for k in range(start, stop):
        token = symbols[k]
        slot = (token * TABLE_ODD) >> down
        while heads[slot] >= 0 and table[slot] != token:
            slot = (slot + np.uint64(1)) & mask
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
def consult(
    first,
    symbols,
    positions,
    offsets,
    query_sizes,
    query_maps,
    add_from,
    added,
    sizes,
    maps,
    table,
    heads,
    nexts,
    entry_sets,
    entry_places,
    used,
    measure,
    p,
    q,
    threshold,
    seen,
    left,
    right,
    facts,
):
    """Write the pairs of a query and an indexed set that no filter can rule out; return the next query. See `probe`.

    With add_from ≥ 0, query x is set number add_from + x and is put in the index after it was asked, with those of
    its symbols whose positions are before added[x].
    """
    down = np.uint64(64 - table_bits(table.size // 2))
    mask = np.uint64(table.size - 1)
    touched = np.empty(seen.size, np.int32)
    count = facts[0]
    x = first
    while x < offsets.size - 1:
        if count + seen.size > left.size:
            break
        size = query_sizes[x]
        n = 0
        for k in range(offsets[x], offsets[x + 1]):
            token = symbols[k]
            slot = (token * TABLE_ODD) >> down
            while heads[slot] >= 0 and table[slot] != token:
                slot = (slot + np.uint64(1)) & mask
            remaining = size - positions[k]
            entry = heads[slot]
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
                    left[count] = x
                    right[count] = y
                    count += 1
            seen[y] = 0
        if add_from >= 0:
            stop = offsets[x]
            while stop < offsets[x + 1] and positions[stop] < added[x]:
                stop += 1
            enter(
                symbols,
                positions,
                offsets[x],
                stop,
                add_from + x,
                table,
                heads,
                nexts,
                entry_sets,
                entry_places,
                used,
            )
        x += 1
    facts[0] = count
    return x


@kernel
def move_heads(table, heads, new_table, new_heads):
    """Copy a hash table of symbols to a larger one."""
    down = np.uint64(64 - table_bits(new_table.size // 2))
    mask = np.uint64(new_table.size - 1)
    for i in range(table.size):
        if heads[i] >= 0:
            slot = (table[i] * TABLE_ODD) >> down
            while new_heads[slot] >= 0:
                slot = (slot + np.uint64(1)) & mask
            new_table[slot] = table[i]
            new_heads[slot] = heads[i]


@kernel
def verify_overlap(
    left, right, values_a, offsets_a, rows_a, values_b, offsets_b, rows_b, measure, p, q, threshold, out
):
    """out[k] = similarity of the sets rows_a[left[k]] and rows_b[right[k]], exact if it reaches the threshold, else -1.

    Pairs come grouped by `left`: its set is put in a hash table once, and each partner is looked up in it until the
    misses rule the threshold out.
    """
    largest = 0
    for k in range(left.size):
        row = rows_a[left[k]]
        largest = max(largest, offsets_a[row + 1] - offsets_a[row])
    size = 1 << table_bits(largest)
    table = np.empty(size, values_a.dtype)
    owner = np.full(size, NOBODY)
    down = np.uint64(0)
    mask = np.uint64(0)
    last = np.int64(-1)
    for k in range(left.size):
        a = np.int64(left[k])
        start_a = offsets_a[rows_a[a]]
        stop_a = offsets_a[rows_a[a] + 1]
        start_b = offsets_b[rows_b[right[k]]]
        stop_b = offsets_b[rows_b[right[k]] + 1]
        size_a = stop_a - start_a
        size_b = stop_b - start_b
        least = least_overlap(measure, p, q, threshold, size_a, size_b)
        out[k] = -1.0
        if a != last:
            last = a
            bits = table_bits(size_a)
            down = np.uint64(64 - bits)
            mask = np.uint64((1 << bits) - 1)
            for i in range(start_a, stop_a):
                slot = (np.uint64(values_a[i]) * TABLE_ODD) >> down
                while owner[slot] == a:
                    slot = (slot + np.uint64(1)) & mask
                owner[slot] = a
                table[slot] = values_a[i]
        spare = size_b - least
        for start in range(start_b, min(start_b + STRIDE, stop_b)):
            for i in range(start, stop_b, STRIDE):
                token = values_b[i]
                slot = (np.uint64(token) * TABLE_ODD) >> down
                while owner[slot] == a and table[slot] != token:
                    slot = (slot + np.uint64(1)) & mask
                spare -= np.int64(owner[slot] != a)
            if spare < 0:
                break
        if spare >= 0:
            out[k] = similarity_of(measure, spare + least, size_a, size_b)
