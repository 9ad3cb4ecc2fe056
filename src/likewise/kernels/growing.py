"""An index of prefixes that grows: sets are asked about and added one by one."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.hashtable import numbered_slot, table_bits
from likewise.kernels.overlap import least_overlap
from likewise.kernels.sets import differing_bits


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
