"""Synonyms: nicknames of given names, abbreviations, and lists that a user brings (MMDS §3.8.2).

A list is a file of rows; the words of a row are synonyms of each other. A word may be in many rows, and rows are not
merged: Bert is a nickname of Robert and of Albert, but Robert is no synonym of Albert.
"""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from likewise.errors import FormatError, MissingInput, ParameterError

APOSTROPHES = str.maketrans("", "", "'’`´ʼ")
NOT_WORDS = re.compile(r"[\W_]+")
NOTHING: frozenset[str] = frozenset()
KINDS = ("name", "address", "text")
"""The kinds of fields in which words are compared by their synonyms."""


class Synonyms:
    """Which words are synonyms of each other.

    >>> names = Synonyms([("Robert", "Bob", "Bert"), ("Albert", "Bert")])
    >>> names.match("BOB", "robert"), names.match("bert", "albert"), names.match("robert", "albert")
    (True, True, False)

    Lists are combined with |, for example to add your own words to the built-in ones.

    >>> (names | Synonyms([("Roberta", "Bobbie")])).partners("bobbie")
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
        """The number of words of the longest entry."""
        return self._longest

    def partners(self, word: str) -> frozenset[str]:
        """Return the synonyms of an entry, given in lower case and without punctuation, as `plain` leaves it."""
        return self._partners.get(word, NOTHING)

    def match(self, x: str, y: str) -> bool:
        """Return whether two words are in one row, regardless of case, accents and punctuation."""
        return plain(y) in self.partners(plain(x))

    def __contains__(self, word: object) -> bool:
        return word in self._partners

    def __len__(self) -> int:
        return len(self._partners)

    def __or__(self, other: Synonyms) -> Synonyms:
        joined = Synonyms()
        words = self._partners.keys() | other._partners.keys()
        joined._partners = {word: self.partners(word) | other.partners(word) for word in words}
        joined._longest = max(self._longest, other._longest)
        return joined

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Synonyms) and self._partners == other._partners

    def __hash__(self) -> int:
        return hash(frozenset(self._partners.items()))

    def __repr__(self) -> str:
        return f"<Synonyms: {len(self):,} words>"


@lru_cache(maxsize=1 << 16)
def plain(text: str) -> str:
    """Return a text in lower case, without accents and punctuation, words separated by single blanks.

    >>> plain(" O'Brien,  José-María ")
    'obrien jose maria'
    """
    if not text.isascii():
        parts = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in parts if not unicodedata.combining(letter))
    return NOT_WORDS.sub(" ", text.translate(APOSTROPHES).casefold()).strip()


def read_synonyms(path: str | PathLike[str]) -> Synonyms:
    """Read a list from a file: CSV, or TSV if the name ends in .tsv or .txt; two or more words per row, no header.

    Empty rows and rows that begin with # are skipped. A row with fewer than two different words is an error.
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
        raise FormatError(f"{path}, row {row}: this is not UTF-8; save the file as UTF-8") from error
    separator = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
    return Synonyms(_rows(text, separator, str(path)))


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
            shown = separator.join(row).strip()
            shown = shown if len(shown) <= 60 else shown[:60] + "…"
            rule = f"two or more different words separated by {kind} are expected"
            raise FormatError(f"{where}, row {reader.line_num}: {rule}, not {shown!r}")
        some = True
        yield row
    if not some:
        raise FormatError(f"{where}: there are no words in this file")


@cache
def nicknames() -> Synonyms:
    """Return the built-in nicknames of English given names.

    >>> nicknames().match("Bill", "William"), nicknames().match("Bill", "Robert")
    (True, False)
    """
    return _built_in("nicknames.tsv")


@cache
def abbreviations() -> Synonyms:
    """Return the built-in English abbreviations: addresses, months, titles, organisations, units.

    >>> sorted(abbreviations().partners("st"))
    ['saint', 'street']
    """
    return _built_in("abbreviations.tsv")


@cache
def names_and_titles() -> Synonyms:
    """Return the nicknames and the abbreviations together, for whole names."""
    return nicknames() | abbreviations()


Nicknames = Mapping[str, Synonyms] | Synonyms | None
"""Synonyms for all kinds of fields or by kind; None: the built-in ones."""


def synonyms_for(kind: str, given: Nicknames = None) -> Synonyms:
    """Return the synonyms that apply to fields of a kind: those given, or the built-in ones.

    By default names have nicknames and abbreviations, texts and addresses have abbreviations, other kinds have none.

    >>> synonyms_for("phone")
    <Synonyms: 0 words>
    """
    if isinstance(given, Synonyms):
        return given
    if given is not None and kind in given:
        return given[kind]
    if kind == "name":
        return names_and_titles()
    return abbreviations() if kind in ("text", "address") else _empty()


def chosen_synonyms(owner: str, given: Any) -> Nicknames:
    """Return the synonyms a user asks for: files are added to the built-in ones, `Synonyms` take their place."""
    if given is None or isinstance(given, Synonyms):
        return given
    if isinstance(given, Mapping) and all(isinstance(one, Synonyms) for one in given.values()):
        wrong = next((kind for kind in given if kind not in KINDS), None)
        if wrong is not None:
            raise ParameterError.of(owner, "nicknames", f"for fields of kind {', '.join(KINDS)}", wrong)
        return dict(given)
    paths = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in paths):
        rule = "a file, a list of files, Synonyms, or a mapping of kinds to Synonyms"
        raise ParameterError.of(owner, "nicknames", rule, given)
    mine = Synonyms()
    for path in paths:
        mine = mine | read_synonyms(path)
    return {kind: synonyms_for(kind) | mine for kind in KINDS}


@cache
def _empty() -> Synonyms:
    return Synonyms()


def _built_in(name: str) -> Synonyms:
    text = resources.files("likewise.apps.link").joinpath(name).read_text(encoding="utf-8")
    return Synonyms(_rows(text, "\t", name))
