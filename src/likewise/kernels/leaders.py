"""The walk over crowds: each row is compared with the leaders before it, by the heavy values that both have.

Leaders are kept in lists, the latest first: a list is a chain of chunks of CHUNK entries. Every crowd has a list for
each of SHELVES ranges of `lack`, and one for each of its rare heavy values.
"""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.crowds import SLACK
from likewise.kernels.hashing import U0, U1, U32
from likewise.kernels.overlap import JACCARD, least_overlap
from likewise.kernels.sets import U63, differing_bits
from likewise.kernels.sorting import first_from

CHUNK = 14
"""Entries of a chunk: with its two links it fills a cache line."""
SHELVES = 32
"""Lists of a crowd by `lack`: a row is compared only with shelves that are low enough."""
FAVOURITES = 16
"""Leaders of a crowd that most rows were found similar to; a row is compared with them first."""

NORMAL, FORCED, PROBE = 0, 1, 2
"""Roles of rows: compared and then a leader if nothing was found; always a leader, never compared; never a leader."""


@inner
def similar_maps(a, b, sizes, heavy, maps, p, q):
    """Return whether the heavy values of two members suffice, as far as the bitmaps tell."""
    least = least_overlap(np.int64(JACCARD), p, q, 0.0, sizes[a], sizes[b])
    return heavy[a] + heavy[b] - differing_bits(maps[a], maps[b]) >= 2 * least


@inner
def allowed_pair(a, b, banned):
    """Return whether a pair was not refuted before."""
    if banned.size == 0:
        return True
    word = (np.uint64(a) << U32) | np.uint64(b)
    place = first_from(banned, word)
    return place == banned.size or banned[place] != word


@inner
def push(chain, heads, pool, used, m):
    """Put a member at the front of a chain. pool[k]: the chunk before, the number of entries, the entries."""
    k = heads[chain]
    if k < 0 or pool[k, 1] == CHUNK:
        new = used[0]
        used[0] += 1
        pool[new, 0] = k
        pool[new, 1] = 0
        heads[chain] = new
        k = new
    pool[k, 2 + pool[k, 1]] = m
    pool[k, 1] += 1


@inner
def enlist(m, c, bases, rare_bits, maps, shelf, heads, pool, used):
    """Put a member in the lists of its crowd."""
    push(bases[c] + shelf[m], heads, pool, used, m)
    bit = 0
    while bit < rare_bits[c]:
        word = maps[m, bit >> 6] >> (np.uint64(bit) & U63)
        if word == U0:
            bit = ((bit >> 6) + 1) << 6
            continue
        if word & U1:
            push(bases[c] + SHELVES + bit, heads, pool, used, m)
        bit += 1


