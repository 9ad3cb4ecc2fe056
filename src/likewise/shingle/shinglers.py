"""Documents to sets: shingles of characters or of words, hashed to integers (MMDS §3.2).

A document with fewer than k units has a single shingle, itself. An empty document — without characters, or without
words — has the empty set; it is identical to other empty documents and similar to nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import END, TextChunk
from likewise.errors import InputError, ParameterError
from likewise.shingle.base import Shingler
from likewise.shingle.unicode import SPACE, fold, folding_tables, split_words, unicode_tables

if TYPE_CHECKING:
    from likewise.kernels.documents import Recipe

WHITESPACE = ("collapse", "keep", "remove")
BLANKS = " \t\n\v\f\r"
MOST_COUNTED = 100_000
"""The largest count of a token such as "milk:3". Counted tokens are written out, so larger counts would need too much
memory."""


@dataclass(frozen=True)
class Chars(Shingler):
    """k-shingles of characters: every run of k code points, with white space collapsed, kept or removed.

    >>> Chars(2).shingles("abcdabd")
    ['ab', 'bc', 'cd', 'da', 'bd']
    >>> Chars(9).shingles("The  plane")
    ['The plane']
    """

    whitespace: str = "collapse"

    name: ClassVar[str] = "chars"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("Chars", "whitespace", self.whitespace, WHITESPACE)

    def units(self, text: str) -> list[str]:
        """Return the characters after folding, with white space collapsed, kept or removed."""
        kinds, _, _ = unicode_tables()
        if self.normalize:
            text = unicodedata.normalize(self.normalize, text)
        out: list[str] = []
        blank = False
        for char in text:
            if self.whitespace != "keep" and kinds[ord(char)] == SPACE:
                if self.whitespace == "collapse" and not blank:
                    out.append(" ")
                blank = True
            else:
                out.extend(fold(char) if self.casefold else char)
                blank = False
        return out

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        from likewise.kernels.documents import CharUnits, Recipe
        from likewise.kernels.hashing import WORD_SEED, mix_all

        kinds, folds, expansions = folding_tables(self.casefold)
        hashes = np.empty(128, np.uint64)
        mix_all(folds[:128].astype(np.uint64), WORD_SEED, hashes)
        way = WHITESPACE.index(self.whitespace)
        return Recipe(self.k, self.bits == 32, self.bag, CharUnits(way, hashes, kinds, folds, expansions))


@dataclass(frozen=True)
class Words(Shingler):
    """k-shingles of words: every run of k words.

    A word is a run of letters, digits and underscores of any script, with their combining marks. In scripts written
    without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese …) every letter is a separate word.

    >>> Words(2).shingles("A rose is a rose.")
    ['a rose', 'rose is', 'is a']
    """

    casefold: bool = True

    name: ClassVar[str] = "words"

    def units(self, text: str) -> list[str]:
        """Return the words after folding."""
        if self.normalize:
            text = unicodedata.normalize(self.normalize, text)
        return [fold(word) if self.casefold else word for word in split_words(text)]

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        from likewise.kernels.documents import Recipe, WordUnits

        return Recipe(self.k, self.bits == 32, self.bag, WordUnits(self.casefold, *folding_tables(self.casefold)))


@dataclass(frozen=True)
class Tokens(Shingler):
    """Text that is a set of tokens separated by white space or by a separator: baskets, tags, lists of ids.

    Tokens are used unchanged, except that surrounding white space is removed. A list column of a file is read as such
    text.

    >>> Tokens().shingles("milk bread  milk"), Tokens(separator=";").shingles("whole milk; bread;")
    (['milk', 'bread'], ['whole milk', 'bread'])

    counts: a number after the last colon of a token is its count in the bag; "milk:2" is "milk milk".

    >>> Tokens(counts=True).units("milk:2 bread 12:30:1 eggs:0")
    ['milk', 'milk', 'bread', '12:30']
    """

    k: int = 1
    separator: str | None = None
    counts: bool = False

    name: ClassVar[str] = "tokens"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.casefold:
            raise ParameterError(
                "The 'casefold' parameter has no effect on Tokens, which are used unchanged. Leave it out."
            )
        checks.flag("Tokens", "counts", self.counts)
        if self.separator is not None and not isinstance(self.separator, str):
            raise ParameterError.of("Tokens", "separator", "one ASCII character", self.separator)
        if self.separator is not None and (len(self.separator.encode()) != 1 or self.separator in "\0" + END):
            raise ParameterError.of("Tokens", "separator", "one ASCII character", self.separator)
        if self.counts:
            object.__setattr__(self, "bag", True)

    def __str__(self) -> str:
        return self.name if self.k == 1 else super().__str__()

    def units(self, text: str) -> list[str]:
        """Return the tokens."""
        if self.normalize:
            text = unicodedata.normalize(self.normalize, text)
        if text.endswith(END):
            tokens = text[:-1].split(END)
        else:
            parts = re.split(f"[{BLANKS}]+", text) if self.separator is None else text.split(self.separator)
            tokens = [token for token in (part.strip(BLANKS) for part in parts) if token]
        return [one for token in tokens for one in repeated(token)] if self.counts else tokens

    def prepare(self, chunk: TextChunk) -> TextChunk:
        """Return a chunk in the requested normal form, with counted tokens repeated."""
        if not self.counts:
            return super().prepare(chunk)
        lists = [self.units(chunk.text(row)) for row in range(len(chunk))]
        texts = ["".join(token + END for token in tokens) for tokens in lists]
        return TextChunk.from_arrow(pa.array(texts, pa.large_string()))

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        from likewise.kernels.documents import Recipe, TokenUnits

        return Recipe(self.k, self.bits == 32, self.bag, TokenUnits(ord(self.separator) if self.separator else 0))


def repeated(token: str) -> list[str]:
    """Return a token as many times as the number after its last colon; once if there is none."""
    name, _, number = token.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        return [token]
    if len(number) > len(str(MOST_COUNTED)) or int(number) > MOST_COUNTED:
        raise InputError(f"the token {token[:60]!r} has a count above {MOST_COUNTED:,}; count in larger units")
    return [name] * int(number)
