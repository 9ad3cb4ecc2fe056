"""Suffix automata and covers of documents that repeat themselves, against their definitions."""

import numpy as np
from arrays_of import Opened, hashes
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import repetitive
from likewise.kernels.passages import PassageRules

repetitive = Opened(repetitive)
FEW_WORDS = st.lists(st.integers(1, 3), min_size=1, max_size=24)


def automaton(a):
    auto = repetitive.make_automaton(len(a))
    return auto, repetitive.build_automaton(hashes(a), len(a), auto)


def ending_at(a, b, i):
    """The longest run of a that ends with word i and occurs in b, and where it ends there first."""
    return max(
        (size, -j - size)
        for size in range(i + 2)
        for j in range(len(b) - size + 1)
        if a[i + 1 - size : i + 1] == b[j : j + size]
    )


def runs_of(a, b, length):
    """(i, j, size) of all runs of at least so many words, which neither begin earlier nor end later."""
    sizes = {}
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            if a[i] == b[j]:
                sizes[i, j] = 1 + sizes.get((i + 1, j + 1), 0)
    return [(i, j, size) for (i, j), size in sizes.items() if size >= length and (i - 1, j - 1) not in sizes]


@given(a=FEW_WORDS, b=FEW_WORDS, length=st.integers(1, 5))
def test_longest_runs(a, b, length):
    auto, states = automaton(a)
    longest = repetitive.make_longest(len(a))
    count = repetitive.longest_runs(auto, len(a), states, hashes(b), len(b), length, longest)
    endings = [(i, *ending_at(a, b, i)) for i in range(len(a))]
    expected = [(i, size, -end) for i, size, end in endings if size >= length]
    assert list(zip(*(column[:count].tolist() for column in longest[:3]), strict=True)) == expected
    runs, again = np.array(runs_of(a, b, length), np.int64).reshape(-1, 3), repetitive.make_longest(len(a))
    count = repetitive.longest_of(runs, len(runs), len(a), length, again)
    assert list(zip(*(column[:count].tolist() for column in again[:3]), strict=True)) == expected


def covered(a, b, length, gap, least=1):
    auto, states = automaton(a)
    longest = repetitive.make_longest(len(a))
    rules = PassageRules(1, 1, length, gap, least, 10, True)
    out = np.zeros((2 * len(a) + 2, 5), np.int64)
    count = repetitive.longest_runs(auto, len(a), states, hashes(b), len(b), length, longest)
    made = repetitive.cover(hashes(a), len(a), hashes(b), len(b), rules, longest, count, out)
    return [tuple(row) for row in out[:made].tolist()]


@given(a=FEW_WORDS, b=FEW_WORDS, length=st.integers(1, 5), gap=st.integers(0, 4))
def test_every_word_of_a_long_run_is_covered(a, b, length, gap):
    least = min(2, length)
    found = covered(a, b, length, gap, least)
    words = {word for start, end, *_ in found for word in range(start, end)}
    longest = [ending_at(a, b, i)[0] for i in range(len(a))]
    for i, size in enumerate(longest):
        if size >= length:
            assert words.issuperset(range(i + 1 - size, i + 1))
    assert len(found) <= 2 * len(a) / length + 1
    for start, end, other, other_end, equal in found:
        assert length <= equal <= end - start
        assert a[start] == b[other]
        assert a[end - 1] == b[other_end - 1]
        if gap == 0:
            assert a[start:end] == b[other:other_end]
            assert start == 0 or other == 0 or a[start - 1] != b[other - 1]
            assert end == len(a) or other_end == len(b) or a[end] != b[other_end]


def test_the_place_that_goes_on_is_taken():
    block = [1, 2, 3, 4, 5, 6]
    a = [*block, 9, *block]
    b = [*block, 7, 7, *block, 8, *block]
    assert [(start, end, equal) for start, end, *_, equal in covered(a, b, 4, 2)] == [(0, 13, 12)]


def test_short_runs_make_a_passage_longer():
    a = [1, 2, 3, 4, 5, 6, 50, 7, 8, 51, 9, 10]
    b = [1, 2, 3, 4, 5, 6, 60, 7, 8, 61, 9, 10]
    assert covered(a, b, 4, 2, 2) == [(0, 12, 0, 12, 10)]
    assert covered(a[::-1], b[::-1], 4, 2, 2) == [(0, 12, 0, 12, 10)]
    assert covered(a, b, 4, 0, 2) == [(0, 6, 0, 6, 6)]
