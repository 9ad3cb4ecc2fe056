"""Scores in points: 100 per field, less a penalty that grows with the square of the edit distance (MMDS §3.8.2).

Edits are insertions and deletions of a letter (MMDS §3.5.5). With d edits between values of n letters in total, a field
has 100 · (1 − (2d / n)²) points, and none once d exceeds n / 2. Replacing a word by a synonym
(`likewise.apps.link.synonyms`), such as William by Bill, counts as one edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from itertools import chain, count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.fields import date_digits
from likewise.apps.link.synonyms import Nicknames, Synonyms, plain, synonyms_for
from likewise.base import checks
from likewise.base.arrays import Ints, TextChunk
from likewise.errors import ColumnError, ParameterError

FULL = 100.0
"""Points of identical values, as in the book."""

KINDS = ("text", "name", "address", "phone", "date", "number", "exact")
NOT_DIGITS = re.compile(r"\D+")
Floats = NDArray[np.float64]
Fields = Mapping[str, str] | Sequence[str]


def field_points(x: object, y: object, kind: str = "text", nicknames: Nicknames = None) -> float:
    """Return the points, 0 to 100, of two values of a field; NaN if one of them is missing or blank.

    kind: text, name (nicknames, initials, words in any order), address, phone (digits), date (day and month may be
    swapped), number (the difference replaces the edits), exact. Case, accents and punctuation are ignored.

    >>> field_points("Jones", "JONES"), field_points("Jones", "Jomes"), field_points("Jones", "Smith")
    (100.0, 84.0, 0.0)
    >>> round(field_points("Bill", "William", kind="name"), 1), field_points("Bill", "William", kind="exact")
    (96.7, 0.0)
    >>> field_points("Bill", None)
    nan
    """
    return float(pair_points([x], [y], kind, nicknames)[0])


def pair_points(xs: Sequence[object], ys: Sequence[object], kind: str = "text", nicknames: Nicknames = None) -> Floats:
    """Return the points of each pair of values, xs[i] with ys[i]; see `field_points`.

    >>> pair_points(["12 Main St.", "1 Elm Road"], ["12 main street", "9 Oak Road"], kind="address").round()
    array([99., 36.])
    """
    checks.choice("field_points", "kind", kind, KINDS)
    if len(xs) != len(ys):
        raise ParameterError(f"Points are of pairs: there are {len(xs):,} values on one side, {len(ys):,} on the other")
    values, first, second, of_pair = _different(xs, ys)
    prepared = list(map(PREPARED[kind], values))
    there = np.array([value is not None for value in prepared], bool)
    both = np.flatnonzero(there[first] & there[second])
    points = np.full(len(first), np.nan)
    if len(both):
        x = [prepared[place] for place in first[both].tolist()]
        y = [prepared[place] for place in second[both].tolist()]
        points[both] = COMPARED[kind](x, y, synonyms_for(kind, nicknames))
    return points[of_pair]


def score(
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    fields: Fields,
    weights: Mapping[str, float] | None = None,
    *,
    nicknames: Nicknames = None,
    missing: float = 0.0,
) -> float:
    """Return the score of two records: the sum of the points of their fields, times the weights (1 by default).

    `fields` lists the fields, or maps each to its kind. A field with no value in one of the records earns `missing`
    points.

    >>> bob = {"name": "Bob S. Jomes", "address": "12 Main St", "phone": "555-0100"}
    >>> robert = {"name": "Robert Jones", "address": "12 Main Street", "phone": "(555) 0100"}
    >>> kinds = {"name": "name", "address": "address", "phone": "phone"}
    >>> round(score(bob, robert, kinds)), score(bob, bob, kinds)
    (280, 300.0)
    """
    kinds = kinds_of(fields)
    for record in (a, b):
        unknown = [name for name in kinds if name not in record]
        if unknown:
            raise ColumnError.of("score", unknown[0], list(record))
    points = {name: np.array([field_points(a[name], b[name], kind, nicknames)]) for name, kind in kinds.items()}
    return float(total(points, weights, missing)[0])


def score_pairs(
    a: Mapping[str, Sequence[object]],
    b: Mapping[str, Sequence[object]],
    fields: Fields,
    weights: Mapping[str, float] | None = None,
    *,
    nicknames: Nicknames = None,
    missing: float = 0.0,
) -> tuple[Floats, dict[str, Floats]]:
    """Return the scores of pairs of records, and the points of each field, which are NaN where a value is missing.

    `a` and `b` are columns by name: lists, Arrow or NumPy arrays, or tables of them. Row i of `a` is paired with row i
    of `b`.

    >>> total, points = score_pairs({"name": ["Bill", "Ann"]}, {"name": ["William", None]}, {"name": "name"})
    >>> total.round(1), points["name"].round(1)
    (array([96.7,  0. ]), array([96.7,  nan]))
    """
    points = {name: pair_points(a[name], b[name], kind, nicknames) for name, kind in kinds_of(fields).items()}
    return total(points, weights, missing), points


def total(points: Mapping[str, Floats], weights: Mapping[str, float] | None = None, missing: float = 0.0) -> Floats:
    """Return the weighted sums of points, with `missing` instead of NaN."""
    weights = check_weights("score", weights or {}, list(points))
    checks.number("score", "missing", missing, 0, FULL)
    if not points:
        raise ParameterError.of("score", "fields", "one or more fields", [])
    parts = [weights.get(name, 1.0) * np.where(np.isnan(some), missing, some) for name, some in points.items()]
    scores: Floats = np.sum(parts, axis=0)
    return scores


def check_weights(owner: str, weights: Mapping[str, float], fields: Sequence[str]) -> dict[str, float]:
    """Return the weights if each is a finite number of at least 0, of one of the fields."""
    unknown = next((name for name in weights if name not in fields), None)
    if unknown is not None:
        raise ParameterError.of(owner, "weights", f"of fields that are compared ({', '.join(fields)})", unknown)
    rule = "finite and not negative"
    return {name: checks.number(owner, f"weights[{name!r}]", one, 0, rule=rule) for name, one in weights.items()}


def kinds_of(fields: Fields) -> dict[str, str]:
    """Return the kind of each field; text if only names are given."""
    return dict(fields) if isinstance(fields, Mapping) else dict.fromkeys(fields, "text")


def penalised(edits: Any, letters: Any) -> Floats:
    """Return the points of values that are `edits` apart and have `letters` letters in total.

    >>> penalised([0, 1, 2, 3, 5, 9], 10)
    array([100.,  96.,  84.,  64.,   0.,   0.])
    """
    letters = np.maximum(np.asarray(letters, np.float64), np.finfo(np.float64).tiny)
    points: Floats = FULL * np.maximum(0.0, 1.0 - (2.0 * np.asarray(edits, np.float64) / letters) ** 2)
    return points


def _different(xs: Sequence[object], ys: Sequence[object]) -> tuple[list[object], Ints, Ints, Ints]:
    """Return the distinct values, the distinct pairs of them, and for each pair its number: names repeat often."""
    left, right = listed(xs), listed(ys)
    codes = dict(zip(dict.fromkeys(chain(left, right)), count(), strict=False))
    x = np.fromiter(map(codes.__getitem__, left), np.int64, len(left))
    y = np.fromiter(map(codes.__getitem__, right), np.int64, len(right))
    pairs, of_pair = np.unique(x * len(codes) + y, return_inverse=True)
    first, second = np.divmod(pairs, max(1, len(codes)))
    return list(codes), first, second, of_pair


def listed(values: Any) -> Sequence[Any]:
    """Return the values of a list, a NumPy array or an Arrow array as Python objects."""
    if hasattr(values, "to_pylist"):
        return values.to_pylist()  # type: ignore[no-any-return]
    return values.tolist() if hasattr(values, "tolist") else values  # type: ignore[no-any-return]


def _text(value: object) -> str | None:
    if value is None or value != value:
        return None
    return plain(value if isinstance(value, str) else str(value)) or None


def _exact(value: object) -> object:
    return None if value is None or value != value or value == "" else value


def _digits(value: object) -> str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None else NOT_DIGITS.sub("", str(value)) or None


def _date(value: object) -> str | None:
    """Return a date as eight digits, year first; anything else as its digits."""
    if isinstance(value, date | datetime):
        return value.strftime("%Y%m%d")
    digits = _digits(value)
    found = date_digits(value.strip()) if digits and isinstance(value, str) else None
    return digits if found is None else found


def _number(value: object) -> float | None:
    if value is None or isinstance(value, bool):
        return None if value is None else float(value)
    try:
        number = float(value.replace(",", "").strip("$€£ ") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _of_texts(xs: list[str], ys: list[str], synonyms: Synonyms) -> Floats:
    edits, letters = edits_of(xs, ys)
    for place in with_synonyms(xs, ys, edits, synonyms):
        edits[place] = min(edits[place], word_edits(xs[place], ys[place], synonyms))
    return penalised(edits, letters)


def _of_names(xs: list[str], ys: list[str], synonyms: Synonyms) -> Floats:
    edits, letters = edits_of(xs, ys)
    for place in np.flatnonzero(edits > 1).tolist():
        x, y = xs[place], ys[place]
        if " " in x or " " in y:
            edits[place] = min(edits[place], word_edits(x, y, synonyms, names=True))
        elif y in synonyms.partners(x):
            edits[place] = 1
        elif x[0] == y[0] and 1 in (len(x), len(y)):
            edits[place] = min(edits[place], INITIAL)
    return penalised(edits, letters)


def _of_phones(xs: list[str], ys: list[str], synonyms: Synonyms) -> Floats:
    return penalised(*edits_of(xs, ys, "phone"))


def _of_dates(xs: list[str], ys: list[str], synonyms: Synonyms) -> Floats:
    edits, letters = edits_of(xs, ys, "date")
    for place in np.flatnonzero((edits > 0) & (edits <= 8) & (letters == 16)).tolist():
        x, y = xs[place], ys[place]
        if x[:4] == y[:4] and x[4:6] == y[6:] and x[6:] == y[4:6]:
            edits[place] = 1
    return penalised(edits, letters)


def _of_numbers(xs: list[float], ys: list[float], synonyms: Synonyms) -> Floats:
    x, y = np.asarray(xs), np.asarray(ys)
    return penalised(np.abs(x - y), np.abs(x) + np.abs(y))


def _of_codes(xs: list[Any], ys: list[Any], synonyms: Synonyms) -> Floats:
    return np.array([FULL if x == y else 0.0 for x, y in zip(xs, ys, strict=True)])


PREPARED: dict[str, Callable[[object], Any]] = {
    "text": _text,
    "name": _text,
    "address": _text,
    "phone": _digits,
    "date": _date,
    "number": _number,
    "exact": _exact,
}
COMPARED: dict[str, Callable[[list[Any], list[Any], Synonyms], Floats]] = {
    "text": _of_texts,
    "name": _of_names,
    "address": _of_texts,
    "phone": _of_phones,
    "date": _of_dates,
    "number": _of_numbers,
    "exact": _of_codes,
}


INITIAL = 2
"""Edits between a word and its first letter: one more than for a nickname, as many names share an initial."""

PART = 1 << 16
"""Values that are converted at a time."""

Counts = NDArray[np.int32]


def letters_in(texts: pa.Array) -> tuple[NDArray[Any], Ints]:
    """Return the letters of all values as numbers (bytes, not copied, if all are ASCII), and each value's offset."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        chunk = TextChunk.from_arrow(texts)
        return chunk.data, chunk.offsets
    parts = [texts.slice(start, PART).to_pylist() for start in range(0, len(texts), PART)]
    letters = [np.frombuffer("".join(part).encode("utf-32-le"), np.uint32) for part in parts]
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    return np.concatenate(letters), np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def edits_of(xs: list[str], ys: list[str], kind: str = "text") -> tuple[Counts, Counts]:
    """Return the edit distance of each pair of values, and the sum of their lengths."""
    from likewise.kernels import record_words as kernels

    text, offsets = letters_in(pa.array([*xs, *ys], pa.string()))
    places = np.arange(len(xs))
    found: tuple[Counts, Counts] = kernels.edits(
        text, offsets, places, places + len(xs), kernels.WAYS.get(kind, kernels.TEXT)
    )
    return found


