"""Candidate pairs against brute force over the keys: in memory and on disk, whatever the threads and the limits."""

import contextlib
import os
import tempfile
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.search import candidates as module
from likewise.search.band_keys import HeldKeys, StoredKeys
from likewise.search.candidates import (
    BINS,
    MERGE_BYTES,
    SORT_BYTES,
    Wanted,
    bucket_cap,
    candidates,
    few_candidates,
    merged,
)

KEY = st.sampled_from([0, 1, 2**31, 2**32 - 1])
KEYS = st.integers(1, 5).flatmap(
    lambda bands: st.lists(st.lists(KEY | st.integers(0, 30), min_size=bands, max_size=bands), max_size=25)
)
MUCH = 1 << 40
LIMITS = st.tuples(st.sampled_from([1, 2, 5]), st.sampled_from([1, 6, MUCH]))


def run(keys, threads=1, wanted=None, limits=None, tick=lambda done: None):
    """Find candidates and their portions: in memory or, with limits, on disk.

    The limits: in how many parts a band is sorted at least, and how many pairs a portion may have.
    """
    matrix = np.array(keys, np.uint32).reshape(len(keys), len(keys[0]) if len(keys) else 3)
    held = HeldKeys(matrix)
    if limits is None:
        found = candidates(held, threads, wanted, tick)
        return found, list(found.portions())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        held.save(folder / "keys")
        stored = StoredKeys(folder / "keys", *matrix.shape)
        sort_bytes, merge_bytes = SORT_BYTES * len(keys) // limits[0], MERGE_BYTES * limits[1]
        found = candidates(stored, threads, wanted, tick, folder=folder, sort_bytes=sort_bytes, merge_bytes=merge_bytes)
        assert len(keys) < 2 or len(list(folder.glob("run-*"))) >= limits[0] * matrix.shape[1]
        portions = list(found.portions())
        assert all(np.array_equal(a, b) for a, b in zip(portions, found.portions(), strict=True)), "once more the same"
        return found, portions


def pairs_of(portions):
    portions = list(portions)
    assert all(side.dtype == np.int64 for portion in portions for side in portion)
    return [pair for left, right in portions for pair in zip(left.tolist(), right.tolist(), strict=True)]


def found_pairs(keys, threads=1, wanted=None, limits=None):
    found, portions = run(keys, threads, wanted, limits)
    pairs = pairs_of(portions)
    assert found.crowds == []
    assert found.count >= len(pairs)
    assert limits or found.count == len(pairs)
    return pairs


PLACES = st.none() | LIMITS


@given(KEYS, st.integers(1, 4), PLACES)
def test_candidates(keys, threads, limits):
    assert found_pairs(keys, threads, limits=limits) == oracles.candidates(keys)


@given(KEYS, st.integers(0, 26), st.integers(1, 4), PLACES)
def test_candidates_across_a_split(keys, split, threads, limits):
    expected = [(i, j) for i, j in oracles.candidates(keys) if i < split <= j]
    assert found_pairs(keys, threads, Wanted(split, split), limits) == expected


@given(KEYS, st.integers(0, 26), st.integers(1, 4), PLACES)
def test_candidates_but_those_of_the_first_part(keys, split, threads, limits):
    """New items among themselves and against old ones; the old ones among themselves are known."""
    expected = [(i, j) for i, j in oracles.candidates(keys) if j >= split]
    assert found_pairs(keys, threads, Wanted(split, len(keys)), limits) == expected


@pytest.mark.each_value
@pytest.mark.parametrize("limits", [None, (9, 1), (3, 200), (1, MUCH)])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_many_collisions(threads, limits):
    keys = np.random.default_rng(1).integers(0, 20, (150, 12)).tolist()
    assert found_pairs(keys, threads, limits=limits) == oracles.candidates(keys)
    assert found_pairs(keys, threads, Wanted(50, 50), limits) == oracles.candidates(keys, 50, 50)
    assert found_pairs(keys, threads, Wanted(50, 150), limits) == oracles.candidates(keys, 50)


@pytest.mark.parametrize("limits", [None, (1, MUCH)])
def test_one_bucket_holds_everybody(limits):
    """Every pair agrees in all bands, and stands there once."""
    n = 300
    keys = [[7] * 9] * n
    assert len(found_pairs(keys, limits=limits)) == n * (n - 1) // 2
    assert len(found_pairs(keys, wanted=Wanted(10, 10), limits=limits)) == 10 * (n - 10)
    assert found_pairs(keys, wanted=Wanted(0, 0), limits=limits) == []
    assert found_pairs(keys, wanted=Wanted(n, n), limits=limits) == []


@pytest.mark.parametrize("limits", [None, (1, 1)])
@pytest.mark.parametrize("n", [0, 1])
def test_too_few_items(n, limits):
    found, portions = run(np.zeros((n, 4)), 2, limits=limits)
    assert (found.count, found.crowds, portions) == (0, [], [])


def test_bands_are_told_of():
    for limits in (None, (1, 1)):
        told = []
        run(np.zeros((9, 5)), 2, limits=limits, tick=told.append)
        assert told == [1] * 5


def test_portions_are_of_different_rows_and_within_the_limit():
    """More rows than bins: a portion is larger than its limit only if it is a single bin."""
    n, most = 3 * BINS, 500
    keys = np.random.default_rng(2).integers(0, 4000, (n, 4)).astype(np.uint32)
    _, together = run(keys, 2)
    found, portions = run(keys, 2, limits=(3, most))
    assert pairs_of(portions) == pairs_of(together)
    assert found.bins.sum() == found.count
    assert len(portions) > 20
    highest = -1
    for left, _ in portions:
        assert left.min() > highest
        highest = left.max()
        assert len(left) <= most or left.max() * BINS // n == left.min() * BINS // n


