"""The result of `passages`: the copied passages, and the pairs of documents that share them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.passages.search import SharedPassages
from likewise.base.arrays import Ints, to_arrow
from likewise.base.words import counted
from likewise.jobs.result import Result

PLACES = ("suspect_start", "suspect_end", "source_start", "source_end", "length", "equal")
MEASURES = ("containment", "source_containment", "jaccard")


class Passages(Result):
    """The result of `passages`: tables `.passages` and `.documents`, `.stats`, and `.save(dir)`.

    passages: suspect, source; suspect_start, suspect_end, source_start, source_end, in characters (code points) of the
    original text, the end exclusive; length, the number of words in the suspect; equal, the number of these words that
    also occur in the source; suspect_text, source_text.
    documents: suspect, source; containment, the fraction of the suspect contained in the source; source_containment,
    the fraction of the source contained in the suspect; jaccard; passages, their number; copied, the number of
    characters of the suspect they cover.
    """

    files: ClassVar[dict[str, str]] = {"passages.parquet": "passages", "documents.parquet": "documents"}

    def __init__(self, passages: Any, documents: Any, stats: dict[str, Any]) -> None:
        self.passages = passages
        self.documents = documents
        self.stats = stats

    def _summary(self) -> str:
        counts = self.stats["counts"]
        return (
            f"{counted(len(self.passages), 'passage')} in {counts['suspects_with_passages']:,} of "
            f"{counted(counts['suspects'], 'suspect')}, from {counted(counts['sources'], 'source')}"
        )


def make_tables(parts: list[SharedPassages], names: Any, other_names: Any) -> tuple[Any, Any]:
    """Merge the partial results, ordered by suspect, source and position."""
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
    """Count the characters of each passage that no earlier passage of the same pair covers.

    >>> _new_characters(np.array([0, 0, 1]), np.array([0, 5, 5]), np.array([10, 12, 12])).tolist()
    [10, 2, 7]
    """
    width = int(ends.max(initial=0)) + 1
    reached = np.maximum.accumulate(np.concatenate([[0], pairs * width + ends]))[:-1] - pairs * width
    new: Ints = np.maximum(0, ends - np.maximum(starts, reached))
    return new


def _joined(texts: list[Any], order: Any) -> Any:
    return pa.concat_arrays([pa.array([], pa.large_string()), *texts]).take(to_arrow(order))
