"""Explicit minhashing: definition and one-pass algorithm against each other, and the borders of both."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.errors import ParameterError
from likewise.families.explicit import EMPTY, ExplicitMinHash, agreement, first_row, row_types
from likewise.measures import jaccard

by_permutations, by_functions = ExplicitMinHash.from_permutations, ExplicitMinHash.from_functions

UNIVERSE = tuple(range(6))
SETS = st.lists(st.sets(st.sampled_from(UNIVERSE)), max_size=5)
ORDERS = st.lists(st.permutations(UNIVERSE), min_size=1, max_size=4)
SMALL = st.sets(st.sampled_from("abcde"))


@given(SETS, ORDERS)
def test_definition_and_algorithm_agree(sets, orders):
    """The row that comes first has the least position: the two forms name the same row."""
    by_definition = by_permutations(orders, universe=UNIVERSE).signatures(sets)
    by_algorithm = by_functions([order.index for order in orders], rows=UNIVERSE).signatures(sets)
    assert by_definition.shape == by_algorithm.shape == (len(sets), len(orders))
    assert by_definition.dtype == by_algorithm.dtype == np.int64
    for i, j in np.ndindex(by_definition.shape):
        position = by_algorithm[i, j]
        assert by_definition[i, j] == (EMPTY if position == EMPTY else orders[j][position])


@given(SETS, st.lists(st.lists(st.integers(0, 9), min_size=6, max_size=6), max_size=4))
def test_one_pass_gives_the_least_value_even_with_collisions(sets, tables):
    signatures = by_functions([t.__getitem__ for t in tables], rows=6).signatures(sets)
    assert signatures.tolist() == [[min((t[x] for x in s), default=EMPTY) for t in tables] for s in sets]


def test_an_empty_set_has_no_first_row():
    permuted = by_permutations(["cab", "bca"], universe="abc")
    assert permuted.first_rows(["", "ab"]) == [(None, None), ("a", "b")]
    assert permuted.signatures(["", "ab"]).tolist() == [[EMPTY, EMPTY], [0, 1]]
    assert by_functions([lambda x: x], rows=3).signatures([[], [2]]).tolist() == [
        [EMPTY],
        [2],
    ]
    assert permuted.signatures([]).shape == (0, 2)


def test_integer_rows_are_their_own_numbers_and_others_are_counted():
    order = [30, 10, 20]
    assert by_permutations([order], universe=[10, 20, 30]).signatures([{10, 20}]).tolist() == [[10]]
    words = ["x", "y", "z"]
    assert by_permutations(["zxy"], universe=words).signatures([{"x", "y"}]).tolist() == [[0]]


def test_trace_starts_with_infinity_and_keeps_its_history():
    minhash = by_functions([lambda x: 2 - x, lambda x: x], rows=3)
    steps = list(minhash.trace([{0, 2}, {1}]))
    assert [(step.row, step.values) for step in steps] == [(None, ()), (0, (2, 0)), (1, (1, 1)), (2, (0, 2))]
    assert [step.signatures.tolist() for step in steps] == [
        [[-1, -1], [-1, -1]],
        [[2, 0], [-1, -1]],
        [[2, 0], [1, 1]],
        [[0, 0], [1, 1]],
    ]
    assert str(steps[0]) == "start\nh1     ∞     ∞\nh2     ∞     ∞"


def test_permutes_tells_true_permutations_from_functions_that_collide():
    assert by_functions([lambda x: x // 2, lambda x: 3 - x], rows=4).permutes() == [
        False,
        True,
    ]


@given(SMALL, SMALL)
def test_agreement_over_all_permutations_is_the_jaccard_similarity(a, b):
    types = row_types(a, b, universe="abcde")
    assert sum(types) == 5
    assert agreement(a, b, universe="abcde") == types.similarity
    assert float(types.similarity) == jaccard(a, b)


def test_agreement_over_given_orders_counts_those():
    assert agreement("a", "ab", "abc", orders=["abc", "bac", "acb", "cab"]) == Fraction(3, 4)


def test_first_row_is_the_first_in_the_order_not_in_the_universe():
    assert [first_row(order, {"a", "c"}) for order in itertools.permutations("abc")] == list("aaaccc")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: by_permutations(["ab"], universe="abc"), "'permutations' parameter"),
        (lambda: by_permutations(["aab"], universe="abc"), "'permutations' parameter"),
        (lambda: by_permutations([], universe="aba"), "'rows' parameter"),
        (
            lambda: by_functions([lambda x: x - 1], rows=2),
            "'functions' parameter .* Got -1",
        ),
        (
            lambda: by_functions([lambda x: x / 2], rows=2),
            "'functions' parameter .* Got 0.0",
        ),
        (lambda: by_functions([lambda x: 2**63], rows=1), "'functions' parameter"),
        (
            lambda: by_functions([hash], rows=2).signatures([[2]]),
            "'sets' parameter .* Got 2",
        ),
        (lambda: row_types("a", "z", universe="abc"), "rows of the universe only. Got 'z'"),
        (lambda: agreement("a", "b", universe="abcdefghij"), "at most 9 rows. Got '10 rows, 3,628,800"),
        (lambda: agreement("a", "b", universe="ab", orders=[]), "at least one order"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
