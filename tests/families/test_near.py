"""Near neighbours: the numbers of the lecture, what is promised, a naive look-up, and probing beside the own bucket."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import GridTriples, InputError, MinHash, ParameterError, Sets
from likewise.families.algebra import Family
from likewise.families.functions import probed
from likewise.families.near import Near
from likewise.families.vectors import BitSampling, CauchyLines, Hyperplanes, RandomLines, SignSketch, UnaryCode

SIGMAS = 4.4


def strings(n, dimensions, seed):
    return np.random.default_rng(seed).integers(0, 2, (n, dimensions), np.uint8)


def flipped(vectors, count, rng):
    """Vectors that differ in exactly so many bits."""
    out = vectors.copy()
    for row in out:
        row[rng.choice(len(row), count, replace=False)] ^= 1
    return out


def test_functions_and_tables_of_the_lecture():
    index = BitSampling(100).near(strings(1000, 100, 1), r=10, c=2)
    assert (index.p1, index.p2) == (0.9, 0.8)
    assert index.k == math.ceil(math.log(1000) / math.log(1 / 0.8)) == 31
    assert index.rho == pytest.approx(math.log(1 / 0.9) / math.log(1 / 0.8))
    assert index.L == math.ceil(1000**index.rho) == 27
    assert index.limit == 2 * 27
    assert index.predicted == pytest.approx(1 - (1 - 0.9**31) ** 27)
    assert index.promise == pytest.approx(index.predicted - 1000 * 0.8**31 / 2)
    assert index.nbytes == 1000 * 27 * 12
    assert str(index) == (
        "1,000 items in 27 tables of 31 functions, ρ = 0.472, 0.324 MB; a neighbour at 10 is found with probability "
        "0.650, and one within 20 is returned with at least 0.155"
    )


def test_where_nothing_is_rounded_the_promise_is_that_of_the_lecture():
    """p2 = 1/2 and n = 2^k: then P(met) ≥ 1 − 1/e, and a half is left to Markov."""
    index = BitSampling(16).near(strings(256, 16, 1), r=4, c=2)
    assert (index.p2, index.k) == (0.5, 8)
    assert index.predicted >= 1 - 1 / math.e
    assert index.promise == index.predicted - 0.5 >= 0.5 - 1 / math.e


@pytest.mark.parametrize("n", [2, 37, 300])
@pytest.mark.parametrize(("p1", "c"), [(0.95, 1.2), (0.9, 3), (0.6, 1.5), (0.45, 1.1)])
def test_rounding_does_not_take_back_the_promise(n, p1, c):
    assert Hyperplanes().near(np.ones((n, 2)), r=180 * (1 - p1), c=c).promise >= 0.5 - 1 / math.e


def test_the_promise_holds_when_all_other_items_are_barely_too_far():
    n, size, r, c, trials = 100, 128, 6, 2, 300
    rng = np.random.default_rng(5)
    center = strings(1, size, 6)
    found = 0
    for seed in range(trials):
        far = flipped(np.repeat(center, n - 1, axis=0), c * r + 1, rng)
        items = np.concatenate([far, flipped(center, r, rng)])
        index = BitSampling(size, seed).near(items, r=r, c=c)
        near = index.query(center[0])
        assert near in (None, Near(n - 1, r))
        found += near is not None
    promise = index.promise
    assert 0.13 < promise < index.predicted
    assert found / trials > promise - SIGMAS * (promise * (1 - promise) / trials) ** 0.5


def test_a_planted_neighbour_is_met_as_often_as_predicted():
    n, size, r, seeds = 500, 128, 8, 60
    rng = np.random.default_rng(7)
    items = strings(n, size, 8)
    rates = []
    for seed in range(seeds):
        index = BitSampling(size, seed).near(items, r=r, c=3)
        rows = rng.integers(0, n, 50)
        found, distance = index.query_many(flipped(items[rows], r, rng), limit=None)
        assert (found[found >= 0] == rows[found >= 0]).all()
        assert set(distance[found < 0]) <= {np.inf}
        assert set(distance[found >= 0]) == {r}
        rates.append((found >= 0).mean())
    assert abs(np.mean(rates) - index.predicted) < SIGMAS * np.std(rates) / seeds**0.5


def looked_up(index, items, query, limit):
    """What the lecture says, with dictionaries: table after table, at most so many entries, the nearest of them."""
    functions = index.k * index.L
    values = index.family.hashes(np.concatenate([items, query[None]]), functions)
    entries = []
    for table in range(index.L):
        part = slice(table * index.k, (table + 1) * index.k)
        entries += [row for row in range(len(items)) if (values[row, part] == values[-1, part]).all()]
    entries = entries if limit is None else entries[:limit]
    if not entries:
        return None
    distances = [(float((items[row] != query).sum()), row) for row in entries]
    distance, row = min(distances)
    return Near(row, distance) if distance <= index.c * index.r else None


@given(
    n=st.integers(1, 60),
    dimensions=st.integers(4, 10),
    seed=st.integers(0, 99),
    limit=st.sampled_from(["2L", 1, 5, None]),
)
def test_queries_are_answered_as_by_dictionaries(n, dimensions, seed, limit):
    items, queries = strings(n, dimensions, seed), strings(6, dimensions, seed + 1)
    index = BitSampling(dimensions, seed).near(items, r=1, c=2, k=3, L=4)
    expected = [looked_up(index, items, query, 2 * index.L if limit == "2L" else limit) for query in queries]
    assert [index.query(query, limit) for query in queries] == expected
    rows, distances = index.query_many(queries, limit)
    assert rows.tolist() == [near.row if near else -1 for near in expected]
    assert distances.tolist() == [near.distance if near else math.inf for near in expected]


def test_the_limit_bounds_what_a_crowded_bucket_costs():
    items = np.ones((1000, 8), np.uint8)
    index = BitSampling(8).near(items, r=1, c=3)
    assert len(index._entries(items[:1], index.limit)[0]) == 2 * index.L
    assert len(index._entries(items[:1], 10**9)[0]) == 1000 * index.L
    assert index.query(items[0]) == Near(0, 0.0)


# Probing: (family, items, how to make neighbours, r, c)


def points(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 12))


def counts(n, seed):
    return np.random.default_rng(seed).integers(0, 21, (n, 12))


def nudged(items, rng):
    return np.clip(items + rng.integers(-1, 2, items.shape), 0, 20)


CASES = {
    Hyperplanes: (Hyperplanes(2), points, lambda x, rng: x + 0.3 * rng.normal(size=x.shape), 20, 2),
    SignSketch: (SignSketch(2), points, lambda x, rng: x + 0.3 * rng.normal(size=x.shape), 20, 2),
    RandomLines: (RandomLines(3.0, 2), points, lambda x, rng: x + 0.2 * rng.normal(size=x.shape), 1, 3),
    CauchyLines: (CauchyLines(60.0, 2), points, lambda x, rng: x + 0.2 * rng.normal(size=x.shape), 2, 4),
    BitSampling: (BitSampling(64, 2), lambda n, seed: strings(n, 64, seed), lambda x, rng: flipped(x, 6, rng), 6, 3),
    UnaryCode: (UnaryCode(12, 20, 2), counts, nudged, 8, 4),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=[kind.__name__ for kind in CASES])


def test_all_families_that_can_be_probed_are_tested():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    families = {kind for kind in below(Family) if kind.__module__.startswith("likewise.")}
    assert {kind for kind in families if kind.multiprobe} == {*CASES}


@every_case
def test_probes_find_more_with_the_same_tables(case):
    family, make, neighbours, r, c = case
    items = make(400, 1)
    rng = np.random.default_rng(3)
    queries = neighbours(items[rng.integers(0, 400, 150)], rng)
    found = {}
    for probes in (0, 1, 4, 20):
        rows, distances = family.near(items, r, c, k=20, L=1, probes=probes).query_many(queries, limit=None)
        found[probes] = distances
        assert (distances[rows >= 0] <= c * r).all()
    assert (found[1] <= found[0]).all()
    assert (found[4] <= found[1]).all()
    assert (found[20] <= found[4]).all()
    share = {probes: np.isfinite(distances).mean() for probes, distances in found.items()}
    assert share[0] < share[4] < share[20]


def test_probes_stand_in_for_tables():
    """Two tables with 20 probes find more than ten tables without, in a fifth of the memory."""
    family, make, neighbours, r, c = CASES[Hyperplanes]
    items, rng = make(400, 1), np.random.default_rng(3)
    queries = neighbours(items[rng.integers(0, 400, 300)], rng)
    many, few = family.near(items, r, c, k=20, L=10), family.near(items, r, c, k=20, L=2, probes=20)
    assert few.nbytes * 5 == many.nbytes
    assert (few.query_many(queries)[0] >= 0).sum() > (many.query_many(queries)[0] >= 0).sum()


@every_case
def test_probes_are_other_buckets_with_one_or_two_changes(case):
    family, make, *_ = case
    items, k, probes = make(20, 4), 6, 12
    values = family.hashes(items, 2 * k)
    moved, usable = probed(family.moves(items, values), values, k, probes)
    assert moved.shape == (20 * 2, probes, k)
    own = values.reshape(-1, 1, k)
    changed = (moved != own).sum(axis=2)
    assert (changed[usable] > 0).all()
    assert (changed[~usable] == 0).all()
    if family.unit in ("degrees", "L2") or isinstance(family, CauchyLines):
        assert changed.max() == 2
        assert usable.all()
        assert all(len({tuple(probe) for probe in bucket.tolist()}) == probes for bucket in moved)


@pytest.mark.parametrize("kind", [Hyperplanes, SignSketch, RandomLines, CauchyLines])
def test_the_cost_of_a_move_is_how_far_the_border_is(kind):
    """Go along a line to a little before the border of its segment, and then a little beyond."""
    family, make, *_ = CASES[kind]
    items, n = make(5, 6), 7
    values = family.hashes(items, n)
    moves = family.moves(items, values)
    directions = family.directions(n, items.shape[1])
    width = getattr(family, "a", 1)
    for row, item in enumerate(items):
        for function, direction in enumerate(directions):
            for choice in range(moves.other.shape[2]):
                far = moves.cost[row, function, choice] ** 0.5 * width
                ahead = (-1, 1)[choice] if hasattr(family, "a") else -np.sign(item @ direction)
                step = ahead * far * direction / (direction @ direction)
                before, beyond = family.hashes(np.stack([item + 0.999 * step, item + 1.001 * step]), n)[:, function]
                assert before == values[row, function]
                assert beyond == moves.other[row, function, choice]


def test_moving_a_count_past_a_number_moves_it_past_the_nearer_ones_too():
    family, n = UnaryCode(3, 20, 1), 9
    items = np.random.default_rng(2).integers(0, 21, (30, 3))
    values = family.hashes(items, n)
    moves = family.moves(items, values)
    cost, component = moves.cost, moves.component
    moved, usable = probed(moves, values, n, 1)
    for row, item in enumerate(items):
        function = int(np.argmin(cost[row, :, 0]))
        there = item.copy()
        there[component[function]] += int(cost[row, function, 0]) * (1 if values[row, function] == 0 else -1)
        assert usable[row, 0]
        assert moved[row, 0].tolist() == family.hashes(there[None], n)[0].tolist()


def test_a_bit_that_is_sampled_twice_is_flipped_twice():
    family = BitSampling(4, 1)
    places = family.places(12)
    items = strings(8, 4, 3)
    values = family.hashes(items, 12)
    moved, usable = probed(family.moves(items, values), values, 12, 20)
    assert usable.sum(axis=1).tolist() == [4 + 6] * 8  # of four bits, one or two
    for row, item in enumerate(items):
        buckets = {tuple((item ^ flip)[places]) for flip in map(np.array, np.ndindex(2, 2, 2, 2)) if 0 < flip.sum() < 3}
        assert {tuple(bucket) for bucket in moved[row][usable[row]].tolist()} == buckets


def test_sets_and_lists_have_neighbours_too():
    baskets = [[*range(i, i + 20)] for i in range(0, 400, 7)]
    for items in (baskets, Sets.from_lists(baskets)):
        index = MinHash(method="classic").near(items, r=0.2, c=4, L=30)
        assert index.query(range(70, 90)) == Near(10, 0.0)
        row, distance = index.query(range(71, 91))
        assert (row, distance) == (10, pytest.approx(2 / 21))
        rows, _ = index.query_many([range(7, 27), range(1000, 1020)])
        assert rows.tolist() == [1, -1]


def test_fingerprints_have_neighbours_in_sets_and_in_lists():
    rng = np.random.default_rng(4)
    prints = [np.sort(rng.choice(40, 14, replace=False)) for _ in range(60)]
    sets = Sets(np.concatenate(prints), np.arange(61) * 14)
    for items in (prints, sets):
        index = GridTriples(40, 0.35).near(items, r=0.1, c=4, k=1, L=200)
        assert index.query(prints[9].tolist()) == Near(9, 0.0)


def test_tiny_collections():
    index = BitSampling(8).near(np.zeros((1, 8), np.uint8), r=1, c=2)
    assert (index.k, index.L) == (1, 1)
    assert index.query(np.zeros(8, np.uint8)) == Near(0, 0.0)
    empty = BitSampling(8).near(np.zeros((0, 8), np.uint8), r=1, c=2)
    assert (len(empty), empty.query(np.zeros(8, np.uint8))) == (0, None)
    everything = BitSampling(8).near(strings(50, 8, 1), r=2, c=4)  # nothing collides at distance 8
    assert (everything.p2, everything.k, everything.L, everything.rho) == (0, 1, 1, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"r": 0, "c": 2}, "'r' parameter of near must be a number above 0"),
        ({"r": math.nan, "c": 2}, "'r' parameter of near"),
        ({"r": 1, "c": 1}, "'c' parameter of near must be a number above 1"),
        ({"r": 1, "c": True}, "'c' parameter of near"),
        ({"r": 5, "c": 2}, "has no distance c·r = 10; choose a smaller r or c"),
        ({"r": 1, "c": 2, "k": 0}, "'k' parameter of near"),
        ({"r": 1, "c": 2, "L": 1.5}, "'L' parameter of near"),
        ({"r": 1, "c": 2, "probes": -1}, "'probes' parameter of near must be a whole number from 0"),
        ({"r": 1, "c": 2, "k": 2, "probes": 4}, "from 0 to 3, the number of sets of one or two of k = 2 functions"),
        ({"r": 1, "c": 1.1, "memory": "1kB"}, "choose a larger c, a smaller L with `probes`, or more memory"),
        ({"r": 1, "c": 1.1, "memory": "much"}, "'memory' parameter of near"),
    ],
)
def test_what_near_refuses(options, message):
    with pytest.raises(ParameterError, match=message):
        BitSampling(8).near(strings(50, 8, 1), **options)


def test_families_that_cannot_tell_or_cannot_be_probed():
    with pytest.raises(ParameterError, match="'items' parameter of near"):
        MinHash().near(iter([[1], [2]]), r=0.2, c=2)
    with pytest.raises(ParameterError, match="does not separate distance 1e-09 from 2e-09"):
        RandomLines(1e12).near(points(5, 1), r=1e-9, c=2)
    with pytest.raises(ParameterError, match="MinHash does not support multi-probe search"):
        MinHash().near([[1], [2]], r=0.2, c=2, probes=1)
    index = BitSampling(3).near(np.array([[0, 1, 2], [2, 1, 0]]), r=1, c=2, k=3, probes=2)
    with pytest.raises(InputError, match="zeros and ones"):
        index.query(np.array([0, 1, 2]))
    with pytest.raises(ParameterError, match="'limit' parameter"):
        index.query(np.array([0, 1, 1]), limit=0)