def with_synonyms(xs: list[str], ys: list[str], edits: Counts, synonyms: Synonyms) -> list[int]:
    """Return the pairs more than one edit apart in which some words of one value are synonyms of words of the other."""
    if not len(synonyms):
        return []
    entries: dict[str, frozenset[str]] = {}
    partners: dict[str, frozenset[str]] = {}
    for value in {*xs, *ys}:
        words = value.split()
        runs = (words[i : i + n] for n in range(1, synonyms.longest + 1) for i in range(len(words) - n + 1))
        entries[value] = frozenset(run for run in map(" ".join, runs) if run in synonyms)
        partners[value] = frozenset().union(*map(synonyms.partners, entries[value]))
    far = np.flatnonzero(edits > 1).tolist()
    return [place for place in far if not partners[xs[place]].isdisjoint(entries[ys[place]])]


def word_edits(x: str, y: str, synonyms: Synonyms, names: bool = False) -> int:
    """Return the edits between two texts if replacing a word by a synonym counts as one edit.

    In names, an initial may also replace a word, and sorting the words counts as one edit.
    """
    from rapidfuzz.distance import Indel

    if y < x:
        x, y = y, x
    left, free = x.split(), y.split()
    kept: list[str | None] = []
    for word in left:
        if word in free:
            free.remove(word)
            kept.append(None)
        else:
            kept.append(word)
    edits = 0
    result: list[str] = []
    start = 0
    while start < len(left):
        length, other = _replaced(kept, start, " ".join(free), synonyms)
        if length:
            edits += 1
        elif names and kept[start] is not None and (initial := _initial(left[start], free)):
            length, other, edits = 1, initial, edits + INITIAL
        else:
            length, other = 1, left[start]
        if other != left[start]:
            for word in other.split():
                if word in free:
                    free.remove(word)
        result.append(other)
        start += length
    best = edits + int(Indel.distance(" ".join(result), y))
    if names:
        ordered = " ".join(sorted(" ".join(result).split())), " ".join(sorted(y.split()))
        best = min(best, edits + 1 + int(Indel.distance(*ordered)))
    return best


def _replaced(words: list[str | None], start: int, free: str, synonyms: Synonyms) -> tuple[int, str]:
    """Return the number of words from `start` that have a synonym among the free words, and it; longest first."""
    spaced = f" {free} "
    for length in range(min(synonyms.longest, len(words) - start), 0, -1):
        run = words[start : start + length]
        if None in run:
            continue
        partners = synonyms.partners(" ".join(word for word in run if word))
        there = [(spaced.find(f" {other} "), other) for other in partners if f" {other} " in spaced]
        if there:
            return length, min(there)[1]
    return 0, ""


def _initial(word: str, free: list[str]) -> str:
    """Return the first free word of which this one is the initial, or that is the initial of this one."""
    for other in free:
        if other[0] == word[0] and len(other) != len(word) and 1 in (len(other), len(word)):
            return other
    return ""
