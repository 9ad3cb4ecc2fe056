"""Kernels of crowds: counters, heavy shingles and their bitmaps, words of light shingles, and the pairs of words."""

from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
from arrays_of import FEW_64, WORDS_64, Opened, hashes, ints, numbers, ragged
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.kernels import crowds, hashtable, sorting
from likewise.search.exact.bounds import Bounds, least_fraction

crowds = Opened(crowds)

BITS = 16
DOWN = np.uint64(64 - BITS)
SETS = st.lists(st.sets(st.integers(0, 9) | FEW_64, max_size=10).map(list), min_size=1, max_size=8)
CROWDS = st.lists(st.integers(0, 2), min_size=8, max_size=8)


def salted(x, crowd):
    return oracles.mix(x ^ crowd * int(hashtable.TABLE_ODD) % 2**64)


def keyed(lists, of):
    """The salted values of every set."""
    return [[salted(x, crowd) for x in part] for part, crowd in zip(lists, of, strict=False)]


def labels(of, lists):
    return np.array(of[: len(lists)], np.int32)


def counted(lists, of):
    counts = np.zeros(1 << BITS, np.uint32)
    crowds.count_values(*ragged(lists), labels(of, lists), DOWN, counts)
    return counts


def heavy_of(lists, of, most):
    """The salted values that are heavy, with the number of sets that have each."""
    counters = Counter(x >> (64 - BITS) for part in keyed(lists, of) for x in part)
    return Counter(x for part in keyed(lists, of) for x in part if counters[x >> (64 - BITS)] > most)


def collected(lists, of, most):
    """Collect heavy values: the table, the numbers, and what is known of each."""
    values, offsets = ragged(lists)
    table, number = np.zeros(512, np.uint64), np.full(512, -1)
    used, raw = np.zeros(1, np.int64), np.empty(256, np.uint64)
    owners, carriers = np.empty(256, np.int32), np.empty(256, np.int64)
    facts = values, offsets, labels(of, lists), DOWN, counted(lists, of), most, table, number, used, raw
    assert crowds.collect_heavy(0, *facts, owners, carriers) == len(lists)
    count = int(used[0])
    return table, number, raw[:count], owners[:count], carriers[:count]


@given(SETS, CROWDS)
def test_counters(lists, of):
    counts = counted(lists, of)
    truth = Counter(x >> (64 - BITS) for part in keyed(lists, of) for x in part)
    assert {i: int(counts[i]) for i in np.flatnonzero(counts)} == truth
    values, offsets = ragged(lists)
    out = np.empty(len(values), np.int64)
    crowds.value_counts(values, offsets, labels(of, lists), DOWN, counts, out)
    assert numbers(out) == [truth[x >> (64 - BITS)] for part in keyed(lists, of) for x in part]


@given(SETS, CROWDS, st.integers(0, 4))
def test_heavy_values(lists, of, most):
    table, number, raw, owners, carriers = collected(lists, of, most)
    truth = heavy_of(lists, of, most)
    found = [salted(int(x), int(crowd)) for x, crowd in zip(raw, owners, strict=True)]
    assert dict(zip(found, carriers.tolist(), strict=True)) == truth
    assert {int(table[i]): int(number[i]) for i in np.flatnonzero(number >= 0)} == {x: i for i, x in enumerate(found)}
    larger, numbered = np.zeros(1024, np.uint64), np.full(1024, -1)
    hashtable.move_numbers(table, number, larger, numbered)
    assert {int(larger[i]): int(numbered[i]) for i in np.flatnonzero(numbered >= 0)} == {
        x: i for i, x in enumerate(found)
    }


@given(SETS, CROWDS, st.integers(0, 4), st.integers(0, 8))
def test_heavy_values_of_two_parts(lists, of, most, first):
    """Collected apart, with the counters of all, and put together: those of all."""
    counts = counted(lists, of)
    parts = []
    for part in (slice(0, first), slice(first, None)):
        tables = np.zeros(512, np.uint64), np.full(512, -1), np.zeros(1, np.int64)
        facts = *tables, np.empty(256, np.uint64), np.empty(256, np.int32), np.empty(256, np.int64)
        own = (*ragged(lists[part]), np.array(of[part][: len(lists[part])], np.int32))
        assert crowds.collect_heavy(0, *own, DOWN, counts, most, *facts) == len(lists[part])
        parts.append(facts)
    one, other = parts
    crowds.add_heavy(*(column[: int(other[2][0])] for column in other[3:]), *one)
    table, number, used, raw, owners, carriers = one
    found = [salted(int(x), int(crowd)) for x, crowd in zip(raw[: used[0]], owners[: used[0]], strict=True)]
    assert dict(zip(found, carriers[: used[0]].tolist(), strict=True)) == heavy_of(lists, of, most)
    assert {int(table[i]): int(number[i]) for i in np.flatnonzero(number >= 0)} == {x: i for i, x in enumerate(found)}


