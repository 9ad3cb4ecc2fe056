"""Composed families at work: candidates and queries against collisions worked out one by one."""

import tracemalloc
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import GridTriples, InputError, MinHash, ParameterError, SameField, Sets, SimHash
from likewise.families import buckets
from likewise.families.algebra import Family
from likewise.families.vectors import BitSampling, Hyperplanes

SIGMAS = 4.4
STEPS = st.lists(st.tuples(st.sampled_from(["all", "any"]), st.integers(1, 3)), max_size=4)


@dataclass(frozen=True)
class Given(Family):
    """The functions of this family are the columns of the table of items."""

    absent: int | None = None

    def collision(self, d):
        return 1 - np.asarray(d, float)

    def hashes(self, items, n):
        return np.asarray(items)[:, :n]

    def distances(self, items, left, right):
        return (np.asarray(items)[left] != np.asarray(items)[right]).mean(axis=1)


def composed(family, steps):
    for kind, k in steps:
        family = family.all_of(k) if kind == "all" else family.any_of(k)
    return family


def collide(a, b, steps, absent):
    """Whether two lists of values collide: the last step looks at its parts, each by the steps before."""
    if not steps:
        return a[0] == b[0] and a[0] != absent
    (kind, k), inner = steps[-1], steps[:-1]
    width = len(a) // k
    parts = [slice(i * width, (i + 1) * width) for i in range(k)]
    return {"all": all, "any": any}[kind](collide(a[part], b[part], inner, absent) for part in parts)


@st.composite
def tables(draw):
    steps = draw(STEPS)
    n, width = draw(st.integers(0, 12)), composed(Given(), steps).functions
    values = draw(st.lists(st.integers(0, 2), min_size=n * width, max_size=n * width))
    kind = draw(st.sampled_from([np.uint8, np.int32, np.int64, np.float32]))
    return steps, np.array(values, kind).reshape(n, width), draw(st.sampled_from([None, 0, 2]))


@given(case=tables())
def test_candidates_are_the_pairs_that_collide(case):
    steps, table, absent = case
    found = composed(Given(absent), steps).candidates(table)
    lists = table.tolist()
    expected = [(i, j) for i, j in combinations(range(len(lists)), 2) if collide(lists[i], lists[j], steps, absent)]
    assert [*zip(found.left.tolist(), found.right.tolist(), strict=True)] == expected
    assert (len(found), found.items) == (len(expected), len(table))


@given(case=tables(), seed=st.integers(0, 9))
def test_queries_find_what_collides_with_them(case, seed):
    steps, table, absent = case
    family = composed(Given(absent), steps)
    asked = np.random.default_rng(seed).integers(0, 3, (4, table.shape[1]))
    index = family.index(table)
    expected = [
        [row for row, values in enumerate(table.tolist()) if collide(query, values, steps, absent)]
        for query in asked.tolist()
    ]
    assert [index.query(query).tolist() for query in asked] == expected
    assert [index.query(query).tolist() for query in asked.tolist()] == expected
    queries, rows = index.query_many(asked)
    assert [*zip(queries.tolist(), rows.tolist(), strict=True)] == [
        (i, row) for i, found in enumerate(expected) for row in found
    ]
    assert len(index) == len(table)


def test_large_collections_are_keyed_in_parts(monkeypatch):
    table = np.random.default_rng(2).integers(0, 3, (10_000, 8), np.uint8)
    family = Given().all_of(4).any_of(2)
    whole = family.candidates(table, sample=0)
    monkeypatch.setattr(buckets, "BLOCK", 1)
    assert len([*buckets.batches(table, 4096)]) == 3
    parts = family.candidates(table, sample=0)
    assert (parts.left == whole.left).all()
    assert (parts.right == whole.right).all()
    sets = Sets.from_lists([[i % 70, i % 70 + 1] for i in range(5000)])
    assert len(MinHash().all_of(2).candidates(sets, sample=0)) == sum(
        size * (size - 1) // 2 for size in np.bincount(np.arange(5000) % 70)
    )


def test_numbers_of_another_type_are_the_same_numbers():
    items = np.array([[44, 0], [7, 1]], np.uint8)
    index = Given().all_of(2).index(items)
    assert index.query(np.array([44, 0], np.int64)).tolist() == [0]
    assert index.query(np.array([300, 0], np.int64)).tolist() == []  # 300 is 44 in eight bits
    assert index.query(np.array([44.5, 0])).tolist() == []
    assert index.query(np.array([1e300, 0])).tolist() == []
    assert Given().any_of(2).all_of(1).index(np.array([[0.0, 1]])).query(np.array([-0.0, 2])).tolist() == [0]


def test_hash_values_are_numbers():
    with pytest.raises(ParameterError, match="hashes"):
        Given().candidates(np.array([["a"], ["b"]]))


def test_an_absent_member_makes_an_and_absent_but_not_an_or():
    table = np.array([[-1, 5], [-1, 5], [3, 5]])
    assert len(Given(absent=-1).all_of(2).candidates(table)) == 0
    assert len(Given(absent=-1).any_of(2).candidates(table)) == 3
    assert len(Given(absent=None).all_of(2).candidates(table)) == 1


def test_the_measured_rate_stands_beside_the_predicted_one():
    vectors = np.random.default_rng(3).normal(size=(60, 6))
    families = [Hyperplanes(seed).any_of(2).all_of(2) for seed in range(100)]
    every = [family.candidates(vectors) for family in families]
    rates = np.array([found.rate for found in every])
    assert every[0].error == 0  # all 1770 pairs were taken
    assert abs(rates.mean() - every[0].predicted) < SIGMAS * rates.std() / len(rates) ** 0.5


