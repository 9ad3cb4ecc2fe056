"""Kernels of record linkage against naive ones."""

from __future__ import annotations

import re
from collections import Counter

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import linking, record_terms, record_words
from likewise.kernels.linking import nearest


def rows_of(rng: np.random.Generator, rows: int, terms: int) -> tuple[list[dict[int, float]], np.ndarray]:
    """Rows of random terms with random weights, sorted by term, and where each begins."""
    found = []
    for _ in range(rows):
        some = np.sort(rng.choice(terms, rng.integers(0, 6), replace=False))
        found.append({int(term): float(rng.uniform(0.1, 1.0)) for term in some})
    return found, np.cumsum([0, *(len(row) for row in found)]).astype(np.int64)


@pytest.mark.parametrize("border", [0, 12])
@pytest.mark.parametrize(("k", "cap", "enough"), [(2, 2, 0.2), (1, 4, 0.5), (3, 30, 0.1)])
def test_nearest_are_the_best_and_those_that_are_enough(border: int, k: int, cap: int, enough: float) -> None:
    rng = np.random.default_rng(7)
    rows, offsets = rows_of(rng, 30, 15)
    terms = np.array([term for row in rows for term in row], np.int32)
    weights = np.array([weight for row in rows for weight in row.values()])
    others = range(border, 30)
    posted = [(term, x - border, rows[x][term]) for term in range(15) for x in others if term in rows[x]]
    starts = np.searchsorted([term for term, _, _ in posted], np.arange(16)).astype(np.int64)
    owners = np.array([owner for _, owner, _ in posted], np.int64)
    asked = np.arange(border or 30)
    left, right = nearest(
        asked, offsets, terms, weights, starts, owners, np.array([w for *_, w in posted]),
        30 - border, border, k, cap, enough, 10**6,
    )  # fmt: skip
    found = set(zip(left.tolist(), right.tolist(), strict=True))
    naive = set()
    for x in asked.tolist():
        scores = {y: sum(w * rows[y].get(t, 0.0) for t, w in rows[x].items()) for y in others if y != x}
        ranked = sorted((y for y in scores if scores[y] > 0), key=lambda y: -scores[y])
        plenty = sum(scores[y] >= enough for y in ranked)
        naive |= {(x, y) for y in ranked[: max(k, min(plenty, cap))]}
    assert found == naive


def test_two_best_are_those_of_a_sort() -> None:
    rng = np.random.default_rng(3)
    side, scores = rng.integers(0, 40, 200), rng.integers(0, 12, 200).astype(float)
    place, second = linking.two_best(side, scores, 45)
    for record in range(45):
        mine = sorted(np.flatnonzero(side == record).tolist(), key=lambda p: (-scores[p], p))
        assert place[record] == (mine[0] if mine else -1)
        assert second[record] == (scores[mine[1]] if len(mine) > 1 else -np.inf)


def test_records_that_have_a_word_are_counted_once() -> None:
    rng = np.random.default_rng(5)
    values = [rng.integers(0, 30, rng.integers(0, 8)).astype(np.uint64) for _ in range(50)]
    counts = rng.integers(1, 4, 50)
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    wanted = np.array([0, 3, 7, 29, 99], np.uint64)
    found = record_terms.records_having(wanted, offsets, np.concatenate(values), counts)
    naive = [sum(int(n) for value, n in zip(values, counts, strict=True) if word in value) for word in wanted]
    assert found.tolist() == naive


@pytest.mark.parametrize("longest", [5, 40])  # of 40, three values may be more than are searched one by one
def test_words_found_elsewhere_are_those_of_a_naive_search(longest: int) -> None:
    rng = np.random.default_rng(9)
    values = [rng.integers(0, 12 * longest, rng.integers(1, longest)).astype(np.int32) for _ in range(20)]
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    rarity = rng.uniform(0.5, 3.0, 12 * longest)
    codes = rng.integers(-1, 20, (15, 3)).astype(np.int32)
    sizes = np.append(np.diff(offsets), 0)[codes].sum(axis=1)
    assert sizes.min() < record_words.FEW_TOKENS
    assert (sizes.max() > record_words.FEW_TOKENS) == (longest > 5)
    left, right = rng.integers(0, 15, 60), rng.integers(0, 15, 60)
    wanted = rng.random((60, 3)) < 0.7
    stamps = np.zeros(len(rarity), np.int32)
    found = record_words.found_elsewhere(wanted, codes, offsets, np.concatenate(values), rarity, left, right, stamps)
    for p, (x, y) in enumerate(zip(left, right, strict=True)):
        for field in range(3):
            there = whole = 0.0
            for one, other in ((x, y), (y, x)):
                words = {int(w) for code in codes[other] if code >= 0 for w in values[code]}
                mine = values[codes[one, field]].tolist() if codes[one, field] >= 0 else []
                whole += sum(rarity[w] for w in mine)
                there += sum(rarity[w] for w in mine if w in words)
            np.testing.assert_allclose(found[p, field], there / whole if whole and wanted[p, field] else np.nan)


