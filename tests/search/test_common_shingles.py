"""Shingles that too many documents carry are found exactly, left out, and told."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.base.arrays import Sets, Texts
from likewise.search.common_shingles import find_common, value_table
from likewise.search.items import SetItems, TextItems
from likewise.shingle import Words

LISTS = st.lists(st.lists(st.integers(1, 12), max_size=8, unique=True), min_size=1, max_size=20)


@given(LISTS, st.floats(0.05, 0.95))
def test_common_elements_are_those_in_more_than_the_fraction(lists: list[list[int]], fraction: float) -> None:
    sets = Sets(np.array([x for s in lists for x in s], np.uint64), np.cumsum([0, *map(len, lists)]).astype(np.int64))
    found = find_common(SetItems(sets), np.arange(len(lists)), fraction, np.arange(len(lists)), 1)
    counts = Counter(x for s in lists for x in s)
    expected = {x: n for x, n in counts.items() if n > fraction * len(lists)}
    assert dict(zip(found.values.tolist(), found.carriers.tolist(), strict=True)) == expected
    assert found.carriers.tolist() == sorted(expected.values(), reverse=True)


@given(LISTS, st.sets(st.integers(1, 12)))
def test_sets_lose_what_is_common_unless_nothing_is_left(lists: list[list[int]], common: set[int]) -> None:
    sets = Sets(np.array([x for s in lists for x in s], np.uint64), np.cumsum([0, *map(len, lists)]).astype(np.int64))
    items = SetItems(sets).ignoring(value_table(np.array(sorted(common), np.uint64)))
    got = [set(s.tolist()) for s in items.sets(np.arange(len(lists)), 1)]
    assert got == [set(s) - common or set(s) for s in lists]


def test_a_sample_misses_nothing_common(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    lists = [[1] * (rng.random() < 0.31) + [2] * (rng.random() < 0.29) + [10 + i] for i in range(5000)]
    monkeypatch.setattr("likewise.search.common_shingles.SAMPLE", 400)
    found = find_common(SetItems(Sets.from_lists(lists)), np.arange(5000), 0.3, rng.permutation(5000), 2)
    exact = Counter(x for s in lists for x in set(s))
    assert found.carriers.tolist() == sorted((n for n in exact.values() if n > 1500), reverse=True)


@pytest.mark.parametrize("shingle", ["words:3", "words:3,bag=true", "words:3,bits=32", "chars:5"])
def test_similarity_is_that_of_what_is_left(shingle: str) -> None:
    rng = random.Random(2)
    banner = "all rights reserved by the publisher of this fine page and no others"
    own = [" ".join(f"w{rng.randrange(10**6)}" for _ in range(12)) for _ in range(40)]
    texts = [f"{banner} {text}" for text in own] + [f"{banner} {own[0]} and more", banner]
    whole = likewise.pairs(texts, shingle=shingle, threshold=0.3)
    left = likewise.pairs(texts, shingle=shingle, threshold=0.3, ignore_common=0.5)
    assert len(whole) > 40
    assert [(row["id_a"], row["id_b"]) for row in left.to_pylist()] == [(0, 40)]
    if shingle == "words:3":
        shingler = Words(3)
        a, b = set(shingler.shingles(texts[0])), set(shingler.shingles(texts[40]))
        counts = Counter(s for text in texts for s in set(shingler.shingles(text)))
        a, b = ({s for s in x if counts[s] <= 21} for x in (a, b))
        assert left.table["similarity"][0].as_py() == len(a & b) / len(a | b)


def test_the_user_is_told_which_shingles_are_common() -> None:
    texts = [f"please accept our cookies now {i} {i + 1} {i + 2} {i + 3} {i + 4}" for i in range(0, 600, 6)]
    stats = likewise.dedup(texts, ignore_common=0.9).stats
    assert stats["details"]["ignored"]["shingles"] == 1
    assert stats["details"]["ignored"]["most_common"] == [{"shingle": "please accept our cookies now", "documents": 100}]
    assert stats["parameters"]["ignore_common"] == 0.9


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, "x", True, float("nan")])
def test_a_wrong_fraction_is_refused(fraction: object) -> None:
    with pytest.raises(likewise.ParameterError, match="'ignore_common' parameter of dedup"):
        likewise.dedup(["a"], ignore_common=fraction)  # type: ignore[arg-type]


def test_documents_are_shingled_without_the_common_ones() -> None:
    shingler = Words(1)
    texts = Texts.of(["a b c", "a", "b a a"])
    common = shingler.sets(["a"]).values
    items = TextItems(texts, shingler).ignoring(value_table(common))
    assert items.sets(np.arange(3), 1).sizes.tolist() == [2, 1, 1]
