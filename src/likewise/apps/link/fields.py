"""Fields: the kind of their values, guessed from the data, and one spelling for equal values (MMDS §3.8.1).

Dates are written year first or year last, with or without separators. Text in UTF-8 that was decoded as Latin-1 or
Windows-1252 (mojibake) consists of few different letters, so that any two values seem alike; it is decoded again.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.terms import HashedTerms, hashed, named, term_counts, text_hashes
from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.errors import ParameterError
from likewise.kernels import record_words

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

KINDS = ("text", "tokens", "name", "address", "phone", "date", "number", "exact")
MISSING = ["", "nan", "null", "none", "n/a", "-", "?", "unknown"]
"""Folded values that mean no value, in every table."""

SAMPLE = 5_000
"""Values from which the kind and the length of a field are estimated; the error of a share is below 1 %."""

MOST = 0.8
"""A field is of a kind if this part of its values is: real columns have some values that are not."""

FRACTIONS = 0.2
"""Numbers are quantities if this part of them has a decimal point or a currency sign; otherwise they may be codes."""

NAME_WORDS = 2.2
"""Values of names have at most this many words on average: given name and surname, some with a third."""

LONG = 1.3
"""Texts with more words than this on average are compared by the terms they share rather than by edits."""

CATEGORIES = 0.02
"""Different values per record below which a field is a category, however many words its values have."""

VALUES_AT_ONCE = 1 << 16
"""Values that are Python strings at a time."""

BEGINNING = 100
"""Letters of a value from which its kind is guessed: longer values are texts."""

YEARS = 1600, 2199
"""The years of real dates; other eight-digit numbers are codes."""

LISTED = 100_000
"""Values of a field by which frequencies are estimated, if not all are needed."""

NUMBER = re.compile(r"[^\d.+-]*([+-]?\d[\d,]*(?:\.\d+)?|[+-]?\.\d+)[^\d.]*")
PHONE_NAME = re.compile(r"phone|fax|mobile|\btel", re.I)
PLACE_NAME = re.compile(r"addr|street", re.I)
STREET = re.compile(
    r"^\d+[a-z]?\W.*\b(st|street|ave?|avenue|rd|road|blvd|boulevard|dr|drive|ln|lane|way|ct|court|pl|place|sq|square"
    r"|pkwy|hwy|highway|rue)\b|(str|strasse|weg|gasse|platz|allee|straat|laan|plein)\.? \d+"
    r"|^(via|calle|rua|ul|avenida)\b.*\d"
)
"""A street and a number, as addresses are written in English, French, German, Dutch, Italian, Spanish and Polish."""

STREETS = 0.5
"""A field is an address if this part of its values have both: many addresses are written without the kind of street.
Of the collections looked at, addresses have 59 to 93 %, and no other column has one in a hundred."""
AREA_NAME = re.compile(r"city|town|suburb|village|county|state|province|region|country|nation|district", re.I)


@dataclass(frozen=True)
class MissingValues:
    """Values that mean no value: MISSING, and those that the user gives; `found` has those of these that occur."""

    given: tuple[str, ...] = ()
    found: set[str] = field(default_factory=set)

    @cached_property
    def folded(self) -> pa.Array:
        """All of them, folded; those given are last."""
        return pa.concat_arrays([pa.array(MISSING), fold(pa.array(self.given, pa.string()))])

    @property
    def unused(self) -> list[str]:
        """Those given that no column has."""
        return [one for one in dict.fromkeys(self.given) if one not in self.found]

    def among(self, folded: pa.Array, written: pa.Array, kind: str, numbers: bool) -> pa.Array:
        """Return which values are missing, by how they are folded or written; `numbers`: also by their numbers.

        Only a spelling of the kind knows that 0.0 and 0.00, or 1900-01-01 and 1.1.1900, are one.
        """
        absent = pc.or_(pc.is_in(folded, self.folded), pc.equal(written, ""))
        given = self.folded[len(MISSING) :]
        same = [(folded, given), (written, spelled(given, kind))]
        if numbers and self.given:
            same.append((spelled(folded, "number"), spelled(given, "number")))
        for values, asked in same if self.given else ():
            asked = pc.if_else(pc.equal(asked, ""), None, asked)
            there = pc.is_in(asked, values, skip_nulls=True).to_pylist()
            self.found.update(one for one, seen in zip(self.given, there, strict=True) if seen)
            absent = pc.or_(absent, pc.is_in(values, asked, skip_nulls=True))
        return absent


USUAL = MissingValues()


@dataclass(frozen=True)
class Field:
    """A column of all records, those of the second table after those of the first: the distinct values and their codes.

    `codes` are indices into `texts`, the distinct values in one spelling; -1 for a missing value. `folded` are the
    values with their punctuation, `hashes` those of `texts`. `counts` are the records with each value, `words` is the
    average number of words. `unlisted` records have values that were left out (`values_of`).
    """

    name: str
    kind: str
    codes: Codes
    texts: pa.Array
    folded: pa.Array
    hashes: Hashes
    counts: Ints
    words: float
    unlisted: int = 0

    @property
    def grams(self) -> HashedTerms:
        """The hashed words and character trigrams of the values, eight bytes per letter; they are not kept."""
        return hashed(self.folded, True)

    @cached_property
    def term_counts(self) -> Codes:
        """The number of words and character trigrams of each value."""
        return term_counts(self.folded)

    def batches(self) -> Iterator[list[str]]:
        """Yield the distinct values in lists of a size that fits in memory."""
        for start in range(0, len(self.texts), VALUES_AT_ONCE):
            yield self.texts.slice(start, VALUES_AT_ONCE).to_pylist()

    @property
    def long(self) -> bool:
        """Whether values are compared by the terms they share, not by the edits between them."""
        return self.kind == "tokens" or (self.kind in ("text", "address") and self.words > LONG)

    @property
    def category(self) -> bool:
        """Whether there are few different values."""
        return len(self.texts) < CATEGORIES * self.present

    @property
    def present(self) -> int:
        """The number of records with a value."""
        return int(self.counts.sum()) + self.unlisted


def fold(values: pa.Array) -> pa.Array:
    """Return texts in lower case, without accents, character references and mojibake, white space collapsed.

    >>> fold(pa.array(["  Müller &amp;  SONS", "PS-LX350H"])).to_pylist()
    ['muller & sons', 'ps-lx350h']
    """
    return _squeezed(values, False, _folded)


def _squeezed(values: pa.Array, words: bool, others: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Return texts as the kernel writes them, and those that it leaves out as `others` does, which is much slower."""
    if values.null_count or not len(values):
        return others(values)
    chunk = TextChunk.from_arrow(values)
    out, ends = np.empty(int(chunk.offsets[-1] - chunk.offsets[0]), np.uint8), np.empty(len(chunk.offsets), np.int64)
    odd = np.empty(len(values), bool)
    strange = record_words.squeeze(chunk.data, chunk.offsets, words, out, ends, odd)
    wide = pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]]))
    found = wide.cast(pa.string())
    return pc.replace_with_mask(found, pa.array(odd), others(values.filter(pa.array(odd)))) if strange else found


