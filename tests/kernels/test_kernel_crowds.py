from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from arrays_of import FEW_64, WORDS_64, Opened, hashes, ints, numbers, ragged
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise.kernels import crowds, hashtable, sets, sorting
from likewise.search.exact.bounds import Bounds, least_fraction

crowds = Opened(crowds)
hashtable = Opened(hashtable)

BITS = 16
DOWN = np.uint64(64 - BITS)
SETS = st.lists(st.sets(st.integers(0, 9) | FEW_64, max_size=10).map(list), min_size=1, max_size=8)
LACKS = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=10)


def counter_of(x):
    return x * int(sets.TABLE_ODD) % 2**64 >> (64 - BITS)


def counted(lists):
    values, _ = ragged(lists)
    counts = np.zeros(1 << BITS, np.uint32)
    crowds.count_values(values, DOWN, counts)
    return counts


def marked(lists, most):
    values, offsets = ragged(lists)
    marks, sizes = np.zeros(len(values), bool), np.empty(len(lists), np.int64)
    crowds.mark_heavy(values, offsets, DOWN, counted(lists), most, marks, sizes)
    return marks, sizes


def is_heavy(lists, most):
    counts = Counter(counter_of(x) for part in lists for x in part)
    return lambda x: counts[counter_of(x)] > most


@given(SETS)
def test_counters(lists):
    counts = counted(lists)
    truth = Counter(counter_of(x) for part in lists for x in part)
    assert {i: int(counts[i]) for i in np.flatnonzero(counts)} == truth
    values = hashes([x for part in lists for x in part])
    out = np.empty(len(values), np.int64)
    crowds.value_counts(values, DOWN, counts, out)
    assert numbers(out) == [truth[counter_of(int(x))] for x in values]


@given(SETS, st.sets(FEW_64 | WORDS_64, max_size=8).map(list))
@example([[]], [])
def test_exact_counts(lists, wanted):
    out = np.zeros(len(wanted), np.int64)
    crowds.exact_counts(ragged(lists)[0], hashes(wanted), out)
    truth = Counter(x for part in lists for x in part)
    assert numbers(out) == [truth[x] for x in wanted]


@given(SETS, st.integers(0, 4))
def test_heavy_values(lists, most):
    marks, sizes = marked(lists, most)
    heavy = is_heavy(lists, most)
    assert marks.tolist() == [heavy(x) for part in lists for x in part]
    assert numbers(sizes) == [sum(map(heavy, part)) for part in lists]


@given(SETS, st.integers(0, 4), st.integers(0, 5), WORDS_64)
def test_words_of_light_values(lists, most, dropped, seed):
    values, offsets = ragged(lists)
    marks, sizes = marked(lists, most)
    lengths = np.maximum(0, np.diff(offsets) - sizes - dropped)
    out = np.empty(lengths.sum(), np.uint64)
    crowds.light_words(values, offsets, marks, np.uint64(seed), 3, lengths, out)
    heavy = is_heavy(lists, most)
    truth = []
    for i, part in enumerate(lists):
        keys = sorted(oracles.mix(x ^ seed) >> 32 for x in part if not heavy(x))
        truth += [key << 32 | i + 3 for key in keys[: max(0, len(keys) - dropped)]]
    assert sorted(numbers(out)) == sorted(truth)


@given(st.lists(WORDS_64, max_size=40))
def test_sorting_words(words):
    grouped, starts = np.empty(len(words), np.uint64), np.empty(sorting.RADIX + 1, np.int64)
    sorting.split_words(hashes(words), grouped, starts)
    assert numbers(grouped) == sorted(words, key=lambda word: word >> 53)
    assert starts[0] == 0
    assert starts[-1] == len(words)
    assert numbers(sorting.sort_words(hashes(words), 0, 64)) == sorted(words)
    assert numbers(sorting.sort_words(hashes(words), 32, 54)) == sorted(words, key=lambda word: word >> 32 & 0x3FFFFF)
    ordered = hashes(sorted(words))
    assert numbers(ordered[: crowds.distinct_words(ordered)]) == sorted(set(words))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12), st.sampled_from([0.5, 0.8, 1.0]))
