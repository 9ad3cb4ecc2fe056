"""The ids of items: unique, in one Arrow array, or the row numbers if there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Ints, strings, to_arrow
from likewise.base.tokens import hash_column
from likewise.errors import InputError

SMALL = 100_000
"""Ids up to this many are compared directly; more are compared by their hashes, which take less memory."""

Locate = Callable[[int], tuple[str, int]]
"""Returns, for a row of the whole input, its file or object and its row there."""


def names(ids: Any | None, rows: Ints) -> Any:
    """Return the ids of these rows as an Arrow array: the row numbers if there are no ids."""
    return to_arrow(rows) if ids is None else ids.take(to_arrow(rows))


def unique_ids(ids: Any, column: str | None, locate: Locate | None = None) -> Any:
    """Return the ids without dictionary encoding; raise if two rows have the same one: no result could name them."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if pa.types.is_string_view(ids.type):
        ids = ids.cast(pa.large_string())
    if _are_unique(ids):
        return ids
    of = f"of column '{column or 'path'}'"
    if pa.types.is_floating(ids.type) and pc.any(pc.is_nan(ids)).as_py():
        row = int(np.argmax(np.asarray(pc.is_nan(ids))))
        raise InputError(
            f"the id {of} in {_rows([row], locate)} (counted from 0) is not a number (NaN); choose another column"
        )
    counts = pc.value_counts(ids)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0]
    rows = np.flatnonzero(np.asarray(pc.equal(ids, twice)))[:2].tolist()
    raise InputError(
        f"id {twice.as_py()!r} {of} is in {_rows(rows, locate)} (counted from 0); "
        "ids must be unique: choose another column, or leave the id out to use row numbers"
    )


def _rows(rows: list[int], locate: Locate | None) -> str:
    """Say which rows of which files these are."""
    if locate is None:
        return f"rows {' and '.join(map(str, rows))}" if len(rows) > 1 else f"row {rows[0]}"
    places = [locate(row) for row in rows]
    if len({name for name, _ in places}) == 1 < len(rows):
        return f"rows {' and '.join(str(row) for _, row in places)} of {places[0][0]}"
    return " and ".join(f"row {row} of {name}" for name, row in places)


def _are_unique(ids: Any) -> bool:
    """Tell whether all ids differ: by their hashes, in little memory, and exactly where hashes agree."""
    kind = ids.type
    hashable = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not hashable or kind == pa.uint64() or len(ids) < SMALL:
        return bool(pc.count_distinct(ids).as_py() == len(ids))
    hashes = hash_column(ids)
    order = np.argsort(hashes)
    same = hashes[order[1:]] == hashes[order[:-1]]
    if not same.any():
        return True
    suspects = ids.take(to_arrow(np.unique(np.concatenate([order[1:][same], order[:-1][same]]))))
    return bool(pc.count_distinct(suspects).as_py() == len(suspects))


def matching(ids: pa.Array, wanted: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the places of ids that, written out, are among these, and the ids so written.

    >>> list(matching(pa.array([5, 6, 7]), {"7", "x"}))
    [(2, '7')]
    """
    kind = ids.type
    if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        flags = pc.is_in(ids.cast(pa.large_string()), strings(sorted(wanted)).cast(pa.large_string()))
        for place in pc.indices_nonzero(flags).to_pylist():
            yield place, str(ids[place].as_py())
        return
    for place, id in enumerate(ids.to_pylist()):
        if str(id) in wanted:
            yield place, str(id)