def test_a_prediction_from_a_sample_says_how_far_off_it_may_be():
    vectors = np.random.default_rng(3).normal(size=(400, 6))
    family = Hyperplanes().all_of(3)
    sampled, full = family.candidates(vectors, sample=1000), family.candidates(vectors, sample=10**6)
    assert full.error == 0 < sampled.error
    assert abs(sampled.predicted - full.predicted) < SIGMAS * sampled.error
    assert sampled.error == pytest.approx(full.predicted / 1000**0.5, rel=1)
    left, right = sampled.left, sampled.right
    assert ((left == full.left) & (right == full.right)).all()
    assert family.candidates(vectors, sample=0).predicted is None


def test_no_item_is_paired_with_itself_in_the_sample():
    class Apart(Given):
        def distances(self, items, left, right):
            return (left != right).astype(float)

    assert Apart().candidates(np.arange(10)[:, None], sample=44).predicted == 0


def test_the_report():
    table = np.zeros((3, 2))
    found = Given().all_of(2).candidates(table)
    assert str(found) == found.report() == "3 of 3 pairs are candidates: 100 %, predicted 100 % ± 0 %"
    assert str(Given().candidates(table, sample=0)) == "3 of 3 pairs are candidates: 100 %"
    assert Given().candidates(table[:1]).rate == 0
    assert Given().candidates(table[:0]).predicted is None


def test_too_many_pairs_are_an_error_before_they_are_written_out():
    items = np.zeros((200_000, 1), np.uint8)
    with pytest.raises(InputError, match=r"200,000 items share a bucket, and 19,999,900,000 pairs .* identical items"):
        Given().candidates(items)
    columns = np.eye(40, dtype=np.int64) * np.arange(1, 41)  # in each column all but one item are alike
    with pytest.raises(InputError, match="more than 750 pairs collide"):
        Given().any_of(40).candidates(columns, most=750)
    assert len(Given().any_of(40).candidates(columns, most=780)) == 780
    with pytest.raises(InputError, match="200,000 items collide with queries, more than 1,000"):
        Given().index(items).query(items[0], most=1000)


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_most_is_a_whole_number(most):
    with pytest.raises(ParameterError, match="'most'"):
        Given().candidates(np.zeros((2, 1)), most=most)
    with pytest.raises(ParameterError, match="'sample'"):
        Given().candidates(np.zeros((2, 1)), sample=-1)


def test_memory_is_for_distinct_pairs():
    """A hundred functions that all say the same: 100,000 pairs, a hundred times."""
    table = np.repeat(np.repeat(np.arange(1000), 15)[:, None], 100, axis=1).astype(np.uint16)
    tracemalloc.start()
    found = Given().any_of(100).candidates(table, sample=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 1000 * 105
    keys = 100 * 15_000 * 8
    assert peak < 6 * keys + 8 * 2**20 * 8  # several copies while keys are made; up to 2^20 pairs wait to be merged
    assert peak < 100 * len(found) * 16


def test_the_size_of_an_index():
    table = np.zeros((100, 12), np.uint8)
    assert Given().all_of(4).any_of(3).index(table).nbytes == 100 * 3 * 12
    assert Given().any_of(3).all_of(4).index(table).nbytes == 100 * 12 * 12 + table.nbytes


def test_fingerprints_are_compared_by_unions_and_their_intersection():
    """Section 3.8.5: those with minutiae in a triple of the first group, and in one of the second."""
    rng = np.random.default_rng(4)
    prints = [set(rng.choice(40, 14, replace=False).tolist()) for _ in range(60)]
    triples = GridTriples(squares=40, density=0.35)
    groups = triples.triples(60).reshape(2, 30, 3).tolist()

    def meet(a, b):
        return all(any({*squares} <= a & b for squares in group) for group in groups)

    family = triples.any_of(30).all_of(2)
    found = family.candidates(prints)
    expected = [(i, j) for i, j in combinations(range(60), 2) if meet(prints[i], prints[j])]
    assert [*zip(found.left.tolist(), found.right.tolist(), strict=True)] == expected
    assert 0 < len(expected) < found.every / 2
    assert family.index(prints).query(prints[0]).tolist() == [i for i in range(60) if meet(prints[0], prints[i])]


def test_records_that_agree_in_a_field():
    same = SameField(["name", "phone"])
    records = [{"name": "Ann Lee", "phone": "1"}, {"name": "ann lee"}, {"name": "Bo", "phone": "1"}, {"phone": None}]
    found = same.any_of(2).candidates(records)
    assert [*zip(found.left.tolist(), found.right.tolist(), strict=True)] == [(0, 1), (0, 2)]
    assert same.any_of(2).index(records).query({"name": "ANN LEE", "phone": "1"}).tolist() == [0, 1, 2]
    assert same.all_of(2).index(records).query({"name": "ANN LEE", "phone": "1"}).tolist() == [0]


def test_items_of_other_kinds():
    baskets = [["milk", "bread"], ["bread", "milk", "milk"], ["nails"], []]
    index = MinHash().all_of(2).any_of(3).index(baskets)
    assert index.query({"milk", "bread"}).tolist() == [0, 1]
    assert index.query([]).tolist() == [3]
    assert MinHash().any_of(3).index(Sets.from_lists(baskets)).query(["nails"]).tolist() == [2]
    bits = [[0, 1, 1], [0, 1, 0]]
    assert BitSampling(3).all_of(20).index(bits).query([0, 1, 0]).tolist() == [1]
    assert len(MinHash().all_of(2).candidates([])) == 0
    assert SimHash().all_of(20).index(["to be or not", "to have"]).query("Not to be, or").tolist() == [0]
    numbers = [np.array([3, 4]), np.array([5, 6, 7])]
    assert MinHash().all_of(4).index(numbers).query(np.array([4, 3])).tolist() == [0]
