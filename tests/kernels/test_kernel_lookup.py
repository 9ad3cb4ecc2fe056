"""Tables of sorted keys, and queries of them, against dictionaries of sets."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.kernels import lookup
from likewise.kernels.lookup import (
    GONE,
    IndexAim,
    IndexHits,
    IndexQueries,
    IndexTables,
    answer,
    fill_starts,
    merge_entries,
    put_rows,
    shingle_keys,
    sort_sets,
)
from likewise.kernels.overlap import CONTAINMENT, JACCARD
from likewise.kernels.sketch import key_sets

KEYS = st.lists(st.sampled_from([0, 1, 2, 7, 2**31, 2**32 - 2, 2**32 - 1]), max_size=30)
SETS = st.lists(st.sets(st.integers(0, 12), max_size=8), max_size=8)


def ragged(sets, kind=np.uint64):
    ordered = [sorted(one) for one in sets]
    offsets = np.cumsum([0, *map(len, ordered)]).astype(np.int64)
    return np.array([x * 0x1234567 for one in ordered for x in one], kind), offsets


@given(KEYS, st.integers(1, 5))
def test_starts_say_where_keys_begin(keys, bits):
    keys = np.sort(np.array([keys, keys], np.uint32), axis=1)
    starts = np.empty((2, (1 << bits) + 1), np.uint32)
    fill_starts(keys, bits, starts)
    for band in range(2):
        slots = (keys[band] >> np.uint32(32 - bits)).tolist()
        assert starts[band].tolist() == [sum(slot < d for slot in slots) for d in range((1 << bits) + 1)]


@given(KEYS, KEYS, st.integers(0, 3))
def test_merged_entries_are_sorted_and_renumbered(a, b, gone):
    a, b = (np.sort(np.array(keys, np.uint32)) for keys in (a, b))
    sets_a, sets_b = np.arange(a.size, dtype=np.uint32), np.arange(b.size, dtype=np.uint32)
    map_a = np.arange(100, 100 + a.size, dtype=np.uint32)
    map_b = np.arange(500, 500 + b.size, dtype=np.uint32)
    map_b[:gone] = GONE
    keys, sets = np.empty(a.size + b.size, np.uint32), np.empty(a.size + b.size, np.uint32)
    count = merge_entries(a, sets_a, map_a, b, sets_b, map_b, keys, sets)
    expected = [(int(key), 100 + i) for i, key in enumerate(a)]
    expected += [(int(key), 500 + i) for i, key in enumerate(b) if i >= gone]
    assert list(zip(keys[:count].tolist(), sets[:count].tolist(), strict=True)) == sorted(expected)


@given(st.lists(st.integers(0, 4), max_size=20))
def test_rows_are_put_in_their_groups(groups):
    ends = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=5))]).astype(np.int64)
    members = np.empty(len(groups), np.uint32)
    put_rows(np.array(groups, np.int64), ends[:-1].copy(), members)
    for group in range(5):
        expected = [row for row, one in enumerate(groups) if one == group]
        assert members[ends[group] : ends[group + 1]].tolist() == expected


@given(SETS)
def test_sets_are_sorted(sets):
    values, offsets = ragged(sets)
    shuffled = values.copy()
    for low, high in pairwise(offsets):
        shuffled[low:high] = values[low:high][::-1]
    sort_sets(shuffled, offsets)
    assert shuffled.tolist() == values.tolist()


class SmallIndex:
    """A segment of these sets, each of them in one row, and the addresses of its arrays."""

    def __init__(self, sets, bands, kind, dead=(), copies=1):
        values, offsets = ragged(sets, kind)
        n = len(sets)
        keys = np.empty((n, bands), np.uint32)
        key_sets(values, offsets, 1, np.arange(1, bands + 1, dtype=np.uint64), 1, keys)
        order = np.argsort(keys, axis=0, kind="stable").T.astype(np.uint32)
        self.keys = np.ascontiguousarray(np.take_along_axis(keys.T, order.astype(np.int64), axis=1))
        self.sets = np.ascontiguousarray(order)
        self.starts = np.empty((bands, 5), np.uint32)
        fill_starts(self.keys, 2, self.starts)
        shingles = np.empty(values.size, np.uint32)
        shingle_keys(values, shingles)
        places = np.argsort(shingles, kind="stable")
        self.shingles = shingles[places].reshape(1, -1)
        self.owners = np.repeat(np.arange(n, dtype=np.uint32), np.diff(offsets))[places]
        self.shingle_starts = np.empty((1, 5), np.uint32)
        fill_starts(self.shingles, 2, self.shingle_starts)
        self.groups = np.arange(n + 1, dtype=np.uint32) * np.uint32(copies)
        self.members = np.arange(n * copies, dtype=np.uint32).reshape(copies, n).T.ravel().copy()
        flags = np.zeros(n * copies, np.uint8)
        flags[list(dead)] = 1
        self.dead = np.packbits(flags, bitorder="little")
        self.values, self.offsets = values, offsets.astype(np.uint64)
        segment = np.zeros((1, lookup.SEGMENT_FIELDS), np.int64)
        for field, array in (
            (lookup.KEYS, self.keys), (lookup.SETS, self.sets), (lookup.STARTS, self.starts),
            (lookup.SHINGLES, self.shingles), (lookup.OWNERS, self.owners), (lookup.GROUPS, self.groups),
            (lookup.SHINGLE_STARTS, self.shingle_starts), (lookup.MEMBERS, self.members), (lookup.DEAD, self.dead),
        ):  # fmt: skip
            segment[0, field] = array.ctypes.data
        segment[0, lookup.ENTRIES], segment[0, lookup.BITS] = n, 2
        segment[0, lookup.SHINGLE_ENTRIES], segment[0, lookup.SHINGLE_BITS] = values.size, 2
        segment[0, lookup.UNITS], segment[0, lookup.ROWS] = n, n * copies
        places = self.offsets.ctypes.data, self.values.ctypes.data
        chunk = np.array([[0, n, *places, values.size, values.itemsize]], np.int64)
        self.tables = IndexTables(segment, chunk)

    def answers(self, queries, bands, measure, p, q, best, room):
        values, offsets = ragged(queries)
        keys = np.empty((len(queries), bands), np.uint32)
        key_sets(values, offsets, 1, np.arange(1, bands + 1, dtype=np.uint64), 1, keys)
        asked = IndexQueries(values, offsets, keys)
        aim = IndexAim(measure, p, q, best, np.full(bands + 1, 2.0))
        found, first = [], 0
        while first < len(queries):
            hits = IndexHits(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
            first, written, needed = answer(asked, first, len(queries), self.tables, aim, hits)
            found += zip(*(array[:written].tolist() for array in hits), strict=True)
            room = max(room, needed)
        return found


def similarity(a, b, measure):
    if measure == CONTAINMENT:
        return len(a & b) / len(a) if a else -1.0
    return len(a & b) / len(a | b) if a | b else 1.0


@given(
    SETS,
    SETS,
    st.sampled_from([JACCARD, CONTAINMENT]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([np.uint32, np.uint64]),
    st.integers(1, 3),
    st.sets(st.integers(0, 5)),
)
@example([{1, 2}, {3}], [{1, 2, 3}], JACCARD, 1, np.uint64, 2, {0})
def test_answers_are_those_of_brute_force(sets, queries, measure, best, kind, copies, dead):
    """Forty bands of one row miss a pair at one half with probability 2**-40."""
    sets = list({frozenset(one): None for one in sets})
    rows = [sets[i % len(sets)] for i in range(len(sets) * copies)]
    dead = {row for row in dead if row < len(rows)}
    index = SmallIndex(sets, 40, kind, dead, copies)
    found = index.answers(queries, 40, measure, 1, 2, best, max(1, best))
    for number, asked in enumerate(queries):
        expected = [(row, similarity(asked, one, measure)) for row, one in enumerate(rows) if row not in dead]
        expected = sorted((-score, row) for row, score in expected if score >= 0.5)
        mine = sorted((-score, row) for query, row, score in found if query == number)
        assert mine == (expected[:best] if best else expected)


@pytest.mark.parametrize("measure", [JACCARD, CONTAINMENT])
def test_numbers_that_lead_nowhere_are_passed_over(measure):
    """A damaged file must not crash the process."""
    sets = [{1, 2, 3}, {4, 5}, {6}]
    names = ("sets", "starts", "owners", "shingle_starts", "members", "groups", "offsets")
    for name in names:
        for wrong in (2**32 - 1, 2**20, 3, 0):
            index = SmallIndex(sets, 8, np.uint64, copies=2)
            getattr(index, name).reshape(-1)[:] = wrong
            found = index.answers(sets, 8, measure, 1, 2, 2, 4)
            assert all(0 <= row < 6 for _, row, _ in found)


def test_the_candidates_of_a_crowd_come_by_the_bands_they_share():
    crowd = [set(range(12)) | {100 + i} for i in range(lookup.CROWD + 44)]
    index = SmallIndex(crowd, 20, np.uint64)
    found = index.answers([crowd[5]], 20, JACCARD, 1, 2, 3, 3)
    assert sorted((-score, row) for _, row, score in found) == [(-1.0, 5), (-12 / 14, 0), (-12 / 14, 1)]
    assert Counter(query for query, _, _ in found) == {0: 3}