def test_terms_are_numbered_as_they_first_occur() -> None:
    """So many that the table grows: once by the interpreter, twice compiled."""
    rng = np.random.default_rng(11)
    most = 60_000 if numba.config.DISABLE_JIT else 200_000
    some = rng.integers(0, most, 2 * most).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    places = np.empty(len(some), np.int32)
    known = np.zeros(1 << 16, np.uint64), np.full(1 << 16, -1, np.int32), 0
    for half in np.split(np.arange(len(some)), 2):
        known = record_terms.number_terms(some[half], places[half[0] : half[-1] + 1], *known)
    count = known[2]
    different, first, back = np.unique(some, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    assert count == len(different)
    assert np.array_equal(places, rank[back])
    frequency = np.zeros(count, np.int64)
    record_terms.add_counts(np.arange(len(some) + 1), places, np.full(len(some), 3), frequency)
    assert np.array_equal(frequency, 3 * np.bincount(places))


@given(st.lists(st.text(st.sampled_from("aZ9 .&-_~\t\x7fé"), max_size=8), max_size=6), st.booleans())
def test_squeeze(texts, words):
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"before" + b"".join(encoded), np.uint8)
    offsets = np.cumsum([6, *map(len, encoded)])
    out, ends, odd = np.zeros(len(data), np.uint8), np.empty(len(offsets), np.int64), np.empty(len(texts), bool)
    strange = record_words.squeeze(data, offsets, words, out, ends, odd)
    for place, text in enumerate(texts):
        assert odd[place] == any(c in text for c in ("\t\x7fé" if words else "\t\x7fé&"))
        plain = re.sub("[^A-Za-z0-9]", " ", text) if words else text.lower()
        found = out[ends[place] : ends[place + 1]].tobytes().decode()
        assert found == ("" if odd[place] else " ".join(plain.split()))
    assert strange == odd.sum()


def test_terms_of_rows_are_sorted_and_counted() -> None:
    """Of few terms and of more, with and without repeats."""
    rng = np.random.default_rng(17)
    sizes = [0, 1, 2, 30, record_terms.FEW_TERMS, record_terms.FEW_TERMS + 1, 200]
    values = [rng.integers(0, most, n).astype(np.uint64) << np.uint64(44) for n in sizes for most in (3, 1 << 20)]
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    terms, counts = np.empty(offsets[-1], np.uint64), np.empty(offsets[-1], np.int64)
    ends = np.empty(len(offsets), np.int64)
    n = record_terms.bag(offsets, np.concatenate(values), terms, counts, ends)
    assert n == ends[-1]
    for row, some in enumerate(values):
        different, repeats = np.unique(some, return_counts=True)
        span = slice(ends[row], ends[row + 1])
        assert np.array_equal(terms[span], different)
        assert np.array_equal(counts[span], repeats)


def terms_of(text: str) -> list[int]:
    """The hashed words and trigrams of a value."""
    data = np.frombuffer(text.encode() + b" ", np.uint8).copy()
    out, ends = np.empty(2 * len(data), np.uint64), np.empty(2, np.int64)
    record_words.terms(data, np.array([0, len(data) - 1]), True, out, ends)
    return out[: ends[1]].tolist()


VALUES = ["ann lee", "", "ps-lx350h", "o'hara", "x" * 90, "ürümqi é", "12 12 12", "- - -", "a1-b c-d 2/3"]


