"""Documents to sets: shingles of characters or of words, hashed to integers (§3.2 of the chapter).

A document with fewer than k units is its own single shingle. An empty document — no character, or no word — has the
empty set; it is identical to other empty documents and similar to nothing else.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.arrays import END, Hashes, Ints, Sets, TextChunk, Texts, concatenate
from likewise.errors import InputError, ParameterError

if TYPE_CHECKING:
    from likewise.kernels.documents import Recipe

OTHER, WORD, SOLO, MARK, SPACE = range(5)
WHITESPACE = ("collapse", "keep", "remove")
BLANKS = " \t\n\v\f\r"
MOST_COUNTED = 100_000
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS = get_args(Form)


@functools.cache
def unicode_tables() -> tuple[Any, Any, Any]:
    """Return (kinds, folds, expansions) for every code point; see kernels/text.py."""
    with resources.files("likewise").joinpath("unicode.npz").open("rb") as file, np.load(file) as stored:
        lengths = np.diff(np.append(stored["starts"].astype(np.int64), np.int64(0x110000)))
        kinds = np.repeat(stored["kinds"], lengths)
        points, targets = stored["points"].astype(np.int64), stored["folds"].astype(np.int32)
    folds = np.arange(0x110000, dtype=np.int32)
    single = targets[:, 1] == 0
    folds[points[single]] = targets[single, 0]
    expansions = np.concatenate([np.zeros((1, 3), np.int32), targets[~single]])
    folds[points[~single]] = -np.arange(1, len(expansions), dtype=np.int32)
    return kinds, folds, expansions


@dataclass(frozen=True)
class Shingler:
    """What all shinglers share: k, folding, the Unicode normal form, bits of a hash, set or bag.

    bits: 64 or 32. Two different shingles get the same hash with probability 2**-bits: among a billion different
    shingles one expects 0.03 collisions with 64 bits, 116 million with 32.
    bag: repeated shingles count as often as they occur; similarity is then Σ min / Σ max of the counts.
    """

    k: int
    casefold: bool = False
    normalize: Form | None = None
    bits: int = 64
    bag: bool = False

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if isinstance(self.k, bool) or not isinstance(self.k, int) or not 1 <= self.k <= 1000:
            raise ParameterError.of(owner, "k", "a whole number from 1 to 1000", self.k)
        if self.normalize is not None and self.normalize not in FORMS:
            raise ParameterError.of(owner, "normalize", f"None or one of {', '.join(FORMS)}", self.normalize)
        if self.bits not in (32, 64):
            raise ParameterError.of(owner, "bits", "32 or 64", self.bits)

    def __str__(self) -> str:
        return f"{self.name}:{self.k}"

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return {"shingle": str(self), **{key: value for key, value in asdict(self).items() if key != "k"}}

    def units(self, text: str) -> list[str]:
        """Return the units of one document, folded: its characters or its words."""
        raise NotImplementedError

    def shingles(self, text: str) -> list[str]:
        """Return the different shingles of one document as text, in order of first appearance."""
        units = self.units(text)
        glue = "" if self.name == "chars" else " "
        runs = [units[i : i + self.k] for i in range(len(units) - self.k + 1)] or ([units] if units else [])
        return list(dict.fromkeys(glue.join(run) for run in runs))

    def sets(self, texts: Any) -> Sets:
        """Shingle a list of strings or an Arrow string array; the sets keep the order of first appearance."""
        whole = Texts.of(texts)
        parts = [self.chunk_sets(chunk.load(), np.arange(len(chunk))) for chunk in whole.chunks]
        sets = concatenate(parts)
        return Sets(sets.values.astype(np.uint32), sets.offsets) if self.bits == 32 else sets

    def recipe(self) -> Recipe:
        """Return what the kernels must know."""
        raise NotImplementedError

    def prepare(self, chunk: TextChunk) -> TextChunk:
        """Bring a chunk to the normal form asked for."""
        if self.normalize is None or not (chunk.data >= 128).any():
            return chunk
        buffers = [None, pa.py_buffer(chunk.offsets), pa.py_buffer(chunk.data)]
        array = pa.Array.from_buffers(pa.large_string(), len(chunk), buffers)
        return TextChunk.from_arrow(pc.utf8_normalize(array, form=self.normalize))

    def chunk_sets(self, chunk: TextChunk, rows: Ints, common: Hashes | None = None) -> Sets:
        """Shingle these rows of a chunk; the shingles in the table `common` are left out."""
        from likewise.kernels.documents import set_documents

        chunk = self.prepare(chunk)
        recipe = self.recipe()
        if common is not None:
            recipe = recipe._replace(common=common)
        parts: list[Sets] = []
        while len(rows):
            lengths = chunk.offsets[rows + 1] - chunk.offsets[rows]
            room = max(int(lengths.sum()) // (4 if recipe.words else 1), int(lengths[0]) * 3 // 2) + len(rows)
            values = np.empty(room, np.uint64)
            offsets = np.empty(len(rows) + 1, np.int64)
            written = set_documents(chunk.data, chunk.offsets, rows, recipe, values, offsets)
            done = int(np.argmin(offsets)) - 1 if offsets[-1] < 0 else len(rows)
            parts.append(Sets(values[:written].copy(), offsets[: done + 1].copy()))
            rows = rows[done:]
        return concatenate(parts)


@dataclass(frozen=True)
class Chars(Shingler):
    """k-shingles of characters (S1): every run of k code points, white space collapsed, kept or removed.

    >>> Chars(2).shingles("abcdabd")
    ['ab', 'bc', 'cd', 'da', 'bd']
    >>> Chars(9).shingles("The  plane")
    ['The plane']
    """

    whitespace: str = "collapse"

    name: ClassVar[str] = "chars"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.whitespace not in WHITESPACE:
            raise ParameterError.of("Chars", "whitespace", f"one of {', '.join(WHITESPACE)}", self.whitespace)

    def units(self, text: str) -> list[str]:
        """Return the characters, folded, with white space treated as asked."""
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
        """Return what the kernels must know."""
        from likewise.kernels.documents import Recipe
        from likewise.kernels.hashing import WORD_SEED, mix_all

        kinds, folds, expansions = _tables(self.casefold)
        hashes = np.empty(128, np.uint64)
        mix_all(folds[:128].astype(np.uint64), WORD_SEED, hashes)
        way = WHITESPACE.index(self.whitespace)
        return Recipe(False, self.k, way, self.bits == 32, self.bag, self.casefold, hashes, kinds, folds, expansions)


@dataclass(frozen=True)
class Words(Shingler):
    """k-shingles of words (S2): every run of k words.

    A word is a run of letters, digits and underscores of any script, with their combining marks. In scripts written
    without blanks (Chinese, Japanese, Thai, Lao, Khmer, Burmese …) every letter is a word of its own.

    >>> Words(2).shingles("A rose is a rose.")
    ['a rose', 'rose is', 'is a']
    """

    casefold: bool = True

    name: ClassVar[str] = "words"

    def units(self, text: str) -> list[str]:
        """Return the words, folded."""
        if self.normalize:
            text = unicodedata.normalize(self.normalize, text)
        return [fold(word) if self.casefold else word for word in split_words(text)]

    def recipe(self) -> Recipe:
        """Return what the kernels must know."""
        from likewise.kernels.documents import Recipe

        kinds, folds, expansions = _tables(self.casefold)
        hashes = np.zeros(128, np.uint64)
        return Recipe(True, self.k, 0, self.bits == 32, self.bag, self.casefold, hashes, kinds, folds, expansions)


@dataclass(frozen=True)
class Tokens(Shingler):
    """The text is a set of tokens, told apart by blanks or by a separator: baskets, tags, lists of ids (S7).

    Tokens are taken as they are, but for blanks around them. A list column of a file becomes such text.

    >>> Tokens().shingles("milk bread  milk"), Tokens(separator=";").shingles("whole milk; bread;")
    (['milk', 'bread'], ['whole milk', 'bread'])

    counts: a number behind the last colon of a token says how often it is in the bag; "milk:2" is "milk milk".

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
            raise ParameterError("Tokens are taken as they are: leave out 'casefold'")
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
        """Bring a chunk to the normal form asked for, and write counted tokens out."""
        if not self.counts:
            return super().prepare(chunk)
        lists = [self.units(chunk.text(row)) for row in range(len(chunk))]
        texts = ["".join(token + END for token in tokens) for tokens in lists]
        return TextChunk.from_arrow(pa.array(texts, pa.large_string()))

    def recipe(self) -> Recipe:
        """Return what the kernels must know."""
        from likewise.kernels.documents import Recipe

        kinds, folds, expansions = _tables(False)
        mark = ord(self.separator) if self.separator else 0
        hashes = np.zeros(128, np.uint64)
        return Recipe(True, self.k, 0, self.bits == 32, self.bag, False, hashes, kinds, folds, expansions, mark)


