"""Blocks of names and dates that agree but for an error in each, against naive ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.equal_keys import RARER, loose_blocks, meant, without_a_part
from likewise.apps.link.fields import make_field
from likewise.kernels.record_words import SPELT


def an_edit_apart(a: str, b: str) -> bool:
    """Whether two words share a spelling after leaving out at most one letter of each."""
    spellings = [{word, *(word[:i] + word[i + 1 :] for i in range(len(word)))} for word in (a, b)]
    return bool(spellings[0] & spellings[1])


@given(st.dictionaries(st.text("abé", min_size=1, max_size=6), st.integers(1, 40), min_size=2, max_size=12))
def test_a_rare_name_is_meant_for_the_most_frequent_one_an_edit_away(counts: dict[str, int]) -> None:
    column = pa.chunked_array([pa.array([name for name, n in counts.items() for _ in range(n)])])
    field = make_field("surname", column, "name")
    names = field.texts.to_pylist()
    often = dict(zip(names, field.counts.tolist(), strict=True))
    for name, place in zip(names, meant(field).tolist(), strict=True):
        near = [
            other
            for other in names
            if min(len(name), len(other)) >= SPELT
            and an_edit_apart(name, other)
            and often[other] >= RARER * often[name]
        ]
        found = names[place]
        assert (found in near) if near else found == name
        if near:
            assert often[found] == max(often[other] for other in near)


def test_a_date_agrees_without_the_part_that_differs() -> None:
    day, month, year = without_a_part(pa.array(["19800203", "19800204", "19800303", "19810203", "1980", "19800203x"]))
    assert day[0] == day[1] != day[2]
    assert month[0] == month[2] != month[1]
    assert year[0] == year[3] != year[1]
    assert [part[4:].tolist() for part in (day, month, year)] == [[-1, -1]] * 3


def test_records_with_an_error_in_each_field_are_in_one_block() -> None:
    many = 40
    given_name = [*["augustine"] * many, *["mercedes"] * many, "augustime"]
    surname = [*["halsmith"] * many, *["ashton"] * many, "halskith"]
    born = [f"19{i:02}-0{1 + i % 9}-{10 + i % 19}" for i in range(2 * many)]
    born.append(born[3][:-2] + "30")
    fields = [
        make_field(name, pa.chunked_array([pa.array(values)]), kind)
        for name, values, kind in (
            ("given_name", given_name, "name"),
            ("surname", surname, "name"),
            ("born", born, "date"),
        )
    ]
    blocks = loose_blocks(fields, 0, 1, 1 << 20)
    assert blocks is not None
    records = len(born)
    found = np.concatenate([some for part in blocks.parts(1 << 30, lambda done: None) for some in part])
    keys, times = np.unique(found, return_counts=True)
    assert dict(zip(keys.tolist(), times.tolist(), strict=True))[3 * records + 2 * many] == 2  # with either name
    assert loose_blocks(fields[2:], 0, 1, 1 << 20) is None
