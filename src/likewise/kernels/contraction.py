"""Graph contraction: nodes that are one are folded, links relabelled, and the sets of outlinks compared again.

Nodes are numbered so that those with few links to them come first. A class of folded nodes goes by the number of one
of them, its label. Its outlinks, as labels, ascend in `arena` from place[label] on: the rarest first, so that two sets
that are similar share one of their first elements (prefix filter, MMDS §3.9.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashing import U0, U1, U20, U58, mix
from likewise.kernels.hashtable import TABLE_ODD
from likewise.kernels.intrinsics import ones
from likewise.kernels.sorting import count_common, sort_values


class Graph(NamedTuple):
    """The links to every node, who is folded into whom, and the outlinks of every class."""

    in_start: Any
    in_source: Any
    label: Any
    member: Any  # the next node of the same class, in a circle
    weight: Any  # links to the class
    first: Any  # the lowest of the user's numbers of its nodes
    place: Any
    size: Any
    digest: Any
    bits: Any
    mark: Any


class PrefixLists(NamedTuple):
    """For every label, a list of the classes that have it among their first outlinks: its head, then entry by entry."""

    head: Any
    following: Any
    owner: Any
    seen: Any  # when this class was last seen


@kernel
def count_ends(ends, start):
    """Count how often each node is an end of a link, and make the counts places."""
    start[:] = 0
    for i in range(ends.size):
        start[ends[i] + 1] += 1
    for node in range(start.size - 1):
        start[node + 1] += start[node]


@kernel
def group_by_end(ends, others, start, out):
    """Put the other end of each link where its node's are; `start` is as count_ends made it, and is so again."""
    for i in range(ends.size):
        out[start[ends[i]]] = others[i]
        start[ends[i]] += 1
    for node in range(start.size - 1, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0


@kernel
def turned(start, ends, out_start, out):
    """Turn links around: those of each node, by the other end; each list ascends."""
    count_ends(ends, out_start)
    for node in range(start.size - 1):
        for i in range(start[node], start[node + 1]):
            out[out_start[ends[i]]] = node
            out_start[ends[i]] += 1
    for node in range(out_start.size - 1, 0, -1):
        out_start[node] = out_start[node - 1]
    out_start[0] = 0


@kernel
def without_repetition(start, ends):
    """Leave out repeated links and links of a node to itself, where lists ascend; return how many are left."""
    at = 0
    begin = start[0]
    for node in range(start.size - 1):
        last = -1
        stop = start[node + 1]
        for i in range(begin, stop):
            if ends[i] != last and ends[i] != node:
                ends[at] = ends[i]
                at += 1
            last = ends[i]
        begin = stop
        start[node + 1] = at
    return at


@kernel
def without_common(start, sources, host, limit, counts, last):
    """Leave out the links to a node from a host of which more than limit[host] pages have one; return what is left.

    `counts` and `last` have one place for each host; the latter begins with -1.
    """
    at = 0
    begin = start[0]
    for node in range(start.size - 1):
        stop = start[node + 1]
        for i in range(begin, stop):
            h = host[sources[i]]
            if last[h] != node:
                last[h] = node
                counts[h] = 0
            counts[h] += 1
        for i in range(begin, stop):
            h = host[sources[i]]
            if counts[h] <= limit[h]:
                sources[at] = sources[i]
                at += 1
        begin = stop
        start[node + 1] = at
    return at


@kernel
def refresh(graph, arena, classes, fresh):
    """Relabel the outlinks of these classes; write those whose set is another than it was, and return how many."""
    count = 0
    for c in classes:
        if graph.label[c] != c:
            continue
        start = graph.place[c]
        stop = start + graph.size[c]
        for i in range(start, stop):
            arena[i] = graph.label[arena[i]]
        sort_values(arena[start:stop], stop - start)
        at = start
        last, digest, bits = -1, U0, U0
        for i in range(start, stop):
            value = arena[i]
            if value != last and value != c:
                arena[at] = value
                at += 1
                h = mix(np.uint64(value) ^ TABLE_ODD)
                digest += h
                bits |= U1 << (h >> U58)
            last = value
        graph.size[c] = at - start
        digest = mix(digest ^ np.uint64(at - start))
        if digest != graph.digest[c]:
            graph.digest[c], graph.bits[c] = digest, bits
            fresh[count] = c
            count += 1
    return count


@inner
def equal_sets(graph, arena, a, b):
    """Tell whether two classes have the same outlinks."""
    if graph.size[a] != graph.size[b]:
        return False
    i, j = graph.place[a], graph.place[b]
    for k in range(graph.size[a]):  # noqa: SIM110
        if arena[i + k] != arena[j + k]:
            return False
    return True


@kernel
def find_equal(graph, arena, classes, least, table, left, right):
    """Write the pairs of a class and an earlier one with equal outlinks, at least `least`.

    Returns how many pairs there are, and how many classes were put in the table.
    """
    mask = np.uint64(table.size - 1)
    count, added = 0, 0
    for c in classes:
        if graph.label[c] != c or graph.size[c] < least:
            continue
        slot = (graph.digest[c] * TABLE_ODD) >> U20 & mask
        there = False
        while True:
            other = np.int64(table[slot]) - 1
            if other < 0:
                if not there:
                    table[slot] = c + 1
                    added += 1
                break
            other = np.int64(graph.label[other])
            if other == c:
                there = True
            elif graph.digest[other] == graph.digest[c] and equal_sets(graph, arena, other, c):
                left[count], right[count] = other, c
                count += 1
                break
            slot = (slot + U1) & mask
    return count, added


@kernel
def refill(graph, least, wanted, table):
    """Put the wanted classes with at least `least` outlinks in the table of sets, which is empty."""
    mask = np.uint64(table.size - 1)
    added = 0
    for c in range(graph.label.size):
        if wanted[c] and graph.label[c] == c and graph.size[c] >= least:
            slot = (graph.digest[c] * TABLE_ODD) >> U20 & mask
            while table[slot] != 0:
                slot = (slot + U1) & mask
            table[slot] = c + 1
            added += 1
    return added


@inner
def is_similar(graph, arena, a, b, threshold):
    """Tell whether the outlinks of two classes have this Jaccard similarity."""
    size_a, size_b = graph.size[a], graph.size[b]
    shorter = min(size_a, size_b)
    both = np.float64(size_a + size_b)
    if shorter < threshold * max(size_a, size_b) - 1e-9:
        return False
    apart = ones(graph.bits[a] ^ graph.bits[b])
    if both - apart < 2.0 * (threshold / (1.0 + threshold) * both) - 1e-6:
        return False
    i, j = graph.place[a], graph.place[b]
    shared = count_common(arena, i, i + size_a, arena, j, j + size_b)
    return shared / (size_a + size_b - shared) >= threshold


@kernel
def find_similar(graph, arena, classes, begin, least, threshold, common, index, entries, left, right, told):
    """Meet these classes, from number `begin` on, with those in the index, and put each there.

    Returns how many were done, how many entries and how many pairs there are; stops where there is no room for more.
    Of the classes that share one of the first outlinks, `common` are looked at; told[0] counts where there were more,
    told[1] the pairs compared, told[2] the classes looked up.
    """
    count = 0
    for n in range(begin, classes.size):
        c = classes[n]
        size = graph.size[c]
        if graph.label[c] != c or size < least:
            continue
        prefix = size - np.int64(np.ceil(threshold * size - 1e-9)) + 1
        if entries + prefix > index.owner.size:
            return n, entries, count
        before = count
        told[2] += 1
        turn = told[2]
        for k in range(prefix):
            entry = index.head[arena[graph.place[c] + k]]
            walked = 0
            while entry >= 0:
                if walked == common:
                    told[0] += 1
                    break
                walked += 1
                other, entry = index.owner[entry], index.following[entry]
                if index.seen[other] == turn or other == c or graph.label[other] != other or graph.size[other] < least:
                    continue
                index.seen[other] = turn
                told[1] += 1
                if is_similar(graph, arena, other, c, threshold):
                    if count == left.size:
                        return n, entries, before
                    left[count], right[count] = other, c
                    count += 1
        for k in range(prefix):
            element = arena[graph.place[c] + k]
            index.owner[entries] = c
            index.following[entries] = index.head[element]
            index.head[element] = entries
            entries += 1
    return classes.size, entries, count


@kernel
def compact(graph, arena, out):
    """Move the outlinks of all classes together; return where they end."""
    at = 0
    for c in range(graph.label.size):
        if graph.label[c] == c:
            start = graph.place[c]
            for k in range(graph.size[c]):
                out[at + k] = arena[start + k]
            graph.place[c] = at
            at += graph.size[c]
    return at


@kernel
def fold(graph, arena, end, offsets, groups, unite, changed):
    """Fold each group of classes into its heaviest; return how many classes must be looked at again, and the new end.

    unite: the folded class gets the outlinks of all; else they are equal anyway. Those that link to a class which is no
    more, and with `unite` the folded ones, are written to `changed`.
    """
    touched = 0
    for g in range(offsets.size - 1):
        keeper = groups[offsets[g]]
        total = 0
        for k in range(offsets[g], offsets[g + 1]):
            c = groups[k]
            total += graph.size[c]
            if graph.weight[c] > graph.weight[keeper] or (graph.weight[c] == graph.weight[keeper] and c < keeper):
                keeper = c
        if unite:
            at = end
            for k in range(offsets[g], offsets[g + 1]):
                start = graph.place[groups[k]]
                for i in range(graph.size[groups[k]]):
                    arena[at] = arena[start + i]
                    at += 1
            graph.place[keeper], graph.size[keeper] = end, total
            end = at
            if graph.mark[keeper] == 0:
                graph.mark[keeper] = 1
                changed[touched] = keeper
                touched += 1
        for k in range(offsets[g], offsets[g + 1]):
            c = groups[k]
            if c == keeper:
                continue
            graph.first[keeper] = min(graph.first[keeper], graph.first[c])
            graph.weight[keeper] += graph.weight[c]
            node = c
            while True:
                graph.label[node] = keeper
                for i in range(graph.in_start[node], graph.in_start[node + 1]):
                    source = graph.in_source[i]
                    if graph.mark[source] == 0:
                        graph.mark[source] = 1
                        changed[touched] = source
                        touched += 1
                node = graph.member[node]
                if node == c:
                    break
            after = graph.member[keeper]
            graph.member[keeper] = graph.member[c]
            graph.member[c] = after
    for i in range(touched):
        graph.mark[changed[i]] = 0
    count = 0
    for i in range(touched):
        c = graph.label[changed[i]]
        if graph.mark[c] == 0:
            graph.mark[c] = 1
            changed[count] = c
            count += 1
    for i in range(count):
        graph.mark[changed[i]] = 0
    return count, end
