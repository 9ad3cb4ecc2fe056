"""A batch of suspects against a block of sources: the passages they share, with positions and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.passages.index import PassageSettings, SourceBlock
from likewise.base.arrays import Ints, TextChunk, to_arrow
from likewise.base.parallel import in_order

Flags = NDArray[np.bool_]
Counts = NDArray[np.int32]
ROOM = 1 << 12
"""Passages that a call of the kernel has room for at first; the room grows if there are more."""


@dataclass(frozen=True)
class SuspectBatch:
    """Consecutive suspects, starting with number `first`, and the counts of their fingerprints in earlier blocks."""

    first: int
    chunk: TextChunk
    used: Counts | None = None


@dataclass(frozen=True)
class SharedPassages:
    """What a batch and a block have in common. Suspects and sources are row numbers of the whole input.

    spans: suspect, source, start and end in words of the suspect, equal words: every passage. kept: which of them may
    be listed in the end. places, texts: of those, start and end in characters of the suspect, and the text;
    other_places, other_texts: the same of the source, and until `place_sources` has located them, their words.
    pairs: suspect, source. totals: number of passages of a pair, characters of the suspect that they cover.
    counts: pairs compared, common fingerprints, pairs too repetitive to list all places.
    """

    rows: int
    spans: Ints
    kept: Flags
    places: Ints
    texts: pa.Array
    other_places: Ints
    other_texts: Any
    pairs: Ints
    totals: Ints
    counts: Ints
    used: Counts


def search_block(batch: SuspectBatch, block: SourceBlock, settings: PassageSettings) -> SharedPassages:
    """Find the passages that the suspects share with the sources."""
    found, used, counts = word_passages(batch, block, settings)
    found = found[np.lexsort((-found[:, 3], found[:, 2], found[:, 1], found[:, 0]))]
    spans = found[:, [0, 1, 2, 3, 6]]
    kept = listed_spans(spans, settings.many + 1, 2)[1]
    suspects, at = np.unique(found[:, 0], return_inverse=True)
    own, texts = _places(_documents(batch.chunk, suspects), at, found[:, 2:4], kept)
    new = np.ones(len(found), bool)
    new[1:] = (found[1:, :2] != found[:-1, :2]).any(axis=1)
    pairs, numbers = found[new, :2], np.cumsum(new) - 1
    copied = np.bincount(numbers, weights=new_characters(numbers, own[:, 0], own[:, 1]), minlength=len(pairs))
    totals = np.column_stack([np.bincount(numbers, minlength=len(pairs)), copied]).astype(np.int64)
    origin = np.array([batch.first, block.first])
    spans[:, :2] += origin
    return SharedPassages(
        len(batch.chunk), spans.astype(np.int32), kept, own[kept], texts, found[kept, 4:6], None, pairs + origin,
        totals, counts, used,
    )  # fmt: skip


def place_sources(parts: list[SharedPassages], block: SourceBlock, threads: int) -> list[SharedPassages]:
    """Locate the passages of all suspects in the sources of a block, each source once."""
    rows = np.concatenate([part.spans[part.kept, 1] for part in parts]) - block.first
    words = np.concatenate([part.other_places for part in parts])
    sources, at = np.unique(rows, return_inverse=True)
    order = np.argsort(at, kind="stable")
    cuts = np.searchsorted(at[order], np.arange(len(sources) + 1))

    def locate(task: tuple[TextChunk, Ints, slice]) -> tuple[Ints, Ints, Any]:
        chunk, here, where = task
        some = order[cuts[where.start] : cuts[where.stop]]
        everything = np.ones(len(some), bool)
        return some, *_places(_documents(chunk, here), at[some] - where.start, words[some], everything)

    places, texts, found = np.empty((len(at), 2), np.int64), [pa.array([], pa.large_string())], [order[:0]]
    for some, located, shown in in_order(locate, block.rows(sources), threads):
        places[some] = located
        texts.append(shown)
        found.append(some)
    back = np.argsort(np.concatenate(found), kind="stable")
    whole = pa.concat_arrays(texts).take(to_arrow(back))
    ends = np.cumsum([0, *(len(part.other_places) for part in parts)]).tolist()
    return [
        replace(part, other_places=places[low:high], other_texts=whole.slice(low, high - low))
        for part, low, high in zip(parts, ends, ends[1:], strict=False)
    ]


def word_passages(batch: SuspectBatch, block: SourceBlock, settings: PassageSettings) -> tuple[Ints, Counts, Ints]:
    """Return (suspect, source, start, end, start, end, equal) in words, the fingerprints used, and the counts."""
    from likewise.kernels.passages import find_passages

    chunk = batch.chunk
    recipe, rules = settings.words.recipe(), settings.rules()
    used = batch.used
    if used is None:
        used = np.zeros(int(chunk.offsets[-1] - chunk.offsets[0]) // 2 + len(chunk) + 1, np.int32)
    counts, place = np.zeros(3, np.int64), np.zeros(3, np.int64)
    parts, room = [np.empty((0, 7), np.int64)], ROOM
    while place[0] < len(chunk):
        out = np.empty((room, 7), np.int64)
        written = find_passages(chunk.data, chunk.offsets, recipe, block.index, rules, used, place, out, counts)
        parts.append(out[: max(0, written)].copy())
        room = max(room, -2 * written, 4 * written)
    return np.concatenate(parts), used[: place[1]].copy(), counts


def listed_spans(spans: Ints, many: int, need: int = 1) -> tuple[Ints, Flags]:
    """Return how many sources hold each span of a suspect, and which spans to list.

    spans: suspect, source, start, end, equal words, ordered by suspect, source, start and falling end. A span is listed
    if one of its words is in at most `many` sources, or not yet in spans with more equal words, of `need` sources.
    """
    from likewise.kernels.coverage import list_spans

    suspects, sources, starts, ends, equal = (column.astype(np.int64) for column in spans.T)
    groups = np.flatnonzero(np.concatenate([[True], suspects[1:] != suspects[:-1], [True]])[: len(spans) + 1])
    if not len(spans):
        groups = np.zeros(1, np.int64)
    order = np.lexsort((starts, sources, -equal, suspects)) - np.repeat(groups[:-1], np.diff(groups))
    holders, chosen = np.zeros(len(spans), np.int64), np.zeros(len(spans), bool)
    list_spans(groups.astype(np.int64), starts, ends, sources, order, many, need, holders, chosen)
    return holders, chosen


@dataclass(frozen=True)
class PlacedWords:
    """A document and the characters at which its words start and end."""

    text: str
    starts: Ints
    ends: Ints


def place_words(chunk: TextChunk, row: int) -> PlacedWords:
    """Locate the words of a document."""
    from likewise.kernels.documents import placed_words
    from likewise.shingle.unicode import unicode_tables

    room = int(chunk.offsets[row + 1] - chunk.offsets[row]) // 2 + 1
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    tables = unicode_tables()
    n = placed_words(chunk.data, chunk.offsets[row], chunk.offsets[row + 1], *tables, starts, ends)
    return PlacedWords(chunk.text(row), starts[:n], ends[:n])


def _documents(chunk: TextChunk, rows: Ints) -> Iterator[PlacedWords]:
    return (place_words(chunk, int(row)) for row in rows)


def _places(documents: Iterable[PlacedWords], at: Ints, words: Ints, wanted: Flags) -> tuple[Ints, Any]:
    """Convert ranges of words, in document number `at`, to ranges of characters; return the wanted texts too."""
    places, texts = np.empty((len(at), 2), np.int64), np.full(len(at), "", object)
    order = np.argsort(at, kind="stable")
    cuts = np.searchsorted(at[order], np.arange(int(at.max(initial=-1)) + 2))
    for document, low, high in zip(documents, cuts, cuts[1:], strict=False):
        some = order[low:high]
        places[some, 0] = document.starts[words[some, 0]]
        places[some, 1] = document.ends[words[some, 1] - 1]
        for i in some[wanted[some]].tolist():
            texts[i] = document.text[places[i, 0] : places[i, 1]]
    return places, pa.array(texts[wanted], pa.large_string())


def new_characters(pairs: Ints, starts: Ints, ends: Ints) -> Ints:
    """Count the characters of each passage that no earlier passage of the same pair covers.

    >>> new_characters(np.array([0, 0, 1]), np.array([0, 5, 5]), np.array([10, 12, 12])).tolist()
    [10, 2, 7]
    """
    width = int(ends.max(initial=0)) + 1
    reached = np.maximum.accumulate(np.concatenate([[0], pairs * width + ends]))[:-1] - pairs * width
    new: Ints = np.maximum(0, ends - np.maximum(starts, reached))
    return new
