import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import intrinsics, vector_scan
from likewise.kernels import vector_tables as tables

WORD = st.integers(0, 2**64 - 1)
SOME = st.integers(0, 3).map(lambda x: x * 0x9E3779B97F4A7C15 & (2**64 - 1)) | WORD


def whole(row):
    """Return a row of words as one number."""
    return sum(int(word) << (64 * w) for w, word in enumerate(row))


def words_of(rows, width):
    return np.array(rows, np.uint64).reshape(len(rows), width)


@given(WORD)
def test_ones(word):
    assert intrinsics.ones(word) == word.bit_count()
    apart = np.empty((1, 1), np.float32)
    vector_scan.bits_apart(words_of([[word]], 1), words_of([[0]], 1), apart)
    assert -apart[0, 0] == word.bit_count()


@given(st.lists(st.lists(st.floats(-9, 9), min_size=128, max_size=128), min_size=1, max_size=3))
def test_packing(rows):
    for kind in (np.float32, np.float64):
        values = np.array(rows, kind)
        signs, parities = (np.empty((len(rows), 2), np.uint64) for _ in range(2))
        tables.pack_signs(values, signs)
        tables.pack_parities(values, parities)
        for i, row in enumerate(values):
            assert whole(signs[i]) == sum(1 << j for j, value in enumerate(row) if value >= 0)
            assert whole(parities[i]) == sum(1 << j for j, value in enumerate(row) if math.floor(value) % 2)


@given(st.lists(WORD, min_size=2, max_size=2), st.lists(st.integers(0, 127), max_size=90))
def test_chosen_bits(row, places):
    out = np.empty((1, 2), np.uint64)
    tables.pack_chosen(words_of([row], 2), np.array(places, np.int64), out)
    assert whole(out[0]) == sum((whole(row) >> place & 1) << j for j, place in enumerate(places))


@given(st.lists(WORD, min_size=3, max_size=3), st.integers(0, 191), st.integers(1, 64))
def test_keys(row, start, length):
    length = min(length, 192 - start)
    words = words_of([row], 3)
    expected = whole(row) >> start & ((1 << length) - 1)
    keys = np.empty(1, np.uint64)
    starts, lengths = np.array([0, start]), np.array([2, length])
    tables.table_keys(words, starts, lengths, np.array([1]), keys)
    assert int(keys[0]) == expected
    if length <= 62:
        tables.table_keys(words, starts, lengths, np.array([0, 1]), keys)
        assert int(keys[0]) == (whole(row) & 3) << length | expected


def naive_pairs(words, starts, lengths, together, seen, most, split):
    """Return the pairs that agree in enough groups and differ in few enough bits."""
    found = set()
    for i, j in itertools.combinations(range(len(words)), 2):
        a, b = whole(words[i]), whole(words[j])
        agree = sum(
            (a >> s ^ b >> s) & ((1 << n) - 1) == 0 for s, n in zip(starts.tolist(), lengths.tolist(), strict=True)
        )
        apart = (whole(seen[i]) ^ whole(seen[j])).bit_count()
        if agree >= together and apart <= most and (not split or (i < split) != (j < split)):
            found.add((i, j))
    return found


def met(words, starts, lengths, together, seen, most, split, room):
    """Run all tables, with little room for pairs."""
    n = len(words)
    shift = 64 - max(1, (n - 1).bit_length())
    keys, ordered = np.empty(n, np.uint64), np.empty(n, np.uint64)
    rows, ends = np.empty(n, np.int32), np.empty((1 << (64 - shift)) + 1, np.int32)
    left, right = np.empty(room, np.int32), np.empty(room, np.int32)
    found = []
    for groups in itertools.combinations(range(len(starts)), together):
        chosen = np.array(groups)
        tables.table_keys(words, starts, lengths, chosen, keys)
        sharing = tables.fill_buckets(keys, shift, ends, rows, ordered)
        sizes = np.diff(np.concatenate([[0], ends[:-1]]))
        assert sharing == sum(size * (size - 1) // 2 for size in sizes.tolist())
        assert sorted(rows.tolist()) == list(range(n))
        assert (ordered == keys[rows]).all()
        place, turns = np.zeros(2, np.int64), 0
        while place[0] < len(ends) - 1:
            count = tables.meet(
                ends, rows, ordered, place, words, starts, lengths, chosen, seen, most, split, left, right
            )
            found += zip(left[:count].tolist(), right[:count].tolist(), strict=True)
            turns += 1
            assert turns < 1000
    return found


@given(
    rows=st.lists(st.lists(SOME, min_size=2, max_size=2), min_size=1, max_size=14),
    together=st.integers(1, 3),
    most=st.integers(0, 128),
    split=st.integers(0, 5),
)
def test_rows_that_agree_meet_once(rows, together, most, split):
    words = words_of(rows, 2)
    starts, lengths = np.array([0, 1, 60, 100]), np.array([1, 20, 10, 3])
    found = met(words, starts, lengths, together, words, most, split, room=len(rows))
    assert len(found) == len(set(found))
    assert set(found) == naive_pairs(words, starts, lengths, together, words, most, split)


@pytest.mark.parametrize("size", [tables.FEW, tables.FEW + 1, tables.HELD, tables.HELD + 1])
@pytest.mark.parametrize("width", [1, 3])
def test_crowded_buckets(size, width):
    """Buckets of few rows, of many, and of more than are held side by side."""
    rng = np.random.default_rng(size)
    seen = rng.integers(0, 2**64, (size, width), dtype=np.uint64)
    half = size // 2
    seen[half : 2 * half] = seen[:half] ^ np.uint64(5)
    words = np.zeros((size, 1), np.uint64)
    found = met(words, np.array([0]), np.array([8]), 1, seen, 2 * width, 0, room=size)
    assert sorted(found) == [(i, i + half) for i in range(half)]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(1, 19))
def test_pairs_across_share_a_bucket(keys, split):
    n = len(keys)
    shift = 64 - max(1, (n - 1).bit_length())
    ends, rows = np.empty((1 << (64 - shift)) + 1, np.int32), np.empty(n, np.int32)
    tables.fill_buckets(np.array(keys, np.uint64), shift, ends, rows, np.empty(n, np.uint64))
    buckets = np.split(rows, ends[:-2]) if len(ends) > 2 else [rows]
    across = sum((i < split) != (j < split) for some in buckets for i, j in itertools.combinations(some.tolist(), 2))
    assert tables.pairs_across(ends, rows, split) == across


@given(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=4))
def test_blocks_of_distances(rows):
    a = words_of(rows, 2)
    out = np.empty((len(a), len(a)), np.float32)
    vector_scan.bits_apart(a, np.ascontiguousarray(a.T), out)
    assert (-out).tolist() == [[(whole(x) ^ whole(y)).bit_count() for y in a] for x in a]
    points = (a % np.uint64(100)).astype(np.float64)
    sums = np.empty(out.shape)
    vector_scan.sums_apart(points, np.ascontiguousarray(points.T), sums)
    assert (-sums).tolist() == [[sum(abs(p - q) for p, q in zip(x, y, strict=True)) for y in points] for x in points]


@given(st.lists(st.tuples(SOME, SOME), min_size=2, max_size=8))
def test_digests_tell_rows_apart(rows):
    data = words_of(rows, 2)
    out = np.empty((len(rows), 2), np.uint64)
    tables.digest_rows(data, out)
    for i, j in itertools.combinations(range(len(rows)), 2):
        assert (out[i] == out[j]).all() == (rows[i] == rows[j])