def test_pairs_of_a_run(entries, threshold):
    sizes = ints([10, 8, 5, 0, 10, 9])
    words = hashes(sorted(key << 32 | row for key, row in set(entries)))
    out = np.empty(crowds.run_pairs(words, sizes, threshold, False, words[:0]), np.uint64)
    crowds.run_pairs(words, sizes, threshold, True, out)
    rows = defaultdict(set)
    for key, row in entries:
        rows[key].add(row)
    pairs = [pair for key in sorted(rows) for pair in combinations(sorted(rows[key]), 2)]
    fit = [(a, b) for a, b in pairs if min(sizes[a], sizes[b]) >= threshold * max(sizes[a], sizes[b])]
    assert [(word >> 32, word & oracles.LOW32) for word in numbers(out)] == fit


@given(SETS, st.integers(0, 3))
def test_keys_and_maps_of_heavy_values(lists, most):
    values, offsets = ragged(lists)
    marks, _ = marked(lists, most)
    rows = ints(range(len(lists))[::-1])
    seeds = hashes(oracles.seed_sequence(5, 12))
    out = np.empty((len(lists), 3), np.uint32)
    crowds.heavy_keys(values, offsets, marks, rows, seeds, 2, out)
    heavy = is_heavy(lists, most)
    parts = [[x for x in part if heavy(x)] for part in lists]
    assert [numbers(row) for row in out[::-1]] == [
        oracles.band_keys(oracles.signature("fast", 5, part, 6), 2) for part in parts
    ]
    maps, same = np.empty((len(lists), 2), np.uint64), np.empty((len(lists), 2), np.uint64)
    crowds.heavy_maps(values, offsets, marks, maps)
    sets.bitmaps(*ragged(parts), same)
    assert np.array_equal(maps, same)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)), max_size=14), st.integers(0, 2))
def test_pairs_of_buckets(items, limit):
    items = sorted(items, key=lambda item: item[2])
    keys = np.array([item[:2] for item in items], np.uint32).reshape(-1, 2)
    lack = np.array([item[2] for item in items], float)
    throngs, number, found = np.full(keys.shape, -1, np.int32), 0, []
    truth, crowded = set(), {}
    for band in range(2):
        order = np.argsort(keys[:, band], kind="stable")
        count, after = crowds.bucket_pairs(keys, band, order, lack, limit, throngs, number, hashes([]))
        out = np.empty(count, np.uint64)
        assert crowds.bucket_pairs(keys, band, order, lack, limit, throngs, number, out) == (count, after)
        found += [(word >> 32, word & oracles.LOW32) for word in numbers(out)]
        for key in range(3):
            members = np.flatnonzero(keys[:, band] == key).tolist()
            pairs = [(i, j) for i, j in combinations(members, 2) if lack[i] + lack[j] <= 0]
            if len(pairs) > limit * len(members):
                crowded |= {(i, band): number for i in members if lack[i] + lack[members[0]] <= 0}
                number += 1
            else:
                truth |= set(pairs)
        assert number == after
    assert sorted(found) == sorted(truth), "each once"
    assert {tuple(map(int, place)): int(throngs[tuple(place)]) for place in np.argwhere(throngs >= 0)} == crowded


