"""The lists of leaders against lists of Python, and the walk over them against brute force."""

from itertools import combinations, product

import numba
import numpy as np
import pytest
from arrays_of import Opened
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import Sets
from likewise.base.memory import UNLIMITED
from likewise.kernels import graph, leaders
from likewise.kernels.leaders import Crowds, Leaders, Members
from likewise.search import expand
from likewise.search.candidates import Wanted
from likewise.search.crowds import profile
from likewise.search.crowds.gather import Gathering
from likewise.search.items import SetItems
from likewise.search.scored import no_pairs

leaders = Opened(leaders)

SETS = st.lists(st.sets(st.integers(0, 69), min_size=1, max_size=12), min_size=2, max_size=40)


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
    n, bases = len(bits), np.array([0, leaders.SHELVES])
    shelf, counted = np.arange(n) % leaders.SHELVES, np.array([0, 0])
    heads, used = np.full(2 * leaders.SHELVES + leaders.CLASSES * rare, -1, np.int32), np.zeros(1, np.int64)
    pool, records = np.empty((n * (1 + rare), 2 + leaders.CHUNK), np.int32), np.zeros((n + 3, 4), np.uint64)
    lack = 1.0 + np.arange(n) % 3  # and all share 0.0 more
    members = Members(None, None, np.full(n, 9), np.arange(n), maps, None, lack, np.arange(n) - 2, shelf)
    crowds = Crowds(
        None, np.array([0, rare]), bases, np.array([0, 3]), np.zeros(2), *[None] * 3, counted, None, None, None
    )
    lists = Leaders(records, np.zeros(n + 3, np.int64), heads, pool, used, None, None, None)
    own_rare = [sorted(bit for bit in some if bit < rare) for some in bits]
    for m in range(n):
        own = np.zeros(4, np.uint64)
        leaders.write_record(own, m, members)
        leaders.enlist(own, m, 1, np.array(own_rare[m] + [0]), len(own_rare[m]), members, crowds, lists)
    assert counted.tolist() == [0, n]
    assert records[3:, 0].tolist() == [9 << 32 | m for m in range(n)]
    assert records[3:, 1].tolist() == list(range(n))
    assert (records[3:, 2:] == maps).all()
    assert lists.lacks[3:].tolist() == list(range(-2, n - 2))
    assert (heads[: leaders.SHELVES] == -1).all(), "the lists of another crowd"
    for s in range(leaders.SHELVES):
        assert entries(bases[1] + s, heads, pool) == (3 + np.flatnonzero(shelf == s)).tolist()[::-1]
    for bit in range(rare):
        for k in range(leaders.CLASSES):
            carriers = [
                3 + m for m, some in enumerate(own_rare)
                if bit in some[: len(some) - m % 3] and shelf[m] // (leaders.SHELVES // leaders.CLASSES) == k
            ]  # fmt: skip
            assert entries(bases[1] + leaders.SHELVES + leaders.CLASSES * bit + k, heads, pool) == carriers[::-1]


@given(banned=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_pairs_that_were_refuted(banned):
    words = np.array(sorted(a << 32 | b for a, b in banned), np.uint64)
    allowed = {(a, b) for a in range(5) for b in range(5) if leaders.allowed_pair(a, b, words)}
    assert allowed == {(a, b) for a in range(5) for b in range(5)} - banned


@given(
    sets=SETS, rare=st.integers(0, 70), everyone=st.booleans(), threshold=st.sampled_from([(1, 3), (1, 2), (4, 5)]),
    seen=st.integers(0, 40), banned=st.sets(st.integers(1, 39), max_size=5),
)  # fmt: skip
def test_leaders_that_the_first_set_follows(sets, rare, everyone, threshold, seen, banned):
    """All leaders are in one chain, and in those of the rare values they must be found by. Against sets of Python."""
    p, q = threshold
    heads, used = np.full(leaders.SHELVES + leaders.CLASSES * rare, -1, np.int32), np.zeros(1, np.int64)
    pool = np.empty((600 + rare, 2 + leaders.CHUNK), np.int32)
    records, lacks = np.zeros((len(sets), 4), np.uint64), np.zeros(len(sets), np.int64)
    for m, some in enumerate(sets):
        records[m, :2] = len(some) << 32 | len(some), m
        lacks[m] = 2 * p * len(some) - (p + q) * sum(value >= rare for value in some)
        for value in some:
            records[m, 2 + value // 64] |= np.uint64(1 << value % 64)
    lack = lacks / (2 * (p + q))
    lowest, width = lack.min(), max(1e-3, np.ptp(lack) / leaders.CLASSES)
    own_rare = [np.array([*sorted(value for value in some if value < rare), 0]) for some in sets]
    for m in range(1, len(sets)):
        leaders.push(0, heads, pool, used, m)
        place = min(leaders.CLASSES - 1, int((lack[m] - lowest) / width))
        for value in own_rare[m][: max(0, leaders.prefix_of(len(own_rare[m]) - 1, lack[m] + lowest))]:
            leaders.push(leaders.SHELVES + leaders.CLASSES * value + place, heads, pool, used, m)
    refuted = np.array(sorted(banned), np.uint64)  # member 0 and these leaders
    marked, touched = np.zeros(len(sets), np.uint8), np.empty(len(sets) + 1, np.int32)
    own, need = records[0], lacks[0]
    count = leaders.rare_values(own, rare, values := np.empty(128, np.int64))
    assert values[:count].tolist() == own_rare[0][:-1].tolist()
    more = lack[0] + lowest, width, 0, seen, 10**9
    n, _ = leaders.sharing(values, count, *more, heads, pool, marked, touched)
    n, _ = leaders.sift(own, need, n, everyone, marked, touched, lacks, records, refuted, p, q)
    found = touched[:n].tolist()
    assert not marked.any()
    n, _ = leaders.scan(own, need, heads[0], seen, everyone, 10**9, pool, lacks, records, refuted, p, q, touched)
    found += touched[:n].tolist()
    followed = {m for m in range(1, len(sets)) if m not in banned
                and q * len(sets[0] & sets[m]) >= p * len(sets[0] | sets[m])}  # fmt: skip
    assert len(found) == len(set(found))
    assert set(found) <= followed
    if everyone:
        assert {m for m in followed if m >= seen} <= set(found)
    elif any(m >= seen for m in followed):
        assert found


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


EVERY_ONE = list(product([0.3, 0.5, 0.8], [3, 8], [0, 1_000_000]))
SOME = [(0.3, 3, 0), (0.3, 8, 1_000_000), (0.5, 3, 1_000_000), (0.8, 8, 0)]
"""Each value, and any two numbers of own values and of listed pairs; the interpreter takes half a second for each."""


@pytest.mark.parametrize(("threshold", "own", "least"), SOME if numba.config.DISABLE_JIT else EVERY_ONE)
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
    monkeypatch.setattr(expand, "MAX_LISTED", least)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)
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