def _folded(values: pa.Array) -> pa.Array:
    """Return folded texts of any characters."""
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(pc.utf8_lower(values), r"\s+", " "))
    strange = pc.or_(pc.invert(pc.string_is_ascii(values)), pc.match_substring(values, "&"))
    some = [_unaccented(value) for value in values.filter(strange).to_pylist()]
    return pc.replace_with_mask(plain, strange, pa.array(some, pa.string())) if some else plain


def _unaccented(value: str) -> str:
    """Return a text with character references, mojibake or accents as plain letters, case folded."""
    letters = unicodedata.normalize("NFKD", repaired(html.unescape(value)))
    return " ".join("".join(c for c in letters if not unicodedata.combining(c)).casefold().split())


def spelled(folded: pa.Array, kind: str) -> pa.Array:
    """Return folded values in the spelling of their kind: digits of phones, dates year first, no punctuation.

    >>> spelled(pa.array(["212/ 319-1660"]), "phone").to_pylist(), spelled(pa.array(["o'hara, j."]), "name").to_pylist()
    (['2123191660'], ['o hara j'])
    >>> spelled(pa.array(["1999-3-1", "3.1.1999"]), "date").to_pylist()
    ['19990301', '19990103']
    >>> spelled(pa.array(["$1,250.0"]), "number").to_pylist()
    ['1250']
    """
    if kind == "phone":
        return pc.replace_substring_regex(folded, r"[^0-9]+", "")
    if kind == "date":
        whole = pc.match_substring_regex(folded, WHOLE_DATE)
        others = _one_by_one(folded.filter(pc.invert(whole)), _date)
        return pc.replace_with_mask(pc.replace_substring(folded, "-", ""), pc.invert(whole), others)
    return _one_by_one(folded, _canonical) if kind == "number" else _squeezed(folded, True, _only_words)


