"""Words with their places, winnowing, runs, and runs put together, against their definitions."""

import numba
import numpy as np
import pytest
from arrays_of import FEW_64, Opened, hashes, ints, numbers, utf8
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise import kernels
from likewise.kernels import documents, passages, word_runs
from likewise.kernels.documents import document_units
from likewise.shingle import Words
from likewise.shingle.unicode import split_words, unicode_tables

passages = Opened(passages)
word_runs = Opened(word_runs)
documents = Opened(documents)

TEXTS = st.text(st.sampled_from("aAbc \n中文\u0301ßΐé.😀"), max_size=30)
FEW_WORDS = st.lists(st.integers(1, 3), max_size=14)


kernels._compiler()  # tells Numba which functions stand for others, if no kernel was compiled before
write_units = numba.njit(lambda data, start, stop, how, room, out: document_units(data, start, stop, how, room, out))


def places_of(text):
    """Where each word starts and ends, by looking for one after the other."""
    found, at = [], 0
    for word in split_words(text):
        at = text.index(word, at)
        found.append((at, at + len(word)))
        at += len(word)
    return found


@given(text=TEXTS, before=st.sampled_from([b"", b"x", b"abc ", "é".encode()]))
def test_words_and_their_places(text, before):
    data, offsets = utf8([text], before)
    room = len(data) + 1
    starts, ends = np.zeros(room, np.int64), np.zeros(room, np.int64)
    n = documents.placed_words(data, offsets[0], offsets[1], *unicode_tables(), starts, ends)
    assert list(zip(numbers(starts[:n]), numbers(ends[:n]), strict=True)) == places_of(text)
    values, space = np.zeros(room, np.uint64), np.zeros(4 * room + 40, np.uint64)
    assert write_units(data, offsets[0], offsets[1], Words(1).recipe().units, space, values) == n
    assert numbers(values[:n]) == [oracles.hash_unit(Words(1), unit) for unit in Words(1).units(text)]


def grams_of(words, k):
    return [oracles.mix(x) for x in oracles.shingle_hashes(words, k)] if len(words) >= k else []


def winnowed(words, k, window):
    """The fingerprints that the kernel chooses: (hash, place)."""
    room = len(words) + 1
    values, places = np.zeros(room, np.uint64), np.zeros(room, np.int64)
    n = documents.winnow(hashes(words), len(words), k, window, np.zeros(room, np.uint64), values, places)
    return list(zip(numbers(values[:n]), numbers(places[:n]), strict=True))


@given(words=st.lists(FEW_64, max_size=20), k=st.integers(1, 4), window=st.integers(1, 5))
def test_winnowing_takes_the_least_of_every_window_and_nothing_else(words, k, window):
    grams = grams_of(words, k)
    chosen = winnowed(words, k, window)
    places = [place for _, place in chosen]
    assert [grams[place] for place in places] == [value for value, _ in chosen]
    assert places == sorted(set(places))
    windows = [range(i, i + window) for i in range(len(grams) - window + 1)]
    for one in windows:
        assert min(grams[i] for i in one) in {grams[i] for i in one if i in places}
    for place in places:
        assert any(place in one and grams[place] == min(grams[i] for i in one) for one in windows)


@given(
    run=st.lists(FEW_64, min_size=6, max_size=9),
    sides=st.lists(st.lists(FEW_64, max_size=8), min_size=4, max_size=4),
    k=st.integers(1, 6),
)
def test_documents_that_share_a_run_share_a_fingerprint(run, sides, k):
    window = 6 - k + 1
    one = {value for value, _ in winnowed([*sides[0], *run, *sides[1]], k, window)}
    other = {value for value, _ in winnowed([*sides[2], *run, *sides[3]], k, window)}
    assert one & other


@given(texts=st.lists(TEXTS, max_size=4), k=st.integers(1, 3), window=st.integers(1, 3))
def test_fingerprints_of_documents(texts, k, window):
    data, offsets = utf8(texts, b"..")
    room = len(data) + len(texts) + 1
    words, values = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
    owners, starts = np.zeros(room, np.uint32), np.zeros(len(texts) + 1, np.int64)
    recipe = Words(k).recipe()
    n = documents.fingerprint_documents(data, offsets, recipe, window, words, starts, values, owners)
    expected = []
    for row, text in enumerate(texts):
        units = [oracles.hash_unit(Words(1), unit) for unit in Words(1).units(text)]
        assert numbers(words[starts[row] : starts[row + 1]]) == units
        expected += [(value, row) for value, _ in winnowed(units, k, window)]
    assert list(zip(numbers(values[:n]), numbers(owners[:n]), strict=True)) == expected


def naive_runs(a, b, least):
    """(i, j, size) of all runs of equal words that cannot be made longer."""
    found = []
    for i in range(len(a)):
        for j in range(len(b)):
            size = 0
            while i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]:
                size += 1
            if size >= least and (i == 0 or j == 0 or a[i - 1] != b[j - 1]):
                found.append((i, j, size))
    return sorted(found)