def test_a_table_that_is_full():
    """Collecting stops before a set that may not fit, and nothing is counted twice when it goes on."""
    lists = [list(range(5 * i, 5 * i + 5)) for i in range(4)]
    values, offsets = ragged(lists)
    of, counts = np.zeros(4, np.int32), counted(lists, [0] * 4)
    table, number = np.zeros(32, np.uint64), np.full(32, -1)
    used, raw = np.zeros(1, np.int64), np.empty(12, np.uint64)
    owners, carriers = np.empty(12, np.int32), np.empty(12, np.int64)
    facts = values, offsets, of, DOWN, counts, 0, table, number, used, raw, owners, carriers
    assert crowds.collect_heavy(0, *facts) == 2
    assert used[0] == 10
    assert crowds.collect_heavy(2, *facts) == 2


@given(SETS, CROWDS, st.integers(0, 4), st.integers(1, 3))
def test_bitmaps(lists, of, most, words):
    table, number, raw, owners, _ = collected(lists, of, most)
    bits = (np.arange(len(raw)) * 7 % (64 * words)).astype(np.int32)
    dense = np.arange(len(raw)) % 2 == 0
    maps = np.full((len(lists), words), 5, np.uint64)
    heavy, often = np.empty(len(lists), np.int64), np.empty(len(lists), np.int64)
    crowds.draw_heavy(*ragged(lists), labels(of, lists), table, number, bits, dense, maps, heavy, often)
    known = {salted(int(x), int(crowd)): i for i, (x, crowd) in enumerate(zip(raw, owners, strict=True))}
    for i, part in enumerate(keyed(lists, of)):
        mine = [known[x] for x in part if x in known]
        drawn = sum(int(word) << (64 * k) for k, word in enumerate(maps[i]))
        assert drawn == sum({1 << int(bits[n]) for n in mine})
        assert (heavy[i], often[i]) == (len(mine), sum(bool(dense[n]) for n in mine))


@given(SETS, CROWDS, st.integers(0, 4), st.integers(0, 5), WORDS_64)
def test_words_of_light_values(lists, of, most, dropped, seed):
    table, number, *_ = collected(lists, of, most)
    heavy = heavy_of(lists, of, most)
    light = [[x for x in part if x not in heavy] for part in keyed(lists, of)]
    lengths = ints([max(0, len(part) - dropped) for part in light])
    out = np.empty(lengths.sum(), np.uint64)
    crowds.light_words(*ragged(lists), labels(of, lists), table, number, np.uint64(seed), 3, lengths, out)
    truth = []
    for i, part in enumerate(light):
        keys = sorted(oracles.mix(x ^ seed) >> 32 for x in part)
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


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12),
    st.sampled_from([0.5, 0.8, 1.0]),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_pairs_of_a_run(entries, threshold, between):
    """All pairs with a key in common whose sizes and heavy values allow the threshold."""
    sizes, heavy = ints([10, 8, 5, 3, 10, 9]), ints([3, 2, 0, 3, 1, 1])
    maps = hashes([[0b111], [0b011], [0], [0b11100], [0b1], [0b1]])
    low, high = between
    words = hashes(sorted(key << 32 | row for key, row in set(entries)))
    facts = sizes, heavy, maps, low, high, *least_fraction(threshold)
    out = np.empty(crowds.run_pairs(words, *facts, False, words[:0]), np.uint64)
    crowds.run_pairs(words, *facts, True, out)
    rows = defaultdict(set)
    for key, row in entries:
        rows[key].add(row)

    def possible(a, b):
        least = Bounds("jaccard", threshold).least(int(sizes[a]), int(sizes[b]))
        differ = (int(maps[a, 0]) ^ int(maps[b, 0])).bit_count()
        rest = min(sizes[a] - heavy[a], sizes[b] - heavy[b])
        return min(sizes[a], sizes[b]) >= least and heavy[a] + heavy[b] - differ + 2 * rest >= 2 * least

    pairs = [pair for key in sorted(rows) for pair in combinations(sorted(rows[key]), 2)]
    fit = [(a, b) for a, b in pairs if b >= low and a < high and possible(a, b)]
    assert [(word >> 32, word & oracles.LOW32) for word in numbers(out)] == fit
