"""Copies collapsed to groups, numbered by their first row."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.base.copies import Groups

ROWS = st.lists(st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1]), st.integers(0, 2)), max_size=20)


def digests(rows):
    return np.array(rows, np.uint64).reshape(-1, 2)


def naive(labels):
    """The rows of every label, in order of first appearance."""
    groups = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    return list(groups.values())


def check(groups, expected):
    found = [groups.members[a:b].tolist() for a, b in zip(groups.offsets, groups.offsets[1:], strict=False)]
    assert found == expected
    assert len(groups) == len(expected)
    assert groups.first.tolist() == [rows[0] for rows in expected]
    assert groups.sizes.tolist() == list(map(len, expected))
    for number, rows in enumerate(expected):
        assert (groups.of[rows] == number).all()


@given(ROWS)
@example([])
@example([(7, 7)])
def test_rows_are_grouped_by_digest(rows):
    check(Groups.by_digest(digests(rows)), naive(rows))


def test_a_million_copies_are_one_group():
    groups = Groups.by_digest(np.full((1_000_000, 2), 2**63, np.uint64))
    assert len(groups) == 1
    assert (groups.members == np.arange(1_000_000)).all()
