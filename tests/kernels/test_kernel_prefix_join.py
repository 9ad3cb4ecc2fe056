import itertools
import marshal
from bisect import bisect_left
from collections import Counter

import numpy as np
import pytest
from arrays_of import FEW_64, LAST_SLOTS, WORDS_64, Opened, hashes, ints, numbers, parts, ragged, spread
from hypothesis import example, given
from hypothesis import strategies as st

import oracles
from likewise import exact as public
from likewise.base.arrays import Sets
from likewise.exact import Bounds
from likewise.kernels import hashing, overlap, pairs
from likewise.kernels import prefix_join as exact
from likewise.kernels import strings as writing
from likewise.kernels.hashtable import TABLE_ODD, move_numbers, table_bits
from likewise.search.exact import join as joins

hashing = Opened(hashing)
exact = Opened(exact)

MEASURES = ["jaccard", "dice", "cosine", "overlap", "containment"]
FIXED = [0.05, 0.1 + 0.2, 1 / 3, 0.5, 2 / 3, 0.7, 0.8, 0.9, 1.0]
THRESHOLDS = st.sampled_from(FIXED) | st.floats(0.01, 1)
SYMBOLS = st.sampled_from(LAST_SLOTS) | FEW_64 | st.integers(0, 9)
SETS = st.lists(st.lists(SYMBOLS, unique=True, max_size=8), max_size=6)

NO_FLOORS = (np.zeros(0), np.zeros(0)), 0, np.zeros(0, np.int32)


def sets_of(lists):
    return Sets(*ragged(lists))


def slot(token, size):
    return spread(token) >> 65 - size.bit_length()


# least overlaps


@pytest.mark.parametrize("threshold", FIXED)
@pytest.mark.parametrize("measure", MEASURES)
def test_least_overlaps_and_partners(measure, threshold):
    code = Bounds(measure, threshold).code
    similarity = oracles.SIMILARITIES[measure]
    for a in range(1, 13):
        for b in range(1, 13):
            enough = [o for o in range(1, min(a, b) + 1) if similarity(o, a, b) >= threshold]
            least = overlap.least_overlap(*code, a, b)
            assert least == enough[0] if enough else least > min(a, b)
            assert overlap.similarity_of(code[0], min(a, b), a, b) == similarity(min(a, b), a, b)
        able = [b for b in range(1, 41) if similarity(min(a, b), a, b) >= threshold]
        assert overlap.shortest_partner(*code, a) == able[0]
        out = ints([-7] * 12)
        exact.needs(*code, a, ints(range(1, 13)), 2, 9, out)
        assert numbers(out) == [-7] * 2 + [overlap.least_overlap(*code, a, b) for b in range(3, 10)] + [-7] * 3


def test_similarities_where_a_set_is_empty():
    found = [overlap.similarity_of(code, 0, a, b) for code in range(5) for a, b in [(0, 3), (3, 0)]]
    assert found == [0.0, 0.0] * 4 + [1.0, 0.0]


# sets as strings


def surveyed(lists, words=1, before=0, size=16):
    counts = np.full(size, before, np.uint16)
    maps, digests = np.ones((len(lists), words), np.uint64), np.ones((len(lists), 2), np.uint64)
    writing.survey(*ragged(lists), counts, maps, digests)
    return counts, maps, digests


