"""Edit distance in its four kinds, against a search through all strings and against the textbook's table."""

import itertools
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.measures import edit

KINDS = list(itertools.product([False, True], repeat=2))
STRINGS = st.text("abcd", max_size=12)


def one_edit(text, letters, longest, mutations, transpositions):
    """Every string that one edit makes, of those not longer than `longest`."""
    for i in range(len(text)):
        yield text[:i] + text[i + 1 :]
        if mutations:
            yield from (text[:i] + letter + text[i + 1 :] for letter in letters)
        if transpositions:
            yield text[:i] + text[i : i + 2][::-1] + text[i + 2 :]
    if len(text) < longest:
        yield from (text[:i] + letter + text[i:] for i in range(len(text) + 1) for letter in letters)


def searched(start, letters, longest, *kind):
    """The number of edits to every string, by breadth-first search: the definition itself."""
    edits, queue = {start: 0}, deque([start])
    while queue:
        text = queue.popleft()
        for other in one_edit(text, letters, longest, *kind):
            if other not in edits:
                edits[other] = edits[text] + 1
                queue.append(other)
    return edits


def table(x, y, mutation):
    """The recurrence written out: delete, insert, keep or change."""
    if not x or not y:
        return len(x) + len(y)
    rows = [list(range(len(y) + 1))]
    for i, a in enumerate(x, 1):
        rows.append([i])
        for j, b in enumerate(y, 1):
            change = rows[i - 1][j - 1] + (0 if a == b else mutation)
            rows[i].append(min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change))
    return rows[-1][-1]


def common(x, y):
    """The length of the longest common subsequence: the longest of x's subsequences that y has too."""
    for size in range(len(x), -1, -1):
        for parts in itertools.combinations(x, size):
            rest = iter(y)
            if all(part in rest for part in parts):
                return size
    raise AssertionError


@pytest.mark.each_value
@pytest.mark.parametrize(("letters", "longest", "room"), [("ab", 5, 2), ("abc", 3, 2)])
@pytest.mark.parametrize(("mutations", "transpositions"), KINDS)
def test_every_pair_of_short_strings(mutations, transpositions, letters, longest, room):
    """With room for strings on the way that are longer than both ends."""
    texts = ["".join(text) for n in range(longest + 1) for text in itertools.product(letters, repeat=n)]
    for x in texts:
        edits = searched(x, letters, longest + room, mutations, transpositions)
        assert [edit(x, y, mutations, transpositions) for y in texts] == [edits[y] for y in texts], x


@given(STRINGS, STRINGS)
def test_against_the_table(x, y):
    assert edit(x, y) == table(x, y, mutation=2)
    assert edit(x, y, mutations=True) == table(x, y, mutation=1)


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_insertions_and_deletions_by_the_longest_common_subsequence(x, y):
    assert edit(x, y) == len(x) + len(y) - 2 * common(x, y)


@given(STRINGS, STRINGS)
def test_more_kinds_of_edit_are_never_more_edits(x, y):
    plain, swaps, changes, both = (edit(x, y, *kind) for kind in KINDS)
    assert both <= min(swaps, changes) <= max(swaps, changes) <= plain <= 2 * both


@pytest.mark.parametrize(("mutations", "transpositions"), KINDS)
def test_any_sequences_of_equal_or_different_elements(mutations, transpositions):
    """rapidfuzz alone would take 97, "a" and b"a" for the same."""
    kind = mutations, transpositions
    assert edit([97], ["a"], *kind) == edit(b"a", "a", *kind) == (1 if mutations else 2)
    assert edit([-1, -2], [-2, -1], *kind) == edit("xy", "yx", *kind)
    assert edit(("to", "be", "or"), ["be", "to", "or"], *kind) == (1 if transpositions else 2)
    assert edit([1, 2, 3], range(1, 4), *kind) == 0
    assert edit(b"abc", bytearray(b"abd"), *kind) == (1 if mutations else 2)
    assert edit("naïve 中文", "naive 中", *kind) == (2 if mutations else 3)


@pytest.mark.parametrize(("mutations", "transpositions"), KINDS)
def test_nothing_to_edit(mutations, transpositions):
    assert edit("", "", mutations, transpositions) == 0
    assert edit("", "abc", mutations, transpositions) == edit("abc", "", mutations, transpositions) == 3
