"""What is compared: documents with a shingler, or the user's own sets, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Chunk, Hashes, Ints, Sets, TextChunk, Texts, concatenate
from likewise.base.copies import set_digests, text_digests
from likewise.base.parallel import in_order
from likewise.kernels.hashtable import sets_without
from likewise.search.recall.sample import probe_all
from likewise.search.sketch import SketchPlan, key_sets, key_texts
from likewise.shingle import Shingler

SET_BATCH = 100_000
"""Sets that `SetItems` yields at a time."""
BYTES_A_BYTE = {"words": 2, "chars": 8, "tokens": 4, "stopwords": 2, "urls": 2}
"""Upper estimate of the bytes of a set for each byte of text, by shingler: eight bytes per shingle."""


class Items(ABC):
    """A numbered collection that can be fingerprinted, sketched, and turned into sets."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def lengths(self) -> Ints:
        """The length of every item: characters of a document, elements of a set."""

    @abstractmethod
    def digests(self, threads: int) -> Hashes:
        """Return a 128-bit fingerprint of every item as it was given."""

    @abstractmethod
    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Write the band keys of these items; return the fingerprints of their sets (0, 0 if empty)."""

    @abstractmethod
    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Yield the sets of these items, some at a time, with their place in `rows`, which ascend."""

    @abstractmethod
    def set_bytes(self, rows: Ints) -> Ints:
        """Return an estimate of the memory of each of these items' sets, in bytes."""

    @abstractmethod
    def ignoring(self, common: Hashes) -> Items:
        """Return the same items without the elements of this hash table (see kernels/hashtable.py)."""

    def sets(self, rows: Ints, threads: int) -> Sets:
        """Return the sets of these items; `rows` ascend."""
        return concatenate([sets for _, sets in self.set_batches(rows, threads)])


class TextItems(Items):
    """Documents and the shingler that makes sets of them; `sizes` are their lengths in bytes."""

    def __init__(
        self, texts: Texts, shingler: Shingler, sizes: Ints | None = None, common: Hashes | None = None
    ) -> None:
        self.texts = texts
        self.shingler = shingler
        self.common = common
        if sizes is None:
            parts = [np.diff(chunk.load().offsets) for chunk in texts.chunks]
            sizes = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> Ints:
        """The number of characters of every document."""
        parts = [character_counts(chunk.load()) for chunk in self.texts.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def digests(self, threads: int) -> Hashes:
        """Return a 128-bit fingerprint of the bytes of every document."""
        return text_digests(self.texts, threads)

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Write the band keys of these documents; return the fingerprints of their sets."""
        if self.shingler.by_sets:
            return self._keys_by_sets(rows, plan)
        return key_texts(self.texts, rows, self.shingler, self.common, plan)

    def _keys_by_sets(self, rows: Ints, plan: SketchPlan) -> Hashes:
        digests = np.empty((len(rows), 2), np.uint64)
        for place, sets in self.set_batches(rows, plan.threads):
            part = plan.shifted(place.start, len(sets))
            key_sets(sets, part)
            if part.probe:
                probe_all(sets, part.probe, plan.threads)
            digests[place] = set_digests(sets)
        return digests

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Shingle these documents, chunk by chunk."""

        def work(task: tuple[Chunk, Ints, slice]) -> tuple[slice, Sets]:
            return task[2], self.shingler.chunk_sets(task[0].load(), task[1], self.common)

        return in_order(work, self.texts.split(rows), threads)

    def set_bytes(self, rows: Ints) -> Ints:
        """Eight bytes per shingle; a word with the blank before it has four bytes or more, as a rule."""
        return self.sizes[rows] * BYTES_A_BYTE[self.shingler.name] + 64

    def ignoring(self, common: Hashes) -> TextItems:
        """Return the same documents without these shingles."""
        return TextItems(self.texts, self.shingler, self.sizes, common)


class SetItems(Items):
    """The user's own sets."""

    def __init__(self, sets: Sets) -> None:
        self.all = sets

    def __len__(self) -> int:
        return len(self.all)

    @property
    def lengths(self) -> Ints:
        """The number of elements of every set."""
        return self.all.sizes

    def digests(self, threads: int) -> Hashes:
        """Return a 128-bit fingerprint of every set."""
        return set_digests(self.all)

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Write the band keys of these sets; return their fingerprints."""
        chosen = self.all if len(rows) == len(self.all) else self.all.take(rows)
        key_sets(chosen, plan)
        if plan.probe:
            probe_all(chosen, plan.probe, plan.threads)
        return set_digests(chosen)

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Take these sets."""
        for start in range(0, len(rows), SET_BATCH):
            part = slice(start, min(start + SET_BATCH, len(rows)))
            yield part, self.all.take(rows[part])

    def set_bytes(self, rows: Ints) -> Ints:
        """Eight bytes per element."""
        return self.all.sizes[rows] * 8 + 64

    def ignoring(self, common: Hashes) -> SetItems:
        """Return the same sets without these elements; a set that has no others is left unchanged."""
        values, offsets = np.empty(len(self.all.values), np.uint64), np.empty(len(self.all.offsets), np.int64)
        written = sets_without(self.all.values.astype(np.uint64), self.all.offsets, common, values, offsets)
        return SetItems(Sets(values[:written].copy(), offsets))


def character_counts(chunk: TextChunk) -> NDArray[np.int64]:
    """Count the code points of every document: its bytes that are not continuation bytes."""
    if chunk.data.max(initial=0) < 0x80:
        return np.diff(chunk.offsets)
    starts = np.concatenate([[0], np.cumsum((chunk.data & 0xC0) != 0x80)])
    counts: Ints = starts[chunk.offsets[1:]] - starts[chunk.offsets[:-1]]
    return counts
