"""The walk over crowds: each row is compared with the leaders before it, by the heavy values that both have.

Leaders are numbered crowd by crowd, in the order in which they became leaders, and what a comparison reads lies
together in a record of each. They are kept in lists, the latest first: a list is a chain of chunks of CHUNK entries.
Every crowd has a list for each of SHELVES ranges of `rare_lack`, and CLASSES lists for each of its rare heavy values:
one for leaders of each wider range. Rows that must share r of these values at least share one of all but the last r - 1
that either has, in the order of their frequency: a row is entered and looked up under these only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.crowds import SLACK
from likewise.kernels.hashing import U0, U1, U32, U63
from likewise.kernels.intrinsics import ones
from likewise.kernels.sorting import first_from

CHUNK = 14
"""Entries of a chunk: with its two links it fills a cache line."""
SHELVES = 32
"""Lists of a crowd by `rare_lack`: a row is compared only with shelves that are low enough."""
CLASSES = 16
"""Lists of a rare heavy value: the more a row and the leaders of a list lack, the fewer lists are looked up."""
FAVOURITES = 16
"""Leaders of a crowd that most rows were found similar to; a row is compared with them first."""
HEAD = 2
"""Words of a record before the bitmap: size and number of heavy values; member."""
LOW = np.uint64(0xFFFFFFFF)

NORMAL, FORCED, PROBE = 0, 1, 2
"""Roles of rows: compared and then a leader if nothing was found; always a leader, never compared; never a leader."""


class WalkRows(NamedTuple):
    """All rows, the most preferred first in `order`, and what is known of them."""

    order: Any
    role: Any
    place: Any  # the member that a row is, or -1
    starts: Any
    partners: Any  # for each row, the earlier rows that it is known to be similar to
    leads: Any  # whether a row is a leader
    banned: Any  # pairs (member, leader), packed and sorted, that turned out not to be similar


class Members(NamedTuple):
    """The members of crowds."""

    crowds: Any
    kinds: Any  # equal for members of one crowd with equal bitmaps and sizes
    sizes: Any
    heavy: Any  # the number of heavy values
    maps: Any
    lack: Any  # above 0: similar to nobody by heavy values alone
    rare_lack: Any  # two similar members share at least the sum of theirs of rare heavy values
    needs: Any  # that times 2(p + q), where p/q is the threshold: whole numbers
    shelf: Any


class Crowds(NamedTuple):
    """The crowds: their shape, and what the walk has found and spent in each."""

    exact: Any  # whether every heavy value has a bit of its own
    rare_bits: Any
    bases: Any  # the first list
    first: Any  # the number of the first leader
    lowest: Any
    width: Any  # least rare_lack, and the width of a shelf
    most_pairs: Any
    active: Any
    counted: Any  # leaders
    listed: Any
    favourites: Any
    hits: Any


class Leaders(NamedTuple):
    """The records of leaders, their lists, and what was found for each kind of member."""

    records: Any
    lacks: Any  # `needs` of each
    heads: Any
    pool: Any  # each chunk: the chunk before, the number of entries, the entries
    used: Any
    marked: Any  # shares a rare heavy value with the present row; zero between rows
    kind_found: Any  # the leader that one of this kind was found similar to, or -1
    kind_seen: Any  # the number of leaders that one of this kind was found not to be similar to


@inner
def write_record(record, m, members):
    """Write what comparisons read of a member."""
    record[0] = (np.uint64(members.sizes[m]) << U32) | np.uint64(members.heavy[m])
    record[1] = np.uint64(m)
    for i in range(members.maps.shape[1]):
        record[HEAD + i] = members.maps[m, i]


@inner
def similar_records(own, records, b, p, q):
    """Return whether the heavy values of two members suffice for p/q, as far as the bitmaps tell."""
    differing = np.int64(0)
    for i in range(HEAD, own.size):
        differing += ones(own[i] ^ records[b, i])
    both = own[0] + records[b, 0]
    shared = (np.int64(both & LOW) - differing) >> 1
    return shared * (p + q) >= p * np.int64(both >> U32)


@inner
def member_of(records, b):
    """Return the member that a leader is."""
    return np.int64(records[b, 1])


@inner
def allowed_pair(m, b, banned):
    """Return whether a pair of members was not refuted before."""
    if banned.size == 0:
        return True
    word = (np.uint64(m) << U32) | np.uint64(b)
    place = first_from(banned, word)
    return place == banned.size or banned[place] != word


@inner
def similar_leader(own, m, b, leaders, banned, p, q):
    """Return whether a member follows a leader."""
    if not similar_records(own, leaders.records, b, p, q):
        return False
    return allowed_pair(m, member_of(leaders.records, b), banned)


@inner
def push(chain, heads, pool, used, b):
    """Put a leader at the front of a chain."""
    k = heads[chain]
    if k < 0 or pool[k, 1] == CHUNK:
        new = used[0]
        used[0] += 1
        pool[new, 0] = k
        pool[new, 1] = 0
        heads[chain] = new
        k = new
    pool[k, 2 + pool[k, 1]] = b
    pool[k, 1] += 1


@inner
def rare_values(own, rare_bits, values):
    """Write the rare heavy values of a row, the rarest first; return how many."""
    n, bit = 0, 0
    while bit < rare_bits:
        word = own[HEAD + (bit >> 6)] >> (np.uint64(bit) & U63)
        if word == U0:
            bit = ((bit >> 6) + 1) << 6
            continue
        if word & U1:
            values[n] = bit
            n += 1
        bit += 1
    return n


@inner
def prefix_of(count, lack):
    """Return by how many of `count` values rows must be found that share more than lack - 1 of them."""
    must = np.int64(np.ceil(lack - SLACK))
    return count - (must - 1) if must > 1 else count


@making
def enlist(own, m, c, values, count, members, crowds, leaders):
    """Make a member a leader of its crowd. values: its rare heavy values, `count` of them."""
    b = crowds.first[c] + crowds.counted[c]
    crowds.counted[c] += 1
    leaders.records[b] = own
    leaders.lacks[b] = members.needs[m]
    base = crowds.bases[c]
    push(base + members.shelf[m], leaders.heads, leaders.pool, leaders.used, b)
    base += SHELVES + members.shelf[m] * CLASSES // SHELVES
    for t in range(prefix_of(count, members.rare_lack[m] + crowds.lowest[c])):
        push(base + values[t] * CLASSES, leaders.heads, leaders.pool, leaders.used, b)


@inner
def sharing(values, count, lack, width, base, seen, room, heads, pool, marked, touched):
    """Write the leaders that may share enough of the rare heavy values of a row; return how many, and the work.

    lack: what the row shares at least with leaders of the first class; with each class `width` more. base: the first
    list of the crowd. Leaders with a number less than `seen` may be left out. Ends when the work reaches `room`.
    """
    n, work = np.int64(0), 0
    for k in range(CLASSES):
        prefix = prefix_of(count, lack + k * width)
        if prefix <= 0 or work >= room:
            break
        for t in range(prefix):
            chunk = heads[base + SHELVES + values[t] * CLASSES + k]
            while chunk >= 0:
                for e in range(1 + pool[chunk, 1], 1, -1):
                    b = pool[chunk, e]
                    touched[n] = b  # overwritten by the next unless it is new
                    n += np.int64(marked[b] == 0)
                    marked[b] = 1
                work += 1 + pool[chunk, 1]
                if pool[chunk, 2] < seen:
                    break
                chunk = pool[chunk, 0]
    return n, work


@inner
def sift(own, need, n, everyone, marked, touched, lacks, records, banned, p, q):
    """Move the leaders that a row follows, among the n that share a rare heavy value with it and must, to the front.

    Returns how many they are, and the work. Stops looking at the first one unless `everyone` is wanted, but unmarks
    all.
    """
    found = 0
    work = n
    test = 2 + (own.size - HEAD) // 2
    for t in range(n):
        b = touched[t]
        marked[b] = 0
        if need + lacks[b] <= 0 or (found > 0 and not everyone):
            continue
        work += test
        if not similar_records(own, records, b, p, q):
            continue
        if banned.size and not allowed_pair(np.int64(own[1]), np.int64(records[b, 1]), banned):
            continue
        touched[found] = b
        found += 1
    return found, work


@inner
def scan(own, need, k, seen, everyone, room, pool, lacks, records, banned, p, q, found):
    """Write the leaders of a chain from chunk k on that a row follows; return how many, and the work.

    Ends at the first one unless `everyone` is wanted, when the work reaches `room`, and after a chunk with a leader
    whose number is less than `seen`. Takes arrays, not tuples of them, whose references would be counted at every test.
    """
    n, work = 0, 0
    test = 2 + (own.size - HEAD) // 2
    while k >= 0 and work < room:
        for e in range(1 + pool[k, 1], 1, -1):
            b = pool[k, e]
            if need + lacks[b] > 0:
                continue
            work += test
            if not similar_records(own, records, b, p, q):
                continue
            if banned.size and not allowed_pair(np.int64(own[1]), np.int64(records[b, 1]), banned):
                continue
            found[n] = b
            n += 1
            if not everyone:
                return n, work
        if pool[k, 2] < seen:
            break
        k = pool[k, 0]
    return n, work


@kernel
def walk(first, everyone, rows, members, crowds, leaders, p, q, income, purse, slice_cost, out_left, out_right, facts):
    """Walk the rows in order; one that no earlier leader is similar to becomes a leader. Return the next place.

    everyone: every row is a leader, and all pairs are written, until a crowd has more than its most_pairs or a row has
    cost too much; then the crowd is no longer active. Otherwise a row that follows a leader is written once, with it.
    What was found for a member holds for all of its kind where maps are exact. The work is at most `income` a row on
    average, plus the purse; rows beyond it are not compared with all leaders (facts[1] counts them). Stops after about
    `slice_cost`, or when the room in the pool or the output (facts[0] counts the pairs written) may not suffice.
    """
    written, cost = 0, 0
    heads, pool, records = leaders.heads, leaders.pool, leaders.records
    lacks, banned = leaders.lacks, rows.banned
    touched = np.empty(leaders.marked.size + 1, np.int32)
    own = np.empty(records.shape[1], np.uint64)
    values = np.empty(64 * members.maps.shape[1], np.int64)
    test = 2 + members.maps.shape[1] // 2
    x = first
    while x < rows.order.size:
        if cost > slice_cost or (not everyone and written == out_left.size):
            break
        i = rows.order[x]
        m = rows.place[i]
        if not everyone:
            follows = False
            if rows.role[i] != FORCED:
                for e in range(rows.starts[i], rows.starts[i + 1]):
                    if rows.leads[rows.partners[e]]:
                        follows = True
                        break
            rows.leads[i] = not follows and rows.role[i] != PROBE
            if follows:
                x += 1
                continue
        if m < 0 or not crowds.active[members.crowds[m]] or members.lack[m] > SLACK:
            x += 1
            continue
        c = members.crowds[m]
        full = leaders.used[0] + 2 + crowds.rare_bits[c] > pool.shape[0]
        if full or (everyone and written + crowds.counted[c] > out_left.size):
            break
        write_record(own, m, members)
        count = rare_values(own, crowds.rare_bits[c], values)
        before = written
        found, work = -1, 0
        if rows.role[i] != FORCED:
            kind, need = members.kinds[m], members.needs[m]
            since = 0
            room = max(income, purse[0])
            if not everyone:
                b = leaders.kind_found[kind]
                if b >= 0 and allowed_pair(m, member_of(records, b), banned):
                    found = b
                since = leaders.kind_seen[kind]
                if found < 0 and since == 0:
                    for f in range(FAVOURITES):
                        b = crowds.favourites[c, f]
                        if b < 0:
                            break
                        work += test
                        if similar_leader(own, m, b, leaders, banned, p, q):
                            found = b
                            crowds.hits[c, f] += 1
                            break
            # Leaders that must share a rare heavy value with this row.
            base = crowds.bases[c]
            seen = crowds.first[c] + since if since > 0 else np.int64(0)
            n = 0
            if found < 0 and work < room:
                left = room - work
                lack = members.rare_lack[m] + crowds.lowest[c]
                width = crowds.width[c] * (SHELVES // CLASSES)
                n, more = sharing(values, count, lack, width, base, seen, left, heads, pool, leaders.marked, touched)
                work += more
                n, more = sift(own, need, n, everyone, leaders.marked, touched, lacks, records, banned, p, q)
                work += more
            s = 0
            while True:
                if n:
                    found = touched[0]
                for t in range(n if everyone else 0):
                    out_left[written] = member_of(records, touched[t])
                    out_right[written] = m
                    written += 1
                # Leaders that need not share one, shelf by shelf.
                done = s == SHELVES or work >= room or (found >= 0 and not everyone)
                if done or crowds.lowest[c] + s * crowds.width[c] > SLACK - members.rare_lack[m]:
                    break
                k = heads[base + s]
                left = room - work
                n, more = scan(own, need, k, seen, everyone, left, pool, lacks, records, banned, p, q, touched)
                work += more
                s += 1
            cost += work
            purse[0] += income - work
            if everyone:
                crowds.listed[c] += written - before
                if crowds.listed[c] > crowds.most_pairs[c] or work >= room:
                    crowds.active[c] = False
                    x += 1
                    continue
            elif found >= 0:
                if leaders.kind_found[kind] < 0 and crowds.exact[c]:
                    leaders.kind_found[kind] = found
                out_left[written] = member_of(records, found)
                out_right[written] = m
                written += 1
                rows.leads[i] = False
                remember(c, found, crowds.favourites, crowds.hits)
                x += 1
                continue
            elif work >= room:
                facts[1] += 1
            elif crowds.exact[c]:
                leaders.kind_seen[kind] = crowds.counted[c]
        cost += 1
        if rows.role[i] != PROBE:
            enlist(own, m, c, values, count, members, crowds, leaders)
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
