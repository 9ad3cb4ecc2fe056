"""What is compared: documents with a shingler, or the user's own sets, behind one face for the pipeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Hashes, Ints, Sets, TextChunk, Texts
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.identical import set_digests, text_digests
from likewise.parallel import in_order
from likewise.shingle import Shingler, concatenate
from likewise.sketch import Keys, key_sets, key_texts

Tick = Callable[[int], None]


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
        """Return a 128-bit fingerprint of every item as it stands."""

    @abstractmethod
    def keys(self, rows: Ints, minhash: MinHash, banding: Banding, threads: int, tick: Tick) -> tuple[Keys, Hashes]:
        """Return the band keys of these items, and the fingerprints of what is compared (0, 0 if that is empty)."""

    @abstractmethod
    def sets(self, rows: Ints, threads: int) -> Sets:
        """Return the sets of these items; `rows` ascend."""


class TextItems(Items):
    """Documents and the shingler that makes sets of them."""

    def __init__(self, texts: Texts, shingler: Shingler) -> None:
        self.texts = texts
        self.shingler = shingler

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> Ints:
        """The number of characters of every document."""
        parts = [character_counts(chunk) for chunk in self.texts.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def digests(self, threads: int) -> Hashes:
        """Return a 128-bit fingerprint of the bytes of every document."""
        return text_digests(self.texts, threads)

    def keys(self, rows: Ints, minhash: MinHash, banding: Banding, threads: int, tick: Tick) -> tuple[Keys, Hashes]:
        """Return the band keys of these documents, and the fingerprints of their units."""
        recipe, prepare = self.shingler.recipe(), self.shingler.prepare
        return key_texts(self.texts, rows, recipe, prepare, minhash, banding, threads, tick)

    def sets(self, rows: Ints, threads: int) -> Sets:
        """Shingle these documents."""

        def work(task: tuple[TextChunk, Ints, slice]) -> Sets:
            return self.shingler.chunk_sets(task[0], task[1])

        return concatenate(list(in_order(work, self.texts.split(rows), threads)))


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

    def keys(self, rows: Ints, minhash: MinHash, banding: Banding, threads: int, tick: Tick) -> tuple[Keys, Hashes]:
        """Return the band keys of these sets, and their fingerprints."""
        chosen = self.all if len(rows) == len(self.all) else self.all.take(rows)
        return key_sets(chosen, minhash, banding, threads, tick), set_digests(chosen)

    def sets(self, rows: Ints, threads: int) -> Sets:
        """Return these sets."""
        return self.all.take(rows)


def character_counts(chunk: TextChunk) -> NDArray[np.int64]:
    """Count the code points of every document: the bytes that do not continue one."""
    if len(chunk.data) == 0:
        return np.zeros(len(chunk), np.int64)
    starts = np.concatenate([[0], np.cumsum((chunk.data & 0xC0) != 0x80)])
    counts: Ints = starts[chunk.offsets[1:]] - starts[chunk.offsets[:-1]]
    return counts
