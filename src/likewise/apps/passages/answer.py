"""The answer of `find`: two tables, and the folder they are written to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.passages.searching import Part
from likewise.base.arrays import Ints, to_arrow
from likewise.io.publish import publish

PLACES = ("suspect_start", "suspect_end", "source_start", "source_end", "length", "equal")
MEASURES = ("containment", "source_containment", "jaccard")
TABLES = ("passages.parquet", "documents.parquet")


@dataclass(frozen=True)
class Passages:
    """Copied passages and the documents they stand in, as Arrow tables.

    passages: suspect, source; suspect_start, suspect_end, source_start, source_end, in characters (code points) of
    the text as it was given, the end behind the last one; length, in words of the suspect; equal, how many of these
    words are the source's; suspect_text, source_text.
    documents: suspect, source; containment, the part of the suspect that is in the source; source_containment, the
    part of the source that is in the suspect; jaccard; passages, how many; copied, how many characters of the suspect
    stand in them.
    """

    passages: Any
    documents: Any
    stats: dict[str, Any] = field(repr=False)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write passages.parquet, documents.parquet and run.json; a folder without run.json is not finished."""
        publish(directory, dict(zip(TABLES, (self.passages, self.documents), strict=True)), self.stats)


def make_tables(parts: list[Part], names: Any, other_names: Any) -> tuple[Any, Any]:
    """Join what was found, in the order of the suspects, then of the sources, then of the places."""
    found = np.concatenate([np.empty((0, 8), np.int64), *(part.passages for part in parts)])
    order = np.lexsort((found[:, 4], found[:, 2], found[:, 1], found[:, 0]))
    found = found[order]
    texts = [_joined([part.texts for part in parts], order), _joined([part.other_texts for part in parts], order)]
    numbers = {name: to_arrow(found[:, i + 2]) for i, name in enumerate(PLACES)}
    named = {"suspect": names.take(to_arrow(found[:, 0])), "source": other_names.take(to_arrow(found[:, 1]))}
    passages = pa.table({**named, **numbers, "suspect_text": texts[0], "source_text": texts[1]})
    pairs = np.concatenate([np.empty((0, 2), np.int64), *(part.pairs for part in parts)])
    measured = np.concatenate([np.empty((0, 3)), *(part.measured for part in parts)])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, measured = pairs[order], measured[order]
    named = {"suspect": names.take(to_arrow(pairs[:, 0])), "source": other_names.take(to_arrow(pairs[:, 1]))}
    columns = {name: to_arrow(measured[:, i]) for i, name in enumerate(MEASURES)}
    width = len(other_names) + 1
    keys, own = pairs[:, 0] * width + pairs[:, 1], found[:, 0] * width + found[:, 1]
    at = np.searchsorted(keys, own)
    counts = to_arrow(np.bincount(at, minlength=len(keys)).astype(np.int64))
    copied = np.bincount(at, weights=_new_characters(at, found[:, 2], found[:, 3]), minlength=len(keys))
    totals = {"passages": counts, "copied": to_arrow(copied.astype(np.int64))}
    return passages, pa.table({**named, **columns, **totals})


def _new_characters(pairs: Ints, starts: Ints, ends: Ints) -> Ints:
    """Count the characters of each passage that are in no passage before it of the same pair.

    >>> _new_characters(np.array([0, 0, 1]), np.array([0, 5, 5]), np.array([10, 12, 12])).tolist()
    [10, 2, 7]
    """
    width = int(ends.max(initial=0)) + 1
    reached = np.maximum.accumulate(np.concatenate([[0], pairs * width + ends]))[:-1] - pairs * width
    new: Ints = np.maximum(0, ends - np.maximum(starts, reached))
    return new


def _joined(texts: list[Any], order: Any) -> Any:
    return pa.concat_arrays([pa.array([], pa.large_string()), *texts]).take(to_arrow(order))
