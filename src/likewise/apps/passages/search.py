"""A batch of suspects against a block of sources: the passages they share, with offsets, text and similarities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.passages.index import SourceBlock
from likewise.apps.passages.settings import PassageSettings
from likewise.base.arrays import Ints, Sets, TextChunk, concatenate
from likewise.measures.batch import containment

PAIRED = 1 << 20
"""Bytes of text in the pairs of documents measured at a time; it bounds the memory that their sets of shingles take."""
Floats = NDArray[np.float64]
PrintCounts = NDArray[np.int32]
"""For each fingerprint of a batch of suspects, the number of sources examined so far."""


@dataclass(frozen=True)
class SuspectBatch:
    """Consecutive suspects, starting with number `first`, and the counts of their fingerprints in earlier blocks."""

    first: int
    chunk: TextChunk
    used: PrintCounts | None = None


@dataclass(frozen=True)
class SharedPassages:
    """What a batch and a block have in common. Suspects and sources are row numbers of the whole input.

    passages: suspect, source, start, end, start, end in characters, words of the suspect, equal words.
    pairs: suspect, source; measured: containment in both directions, Jaccard similarity.
    counts: pairs compared, common fingerprints, pairs too repetitive to compare to the end.
    """

    rows: int
    passages: Ints
    texts: pa.Array
    other_texts: pa.Array
    pairs: Ints
    measured: Floats
    counts: Ints
    used: PrintCounts


def search_block(batch: SuspectBatch, block: SourceBlock, settings: PassageSettings) -> SharedPassages:
    """Find the passages that the suspects share with the sources."""
    found, used, counts = word_passages(batch, block, settings)
    found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
    suspects, at = np.unique(found[:, 0], return_inverse=True)
    sources, other_at = np.unique(found[:, 1], return_inverse=True)
    passages = np.column_stack([found[:, :2], found[:, 2:6], found[:, 3] - found[:, 2], found[:, 6]])
    passages[:, 2:4], texts = _places(_documents(batch.chunk, suspects), at, found[:, 2:4])
    several = (one for chunk, rows, _ in block.rows(sources) for one in _documents(chunk, rows))
    passages[:, 4:6], other_texts = _places(several, other_at, found[:, 4:6])
    if settings.every:
        shape = (len(batch.chunk), len(block))
        pairs = np.column_stack([part.ravel() for part in np.indices(shape)]).astype(np.int64)
    else:
        pairs = np.unique(found[:, :2], axis=0)
    measured = measure(batch.chunk, block, pairs, settings)
    origin = np.array([batch.first, block.first])
    passages[:, :2] += origin
    return SharedPassages(len(batch.chunk), passages, texts, other_texts, pairs + origin, measured, counts, used)


def word_passages(batch: SuspectBatch, block: SourceBlock, settings: PassageSettings) -> tuple[Ints, PrintCounts, Ints]:
    """Return (suspect, source, start, end, start, end, equal) in words, the fingerprints used, and the counts."""
    from likewise.kernels.passages import find_passages

    chunk = batch.chunk
    recipe, rules = settings.words.recipe(), settings.rules()
    used = batch.used
    if used is None:
        used = np.zeros(int(chunk.offsets[-1] - chunk.offsets[0]) // 2 + len(chunk) + 1, np.int32)
    counts = np.zeros(3, np.int64)
    parts, room = [np.empty((0, 7), np.int64)], 1024
    row = cursor = 0
    while row < len(chunk):
        out = np.empty((room, 7), np.int64)
        last = row
        row, cursor, written = find_passages(
            chunk.data, chunk.offsets, row, recipe, block.index, rules, used, cursor, out, counts
        )
        parts.append(out[:written])
        room *= 4 if row == last else 1
    return np.concatenate(parts), used[:cursor].copy(), counts


@dataclass(frozen=True)
class PlacedWords:
    """A document and the characters at which its words start and end."""

    text: str
    starts: Ints
    ends: Ints


def place_words(chunk: TextChunk, row: int) -> PlacedWords:
    """Locate the words of a document."""
    from likewise.kernels.winnowing import placed_words
    from likewise.shingle.unicode import unicode_tables

    room = int(chunk.offsets[row + 1] - chunk.offsets[row]) // 2 + 1
    hashes, starts, ends = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
    tables = unicode_tables()
    n = placed_words(chunk.data, chunk.offsets[row], chunk.offsets[row + 1], *tables, hashes, starts, ends)
    return PlacedWords(chunk.text(row), starts[:n], ends[:n])


def _documents(chunk: TextChunk, rows: Ints) -> Iterator[PlacedWords]:
    return (place_words(chunk, int(row)) for row in rows)


def _places(documents: Iterable[PlacedWords], at: Ints, words: Ints) -> tuple[Ints, Any]:
    """Convert ranges of words, in document number `at`, to ranges of characters, and return their text too."""
    places, texts = np.empty((len(at), 2), np.int64), [""] * len(at)
    order = np.argsort(at, kind="stable")
    first = 0
    for which, document in enumerate(documents):
        while first < len(order) and at[order[first]] == which:
            i = order[first]
            low, high = document.starts[words[i, 0]], document.ends[words[i, 1] - 1]
            places[i] = low, high
            texts[i] = document.text[low:high]
            first += 1
    return places, pa.array(texts, pa.large_string())


def measure(chunk: TextChunk, block: SourceBlock, pairs: Ints, settings: PassageSettings) -> Floats:
    """Return the containment of suspect in source, of source in suspect, and the Jaccard similarity.

    A document without shingles is contained in nothing and contains nothing. Pairs are measured in the order of their
    sources, about PAIRED bytes of text at a time, because the sets of all pairs would be too large.
    """
    shingler = settings.shingler
    suspects, left = np.unique(pairs[:, 0], return_inverse=True)
    here = shingler.chunk_sets(chunk, suspects)
    measured = np.zeros((len(pairs), 3))
    order = np.argsort(pairs[:, 1], kind="stable")
    sizes = np.diff(chunk.offsets)[pairs[order, 0]] + block.sizes[pairs[order, 1]]
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // PAIRED)) + 1
    for some in np.split(order, cuts):
        sources, right = np.unique(pairs[some, 1], return_inverse=True)
        there = concatenate([shingler.chunk_sets(part, rows) for part, rows, _ in block.rows(sources)])
        measured[some] = _measured(here.take(left[some]), there.take(right))
    return measured


def _measured(a: Sets, b: Sets) -> Floats:
    """Count the shared shingles of each pair once, and divide by the size of a, of b and of the union."""
    shared = np.rint(containment(a, b) * a.sizes)
    wholes = np.column_stack([a.sizes, b.sizes, a.sizes + b.sizes - shared])
    return np.where((a.sizes > 0) & (b.sizes > 0), shared, 0.0)[:, None] / np.maximum(wholes, 1)
