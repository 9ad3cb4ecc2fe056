"""What counts as a passage, and documents made ready to be searched for them and measured.

The index of the sources has their words and the fingerprints chosen by winnowing, sorted, in blocks that fit in memory.
Besides the text itself, a word takes 8 bytes, a seed (of every fourth word by default) 4 and a fingerprint 12;
winnowing keeps about 2 / (window + 1) fingerprints per word, 0.4 by default. Together this is about 3.4 bytes per byte
of English text. During sorting, a fingerprint takes 24 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, TextChunk, Texts, concatenate
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.kernels.coverage import MEMBERS, count_shared_elements, members_of
from likewise.kernels.documents import fingerprint_documents
from likewise.kernels.passages import PassageRules, SourceIndex
from likewise.kernels.sorting import hash_argsort
from likewise.kernels.word_runs import seeds_of
from likewise.shingle import Shingler, Words, parse_shingler

OWNER = "passages"
SHINGLE = "chars:7,whitespace=remove,casefold=true"
"""Shingles for containment: blanks, line breaks and capitals change when text is pasted, so they are ignored. The
short answers of benchmarks/passages.py are classified with accuracy 0.977."""
LENGTH = 8
"""Shortest shared run, in words, that is always found. Shorter runs are often stock phrases."""
GAP = 5
"""Most words between two runs of one passage: a few replaced words do not split it, an unrelated sentence does."""
COMMON = 1000
"""Most sources examined per fingerprint. It bounds the work for text that all sources share, such as a licence."""
MANY = 10
"""Text in more sources than this is listed once: what is in so many places is a template or a common source."""
MOST_WORDS_A_PRINT = 6
"""Most words in a fingerprint. Longer ones are rarer, but a passage with changed words then shares fewer of them."""
LEAST_RUN = 3
"""Shortest run of equal words that extends a passage. Shorter runs occur by chance in any two texts."""
MOST_WORDS = 1 << 31
"""Most words in a block: the numbers of its fingerprints must fit in 32-bit integers."""
BYTES_A_WORD, BYTES_A_PRINT = 9, 30
"""Memory per word and per fingerprint while a block is sorted, rounded up."""
PORTION = 1 << 20
"""Bytes of sources whose shingles are made at a time; it bounds memory, and the time that cannot be interrupted."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PassageSettings:
    """The parameters of a search for passages, validated; `passages` says what each of them means.

    >>> PassageSettings().k, PassageSettings().window, PassageSettings(length=20).k, PassageSettings(length=20).window
    (5, 4, 6, 15)
    """

    length: int = LENGTH
    gap: int = GAP
    shingle: str | Shingler = SHINGLE
    common: int = COMMON
    every: bool = False
    many: int = MANY
    owner: str = OWNER

    def __post_init__(self) -> None:
        checks.whole(self.owner, "length", self.length, 1, 1000)
        checks.whole(self.owner, "gap", self.gap, 0, 1000)
        checks.whole(self.owner, "common", self.common, 1, 2**31 - 2)
        checks.whole(self.owner, "many", self.many, 1, 2**31 - 2)
        checks.flag(self.owner, "every", self.every)
        parse_shingler(self.shingle, owner=self.owner)

    @property
    def k(self) -> int:
        """Words in a fingerprint."""
        return min(MOST_WORDS_A_PRINT, self.length // 2 + 1)

    @property
    def window(self) -> int:
        """One of this many consecutive fingerprints is kept; any `length` words contain a whole window."""
        return self.length - self.k + 1

    @property
    def least(self) -> int:
        """The shortest run of equal words that counts as copied when the rest of a passage is near."""
        return min(LEAST_RUN, self.length)

    @property
    def words(self) -> Words:
        """The shingler that turns text into words, and words into fingerprints."""
        return Words(self.k)

    @property
    def shingler(self) -> Shingler:
        """The shingler by which two documents are compared as a whole."""
        return parse_shingler(self.shingle, owner="passages")

    def rules(self) -> PassageRules:
        """Return the settings in the form the kernels use."""
        return PassageRules(self.k, self.window, self.length, self.gap, self.least, self.common, self.every)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        asked = {name: getattr(self, name) for name in ("length", "gap", "common", "every", "many")}
        return {**asked, "k": self.k, "window": self.window, "least": self.least, **self.shingler.to_dict()}


@dataclass(frozen=True)
class SourceBatch:
    """A batch of sources: text, words, and fingerprints with the rows of their sources."""

    chunk: TextChunk
    words: Hashes
    offsets: Ints
    values: Hashes
    owners: NDArray[np.uint32]

    @property
    def cost(self) -> int:
        """The bytes this batch takes in a block while the block is sorted."""
        text = int(self.chunk.offsets[-1] - self.chunk.offsets[0])
        return text + BYTES_A_WORD * len(self.words) + BYTES_A_PRINT * len(self.values)


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

    def portions(self, right: Ints) -> Iterator[slice]:
        """Cut ascending sources into portions with about PORTION bytes of text, or a single larger source."""
        new = np.concatenate([[True], right[1:] != right[:-1]])[: len(right)]
        bytes_so_far = np.cumsum(self.sizes[right] * new)
        cuts = np.flatnonzero((np.diff(bytes_so_far // PORTION) > 0) & new[1:]) + 1
        edges = [0, *cuts.tolist(), len(right)]
        return (slice(low, high) for low, high in pairwise(edges) if high > low)


def make_source_batch(chunk: TextChunk, settings: PassageSettings) -> SourceBatch:
    """Split documents into words and choose their fingerprints."""
    room = int(chunk.offsets[-1] - chunk.offsets[0]) // 2 + len(chunk) + 1
    words, values = np.empty(room, np.uint64), np.empty(room, np.uint64)
    owners, offsets = np.empty(room, np.uint32), np.empty(len(chunk) + 1, np.int64)
    recipe = settings.words.recipe()
    count = fingerprint_documents(chunk.data, chunk.offsets, recipe, settings.window, words, offsets, values, owners)
    words, values = words[: offsets[-1]].copy(), values[:count].copy()
    return SourceBatch(chunk, words, offsets, values, owners[:count].copy())


def make_block(first: int, batches: list[SourceBatch], settings: PassageSettings) -> SourceBlock:
    """Join batches and sort their fingerprints. The list is emptied, which frees each batch once it is copied."""
    texts = Texts([batch.chunk for batch in batches])
    words = np.empty(sum(len(batch.words) for batch in batches), np.uint64)
    values = np.empty(sum(len(batch.values) for batch in batches), np.uint64)
    owners = np.empty(len(values), np.uint32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    row = word = at = 0
    batches.reverse()
    while batches:
        batch = batches.pop()
        offsets[row + 1 : row + len(batch.offsets)] = batch.offsets[1:] + word
        words[word : word + len(batch.words)] = batch.words
        values[at : at + len(batch.values)] = batch.values
        owners[at : at + len(batch.values)] = batch.owners + np.uint32(row)
        row += len(batch.chunk)
        word += len(batch.words)
        at += len(batch.values)
    order, values = hash_argsort(values)
    return SourceBlock(
        first, texts, SourceIndex(words, offsets, values, owners[order], seeds_of(words, settings.length))
    )


def make_blocks(
    chunks: Iterable[TextChunk], settings: PassageSettings, limit: int, threads: int, tick: Tick
) -> Iterator[SourceBlock]:
    """Yield the sources in blocks of at most `limit` bytes, or of a single batch where that one is larger."""
    batches: list[SourceBatch] = []
    first = cost = words = 0
    for batch in in_order(lambda chunk: make_source_batch(chunk, settings), chunks, threads):
        if batches and (cost + batch.cost > limit or words + len(batch.words) > MOST_WORDS):
            rows = sum(len(one.chunk) for one in batches)
            yield make_block(first, batches, settings)
            first, cost, words, batches = first + rows, 0, 0, []
        batches.append(batch)
        cost += batch.cost
        words += len(batch.words)
        tick(len(batch.chunk))
    if batches:
        yield make_block(first, batches, settings)


@dataclass(frozen=True)
class SuspectShingles:
    """The sets of shingles of some suspects: their sizes, and tables of the shingles of every MEMBERS of them."""

    settings: PassageSettings
    sizes: Ints
    members: list[Hashes]

    @classmethod
    def of(cls, chunk: TextChunk, rows: Ints, settings: PassageSettings) -> SuspectShingles:
        """Make the sets of these documents."""
        sets = settings.shingler.chunk_sets(chunk, rows)
        values = sets.values.astype(np.uint64, copy=False)
        firsts = range(0, len(rows), MEMBERS)
        return cls(settings, sets.sizes, [members_of(values, sets.offsets[i : i + MEMBERS + 1]) for i in firsts])

    def measure(self, block: SourceBlock, left: Ints, right: Ints) -> Floats:
        """Return the containment of suspect in source, of source in suspect, and the Jaccard similarity.

        left: numbers of these suspects; right: sources of the block, ascending. A document without shingles is
        contained in nothing and contains nothing.
        """
        sources, places = np.unique(right, return_inverse=True)
        shingler = self.settings.shingler
        sets = concatenate([shingler.chunk_sets(part, rows) for part, rows, _ in block.rows(sources)])
        shared = np.zeros(len(left), np.int64)
        values = sets.values.astype(np.uint64, copy=False)
        groups = left // MEMBERS
        for group in np.unique(groups).tolist():
            some = np.flatnonzero(groups == group)
            counts = np.empty(len(some), np.int64)
            count_shared_elements(self.members[group], values, sets.offsets, left[some] % MEMBERS, places[some], counts)
            shared[some] = counts
        a, b = self.sizes[left], sets.sizes[places]
        return shared[:, None] / np.maximum(np.column_stack([a, b, a + b - shared]), 1)