@given(SETS, st.sampled_from([1, 2, 8]), st.sampled_from([16, 64]), st.sampled_from([0, 65533, 65535]))
def test_survey(lists, words, size, before):
    counts, maps, digests = surveyed(lists, words, before, size)
    found = Counter(slot(token, size) for tokens in lists for token in tokens)
    assert numbers(counts) == [min(65535, before + found[i]) for i in range(size)]
    for tokens, row in zip(lists, maps, strict=True):
        places = {spread(token) // 2**32 % (64 * words) for token in tokens}
        assert numbers(row) == [sum(1 << bit % 64 for bit in places if bit // 64 == word) for word in range(words)]
    backwards = surveyed([tokens[::-1] for tokens in lists], words)[2]
    for half in (0, 1):
        assert numbers(backwards[:, half]) == numbers(digests[:, half])
        assert len(set(numbers(digests[:, half]))) == len(set(map(frozenset, lists)))
        assert all((digest == 0) == (not tokens) for digest, tokens in zip(digests[:, half], lists, strict=True))


@given(st.lists(st.tuples(*2 * [st.sampled_from([0, 1, 32767, 32768, 65534, 65535])]), max_size=9))
def test_counts_are_added_up_to_the_most_that_fits(both):
    counts = np.array([a for a, _ in both], np.uint16)
    writing.add_counts(counts, np.array([b for _, b in both], np.uint16))
    assert numbers(counts) == [min(65535, a + b) for a, b in both]


def naive_string(tokens, counts, prefix, least):
    ranked = sorted(tokens, key=lambda x: (counts[slot(x, len(counts))], x * int(TABLE_ODD) % 2**64 >> 16, x))
    return [(x, i) for i, x in enumerate(ranked[:prefix]) if counts[slot(x, len(counts))] >= least]


@given(
    st.lists(
        st.lists(SYMBOLS | WORDS_64, unique=True, max_size=8) | st.integers(1, 40).map(range).map(list), max_size=5
    ),
    st.integers(0, 3),
    st.data(),
)
def test_strings(lists, least, data):
    """Also those of which more symbols are wanted than are inserted one by one."""
    rows = data.draw(st.permutations(range(len(lists))))
    prefix = [data.draw(st.integers(0, len(lists[row]) + 1)) for row in rows]
    counts = surveyed(lists)[0]
    room = sum(prefix)
    symbols, positions, offsets = np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(len(rows) + 1, np.int64)
    count = writing.strings(
        *ragged(lists), ints(rows), ints(prefix), counts, np.uint64(least), symbols, positions, offsets
    )
    expected = [naive_string(lists[row], numbers(counts), p, least) for row, p in zip(rows, prefix, strict=True)]
    assert parts(symbols[:count], offsets) == [[x for x, _ in string] for string in expected]
    assert parts(positions[:count], offsets) == [[i for _, i in string] for string in expected]


# the index of a block


@given(SETS, st.integers(0, 5), st.data())
def test_numbers_and_lists_of_symbols(lists, first, data):
    symbols, offsets = ragged(lists)
    prefix = [data.draw(st.integers(0, 9)) for _ in lists]
    positions = np.array([i for tokens in lists for i in range(len(tokens))], np.int32)
    indexed = [tokens[:p] for tokens, p in zip(lists, prefix, strict=True)]
    room = 1 << int(table_bits(max(1, len(symbols))))
    table, numbered = np.zeros(room, np.uint64), np.full(room, -1, np.int32)
    out = np.empty(len(symbols), np.int32)
    count = exact.number_symbols(symbols, positions, offsets, first, ints(prefix), table, numbered, out)
    known = {token: first + i for i, token in enumerate(dict.fromkeys(itertools.chain(*indexed)))}
    assert count == first + len(known)
    flat = [(token, i < p) for tokens, p in zip(lists, prefix, strict=True) for i, token in enumerate(tokens)]
    assert numbers(out) == [known[token] if inside else -1 for token, inside in flat]

    asked = hashes([*symbols, *LAST_SLOTS, 123])
    found = np.empty(len(asked), np.int32)
    exact.look_up(asked, table, numbered, found)
    assert numbers(found) == [known.get(token, -1) for token in numbers(asked)]

    sizes = sorted({len(tokens) + 3 for tokens in lists})
    classes = np.array([sizes.index(len(tokens) + 3) for tokens in lists], np.int32)
    starts = ints([0] * (count + 1))
    exact.count_lists(out, starts)
    assert numbers(starts) == [0] * first + [sum(x in part for part in indexed) for x in known] + [0]
    entries = int(starts.sum())
    sets, rests, kinds = (np.empty(entries, np.int32) for _ in range(3))
    exact.fill_lists(out, positions, offsets, classes, ints(sizes), starts, sets, rests, kinds)
    for token, number in known.items():
        here = slice(starts[number], starts[number + 1])
        have = [i for i, part in enumerate(indexed) if token in part]
        assert numbers(sets[here]) == have
        assert numbers(rests[here]) == [len(lists[i]) + 3 - lists[i].index(token) for i in have]
        assert numbers(kinds[here]) == [classes[i] for i in have]
    assert numbers(starts[: first + 1]) == [0] * (first + 1)
    assert starts[-1] == entries


@given(st.lists(st.integers(0, 9), max_size=12).map(sorted), st.integers(-1, 11), st.data())
def test_not_before(sets, rank, data):
    high = data.draw(st.integers(0, len(sets)))
    low = data.draw(st.integers(0, high))
    assert exact.not_before(np.array(sets, np.int32), low, high, rank) == bisect_left(sets, rank, low, high)


# probes: `probe` and `meet` as the join calls them


@pytest.mark.parametrize("index", ["auto", "length", "prefix", "position", "suffix"])
@given(lists=SETS, other=st.none() | SETS, measure=st.sampled_from(MEASURES), threshold=THRESHOLDS, data=st.data())
@example([LAST_SLOTS, LAST_SLOTS[1:], [5]], None, "jaccard", 0.5, None)
@example([LAST_SLOTS, LAST_SLOTS[1:], [5]], [LAST_SLOTS[:7], [5, 6]], "containment", 0.5, None)
def test_probes_miss_nothing(index, lists, other, measure, threshold, data):
    memory = 1 << 20 if data is None else data.draw(st.sampled_from([1, 300, 1 << 20]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "ROOM", 1)  # candidates leave in several portions
        patch.setattr(joins, "CHUNK", 4)
        there = None if other is None else sets_of(other)
        table = public.pairs(sets_of(lists), threshold, index, measure, other=there, memory=memory, threads=1)
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert found == oracles.joined(lists, threshold, measure, other)


# the index that grows: `enter`, `consult`, `hashtable.move_numbers`


@given(st.lists(st.lists(SYMBOLS, unique=True, max_size=5), max_size=6))
def test_entries_are_chained_and_tables_can_be_moved(lists):
    """Every symbol leads to the sets that have it, the last one first, before and after the move."""
    symbols, offsets = ragged(lists)
    positions = np.array([10 + i for tokens in lists for i in range(len(tokens))], np.int32)
    size = 1 << int(table_bits(max(1, len(symbols))))
    table, heads = np.zeros(size, np.uint64), np.full(size, -1, np.int64)
    nexts, sets, places = (np.empty(len(symbols), kind) for kind in (np.int64, np.int32, np.int32))
    used = ints([0, 0])
    lists_of = exact.GrowingLists(table, heads, nexts, sets, places, used)
    exact.enter_strings(symbols, positions, offsets, 5, lists_of)
    known = set(itertools.chain(*lists))
    assert numbers(used) == [len(symbols), len(known)]
    new_table, new_heads = np.zeros(4 * size, np.uint64), np.full(4 * size, -1, np.int64)
    move_numbers(table, heads, new_table, new_heads)
    for at, first in ((table, heads), (new_table, new_heads)):
        assert {int(at[i]) for i in np.flatnonzero(first >= 0)} == known
        assert np.count_nonzero(first >= 0) == len(known)
        for token in known:
            place = slot(token, len(at))
            while int(at[place]) != token or first[place] < 0:
                assert first[place] >= 0, "no gap before it"
                place = (place + 1) % len(at)
            entry, chain = first[place], []
            while entry >= 0:
                chain.append((int(sets[entry]), int(places[entry])))
                entry = nexts[entry]
            have = [(5 + i, 10 + tokens.index(token)) for i, tokens in enumerate(lists) if token in tokens]
            assert chain == have[::-1]


@given(SETS, SETS, st.sampled_from(MEASURES), THRESHOLDS)
@example([LAST_SLOTS, LAST_SLOTS[1:], [5]], [LAST_SLOTS, LAST_SLOTS[:3]], "jaccard", 0.5)
def test_queries_miss_nothing(lists, queries, measure, threshold):
    index = public.Index(threshold=threshold, measure=measure, threads=1)
    earlier = []
    for start in range(0, len(lists), 2):
        table = index.query_and_add(sets_of(lists[start : start + 2]))
        earlier += zip(*(column.to_pylist() for column in table.columns), strict=True)
    every = [(i, j, oracles.similarity(measure, a, lists[j])) for i, a in enumerate(lists) for j in range(i)]
    assert sorted(earlier) == [row for row in every if row[2] >= threshold]
    asked = index.query_many(sets_of(queries))
    found = sorted(zip(*(column.to_pylist() for column in asked.columns), strict=True))
    assert found == oracles.joined(queries, threshold, measure, lists)


# the comparison


@given(SETS, SETS, st.sampled_from(MEASURES), THRESHOLDS, st.data())
@example([LAST_SLOTS], [LAST_SLOTS[4:], LAST_SLOTS], "jaccard", 0.5, None)
def test_verify_overlap(lists, others, measure, threshold, data):
    lists, others = (list(filter(None, side)) for side in (lists, others))
    rows_a = [*range(len(lists))] if data is None else data.draw(st.permutations(range(len(lists))))
    rows_b = [*range(len(others))] if data is None else data.draw(st.permutations(range(len(others))))
    left, right = ints([a for a in rows_a for _ in rows_b]), ints([b for _ in rows_a for b in rows_b])
    out = np.empty(len(left))
    sides = (*ragged(lists), ints(rows_a)), (*ragged(others), ints(rows_b))
    overlap.verify_overlap(left, right, *sides, Bounds(measure, threshold).code, *NO_FLOORS, out)
    truth = [oracles.similarity(measure, lists[rows_a[a]], others[rows_b[b]]) for a, b in zip(left, right, strict=True)]
    assert out.tolist() == [similarity if similarity >= threshold else -1.0 for similarity in truth]


@given(SETS, SETS, st.sampled_from(MEASURES), THRESHOLDS, st.integers(0, 2), st.data())
def test_pairs_of_use_are_verified_with_floors(lists, others, measure, threshold, best, data):
    """A pair below the floors of both of its sets, or worse than the `best` of its first set, may be left out."""
    lists, others = (list(filter(None, side)) for side in (lists, others))
    heights = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 2 / 3, 0.8, 1.0])
    floors = [np.array([data.draw(heights) for _ in side]) for side in (lists, others)]
    left, right = ints([a for a in range(len(lists)) for _ in others]), ints([*range(len(others))] * len(lists))
    most = np.array([len(set(lists[a]) & set(others[b])) for a, b in zip(left, right, strict=True)], np.int32)
    out = np.empty(len(left))
    sides = ((*ragged(side), ints(range(len(side)))) for side in (lists, others))
    code = Bounds(measure, threshold).code
    overlap.verify_overlap(left, right, *sides, code, tuple(floors), best, most, out)
    truth = [oracles.similarity(measure, lists[a], others[b]) for a, b in zip(left, right, strict=True)]
    for a in range(len(lists)):
        of = slice(a * len(others), (a + 1) * len(others))
        kept = sorted((x for x in truth[of] if x >= threshold), reverse=True)
        own = max(floors[0][a], kept[best - 1] if 0 < best <= len(kept) else 0.0)
        for b, (similarity, found) in enumerate(zip(truth[of], out[of].tolist(), strict=True)):
            assert found in (similarity, -1.0)
            if similarity < threshold:
                assert found == -1.0
            elif similarity >= min(own, floors[1][b]):
                assert found == similarity


@pytest.mark.parametrize("shared", [15, 16, 17, 31, 32, 33, 64])
def test_verify_looks_at_every_element_of_long_sets(shared):
    """One element more or less, wherever it stands among the strides."""
    a = [*range(shared)]
    code = Bounds("containment", 1.0).code
    for missing in range(shared):
        b = [*a[:missing], 1000, *a[missing + 1 :]]
        out = np.empty(2)
        where = *ragged([a, b]), ints([0, 1])
        overlap.verify_overlap(ints([0, 0]), ints([0, 1]), where, where, code, *NO_FLOORS, out)
        assert out.tolist() == [1.0, -1.0]


# tokens


@given(st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\0", b"")), max_size=8))
@example([])
@example([b""])
@example([b"", b"", b"a"])
def test_hash_separated(texts):
    data = np.frombuffer(b"".join(text + b"\0" for text in texts) or b"\0", np.uint8)[: None if texts else 0]
    assert numbers(hashing.hash_separated(data)) == [oracles.hash_bytes(text) for text in texts]


EDGES_32 = [0, 1, -1, 127, 128, 255, 256, 2**23, 2**24 - 1, 2**24, 2**31 - 1, -(2**31), -(2**24), -256]


@given(st.sampled_from(EDGES_32) | st.integers(-(2**31), 2**31 - 1), st.integers(0, 3))
def test_four_bytes(number, at):
    data = np.frombuffer(b"\xff" * at + number.to_bytes(4, "little", signed=True) + b"\x80", np.uint8)
    assert hashing.four_bytes(data, at) == number


def unpacked(lists):
    data = np.frombuffer(marshal.dumps(lists, 2), np.uint8)
    values, offsets = np.empty(len(data) // 5, np.int64), np.empty(len(lists) + 1, np.int64)
    count = hashing.unpack_numbers(data, values, offsets)
    return count if count < 0 else parts(values[:count], offsets)


@given(st.lists(st.lists(st.sampled_from(EDGES_32) | st.integers(-(2**31), 2**31 - 1), max_size=9), max_size=6))
@example([])
@example([[]])
@example([[5] * 300])
def test_unpack_numbers(lists):
    assert unpacked(lists) == lists
    assert unpacked(tuple(map(tuple, lists))) == lists
    for kind in (set, frozenset):
        assert list(map(sorted, unpacked(list(map(kind, lists))))) == [sorted(set(tokens)) for tokens in lists]


@pytest.mark.parametrize("bad", [2**31, -(2**31) - 1, 2**70, True, None, 1.0, "1", b"1", (1,), [1], {1: 2}])
def test_unpack_nothing_but_numbers(bad):
    assert unpacked([[1, 2], [3, bad]]) == -1
    assert unpacked([[bad], [3]]) == -1
    if not isinstance(bad, list | tuple):
        assert unpacked([[1], bad, [2]]) == -1


# groups of copies to rows


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("within", [True, False])
@given(data=st.data())
def test_expand_pairs(within, once, data):
    groups = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=3), min_size=1, max_size=4)
    here = data.draw(groups)
    there = here if within else data.draw(groups)
    cells = st.tuples(st.integers(0, len(here) - 1), st.integers(0, len(there) - 1))
    chosen = data.draw(st.lists(cells, max_size=5))
    similarity = [0.5 + p for p in range(len(chosen))]
    expected = []
    for (a, b), score in zip(chosen, similarity, strict=True):
        for x, y in itertools.product(range(len(here[a])), range(len(there[b]))):
            if not (within and a == b) or x < y or (x > y and not once):
                rows = here[a][x], there[b][y]
                expected.append((*(sorted(rows) if within and once else rows), score))
    members, offsets = (ints(part) for part in ragged(here))
    others, other_offsets = (ints(part) for part in ragged(there))
    room = sum(len(here[a]) * len(there[b]) for a, b in chosen)
    out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    left, right = ints([a for a, _ in chosen]), ints([b for _, b in chosen])
    given = left, right, np.array(similarity), members, offsets, others, other_offsets, within, once
    count = pairs.expand_pairs(*given, *out)
    assert list(zip(*(column[:count].tolist() for column in out), strict=True)) == expected