def _one_by_one(folded: pa.Array, spell: Callable[[str], str]) -> pa.Array:
    """Return texts as a function spells each of them."""
    starts = range(0, len(folded), VALUES_AT_ONCE)
    parts = (map(spell, folded.slice(start, VALUES_AT_ONCE).to_pylist()) for start in starts)
    return pa.concat_arrays([pa.array([], pa.string()), *(pa.array(list(part), pa.string()) for part in parts)])


def _only_words(folded: pa.Array) -> pa.Array:
    """Return folded texts without what is neither letter nor number."""
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(folded, r"[^\pL\pN]+", " "))


def _date(value: str) -> str:
    return date_digits(value) or re.sub(r"[^0-9a-z]+", "", value)


def _canonical(value: str) -> str:
    found = NUMBER.fullmatch(value)
    return f"{float(found[1].replace(',', '')):.12g}" if found else ""


def _real_date(value: str) -> bool:
    digits = _date(value)
    if len(digits) != 8 or not digits.isdigit():
        return False
    month, day = sorted((int(digits[4:6]), int(digits[6:])))
    return YEARS[0] <= int(digits[:4]) <= YEARS[1] and 1 <= month <= 12 and day <= 31


def _digits_and_letters(value: str) -> tuple[int, int]:
    """Return how many digits and letters a value has; of a long one, which is no phone number, only its beginning."""
    value = value[:BEGINNING]
    return sum(map(str.isdigit, value)), sum(map(str.isalpha, value))


def guess(name: str, values: Sequence[str], counts: Ints | None = None) -> str:
    """Return the kind of folded values: date, phone, number (quantities), name (few words, letters), address or text.

    Whole numbers without a unit are text, compared digit by digit: they are codes more often than quantities. `counts`
    are those of the values, which otherwise count equally.

    >>> guess("born", ["1999-03-01", "19481231"]), guess("tel", ["212/319-1660"]), guess("price", ["$9.99", "12.50"])
    ('date', 'phone', 'number')
    >>> guess("who", ["ann lee", "bo"]), guess("title", ["finding similar items in sets"]), guess("zip", ["20742"])
    ('name', 'text', 'text')
    """
    if not len(values):
        return "text"

    def mean(found: Iterable[float]) -> float:
        return float(np.average(list(found), weights=counts))

    if mean(map(_real_date, values)) >= MOST:
        return "date"
    digits, letters = zip(*map(_digits_and_letters, values), strict=True)
    phone = mean(7 <= d <= 15 and a <= 3 for d, a in zip(digits, letters, strict=True)) >= MOST
    marked = mean(bool(re.search(r"\d[ ()/.-]+\d", value)) for value in values) >= MOST
    if phone and (marked or PHONE_NAME.search(name)) and mean("." in value for value in values) < 1 - MOST:
        return "phone"
    numbers = mean(bool(NUMBER.fullmatch(value)) for value in values) >= MOST
    if numbers and mean(bool(re.search(r"[$€£]|\d\.\d", value)) for value in values) >= FRACTIONS:
        return "number"
    if PLACE_NAME.search(name) or mean(bool(STREET.search(value[:BEGINNING])) for value in values) >= STREETS:
        return "address"
    lettered = mean(a > 0 and d == 0 for d, a in zip(digits, letters, strict=True)) >= MOST
    if lettered and not AREA_NAME.search(name) and mean(len(value.split()) for value in values) <= NAME_WORDS:
        return "name"
    return "text"