def buffer_of(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The letters of values, and where each begins."""
    parts = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(parts) + b" ", np.uint8).copy()
    return data, np.cumsum([0, *map(len, parts)]).astype(np.int64)


def test_terms_are_counted_as_they_are_written() -> None:
    counts = np.empty(len(VALUES), np.int32)
    record_words.count_terms(*buffer_of(VALUES), counts)
    assert counts.tolist() == [len(terms_of(value)) for value in VALUES]


def test_bags_of_values_are_their_sorted_terms() -> None:
    data, offsets = buffer_of(VALUES)
    whole = sum(len(terms_of(value)) for value in VALUES)
    terms, counts = np.empty(whole, np.uint64), np.empty(whole, np.int32)
    ends = np.empty(len(offsets), np.int64)
    n = record_terms.bag_values(data, offsets, 200, terms, counts, ends)
    assert ends[0] == 0
    assert ends[-1] == n
    for value, start, stop in zip(VALUES, ends, ends[1:], strict=False):
        bag = dict(zip(terms[start:stop].tolist(), counts[start:stop].tolist(), strict=True))
        assert list(bag) == sorted(bag)
        assert bag == Counter(terms_of(value))


def test_band_keys_are_made_of_the_least_hashes_of_every_bin() -> None:
    data, offsets = buffer_of(VALUES)
    records = [[0, 3], [1, 2], [4, -1], [-1, -1], [5, 6], [0, 3]]
    seeds, bands, rows = np.array([3, 10**18], np.uint64), 3, 2
    bins, most = bands * rows, 2**64
    low = np.full((len(records), len(seeds) * bins), most - 1, np.uint64)
    for field in range(2):
        codes = np.array([record[field] for record in records])
        starts, stops = (np.where(codes < 0, 0, ends[codes]) for ends in (offsets[:-1], offsets[1:]))
        record_terms.lower_minima(data, starts, stops, 200, seeds, bins, low)
    for record, found in zip(records, low.tolist(), strict=True):
        least = [most - 1] * len(found)
        for term in (term for value in record if value >= 0 for term in terms_of(VALUES[value])):
            for place, seed in enumerate(seeds.tolist()):
                h = term * (seed | 1) % most
                bin_ = place * bins + ((h >> 40) * bins >> 24)
                least[bin_] = min(least[bin_], h)
        assert found == least
    keys, marks = np.empty((len(records), len(seeds) * bands), np.uint32), np.zeros(low.shape, np.uint8)
    record_terms.band_keys(low, bands, rows, keys, marks)
    empty = low == most - 1
    assert (marks == np.where(empty, 0, low % np.uint64(255) + np.uint64(1))).all()
    assert ((keys == 0) == empty.reshape(len(records), -1, rows).any(axis=2)).all()
    assert keys[0].tolist() == keys[5].tolist() != keys[4].tolist()


def test_joint_keys_are_of_the_rows_with_both_values() -> None:
    first, second = np.array([5, 0, 7, 5, 9], np.uint64), np.array([2, 3, 0, 2, 4], np.uint64)
    keys, owners = np.empty(5, np.uint64), np.empty(5, np.int64)
    n = record_terms.joint_keys(first, second, np.uint64(1), keys, owners)
    assert owners[:n].tolist() == [0, 3, 4]
    assert keys[0] == keys[1] != keys[2]
    n = record_terms.joint_keys(first, np.zeros(0, np.uint64), np.uint64(1), keys, owners)
    assert owners[:n].tolist() == [0, 2, 3, 4]


def test_levels_of_values_are_those_of_their_similarity() -> None:
    codes = np.array([[0, 3], [1, -1], [0, 4], [2, 3]], np.int32)
    left, right = np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 3, 3])
    values, same = np.empty((2, 2, 5), np.int32), np.empty(5, np.int8)
    linking.paired_values(codes, np.array([0, 3, 5]), left, right, values, same)
    assert values.tolist() == [[[0, 0, 0, 1, 0], [1, 0, 2, 2, 2]], [[0, 0, 0, -1, 1], [-1, 1, 0, 0, 0]]]
    assert same.tolist() == [0, 1, 1, 0, 0]
    different = linking.different_values(values[0])
    assert [side.tolist() for side in different] == [[0, 0, 1, 0], [1, 2, 2, 2]]
    halves, level, doubtful = np.empty((2, 5), np.float32), np.empty(5, np.int8), np.empty(5, bool)
    rarity = np.array([7.0, 8.0, 9.0], np.float32)
    out = linking.PairLevels(halves[0], level, halves[1], doubtful)
    likely = np.array([True, True, True, False, True])
    linking.value_levels(values[0], np.array([0.3, 0.99, 0.1, 0.0]), rarity, 20, 0.5, likely, True, out)
    assert level.tolist() == [6, 20, 19, 2, 0]
    assert halves[1][1] == 7
    assert np.isnan(halves[1][[0, 2, 3, 4]]).all()
    assert doubtful.tolist() == [True, False, False, False, True]
    linking.value_levels(values[1], np.array([0.2, 0.9]), rarity, 20, 0.5, np.ones(5, bool), True, out)
    assert level.tolist() == [-1, 4, 20, -1, 18]
    assert np.isnan(halves[0][[0, 3]]).all()
    assert doubtful.tolist() == [True, True, False, True, False]


def test_sums_and_worth_of_levels() -> None:
    level = np.array([0, 2, -1, 2, 1], np.int8)
    sums = np.zeros(3)
    linking.sums_by_level(level, np.array([1.0, 2.0, 4.0, 8.0, 16.0]), sums)
    assert sums.tolist() == [1, 16, 10]
    rarity, worth = np.array([np.nan, 3.0, np.nan, np.nan, 5.0], np.float32), np.array([-1.0, 1.0, 4.0])
    found = np.empty(5)
    linking.level_worth(level, rarity, worth, 2, np.float32(1.0), np.float32(0.5), found)
    assert found.tolist() == [-1, 5, 0, 4, 1]
