"""The score of the chapter: 100 points a field, less a penalty that grows with the square of the edits (§3.8.2).

Edits are insertions and deletions of a letter, as in §3.5.5. With d edits between values of n letters together, a field
has 100 · (1 − (2d / n)²) points, and none once half of all letters must go. A word that a table says stands for another
(`likewise.apps.link.names`) counts as one edit, however different the two look: Bill and William.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise.apps.link.names import Table, plain, table_for
from likewise.errors import ColumnError, ParameterError

FULL = 100.0
INITIAL = 2
"""Edits between a word and its first letter: less sure than a nickname."""

KINDS = ("text", "name", "address", "phone", "date", "number", "exact")
NOT_DIGITS = re.compile(r"\D+")
DATE = re.compile(r"(\d{4})[^\d]?(\d{1,2})[^\d]?(\d{1,2})(?:[T ].*)?|(\d{1,2})[^\d](\d{1,2})[^\d](\d{4})")
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Tables = Mapping[str, Table] | Table | None
Fields = Mapping[str, str] | Sequence[str]


def field_points(x: object, y: object, kind: str = "text", tables: Tables = None) -> float:
    """Return the points, 0 to 100, of two values of a field; NaN if one of them is missing or blank.

    kind: text, name (nicknames, initials, words in any order), address, phone (digits), date (day and month may be
    swapped), number (the difference takes the place of edits), exact. Upper case, accents and punctuation do not count.

    >>> field_points("Jones", "JONES"), field_points("Jones", "Jomes"), field_points("Jones", "Smith")
    (100.0, 84.0, 0.0)
    >>> round(field_points("Bill", "William", kind="name"), 1), field_points("Bill", "William", kind="exact")
    (96.7, 0.0)
    >>> field_points("Bill", None)
    nan
    """
    return float(pair_points([x], [y], kind, tables)[0])


def pair_points(xs: Sequence[object], ys: Sequence[object], kind: str = "text", tables: Tables = None) -> Floats:
    """Return the points of each pair of values, xs[i] with ys[i], all at once; see `field_points`.

    >>> pair_points(["12 Main St.", "1 Elm Road"], ["12 main street", "9 Oak Road"], kind="address").round()
    array([99., 36.])
    """
    if kind not in KINDS:
        raise ParameterError.of("field_points", "kind", f"one of {', '.join(KINDS)}", kind)
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
        points[both] = COMPARED[kind](x, y, table_for(kind, tables))
    return points[of_pair]


def score(
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    fields: Fields,
    weights: Mapping[str, float] | None = None,
    *,
    tables: Tables = None,
    missing: float = 0.0,
) -> float:
    """Return the score of two records: the sum of the points of their fields, times the weights (1 each).

    `fields` names the fields, or gives the kind of each. A field that one of the records does not have earns `missing`
    points: none, as nothing is known of it.

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
    points = {name: np.array([field_points(a[name], b[name], kind, tables)]) for name, kind in kinds.items()}
    return float(total(points, weights, missing)[0])


def score_pairs(
    a: Mapping[str, Sequence[object]],
    b: Mapping[str, Sequence[object]],
    fields: Fields,
    weights: Mapping[str, float] | None = None,
    *,
    tables: Tables = None,
    missing: float = 0.0,
) -> tuple[Floats, dict[str, Floats]]:
    """Return the scores of pairs of records, and the points of each field, which are NaN where a value is missing.

    `a` and `b` are columns by name: lists, Arrow or NumPy arrays, or tables of them. Their rows are paired in order.

    >>> total, points = score_pairs({"name": ["Bill", "Ann"]}, {"name": ["William", None]}, {"name": "name"})
    >>> total.round(1), points["name"].round(1)
    (array([96.7,  0. ]), array([96.7,  nan]))
    """
    points = {name: pair_points(a[name], b[name], kind, tables) for name, kind in kinds_of(fields).items()}
    return total(points, weights, missing), points


