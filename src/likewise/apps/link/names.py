"""Words that stand for each other: nicknames of given names, abbreviations, and the tables a user brings (§3.8.2).

A table is a file of rows; the words of a row stand for each other, in both directions. A word may be in many rows, and
its rows are not joined: Bert stands for Robert and for Albert, but Robert does not stand for Albert.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path

from likewise.errors import FormatError, MissingInput

APOSTROPHES = str.maketrans("", "", "'’`´ʼ")
NOT_WORDS = re.compile(r"[\W_]+")
NOTHING: frozenset[str] = frozenset()


class Table:
    """Which words stand for each other.

    >>> table = Table([("Robert", "Bob", "Bert"), ("Albert", "Bert")])
    >>> table.stands_for("BOB", "robert"), table.stands_for("bert", "albert"), table.stands_for("robert", "albert")
    (True, True, False)

    Tables are joined with |, so that words of your own come beside the built-in ones.

    >>> (table | Table([("Roberta", "Bobbie")])).partners("bobbie")
    frozenset({'roberta'})
    """

    def __init__(self, rows: Iterable[Iterable[str]] = ()) -> None:
        found: dict[str, set[str]] = {}
        for row in rows:
            words = {plain(word) for word in row} - {""}
            for word in words:
                found.setdefault(word, set()).update(words - {word})
        self._partners = {word: frozenset(others) for word, others in found.items() if others}
        self._longest = max((word.count(" ") + 1 for word in self._partners), default=0)

    @property
    def longest(self) -> int:
        """How many words the longest entry has."""
        return self._longest

    def partners(self, word: str) -> frozenset[str]:
        """Return what an entry stands for; it must be lower case and without punctuation, as `plain` leaves it."""
        return self._partners.get(word, NOTHING)

    def stands_for(self, x: str, y: str) -> bool:
        """Tell whether two words are in one row, however they are written."""
        return plain(y) in self.partners(plain(x))

    def __contains__(self, word: object) -> bool:
        return word in self._partners

    def __len__(self) -> int:
        return len(self._partners)

    def __or__(self, other: Table) -> Table:
        joined = Table()
        words = self._partners.keys() | other._partners.keys()
        joined._partners = {word: self.partners(word) | other.partners(word) for word in words}
        joined._longest = max(self._longest, other._longest)
        return joined

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._partners == other._partners

    def __hash__(self) -> int:
        return hash(frozenset(self._partners.items()))

    def __repr__(self) -> str:
        return f"Table of {len(self):,} words"


@lru_cache(maxsize=1 << 16)
def plain(text: str) -> str:
    """Return a text in lower case, without accents and punctuation, its words separated by single blanks.

    >>> plain(" O'Brien,  José-María ")
    'obrien jose maria'
    """
    if not text.isascii():
        parts = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in parts if not unicodedata.combining(letter))
    return NOT_WORDS.sub(" ", text.translate(APOSTROPHES).casefold()).strip()


def read_table(path: str | PathLike[str]) -> Table:
    """Read a table of a user's: CSV, or TSV if the name ends in .tsv or .txt; two or more words a row, no header.

    Rows that are empty or begin with # are passed over. A row of fewer than two different words is an error.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise MissingInput(f"{path}: there is no such file") from error
    except OSError as error:
        raise MissingInput(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        row = error.object.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path}, row {row}: this is not UTF-8; save the table as UTF-8") from error
    separator = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
    return Table(_rows(text, separator, str(path)))


def _rows(text: str, separator: str, where: str) -> Iterable[list[str]]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator)
    some = False
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise FormatError(f"{where}, row {reader.line_num}: {error}") from error
        if row is None:
            break
        if not any(map(str.strip, row)) or row[0].lstrip().startswith("#"):
            continue
        if len({plain(word) for word in row} - {""}) < 2:
            kind = "tabs" if separator == "\t" else "commas"
            told = separator.join(row).strip()
            told = told if len(told) <= 60 else told[:60] + "…"
            rule = f"two or more different words separated by {kind} are expected"
            raise FormatError(f"{where}, row {reader.line_num}: {rule}, not {told!r}")
        some = True
        yield row
    if not some:
        raise FormatError(f"{where}: there are no words in this table")


@cache
def nicknames() -> Table:
    """Return the built-in English given names.

    >>> nicknames().stands_for("Bill", "William"), nicknames().stands_for("Bill", "Robert")
    (True, False)
    """
    return _built_in("nicknames.tsv")


@cache
def abbreviations() -> Table:
    """Return the built-in English abbreviations: of addresses, months, titles, organisations, units.

    >>> sorted(abbreviations().partners("st"))
    ['saint', 'street']
    """
    return _built_in("abbreviations.tsv")


@cache
def names_and_titles() -> Table:
    """Return the nicknames and the abbreviations together: what whole names are made of."""
    return nicknames() | abbreviations()


def table_for(kind: str, tables: Mapping[str, Table] | Table | None = None) -> Table:
    """Return the table that fields of a kind are compared with: one table for all kinds, one for each, or built in.

    Names have nicknames and abbreviations, texts and addresses have abbreviations, other kinds have none.

    >>> table_for("phone")
    Table of 0 words
    """
    if isinstance(tables, Table):
        return tables
    if tables is not None and kind in tables:
        return tables[kind]
    if kind == "name":
        return names_and_titles()
    return abbreviations() if kind in ("text", "address") else _empty()


@cache
def _empty() -> Table:
    return Table()


def _built_in(name: str) -> Table:
    text = resources.files("likewise.apps.link").joinpath(name).read_text(encoding="utf-8")
    return Table(_rows(text, "\t", name))
