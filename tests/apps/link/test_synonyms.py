"""Synonyms: the built-in ones, and those of a user."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.synonyms import Synonyms, abbreviations, nicknames, plain, read_synonyms, synonyms_for
from likewise.errors import FormatError, MissingInput

rows = st.lists(st.lists(st.sampled_from(["a", "b", "c d", "e", "f g h"]), min_size=1, max_size=4), max_size=6)


@given(rows)
def test_words_are_synonyms_if_a_row_has_both(rows: list[list[str]]) -> None:
    words = Synonyms(rows)
    for x in ("a", "b", "c d", "e", "f g h"):
        for y in ("a", "b", "c d", "e", "f g h"):
            together = x != y and any(x in row and y in row for row in rows)
            assert words.match(x, y) == together == (y in words.partners(x))
    assert words.longest == max((len(x.split()) for row in rows if len(set(row)) > 1 for x in row), default=0)


@given(rows, rows)
def test_lists_are_joined_row_by_row(some: list[list[str]], more: list[list[str]]) -> None:
    joined = Synonyms(some) | Synonyms(more)
    assert joined == Synonyms(some + more)
    assert hash(joined) == hash(Synonyms(more + some))
    assert joined.longest == Synonyms(some + more).longest


def test_there_are_many_nicknames() -> None:
    text = resources.files("likewise.apps.link").joinpath("nicknames.tsv").read_text(encoding="utf-8")
    groups = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    assert len(groups) >= 200
    assert all(len(set(group)) >= 2 for group in groups)
    assert all(plain(word) == word for group in groups for word in group)
    for one, other in [("bob", "robert"), ("bill", "william"), ("peggy", "margaret"), ("bert", "albert")]:
        assert nicknames().match(one, other)
        assert nicknames().match(other, one)
    assert {"albert", "robert", "herbert"} <= nicknames().partners("bert"), "one nickname, many names"
    assert not nicknames().match("albert", "robert"), "rows are not joined"


def test_abbreviations() -> None:
    for short, long in [("ave", "avenue"), ("Rd.", "Road"), ("apt", "apartment"), ("dept", "department")]:
        assert abbreviations().match(short, long)
    for short, long in [("univ", "university"), ("intl", "international"), ("jan", "january"), ("st", "saint")]:
        assert abbreviations().match(short, long)
    assert "vldb" not in abbreviations()
    assert not abbreviations().match("street", "saint")


def test_which_synonyms_apply_to_which_kind() -> None:
    mine = Synonyms([("x", "y")])
    assert "bob" in synonyms_for("name")
    assert "street" in synonyms_for("name")
    assert synonyms_for("address") == synonyms_for("text") == abbreviations()
    assert len(synonyms_for("phone")) == 0
    assert synonyms_for("address", mine) is mine
    assert synonyms_for("name", {"name": mine}) is mine
    assert synonyms_for("text", {"name": mine}) == abbreviations()


def test_plain() -> None:
    assert plain("Ærø, ÉCOLE  d'été_2!") == "ærø ecole dete 2"
    assert plain("Straße") == "strasse"
    assert plain(" .. ") == ""


@pytest.mark.parametrize(
    ("name", "text"), [("t.csv", 'Bob,Robert,"Rob, the"\n\n# no\nAnn,Nan\n'), ("t.tsv", "Bob\tRobert")]
)
def test_tables_of_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
    words = read_synonyms(tmp_path / name)
    assert words.match("bob", "ROBERT")
    if name == "t.csv":
        assert words.match("bob", "rob the")
        assert words.match("nan", "ann")
        assert len(words) == 5


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
        read_synonyms(tmp_path / "t.csv")
    assert str(tmp_path / "t.csv") in str(error.value)


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="no such file"):
        read_synonyms(tmp_path / "t.csv")
    with pytest.raises(MissingInput, match="cannot be read"):
        read_synonyms(tmp_path)
