"""Items of an index among documents: they travel as text, and what turns texts into sets tells them apart."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, concatenate
from likewise.base.copies import chunk_digests
from likewise.jobs.reference_items import SimilarItems
from likewise.kernels.documents import Recipe
from likewise.search.band_keys import HeldKeys
from likewise.search.items import TextItems
from likewise.search.sketch import SketchPlan, key_sets
from likewise.shingle import Shingler

WORDS = 4
"""Words before the set of an item: the fingerprints of its shingles and of its document."""


class KnownSets:
    """Items of an index as texts: a mark with which no document begins, then fingerprints and the set.

    states: of the indexes, by which the mark is one that nobody has written into a document.
    """

    def __init__(self, states: list[str]) -> None:
        self.mark = f"\x02likewise:{blake2b(' '.join(states).encode(), digest_size=16).hexdigest()}:"
        self._bytes = np.frombuffer(self.mark.encode(), np.uint8)

    def texts(self, some: SimilarItems) -> Any:
        """Return items as texts."""
        heads, values = np.concatenate([some.units, some.digests], axis=1), some.sets.values.astype(np.uint64)
        bounds = zip(heads, pairwise(some.sets.offsets.tolist()), strict=True)
        parts = (b64encode(head.tobytes() + values[start:stop].tobytes()) for head, (start, stop) in bounds)
        return pa.array([self.mark + part.decode() for part in parts], pa.string())

    def among(self, chunk: TextChunk, rows: Ints) -> NDArray[np.bool_]:
        """Tell which of these texts are items."""
        starts, mark = chunk.offsets[rows], self._bytes
        found: NDArray[np.bool_] = chunk.offsets[rows + 1] - starts >= len(mark)
        for part in (slice(0, 1), slice(1, None)):  # few documents begin with the first byte
            places = starts[found][:, None] + np.arange(len(mark))[part]
            found[found] = (chunk.data[places] == mark[part]).all(axis=1)
        return found

    def opened(self, chunk: TextChunk, rows: Ints) -> tuple[Hashes, Hashes, Sets]:
        """Return the fingerprints of items, those of their shingles and of their documents, and their sets."""
        bounds = zip((chunk.offsets[rows] + len(self._bytes)).tolist(), chunk.offsets[rows + 1].tolist(), strict=True)
        parts = [np.frombuffer(b64decode(chunk.data[start:stop].tobytes()), np.uint64) for start, stop in bounds]
        heads = np.array([part[:WORDS] for part in parts], np.uint64).reshape(-1, WORDS)
        values = np.concatenate([np.zeros(0, np.uint64), *(part[WORDS:] for part in parts)])
        offsets = np.cumsum([0, *(len(part) - WORDS for part in parts)]).astype(np.int64)
        return heads[:, :2], heads[:, 2:], Sets(values, offsets)


@dataclass(frozen=True)
class MixedShingler(Shingler):
    """A shingler of documents some of which are items of an index: the sets of these are known."""

    inner: Shingler | None = None
    known: KnownSets | None = None

    @classmethod
    def of(cls, inner: Shingler, known: KnownSets) -> MixedShingler:
        """Return a shingler that does what another one does with all other documents."""
        return cls(inner.k, inner.casefold, inner.normalize, inner.bits, inner.bag, inner, known)

    def __post_init__(self) -> None:
        both = self._both[0], replace(self._both[0], bag=self.bag)
        for name, value in (("inner", both[1]), ("name", both[0].name), ("by_sets", both[0].by_sets)):
            object.__setattr__(self, name, value)

    @property
    def known_sets(self) -> KnownSets:
        """What makes texts of items."""
        return self._both[1]

    @property
    def _both(self) -> tuple[Shingler, KnownSets]:
        assert self.inner is not None
        assert self.known is not None
        return self.inner, self.known

    def members(self, text: str) -> list[str]:
        """Return what the set of one document has, as text; that of an item of an index is not known."""
        inner, known = self._both
        return [] if text.startswith(known.mark) else inner.members(text)

    def recipe(self) -> Recipe:
        """Return the parameters of the kernels."""
        return self._both[0].recipe()

    def recipe_for(self, chunk: TextChunk, rows: Ints) -> Recipe:
        """Return the parameters of the kernels for these rows of a prepared chunk."""
        return self._both[0].recipe_for(chunk, rows)

    def prepare(self, chunk: TextChunk) -> TextChunk:
        """Return a chunk in the requested normal form."""
        return self._both[0].prepare(chunk)

    def chunk_sets(self, chunk: TextChunk, rows: Ints, common: Hashes | None = None) -> Sets:
        """Return the sets of these rows of a chunk; those of items are as the index has them."""
        inner, known = self._both
        mine = known.among(chunk, rows)
        if not mine.any():
            return inner.chunk_sets(chunk, rows, common)
        parts = [known.opened(chunk, rows[mine])[2]]
        if not mine.all():
            parts.append(inner.chunk_sets(chunk, rows[~mine], common))
        return concatenate(parts).take(np.argsort(np.argsort(~mine, kind="stable"), kind="stable"))

    def put_known(self, items: TextItems, rows: Ints, plan: SketchPlan, keys: HeldKeys, units: Hashes) -> None:
        """Replace what was made of the texts of items: their band keys, and the fingerprints of their sets."""
        _, known = self._both
        for stored, local, place in items.texts.split(rows):
            chunk = stored.load()
            mine = np.flatnonzero(known.among(chunk, local))
            if len(mine):
                fingerprints, _, sets = known.opened(chunk, local[mine])
                own = HeldKeys(np.empty((len(mine), plan.banding.b), np.uint32))
                key_sets(sets, SketchPlan(plan.minhash, plan.banding, own))
                keys.matrix[place][mine] = own.matrix
                units[place][mine] = fingerprints

    def digests(self, chunk: TextChunk) -> Hashes:
        """Return fingerprints of documents; of items those that the index has told."""
        found, rows = chunk_digests(chunk, np.arange(len(chunk))), np.arange(len(chunk))
        mine = self._both[1].among(chunk, rows)
        found[mine] = self._both[1].opened(chunk, rows[mine])[1]
        return found