def tables(a, size):
    """The table of runs of so many words, and that of runs of one word more."""
    grams, longer = word_runs.make_grams(len(a)), word_runs.make_grams(len(a))
    word_runs.enter_grams(hashes(a), len(a), size, grams)
    word_runs.enter_grams(hashes(a), len(a), size + 1, longer)
    return grams, longer


def steps_of(a, b, size, words, limit=1 << 30):
    """The hits at chosen words, and the steps of the runs."""
    grams, longer = tables(a, size)
    hits = np.zeros((len(b), 2), np.int32)
    count, steps = word_runs.count_steps(grams, longer, len(a), hashes(b), len(b), size, words, hits, limit)
    return hits[:count].tolist(), steps


def runs_of(a, b, least, limit=1 << 20):
    """All runs, and how many places the words of b have in a; None if there are more places than the limit."""
    if min(len(a), len(b)) < least:
        return [], 0
    grams, _ = tables(a, least)
    hits = np.zeros((len(b), 2), np.int32)
    count, total = word_runs.find_grams(grams, len(a), hashes(b), len(b), least, hits, limit)
    if total > limit:
        return None, total
    if len(a) > least:
        found, steps = steps_of(a, b, least, np.full(64, 2**64 - 1, np.uint64))
        assert steps == sum(size + word_runs.RUN_STEPS for *_, size in naive_runs(a, b, least))
        assert found == hits[:count].tolist()
    runs = np.zeros((total, 3), np.int64)
    made, equal = word_runs.shared_runs(
        hashes(a), len(a), grams.nexts, hashes(b), len(b), hits[:count], least, 1, least, runs
    )
    assert equal == runs[:made, 2].sum()
    return sorted(map(tuple, runs[:made].tolist())), total


@given(a=FEW_WORDS, b=FEW_WORDS, least=st.integers(1, 3))
def test_runs(a, b, least):
    runs, total = runs_of(a, b, least)
    assert runs == naive_runs(a, b, least)
    same = [a[i : i + least] == b[j : j + least] for i in range(len(a)) for j in range(len(b))
            if len(a) - i >= least <= len(b) - j]  # fmt: skip
    assert total == sum(same)


def test_work_on_text_that_repeats_itself_ends():
    assert runs_of([1] * 14, [1] * 14, 1, limit=20) == (None, 28), "it stops at the second word"


@given(a=st.lists(FEW_64, min_size=3, max_size=14), b=st.lists(FEW_64, max_size=14))
def test_runs_that_begin_with_heavy_words_are_some_of_all(a, b):
    heavy = np.zeros(64, np.uint64)
    word_runs.mark_heavy(hashes(a), len(a), 2, tables(a, 2)[0], heavy)
    hits, steps = steps_of(a, b, 2, heavy)
    every, all_steps = steps_of(a, b, 2, np.full(64, 2**64 - 1, np.uint64))
    grams = [tuple(a[i : i + 2]) for i in range(len(a) - 1)]
    most = max(map(grams.count, grams))
    marked = {gram[0] >> 52 for gram in grams if word_runs.HEAVY * grams.count(gram) >= most}
    assert hits == [[j, i] for j, i in every if b[j] >> 52 in marked]
    assert steps <= all_steps


@given(
    a=st.lists(st.integers(1, 3), min_size=7, max_size=20),
    before=st.lists(st.integers(1, 3), max_size=9),
    b=st.lists(st.integers(1, 3), max_size=20),
    length=st.integers(1, 7),
)
def test_seeds_find_every_run_of_the_length(a, before, b, length):
    """Wherever the source begins in the block."""
    whole = hashes([*before, *b, 1, 2, 3])
    table, seeds = word_runs.make_grams(len(a)), word_runs.seeds_of(whole, length)
    word_runs.enter_seeds(hashes(a), len(a), length, table)
    hits = np.zeros((len(b) + 1, 2), np.int32)
    count, total = word_runs.find_seeds(table, len(a), seeds, len(before), len(b), length, hits, 1 << 20)
    runs = np.zeros((total, 3), np.int64)
    size, step = word_runs.seed_shape(length)
    made, _ = word_runs.shared_runs(
        hashes(a), len(a), table.nexts, hashes(b), len(b), hits[:count], size, step, length, runs
    )
    assert sorted(map(tuple, runs[:made].tolist())) == naive_runs(a, b, length)


def within(a, b):
    return a[0] >= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] <= b[3]


def joined(a, b, least, length, gap, limit=1 << 20):
    runs = naive_runs(a, b, least)
    out = np.zeros((len(runs) + 1, 5), np.int64)
    made = passages.join_runs(ints(runs).reshape(-1, 3), len(a), len(b), length, gap, limit, out) if runs else 0
    if made < 0:
        return None
    return [tuple(row) for row in out[:made].tolist()]


