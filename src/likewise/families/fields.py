"""Records that agree in whole fields: the simplest hash functions of entity resolution (MMDS §3.8.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.random import Floats, Hashes, uniform
from likewise.errors import InputError, ParameterError, shown
from likewise.families.algebra import StraightFamily

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SameField(StraightFamily):
    """The value of a field: function i is the value of field i; functions after the last field use random fields.

    Records are mappings and `fields` their keys, or they are tuples or lists and `fields` positions in them. Text is
    compared ignoring case and extra white space, unless normalize=False. A missing value (None, blank, NaN) is
    `absent`: it agrees with no other value, not even a missing one.

    The distance between two records is the fraction of fields in which they do not agree, so a random field agrees with
    probability 1 − d; a record with missing values is not at distance 0 from itself. To find pairs that agree in at
    least one of f fields, use `.any_of(f)`.

    >>> same = SameField(["name", "phone"])
    >>> records = [{"name": "Ann  Lee", "phone": "1"}, {"name": "ann lee", "phone": "2"}, {"name": "Bo"}]
    >>> values = same.hashes(records, 2)
    >>> bool(values[0, 0] == values[1, 0]), bool(values[0, 1] == values[1, 1]), int(values[2, 1])
    (True, False, 0)
    >>> same.distances(records, np.array([0, 2]), np.array([1, 2])).tolist()
    [0.5, 0.5]
    """

    fields: Sequence[str | int]
    seed: int = 1
    normalize: bool = True

    unit = "fraction of fields that differ"
    absent = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("SameField", self.seed))
        checks.flag("SameField", "normalize", self.normalize)
        rule = "a list of distinct names, or of distinct positions"
        fields = checks.listed("SameField", "fields", self.fields, rule)
        object.__setattr__(self, "fields", tuple(fields))
        names = all(isinstance(field, str) for field in self.fields)
        places = all(isinstance(field, int) and not isinstance(field, bool) for field in self.fields)
        if not self.fields or not (names or places) or len(set(self.fields)) < len(self.fields):
            raise ParameterError.of("SameField", "fields", rule, fields)

    def choices(self, n: int) -> Ints:
        """Return the number of the field that each of the first n functions looks at."""
        count = len(self.fields)
        drawn = (uniform(self.seed, 13, 1, n)[0] * count).astype(np.int64)
        return np.where(np.arange(n) < count, np.arange(n), drawn)

    def hashes(self, items: Any, n: int) -> Hashes:
        """Return a hash of the field's value for every record and function, 0 if it is missing."""
        return self._values(items)[:, self.choices(checks.functions("SameField", n))]

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the fraction of fields in which records do not agree."""
        values = self._values(items)
        mine, yours = values[left], values[right]
        return np.asarray(1 - ((mine == yours) & (mine != 0)).mean(axis=1), np.float64)

    def _values(self, items: Any) -> Hashes:
        """Return the hash of every field of every record."""
        items = checks.listed("SameField", "items", items, "a list of records: mappings, tuples or lists")
        rows = [self._read(number, record) for number, record in enumerate(items)]
        out = np.zeros((len(rows), len(self.fields)), np.uint64)
        for place, column in enumerate(zip(*rows, strict=True)):
            there = [number for number, value in enumerate(column) if value is not None]
            hashed = Sets.from_lists([[column[number]] for number in there], threads=1).values
            out[there, place] = np.maximum(hashed, np.uint64(1))
        return out

    def _read(self, number: int, record: Any) -> list[Any]:
        """Return the field values of one record; None where a value is missing."""
        if isinstance(self.fields[0], str):
            if not isinstance(record, Mapping):
                raise InputError(
                    f"SameField: record {number} is {shown(record)}; it must be a mapping with field names"
                )
            return [self._plain(record.get(field)) for field in self.fields]
        if isinstance(record, str | bytes | Mapping) or not isinstance(record, Sequence):
            raise InputError(f"SameField: record {number} is {shown(record)}; it must be a tuple or list of values")
        try:
            return [self._plain(record[field]) for field in self.fields if isinstance(field, int)]
        except IndexError:
            raise InputError(f"SameField: record {number} has only {len(record)} values") from None

    def _plain(self, value: Any) -> Any:
        """Return a value in the form used for comparison; None if it is missing."""
        if isinstance(value, str):
            text = " ".join(value.casefold().split()) if self.normalize else value
            return text if text.strip() else None
        return None if value is None or _not_equal_to_itself(value) else value


def _not_equal_to_itself(value: Any) -> bool:
    """Tell whether a value is not equal to itself, as NaN is."""
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # arrays compare element by element
        return False