@kernel
def walk(
    first,
    order,
    everyone,
    role,
    starts,
    partners,
    leads,
    place,
    crowds,
    active,
    exact,
    sizes,
    heavy,
    maps,
    lack,
    shelf,
    rare_lack,
    bases,
    rare_bits,
    lowest,
    width,
    kinds,
    kind_found,
    kind_seen,
    numbers,
    counted,
    favourites,
    hits,
    heads,
    pool,
    used,
    shared,
    banned,
    p,
    q,
    income,
    purse,
    slice_cost,
    most_pairs,
    spent,
    listed,
    out_left,
    out_right,
    facts,
):
    """Walk the rows in order; one that no earlier leader is similar to becomes a leader. Return the next place.

    everyone: every row is a leader, and all pairs are written, until a crowd c has more than most_pairs[c] or has cost
    spent[c] > income · rows; then active[c] is cleared. Otherwise a row that follows a leader is written once, with it.
    starts, partners: for each row the earlier rows it is known to be similar to. place: the member that a row is, or
    -1. Of a member: crowd, size, heavy values, bitmap, lack (> 0: not compared), its shelf by `rare_lack`, and kind:
    members of one kind have equal bitmaps and sizes, so what was found for one holds for all where maps are exact.
    The work is at most `income` a row on average, plus the purse; rows beyond it are not compared with all leaders
    (facts[1] counts them). Stops after about `slice_cost`, or when the room in the pool or the output may not suffice.
    """
    written = 0
    cost = 0
    touched = np.empty(shared.size, np.int32)
    words = maps.shape[1]
    test = 2 + words // 2
    x = first
    while x < order.size:
        if cost > slice_cost or (not everyone and written == out_left.size):
            break
        i = order[x]
        m = place[i]
        if not everyone:
            follows = False
            if role[i] != FORCED:
                for e in range(starts[i], starts[i + 1]):
                    if leads[partners[e]]:
                        follows = True
                        break
            leads[i] = not follows and role[i] != PROBE
            if follows:
                x += 1
                continue
        if m < 0 or not active[crowds[m]] or lack[m] > SLACK:
            x += 1
            continue
        c = crowds[m]
        need = 2 + rare_bits[c]
        if used[0] + need > pool.shape[0] or (everyone and written + counted[c] > out_left.size):
            break
        found = -1
        work = 0
        kind = kinds[m]
        if role[i] != FORCED:
            since = 0
            room = max(income, purse[0])
            if not everyone:
                b = kind_found[kind]
                if b >= 0 and allowed_pair(m, b, banned):
                    found = b
                since = kind_seen[kind]
                if found < 0 and since == 0:
                    for f in range(FAVOURITES):
                        b = favourites[c, f]
                        if b < 0:
                            break
                        work += test
                        if similar_maps(m, b, sizes, heavy, maps, p, q) and allowed_pair(m, b, banned):
                            found = b
                            hits[c, f] += 1
                            break
            # Leaders that must share a rare heavy value with this row.
            n = 0
            bit = 0
            while found < 0 and bit < rare_bits[c] and work < room:
                word = maps[m, bit >> 6] >> (np.uint64(bit) & U63)
                if word == U0:
                    bit = ((bit >> 6) + 1) << 6
                    continue
                if word & U1:
                    k = heads[bases[c] + SHELVES + bit]
                    while k >= 0:
                        for e in range(1 + pool[k, 1], 1, -1):
                            b = pool[k, e]
                            if shared[b] == 0:
                                touched[n] = b
                                n += 1
                            shared[b] += np.uint16(1)
                        work += 1 + pool[k, 1]
                        if since > 0 and numbers[pool[k, 2]] < since:
                            break
                        k = pool[k, 0]
                bit += 1
            for t in range(n):
                b = touched[t]
                common = shared[b]
                shared[b] = 0
                if found >= 0 and not everyone:
                    continue
                least = rare_lack[m] + rare_lack[b]
                if least > SLACK and common >= least - SLACK:
                    work += test
                    if similar_maps(m, b, sizes, heavy, maps, p, q) and allowed_pair(m, b, banned):
                        found = b
                        if everyone:
                            out_left[written] = b
                            out_right[written] = m
                            written += 1
            # Leaders that need not.
            for s in range(SHELVES):
                if (found >= 0 and not everyone) or work >= room:
                    break
                if lowest[c] + s * width[c] > SLACK - rare_lack[m]:
                    break
                k = heads[bases[c] + s]
                while k >= 0 and work < room and (found < 0 or everyone):
                    for e in range(1 + pool[k, 1], 1, -1):
                        b = pool[k, e]
                        if rare_lack[m] + rare_lack[b] > SLACK:
                            continue
                        work += test
                        if similar_maps(m, b, sizes, heavy, maps, p, q) and allowed_pair(m, b, banned):
                            found = b
                            if not everyone:
                                break
                            out_left[written] = b
                            out_right[written] = m
                            written += 1
                    if since > 0 and numbers[pool[k, 2]] < since:
                        break
                    k = pool[k, 0]
            cost += 1 + work
            spent[c] += 1 + work
            purse[0] += income - work
            if everyone:
                listed[c] = listed[c] + (written - facts[0])
                facts[0] = written
                if listed[c] > most_pairs[c] or work >= room:
                    active[c] = False
                    x += 1
                    continue
            elif found >= 0:
                if kind_found[kind] < 0 and exact[c]:
                    kind_found[kind] = found
                out_left[written] = found
                out_right[written] = m
                written += 1
                leads[i] = False
                remember(c, found, favourites, hits)
                x += 1
                continue
            elif work >= room:
                facts[1] += 1
            elif exact[c]:
                kind_seen[kind] = counted[c]
        else:
            cost += 1
        if role[i] != PROBE:
            numbers[m] = counted[c]
            counted[c] += 1
            enlist(m, c, bases, rare_bits, maps, shelf, heads, pool, used)
        x += 1
    facts[0] = written
    return x


@inner
def remember(c, b, favourites, hits):
    """Make a leader one of the favourites of its crowd, in place of the one that was found least often."""
    worst = 0
    for f in range(FAVOURITES):
        if favourites[c, f] == b:
            return
        if favourites[c, f] < 0:
            favourites[c, f] = b
            hits[c, f] = 1
            return
        if hits[c, f] < hits[c, worst]:
            worst = f
    favourites[c, worst] = b
    hits[c, worst] = 1
