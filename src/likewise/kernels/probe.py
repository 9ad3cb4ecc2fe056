"""All true neighbours of a sample, found exactly in one pass over the documents.

Of a sample set A only |A| − c + k elements are entered, where c is the least overlap that similarity θ needs: whoever
has fewer than k of them shares fewer than c elements with A. With k well above 1 common phrases do no harm. A filter
of bits answers for nearly all shingles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, U6, U63, mix
from likewise.kernels.hashtable import NOBODY, TABLE_ODD, largest_set, owned_slot, owned_table, slot_of, slot_range
from likewise.kernels.sets import HUGE, distinct


class SampleIndex(NamedTuple):
    """The sets of a sample and the index of their rarest elements; an `entries` of size 1 means no sample.

    The filter has 2**(64 - down) words. Element entries[s] is in the sets owners[starts[s]:starts[s + 1]]; a document
    is compared with set i if it has needs[i] of its indexed elements. The values of a set are in order, the rarest
    first. Documents are numbered from `first`, and only one in so many counts, by a hash of its number.
    """

    bits: Any
    down: Any
    entries: Any
    starts: Any
    owners: Any
    needs: Any
    values: Any
    offsets: Any
    threshold: float
    first: Any
    one_in: Any


class Hits(NamedTuple):
    """Room for neighbours: which set of the sample, which document of the batch, how similar."""

    sample: Any
    document: Any
    similarity: Any


@kernel
def enter(values, entries, bits, down):
    """Put values in the hash table `entries`, a power of two of zeros, and in the filter."""
    for x in values:
        h = x * TABLE_ODD
        bits[h >> down] |= U1 << ((h >> U6) & U63)
        entries[slot_of(entries, x)] = x


@inner
def counted(sample, document):
    """Tell whether a document of the batch counts."""
    return sample.one_in <= U1 or mix(sample.first + np.uint64(document)) % sample.one_in == U0


@inner
def meet(values, n, sample, seen, tally, stamp, met):
    """Write the sets of the sample that have enough entered elements among these values; return how many.

    A value that is there twice counts twice, which may only give a set too many.
    """
    count = 0
    for i in range(n):
        x = np.uint64(values[i])
        h = x * TABLE_ODD
        if (sample.bits[h >> sample.down] >> ((h >> U6) & U63)) & U1:
            slot = slot_of(sample.entries, x)
            if sample.entries[slot] != U0:
                for j in range(sample.starts[slot], sample.starts[slot + U1]):
                    s = sample.owners[j]
                    if seen[s] != stamp:
                        seen[s] = stamp
                        tally[s] = 0
                    tally[s] += 1
                    if tally[s] == sample.needs[s]:
                        met[count] = s
                        count += 1
    return count


@kernel
def meetings(sample, looked):
    """Count how many other sets of the sample its first `looked` sets meet, all together."""
    sets = sample.offsets.size - 1
    seen = np.full(sets, NOBODY)
    tally, met = np.zeros(sets, np.int32), np.empty(sets, np.int32)
    total = 0
    for i in range(looked):
        part = sample.values[sample.offsets[i] : sample.offsets[i + 1]]
        total += max(0, meet(part, part.size, sample, seen, tally, i, met) - 1)
    return total


@inner
def neighbours(values, n, sample, met, count, table, owner, stamp, room, document, hits, written):
    """Append those of the sets met whose similarity with the document reaches the threshold; return the new number.

    `table` and `owner` are a hash table with space for the document, `room` space for its distinct elements.
    """
    size = distinct(values, n, table, owner, stamp, room)
    down, mask = slot_range(n)
    for m in range(count):
        s = met[m]
        first = sample.offsets[s]
        own = sample.offsets[s + 1] - first
        if min(own, size) < sample.threshold * max(own, size) - 1.0:
            continue
        lacking = own - (sample.threshold / (1.0 + sample.threshold) * (own + size) - 1.0)  # and room for rounding
        shared, i = 0, first
        while i < first + own and i - first - shared <= lacking:
            slot = owned_slot(sample.values[i], stamp, table, owner, down, mask)
            if owner[slot] == stamp:
                shared += 1
            i += 1
        if i < first + own:
            continue
        similarity = shared / (own + size - shared)
        if similarity >= sample.threshold:
            hits.sample[written], hits.document[written], hits.similarity[written] = s, document, similarity
            written += 1
    return written


@kernel
def probe_sets(values, offsets, sample, hits):
    """Find the neighbours of the sample among these sets; return how many sets were looked at, and how many hits.

    Stops before the set whose hits may not fit.
    """
    sets = sample.offsets.size - 1
    largest = largest_set(offsets)
    seen = np.full(sets, NOBODY)
    tally, met = np.zeros(sets, np.int32), np.empty(sets, np.int32)
    table, owner = owned_table(min(largest, HUGE))
    room = np.empty(largest, np.uint64)
    written = np.int64(0)
    for i in range(offsets.size - 1):
        if written + sets > hits.sample.size:
            return i, written
        part = values[offsets[i] : offsets[i + 1]]
        if 0 < part.size <= HUGE and counted(sample, i):
            count = meet(part, part.size, sample, seen, tally, i, met)
            if count:
                written = neighbours(part, part.size, sample, met, count, table, owner, i, room, i, hits, written)
    return offsets.size - 1, written
