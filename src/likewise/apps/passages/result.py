"""The result of `passages`: the copied passages, and the pairs of documents that share them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.passages.measure import Floats
from likewise.apps.passages.search import SharedPassages, listed_spans
from likewise.base.arrays import Ints, to_arrow
from likewise.base.words import counted
from likewise.jobs.result import Result

PLACES = ("suspect_start", "suspect_end", "source_start", "source_end")
MEASURES = ("containment", "source_containment", "jaccard")


class Passages(Result):
    """The result of `passages`: tables `.passages` and `.documents`, `.stats`, and `.save(dir)`.

    passages: suspect, source; suspect_start, suspect_end, source_start, source_end, in characters (code points) of the
    original text, the end exclusive; length, the number of words in the suspect; equal, the number of these words that
    also occur in the source; sources, the number of sources that have this passage of the suspect, of which all are
    listed, or if they are many the best; suspect_text, source_text.
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


def make_tables(
    parts: list[SharedPassages], pairs: Ints, measured: Floats, names: Any, other_names: Any, many: int
) -> tuple[Any, Any]:
    """Merge the partial results, ordered by suspect, source and position; leave out what many sources have."""
    spans = np.concatenate([np.empty((0, 5), np.int32), *(part.spans for part in parts)])
    kept = np.concatenate([np.empty(0, bool), *(part.kept for part in parts)])
    order = np.lexsort((-spans[:, 3], spans[:, 2], spans[:, 1], spans[:, 0]))
    holders, chosen = listed_spans(spans[order], many)
    rows = order[chosen]
    at = (np.cumsum(kept) - 1)[rows]
    here, there = (np.concatenate([np.empty((0, 2), np.int64), *several]) for several in (
        (part.places for part in parts), (part.other_places for part in parts)
    ))  # fmt: skip
    places = np.column_stack([here[at], there[at]])
    again = np.lexsort((places[:, 2], places[:, 0], spans[rows, 1], spans[rows, 0]))
    found, places, at, sources = spans[rows[again]].astype(np.int64), places[again], at[again], holders[chosen][again]
    named = {"suspect": names.take(to_arrow(found[:, 0])), "source": other_names.take(to_arrow(found[:, 1]))}
    numbers = {name: to_arrow(places[:, i]) for i, name in enumerate(PLACES)}
    numbers |= {"length": to_arrow(found[:, 3] - found[:, 2]), "equal": to_arrow(found[:, 4])}
    numbers["sources"] = to_arrow(sources)
    texts = [_joined([part.texts for part in parts], at), _joined([part.other_texts for part in parts], at)]
    passages = pa.table({**named, **numbers, "suspect_text": texts[0], "source_text": texts[1]})
    return passages, _documents(parts, pairs, measured, names, other_names)


def _documents(parts: list[SharedPassages], pairs: Ints, measured: Floats, names: Any, other_names: Any) -> Any:
    """Return the table of pairs: what was measured, and how much they share."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, measured = pairs[order], measured[order]
    named = {"suspect": names.take(to_arrow(pairs[:, 0])), "source": other_names.take(to_arrow(pairs[:, 1]))}
    columns = {name: to_arrow(measured[:, i]) for i, name in enumerate(MEASURES)}
    width = len(other_names) + 1
    sharing = np.concatenate([np.empty((0, 2), np.int64), *(part.pairs for part in parts)])
    at = np.searchsorted(pairs[:, 0] * width + pairs[:, 1], sharing[:, 0] * width + sharing[:, 1])
    totals = np.zeros((len(pairs), 2), np.int64)
    totals[at] = np.concatenate([np.empty((0, 2), np.int64), *(part.totals for part in parts)])
    return pa.table({**named, **columns, "passages": to_arrow(totals[:, 0]), "copied": to_arrow(totals[:, 1])})


def _joined(texts: list[Any], order: Any) -> Any:
    return pa.concat_arrays([pa.array([], pa.large_string()), *texts]).take(to_arrow(order))
