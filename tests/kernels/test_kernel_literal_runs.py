"""Runs of words shared with items: found and placed as a search in lists of words finds them."""

from collections import Counter
from itertools import takewhile

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import TextChunk
from likewise.kernels.documents import WordUnits
from likewise.kernels.hashtable import table_bits
from likewise.kernels.literal_runs import (
    SHIFTS,
    LiteralItems,
    WindowTable,
    check_words,
    covered_words,
    enter_windows,
    item_words,
    place_runs,
    rarest_windows,
    search_documents,
    window_hashes,
)
from likewise.shingle.unicode import fold, folding_tables, split_words

K = 3
UNITS = WordUnits(True, *folding_tables(True))
WORDS = st.sampled_from(["a", "B", "straße", "ß", "中", "été"])
SIGNS = st.sampled_from([" ", "\n", ", ", " — "])
TEXTS = st.lists(st.tuples(WORDS, SIGNS), max_size=12).map(lambda pairs: "".join(word + sign for word, sign in pairs))


def chunk_of(texts):
    return TextChunk.from_arrow(pa.array(texts, pa.large_string()))


def words_of(text):
    return [fold(word) for word in split_words(text)]


def hashed(chunk):
    words, offsets = np.empty(int(chunk.offsets[-1]) + len(chunk) + 1, np.uint64), np.empty(len(chunk) + 1, np.int64)
    count = item_words(chunk.data, chunk.offsets, UNITS, words, offsets)
    return words[:count], offsets


def table_of(words, offsets, k, first_only):
    hashes, items, places = np.empty(len(words) + 1, np.uint64), *np.empty((2, len(words)), np.int32)
    count = window_hashes(words, offsets, k, first_only, hashes, items, places)
    order = np.argsort(hashes[:count], kind="stable")
    values, begins = np.unique(hashes[:count], return_index=True)
    slots = np.full(1 << table_bits(len(values)), -1, np.int32)
    coarse, marks = np.zeros(16, np.uint8), np.zeros(1 << table_bits(len(values)), np.uint8)
    enter_windows(values, slots, coarse, marks)
    starts = np.append(np.searchsorted(hashes[order], values), count)
    assert len(begins) == len(values)
    counters = np.arange(count, dtype=np.int32)
    return WindowTable(k, coarse, marks, slots, values, starts, items[order], places[order], counters)


def naive_runs(documents, items):
    for d, document in enumerate(documents):
        for number, item in enumerate(items):
            for i in range(len(document) - K + 1):
                for j in range(len(item) - K + 1):
                    if document[i : i + K] == item[j : j + K]:
                        low = 0
                        while low < min(i, j) and document[i - low - 1] == item[j - low - 1]:
                            low += 1
                        both = zip(document[i:], item[j:], strict=False)
                        high = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))
                        yield d, number, i - low, j - low, low + high


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 3))
def test_runs_are_those_of_lists(texts, items, room):
    documents, known = chunk_of(texts), chunk_of(items)
    words, offsets = hashed(known)
    long, short = table_of(words, offsets, K, False), table_of(words[:0], np.zeros(len(items) + 1, np.int64), 2, True)
    literal = LiteralItems(words, offsets, long, short, np.zeros(len(long.values) + 1, np.int32), 9, 9)
    runs, seen = np.empty((room, 5), np.int64), np.empty((room, 2), np.int64)
    found, marks, row = [], set(), 0
    while row < len(texts):
        done, count, marked = search_documents(documents.data, documents.offsets, row, UNITS, literal, runs, seen)
        found += map(tuple, runs[:count].tolist())
        marks |= set(map(tuple, seen[:marked].tolist()))
        if done == row:
            runs, seen = np.empty((2 * len(runs), 5), np.int64), np.empty((2 * len(seen), 2), np.int64)
        row = done
    plain, items_of = [words_of(text) for text in texts], [words_of(text) for text in items]
    expected = set(naive_runs(plain, items_of))
    assert set(found) <= expected
    shifts = Counter((d, number, at + i) for d, number, at, _, size in expected for i in range(size))
    assert set(found) == expected or max(shifts.values()) > SHIFTS
    windows = {tuple(item[j : j + K]) for item in items_of for j in range(len(item) - K + 1)}
    having = [{tuple(one[i : i + K]) for i in range(len(one) - K + 1)} & windows for one in plain]
    assert len(marks) == sum(map(len, having))
    ordered = np.array(sorted(set(found)), np.int64).reshape(-1, 5)
    places, same = np.empty((len(ordered), 5), np.int64), np.zeros(len(ordered), bool)
    place_runs(documents.data, documents.offsets, ordered, UNITS, places)
    passages = []
    for run, place in zip(ordered.tolist(), places.tolist(), strict=True):
        (d, number, at, item_at, size), (start, end, first, last, total) = run, place
        passages.append(texts[d][first:last])
        assert texts[d].encode()[start:end].decode() == texts[d][first:last]
        assert words_of(texts[d][first:last]) == plain[d][at : at + size] == items_of[number][item_at : item_at + size]
        assert total == len(plain[d])
    cut = chunk_of(passages)
    check_words(cut.data, cut.offsets, known.data, known.offsets, ordered, UNITS, same)
    assert same.all()
    if len(ordered):
        other = ordered.copy()
        other[:, 4] -= 1
        check_words(cut.data, cut.offsets, known.data, known.offsets, other, UNITS, same)
        assert not same.any()


def test_short_items_are_found_whole():
    known, documents = chunk_of(["a b c", "a b d", "x"]), chunk_of(["a b d a b c", "a b", "a b d"])
    words, offsets = hashed(known)
    short = table_of(words, offsets, 2, True)
    nothing = table_of(words[:0], np.zeros(4, np.int64), 8, False)
    counts = np.array([0, 5], np.int32)
    literal = LiteralItems(words, offsets, nothing, short, counts, 9, 4)
    runs, seen = np.empty((9, 5), np.int64), np.empty((9, 2), np.int64)
    assert search_documents(documents.data, documents.offsets, 0, UNITS, literal, runs, seen) == (3, 1, 3)
    item = int(short.items[0])
    assert runs[0].tolist() == [0, item, 3 if item == 0 else 0, 0, 3]
    assert sorted(seen[:3].tolist()) == sorted([[0, 0], [0, 1], [2, 1 if item == 0 else 0]])


def test_the_rarest_window_and_what_is_covered():
    runs = np.array([[0, 0, 0, 1, 4], [0, 1, 0, 0, 2]], np.int64)
    counters = np.array([0, 1, 2, -1, -1, 3, -1], np.int32)
    least = np.empty(2, np.int64)
    rarest_windows(runs, K, np.array([0, 5, 7]), counters, np.array([9, 8, 7, 6], np.int32), least)
    assert least.tolist() == [7, 6]
    covered = np.empty(4, np.int64)
    covered_words(np.array([0, 0, 0, 1]), np.array([0, 2, 8, 3]), np.array([5, 2, 4, 1]), covered)
    assert covered.tolist() == [9, 9, 9, 1]
