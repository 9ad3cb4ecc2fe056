"""Tables of words: the built-in ones, and those of a user."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.names import Table, abbreviations, nicknames, plain, read_table, table_for
from likewise.errors import FormatError, MissingInput

rows = st.lists(st.lists(st.sampled_from(["a", "b", "c d", "e", "f g h"]), min_size=1, max_size=4), max_size=6)


@given(rows)
def test_words_stand_for_each_other_if_a_row_has_both(rows: list[list[str]]) -> None:
    table = Table(rows)
    for x in ("a", "b", "c d", "e", "f g h"):
        for y in ("a", "b", "c d", "e", "f g h"):
            together = x != y and any(x in row and y in row for row in rows)
            assert table.stands_for(x, y) == together == (y in table.partners(x))
    assert table.longest == max((len(x.split()) for row in rows if len(set(row)) > 1 for x in row), default=0)


@given(rows, rows)
def test_tables_are_joined_row_by_row(some: list[list[str]], more: list[list[str]]) -> None:
    joined = Table(some) | Table(more)
    assert joined == Table(some + more)
    assert hash(joined) == hash(Table(more + some))
    assert joined.longest == Table(some + more).longest


def test_there_are_many_nicknames() -> None:
    text = resources.files("likewise.apps.link").joinpath("nicknames.tsv").read_text(encoding="utf-8")
    groups = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert len(groups) >= 200
    assert all(len(set(group)) >= 2 for group in groups)
    assert all(plain(word) == word for group in groups for word in group)
    for one, other in [("bob", "robert"), ("bill", "william"), ("peggy", "margaret"), ("bert", "albert")]:
        assert nicknames().stands_for(one, other)
        assert nicknames().stands_for(other, one)
    assert {"albert", "robert", "herbert"} <= nicknames().partners("bert"), "one nickname, many names"
    assert not nicknames().stands_for("albert", "robert"), "rows are not joined"


def test_abbreviations() -> None:
    for short, long in [("ave", "avenue"), ("Rd.", "Road"), ("apt", "apartment"), ("dept", "department")]:
        assert abbreviations().stands_for(short, long)
    for short, long in [("univ", "university"), ("intl", "international"), ("jan", "january"), ("st", "saint")]:
        assert abbreviations().stands_for(short, long)
    assert "vldb" not in abbreviations()
    assert not abbreviations().stands_for("street", "saint")


def test_which_table_goes_with_which_kind() -> None:
    mine = Table([("x", "y")])
    assert "bob" in table_for("name")
    assert "street" in table_for("name")
    assert table_for("address") == table_for("text") == abbreviations()
    assert len(table_for("phone")) == 0
    assert table_for("address", mine) is mine
    assert table_for("name", {"name": mine}) is mine
    assert table_for("text", {"name": mine}) == abbreviations()


def test_plain() -> None:
    assert plain("Ærø, ÉCOLE  d'été_2!") == "ærø ecole dete 2"
    assert plain("Straße") == "strasse"
    assert plain(" .. ") == ""


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", 'Bob,Robert,"Rob, the"\n\n# no\nAnn,Nan\n'), ("t.tsv", "Bob\tRobert")]
)
def test_tables_of_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
    table = read_table(tmp_path / name)
    assert table.stands_for("bob", "ROBERT")
    if name == "t.csv":
        assert table.stands_for("bob", "rob the")
        assert table.stands_for("nan", "ann")
        assert len(table) == 5


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"bob,robert\nann\n", "t.csv, row 2: two or more different words separated by commas .* not 'ann'"),
        (b"# mine\n\nbob,BOB.\n", "row 3: two or more different words"),
        (b"bob\trobert\n", "row 1"),
        (b"bob,robert\nj\xff,k\n", "row 2: this is not UTF-8"),
        (b"# nothing\n", "no words"),
        (b"", "no words"),
    ],
)
def test_broken_tables_name_the_file_and_the_row(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(FormatError, match=told) as error:
        read_table(tmp_path / "t.csv")
    assert str(tmp_path / "t.csv") in str(error.value)


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="no such file"):
        read_table(tmp_path / "t.csv")
    with pytest.raises(MissingInput, match="cannot be read"):
        read_table(tmp_path)
