"""Similarities of candidate pairs against brute force: exact, with nothing lost; in memory and by blocks on disk."""

import itertools
import os
import tempfile
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets, Texts
from likewise.search import verify
from likewise.search.items import SetItems, TextItems
from likewise.search.verify import blocks_of, compare, similarities
from likewise.shingle import Chars, Words

THRESHOLDS = [0.1, 0.2, 0.1 + 0.2, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.7, 0.7999999999999999, 0.8, 0.9, 0.1 * 3 * 3, 1.0]
SETS = st.lists(st.sets(st.integers(0, 12), max_size=13).map(list), min_size=2, max_size=8)


def check(lists, threshold, threads=1):
    pairs = list(combinations(range(len(lists)), 2))
    left, right = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    found = similarities(left, right, Sets.from_lists(lists), threshold, threads)
    exact = [oracles.jaccard(lists[a], lists[b]) for a, b in pairs]
    assert found.tolist() == [s if s >= threshold else -1.0 for s in exact]
    return found


@given(SETS, st.sampled_from(THRESHOLDS) | st.floats(1e-6, 1))
def test_every_pair(lists, threshold):
    check(lists, threshold)


@cache
def small_fractions():
    """Two sets for every union up to 20 and every overlap, split evenly and not, and the similarity of the two."""
    lists = []
    for union in range(1, 21):
        for shared in range(union + 1):
            for here in {0, (union - shared) // 2, union - shared}:
                lists += [list(range(shared + here)), [*range(shared), *range(shared + here, union)]]
    return Sets.from_lists(lists), [oracles.jaccard(a, b) for a, b in zip(lists[::2], lists[1::2], strict=True)]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_fraction_with_a_small_denominator(threshold):
    """What equals the threshold passes."""
    sets, exact = small_fractions()
    first = 2 * np.arange(len(exact))
    found = similarities(first, first + 1, sets, threshold, 1)
    assert found.tolist() == [s if s >= threshold else -1.0 for s in exact]
    assert len(exact) > 600


@pytest.mark.parametrize(("shared", "union", "threshold"), [(4, 5, 0.8), (9, 10, 0.9), (1, 3, 1 / 3), (3, 10, 0.3)])
@pytest.mark.parametrize("scale", [1, 10, 1000, 20_000])
def test_exactly_at_the_threshold(shared, union, threshold, scale):
    shared, union = shared * scale, union * scale
    half = (union - shared) // 2
    a, b = list(range(shared + half)), [*range(shared + half, union), *range(shared)]
    assert check([a, b], threshold).tolist() == [threshold]
    assert check([a, [*b, union]], threshold).tolist() == [-1.0]


def test_a_threshold_that_is_a_little_more_than_it_looks():
    """0.1 + 0.2 is more than 3/10, so a pair at 3/10 is below it."""
    a, b = list(range(6)), [*range(3), *range(10, 14)]
    assert check([a, b], 0.3).tolist() == [0.3]
    assert check([a, b], 0.1 + 0.2).tolist() == [-1.0]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_batches_cut_where_they_will(threads, monkeypatch):
    monkeypatch.setattr(verify, "BATCH", 7)
    random = np.random.default_rng(3)
    base = random.integers(0, 1000, 60)
    lists = [np.where(random.random(60) < 0.15, random.integers(0, 1000, 60), base).tolist() for _ in range(40)]
    for threshold in (0.4, 0.6, 0.8):
        check(lists, threshold, threads)


def test_sets_of_very_different_sizes():
    lists = [[], [1], [1, 2], list(range(10)), list(range(1000)), list(range(1, 1001)), list(range(5000)), []]
    for threshold in (0.001, 0.01, 0.2, 0.99, 1.0):
        check(lists, threshold)
        check(lists[::-1], threshold)


def test_no_pairs():
    none = np.zeros(0, np.int64)
    assert similarities(none, none, Sets.from_lists([[1]]), 0.8, 2).size == 0


# sets that are more than memory holds

NEVER = 1 << 60


def sides(pairs):
    return tuple(np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))


def nowhere():
    raise AssertionError("what fits in memory needs no folder")


def scored(items, rows, pairs, threshold, limit=NEVER, threads=1):
    """Return the pairs found with their similarity; by blocks if they do not fit within the limit."""
    ticks = []
    with tempfile.TemporaryDirectory() as name:
        place = nowhere if limit == NEVER else lambda: Path(name) / "deep" / "scratch"
        left, right, similarity = compare(items, rows, *sides(pairs), threshold, threads, limit, place, ticks.append)
        assert not list(Path(name).rglob("sets")), "scratch files are gone"
    assert sum(ticks) == len(pairs)
    return list(zip(left.tolist(), right.tolist(), similarity.tolist(), strict=True))


def naive(lists, rows, pairs, threshold):
    found = [(a, b, oracles.jaccard(lists[rows[a]], lists[rows[b]])) for a, b in pairs]
    return [entry for entry in found if entry[2] >= threshold]


@st.composite
def collections(draw):
    """Sets, which of them are compared, and sorted pairs of these."""
    lists = draw(st.lists(st.sets(st.integers(0, 9), max_size=9).map(sorted), min_size=2, max_size=16))
    rows = sorted(draw(st.sets(st.sampled_from(range(len(lists))), min_size=2)))
    every = list(itertools.combinations(range(len(rows)), 2))
    pairs = sorted(draw(st.sets(st.sampled_from(every))))
    return lists, rows, pairs


