"""Stop-word shingles: on a web page with an article, most of them come from the article (MMDS §3.2.4, §3.8.6)."""

from __future__ import annotations

import functools
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.base.tokens import hash_column
from likewise.errors import InputError, MissingInput, ParameterError
from likewise.kernels.hashtable import fill_table, slot_of
from likewise.shingle.shinglers import Form, Shingler, check_text
from likewise.shingle.unicode import MARK, distinct_words, fold, folding_tables, split_words, unicode_tables

if TYPE_CHECKING:
    from likewise.kernels.documents import Recipe

AUTO = "auto"
"""In place of a language: detect the language of each document."""
UNKNOWN, EMPTY = -1, -2
"""The language of a document without stop-word shingles, and of one without words."""
MOST_LETTERS = 100
"""The largest `letters`: with 100, practically every word is a stop word already."""


@dataclass(frozen=True, init=False)
class StopWords(Shingler):
    """Stop-word shingles: every stop word with the two words that follow it (MMDS §3.2.4, §3.8.6).

    Prose is full of stop words; menus, advertisements and lists of headlines have few. So the article counts for more
    than what surrounds it on the page.

    languages: one ("de", "german"), several ("en+fr" or a list; a stop word of any of them counts), or "auto": for each
    document the language of which it has the most stop words. The default is English, unless words, letters or a rule
    are given. words: your own stop words. letters: every word of at most this many letters is a stop word. rule: a
    function that is given a word, folded if `casefold`, and tells whether it is a stop word; it must always give the
    same answer for a word. k: the stop word and k - 1 more words.

    >>> StopWords("en").shingles("Buy Sudzo. I recommend that you buy Sudzo for your laundry.")
    ['i recommend that', 'that you buy', 'you buy sudzo', 'for your laundry']
    >>> StopWords(rule=lambda word: word.endswith("ing")).shingles("Running water is calming, they say.")
    ['running water is', 'calming they say']

    A document without any run of k words that starts with a stop word has no shingles. So that it is not taken for a
    copy of every other such document, `sets` gives it one element: all its words together (`members`).

    >>> StopWords("en").shingles("Buy Sudzo."), StopWords("en").members("Buy Sudzo.")
    ([], ['buy sudzo'])
    """

    k: int = 3
    casefold: bool = True
    languages: tuple[str, ...] = ("en",)
    words: tuple[str, ...] = ()
    letters: int = 0
    rule: Callable[[str], bool] | None = None

    name: ClassVar[str] = "stopwords"

    def __init__(
        self,
        languages: str | Iterable[str] | None = None,
        *,
        words: Iterable[str] | None = None,
        letters: int = 0,
        rule: Callable[[str], bool] | None = None,
        k: int = 3,
        casefold: bool = True,
        normalize: Form | None = None,
        bits: int = 64,
        bag: bool = False,
    ) -> None:
        own = [] if words is None else checks.listed("StopWords", "words", words, "a list of words")
        if not all(isinstance(word, str) for word in own):
            raise ParameterError.of("StopWords", "words", "a list of words", words)
        if languages is None:
            languages = ("en",) if words is None and not letters and rule is None else ()
        known = "a language, several of them, or 'auto'"
        if not isinstance(languages, str):
            languages = checks.listed("StopWords", "languages", languages, known)
        several = languages.split("+") if isinstance(languages, str) else languages
        if not all(isinstance(language, str) for language in several):
            raise ParameterError.of("StopWords", "languages", known, languages)
        given: dict[str, Any] = {"k": k, "casefold": casefold, "normalize": normalize, "bits": bits, "bag": bag}
        codes = tuple(dict.fromkeys(map(language_code, several)))
        given |= {"letters": letters, "rule": rule, "languages": codes, "words": tuple(dict.fromkeys(own))}
        for field, value in {**given, "_verdicts": {}}.items():
            object.__setattr__(self, field, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("StopWords", "letters", self.letters, 0, MOST_LETTERS)
        if AUTO in self.languages and len(self.languages) > 1:
            raise ParameterError.of("StopWords", "languages", f"{AUTO} alone, or languages", self.languages)
        if self.rule is not None and not callable(self.rule):
            raise ParameterError.of("StopWords", "rule", "a function from a word to True or False", self.rule)
        if not self.letters and self.rule is None and not self._masks():
            raise ParameterError("StopWords has no stop words: give a language, or words of your own.")

    def __str__(self) -> str:
        own = ["own"] if self.words else []
        rules = [f"letters={self.letters}"] if self.letters else []
        rules += ["rule"] if self.rule is not None else []
        return f"{self.name}:{'+'.join([*self.languages, *own, *rules])}"

    @property
    def restorable(self) -> bool:
        """False with a rule: a function cannot be written down."""
        return self.rule is None

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        lists = {"languages": list(self.languages), "words": list(self.words), "rule": _function_name(self.rule)}
        return {**super().to_dict(), "k": self.k, **lists}

    @classmethod
    def frequent(cls, texts: Iterable[str], count: int = 200, **options: Any) -> StopWords:
        """Return a shingler whose stop words are the most frequent words of a collection, or of a sample of it.

        >>> StopWords.frequent(["the cat and the dog", "the end"], 1).words
        ('the',)
        """
        count = checks.whole("StopWords.frequent", "count", count)
        plain = cls(**options)
        counts = Counter(word for text in texts for word in plain.units(text))
        best = sorted(counts, key=lambda word: (-counts[word], word))[:count]
        return cls(**{**options, "languages": (), "words": best})

    @property
    def tongues(self) -> tuple[str, ...]:
        """The languages that can be detected; more than one only with "auto"."""
        return tuple(stop_lists()) if self.languages == (AUTO,) else ("+".join(self.languages) or "own",)

    def units(self, text: str) -> list[str]:
        """Return the words after folding."""
        return [fold(word) for word in self._bare(text)] if self.casefold else self._bare(text)

    def shingles(self, text: str) -> list[str]:
        """Return the different shingles of one document as text, in order of first appearance."""
        text = check_text("StopWords", "text", text)
        units, bare, masks = self.units(text), self._bare(text), self._masks()
        votes = [sum(masks.get(unit, 0) >> bit & 1 for unit in units) for bit in range(len(self.tongues))]
        bit = votes.index(max(votes))
        stops = [
            masks.get(unit, 0) >> bit & 1 or self._short(word) or self._ruled(unit)
            for unit, word in zip(units, bare, strict=True)
        ]
        firsts = [i for i, stop in enumerate(stops[: max(0, len(units) - self.k + 1)]) if stop]
        return list(dict.fromkeys(" ".join(units[i : i + self.k]) for i in firsts))

    def members(self, text: str) -> list[str]:
        """Return the shingles of one document; if it has words but no shingle, all its words as one."""
        units = self.units(check_text("StopWords", "text", text))
        return self.shingles(text) or ([" ".join(units)] if units else [])

    def _bare(self, text: str) -> list[str]:
        """Return the words without folding."""
        return list(split_words(self.normal(text)))

    def _short(self, word: str) -> bool:
        kinds, _, _ = unicode_tables()
        return bool(self.letters) and sum(kinds[ord(char)] != MARK for char in word) <= self.letters

    def _masks(self) -> dict[str, int]:
        """Return every stop word in the forms it may have in a document, with the bits of its `tongues`."""
        return _masks(self.languages, self.words, self.casefold, self.normalize)

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        from likewise.kernels.documents import Recipe, StopTable, WordUnits

        words = WordUnits(self.casefold, *folding_tables(self.casefold))
        table, masks = _stop_table(self.languages, self.words, self.casefold, self.normalize)
        stops = StopTable(table, masks, len(self.tongues), self.letters)
        return Recipe(self.k, self.bits == 32, self.bag, words, stops)

    def recipe_for(self, chunk: TextChunk, rows: Ints) -> Recipe:
        """Return the parameters of the kernels; with a rule, the words of these documents that it makes stop words."""
        recipe = self.recipe()
        if self.rule is None:
            return recipe
        every = (1 << len(self.tongues)) - 1
        text = " ".join(chunk.text(row) for row in rows.tolist())
        spelled = {fold(word) if self.casefold else word for word in distinct_words(text)}
        masks = self._masks() | {word: every for word in spelled if self._ruled(word)}
        table, bits = _table_of(masks)
        return recipe._replace(stops=recipe.stops._replace(words=table, tongues=bits))

    def _ruled(self, word: str) -> bool:
        """Tell whether a word is a stop word by the rule, which is asked about each word once."""
        if self.rule is None:
            return False
        known: dict[str, bool] = self.__dict__["_verdicts"]
        if word not in known:
            known[word] = bool(self.rule(word))
        return known[word]

    def survey(self, chunk: TextChunk) -> Ints:
        """Return for every document its language, as a position in `tongues`.

        UNKNOWN if no shingle starts with a stop word, EMPTY if there are no words.
        """
        from likewise.kernels.documents import survey_documents

        chunk = self.prepare(chunk)
        languages, sizes = np.empty(len(chunk), np.int64), np.empty(len(chunk), np.int64)
        rows = np.arange(len(chunk))
        survey_documents(chunk.data, chunk.offsets, rows, self.recipe_for(chunk, rows), languages, sizes)
        return np.where(sizes == 0, EMPTY, languages)


@functools.lru_cache(16)
def _masks(languages: tuple[str, ...], words: tuple[str, ...], casefold: bool, form: Form | None) -> dict[str, int]:
    """Return every stop word in the forms it may have in a document, with a bit for each language that has it."""
    auto = languages == (AUTO,)
    every = (1 << len(stop_lists())) - 1 if auto else 1
    lists = [(words, every)]
    for bit, code in enumerate(stop_lists() if auto else languages):
        lists.append((stop_lists()[code][1], 1 << bit if auto else 1))
    masks: dict[str, int] = {}
    for listed, mask in lists:
        text = " ".join(listed)
        text = text if casefold else " ".join([text, text.upper(), *(word.capitalize() for word in listed)])
        for word in split_words(unicodedata.normalize(form, text) if form else text):
            spelled = fold(word) if casefold else word
            masks[spelled] = masks.get(spelled, 0) | mask
    return masks


@functools.lru_cache(16)
def _stop_table(
    languages: tuple[str, ...], words: tuple[str, ...], casefold: bool, form: Form | None
) -> tuple[Hashes, Hashes]:
    """Return a hash table of stop words (see kernels/hashtable.py) and their language bits in the same slots."""
    return _table_of(_masks(languages, words, casefold, form))


def _table_of(masks: dict[str, int]) -> tuple[Hashes, Hashes]:
    hashes = hash_column(pa.array(list(masks), pa.large_string()))
    table = np.zeros(1 << max(1, (2 * len(masks)).bit_length()), np.uint64)
    fill_table(hashes[hashes != 0], table)
    bits = np.zeros(len(table), np.uint64)
    for value, mask in zip(hashes, masks.values(), strict=True):
        bits[slot_of(table, value)] = mask
    return table, bits


def _function_name(function: Any) -> str | None:
    """Return the name of a function, for run.json."""
    if function is None:
        return None
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or 'builtins'}.{name}"


