"""Segments of vectors: ids, chunks with the vectors, and the tables of its cells, which are made when it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes
from likewise.index.chunk import Arrays, ChunkData, make_vector_chunk
from likewise.index.item_ids import hashes_of
from likewise.index.segment import Entries, PlacedChunk, Thinning, chunk_data
from likewise.index.vector_cells import ONE_CELL, VectorRows, cell_arrays
from likewise.index.vector_scheme import VectorScheme
from likewise.search.vectors.spaces import Space


@dataclass(frozen=True)
class VectorSegment:
    """A segment in memory, or as views of the store; its fields are those of a segment of sets. width: the number of
    components of new vectors, of bits if these are packed."""

    scheme: VectorScheme
    threads: int
    rows: int
    id_hashes: Hashes
    id_rows: Entries
    dead: NDArray[np.uint8] | None = None
    chunks: list[ChunkData | PlacedChunk] = field(default_factory=list)
    width: int = 0

    shingle_entries = 0
    groups = None

    @property
    def units(self) -> int:
        """Every row has a vector of its own."""
        return self.rows

    @property
    def entries(self) -> int:
        """The number of vectors in the tables."""
        return self.rows

    @property
    def dtype(self) -> str:
        """The type of components, as the manifest has it."""
        kind = chunk_data(self.chunks[0]).main.dtype
        return "bits" if kind == np.uint64 else str(kind)

    @property
    def table(self) -> int:
        """The bytes of the largest table."""
        return sum(_code_bytes(one) for one in self.chunks)

    def dead_rows(self) -> NDArray[np.bool_]:
        """Return which rows were removed."""
        if self.dead is None:
            return np.zeros(self.rows, bool)
        return np.unpackbits(self.dead, count=self.rows, bitorder="little").astype(bool)

    def arrays(self) -> Arrays:
        """Return what is stored of the segment, apart from its chunks."""
        return {**self.plain_arrays(), **self.cells()}

    def plain_arrays(self) -> Arrays:
        """Return what is stored of a segment that will soon be merged: no cells."""
        found: Arrays = {"id_hashes": self.id_hashes, "id_rows": self.id_rows}
        if self.dead is not None:
            found["dead"] = self.dead
        return found

    def cells(self) -> Arrays:
        """Return the tables of the cells."""
        name = (self.scheme, *map(_name, self.chunks)) if self.rows > ONE_CELL else None
        if name is not None and name in _MADE:
            return _MADE[name]
        tables = [chunk_data(one).vectors for one in self.chunks if chunk_data(one).rows]
        scheme = self.scheme
        found = cell_arrays(VectorRows(scheme.measure, tables), scheme.recall, scheme.seed, self.threads)
        if name is not None:
            _MADE[name] = found
        return found

    def merged(self, other: VectorSegment) -> VectorSegment:
        """Return two segments as one, the items of this one first."""
        hashes = np.concatenate([self.id_hashes, other.id_hashes])
        order = np.argsort(hashes, kind="stable")
        dead = None
        if self.dead is not None or other.dead is not None:
            dead = np.packbits(np.concatenate([self.dead_rows(), other.dead_rows()]), bitorder="little")
        return VectorSegment(
            self.scheme,
            self.threads,
            self.rows + other.rows,
            hashes[order],
            np.concatenate([self.id_rows, other.id_rows + np.uint32(self.rows)])[order],
            dead,
            [*self.chunks, *other.chunks],
        )

    def compacted(self) -> tuple[VectorSegment, list[Thinning]]:
        """Return the segment without removed rows, and what becomes of its chunks."""
        live = ~self.dead_rows()
        kept = live[self.id_rows]
        plan: list[Thinning] = []
        row = 0
        for chunk in map(chunk_data, self.chunks):
            here = np.flatnonzero(live[row : row + chunk.rows])
            plan.append((chunk, here, here))
            row += chunk.rows
        rows = (np.cumsum(live) - 1)[self.id_rows[kept]].astype(np.uint32)
        small = VectorSegment(self.scheme, self.threads, int(live.sum()), self.id_hashes[kept], rows)
        return small, plan


_MADE: dict[tuple[Hashable, ...], Arrays] = {}
"""Tables that were made in a transaction, which may be begun anew, as when the map of LMDB must grow."""


@contextmanager
def forgetting() -> Iterator[None]:
    """Let go of the tables of a transaction when it is over."""
    try:
        yield
    finally:
        _MADE.clear()


def _name(chunk: ChunkData | PlacedChunk) -> Hashable:
    """Return what tells a chunk from all others: its name, or a digest of its vectors."""
    if isinstance(chunk, PlacedChunk):
        return chunk.entry.name
    return hashlib.blake2b(np.ascontiguousarray(chunk.main).data, digest_size=16).digest()


def _code_bytes(chunk: ChunkData | PlacedChunk) -> int:
    """Return the bytes of the codes of a chunk."""
    if isinstance(chunk, PlacedChunk):
        return chunk.entry.codes
    table = chunk.vectors
    return table.nbytes if table.dtype == np.uint64 else table.size


def segment_of_chunk(scheme: VectorScheme, chunk: ChunkData, threads: int) -> VectorSegment:
    """Return the segment of a chunk."""
    hashes = hashes_of(chunk.ids(np.arange(chunk.rows)))
    order = np.argsort(hashes, kind="stable")
    return VectorSegment(scheme, threads, chunk.rows, hashes[order], order.astype(np.uint32), None, [chunk])


def vector_segment(scheme: VectorScheme, space: Space, ids: Any, threads: int) -> VectorSegment:
    """Return the segment of new vectors."""
    chunk = make_vector_chunk(np.ascontiguousarray(space.table), ids)
    return replace(segment_of_chunk(scheme, chunk, threads), width=space.dimensions)
