"""Sets as strings of their rarest symbols, for exact joins: what one pass over the sets teaches, and their prefixes.

A *string* is what a join knows of a set: the first symbols of its prefix, rarest first, each with its position.
Symbols that no other set has take a position and are not written.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.hashing import U16, U32, U48, U58, mix
from likewise.kernels.hashtable import TABLE_ODD, slot_of, spread, table_bits
from likewise.kernels.sorting import FEW, is_before, sort_pairs

SAMPLE_ODD = np.uint64(0x9FB21C651E98DF25)
MOST = np.uint16(65535)
U61 = np.uint64(61)


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
            code = spread(token)
            slot = code >> down
            seen = counts[slot]
            counts[slot] = seen + np.uint16(seen != MOST)
            bit = (code >> U32) & mask
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
def count_own(values, offsets, rows, part, counts, own):
    """Count the symbols of these sets that no other has, of an eighth of all hashes: `part`, from 0 to 7.

    Symbols with the same slot are counted together, so that some may be missed.
    """
    down = np.uint64(64 - table_bits(counts.size // 2))
    for again in range(2):
        for r in range(rows.size):
            alone = 0
            for j in range(offsets[rows[r]], offsets[rows[r] + 1]):
                token = np.uint64(values[j])
                if (token * SAMPLE_ODD) >> U61 != part:
                    continue
                slot = spread(token) >> down
                if again == 1:
                    alone += counts[slot] == 1
                elif counts[slot] < 2:
                    counts[slot] += 1
            own[r] = alone


@kernel
def with_symbols(values, offsets, rows, table, least, out):
    """Write which of these sets have `least` symbols that are in a table; 0, which marks free slots, counts as one."""
    for r in range(rows.size):
        there = 0
        for j in range(offsets[rows[r]], offsets[rows[r] + 1]):
            token = np.uint64(values[j])
            if table[slot_of(table, token)] == token:
                there += 1
                if there == least:
                    break
        out[r] = there >= least


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
    keys, tokens = np.empty(largest, np.uint64), np.empty(largest, np.uint64)
    written = 0
    out_offsets[0] = 0
    for r in range(rows.size):
        start = offsets[rows[r]]
        size = offsets[rows[r] + 1] - start
        p = prefix[r]
        n = np.int64(0)
        few = p <= FEW
        for j in range(start, start + size):
            token = np.uint64(values[j])
            key = (np.uint64(counts[spread(token) >> down]) << U48) | ((token * TABLE_ODD) >> U16)
            if not few:
                keys[n], tokens[n] = key, token
                n += 1
                continue
            if n == p:
                if not is_before(key, token, keys[n - 1], tokens[n - 1]):
                    continue
                n -= 1
            place = n
            while place > 0 and is_before(key, token, keys[place - 1], tokens[place - 1]):
                keys[place], tokens[place] = keys[place - 1], tokens[place - 1]
                place -= 1
            keys[place], tokens[place] = key, token
            n += 1
        if not few:
            sort_pairs(keys, tokens, n, p)
        for j in range(min(p, size)):
            if keys[j] >> U48 >= least:
                symbols[written] = tokens[j]
                positions[written] = j
                written += 1
        out_offsets[r + 1] = written
    return written