def repeated(token: str) -> list[str]:
    """Return a token as often as the number behind its last colon says; once if there is none."""
    name, _, number = token.rpartition(":")
    if not name or not (number.isascii() and number.isdecimal()):
        return [token]
    if len(number) > len(str(MOST_COUNTED)) or int(number) > MOST_COUNTED:
        raise InputError(f"the token {token[:60]!r} counts more than {MOST_COUNTED:,} times; count in larger units")
    return [name] * int(number)


def fold(text: str) -> str:
    """Fold case by the table shipped with likewise, whatever Unicode the Python that runs it knows.

    >>> fold("Straße")
    'strasse'
    """
    _, folds, expansions = unicode_tables()
    parts = []
    for char in text:
        target = int(folds[ord(char)])
        parts.append(chr(target) if target >= 0 else "".join(chr(point) for point in expansions[-target] if point))
    return "".join(parts)


def split_words(text: str) -> Iterator[str]:
    """Yield the words of a text as they stand there."""
    kinds, _, _ = unicode_tables()
    word = ""
    solo = False
    for char in text:
        kind = kinds[ord(char)]
        joins = kind == MARK or (kind == WORD and not solo)
        if word and not joins:
            yield word
            word, solo = "", False
        if kind in (WORD, SOLO, MARK):
            word += char
            solo = solo or kind == SOLO
    if word:
        yield word