def total(points: Mapping[str, Floats], weights: Mapping[str, float] | None = None, missing: float = 0.0) -> Floats:
    """Return the weighted sums of points, with `missing` in the place of NaN."""
    weights = weights or {}
    unknown = [name for name in weights if name not in points]
    if unknown:
        raise ParameterError.of("score", "weights", f"of fields: {', '.join(points)}", unknown[0])
    for name, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise ParameterError.of("score", "weights", "finite and not negative", {name: weight})
    if not 0 <= missing <= FULL:
        raise ParameterError.of("score", "missing", "in [0, 100]", missing)
    if not points:
        raise ParameterError.of("score", "fields", "one or more fields", [])
    parts = [weights.get(name, 1.0) * np.where(np.isnan(some), missing, some) for name, some in points.items()]
    scores: Floats = np.sum(parts, axis=0)
    return scores


def kinds_of(fields: Fields) -> dict[str, str]:
    """Return the kind of each field; of names alone, text."""
    return dict(fields) if isinstance(fields, Mapping) else dict.fromkeys(fields, "text")


def penalised(edits: Any, letters: Any) -> Floats:
    """Return the points of values with so many edits between them and so many letters together.

    >>> penalised([0, 1, 2, 3, 5, 9], 10)
    array([100.,  96.,  84.,  64.,   0.,   0.])
    """
    letters = np.maximum(np.asarray(letters, np.float64), np.finfo(np.float64).tiny)
    points: Floats = FULL * np.maximum(0.0, 1.0 - (2.0 * np.asarray(edits, np.float64) / letters) ** 2)
    return points


def _different(xs: Sequence[object], ys: Sequence[object]) -> tuple[list[object], Places, Places, Places]:
    """Return the different values, the different pairs of them, and which of these each pair is: few, if of names."""
    left, right = listed(xs), listed(ys)
    codes = dict(zip(dict.fromkeys(chain(left, right)), count(), strict=False))
    x = np.fromiter(map(codes.__getitem__, left), np.int64, len(left))
    y = np.fromiter(map(codes.__getitem__, right), np.int64, len(right))
    pairs, of_pair = np.unique(x * len(codes) + y, return_inverse=True)
    first, second = np.divmod(pairs, max(1, len(codes)))
    return list(codes), first, second, of_pair


def listed(values: Any) -> Sequence[Any]:
    """Return values as Python objects, whether they stand in a list, in NumPy or in Arrow."""
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
    """Return a date as eight digits, year first; what does not look like one as its digits."""
    if isinstance(value, date | datetime):
        return value.strftime("%Y%m%d")
    digits = _digits(value)
    found = DATE.fullmatch(str(value).strip()) if digits and isinstance(value, str) else None
    if found is None:
        return digits
    year, month, day = found.group(1, 2, 3) if found[1] else found.group(6, 5, 4)
    return f"{year}{int(month):02}{int(day):02}"


