"""How much two sets must share to reach a threshold, in whole numbers, and whether they do."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashtable import enter_set, owned_table, spared
from likewise.kernels.pairs import rise, sink

JACCARD, DICE, COSINE, OVERLAP, CONTAINMENT, SUM = range(6)
"""Measures of similarity. SUM is the Jaccard similarity of bags whose union is the sum of the counts, at most 1/2."""

ROUNDING = 1e-6
"""More than the rounding error of an overlap of up to 2**29 elements, and less than one element."""


@kernel
def least_overlap(measure, p, q, threshold, a, b):
    """Return the least overlap with which sets of a and b elements reach the threshold, which is p/q (see bounds.py).

    a, b ≥ 1. Whole numbers throughout, except for the cosine, where the test that brute force makes decides.
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
def similarity_of(measure, shared, a, b):
    """Return the similarity of sets of a and b elements, not both empty, that share this many."""
    if measure == JACCARD:
        return shared / (a + b - shared)
    if measure == DICE:
        return 2 * shared / (a + b)
    if measure == SUM:
        return shared / (a + b)
    if measure == OVERLAP:
        return shared / min(a, b) if min(a, b) > 0 else 0.0
    if measure == CONTAINMENT:
        return shared / a if a > 0 else 1.0
    root = np.sqrt(np.float64(a) * np.float64(b))
    return shared / root if root > 0 else 0.0


@inner
def overlap_for(measure, score, a, b):
    """Return an overlap below which sets of a and b elements do not reach this score: the least one, or one less."""
    if measure == JACCARD:
        shared = score * (a + b) / (1 + score)
    elif measure == DICE:
        shared = score * (a + b) / 2
    elif measure == OVERLAP:
        shared = score * min(a, b)
    elif measure == CONTAINMENT:
        shared = score * a
    else:
        shared = score * np.sqrt(np.float64(a) * np.float64(b))
    return np.int64(np.ceil(shared - ROUNDING))


@inner
def useful_overlap(least, measure, floors_a, floors_b, a, b, size_a, size_b, own=0.0):
    """Return the overlap below which a pair is neither similar, for which `least` is needed, nor of use.

    It is of use if it reaches the floor of one of its sets, a or b. Without floors (arrays of length 0) all are. `own`
    is a floor of a that may be higher than the one known.
    """
    if floors_a.size == 0:
        return least
    floor = min(max(own, floors_a[a]), floors_b[b])
    return max(least, overlap_for(measure, floor, size_a, size_b)) if floor > 0.0 else least


@kernel
def verify_overlap(left, right, side_a, side_b, bounds, floors, best, most, out):
    """out[k] = similarity of the sets rows_a[left[k]] and rows_b[right[k]], exact if it reaches the threshold, else -1.

    A side is (values, offsets, rows) of ragged sets. bounds: the measure, p, q, the threshold. floors: of either side.
    Pairs come grouped by `left`: its set is put in a hash table once, and each partner is looked up in it until the
    misses rule the threshold out. With floors (see `useful_overlap`), pairs of no use may be -1 too; if only the `best`
    so many of a set are of use, its floor rises here. most[k], if known, is the most that the sets can share.
    """
    values_a, offsets_a, rows_a = side_a
    values_b, offsets_b, rows_b = side_b
    measure, p, q, threshold = bounds
    floors_a, floors_b = floors
    largest = np.int64(0)
    for k in range(left.size):
        row = rows_a[left[k]]
        largest = max(largest, offsets_a[row + 1] - offsets_a[row])
    table, owner = owned_table(largest)
    down, mask, last = np.uint64(0), np.uint64(0), np.int64(-1)
    heap = np.empty(best)
    held, own = np.int64(0), 0.0
    for k in range(left.size):
        a = np.int64(left[k])
        start_a = offsets_a[rows_a[a]]
        stop_a = offsets_a[rows_a[a] + 1]
        start_b = offsets_b[rows_b[right[k]]]
        stop_b = offsets_b[rows_b[right[k]] + 1]
        size_b = stop_b - start_b
        least = least_overlap(measure, p, q, threshold, stop_a - start_a, size_b)
        out[k] = -1.0
        if a != last:
            held, own = np.int64(0), 0.0
        least = useful_overlap(least, measure, floors_a, floors_b, a, right[k], stop_a - start_a, size_b, own)
        if k < most.size and most[k] < least:
            continue
        if a != last:
            last = a
            down, mask = enter_set(values_a, start_a, stop_a, a, table, owner)
        spare = spared(values_b, start_b, stop_b, a, table, owner, down, mask, size_b - least)
        if spare >= 0:
            out[k] = similarity_of(measure, spare + least, stop_a - start_a, size_b)
            if held < best:
                heap[held] = out[k]
                rise(heap, heap, held)
                held += 1
            elif best > 0 and out[k] > heap[0]:
                heap[0] = out[k]
                sink(heap, heap, held)
            if held == best and best > 0:
                own = heap[0]