@given(collections(), st.sampled_from([0.1, 0.5, 0.8]), st.sampled_from([0, 1, 200, 400, 1000]), st.integers(1, 3))
def test_sets_by_blocks(made, threshold, limit, threads):
    lists, rows, pairs = made
    items, numbers = SetItems(Sets.from_lists(lists)), np.array(rows, np.int64)
    expected = naive(lists, rows, pairs, threshold)
    assert scored(items, numbers, pairs, threshold) == expected
    assert scored(items, numbers, pairs, threshold, limit, threads) == expected


def random_collection(seed, n=60):
    """Families of documents of very different sizes, and pairs within and across families."""
    random = np.random.default_rng(seed)
    families = [random.integers(0, 300, random.integers(3, 150)) for _ in range(12)]
    texts = []
    for _ in range(n):
        words = families[random.integers(len(families))].copy()
        words[random.random(len(words)) < 0.05] = 999
        texts.append(" ".join(f"w{word}" for word in words))
    pairs = sorted({tuple(sorted(pair)) for pair in random.integers(0, n, (250, 2)).tolist() if pair[0] != pair[1]})
    return texts, pairs


@pytest.mark.each_value
@pytest.mark.parametrize("limit", [100, 8000, 40_000])
@pytest.mark.parametrize("shingler", [Words(2), Chars(5), Words(1, bag=True)], ids=str)
def test_documents_by_blocks(shingler, limit):
    """From blocks of one document each to a few large ones; all pairs are connected, so that blocks must meet."""
    texts, pairs = random_collection(1)
    lists = [s.tolist() for s in shingler.sets(texts)]
    rows = np.arange(len(texts))
    expected = naive(lists, rows, pairs, 0.6)
    assert len(expected) > 10
    chunked = Texts(chunk for start in range(0, len(texts), 7) for chunk in Texts.of(texts[start : start + 7]).chunks)
    items = TextItems(chunked, shingler)
    assert scored(items, rows, pairs, 0.6) == expected
    assert scored(items, rows, pairs, 0.6, limit, threads=2) == expected


def test_only_sets_that_stand_in_a_pair_are_made():
    asked = []

    class Asked(SetItems):
        def set_batches(self, rows, threads):
            asked.append(rows.tolist())
            return super().set_batches(rows, threads)

    lists = [[number, 7] for number in range(20)]
    rows, pairs = np.arange(0, 20, 2), [(0, 3), (3, 9)]
    for limit in (NEVER, 1):
        assert scored(Asked(Sets.from_lists(lists)), rows, pairs, 0.1, limit) == naive(lists, rows, pairs, 0.1)
        assert asked.pop() == [0, 6, 18]
        assert asked == []


def test_no_pairs_need_nothing():
    items = SetItems(Sets.from_lists([[1], [2]]))
    for limit in (NEVER, 0):
        assert scored(items, np.arange(2), [], 0.5, limit) == []


def test_leftovers_of_an_earlier_run_are_not_taken(tmp_path):
    lists = [[1, 2, 3], [1, 2, 3, 4], [9]]
    (tmp_path / "sets").mkdir()
    for block in range(5):
        (tmp_path / "sets" / str(block)).write_bytes(b"x" * 64)
    left, right, similarity = compare(
        SetItems(Sets.from_lists(lists)), np.arange(3), *sides([(0, 1), (0, 2)]), 0.5, 1, 1, lambda: tmp_path
    )
    assert (left.tolist(), right.tolist(), similarity.tolist()) == ([0], [1], [0.75])


def test_there_may_be_more_blocks_than_a_process_may_open_files(tmp_path):
    resource = pytest.importorskip("resource")
    lists = [[2 * number, number // 2] for number in range(400)]
    pairs = [(number, number + 1) for number in range(0, 400, 2)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        found = scored(SetItems(Sets.from_lists(lists)), np.arange(400), pairs, 0.1, 200)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found == naive(lists, range(400), pairs, 0.1)


# which items share a block


@given(collections(), st.integers(0, 300), st.data())
def test_blocks(made, limit, data):
    """Connected items share a block if it holds them; blocks are numbered from 0 and none is far above the limit."""
    _, rows, pairs = made
    size = np.array(data.draw(st.lists(st.integers(1, 100), min_size=len(rows), max_size=len(rows))), np.int64)
    blocks = blocks_of(len(rows), *sides(pairs), size, limit)
    assert sorted(set(blocks.tolist())) == list(range(blocks.max() + 1))
    whole = oracles.components(len(rows), pairs)
    for item in range(len(rows)):
        together = [other for other in range(len(rows)) if whole[other] == whole[item]]
        if size[together].sum() <= limit:
            assert len(set(blocks[together].tolist())) == 1
    for block in range(blocks.max() + 1):
        assert size[blocks == block].sum() <= 2 * limit + 100


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("size", [10, 5000])
def test_a_full_disk_is_never_silent(size, tmp_path, monkeypatch):
    """Every block is written to a device that is always full."""
    lists = [[*range(size), number + size] for number in range(6)]
    items = SetItems(Sets.from_lists(lists))
    pairs = sides([(0, 1), (2, 3), (4, 5)])

    def full(path, mode):
        return open("/dev/full", mode)

    monkeypatch.setattr(verify, "open", full, raising=False)
    with pytest.raises(OSError, match="No space left"):
        compare(items, np.arange(6), *pairs, 0.5, 1, 100, lambda: tmp_path)