def parse_list(spec: str) -> dict[str, Any]:
    """Return the parameters after "stopwords:": languages, files of words, letters=N, joined by +.

    >>> parse_list("en+de"), parse_list("letters=3")
    ({'languages': ['en', 'de']}, {'letters': 3})
    """
    if not spec:
        return {}
    found: dict[str, Any] = {}
    for part in [spec] if os.path.exists(spec) else spec.split("+"):
        rule, _, number = part.partition("=")
        if rule == "letters" and number.isdecimal():
            found["letters"] = int(number)
        elif os.path.exists(part) or os.sep in part or "." in part:
            found["words"] = [*found.get("words", []), *read_words(part)]
        else:
            found.setdefault("languages", []).append(part)
    return found


@functools.cache
def stop_lists() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return name and stop words of every language by its code; stopwords.txt names the source."""
    lists = {}
    text = resources.files("likewise.shingle").joinpath("stopwords.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            code, name, *words = line.split()
            lists[code] = (name, tuple(words))
    return lists


def language_code(language: str) -> str:
    """Return the code of a language, given its code or its English name; or "auto".

    >>> language_code("en"), language_code("German")
    ('en', 'de')
    """
    wanted = str(language).lower()
    for code, (name, _) in stop_lists().items():
        if wanted in (code, name):
            return code
    if wanted == AUTO:
        return AUTO
    known = ", ".join(stop_lists())
    raise ParameterError(
        f"There are no stop words for {language!r}. The languages are {known}, and {AUTO}; "
        "for your own words give a file: stopwords:FILE"
    )


def read_words(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the words in a UTF-8 file, one or more per line; # starts a comment."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            words = [word for line in file for word in line.partition("#")[0].split()]
    except FileNotFoundError as error:
        raise MissingInput(f"{path}: there is no such file of stop words; check the name") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: this is a folder; give a file with stop words, one per line") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the list of stop words is not valid UTF-8; save it as UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: the list of stop words cannot be read: {error.strerror or error}") from error
    if not words:
        raise InputError(f"{path}: there are no stop words in this file; write one per line")
    return tuple(dict.fromkeys(words))
