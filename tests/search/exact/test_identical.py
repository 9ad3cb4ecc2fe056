"""Identical items, by a hash of everything or of a few positions first (MMDS §3.9.1), against comparing all of them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import ParameterError, Sets, exact, identical

TEXTS = st.lists(
    st.text("abé", max_size=4) | st.sampled_from(["<html><p>one", "<html><p>two", "<html><p>two "]), max_size=20
)


def naive(items):
    """Rows by item, those of two or more."""
    rows = {}
    for row, item in enumerate(items):
        rows.setdefault(item, []).append(row)
    return [group for group in rows.values() if len(group) > 1]


@given(TEXTS, st.sampled_from([None, 1, 3, 20, [0], [0, 1, 9, 1000]]), st.integers(0, 5), st.integers(1, 2))
def test_groups_of_texts(texts, positions, seed, threads):
    found = identical(texts, positions=positions, seed=seed, threads=threads)
    assert found.groups == list(found) == naive(texts)
    assert len(found) == len(naive(texts))
    assert len(set(found.of.tolist())) == len(set(texts))
    column = pa.chunked_array([pa.array(texts[:3], pa.string()), pa.array(texts[3:], pa.string())])
    assert identical(column, positions=positions, seed=seed).groups == found.groups


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=12))
def test_groups_of_sets(lists):
    expected = naive([frozenset(one) for one in lists])
    assert identical(Sets.from_lists(lists)).groups == expected
    if lists:
        assert identical(lists).groups == expected == exact.identical(pa.array(lists, pa.list_(pa.int64()))).groups


def test_how_many_are_read_as_a_whole():
    """With a common head the first positions tell nothing apart; random ones leave only the copies to be read."""
    random = np.random.default_rng(1)
    head = "<!DOCTYPE html><html><head><meta charset=utf-8><title>"
    texts = [head + "".join(random.choice(list("abcdefghij"), 400)) for _ in range(500)]
    texts += texts[:20]
    assert identical(texts).examined == 520
    first, drawn = identical(texts, positions=range(8)), identical(texts, positions=8)
    assert first.examined == 520
    assert len(drawn.positions) == 8
    assert (
        40 <= drawn.examined <= 44
    )  # two others agree in eight letters of ten with probability 1e-8 or more: positions in the head tell nothing
    assert first.groups == drawn.groups == [[row, 500 + row] for row in range(20)]
    assert identical(texts, positions=8, seed=2).positions != drawn.positions == identical(texts, positions=8).positions


@pytest.mark.parametrize(
    ("items", "options", "says"),
    [
        ("text", {}, "a list of strings or of sets"),
        (5, {}, "strings"),
        ([["a"], ["b"]], {"positions": 3}, "'positions' parameter of identical has no effect for sets"),
        (["a"], {"positions": 0}, "'positions' parameter of identical must be"),
        (["a"], {"positions": []}, "a number of positions, or a list of them"),
        (["a"], {"positions": [-1]}, "a number of positions, or a list of them"),
        (["a", None], {}, "identical: texts must not hold nulls"),
        (None, {}, "'items' parameter of identical must be a list of strings or of sets"),
        ({"x": "a", "y": "a"}, {}, "'items' parameter of identical must be a list of strings or of sets"),
        ([1, 1], {}, "identical: texts must be strings"),
        (["a"], {"seed": -1}, "'seed' parameter of identical"),
    ],
)
def test_what_is_wrong_is_said(items, options, says):
    with pytest.raises(ParameterError, match=says):
        likewise.identical(items, **options)
