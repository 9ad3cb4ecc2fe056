"""The index of the sources: their words and the fingerprints chosen by winnowing, sorted, in blocks that fit in memory.

Besides the text itself, a word takes 8 bytes and a fingerprint 12; winnowing keeps about 2 / (window + 1) fingerprints
per word, 0.4 by default. Together this is about 3.2 bytes per byte of English text. During sorting, a fingerprint takes
28 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.passages.settings import PassageSettings
from likewise.base.arrays import Hashes, Ints, TextChunk, Texts
from likewise.base.parallel import in_order

if TYPE_CHECKING:
    from likewise.kernels.passages import SourceIndex

MOST_WORDS = 1 << 31
"""Most words in a block: their positions must fit in 32-bit integers."""
BYTES_A_WORD, BYTES_A_PRINT = 9, 30
"""Memory per word and per fingerprint while a block is sorted, rounded up."""


@dataclass(frozen=True)
class SourceBatch:
    """A batch of sources: text, words, and fingerprints with their positions among these words."""

    chunk: TextChunk
    words: Hashes
    offsets: Ints
    values: Hashes
    places: NDArray[np.uint32]

    @property
    def cost(self) -> int:
        """The bytes this batch takes in a block while the block is sorted."""
        return (
            int(self.chunk.offsets[-1] - self.chunk.offsets[0])
            + BYTES_A_WORD * len(self.words)
            + BYTES_A_PRINT * len(self.values)
        )


@dataclass(frozen=True)
class SourceBlock:
    """Consecutive sources, starting with number `first`, ready to be searched."""

    first: int
    texts: Texts
    index: SourceIndex

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def sizes(self) -> Ints:
        """The bytes of each source."""
        return np.concatenate([np.diff(chunk.load().offsets) for chunk in self.texts.chunks])

    def rows(self, rows: Ints) -> Iterator[tuple[TextChunk, Ints, slice]]:
        """Yield (chunk, rows within it, their slice of `rows`) for ascending rows of this block."""
        for chunk, places, where in self.texts.split(rows):
            yield chunk.load(), places, where


def make_source_batch(chunk: TextChunk, settings: PassageSettings) -> SourceBatch:
    """Split documents into words and choose their fingerprints."""
    from likewise.kernels.documents import fingerprint_documents

    room = int(chunk.offsets[-1] - chunk.offsets[0]) // 2 + len(chunk) + 1
    words, values = np.empty(room, np.uint64), np.empty(room, np.uint64)
    places, offsets = np.empty(room, np.int64), np.empty(len(chunk) + 1, np.int64)
    recipe = settings.words.recipe()
    count = fingerprint_documents(chunk.data, chunk.offsets, recipe, settings.window, words, offsets, values, places)
    return SourceBatch(
        chunk, words[: offsets[-1]].copy(), offsets, values[:count].copy(), places[:count].astype(np.uint32)
    )


def make_block(first: int, batches: list[SourceBatch]) -> SourceBlock:
    """Join batches and sort their fingerprints. The list is emptied, which frees each batch once it is copied."""
    from likewise.kernels.passages import SourceIndex

    texts = Texts([batch.chunk for batch in batches])
    words = np.empty(sum(len(batch.words) for batch in batches), np.uint64)
    values = np.empty(sum(len(batch.values) for batch in batches), np.uint64)
    places = np.empty(len(values), np.uint32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    row = word = at = 0
    batches.reverse()
    while batches:
        batch = batches.pop()
        offsets[row + 1 : row + len(batch.offsets)] = batch.offsets[1:] + word
        words[word : word + len(batch.words)] = batch.words
        values[at : at + len(batch.values)] = batch.values
        places[at : at + len(batch.values)] = batch.places + np.uint32(word)
        row += len(batch.chunk)
        word += len(batch.words)
        at += len(batch.values)
    order = np.argsort(values, kind="stable")
    values = values[order]
    places = places[order]
    return SourceBlock(first, texts, SourceIndex(words, offsets, values, places))


def make_blocks(
    chunks: Iterable[TextChunk], settings: PassageSettings, limit: int, threads: int, tick: Callable[[int], Any]
) -> Iterator[SourceBlock]:
    """Yield the sources in blocks of at most `limit` bytes, or of a single batch where that one is larger."""
    batches: list[SourceBatch] = []
    first = cost = words = 0
    for batch in in_order(lambda chunk: make_source_batch(chunk, settings), chunks, threads):
        if batches and (cost + batch.cost > limit or words + len(batch.words) > MOST_WORDS):
            rows = sum(len(one.chunk) for one in batches)
            yield make_block(first, batches)
            first, cost, words, batches = first + rows, 0, 0, []
        batches.append(batch)
        cost += batch.cost
        words += len(batch.words)
        tick(len(batch.chunk))
    if batches:
        yield make_block(first, batches)
