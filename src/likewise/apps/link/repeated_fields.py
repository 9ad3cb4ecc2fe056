"""Repeated fields: copies, joined columns, abbreviations and parts of other columns, which would count twice.

A field repeats others if its value can be read off theirs in the same record: every word of it is one of their words
(full name: given name and surname), or it is the beginning, the end or the initials of a value. What a record of
another row has is the measure of chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from likewise.apps.link.fields import Field

SAMPLE = 1_000
"""Records of each table that are looked at; the error of a share is below 1 %."""

FEWEST = 20
"""Records of each table with a value from which a field is judged."""

ALWAYS = 0.95
"""Part of the records in which a field repeats others, at least."""

BY_CHANCE = 0.5
"""Part of the records in which it may do so with the others of another record, at most."""

SAME_SIZE = 1 / 3
"""A field that another contains counts twice if it has at least this part of its words. A shorter one is a heading,
such as the title that a description repeats, and says what matters."""

WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class _Column:
    """The values of some records of one table: their words, and their letters and digits; None where missing."""

    name: str
    words: list[frozenset[str]]
    letters: list[str]
    initials: list[tuple[str, ...]]

    @classmethod
    def of(cls, field: Field, rows: np.ndarray) -> _Column:
        codes = field.codes[rows]
        values = field.folded.take(pa.array(codes, mask=codes < 0)).to_pylist()
        words = [WORD.findall(value or "") for value in values]
        return cls(
            field.name,
            [frozenset(word.lstrip("0") or word for word in some) for some in words],
            ["".join(some) for some in words],
            [tuple(map(_initials, (some, (value or "").split()))) for some, value in zip(words, values, strict=True)],
        )


def _initials(words: Sequence[str]) -> str:
    return "".join(word[0] for word in words if word[0].isalnum()) if len(words) > 1 else ""


def repeated(fields: Sequence[Field], border: int, seed: int = 1) -> dict[str, str]:
    """Return the fields that repeat others, with the reason: joined columns first, then the last of several copies."""
    records = len(fields[0].codes)
    spans = [(0, border), (border, records)] if border else [(0, records)]
    dice = np.random.default_rng(seed)
    samples = [dice.permutation(np.arange(*span))[:SAMPLE] for span in spans]
    tables = [[_Column.of(field, rows) for field in fields] for rows in samples]
    names = [field.name for field in fields]
    found: dict[str, str] = {}
    places = sorted(range(len(fields)), key=lambda place: (-fields[place].words, -place))
    for sources_of in (_joined_from, _part_of):
        for place in places:
            kept = [other for other in range(len(fields)) if other != place and names[other] not in found]
            sources = [sources_of(table[place], [table[other] for other in kept]) for table in tables]
            if names[place] not in found and all(sources):
                known = sorted(set.union(*sources), key=names.index)
                found[names[place]] = f"repeats {', '.join(known)}"
    return found


def _rows(one: _Column) -> tuple[dict[int, int], dict[int, int]]:
    """Return the rows with a value, each with itself, and each with another one."""
    there = [row for row, words in enumerate(one.words) if words]
    return {row: row for row in there}, dict(zip(there, there[1:] + there[:1], strict=True))


def _joined_from(one: _Column, others: Sequence[_Column]) -> set[str]:
    """Return the columns of which a column is joined in nearly all records; none if it is not."""
    same, apart = _rows(one)
    near = [other for other in others if _is_inside(other, one, same)]
    if len(same) < FEWEST or len(near) < 2:
        return set()
    joined = _covered(one, near, same) >= ALWAYS and _covered(one, near, apart) <= BY_CHANCE
    return {other.name for other in near} if joined else set()


def _part_of(one: _Column, others: Sequence[_Column]) -> set[str]:
    """Return the first column of which a column is a part in nearly all records; none if there is none."""
    same, apart = _rows(one)
    for other in others if len(same) >= FEWEST else ():
        if _share(one, other, same) >= ALWAYS and _share(one, other, apart) <= BY_CHANCE:
            return {other.name}
    return set()


def _share(one: _Column, other: _Column, rows: dict[int, int]) -> float:
    """Return the part of the records in which a value is another, or a large part, an end or the initials of it."""
    return sum(_is_part(one, row, other, partner) for row, partner in rows.items()) / len(rows)


def _is_part(one: _Column, row: int, other: _Column, partner: int) -> bool:
    words, whole = one.words[row], other.words[partner]
    if not whole:
        return False
    if words <= whole and len(words) >= SAME_SIZE * len(whole):
        return True
    letters, text = one.letters[row], other.letters[partner]
    return text.startswith(letters) or text.endswith(letters) or letters in other.initials[partner]


def _is_inside(one: _Column, other: _Column, rows: dict[int, int]) -> bool:
    """Return whether nearly all values of a column have no words but those of another."""
    there = [row for row in rows if one.words[row]]
    return len(there) >= FEWEST and sum(one.words[row] <= other.words[row] for row in there) >= ALWAYS * len(there)


def _covered(one: _Column, others: Sequence[_Column], rows: dict[int, int]) -> float:
    """Return the part of the records whose words are all words of the others."""
    covered = (
        one.words[row] <= frozenset().union(*(o.words[partner] for o in others)) for row, partner in rows.items()
    )
    return sum(covered) / len(rows)