@given(a=FEW_WORDS, b=FEW_WORDS, length=st.integers(1, 4))
def test_without_gaps_passages_are_the_runs_that_no_other_holds(a, b, length):
    long = [(i, i + n, j, j + n, n) for i, j, n in naive_runs(a, b, 1) if n >= length]
    expected = [one for one in long if not any(one != other and within(one, other) for other in long)]
    assert sorted(joined(a, b, 1, length, 0)) == sorted(expected)


def test_joining_ends():
    assert joined([1] * 14, [1] * 14, 1, 1, 0, limit=3) is None


@given(a=FEW_WORDS, b=FEW_WORDS, gap=st.integers(0, 4))
def test_every_long_run_is_in_a_passage(a, b, gap):
    found = joined(a, b, 2, 3, gap)
    for i, j, n in naive_runs(a, b, 3):
        assert any(within((i, i + n, j, j + n), one) for one in found)
    for one in found:
        assert 3 <= one[4] <= one[1] - one[0]
        assert a[one[0]] == b[one[2]]
        assert a[one[1] - 1] == b[one[3] - 1]
        assert not any(one != other and within(one, other) for other in found)


@pytest.mark.parametrize(
    ("a", "b", "gap", "expected"),
    [
        ("a b c x d e f", "a b c y d e f", 1, [(0, 7, 0, 7, 6)]),
        ("a b c x d e f", "a b c y d e f", 0, []),
        ("a b c d e f", "a b c y z d e f", 2, [(0, 6, 0, 8, 6)]),
        ("a b c d e f", "a b c y z d e f", 1, []),
        ("d e f x a b c", "a b c x d e f", 2, []),
        ("a b c the e f g", "a b c the d the e f g", 2, [(0, 7, 0, 9, 7)]),
    ],
    ids=["a word changed", "no gap allowed", "words put in", "too many put in", "another order", "runs that overlap"],
)
def test_runs_are_put_together(a, b, gap, expected):
    number = {word: i + 1 for i, word in enumerate(dict.fromkeys(f"{a} {b}".split()))}
    assert joined([number[word] for word in a.split()], [number[word] for word in b.split()], 3, 5, gap) == expected


def test_common_fingerprints_lead_to_the_first_sources_only():
    index = passages.SourceIndex(
        hashes([]), ints([0, 10, 20, 30]), hashes([5, 5, 5, 5, 9]), np.array([0, 0, 1, 2, 1], "u4"), np.zeros(0, "u4")
    )
    used, seen, out = np.zeros(2, np.int32), np.full(3, -1), np.zeros(3, np.int64)
    count, capped = passages.sources_with(hashes([5, 9]), index, 1, used, seen, 7, out)
    assert (numbers(out[:count]), capped, numbers(used)) == ([0, 1], 1, [2, 1])
    again = passages.sources_with(hashes([5, 9]), index, 1, used, np.full(3, -1), 8, out)
    assert again == (0, 1), "of another block: 5 is known to be common, and 9 is now"
    fresh = passages.sources_with(hashes([5, 9]), index, 3, np.zeros(2, np.int32), np.full(3, -1), 8, out)
    assert fresh == (3, 0)


@pytest.mark.parametrize("every", [False, True])
def test_passages_of_documents_come_in_parts(every):
    words = [f"w{i}" for i in range(12)]
    sources = [" ".join(words[:8]), "nothing of it", " ".join(words[4:])]
    data, offsets = utf8(sources)
    recipe = Words(3).recipe()
    room = len(data)
    units, values = np.zeros(room, np.uint64), np.zeros(room, np.uint64)
    owners, starts = np.zeros(room, np.uint32), np.zeros(4, np.int64)
    n = documents.fingerprint_documents(data, offsets, recipe, 2, units, starts, values, owners)
    order = np.argsort(values[:n], kind="stable")
    units = units[: starts[-1]].copy()
    index = passages.SourceIndex(units, starts, values[order], owners[order], word_runs.seeds_of(units, 4))
    rules = passages.PassageRules(3, 2, 4, 1, 3, 10, every)
    data, offsets = utf8(["too short", " ".join(words), "", " ".join(words[5:])])
    used, counts, place = np.zeros(room, np.int32), np.zeros(3, np.int64), np.zeros(3, np.int64)
    found, calls = [], 0
    while place[0] < 4:
        out = np.zeros((1, 7), np.int64)
        written = passages.find_passages(data, offsets, recipe, index, rules, used, place, out, counts)
        found += out[:written].tolist()
        calls += 1
    assert found == [[1, 0, 0, 8, 0, 8, 8], [1, 2, 4, 12, 0, 8, 8], [3, 2, 0, 7, 1, 8, 7]]
    assert calls >= 3
    assert numbers(counts) == ([6, 0, 0] if every else [4, 0, 0])
    none = np.zeros((0, 7), np.int64)
    assert passages.find_passages(data, offsets, recipe, index, rules, used, np.zeros(3, np.int64), none, counts) == -1
