"""Pairs whose answer is known: labelled pairs to learn from, and the true pairs against which matches are measured."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.records import RecordTable, read_table
from likewise.base.arrays import Ints
from likewise.errors import ColumnError, InputError, ParameterError, shown

YES = ("1", "true", "yes", "y", "match", "1.0")
"""Labels of matches, in lower case; any other label means that the pair does not match."""


@dataclass(frozen=True)
class LabelledPairs:
    """Distinct pairs of records, the lower number first, and whether each is a match."""

    pairs: Ints
    match: NDArray[np.bool_]

    @property
    def matches(self) -> Ints:
        """The pairs that match."""
        return self.pairs[self.match]


def labelled_pairs(source: Any, records: RecordTable, parameter: str) -> LabelledPairs:
    """Return the pairs in a file or table with columns id_a and id_b (or with two columns in all), or in a list.

    A column `match` or `label`, or a third element, says whether a pair matches. Without it all pairs match; a table
    with other columns is an error then, as one of them may be the label under another name.
    """
    if isinstance(source, list | tuple | set | frozenset) and not any(
        isinstance(one, dict | os.PathLike) for one in source
    ):
        if any(isinstance(pair, str | bytes) or not isinstance(pair, Iterable) for pair in source):
            raise ParameterError.of("link", parameter, "pairs of ids, or triples with a label", source)
        rows = [tuple(pair) for pair in source]
        if any(len(pair) not in (2, 3) for pair in rows):
            raise ParameterError.of("link", parameter, "pairs of ids, or triples with a label", source)
        columns = [[str(pair[place]).strip() for pair in rows] for place in range(2)]
        marks = [pair[2] if len(pair) > 2 else True for pair in rows]
    else:
        table, where, _ = read_table(source, parameter)
        there = ", ".join(table.column_names)
        label = next((name for name in table.column_names if name.strip().lower() in ("match", "label")), None)
        names = [name for name in table.column_names if name != label]
        if {"id_a", "id_b"} <= set(names):
            names = ["id_a", "id_b"]
        elif len(names) != 2:
            raise ColumnError(f"{where}: pairs need the columns id_a and id_b; the columns are: {there}")
        if label is None and table.num_columns > 2 and parameter == "training":
            raise ColumnError(
                f"{where}: labelled pairs need a column 'match' that says which pairs match; the columns are: {there}"
                " (a table of id_a and id_b alone lists pairs that all match)"
            )
        columns = [[str(value).strip() for value in table.column(name).to_pylist()] for name in names]
        marks = table.column(label).to_pylist() if label else [True] * table.num_rows
    two = bool(records.border)
    sides = [_numbers(columns[0], records, False, parameter), _numbers(columns[1], records, two, parameter)]
    pairs = np.stack([np.minimum(*sides), np.maximum(*sides)], axis=1)
    match = np.array([str(mark).strip().lower() in YES for mark in marks], bool)
    keys, first = np.unique(pairs[:, 0] * records.count + pairs[:, 1], return_index=True)
    first = first[keys // records.count != keys % records.count]
    return LabelledPairs(pairs[first], match[first])


def _numbers(column: list[str], records: RecordTable, second: bool, parameter: str) -> Ints:
    """Return the records with these ids, of the first table or of the second."""
    ids = records.ids[int(second)].to_pylist()
    numbers = {str(value): row + (records.border if second else 0) for row, value in enumerate(ids)}
    unknown = next((value for value in column if value not in numbers), None)
    if unknown is not None:
        raise InputError(f"{parameter}: there is no record with the id {shown(unknown)}")
    return np.array([numbers[value] for value in column], np.int64)


def quality(pairs: Ints, truth: LabelledPairs, records: int, completeness: float) -> dict[str, Any]:
    """Return precision, recall and F1 of the matches found, and the fraction of the true pairs that were candidates."""
    true = truth.matches
    right = len(np.intersect1d(pairs[:, 0] * records + pairs[:, 1], true[:, 0] * records + true[:, 1]))
    return {
        "pairs": len(true),
        "precision": round(right / max(1, len(pairs)), 6),
        "recall": round(right / max(1, len(true)), 6),
        "f1": round(2 * right / max(1, len(pairs) + len(true)), 6),
        "completeness": round(completeness, 6),
    }