@functools.cache
def _tables(casefold: bool) -> tuple[Any, Any, Any]:
    """Return the Unicode tables, with folding or without."""
    kinds, folds, expansions = unicode_tables()
    if not casefold:
        folds, expansions = np.arange(0x110000, dtype=np.int32), np.zeros((1, 3), np.int32)
    return kinds, folds, expansions


SHINGLERS: dict[str, type[Shingler]] = {"words": Words, "chars": Chars, "tokens": Tokens}


def parse_shingler(spec: str | Shingler, lengths: Ints | None = None) -> Shingler:
    """Turn "words:5" or "chars:9" into a shingler; without a number, k is 5 words or what choose_k says.

    Options follow, comma-separated: "chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32".

    >>> parse_shingler("chars:9,whitespace=remove")
    Chars(k=9, casefold=False, normalize=None, bits=64, bag=False, whitespace='remove')
    """
    if isinstance(spec, Shingler):
        return spec
    head, *options = str(spec).split(",")
    name, _, number = head.partition(":")
    if name not in SHINGLERS:
        raise ParameterError.of("shingle", "shingle", "words:K, chars:K or tokens", spec)
    if number:
        if not number.isdecimal():
            raise ParameterError.of("shingle", "shingle", "words:K or chars:K with a whole number K", spec)
        k = int(number)
    else:
        k = 1 if name == "tokens" else 5 if name == "words" or lengths is None else choose_k(lengths)
    kind = SHINGLERS[name]
    known = {field.name: field for field in fields(kind) if field.name != "k"}
    chosen: dict[str, Any] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in known:
            raise ParameterError.of("shingle", key, f"one of {', '.join(known)}", option)
        if key in ("casefold", "bag", "counts"):
            if value not in ("true", "false", ""):
                raise ParameterError.of("shingle", key, "true or false", value)
            chosen[key] = value != "false"
        else:
            chosen[key] = int(value) if key == "bits" and value.isdecimal() else value
    return kind(k=k, **chosen)


def shingler_of(parameters: dict[str, Any]) -> Shingler:
    """Return the shingler whose `to_dict` is among these parameters, as run.json has them.

    >>> shingler_of({**Tokens(separator=",").to_dict(), "threshold": 0.8})
    Tokens(k=1, casefold=False, normalize=None, bits=64, bag=False, separator=',', counts=False)
    """
    name, _, number = parameters["shingle"].partition(":")
    kind = SHINGLERS[name]
    known = {field.name for field in fields(kind)} - {"k"}
    return kind(k=int(number or 1), **{key: parameters[key] for key in known if key in parameters})


def choose_k(lengths: Any, *, alphabet: int = 20, rarity: float = 0.01) -> int:
    """Return the smallest k with which a given shingle is rare in a typical document (S6; §3.2.2).

    Text behaves as if it had about 20 letters, so there are 20**k shingles to speak of. A document of L characters
    has at
    most L of them; k is right when L / 20**k ≤ rarity. L is the 90th percentile of the lengths, so that long
    documents do not look alike by chance. Gives 5 for e-mails and 6 to 7 for long papers; k is kept between 3 and 12.

    >>> choose_k([2_000, 3_000, 4_000]), choose_k(["a short note"]), choose_k([300_000])
    (5, 3, 6)
    """
    if alphabet < 2:
        raise ParameterError.of("choose_k", "alphabet", "at least 2", alphabet)
    if not 0 < rarity < 1:
        raise ParameterError.of("choose_k", "rarity", "in (0, 1)", rarity)
    if isinstance(lengths, str):
        raise ParameterError.of("choose_k", "lengths", "a list of lengths or of documents", lengths)
    numbers = np.array([len(item) if isinstance(item, str) else item for item in lengths], float)
    if len(numbers) == 0:
        return 5
    typical = max(1.0, float(np.quantile(numbers, 0.9)))
    return min(12, max(3, math.ceil(math.log(typical / rarity, alphabet))))
