"""The lists of leaders against lists of Python, and the walk over them against brute force."""

from itertools import combinations

import numpy as np
import pytest
from arrays_of import Opened
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import Sets
from likewise.base.memory import UNLIMITED
from likewise.kernels import graph, leaders
from likewise.search.candidates import Wanted
from likewise.search.crowds import profile, walk
from likewise.search.crowds.gather import Gathering
from likewise.search.items import SetItems
from likewise.search.scored import no_pairs

leaders = Opened(leaders)


def entries(chain, heads, pool):
    """The members in a chain, the latest first."""
    found, k = [], heads[chain]
    while k >= 0:
        found += pool[k, 2 : 2 + pool[k, 1]].tolist()[::-1]
        k = pool[k, 0]
    return found


@given(chains=st.lists(st.integers(0, 2), max_size=80))
def test_chains_hold_what_was_put_in_the_latest_first(chains):
    heads, used = np.full(3, -1, np.int32), np.zeros(1, np.int64)
    pool = np.full((3 + len(chains) // leaders.CHUNK, 2 + leaders.CHUNK), -7, np.int32)  # no more than are needed
    for m, chain in enumerate(chains):
        leaders.push(chain, heads, pool, used, m)
    for chain in range(3):
        assert entries(chain, heads, pool) == [m for m, one in enumerate(chains) if one == chain][::-1]
    assert used[0] == sum(-(-chains.count(chain) // leaders.CHUNK) for chain in range(3))


@given(
    bits=st.lists(st.sets(st.integers(0, 127), max_size=9), min_size=1, max_size=5),
    rare=st.sampled_from([0, 1, 63, 64, 65, 127, 128]),
)
def test_a_leader_is_listed_by_its_shelf_and_by_each_rare_value(bits, rare):
    maps = np.zeros((len(bits), 2), np.uint64)
    for m, some in enumerate(bits):
        for bit in some:
            maps[m, bit // 64] |= np.uint64(1 << bit % 64)
    bases, rare_bits = np.array([0, leaders.SHELVES]), np.array([0, rare])
    shelf = np.arange(len(bits)) % leaders.SHELVES
    heads, used = np.full(2 * leaders.SHELVES + rare, -1, np.int32), np.zeros(1, np.int64)
    pool = np.empty((len(bits) * (1 + rare), 2 + leaders.CHUNK), np.int32)
    for m in range(len(bits)):
        leaders.enlist(m, 1, bases, rare_bits, maps, shelf, heads, pool, used)
    assert (heads[: leaders.SHELVES] == -1).all(), "the lists of another crowd"
    for s in range(leaders.SHELVES):
        assert entries(bases[1] + s, heads, pool) == np.flatnonzero(shelf == s).tolist()[::-1]
    for bit in range(rare):
        carriers = [m for m, some in enumerate(bits) if bit in some]
        assert entries(bases[1] + leaders.SHELVES + bit, heads, pool) == carriers[::-1]


@given(banned=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_pairs_that_were_refuted(banned):
    words = np.array(sorted(a << 32 | b for a, b in banned), np.uint64)
    allowed = {(a, b) for a in range(5) for b in range(5) if leaders.allowed_pair(a, b, words)}
    assert allowed == {(a, b) for a in range(5) for b in range(5)} - banned


def test_the_favourite_that_was_found_least_often_gives_way():
    n = leaders.FAVOURITES
    favourites, hits = np.full((2, n), -1, np.int32), np.zeros((2, n), np.int32)
    for b in range(n):
        leaders.remember(1, 100 + b, favourites, hits)
    assert favourites[1].tolist() == list(range(100, 100 + n))
    hits[1] = 5
    hits[1, 3] = 2
    leaders.remember(1, 100, favourites, hits)
    assert favourites[1].tolist() == list(range(100, 100 + n)), "it is one already"
    leaders.remember(1, 7, favourites, hits)
    assert (favourites[1, 3], hits[1, 3]) == (7, 1)
    assert (favourites[0] == -1).all()


@pytest.mark.parametrize("least", [0, 1_000_000])
@pytest.mark.parametrize("own", [3, 8])
@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_every_row_is_a_leader_or_listed_with_one(threshold, own, least, monkeypatch):
    """Where all pairs may be listed they are; where none may be, no two leaders are similar.

    Each set has most of a template, and some of 80 values that a few others have too: heavy values, many of them rare.
    """
    random = np.random.default_rng(own)
    lists = [
        {*random.choice(8, random.integers(5, 9), replace=False), *random.choice(np.arange(8, 88), own, replace=False)}
        for _ in range(64)
    ]
    monkeypatch.setattr(profile, "LIGHTEST", 1)
    monkeypatch.setattr(walk, "LISTED_AT_LEAST", least)
    monkeypatch.setattr(walk, "LISTED_PER_ITEM", 0)
    rows = np.arange(len(lists))
    values = np.array([x for some in lists for x in sorted(some)], np.uint64)
    sets = Sets(values, np.cumsum([0, *map(len, lists)]).astype(np.int64))
    gathering = Gathering(
        SetItems(sets), rows, [rows], threshold=threshold, threads=1, ranks=rows, wanted=Wanted(0, len(rows)), seed=7,
        light_budget=0, budget=UNLIMITED,
    )  # fmt: skip
    (left, right, _), notes, _ = gathering.pairs(no_pairs())
    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2)
             if len(lists[i] & lists[j]) >= threshold * len(lists[i] | lists[j])]  # fmt: skip
    found = list(zip(left.tolist(), right.tolist(), strict=True))
    assert set(found) <= set(pairs)
    if least or notes["complete"]:
        assert found == pairs
    leading = graph.keepers(rows, left, right) < 0
    assert not [(i, j) for i, j in pairs if leading[i] and leading[j]]