@given(SETS, st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_pairs_in_reach(lists, threshold):
    """No similar pair is dropped."""
    values, offsets = ragged(lists)
    n, sizes = len(lists), np.diff(offsets)
    maps = np.empty((n, 1), np.uint64)
    sets.bitmaps(values, offsets, maps)
    pairs = hashes([i << 32 | j for i, j in combinations(range(n), 2)])
    count = crowds.pairs_in_reach(pairs, ints(range(n)[::-1]), sizes, sizes, maps, *least_fraction(threshold))
    found = {(word >> 32, word & oracles.LOW32) for word in numbers(pairs[:count])}
    assert all(i < j for i, j in found)
    assert found >= set(oracles.similar_pairs(lists, threshold))
    for i, j in combinations(range(n), 2):
        differ = sum((int(x) ^ int(y)).bit_count() for x, y in zip(maps[i], maps[j], strict=True))
        least = Bounds("jaccard", threshold).least(int(sizes[i]), int(sizes[j]))
        assert ((i, j) in found) == (sizes[i] + sizes[j] - differ >= 2 * least)


@given(LACKS, st.integers(1, 4))
def test_lists_keep_those_that_lack_least(lacks, most):
    members, listed = np.full(most, -1), 0
    for i in range(len(lacks)):
        listed = crowds.enlist(members, listed, most, i, np.array(lacks))
    assert numbers(members[:listed]) == sorted(range(len(lacks)), key=lambda i: lacks[i])[:most]


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8, 1.0])
@given(lists=SETS)
def test_similarity_to_a_set_in_a_table(threshold, lists):
    values, offsets = ragged(lists)
    table, owner = np.empty(64, np.uint64), np.full(64, -1, np.int32)
    for a in range(len(lists)):
        down, mask = map(np.uint64, hashtable.enter_set(values, offsets[a], offsets[a + 1], a, table, owner))
        for b in range(len(lists)):
            least = Bounds("jaccard", threshold).least(len(lists[a]), len(lists[b]))
            found = crowds.similarity_to(values, offsets, a, b, table, owner, down, mask, least)
            truth = oracles.jaccard(lists[a], lists[b])
            assert found == (truth if truth >= threshold else -1.0)


def lead(lists, pairs, throng, room, threshold, most=1000):
    """Let the rows of one throng, all values heavy, find their leaders."""
    values, offsets = ragged(lists)
    n = len(lists)
    maps = np.empty((n, 1), np.uint64)
    sets.bitmaps(values, offsets, maps)
    pairs = sorted(pairs, key=lambda pair: pair[1])
    left, right = ints([pair[0] for pair in pairs]), ints([pair[1] for pair in pairs])
    leaders = np.zeros(n, bool)
    out = np.empty(3 * n, np.int64), np.empty(3 * n, np.int64), np.empty(3 * n)
    sizes = np.diff(offsets)
    lack = threshold / (1 + threshold) * sizes - sizes / 2
    place = np.where([i in throng for i in range(n)], np.arange(n), -1)
    throngs = np.tile(np.array([0, -1, 1], np.int32), (n, 1))
    lists_ = ints([0, room, 2 * room])
    written = crowds.lead(
        left,
        right,
        values,
        offsets,
        maps,
        sizes,
        lack,
        place,
        throngs,
        lists_,
        most,
        most,
        *least_fraction(threshold),
        leaders,
        *out,
    )
    return leaders.tolist(), list(zip(*(side[:written].tolist() for side in out), strict=True))


@given(SETS, st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_leaders_of_a_throng(lists, threshold):
    """With room for all, the leaders are the keepers of the truth, and every follower is listed with one."""
    n = len(lists)
    truth = oracles.similar_pairs(lists, threshold)
    stands = oracles.keepers(range(n), truth)
    leaders, found = lead(lists, [], range(n), n, threshold)
    assert leaders == [stands[i] == i for i in range(n)]
    assert all(truth[i, j] == similarity for i, j, similarity in found)
    assert {j for i, j, _ in found if leaders[i]} == {i for i in range(n) if stands[i] != i}


@given(SETS, st.integers(1, 3), st.integers(1, 3))
def test_leaders_where_there_is_little_room(lists, room, most):
    """Whoever is missed leads as well; what is listed is true, and says the same of who leads."""
    n = len(lists)
    truth = oracles.similar_pairs(lists, 0.5)
    leaders, found = lead(lists, [], range(n), room, 0.5, most)
    assert all(truth[i, j] == similarity for i, j, similarity in found)
    stands = oracles.keepers(range(n), {(i, j) for i, j, _ in found})
    assert leaders == [stands[i] == i for i in range(n)]


@given(SETS, st.sampled_from([0.3, 0.8]))
def test_leaders_by_verified_pairs(lists, threshold):
    n = len(lists)
    truth = oracles.similar_pairs(lists, threshold)
    stands = oracles.keepers(range(n), truth)
    assert lead(lists, truth, [], 1, threshold) == ([stands[i] == i for i in range(n)], [])
