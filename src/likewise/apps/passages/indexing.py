"""Sources to an index: their words, and the fingerprints that winnowing chooses, sorted; in blocks that fit in memory.

A word takes 8 bytes, a fingerprint 12 (about 2 / (window + 1) of them a word, 0.4 as the settings come), besides the
text itself: together some 3.2 bytes for each byte of English text. While it is sorted, a fingerprint takes 28.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.passages.settings import Settings
from likewise.base.arrays import Hashes, Ints, TextChunk, Texts
from likewise.base.parallel import in_order

if TYPE_CHECKING:
    from likewise.kernels.passages import SourceIndex

MOST_WORDS = 1 << 31
BYTES_A_WORD, BYTES_A_PRINT = 9, 30


@dataclass(frozen=True)
class Piece:
    """A batch of sources: text, words, and fingerprints with their places among these words."""

    chunk: TextChunk
    words: Hashes
    offsets: Ints
    values: Hashes
    places: NDArray[np.uint32]

    @property
    def cost(self) -> int:
        """The bytes that this piece takes in a block while the block is being sorted."""
        return (
            int(self.chunk.offsets[-1] - self.chunk.offsets[0])
            + BYTES_A_WORD * len(self.words)
            + BYTES_A_PRINT * len(self.values)
        )


@dataclass(frozen=True)
class Block:
    """Some of the sources, from number `first` on, ready to be searched."""

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
        """Yield (chunk, rows within it, where they stand in `rows`) for ascending rows of this block."""
        for chunk, places, where in self.texts.split(rows):
            yield chunk.load(), places, where


def make_piece(chunk: TextChunk, settings: Settings) -> Piece:
    """Split documents into words, and choose the fingerprints."""
    from likewise.kernels.winnowing import fingerprint_documents

    room = int(chunk.offsets[-1] - chunk.offsets[0]) // 2 + len(chunk) + 1
    words, values = np.empty(room, np.uint64), np.empty(room, np.uint64)
    places, offsets = np.empty(room, np.int64), np.empty(len(chunk) + 1, np.int64)
    recipe = settings.words.recipe()
    count = fingerprint_documents(chunk.data, chunk.offsets, recipe, settings.window, words, offsets, values, places)
    return Piece(chunk, words[: offsets[-1]].copy(), offsets, values[:count].copy(), places[:count].astype(np.uint32))


def make_block(first: int, pieces: list[Piece]) -> Block:
    """Join pieces and sort their fingerprints; the pieces are used up."""
    from likewise.kernels.passages import SourceIndex

    texts = Texts([piece.chunk for piece in pieces])
    words = np.empty(sum(len(piece.words) for piece in pieces), np.uint64)
    values = np.empty(sum(len(piece.values) for piece in pieces), np.uint64)
    places = np.empty(len(values), np.uint32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    row = word = at = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        offsets[row + 1 : row + len(piece.offsets)] = piece.offsets[1:] + word
        words[word : word + len(piece.words)] = piece.words
        values[at : at + len(piece.values)] = piece.values
        places[at : at + len(piece.values)] = piece.places + np.uint32(word)
        row += len(piece.chunk)
        word += len(piece.words)
        at += len(piece.values)
    order = np.argsort(values, kind="stable")
    values = values[order]
    places = places[order]
    return Block(first, texts, SourceIndex(words, offsets, values, places))


def blocks(
    chunks: Iterable[TextChunk], settings: Settings, limit: int, threads: int, tick: Callable[[int], Any]
) -> Iterator[Block]:
    """Yield the sources as blocks of at most `limit` bytes each, as far as whole batches allow."""
    pieces: list[Piece] = []
    first = cost = words = 0
    for piece in in_order(lambda chunk: make_piece(chunk, settings), chunks, threads):
        if pieces and (cost + piece.cost > limit or words + len(piece.words) > MOST_WORDS):
            rows = sum(len(one.chunk) for one in pieces)
            yield make_block(first, pieces)
            first, cost, words, pieces = first + rows, 0, 0, []
        pieces.append(piece)
        cost += piece.cost
        words += len(piece.words)
        tick(len(piece.chunk))
    if pieces:
        yield make_block(first, pieces)