def test_in_memory_only_if_they_are_few():
    keys = np.random.default_rng(4).integers(0, 100, (300, 6)).astype(np.uint32)
    expected = oracles.candidates(keys.tolist())
    nothing, told = (lambda done: None), []
    few = few_candidates(HeldKeys(keys), 2, None, told.append, MERGE_BYTES * len(expected))
    assert pairs_of(few.portions()) == expected
    assert told == [1] * 6
    assert few_candidates(HeldKeys(keys), 2, None, nothing, MERGE_BYTES * len(expected) - 1) is None
    assert few_candidates(HeldKeys(keys[:1]), 2, None, nothing, 0).count == 0


def test_runs_are_merged_again_by_another_limit(tmp_path):
    """What was left on disk can be read in larger or smaller portions than it was made for."""
    keys = np.random.default_rng(3).integers(0, 100, (500, 6)).astype(np.uint32)
    HeldKeys(keys).save(tmp_path / "keys")
    found = candidates(StoredKeys(tmp_path / "keys", 500, 6), 2, folder=tmp_path, sort_bytes=1000, merge_bytes=5000)
    expected = pairs_of(found.portions())
    paths = sorted(tmp_path.glob("run-*"))
    assert len(paths) > 6, "some parts a band"
    for limit in (1, 999, MUCH):
        again = merged(paths, found.bins, 500, found.crowds, found.cap, limit)
        assert pairs_of(again.portions()) == expected


# heavy buckets


@contextlib.contextmanager
def few_pairs(budget, bands):
    """Let a band have so many pairs (an even number) and no more, however many items there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS_AT_LEAST", budget * bands // 2)
        patch.setattr(module, "PAIRS_AN_ITEM", 0)
        yield


def naive_cap(column, budget):
    """The largest bucket size of this band, such that buckets up to it make no more pairs than allowed."""
    sizes = Counter(Counter(column).values())
    within = [
        level
        for level in sizes
        if sum(count * comb(size, 2) for size, count in sizes.items() if size <= level) <= budget
    ]
    single = max(size for size in range(1, budget + 3) if comb(size, 2) <= budget)
    return single if len(within) == len(sizes) else max(2, min(single, max(within, default=2)))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 150).map(lambda half: 2 * half))
def test_bucket_cap(column, budget):
    with few_pairs(budget, bands=3):
        cap = bucket_cap(np.array(column, np.uint32), len(column), 3)
    assert cap == naive_cap(column, budget)
    light = [size for size in Counter(column).values() if size <= cap]
    pairs_of_two = sum(size == 2 for size in light)
    assert sum(comb(size, 2) for size in light) <= max(budget, pairs_of_two)
    assert comb(cap, 2) <= max(budget, 1)


def test_bucket_cap_grows_with_the_items():
    """A hundred pairs an item and four million, shared by ten bands."""
    n, bands = 300_000, 10
    budget = (100 * n + 4_000_000) // bands
    column = np.repeat(np.arange(n // 1500, dtype=np.uint32), 1500)
    assert bucket_cap(column, n, bands) == 2, "200 buckets of 1,500 would make 225 million pairs"
    largest = bucket_cap(np.arange(n, dtype=np.uint32), n, bands)
    assert comb(largest, 2) <= budget < comb(largest + 1, 2)


CROWDED = st.integers(1, 4).flatmap(
    lambda bands: st.lists(st.lists(st.integers(0, 3), min_size=bands, max_size=bands), min_size=2, max_size=30)
)


@pytest.mark.parametrize("place", ["memory", "disk"])
@given(keys=CROWDED, budget=st.integers(1, 20).map(lambda half: 2 * half), threads=st.integers(1, 3), data=st.data())
def test_heavy_buckets_are_crowds_and_light_ones_are_complete(place, keys, budget, threads, data):
    limits = None if place == "memory" else data.draw(LIMITS)
    low = data.draw(st.integers(0, len(keys)))
    wanted = data.draw(st.sampled_from([None, Wanted(low, low), Wanted(low, len(keys))]))
    with few_pairs(budget, len(keys[0])):
        found, portions = run(keys, threads, wanted, limits)
    assert found.cap == naive_cap([row[0] for row in keys], budget)
    bounds = (wanted.low, wanted.high) if wanted else (0, len(keys))
    assert pairs_of(portions) == oracles.candidates(keys, *bounds, cap=found.cap)
    assert [crowd.tolist() for crowd in found.crowds] == oracles.crowds(keys, found.cap)


def test_a_crowd_is_found_on_its_own_terms():
    """Two templates of 3,000 items each, a third that has items of both, and many lone pairs: these are all there."""
    keys = np.arange(40_000, dtype=np.uint32).reshape(10_000, 4)
    keys[0:3000, 1] = 5
    keys[3000:6000, 1] = 6
    keys[2000:5000:2, 2] = 7  # from both
    keys[6000::2, 3] = keys[6001::2, 3]
    expected = [(i, i + 1) for i in range(6000, 10_000, 2)]
    for limits in (None, (10, MUCH)):
        with few_pairs(1_000_000, bands=4):
            found, portions = run(keys, 2, limits=limits)
        assert pairs_of(portions) == expected
        assert [crowd.tolist() for crowd in found.crowds] == [list(range(6000))]


# what is written is written


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("n", [20, 1000])
def test_a_full_disk_is_never_silent(n, tmp_path):
    """A run of pairs, short or long, that does not reach the disk is an error, and one that says what is wrong."""
    HeldKeys(np.zeros((n, 1), np.uint32)).save(tmp_path / "keys")
    (tmp_path / "run-0000-0000").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        candidates(StoredKeys(tmp_path / "keys", n, 1), 1, folder=tmp_path)