def make_field(name: str, column: pa.ChunkedArray, kind: str | None = None, missing: MissingValues = USUAL) -> Field:
    """Return a column as a field of the given kind, or of the kind its values look like."""
    check_kind(kind)
    numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    encoded = as_strings(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    folded = fold(encoded.dictionary)
    if kind is None:
        seen = _drawn(text_hashes(folded), pc.invert(pc.is_in(folded, missing.folded)))
        counts = np.bincount(encoded.indices.drop_null().to_numpy(), minlength=len(folded))[seen]
        kind = guess(name, folded.take(seen).to_pylist(), counts)
    written = spelled(folded, kind)
    merged = pc.if_else(missing.among(folded, written, kind, numbers), None, written).dictionary_encode()
    places = merged.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    raw = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    codes = np.where(raw >= 0, places[np.maximum(raw, 0)] if len(places) else -1, -1).astype(np.int32)
    first = np.zeros(len(merged.dictionary), np.int64)
    first[places[::-1][places[::-1] >= 0]] = np.flatnonzero(places >= 0)[::-1]
    texts = merged.dictionary
    counts = np.bincount(codes[codes >= 0], minlength=len(texts)).astype(np.int64)
    hashes = text_hashes(texts)
    chosen = texts.take(_drawn(hashes)).to_pylist()
    words = sum(len(value.split()) for value in chosen) / max(1, len(chosen))
    folded = folded.take(pa.array(first))
    return Field(name, kind, codes, texts, texts if folded.equals(texts) else folded, hashes, counts, words)


def _drawn(hashes: Hashes, wanted: pa.Array | None = None) -> pa.Array:
    """Return the places of SAMPLE of the wanted texts at most, in whatever order they are: those of least hash."""
    places = np.arange(len(hashes)) if wanted is None else np.flatnonzero(wanted)
    if len(places) > SAMPLE:
        hashes = named(hashes[places])
        places = places[hashes <= np.partition(hashes, SAMPLE)[SAMPLE]]
    return pa.array(places)


def as_strings(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of any type as text: whole numbers without a decimal point, days without a time."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        whole = pc.all(pc.or_kleene(pc.equal(column, pc.round(column)), pc.is_nan(column))).as_py()
        if whole and not pc.any(pc.greater(pc.abs(column), 2**53)).as_py():
            column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
    if pa.types.is_timestamp(kind):
        days = column.cast(pa.date32(), safe=False)
        midnight = pc.all(pc.equal(days.cast(pa.timestamp("s")).cast(kind), column)).as_py()
        column = days if midnight or midnight is None else column
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())])


def check_kind(kind: str | None) -> None:
    """Raise if there is no such kind of field; None is a kind to be guessed."""
    if kind is not None and kind not in KINDS:
        raise ParameterError.of("link", "fields", f"of kinds {', '.join(KINDS)}", kind)


def among(field: Field, *codes: Ints) -> tuple[Field, list[Ints]]:
    """Return a field with only these of its values, and their codes in it: a small part of it is quick to prepare."""
    used, places = np.unique(np.concatenate(codes), return_inverse=True)
    few = _with_only(field, used, places.astype(np.int32))
    return few, np.split(places.astype(np.int64), np.cumsum([len(some) for some in codes])[:-1])


