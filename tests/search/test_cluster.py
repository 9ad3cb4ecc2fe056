"""Keepers by policy, every removal explained (P4), and connected components."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.copies import Groups
from likewise.errors import ColumnError, ParameterError
from likewise.search.cluster import Keep, components, removals

NAN = float("nan")


@pytest.mark.parametrize(
    "policy",
    [
        "first",
        "last",
        "longest",
        "shortest",
        "max:score",
        "min:date",
        "max:a:b",
        "none",
        "longest,first",
        "max:a,b,min:c,last",
        "max:a, last",
    ],
)
def test_policies_as_the_user_writes_them(policy):
    keep = Keep.parse(policy)
    assert str(keep) == policy
    assert Keep.parse(keep) is keep


@pytest.mark.parametrize(
    "policy",
    [
        "",
        "best",
        "max",
        "max:",
        "min:",
        "first:x",
        "longest:",
        "none:x",
        "longest,none",
        "max:,first",
        "First",
        None,
        3,
    ],
)
def test_other_policies(policy):
    with pytest.raises(ParameterError, match="one of first, last, longest, shortest, max:COLUMN, min:COLUMN, none"):
        Keep.parse(policy)


def order(policy, lengths=None, scores=None):
    """The rows, the most wanted first."""
    lengths = np.zeros(len(scores), np.int64) if lengths is None else np.array(lengths, np.int64)
    ranks = Keep.parse(policy).ranks(
        lengths, [] if scores is None else scores if isinstance(scores, list) else [scores]
    )
    assert sorted(ranks.tolist()) == list(range(len(lengths)))
    return np.argsort(ranks).tolist()


def test_ranks_by_place_and_length():
    lengths = [5, 9, 5, 0, 9]
    assert order("first", lengths) == [0, 1, 2, 3, 4]
    assert order("last", lengths) == [4, 3, 2, 1, 0]
    assert order("longest", lengths) == [1, 4, 0, 2, 3]
    assert order("shortest", lengths) == [3, 0, 2, 1, 4]
    assert [order(policy, []) for policy in ("first", "last", "longest", "shortest")] == [[]] * 4


@pytest.mark.parametrize(
    ("scores", "highest", "lowest"),
    [
        (pa.array([3, None, 1, 3]), [0, 3, 2, 1], [2, 0, 3, 1]),
        (pa.array([2**63 - 1, 2**63 - 2, -(2**63)]), [0, 1, 2], [2, 1, 0]),
        (pa.array([2**64 - 1, 2**64 - 2], pa.uint64()), [0, 1], [1, 0]),
        (pa.array([NAN, 1.5, None, float("inf"), -0.0, 0.0]), [3, 1, 4, 5, 0, 2], [4, 5, 1, 3, 0, 2]),
        (pa.array(np.array([1, 2, 1], np.float16)), [1, 0, 2], [0, 2, 1]),
        (pa.array(["10", "9", None, "1e1"]), [0, 3, 1, 2], [1, 0, 3, 2]),
        (pa.array(["2024-01-02", "2023-12-31", None, "2024-01-02"]), [0, 3, 1, 2], [1, 0, 3, 2]),
        (pa.array(["b", "a", None, "ä"], pa.large_string()), [3, 0, 1, 2], [1, 0, 3, 2]),
        (pa.array(["b", "c"], pa.string_view()), [1, 0], [0, 1]),
        (pa.array(["b", "c", "b", None]).dictionary_encode(), [1, 0, 2, 3], [0, 2, 1, 3]),
        (pa.array([date(2020, 1, 1), None, date(2021, 1, 1)]), [2, 0, 1], [0, 2, 1]),
        (pa.array([datetime(2020, 1, 1, 1), datetime(2020, 1, 1)]), [0, 1], [1, 0]),
        (pa.array([1, None, 2], pa.timestamp("us", tz="UTC")), [2, 0, 1], [0, 2, 1]),
        (pa.array([1, None, 2], pa.duration("s")), [2, 0, 1], [0, 2, 1]),
        (pa.array([Decimal("1.5"), None, Decimal("1.25")]), [0, 2, 1], [2, 0, 1]),
        (pa.array([True, None, False, True]), [0, 3, 2, 1], [2, 0, 3, 1]),
        (pa.chunked_array([[1, None], [5, 0, 5]]), [2, 4, 0, 3, 1], [3, 0, 2, 4, 1]),
        (pa.nulls(3), [0, 1, 2], [0, 1, 2]),
        (pa.array([], pa.int64()), [], []),
    ],
    ids=lambda value: str(value.type) if hasattr(value, "type") else "",
)
def test_ranks_by_score(scores, highest, lowest):
    """Ties go to the first row; rows without a score come last either way."""
    assert order("max:c", scores=scores) == highest
    assert order("min:c", scores=scores) == lowest


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (pa.array([[1], [2]]), "cannot be sorted: it is list"),
        (pa.array([b"a"]), "cannot be sorted: it is binary"),
        (pa.array([{"a": 1}]), "cannot be sorted: it is struct"),
        (pa.array(["3", "many"]), "mixes numbers and text"),
        (pa.array(["3.5e7", ""]), "mixes numbers and text"),
    ],
)
def test_scores_without_an_order(scores, says):
    with pytest.raises(ColumnError, match=f"column 'c' of the keep policy 'max:c' {says}"):
        order("max:c", scores=scores)


@given(st.lists(st.none() | st.integers(-3, 3), max_size=15))
def test_ranks_are_a_stable_sort(scores):
    column = pa.array(scores, pa.int64())
    rows = [row for row, score in enumerate(scores) if score is not None]
    none = [row for row, score in enumerate(scores) if score is None]
    assert order("min:c", scores=column) == sorted(rows, key=lambda row: scores[row]) + none
    assert order("max:c", scores=column) == sorted(rows, key=lambda row: -scores[row]) + none


@pytest.mark.parametrize("policy", ["first,last", "longest,last,max:a", "first,max:a"])
def test_a_rule_after_which_nothing_is_left_to_decide(policy):
    with pytest.raises(ParameterError, match="which leaves nothing to decide"):
        Keep.parse(policy)


@pytest.mark.parametrize(
    "wrong", [{"rule": "none", "then": Keep()}, {"then": Keep()}, {"rule": "longest", "then": Keep("none")},
              {"rule": "max", "column": "a,first"}],
)  # fmt: skip
def test_rules_that_do_not_go_together(wrong):
    with pytest.raises(ParameterError, match=r"The '(then|column)' parameter of Keep must be"):
        Keep(**wrong)


def test_columns_with_commas_and_several_rules():
    keep = Keep.parse("max:a,b,longest,min:first,max:c,last")
    assert keep.columns == ("a,b", "first", "c")
    assert [rule.rule for rule in keep.rules] == ["max", "longest", "min", "max", "last"]
    assert keep.by_length


SOME = st.none() | st.integers(0, 2)


@given(st.lists(st.tuples(st.integers(0, 2), SOME, SOME), max_size=12), st.sampled_from(["", "first", "last"]))
def test_later_rules_decide_ties(rows, end):
    """The order is that of tuples: what each rule compares, one after the other, and then the place."""
    a, b = (pa.array([row[place] for row in rows], pa.int64()) for place in (1, 2))
    values = {
        "longest": lambda row: -row[0], "shortest": lambda row: row[0],
        "max:a": lambda row: (row[1] is None, -(row[1] or 0)), "min:b": lambda row: (row[2] is None, row[2] or 0),
    }  # fmt: skip
    for rules in (["max:a", "longest"], ["shortest", "min:b"], ["min:b", "longest", "max:a"], ["max:a", "min:b"]):
        sign = -1 if end == "last" else 1
        keys = [(*(values[rule](row) for rule in rules), sign * place) for place, row in enumerate(rows)]
        scores = [{"max:a": a, "min:b": b}[rule] for rule in rules if ":" in rule]
        policy = ",".join([*rules, end] if end else rules)
        assert order(policy, [row[0] for row in rows], scores) == sorted(range(len(rows)), key=keys.__getitem__)


@st.composite
def clusterings(draw):
    """Rows in groups of copies, pairs between groups with their similarity, and an order of preference."""
    labels = draw(st.lists(st.integers(0, 8), max_size=14))
    groups = Groups.by_digest(np.array([(label, 0) for label in labels], np.uint64).reshape(-1, 2))
    every = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
    pairs = sorted(draw(st.sets(st.sampled_from(every), max_size=15))) if every else []
    similarity = {pair: 0.8 + 0.01 * number for number, pair in enumerate(pairs)}
    ranks = draw(st.permutations(range(len(labels))))
    bytes_ = draw(st.lists(st.integers(0, 1), min_size=len(labels), max_size=len(labels)))
    copies = [2 * group + byte for group, byte in zip(groups.of.tolist(), bytes_, strict=True)]
    return groups, similarity, np.array(ranks, np.int64), np.array(copies, np.int64)


def columns(similarity):
    left, right = (np.array([pair[side] for pair in similarity], np.int64) for side in (0, 1))
    return left, right, np.array(list(similarity.values()), np.float64)


@given(clusterings())
def test_every_removal_is_explained(made):
    groups, similarity, ranks, copies = made
    removal = removals(groups, *columns(similarity), ranks, copies)
    of, rows = groups.of.tolist(), removal.rows.tolist()
    kept = sorted(set(range(len(of))) - set(rows))
    assert rows == sorted(set(rows))
    for i, row in enumerate(rows):
        keeper = int(removal.keepers[i])
        assert keeper in kept, "no chains"
        assert ranks[keeper] < ranks[row], "the one more wanted stays"
        pair = (min(of[row], of[keeper]), max(of[row], of[keeper]))
        assert removal.similarity[i] == (1.0 if of[row] == of[keeper] else similarity[pair])
        assert removal.identical[i] == (copies[row] == copies[keeper])
    for a in kept:
        for b in kept:
            assert a == b or of[a] != of[b]
            assert (of[a], of[b]) not in similarity, "kept rows share no pair"


@given(clusterings())
def test_keepers_are_those_of_the_greedy_walk(made):
    groups, similarity, ranks, copies = made
    removal = removals(groups, *columns(similarity), ranks, copies)
    rows = range(len(groups.of))
    best = {group: min((row for row in rows if groups.of[row] == group), key=ranks.__getitem__) for group in groups.of}
    walk = sorted(best, key=lambda group: ranks[best[group]])
    stands_for = oracles.keepers(walk, set(similarity))
    expected = {row: best[stands_for[groups.of[row]]] for row in rows}
    found = {row: row for row in rows} | dict(zip(removal.rows.tolist(), removal.keepers.tolist(), strict=True))
    assert found == expected


@given(clusterings())
def test_components(made):
    groups, similarity, _, _ = made
    left, right, _ = columns(similarity)
    of = groups.of.tolist()
    linked = [
        (a, b)
        for a in range(len(of))
        for b in range(a + 1, len(of))
        if of[a] == of[b] or (min(of[a], of[b]), max(of[a], of[b])) in similarity
    ]
    assert components(groups, left, right).tolist() == oracles.components(len(of), linked)


def test_no_chains():
    """A ~ B ~ C but not A ~ C: whoever stays, nobody is removed for a document it is not similar to."""
    groups = Groups.by_digest(np.arange(6, dtype=np.uint64).reshape(3, 2))
    chain = columns({(0, 1): 0.9, (1, 2): 0.85})
    first = removals(groups, *chain, np.array([0, 1, 2]), np.arange(3))
    assert (first.rows.tolist(), first.keepers.tolist(), first.similarity.tolist()) == ([1], [0], [0.9])
    middle = removals(groups, *chain, np.array([1, 0, 2]), np.arange(3))
    assert (middle.rows.tolist(), middle.keepers.tolist()) == ([0, 2], [1, 1])
    assert middle.similarity.tolist() == [0.9, 0.85]


@given(clusterings())
def test_none_keeps_what_is_like_no_other(made):
    """Exactly the rows with a similar one go, and each names one: of the same bytes, the same set, or most similar."""
    groups, similarity, ranks, copies = made
    removal = removals(groups, *columns(similarity), ranks, copies, none=True)
    rows, of = range(len(groups.of)), groups.of.tolist()

    def alike(a, b):
        return 1.0 if of[a] == of[b] else similarity.get((min(of[a], of[b]), max(of[a], of[b])), 0.0)

    expected = {}
    for a in rows:
        others = [(int(copies[a] != copies[b]), int(of[a] != of[b]), -alike(a, b), b) for b in rows if b != a]
        similar = [key for key in others if key[2] < 0]
        if similar:
            expected[a] = min(similar)
    assert removal.rows.tolist() == sorted(expected)
    for row, keeper, alike_, same in zip(
        removal.rows.tolist(), removal.keepers.tolist(), removal.similarity, removal.identical, strict=True
    ):
        assert (not same, -alike_, keeper) == (bool(expected[row][0]), *expected[row][2:])
