"""Segments: the items that were added together, or merged: their ids and chunks, and tables of their sets or vectors.

A table of sets has for every band the sorted keys of the different sets and, beside them, which set it is. Items with
the same set share it, and have one entry; where sets of two segments turn out to be the same when they are merged, the
later one stays in its chunk without an entry. The tables of vectors, their cells, are made when a segment is stored.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.tokens import hash_column
from likewise.index.chunk import Arrays, ChunkData, joined_chunks
from likewise.index.store import ChunkEntry
from likewise.kernels.lookup import GONE, fill_starts, merge_entries, put_rows, shingle_keys
from likewise.kernels.pairs import label_equal
from likewise.kernels.sorting import radix_sort32
from likewise.search.vectors.cell_tables import ONE_CELL, VectorRows, cell_arrays

Entries = NDArray[np.uint32]
Table = tuple[Entries, Entries]
"""Keys, sorted in each row, and beside them the sets that have them."""
Flags = NDArray[np.bool_]
A_SLOT = 4
"""Entries, at most, of a slot of the directory of a table, on average."""
MOST_BITS = 26
"""The largest directory has 2**26 slots, 256 MiB."""
RATIO = 4
"""A segment is merged with the one before it unless that is more than this many times as large: the number of segments
grows with the logarithm of the number of items, and an item is moved as many times."""
MOST_ROWS = 1 << 24
"""Items of a segment, at most: a value of LMDB has less than 4 GiB."""
MOST_TABLE = 1 << 31
"""Bytes of the keys of a table, at most."""
CHUNK_BYTES = 1 << 26
"""Chunks are joined up to this size; a larger one stays as it is when segments are merged."""
NO_ENTRIES = np.zeros((1, 0), np.uint32)


@dataclass(frozen=True)
class PlacedChunk:
    """A chunk that stays where it is: what the manifest says of it, and its data if it is needed."""

    entry: ChunkEntry
    data: ChunkData

    @property
    def size(self) -> int:
        """The bytes of all arrays."""
        return self.entry.bytes

    @property
    def codes(self) -> int:
        """The bytes of the codes of its vectors."""
        return self.entry.codes


AnyChunk = ChunkData | PlacedChunk
Thinning = tuple[ChunkData, Ints, Ints]
"""A chunk, and which of its rows and of its sets are kept."""
VectorShape = tuple[int, str]
"""The number of components, of bits if these are packed, and their type, as the manifest has it."""
S = TypeVar("S", bound="Segment")


def chunk_data(chunk: AnyChunk) -> ChunkData:
    """Return the data of a chunk, wherever it is."""
    return chunk.data if isinstance(chunk, PlacedChunk) else chunk


@dataclass(frozen=True, kw_only=True)
class Segment(ABC):
    """A segment in memory, or as views of the store: what those of sets and of vectors have in common.

    id_hashes, id_rows: sorted by hash. dead: a bit for every row that was removed, or None.
    """

    rows: int
    id_hashes: Hashes
    id_rows: Entries
    dead: NDArray[np.uint8] | None = None
    chunks: list[AnyChunk] = field(default_factory=list)
    shape: VectorShape | None = None
    """Of new vectors."""

    @property
    @abstractmethod
    def table(self) -> int:
        """The bytes of the largest table."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """What its entry in the manifest says of its sets or vectors."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """Return what is stored of the segment, apart from its chunks."""

    def staged_arrays(self) -> Arrays:
        """Return what is stored of a segment that will soon be merged."""
        return self.arrays()

    @abstractmethod
    def merged(self: S, other: S) -> S:
        """Return two segments as one, the items of this one first."""

    @abstractmethod
    def compacted(self: S) -> tuple[S, list[Thinning]]:
        """Return the segment without removed rows and without sets that no row has, and what becomes of its chunks."""

    def dead_rows(self) -> Flags:
        """Return which rows were removed."""
        return unpacked(self.dead, self.rows)

    def _row_arrays(self) -> Arrays:
        """Return what is stored of all segments."""
        stored: Arrays = {"id_hashes": self.id_hashes, "id_rows": self.id_rows}
        return stored if self.dead is None else {**stored, "dead": self.dead}

    def _merged_rows(self, other: Segment) -> dict[str, Any]:
        """Return the fields that all segments have, of two as one."""
        hashes = np.concatenate([self.id_hashes, other.id_hashes])
        order = np.argsort(hashes, kind="stable")
        dead = None
        if self.dead is not None or other.dead is not None:
            dead = np.packbits(np.concatenate([self.dead_rows(), other.dead_rows()]), bitorder="little")
        rows = np.concatenate([self.id_rows, other.id_rows + np.uint32(self.rows)])[order]
        fields = {"rows": self.rows + other.rows, "id_hashes": hashes[order], "id_rows": rows}
        return {**fields, "dead": dead, "chunks": [*self.chunks, *other.chunks]}

    def _live_rows(self, live: Flags, used: Flags) -> tuple[dict[str, Any], list[Thinning]]:
        """Return these fields without removed rows, and what becomes of the chunks. used: sets that some row has."""
        kept = live[self.id_rows]
        rows = (np.cumsum(live) - 1)[self.id_rows[kept]].astype(np.uint32)
        plan: list[Thinning] = []
        row = unit = 0
        for chunk in map(chunk_data, self.chunks):
            here = np.flatnonzero(live[row : row + chunk.rows]), np.flatnonzero(used[unit : unit + chunk.units])
            plan.append((chunk, *here))
            row, unit = row + chunk.rows, unit + chunk.units
        return {"rows": int(live.sum()), "id_hashes": self.id_hashes[kept], "id_rows": rows}, plan


def unpacked(dead: NDArray[np.uint8] | None, rows: int) -> Flags:
    """Return which of so many rows were removed."""
    if dead is None:
        return np.zeros(rows, bool)
    return np.unpackbits(dead, count=rows, bitorder="little").astype(bool)


def new_rows(ids: Any, chunk: ChunkData) -> dict[str, Any]:
    """Return the fields that all segments have, of new items."""
    hashes = hash_column(ids)
    order = np.argsort(hashes, kind="stable")
    return {"rows": len(ids), "id_hashes": hashes[order], "id_rows": order.astype(np.uint32), "chunks": [chunk]}


@dataclass(frozen=True, kw_only=True)
class SetSegment(Segment):
    """A segment of documents or sets.

    bands: of every band, the sorted keys, and the sets. shingles: the same of all elements, one row. grouping: which
    rows have set u, members[groups[u]:groups[u + 1]]; None if every row has its own, in order. digests: of all sets.
    """

    units: int
    digests: Hashes
    bands: Table
    shingles: Table = field(default_factory=lambda: (NO_ENTRIES, NO_ENTRIES))
    grouping: tuple[Entries, Entries] | None = None

    @property
    def table(self) -> int:
        """The bytes of the largest table."""
        return max(self.bands[0].nbytes, self.shingles[0].nbytes)

    @property
    def counts(self) -> dict[str, Any]:
        """Different sets, entries of a band and of the table of shingles, and whether rows share sets."""
        entries, shingles = (int(keys.shape[1]) for keys, _ in (self.bands, self.shingles))
        return {"units": self.units, "entries": entries, "shingles": shingles, "grouped": self.grouping is not None}

    def arrays(self) -> Arrays:
        """Return the tables, which set every row has, and its id."""
        keys, sets = self.bands
        stored: Arrays = {"keys": keys, "sets": sets, "starts": directory(keys), "digests": self.digests}
        if self.shingles[0].size:
            keys, owners = self.shingles
            stored |= {"shingles": keys, "owners": owners, "shingle_starts": directory(keys)}
        if self.grouping is not None:
            stored |= dict(zip(("groups", "members"), self.grouping, strict=True))
        return {**stored, **self._row_arrays()}

    def merged(self, other: SetSegment) -> SetSegment:
        """Return two segments as one; a set of the other one that is here already has no entry of its own."""
        units, digests = self.units + other.units, np.concatenate([self.digests, other.digests])
        theirs = first_equal(digests)[self.units :]
        same = theirs < self.units
        mine = np.arange(self.units, dtype=np.uint32)
        new = np.where(same, GONE, np.arange(self.units, units)).astype(np.uint32)
        grouping = None
        if self.grouping is not None or other.grouping is not None or same.any():
            a, b = unit_of_rows(self.rows, self.grouping), unit_of_rows(other.rows, other.grouping)
            grouping = grouped(np.concatenate([a, theirs[b]]), units)
        bands = _merged_tables(self.bands, mine, other.bands, new)
        shingles, rows = _merged_tables(self.shingles, mine, other.shingles, new), self._merged_rows(other)
        return SetSegment(units=units, digests=digests, bands=bands, shingles=shingles, grouping=grouping, **rows)

    def compacted(self) -> tuple[SetSegment, list[Thinning]]:
        """Return the segment without removed rows and without sets that no row has, and what becomes of its chunks."""
        live, of = ~self.dead_rows(), unit_of_rows(self.rows, self.grouping)
        used = np.zeros(self.units, bool)
        used[of[live]] = True
        new = np.where(used, np.cumsum(used) - 1, GONE).astype(np.uint32)
        none = np.zeros((len(self.bands[0]), 0), np.uint32)
        bands = _merged_tables(self.bands, new, (none, none), new)
        shingles = _merged_tables(self.shingles, new, (NO_ENTRIES, NO_ENTRIES), new)
        units, remaining = int(used.sum()), new[of[live]].astype(np.int64)
        plain = units == len(remaining) and bool((remaining == np.arange(units)).all())
        grouping = None if plain else grouped(remaining, units)
        rows, plan = self._live_rows(live, used)
        tables: dict[str, Any] = {"bands": bands, "shingles": shingles, "grouping": grouping}
        return SetSegment(units=units, digests=self.digests[used], **tables, **rows), plan


def directory_bits(entries: int) -> int:
    """Return the binary logarithm of the number of slots of the directory of a band."""
    return min(MOST_BITS, max(1, (max(1, entries) // A_SLOT).bit_length()))


def directory(keys: Entries) -> Entries:
    """Return where the entries of each slot of each band begin."""
    bits = directory_bits(keys.shape[1])
    starts = np.empty((keys.shape[0], (1 << bits) + 1), np.uint32)
    fill_starts(keys, bits, starts)
    return starts


def shingle_table(sets: Sets) -> Table:
    """Return the keys of all elements, sorted, and the set of each."""
    keys = np.empty(len(sets.values), np.uint32)
    shingle_keys(sets.values, keys)
    order, ordered = radix_sort32(keys)
    owners = np.repeat(np.arange(len(sets), dtype=np.uint32), sets.sizes)[order]
    return ordered.reshape(1, -1), owners.reshape(1, -1)


def first_equal(digests: Hashes) -> Ints:
    """Return for every set the first with the same digest."""
    first = np.empty(len(digests), np.int64)
    order, _ = radix_sort32(digests[:, 0].astype(np.uint32))
    label_equal(np.ascontiguousarray(digests), order, first)
    return first


def grouped(of: Ints, units: int) -> tuple[Entries, Entries]:
    """Return the rows of every set, ascending, and where they begin. of: the set of every row."""
    ends = np.zeros(units + 1, np.int64)
    np.cumsum(np.bincount(of, minlength=units), out=ends[1:])
    members = np.empty(len(of), np.uint32)
    put_rows(of, ends[:-1].copy(), members)
    return ends.astype(np.uint32), members


def unit_of_rows(rows: int, grouping: tuple[Entries, Entries] | None) -> Ints:
    """Return the set of every row: what `grouped` was given."""
    if grouping is None:
        return np.arange(rows)
    groups, members = grouping
    of = np.empty(rows, np.int64)
    of[members] = np.repeat(np.arange(len(groups) - 1), groups[1:] - groups[:-1])
    return of


def _merged_tables(a: Table, new_a: Entries, b: Table, new_b: Entries) -> Table:
    """Merge the entries of two tables; new_a, new_b: how their sets are renumbered."""
    bands, room = a[0].shape[0], a[0].shape[1] + b[0].shape[1]
    keys, sets = np.empty((bands, room), np.uint32), np.empty((bands, room), np.uint32)
    count = 0
    for band in range(bands):
        count = merge_entries(a[0][band], a[1][band], new_a, b[0][band], b[1][band], new_b, keys[band], sets[band])
    if count == room:
        return keys, sets
    return np.ascontiguousarray(keys[:, :count]), np.ascontiguousarray(sets[:, :count])


@dataclass(frozen=True, kw_only=True)
class VectorSegment(Segment):
    """A segment of vectors. settings: the measure, the recall and the seed, which make its cells."""

    settings: tuple[str, float, int]
    threads: int

    @property
    def table(self) -> int:
        """The bytes of the codes of all vectors."""
        return sum(chunk.codes for chunk in self.chunks)

    @property
    def counts(self) -> dict[str, Any]:
        """Every row has a vector of its own."""
        return {"units": self.rows, "entries": self.rows, "shingles": 0, "grouped": False}

    def arrays(self) -> Arrays:
        """Return the ids of the rows, and the tables of the cells."""
        return {**self._row_arrays(), **self._cells()}

    def staged_arrays(self) -> Arrays:
        """Return the ids alone."""
        return self._row_arrays()

    def _cells(self) -> Arrays:
        name = (self.settings, *map(_name, self.chunks)) if self.rows > ONE_CELL else None
        if name is not None and name in _MADE:
            return _MADE[name]
        tables = [chunk.vectors for chunk in map(chunk_data, self.chunks) if chunk.rows]
        measure, recall, seed = self.settings
        made = cell_arrays(VectorRows(measure, tables), recall, seed, self.threads)
        if name is not None:
            _MADE[name] = made
        return made

    def merged(self, other: VectorSegment) -> VectorSegment:
        """Return two segments as one, the items of this one first."""
        return VectorSegment(settings=self.settings, threads=self.threads, **self._merged_rows(other))

    def compacted(self) -> tuple[VectorSegment, list[Thinning]]:
        """Return the segment without removed rows, and what becomes of its chunks."""
        live = ~self.dead_rows()
        rows, plan = self._live_rows(live, live)
        return VectorSegment(settings=self.settings, threads=self.threads, **rows), plan


_MADE: dict[tuple[Hashable, ...], Arrays] = {}
"""Cells that were made in a transaction, which may be begun anew, as when the map of LMDB must grow."""


@contextmanager
def forgetting() -> Iterator[None]:
    """Let go of the cells of a transaction when it is over."""
    try:
        yield
    finally:
        _MADE.clear()


def _name(chunk: AnyChunk) -> Hashable:
    """Return what tells a chunk from all others: its name, or a digest of its vectors."""
    if isinstance(chunk, PlacedChunk):
        return chunk.entry.name
    return hashlib.blake2b(np.ascontiguousarray(chunk.main).data, digest_size=16).digest()


def with_joined_chunks(segment: S) -> S:
    """Join the last chunks of a segment by the rule by which segments are merged; large ones stay where they are."""
    chunks: list[AnyChunk] = []
    for chunk in segment.chunks:
        chunks.append(chunk)
        while len(chunks) > 1:
            a, b = chunks[-2].size, chunks[-1].size
            if a > RATIO * b or a + b > CHUNK_BYTES:
                break
            chunks[-2:] = [joined_chunks([chunk_data(one) for one in chunks[-2:]])]
    return replace(segment, chunks=chunks)


def how_many_to_merge(rows: list[int], tables: list[int]) -> int:
    """Return how many of the last segments become one; 1 if none is merged. tables: the bytes of their largest table.

    >>> [how_many_to_merge(rows, [0, 0, 0]) for rows in ([1000, 100, 1], [1000, 3, 1], [10, 3, 1])]
    [1, 2, 3]
    """
    count, total, size = 1, rows[-1], tables[-1]
    while count < len(rows):
        before, table = rows[-count - 1], tables[-count - 1]
        if before > RATIO * total or before + total > MOST_ROWS or size + table > MOST_TABLE:
            break
        count, total, size = count + 1, total + before, size + table
    return count


def all_merged(segments: list[S]) -> list[S]:
    """Return segments as few as can be, merged from the last one on."""
    few: list[S] = []
    for segment in reversed([one for one in segments if one.rows]):
        if few and segment.rows + few[-1].rows <= MOST_ROWS and segment.table + few[-1].table <= MOST_TABLE:
            few[-1] = segment.merged(few[-1])
        else:
            few.append(segment)
    return few[::-1]
