"""The tables of a stored index, sorted keys with their postings, and queries: candidates, verified, the best kept.

A table has the same number of entries in each of its bands. The entries of a band ascend by key; `starts` says where
the entries begin whose keys have the same highest bits, so that a key is found in one step, whatever the number of
entries. One call answers many queries over all segments. Arrays of the index are given by their addresses (see
intrinsics.py); a number that points outside of them, as in a damaged file, is passed over.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.hashing import U0, U32
from likewise.kernels.hashtable import enter_set, owned_table, spared, spread
from likewise.kernels.intrinsics import chunk_of, octets, words32, words64
from likewise.kernels.overlap import CONTAINMENT, JACCARD, least_overlap, overlap_for, similarity_of
from likewise.kernels.pairs import rise, sink
from likewise.kernels.sorting import sort_pairs, sort_values

(
    KEYS, SETS, STARTS, ENTRIES, BITS,
    SHINGLES, OWNERS, SHINGLE_STARTS, SHINGLE_ENTRIES, SHINGLE_BITS,
    UNITS, FIRST_UNIT, ROWS, FIRST_ROW, GROUPS, MEMBERS, DEAD,
) = range(17)  # fmt: skip
"""What the columns of the table of segments hold: addresses, sizes and first numbers; 0 for what is not there."""
SEGMENT_FIELDS = 17

CHUNK_UNIT, CHUNK_UNITS, CHUNK_OFFSETS, CHUNK_VALUES, CHUNK_COUNT, CHUNK_BYTES = range(6)
"""What the columns of the table of chunks hold: first set, how many, addresses, elements, bytes of an element."""
CHUNK_FIELDS = 6

CROWD = 256
"""More candidates than this are compared in the order of the bands that they share with the query, most first."""


class IndexQueries(NamedTuple):
    """Sets to look up, and their band keys, one row per set."""

    values: Any
    offsets: Any
    keys: Any


class IndexTables(NamedTuple):
    """The segments and the chunks of an index, one row each."""

    segments: Any
    chunks: Any


class IndexAim(NamedTuple):
    """What is looked for: the measure, the threshold, which is p/q, the most answers of a query (0: all), and by the
    number of shared bands, a similarity above which hardly any set shares no more."""

    measure: int
    p: int
    q: int
    best: int
    sure: Any


class IndexHits(NamedTuple):
    """Room for answers: which query, which row of the index, how similar."""

    query: Any
    row: Any
    similarity: Any


@kernel
def shingle_keys(values, out):
    """out[i] = the key of an element in the table of shingles: 32 of its bits, scrambled."""
    for i in range(values.size):
        out[i] = np.uint32(spread(np.uint64(values[i])) >> U32)


@inner
def stretch(keys, starts, entries, bits, key):
    """Return where the entries of a key begin and end in a band of a table."""
    place = np.int64(key >> np.uint32(32 - bits))
    high = min(np.int64(starts[place + 1]), entries)
    low = first_key(keys, min(np.int64(starts[place]), high), high, key)
    return low, after_key(keys, low, high, key)


@making
def by_bands(queries, i, segment, found, lows, highs):
    """Collect the sets of a segment that share a band with query i, with repetitions; also return the room, if new."""
    bands = queries.keys.shape[1]
    entries = segment[ENTRIES]
    if entries == 0:
        return found, 0
    directory = (np.int64(1) << segment[BITS]) + 1
    keys = words32(segment[KEYS], bands * entries)
    sets = words32(segment[SETS], bands * entries)
    starts = words32(segment[STARTS], bands * directory)
    total = 0
    for band in range(bands):
        mine = keys[band * entries : (band + 1) * entries]
        begins = starts[band * directory : (band + 1) * directory]
        low, high = stretch(mine, begins, entries, segment[BITS], queries.keys[i, band])
        lows[band], highs[band] = low + band * entries, high + band * entries
        total += high - low
    if total > found.size:
        found = np.empty(2 * total, np.uint32)
    n = 0
    for band in range(bands):
        for place in range(lows[band], highs[band]):
            found[n] = sets[place]
            n += 1
    return found, n


@making
def by_shingles(queries, i, segment, aim, found, lengths, lows):
    """Collect the sets that have one of the rarest shingles of query i, so many that no set with enough has none.

    A set that contains at least c of a shingles misses at most a − c: it has one of any a − c + 1.
    """
    entries = segment[SHINGLE_ENTRIES]
    if entries == 0:  # all sets of the segment are empty, and it has no such table
        return found, 0
    keys = words32(segment[SHINGLES], entries)
    sets = words32(segment[OWNERS], entries)
    starts = words32(segment[SHINGLE_STARTS], (np.int64(1) << segment[SHINGLE_BITS]) + 1)
    first = queries.offsets[i]
    size = queries.offsets[i + 1] - first
    for j in range(size):
        key = np.uint32(spread(np.uint64(queries.values[first + j])) >> U32)
        low, high = stretch(keys, starts, entries, segment[SHINGLE_BITS], key)
        lengths[j] = high - low
        lows[j] = low
    looked = size - least_overlap(aim.measure, aim.p, aim.q, 0.0, size, 1) + 1
    sort_pairs(lengths, lows, size, looked)
    total = 0
    for j in range(looked):
        total += lengths[j]
    if total > found.size:
        found = np.empty(2 * total, np.uint32)
    n = 0
    for j in range(looked):
        for place in range(lows[j], lows[j] + lengths[j]):
            found[n] = sets[place]
            n += 1
    return found, n


@inner
def distinct_sorted(found, n, times):
    """Sort numbers and drop repetitions; times[i] says how often number i was there. Return how many are left."""
    sort_values(found, n)
    count = 0
    for i in range(n):
        if count > 0 and found[count - 1] == found[i]:
            times[count - 1] += 1
        else:
            found[count] = found[i]
            times[count] = 1
            count += 1
    return count


@making
def often_first(found, times, n, bands, ordered, ordered_times):
    """Write the numbers in the order of how often they were found, most often first, stably."""
    places = np.zeros(bands + 2, np.int64)
    for i in range(n):
        times[i] = min(times[i], np.int32(bands))
        places[bands - times[i] + 1] += 1
    for c in range(1, bands + 2):
        places[c] += places[c - 1]
    for i in range(n):
        place = places[bands - times[i]]
        ordered[place], ordered_times[place] = found[i], times[i]
        places[bands - times[i]] += 1


@inner
def contained(wanted, first, last, values, spare):
    """Return `spare` less the number of wanted[first:last] that are not among the ascending values; it may stop
    below 0.
    """
    for i in range(first, last):
        value = wanted[i]
        low = 0
        high = values.size
        while low < high:
            middle = (low + high) >> 1
            if np.uint64(values[middle]) < value:
                low = middle + 1
            else:
                high = middle
        if low == values.size or np.uint64(values[low]) != value:
            spare -= 1
            if spare < 0:
                break
    return spare


@inner
def shared_with(queries, i, values, least, aim, table, owner, down, mask):
    """Return how many elements query i shares with a set, if at least as many as needed; else a negative number."""
    first = queries.offsets[i]
    last = queries.offsets[i + 1]
    if aim.measure == CONTAINMENT:
        spare = contained(queries.values, first, last, values, last - first - least)
    else:
        stop = np.int64(values.size)
        spare = spared(values, np.int64(0), stop, i, table, owner, down, mask, stop - least)
    return spare + least if spare >= 0 else np.int64(-1)


@making
def keep_rows(unit, segment, similarity, query, aim, hits, begin, written):
    """Note the rows of a set that are not removed as answers; return the new number of answers, room or no room."""
    low = unit
    high = unit + 1
    if segment[GROUPS] != 0:
        groups = words32(segment[GROUPS], segment[UNITS] + 1)
        low = np.int64(groups[unit])
        high = min(np.int64(groups[unit + 1]), segment[ROWS])
    members = words32(segment[MEMBERS], segment[ROWS] if segment[MEMBERS] != 0 else np.int64(0))
    dead = octets(segment[DEAD], (segment[ROWS] + 7) // 8 if segment[DEAD] != 0 else np.int64(0))
    for place in range(low, high):
        row = np.int64(members[place]) if members.size else np.int64(place)
        if row >= segment[ROWS] or (dead.size and (dead[row >> 3] >> np.uint8(row & 7)) & np.uint8(1)):
            continue
        number = segment[FIRST_ROW] + row
        if aim.best > 0 and written - begin == aim.best:
            worst = hits.similarity[begin]
            if worst > similarity or (worst == similarity and hits.row[begin] < number):
                break  # rows of a set ascend: none of the others is better
            hits.similarity[begin], hits.row[begin] = similarity, number
            sink(hits.similarity[begin:written], hits.row[begin:written], aim.best)
            continue
        if written < hits.row.size:
            hits.query[written], hits.row[written], hits.similarity[written] = query, number, similarity
            if aim.best > 0:
                rise(hits.similarity[begin : written + 1], hits.row[begin : written + 1], written - begin)
        written += 1
    return written


@kernel
def answer(queries, first, last, tables, aim, hits):
    """Answer the queries first to last; return the next query, the answers written, and the room that it needs.

    Stops before a query whose answers do not fit. With aim.best, the answers of a query are a heap.
    """
    segments, chunks = tables.segments, tables.chunks
    largest = np.int64(1)
    for i in range(first, last):
        largest = max(largest, queries.offsets[i + 1] - queries.offsets[i])
    table, owner = owned_table(largest)
    bands = queries.keys.shape[1]
    lows, highs = np.empty(max(bands, largest), np.int64), np.empty(max(bands, largest), np.int64)
    found, times = np.empty(1024, np.uint32), np.empty(1024, np.int32)
    written = np.int64(0)
    for i in range(first, last):
        size = queries.offsets[i + 1] - queries.offsets[i]
        begin = written
        if aim.best > hits.row.size - written:
            return i, written, np.int64(aim.best)
        if aim.measure == CONTAINMENT and size == 0:
            continue
        down, mask, entered = U0, U0, False
        for s in range(segments.shape[0]):
            segment = segments[s]
            if aim.measure == CONTAINMENT:
                found, n = by_shingles(queries, i, segment, aim, found, highs, lows)
            else:
                found, n = by_bands(queries, i, segment, found, lows, highs)
            if n == 0:
                continue
            if times.size < found.size:
                times = np.empty(found.size, np.int32)
            n = distinct_sorted(found, n, times)
            crowded = n > CROWD and aim.best > 0 and aim.measure == JACCARD
            if crowded:
                some, often = np.empty(n, np.uint32), np.empty(n, np.int32)
                often_first(found, times, n, bands, some, often)
                found[:n], times[:n] = some, often
            if not entered and aim.measure == JACCARD:
                entered = True
                down, mask = enter_set(queries.values, queries.offsets[i], queries.offsets[i + 1], i, table, owner)
            for c in range(n):
                unit = np.int64(found[c])
                full = aim.best > 0 and written - begin == aim.best
                if crowded and full and hits.similarity[begin] >= aim.sure[times[c]]:
                    break
                if unit >= segment[UNITS]:
                    continue
                chunk = chunks[chunk_of(chunks, segment[FIRST_UNIT] + unit)]
                place = segment[FIRST_UNIT] + unit - chunk[CHUNK_UNIT]
                if place >= chunk[CHUNK_UNITS]:
                    continue
                offsets = words64(chunk[CHUNK_OFFSETS], chunk[CHUNK_UNITS] + 1)
                low = np.int64(offsets[place])
                high = np.int64(offsets[place + 1])
                if low < 0 or low > high or high > chunk[CHUNK_COUNT]:
                    continue
                least = least_overlap(np.int64(aim.measure), aim.p, aim.q, 0.0, size, high - low)
                if full:
                    least = max(least, overlap_for(aim.measure, hits.similarity[begin], size, high - low))
                if min(size, high - low) < least:
                    continue
                if chunk[CHUNK_BYTES] == 8:
                    wide = words64(chunk[CHUNK_VALUES] + 8 * low, high - low)
                    shared = shared_with(queries, i, wide, least, aim, table, owner, down, mask)
                else:
                    narrow = words32(chunk[CHUNK_VALUES] + 4 * low, high - low)
                    shared = shared_with(queries, i, narrow, least, aim, table, owner, down, mask)
                if shared >= 0:
                    similarity = 1.0
                    if size + high - low > 0:
                        similarity = similarity_of(np.int64(aim.measure), shared, size, high - low)
                    written = keep_rows(unit, segment, similarity, i, aim, hits, begin, written)
        if written > hits.row.size:
            return i, begin, written - begin
    return last, written, np.int64(0)


GONE = np.uint32(0xFFFFFFFF)
"""The new number of a set that is left out of a merged table."""


@kernel
def fill_starts(keys, bits, starts):
    """starts[band, d] = the first entry of the band whose key has highest bits of at least d; the last is their end."""
    down = np.uint32(32 - bits)
    for band in range(keys.shape[0]):
        at = 0
        for i in range(keys.shape[1]):
            while at <= np.int64(keys[band, i] >> down):
                starts[band, at] = i
                at += 1
        while at < starts.shape[1]:
            starts[band, at] = keys.shape[1]
            at += 1


@kernel
def merge_entries(keys_a, sets_a, map_a, keys_b, sets_b, map_b, keys, sets):
    """Merge two bands of sorted entries and renumber their sets, leaving out those that are GONE; return how many."""
    i, j, written = 0, 0, 0
    while i < keys_a.size or j < keys_b.size:
        if j == keys_b.size or (i < keys_a.size and keys_a[i] <= keys_b[j]):
            key = keys_a[i]
            new = map_a[sets_a[i]]
            i += 1
        else:
            key = keys_b[j]
            new = map_b[sets_b[j]]
            j += 1
        if new != GONE:
            keys[written], sets[written] = key, new
            written += 1
    return written


@kernel
def sort_sets(values, offsets):
    """Sort the elements of every set of a ragged array."""
    for i in range(offsets.size - 1):
        sort_values(values[offsets[i] : offsets[i + 1]], offsets[i + 1] - offsets[i])


@kernel
def put_rows(order, offsets, members):
    """Write row r to the place offsets[order[r]] of its group and move the place on: a counting sort of rows."""
    for row in range(order.size):
        group = order[row]
        members[offsets[group]] = row
        offsets[group] += 1


@inner
def first_key(keys, low, high, key):
    """Return the first place in keys[low:high], which ascend, whose key is not below this one."""
    while high - low > 8:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    while low < high and keys[low] < key:
        low += 1
    return low


@inner
def after_key(keys, low, high, key):
    """Return the first place in keys[low:high], which ascend, whose key is above this one; runs may be long."""
    step = 1
    while low < high and keys[low] == key:
        if low + step < high and keys[low + step] == key:
            low += step
            step *= 2
        else:
            low += 1
            step = max(1, step // 2)
    return low
