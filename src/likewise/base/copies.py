"""Exact copies: 128-bit digests of items, and the groups of rows with equal digests.

Two different items share a digest with probability 2**-128. Every search first collapses copies to one representative,
so a million copies cost as much as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likewise.base.arrays import Chunk, Hashes, Ints, Sets, TextChunk, Texts
from likewise.base.parallel import in_order
from likewise.kernels.hashing import digest_samples, digest_strings
from likewise.kernels.pairs import label_equal
from likewise.kernels.sets import digest_sets
from likewise.kernels.sorting import radix_sort32


def text_digests(texts: Texts, threads: int) -> Hashes:
    """Return 128-bit digests of all documents: equal documents have equal digests, different ones different ones.

    Length and a few bytes are hashed first, and the whole document only where these agree with those of another.
    """
    if texts.digests is not None:
        return texts.digests()
    samples = texts.samples
    if samples is None:
        samples = _concatenate(list(in_order(lambda chunk: chunk_samples(chunk.load()), texts.chunks, threads)), (0,))
    order, short = radix_sort32(samples.astype(np.uint32))
    same = short[1:] == short[:-1]
    suspect = np.zeros(len(samples), bool)
    suspect[order[1:][same]] = True
    suspect[order[:-1][same]] = True
    digests = np.stack([samples, ~samples], axis=1)

    def digest(part: tuple[Chunk, slice]) -> None:
        stored, place = part
        rows = np.flatnonzero(suspect[place])
        if len(rows):
            chunk = stored.load()
            digest_strings(chunk.eights, chunk.data, chunk.offsets, rows, digests[place])

    places = [slice(int(low), int(high)) for low, high in pairwise(texts.starts)]
    for _ in in_order(digest, zip(texts.chunks, places, strict=True), threads):
        pass
    return digests


def chunk_samples(chunk: TextChunk) -> Hashes:
    """Hash the length and a few bytes of every document of a chunk."""
    out = np.empty(len(chunk), np.uint64)
    digest_samples(chunk.data, chunk.offsets, out)
    return out


def chunk_digests(chunk: TextChunk, rows: Ints | None = None) -> Hashes:
    """Return 128-bit digests of these documents of a chunk, or of all, which do not depend on any other document."""
    out = np.empty((len(chunk), 2), np.uint64)
    digest_strings(chunk.eights, chunk.data, chunk.offsets, np.arange(len(chunk)) if rows is None else rows, out)
    return out if rows is None else out[rows]


def _concatenate(parts: list[Hashes], shape: tuple[int, ...]) -> Hashes:
    return np.concatenate(parts) if parts else np.zeros(shape, np.uint64)


def set_digests(sets: Sets) -> Hashes:
    """Return 128-bit digests of all sets, whatever the order of their elements; an empty set gets 0, 0."""
    out = np.empty((len(sets), 2), np.uint64)
    digest_sets(sets.values, sets.offsets, out)
    out[sets.sizes == 0] = 0
    return out


@dataclass(frozen=True)
class Groups:
    """Rows that are copies of each other: group g has the rows members[offsets[g]:offsets[g + 1]], ascending.

    Groups are numbered in the order of their first rows; `of` is the group of every row.
    """

    of: Ints
    members: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def first(self) -> Ints:
        """The first row of every group."""
        return self.members[self.offsets[:-1]]

    @property
    def sizes(self) -> Ints:
        """The number of copies in every group."""
        return np.diff(self.offsets)

    @classmethod
    def by_digest(cls, digests: Hashes) -> Groups:
        """Group the rows with equal 128-bit digests."""
        return cls.by_label(labels(digests))

    @classmethod
    def by_label(cls, of: Ints) -> Groups:
        """Group rows by the number of their group; groups must be numbered in the order of their first rows."""
        counts = np.bincount(of) if len(of) else np.zeros(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(of, np.argsort(of, kind="stable"), offsets)


def labels(digests: Hashes) -> Ints:
    """Return the group of every row, by equal digests; groups are numbered in the order of their first rows.

    >>> labels(np.array([[7, 1], [9, 1], [7, 1], [7, 2]], np.uint64)).tolist()
    [0, 1, 0, 2]
    """
    first = np.empty(len(digests), np.int64)
    order, _ = radix_sort32(digests[:, 0].astype(np.uint32))
    label_equal(digests, order, first)
    new = first == np.arange(len(first))
    return (np.cumsum(new) - 1)[first]
