"""What all shinglers share, and shingles of characters, words and tokens, hashed to integers (MMDS §3.2).

A document with fewer than k units has a single shingle, itself. An empty document — without characters, or without
words — has the empty set; it is identical to other empty documents and similar to nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import END, Hashes, Ints, Sets, TextChunk, Texts, concatenate
from likewise.errors import InputError, ParameterError
from likewise.shingle.unicode import SPACE, fold, folding_tables, split_words, unicode_tables

if TYPE_CHECKING:
    from likewise.kernels.documents import Recipe

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = get_args(Form)
MOST_UNITS = 1000
"""The largest k: a shingle of that length is practically a whole document."""
WHITESPACE = ("collapse", "keep", "remove")
BLANKS = " \t\n\v\f\r"
MOST_COUNTED = 100_000
"""The largest count of a token such as "milk:3". Counted tokens are written out, so larger counts would need too much
memory."""


@dataclass(frozen=True)
class Shingler:
    """What all shinglers share: k, case folding, Unicode normal form, bits per hash, set or bag.

    bits: 64 or 32. Two different shingles get the same hash with probability 2**-bits: among a billion different
    shingles, expect 0.03 collisions with 64 bits and 116 million with 32.
    bag: count repeated shingles as often as they occur; similarity is then Σ min / Σ max of the counts.
    """

    k: int
    casefold: bool = False
    normalize: Form | None = None
    bits: int = 64
    bag: bool = False

    name: ClassVar[str] = ""
    by_sets: ClassVar[bool] = False
    """Whether documents are sketched from their sets, not in one kernel from their text: there is no recipe then."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "k", checks.whole(owner, "k", self.k, 1, MOST_UNITS))
        if self.normalize is not None:
            checks.choice(owner, "normalize", self.normalize, FORMS)
        check_bits(owner, self.bits)
        for name in ("casefold", "bag"):
            checks.flag(owner, name, getattr(self, name))

    def __str__(self) -> str:
        return f"{self.name}:{self.k}"

    @property
    def restorable(self) -> bool:
        """Whether `shingler_of` can make the same shingler from what `to_dict` returns."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return {"shingle": str(self), **{one.name: getattr(self, one.name) for one in fields(self) if one.name != "k"}}

    def units(self, text: str) -> list[str]:
        """Return the units of one document, its characters or words, after folding."""
        raise NotImplementedError

    def normal(self, text: str) -> str:
        """Return a text in the requested normal form."""
        return unicodedata.normalize(self.normalize, text) if self.normalize else text

    def shingles(self, text: str) -> list[str]:
        """Return the different shingles of one document as text, in order of first appearance."""
        units = self.units(check_text(type(self).__name__, "text", text))
        glue = "" if self.name == "chars" else " "
        runs = [units[i : i + self.k] for i in range(len(units) - self.k + 1)] or ([units] if units else [])
        return list(dict.fromkeys(glue.join(run) for run in runs))

    def members(self, text: str) -> list[str]:
        """Return what the set of one document has, as text: its shingles, or the whole document where it has none."""
        return self.shingles(text)

    def sets(self, texts: Any) -> Sets:
        """Return the shingle sets of a list of strings or an Arrow string array, in order of first appearance."""
        whole = Texts.of(texts)
        parts = [self.chunk_sets(chunk.load(), np.arange(len(chunk))) for chunk in whole.chunks]
        sets = concatenate(parts)
        return Sets(sets.values.astype(np.uint32), sets.offsets) if self.bits == 32 else sets

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        raise NotImplementedError

    def recipe_for(self, chunk: TextChunk, rows: Ints) -> Recipe:
        """Return the parameters of the kernels for these rows of a prepared chunk."""
        return self.recipe()

    def prepare(self, chunk: TextChunk) -> TextChunk:
        """Return a chunk in the requested normal form."""
        if self.normalize is None or not (chunk.data >= 128).any():
            return chunk
        import pyarrow.compute as pc  # takes a twentieth of a second, and few need it

        buffers = [None, pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)]
        array = pa.Array.from_buffers(pa.large_string(), len(chunk), buffers)
        return TextChunk.from_arrow(pc.utf8_normalize(array, form=self.normalize))

    def chunk_sets(self, chunk: TextChunk, rows: Ints, common: Hashes | None = None) -> Sets:
        """Return the shingle sets of these rows of a chunk, without the shingles in the table `common`."""
        from likewise.kernels.documents import CharUnits, set_documents

        chunk = self.prepare(chunk)
        recipe = self.recipe_for(chunk, rows)
        if common is not None:
            recipe = recipe._replace(common=common)
        chars = isinstance(recipe.units, CharUnits)
        parts: list[Sets] = []
        while len(rows):
            lengths = chunk.offsets[rows + 1] - chunk.offsets[rows]
            room = max(int(lengths.sum()) // (1 if chars else 4), int(lengths[0]) * 3 // 2) + len(rows)
            values = np.empty(room, np.uint64)
            offsets = np.empty(len(rows) + 1, np.int64)
            written = set_documents(chunk.data, chunk.offsets, rows, recipe, values, offsets)
            done = int(np.argmin(offsets)) - 1 if offsets[-1] < 0 else len(rows)
            parts.append(Sets(values[:written].copy(), offsets[: done + 1].copy()))
            rows = rows[done:]
        return concatenate(parts)


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
        out: list[str] = []
        blank = False
        for char in self.normal(text):
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
        return [fold(word) if self.casefold else word for word in split_words(self.normal(text))]

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
        sign = self.separator
        if sign is not None and not (isinstance(sign, str) and len(sign.encode()) == 1 and sign not in "\0" + END):
            raise ParameterError.of("Tokens", "separator", "one ASCII character", self.separator)
        if self.counts:
            object.__setattr__(self, "bag", True)

    def __str__(self) -> str:
        return self.name if self.k == 1 else super().__str__()

    def units(self, text: str) -> list[str]:
        """Return the tokens."""
        text = self.normal(text)
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


def check_bits(owner: str, bits: object) -> None:
    """Raise unless a hash has 32 or 64 bits."""
    if not isinstance(bits, int | np.integer) or bits not in (32, 64):
        raise ParameterError.of(owner, "bits", "32 or 64", bits)


def check_text(owner: str, name: str, text: str) -> str:
    """Return a text, or raise."""
    if not isinstance(text, str):
        raise ParameterError.of(owner, name, "a string", text)
    return text