def _number(value: object) -> float | None:
    if value is None or isinstance(value, bool):
        return None if value is None else float(value)
    try:
        number = float(value.replace(",", "").strip("$€£ ") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _of_texts(xs: list[str], ys: list[str], table: Table) -> Floats:
    edits, letters = _edits(xs, ys)
    for place in _helped(xs, ys, edits, table):
        edits[place] = min(edits[place], _with_table(xs[place], ys[place], table))
    return penalised(edits, letters)


def _of_names(xs: list[str], ys: list[str], table: Table) -> Floats:
    edits, letters = _edits(xs, ys)
    for place in np.flatnonzero(edits > 1).tolist():
        x, y = xs[place], ys[place]
        if " " in x or " " in y:
            edits[place] = min(edits[place], _with_table(x, y, table, names=True))
        elif y in table.partners(x):
            edits[place] = 1
        elif x[0] == y[0] and 1 in (len(x), len(y)):
            edits[place] = min(edits[place], INITIAL)
    return penalised(edits, letters)


def _of_phones(xs: list[str], ys: list[str], table: Table) -> Floats:
    return penalised(*_edits(xs, ys, "phone"))


def _of_dates(xs: list[str], ys: list[str], table: Table) -> Floats:
    edits, letters = _edits(xs, ys, "date")
    for place in np.flatnonzero((edits > 0) & (edits <= 8) & (letters == 16)).tolist():
        x, y = xs[place], ys[place]
        if x[:4] == y[:4] and x[4:6] == y[6:] and x[6:] == y[4:6]:
            edits[place] = 1
    return penalised(edits, letters)


def _of_numbers(xs: list[float], ys: list[float], table: Table) -> Floats:
    x, y = np.asarray(xs), np.asarray(ys)
    return penalised(np.abs(x - y), np.abs(x) + np.abs(y))


def _of_codes(xs: list[Any], ys: list[Any], table: Table) -> Floats:
    return np.array([FULL if x == y else 0.0 for x, y in zip(xs, ys, strict=True)])


def letters_of(values: Sequence[str]) -> tuple[npt.NDArray[Any], Places]:
    """Return the letters of all values as numbers, and where each value starts: bytes, if all of them are ASCII."""
    whole = "".join(values)
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    if whole.isascii():
        return np.frombuffer(whole.encode(), np.uint8), offsets
    return np.frombuffer(whole.encode("utf-32-le"), np.uint32), offsets


def _edits(xs: list[str], ys: list[str], kind: str = "text") -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the edits between values, and how many letters both have together."""
    from likewise.kernels import letters

    text, offsets = letters_of([*xs, *ys])
    places = np.arange(len(xs))
    found: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] = letters.edits(
        text, offsets, places, places + len(xs), letters.WAYS.get(kind, letters.TEXT)
    )
    return found


def _helped(xs: list[str], ys: list[str], edits: npt.NDArray[np.int32], table: Table) -> list[int]:
    """Return the pairs in which some words of one value stand for some of the other."""
    if not len(table):
        return []
    entries: dict[str, frozenset[str]] = {}
    partners: dict[str, frozenset[str]] = {}
    for value in {*xs, *ys}:
        words = value.split()
        runs = (words[i : i + n] for n in range(1, table.longest + 1) for i in range(len(words) - n + 1))
        entries[value] = frozenset(run for run in map(" ".join, runs) if run in table)
        partners[value] = frozenset().union(*map(table.partners, entries[value]))
    far = np.flatnonzero(edits > 1).tolist()
    return [place for place in far if not partners[xs[place]].isdisjoint(entries[ys[place]])]


def _with_table(x: str, y: str, table: Table, names: bool = False) -> int:
    """Return the edits between two texts when a word may be put in the place of one it stands for, as one edit.

    Of names, initials stand for words too, and all words may be put in order, as one edit more.
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
        length, stands = _replaced(kept, start, " ".join(free), table)
        if length:
            edits += 1
        elif names and kept[start] is not None and (other := _initial(left[start], free)):
            length, stands, edits = 1, other, edits + INITIAL
        else:
            length, stands = 1, left[start]
        if stands != left[start]:
            for word in stands.split():
                if word in free:
                    free.remove(word)
        result.append(stands)
        start += length
    best = edits + int(Indel.distance(" ".join(result), y))
    if names:
        ordered = " ".join(sorted(" ".join(result).split())), " ".join(sorted(y.split()))
        best = min(best, edits + 1 + int(Indel.distance(*ordered)))
    return best


def _replaced(words: list[str | None], start: int, free: str, table: Table) -> tuple[int, str]:
    """Return how many words from here stand for some that are free on the other side, and these; longest first."""
    spaced = f" {free} "
    for length in range(min(table.longest, len(words) - start), 0, -1):
        run = words[start : start + length]
        if None in run:
            continue
        partners = table.partners(" ".join(word for word in run if word))
        there = [(spaced.find(f" {other} "), other) for other in partners if f" {other} " in spaced]
        if there:
            return length, min(there)[1]
    return 0, ""


def _initial(word: str, free: list[str]) -> str:
    """Return the first free word that this one is the first letter of, or that is the first letter of it."""
    for other in free:
        if other[0] == word[0] and len(other) != len(word) and 1 in (len(other), len(word)):
            return other
    return ""


PREPARED: dict[str, Callable[[object], Any]] = {
    "text": _text,
    "name": _text,
    "address": _text,
    "phone": _digits,
    "date": _date,
    "number": _number,
    "exact": _exact,
}
COMPARED: dict[str, Callable[[list[Any], list[Any], Table], Floats]] = {
    "text": _of_texts,
    "name": _of_names,
    "address": _of_texts,
    "phone": _of_phones,
    "date": _of_dates,
    "number": _of_numbers,
    "exact": _of_codes,
}