def values_of(field: Field, records: Ints) -> Field:
    """Return a field with only the values of these records, and LISTED others by which frequencies are estimated.

    Other records have no value in it.
    """
    listed = np.zeros(len(field.texts) + 1, bool)
    listed[field.codes[records]] = listed[: -1 : max(1, len(field.texts) // LISTED)] = True
    used = np.flatnonzero(listed[:-1])
    if len(used) == len(field.texts):
        return field
    places = np.full(len(field.texts) + 1, -1, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    few = _with_only(field, used, places[field.codes])
    return replace(few, unlisted=field.present - int(few.counts.sum()))


def _with_only(field: Field, used: Ints, codes: Codes) -> Field:
    texts, folded = field.texts.take(pa.array(used)), field.folded.take(pa.array(used))
    return replace(field, codes=codes, texts=texts, folded=folded, hashes=field.hashes[used], counts=field.counts[used])


def without_values(field: Field, values: Ints) -> Field:
    """Return a field in which some values, given as places in `texts`, are missing."""
    codes, counts = field.codes.copy(), field.counts.copy()
    codes[np.isin(codes, values)] = -1
    counts[values] = 0
    return replace(field, codes=codes, counts=counts)


def rarity(field: Field) -> Floats:
    """Return the negative logarithm of the relative frequency of each value: the most its agreement can be worth."""
    return np.log(max(1, field.present) / np.maximum(1, field.counts))


WHOLE_DATE = r"^[0-9]{4}-?[0-9]{2}-?[0-9]{2}$"
"""Dates, as Arrow finds them, that become eight digits without hyphens."""

DATE = re.compile(r"(\d{4})\D?(\d{1,2})\D?(\d{1,2})(?:[Tt ].*)?|(\d{1,2})\D(\d{1,2})\D(\d{4})")


def date_digits(text: str) -> str | None:
    """Return a date as eight digits, year first, or None for any other text; with the year last, the day comes first.

    >>> date_digits("1999-3-1"), date_digits("3.1.1999"), date_digits("19990301"), date_digits("March 1999")
    ('19990301', '19990103', '19990301', None)
    """
    found = DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = found.group(1, 2, 3) if found[1] else found.group(6, 5, 4)
    return f"{year}{int(month):02}{int(day):02}"


SPECIAL = {bytes([byte]).decode("cp1252"): byte for byte in range(0x80, 0xA0) if byte not in b"\x81\x8d\x8f\x90\x9d"}
"""What Windows-1252 has where Latin-1 has control characters, by letter."""

AFTER = "\x80-\xbf" + "".join(map(re.escape, SPECIAL))
"""The second to last bytes of a sequence of UTF-8, as they look."""

SEQUENCE = re.compile(f"[\xc2-\xdf][{AFTER}]|[\xe0-\xef][{AFTER}]{{2}}|[\xf0-\xf4][{AFTER}]{{3}}")
"""A letter of UTF-8 of two, three or four bytes, as it looks."""

FEWEST = 2
"""Sequences that a text needs: one may be by chance, such as a capital with an accent before a quotation mark."""


def repaired(text: str) -> str:
    """Return the text with mojibake decoded as UTF-8; other text as it is.

    >>> repaired("Ð´Ð°"), repaired("Ã©tÃ©"), repaired("CAFÉ”"), repaired("été")
    ('да', 'été', 'CAFÉ”', 'été')
    """
    found = sum(1 for _ in SEQUENCE.finditer(text))
    return SEQUENCE.sub(_decoded, text) if found >= FEWEST else text


def _decoded(match: re.Match[str]) -> str:
    found = bytes(SPECIAL.get(letter, ord(letter)) for letter in match[0] if letter in SPECIAL or ord(letter) < 256)
    try:
        return found.decode()
    except UnicodeDecodeError:
        return match[0]
