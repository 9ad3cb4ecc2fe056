"""Crowds against brute force: pairs, leaders and the shingles to blame, whatever the template and the threshold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import Sets
from likewise.base.memory import UNLIMITED, Budget
from likewise.kernels import graph
from likewise.search import expand
from likewise.search.candidates import Wanted
from likewise.search.crowds import gather, profile
from likewise.search.crowds.gather import Gathering
from likewise.search.items import SetItems
from likewise.search.scored import no_pairs

SETS = st.lists(st.sets(st.integers(0, 14), min_size=1, max_size=12), max_size=14)


class Compared:
    """The pairs of a crowd, who leads, and what is told of it."""

    def __init__(self, sets, threshold, threads=1, crowds=None, budget=None, known=None, **more):
        n = len(sets)
        rows = np.arange(n)
        crowds = ([rows] if n else []) if crowds is None else crowds
        options = {"ranks": rows, "wanted": Wanted(0, n), "seed": 7, "light_budget": budget, **more}
        options["budget"] = options.pop("memory", UNLIMITED)
        gathering = Gathering(SetItems(sets), rows, crowds, threshold=threshold, threads=threads, **options)
        (self.left, self.right, self.similarity), self.notes, self.abridged = gathering.pairs(known or no_pairs())
        self.complete = self.notes["complete"]
        self.leaders = graph.keepers(np.argsort(options["ranks"]), self.left, self.right) < 0


@pytest.fixture
def listing_nothing(monkeypatch):
    """Every crowd with a pair by heavy shingles alone has too many of them."""
    monkeypatch.setattr(expand, "MAX_LISTED", 0)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)


@pytest.fixture
def few_bits(monkeypatch):
    """Several heavy shingles share a bit, so that bitmaps mislead."""
    monkeypatch.setattr(profile, "MOST_BITS", 32)


def make_sets(lists):
    """Lay sets of small numbers out as they are."""
    values = np.array([x for part in lists for x in part], np.uint64)
    return Sets(values, np.cumsum([0, *map(len, lists)]).astype(np.int64))


def make_crowd(n, similarity, threshold=0.8, size=60, spread=0.0, missing=0.0, templates=1, planted=0.1, seed=1):
    """Make n sets of about `size` numbers on templates that alone make two of them this similar.

    A fraction `planted` of the sets stands in pairs that share just enough of their own to reach the threshold.
    Own parts vary by `spread`; every number of the template is missing with probability `missing`.
    """
    random = np.random.default_rng(seed)
    fixed = round(2 * similarity * size / (1 + similarity))
    template_of = random.integers(0, templates, n)
    own_sizes = np.maximum(1, np.round((size - fixed) * random.uniform(1 - spread, 1 + spread, n))).astype(int)
    own = [[1_000_000 + 1000 * i + j for j in range(own_sizes[i])] for i in range(n)]
    pairs = random.permutation(n)[: int(n * planted / 2) * 2].reshape(-1, 2)
    for a, b in pairs:
        template_of[b] = template_of[a]
        need = math.ceil(threshold / (1 + threshold) * 2 * (fixed + own_sizes[a]) - 1e-9) - fixed
        shared = min(own_sizes[a], max(0, need + random.integers(0, 2)))
        own[b] = own[a][:shared] + [1_000_000 + 1000 * b + j for j in range(own_sizes[a] - shared)]
    kept = random.random((n, fixed)) >= missing
    lists = [[1000 * int(template_of[i]) + j for j in range(fixed) if kept[i, j]] + own[i] for i in range(n)]
    return [random.permutation(part).tolist() for part in lists]


def true_pairs(lists, threshold):
    """All similar pairs, {(i, j): similarity}: for every value, all who have it share one more."""
    n, owners, wholes = len(lists), {}, [set(part) for part in lists]
    for i, part in enumerate(wholes):
        for value in part:
            owners.setdefault(value, []).append(i)
    shared = np.zeros((n, n), np.int64)
    for some in owners.values():
        if len(some) > 1:
            shared[np.ix_(some, some)] += 1
    sizes = np.array([len(part) for part in wholes], np.int64)
    union = sizes[:, None] + sizes - shared
    similarity = np.divide(shared, union, out=np.ones((n, n)), where=union > 0)
    left, right = np.nonzero(np.triu(similarity >= threshold, 1))
    return dict(zip(zip(left.tolist(), right.tolist(), strict=True), similarity[left, right].tolist(), strict=True))


def listed(crowd):
    pairs = list(zip(crowd.left.tolist(), crowd.right.tolist(), strict=True))
    assert pairs == sorted(set(pairs)), "sorted, each once"
    assert all(i < j for i, j in pairs)
    return dict(zip(pairs, crowd.similarity.tolist(), strict=True))


def check(lists, threshold, budget=0, complete=None, misleading=False, **options):
    """Compare with the truth: nothing false, all found if complete, and no two kept that are similar."""
    crowd = Compared(make_sets(lists), threshold, budget=budget, **options)
    truth, found = true_pairs(lists, threshold), listed(crowd)
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    if complete is not None:
        assert crowd.complete == complete
    if crowd.complete:
        assert found == truth
    kept = crowd.leaders
    together = [pair for pair in truth if kept[pair[0]] and kept[pair[1]]]
    assert misleading or crowd.notes["unchecked"] == 0
    assert not together or crowd.notes["unchecked"] > 0, "or it is said that not all were compared"
    return crowd, truth


@pytest.mark.parametrize("similarity", [0.5, 0.667, 0.75, 0.78])
def test_a_template_below_the_threshold(similarity, listing_nothing):
    lists = make_crowd(500, similarity)
    crowd, truth = check(lists, 0.8, complete=True)
    assert len(truth) == 25
    assert len(crowd.left) == 25, "each of these must share a shingle of its own"


@pytest.mark.parametrize("similarity", [0.25, 0.4, 0.46])
def test_a_template_below_a_low_threshold(similarity, listing_nothing):
    _, truth = check(make_crowd(500, similarity, 0.5), 0.5, complete=True)
    assert len(truth) == 25


@pytest.mark.parametrize(("similarity", "threshold"), [(0.82, 0.8), (0.95, 0.8), (0.55, 0.5), (0.7, 0.5)])
def test_a_template_above_the_threshold(similarity, threshold, listing_nothing):
    lists = make_crowd(500, similarity, threshold)
    crowd, truth = check(lists, threshold, complete=False)
    assert len(truth) == 500 * 499 // 2
    assert crowd.leaders.sum() == 1
    assert 499 <= len(crowd.left) <= 499 + 500
    assert (crowd.abridged == 0).all()


OPTIONS = [{"spread": 0.5}, {"templates": 4, "spread": 0.5}, {"templates": 30}, {"missing": 0.05}, {"missing": 0.1}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("similarity", [0.72, 0.8, 0.9])
@pytest.mark.parametrize("way", ["all", "leaders", "leaders of few bits"])
def test_mixtures(similarity, options, way, request):
    if way != "all":
        request.getfixturevalue("listing_nothing")
    if way.endswith("bits"):
        request.getfixturevalue("few_bits")
    whole = True if way == "all" else None
    check(make_crowd(250, similarity, **options), 0.8, complete=whole, misleading=way.endswith("bits"))


@pytest.mark.each_value
@pytest.mark.parametrize("vocabulary", [40, 200])
@pytest.mark.parametrize("way", ["all", "leaders", "leaders of few bits"])
def test_small_vocabularies(vocabulary, way, request):
    """A template and ten words of a few, each of which many sets have."""
    random = np.random.default_rng(2)
    lists = [
        [*range(1000, 1000 + random.integers(40, 60)), *random.choice(vocabulary, 10, replace=False).tolist()]
        for _ in range(400)
    ]
    if way != "all":
        request.getfixturevalue("listing_nothing")
    if way.endswith("bits"):
        request.getfixturevalue("few_bits")
    _, truth = check(lists, 0.8, misleading=way.endswith("bits"))
    assert len(truth) > 20


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
def test_equal_sets(threshold, listing_nothing):
    crowd, _ = check([[1, 2, 3]] * 200, threshold, complete=False)
    assert crowd.leaders.tolist() == [True] + [False] * 199


@given(SETS, st.sampled_from([0.2, 1 / 3, 0.5, 0.8, 1.0]), st.booleans(), st.booleans(), st.data())
def test_tiny_sets(lists, threshold, abridge, misleading, data):
    """Any sets, in any crowds, preferred in any order, with or without pairs known before."""
    lists = [sorted(part) for part in lists]
    n = len(lists)
    labels = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)), int)
    ranks = np.array(data.draw(st.permutations(range(n))), int)
    truth = true_pairs(lists, threshold)
    outside = {pair: s for pair, s in truth.items() if labels[pair[0]] != labels[pair[1]] or labels[pair[0]] < 0}
    known = tuple(np.array(column) for column in zip(*((*pair, s) for pair, s in sorted(outside.items())), strict=True))
    crowds = [rows for label in range(3) if len(rows := np.flatnonzero(labels == label))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profile, "LIGHTEST", data.draw(st.sampled_from([1, 2, 16])))
        if abridge:
            patch.setattr(expand, "MAX_LISTED", 0)
            patch.setattr(expand, "LISTED_PER_ITEM", 0)
        if misleading:
            patch.setattr(profile, "MOST_BITS", 2)
        crowd = Compared(make_sets(lists), threshold, crowds=crowds, budget=0, ranks=ranks, known=known or None)
    found = listed(crowd)
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    assert outside.keys() <= found.keys()
    if crowd.complete:
        assert found == truth
    if crowd.notes["unchecked"] == 0:
        assert not [pair for pair in truth if crowd.leaders[pair[0]] and crowd.leaders[pair[1]]]


@given(SETS, st.integers(0, 14), st.booleans(), st.booleans())
def test_two_collections(lists, split, across, abridge):
    """Pairs of two earlier items do not count; nor, across, pairs of two later ones. Who has a partner is listed."""
    n = len(lists)
    split = min(split, n)
    wanted = Wanted(split, split if across else n)
    with pytest.MonkeyPatch.context() as patch:
        if abridge:
            patch.setattr(expand, "MAX_LISTED", 0)
            patch.setattr(expand, "LISTED_PER_ITEM", 0)
        patch.setattr(profile, "LIGHTEST", 1)
        crowd = Compared(make_sets([sorted(part) for part in lists]), 0.5, budget=0, wanted=wanted)
    found = listed(crowd)
    every = true_pairs([sorted(part) for part in lists], 0.5)
    truth = {pair: s for pair, s in every.items() if pair[1] >= wanted.low and pair[0] < wanted.high}
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    if crowd.complete:
        assert found == truth
    earlier = {later for early, later in truth if early < split}
    assert earlier <= {later for _, later in found}, "each later item with a partner among the earlier is listed"


def test_work_is_bounded(listing_nothing, monkeypatch):
    """With hardly any work allowed, everything listed is still true, and how many were not compared is said."""
    monkeypatch.setattr(gather, "WORK", 40)
    monkeypatch.setattr(gather, "GRACE", 1)
    lists = make_crowd(500, 0.86, missing=0.1, planted=0)
    crowd = Compared(make_sets(lists), 0.8, budget=0)
    truth, found = true_pairs(lists, 0.8), listed(crowd)
    assert all(truth.get(pair) == similarity for pair, similarity in found.items())
    assert 0 < crowd.notes["unchecked"] < 500


@pytest.mark.parametrize("options", [{"similarity": 0.75}, {"similarity": 0.82}, {"similarity": 0.87, "missing": 0.05}])
def test_the_answer_depends_neither_on_threads_nor_on_memory(options, monkeypatch, tmp_path):
    monkeypatch.setattr(expand, "MAX_LISTED", 5000)
    monkeypatch.setattr("likewise.search.items.SET_BATCH", 100)
    sets = make_sets(make_crowd(1000, spread=0.4, **options))
    first = Compared(sets, 0.8, budget=10_000)
    for threads, budget in ((2, UNLIMITED), (3, Budget(100_000)), (1, Budget(1_000_000))):
        other = Compared(sets, 0.8, threads, budget=10_000, memory=budget, folder=lambda: tmp_path)
        for name in ("left", "right", "similarity", "leaders", "abridged"):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
        assert first.notes == other.notes
    assert not list(tmp_path.glob("words-*"))


def test_sets_of_32_bits():
    lists = make_crowd(600, 0.75, spread=0.5)
    sets = make_sets(lists)
    narrow = Sets(sets.values.astype(np.uint32), sets.offsets)
    wide, short = (Compared(these, 0.8, budget=0) for these in (sets, narrow))
    assert listed(wide) == listed(short)


def test_the_shingles_to_blame(monkeypatch):
    told = {}
    monkeypatch.setattr(
        gather,
        "described",
        lambda items, rows, common, documents: (
            told.update(values=common.values.tolist(), carriers=common.carriers.tolist()) or {"most_common": []}
        ),
    )
    lists = [[*range(50), 100 + i] for i in range(40)] + [[*range(30), 200 + i] for i in range(20)]
    Compared(make_sets(lists), 0.8, budget=0)
    assert told == {"values": list(range(20)), "carriers": [60] * 20}
    Compared(make_sets([part[25:] for part in lists]), 0.8, budget=0)
    assert told == {"values": [*range(25, 45)], "carriers": [60] * 5 + [40] * 15}
