"""A batch of suspects and a block of sources: the passages they share, with offsets, text and similarities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.passages.indexing import Block
from likewise.apps.passages.settings import Settings
from likewise.base.arrays import Ints, Sets, TextChunk, concatenate
from likewise.measures import batch

PAIRED = 1 << 20
"""Bytes of text in the pairs of documents that are measured at a time."""
Floats = NDArray[np.float64]
Counts = NDArray[np.int32]


@dataclass(frozen=True)
class Batch:
    """Suspects, from number `first` on, and how often each of their fingerprints was met in earlier blocks."""

    first: int
    chunk: TextChunk
    used: Counts | None = None


@dataclass(frozen=True)
class Part:
    """What one batch and one block have in common. Suspects and sources are row numbers of the whole input.

    passages: suspect, source, start, end, start, end in characters, words of the suspect's side, equal ones.
    pairs: suspect, source; measured: containment both ways, Jaccard similarity.
    counts: pairs compared, common fingerprints, pairs too repetitive to be compared to the end.
    """

    rows: int
    passages: Ints
    texts: pa.Array
    other_texts: pa.Array
    pairs: Ints
    measured: Floats
    counts: Ints
    used: Counts


def search(task: Batch, block: Block, settings: Settings) -> Part:
    """Find the passages that these suspects share with these sources."""
    found, used, counts = word_passages(task, block, settings)
    found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
    suspects, at = np.unique(found[:, 0], return_inverse=True)
    sources, other_at = np.unique(found[:, 1], return_inverse=True)
    passages = np.column_stack([found[:, :2], found[:, 2:6], found[:, 3] - found[:, 2], found[:, 6]])
    passages[:, 2:4], texts = _places(_documents(task.chunk, suspects), at, found[:, 2:4])
    several = (one for chunk, rows, _ in block.rows(sources) for one in _documents(chunk, rows))
    passages[:, 4:6], other_texts = _places(several, other_at, found[:, 4:6])
    if settings.every:
        shape = (len(task.chunk), len(block))
        pairs = np.column_stack([part.ravel() for part in np.indices(shape)]).astype(np.int64)
    else:
        pairs = np.unique(found[:, :2], axis=0)
    measured = measure(task.chunk, block, pairs, settings)
    origin = np.array([task.first, block.first])
    passages[:, :2] += origin
    return Part(len(task.chunk), passages, texts, other_texts, pairs + origin, measured, counts, used)


def word_passages(task: Batch, block: Block, settings: Settings) -> tuple[Ints, Counts, Ints]:
    """Return (suspect, source, start, end, start, end, equal) in words, the fingerprints used, and the counts."""
    from likewise.kernels.passages import find_passages

    chunk = task.chunk
    recipe, rules = settings.words.recipe(), settings.rules()
    used = task.used
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
class Document:
    """A document, and the characters at which its words start and end."""

    text: str
    starts: Ints
    ends: Ints


def place_words(chunk: TextChunk, row: int) -> Document:
    """Find the words of a document."""
    from likewise.kernels.winnowing import placed_words
    from likewise.shingle.unicode import unicode_tables

    room = int(chunk.offsets[row + 1] - chunk.offsets[row]) // 2 + 1
    hashes, starts, ends = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
    tables = unicode_tables()
    n = placed_words(chunk.data, chunk.offsets[row], chunk.offsets[row + 1], *tables, hashes, starts, ends)
    return Document(chunk.text(row), starts[:n], ends[:n])


def _documents(chunk: TextChunk, rows: Ints) -> Iterator[Document]:
    return (place_words(chunk, int(row)) for row in rows)


def _places(documents: Iterable[Document], at: Ints, words: Ints) -> tuple[Ints, Any]:
    """Turn ranges of words, in document number `at`, into ranges of characters, and return the text there."""
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


def measure(chunk: TextChunk, block: Block, pairs: Ints, settings: Settings) -> Floats:
    """Return containment of the suspect in the source, of the source in the suspect, and Jaccard similarity.

    A document without shingles is contained in nothing, and nothing is in it. Pairs are taken in the order of their
    sources, and as many at a time as have no more than PAIRED bytes of text: the sets of all would be too large.
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
    """Count once what each pair shares, and divide it by all that it can be divided by."""
    shared = np.rint(batch.containment(a, b) * a.sizes)
    wholes = np.column_stack([a.sizes, b.sizes, a.sizes + b.sizes - shared])
    return np.where((a.sizes > 0) & (b.sizes > 0), shared, 0.0)[:, None] / np.maximum(wholes, 1)
