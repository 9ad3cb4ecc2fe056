"""Which sets share how many elements, counted through the lists of the sets that each element is in.

Sets are numbered by size, the smallest first; elements by how many sets have them, the rarest first. The similarity of
sets of a and b elements that share c is c / (a + b - c), or c / (a + b) if `summed`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.intrinsics import ones
from likewise.kernels.overlap import JACCARD, SUM, similarity_of
from likewise.kernels.sorting import first_between

NEARLY = 1 - 1e-9
"""Bounds that are computed in floating point are loosened by this much; what they let through is compared exactly."""

PATIENCE = 2
"""A search by the rarest elements gives up after one part in this many of the steps that counting takes."""


class SetLists(NamedTuple):
    """Sets: x has the elements values[offsets[x]:offsets[x + 1]], ascending, and is the row rows[x] of the user's.

    The sets with an element, ascending, are members[starts[e]:starts[e + 1]]; those of at least a given size begin at
    first_of_size[size]. `maps` has a word for each set, with the bits of its elements.
    """

    rows: Any
    sizes: Any
    maps: Any
    values: Any
    offsets: Any
    starts: Any
    members: Any
    first_of_size: Any


@inner
def needed(least, summed):
    """Return the fraction of a + b that two sets of a and b elements must share to be similar, rounded down."""
    return (least if summed else least / (1 + least)) * NEARLY


@inner
def least_size(a, least, summed):
    """Return the smallest size of a set whose similarity to one of a elements can be `least`."""
    if summed:
        return int(np.ceil(a * least / max(1 - least, 1e-12) * NEARLY))
    return int(np.ceil(a * least * NEARLY))


@inner
def largest_size(a, most, least, summed):
    """Return the largest size of a set whose similarity to one of a elements can be `least` if they share `most`."""
    if summed:
        return int(min(most / least / NEARLY - a, 2.0**40))
    return int(min(most / least / NEARLY + most - a, 2.0**40))


@kernel
def count_pairs(x, last, lists, threshold, summed, counts, touched, left, right, shared):
    """Write the pairs of each set from x on with smaller ones; return where it stopped, and how many there are.

    It stops at `last`, or where the next set might have more partners than there is room for. `counts` are zero.
    """
    _, sizes, _, values, offsets, starts, members, first_of_size = lists
    found = 0
    measure = SUM if summed else JACCARD
    factor = needed(threshold, summed)
    while x < last and found + x <= left.size:
        a = offsets[x + 1] - offsets[x]
        low = first_of_size[min(least_size(a, threshold, summed), first_of_size.size - 1)]
        met = 0
        for k in range(offsets[x], offsets[x + 1]):
            element = values[k]
            end = starts[element + 1]
            for place in range(first_between(members, starts[element], end, low), end):
                y = members[place]
                if y >= x:
                    break
                if counts[y] == 0:
                    touched[met] = y
                    met += 1
                counts[y] += 1
        for i in range(met):
            y = touched[i]
            c = counts[y]
            counts[y] = 0
            b = sizes[y]
            if c >= factor * (a + b) and similarity_of(measure, c, a, b) >= threshold:
                left[found], right[found], shared[found] = x, y, c
                found += 1
        x += 1
    return x, found


@inner
def put(best, best_rows, best_shared, held, similarity, row, c):
    """Put a partner in its place among the best, by similarity and then by row; return how many there are."""
    top = best.size
    if held == top and (similarity < best[top - 1] or (similarity == best[top - 1] and row > best_rows[top - 1])):
        return held
    i = held if held < top else top - 1
    while i > 0 and (similarity > best[i - 1] or (similarity == best[i - 1] and row < best_rows[i - 1])):
        best[i], best_rows[i], best_shared[i] = best[i - 1], best_rows[i - 1], best_shared[i - 1]
        i -= 1
    best[i], best_rows[i], best_shared[i] = similarity, row, c
    return held + 1 if held < top else held


@inner
def shared_from(values, k, end, m, limit, least):
    """Count the elements that two sets share from places k and m on; -1 as soon as they cannot be as many as needed."""
    c = 0
    while k < end and m < limit:
        if c + min(end - k, limit - m) < least:
            return -1
        if values[k] == values[m]:
            c += 1
            k += 1
            m += 1
        elif values[k] < values[m]:
            k += 1
        else:
            m += 1
    return c


@inner
def meet_rare_first(x, lists, threshold, summed, patience, stamps, best, best_rows, best_shared):
    """Find the best partners of a set by its rarest elements, until no other set can be among them.

    The sets of a list come by size, and those of a size by row. Once the best so many are held, and no set of a size
    can be better, the others of this size are passed over: an element that everybody has costs a look at a few sets.
    Return how many there are, or -1 - (how many so far) when that takes more steps than `patience`.
    """
    rows, sizes, maps, values, offsets, starts, members, first_of_size = lists
    a = offsets[x + 1] - offsets[x]
    top = best.size
    held, work = 0, 0
    least = threshold
    measure = SUM if summed else JACCARD
    factor = needed(least, summed)
    for k in range(offsets[x], offsets[x + 1]):
        most = offsets[x + 1] - k
        if similarity_of(measure, most, a, most) < least:
            break
        element = values[k]
        low = first_of_size[min(least_size(a, least, summed), first_of_size.size - 1)]
        high = first_of_size[min(largest_size(a, most, least, summed) + 1, first_of_size.size - 1)]
        end = starts[element + 1]
        place = first_between(members, starts[element], end, low)
        size, bound = np.int64(-1), 0.0
        while place < end and members[place] < high:
            y = members[place]
            b = sizes[y]
            work += 1
            if held == top:
                if b != size:
                    size = np.int64(b)
                    bound = similarity_of(measure, min(most, b), a, b)
                if bound < least or (bound == least and rows[y] > best_rows[top - 1]):
                    place = first_between(members, place, end, first_of_size[b + 1])
                    continue
            place += 1
            if y == x or stamps[y] == x:
                continue
            stamps[y] = x
            need = factor * (a + b)
            # Each bit that only one of them has is an element that is not shared.
            if min(a - ones(maps[x] & ~maps[y]), b - ones(maps[y] & ~maps[x])) < need:
                continue
            work += b + most
            c = shared_from(values, k, offsets[x + 1], offsets[y], offsets[y + 1], need)
            if c < 1:
                continue
            similarity = similarity_of(measure, c, a, b)
            if similarity >= least:
                held = put(best, best_rows, best_shared, held, similarity, rows[y], c)
                if held == top:
                    least = max(least, best[top - 1])
                    factor = needed(least, summed)
        if work > patience:
            return -1 - held
    return held


@inner
def meet_all(x, lists, least, summed, counts, touched, best, best_rows, best_shared):
    """Find the best partners of a set by counting what it shares with all sets of its size; return how many."""
    rows, sizes, _, values, offsets, starts, members, first_of_size = lists
    a = offsets[x + 1] - offsets[x]
    low = first_of_size[min(least_size(a, least, summed), first_of_size.size - 1)]
    high = first_of_size[min(largest_size(a, a, least, summed) + 1, first_of_size.size - 1)]
    met = 0
    for k in range(offsets[x], offsets[x + 1]):
        end = starts[values[k] + 1]
        for place in range(first_between(members, starts[values[k]], end, low), end):
            y = members[place]
            if y >= high:
                break
            if counts[y] == 0:
                touched[met] = y
                met += 1
            counts[y] += 1
    held = np.int64(0)
    measure = SUM if summed else JACCARD
    factor = needed(least, summed)
    for i in range(met):
        y = touched[i]
        c = counts[y]
        counts[y] = 0
        if c >= factor * (a + sizes[y]) and y != x:
            similarity = similarity_of(measure, c, a, sizes[y])
            if similarity >= least:
                held = put(best, best_rows, best_shared, held, similarity, rows[y], c)
                if held == best.size:
                    least = max(least, best[held - 1])
                    factor = needed(least, summed)
    return held


@kernel
def best_partners(probes, lists, threshold, summed, visits, counts, touched, stamps, best, best_rows, shared, found):
    """Write the most similar partners of each probe, best first, ties by row; `stamps` are -1, `counts` zero.

    A set's partners are sought by its rarest elements first. Where that takes as long as counting, they are counted;
    where counting takes more steps than `visits`, the search by the rarest elements ends after that many steps. Return
    how many probes were ended like this.
    """
    values, offsets, starts = lists.values, lists.offsets, lists.starts
    cut = 0
    for i in range(probes.size):
        x = probes[i]
        patience = 0
        for k in range(offsets[x], offsets[x + 1]):
            patience += starts[values[k] + 1] - starts[values[k]]
        limited = patience > visits
        patience = visits if limited else patience // PATIENCE
        room = best[i], best_rows[i], shared[i]
        held = meet_rare_first(x, lists, threshold, summed, patience, stamps, *room)
        if held < 0 and limited:
            cut += 1
            held = -1 - held
        elif held < 0:
            least = max(threshold, best[i, -1]) if -1 - held == best.shape[1] else threshold
            held = meet_all(x, lists, least, summed, counts, touched, *room)
        found[i] = held
    return cut
