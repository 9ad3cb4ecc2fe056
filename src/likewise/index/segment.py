"""Segments: the tables of items that were added together, and how segments are merged.

A table has for every band the sorted keys of the different sets and, beside them, which set it is. Items with the same
set share it, and have one entry; where sets of two segments turn out to be the same when they are merged, the later
one stays in its chunk without an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk
from likewise.base.copies import set_digests
from likewise.base.parallel import in_order
from likewise.index.chunk import Arrays, ChunkData, joined_chunks, make_chunk
from likewise.index.item_ids import hashes_of
from likewise.index.manifest import ChunkEntry
from likewise.index.scheme import Scheme
from likewise.kernels.lookup import GONE, fill_starts, merge_entries, put_rows, shingle_keys
from likewise.kernels.pairs import label_equal
from likewise.kernels.sorting import radix_sort32

Entries = NDArray[np.uint32]
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


Thinning = tuple[ChunkData, Ints, Ints]
"""A chunk, and which of its rows and of its sets are kept."""


@dataclass(frozen=True)
class PlacedChunk:
    """A chunk that stays where it is: what the manifest says of it, and its data if it is needed."""

    entry: ChunkEntry
    data: ChunkData


@dataclass(frozen=True)
class SegmentData:
    """A segment in memory, or as views of the store.

    keys, sets: (bands, entries). groups, members: which rows have set u, members[groups[u]:groups[u + 1]]; None if
    every row has its own, in order. digests: of all sets. id_hashes, id_rows: sorted by hash. dead: a bit per row, or
    None. shingles, owners: (1, entries) of the table of shingles.
    """

    rows: int
    units: int
    keys: Entries
    sets: Entries
    digests: Hashes
    id_hashes: Hashes
    id_rows: Entries
    shingles: Entries
    owners: Entries
    groups: Entries | None = None
    members: Entries | None = None
    dead: NDArray[np.uint8] | None = None
    chunks: list[ChunkData | PlacedChunk] = field(default_factory=list)

    @property
    def table(self) -> int:
        """The bytes of the largest table."""
        return max(self.keys.nbytes, self.shingles.nbytes)

    @property
    def entries(self) -> int:
        """The number of sets in a band of the table."""
        return int(self.keys.shape[1])

    @property
    def shingle_entries(self) -> int:
        """The number of entries of the table of shingles."""
        return int(self.shingles.shape[1])

    def merged(self, other: SegmentData) -> SegmentData:
        """Return two segments as one, the items of this one first."""
        return merged(self, other)

    def compacted(self) -> tuple[SegmentData, list[Thinning]]:
        """Return the segment without removed rows, and what becomes of its chunks."""
        return compacted(self)

    def unit_of_rows(self) -> Ints:
        """Return the set of every row."""
        if self.groups is None or self.members is None:
            return np.arange(self.rows)
        of = np.empty(self.rows, np.int64)
        of[self.members] = np.repeat(np.arange(self.units), self.groups[1:] - self.groups[:-1])
        return of

    def dead_rows(self) -> NDArray[np.bool_]:
        """Return which rows were removed."""
        if self.dead is None:
            return np.zeros(self.rows, bool)
        return np.unpackbits(self.dead, count=self.rows, bitorder="little").astype(bool)

    def arrays(self) -> Arrays:
        """Return what is stored of the segment, apart from its chunks."""
        found: dict[str, Any] = {
            "keys": self.keys,
            "sets": self.sets,
            "starts": directory(self.keys),
            "digests": self.digests,
            "id_hashes": self.id_hashes,
            "id_rows": self.id_rows,
        }
        if self.shingles.size:
            found |= {"shingles": self.shingles, "owners": self.owners, "shingle_starts": directory(self.shingles)}
        if self.groups is not None:
            found |= {"groups": self.groups, "members": self.members}
        if self.dead is not None:
            found["dead"] = self.dead
        return found


def directory_bits(entries: int) -> int:
    """Return the binary logarithm of the number of slots of the directory of a band."""
    return min(MOST_BITS, max(1, (max(1, entries) // A_SLOT).bit_length()))


def directory(keys: Entries) -> Entries:
    """Return where the entries of each slot of each band begin."""
    bits = directory_bits(keys.shape[1])
    starts = np.empty((keys.shape[0], (1 << bits) + 1), np.uint32)
    fill_starts(keys, bits, starts)
    return starts


def make_segment(scheme: Scheme, sets: Sets, ids: Any, texts: TextChunk | None, threads: int) -> SegmentData:
    """Return the segment of new items."""
    digests = set_digests(sets)
    first = _first_equal(digests)
    units = np.flatnonzero(first == np.arange(len(first)))
    groups = members = None
    if len(units) < len(sets):
        number = np.cumsum(first == np.arange(len(first))) - 1
        groups, members = _grouped(number[first], len(units))
        sets, digests = sets.take(units), digests[units]
    keys = scheme.keys(sets, threads)
    columns = list(in_order(lambda band: _sorted(np.ascontiguousarray(keys[:, band])), range(keys.shape[1]), threads))
    hashes = hashes_of(ids)
    order = np.argsort(hashes, kind="stable")
    shingles = owners = np.zeros((1, 0), np.uint32)
    if scheme.containment:
        shingles, owners = _shingle_table(sets)
    return SegmentData(
        len(ids),
        len(sets),
        np.stack([column[0] for column in columns]),
        np.stack([column[1] for column in columns]),
        digests,
        hashes[order],
        order.astype(np.uint32),
        shingles,
        owners,
        groups,
        members,
        chunks=[make_chunk(sets, ids, texts)],
    )


def _sorted(keys: Entries) -> tuple[Entries, Entries]:
    order, ordered = radix_sort32(keys)
    return ordered, order.astype(np.uint32)


def _shingle_table(sets: Sets) -> tuple[Entries, Entries]:
    """Return the keys of all elements, sorted, and the set of each."""
    keys = np.empty(len(sets.values), np.uint32)
    shingle_keys(sets.values, keys)
    order, ordered = radix_sort32(keys)
    owners = np.repeat(np.arange(len(sets), dtype=np.uint32), sets.sizes)[order]
    return ordered.reshape(1, -1), owners.reshape(1, -1)


def _first_equal(digests: Hashes) -> Ints:
    """Return for every row the first with the same digest."""
    first = np.empty(len(digests), np.int64)
    order, _ = radix_sort32(digests[:, 0].astype(np.uint32))
    label_equal(np.ascontiguousarray(digests), order, first)
    return first


def _grouped(of: Ints, units: int) -> tuple[Entries, Entries]:
    """Return the rows of every set, ascending, and where they begin."""
    ends = np.zeros(units + 1, np.int64)
    np.cumsum(np.bincount(of, minlength=units), out=ends[1:])
    members = np.empty(len(of), np.uint32)
    put_rows(of, ends[:-1].copy(), members)
    return ends.astype(np.uint32), members


def merged(a: SegmentData, b: SegmentData) -> SegmentData:
    """Return two segments as one, the items of a before those of b."""
    first = _first_equal(np.concatenate([a.digests, b.digests]))
    new_b = first[a.units :]
    same = new_b < a.units
    maps = (
        np.arange(a.units, dtype=np.uint32),
        np.where(same, GONE, np.arange(a.units, a.units + b.units)).astype(np.uint32),
    )
    keys, sets = merged_tables((a.keys, a.sets, maps[0]), (b.keys, b.sets, maps[1]))
    shingles, owners = merged_tables((a.shingles, a.owners, maps[0]), (b.shingles, b.owners, maps[1]))
    groups = members = None
    if a.groups is not None or b.groups is not None or same.any():
        of = np.concatenate([a.unit_of_rows(), new_b[b.unit_of_rows()]])
        groups, members = _grouped(of, a.units + b.units)
    hashes = np.concatenate([a.id_hashes, b.id_hashes])
    order = np.argsort(hashes, kind="stable")
    dead = None
    if a.dead is not None or b.dead is not None:
        dead = np.packbits(np.concatenate([a.dead_rows(), b.dead_rows()]), bitorder="little")
    return SegmentData(
        a.rows + b.rows,
        a.units + b.units,
        keys,
        sets,
        np.concatenate([a.digests, b.digests]),
        hashes[order],
        np.concatenate([a.id_rows, b.id_rows + np.uint32(a.rows)])[order],
        shingles,
        owners,
        groups,
        members,
        dead,
        [*a.chunks, *b.chunks],
    )


def merged_tables(a: tuple[Entries, Entries, Entries], b: tuple[Entries, Entries, Entries]) -> tuple[Entries, Entries]:
    """Merge the entries of two tables; the third of each says how its sets are renumbered."""
    bands, room = a[0].shape[0], a[0].shape[1] + b[0].shape[1]
    keys, sets = np.empty((bands, room), np.uint32), np.empty((bands, room), np.uint32)
    count = 0
    for band in range(bands):
        count = merge_entries(a[0][band], a[1][band], a[2], b[0][band], b[1][band], b[2], keys[band], sets[band])
    if count == room:
        return keys, sets
    return np.ascontiguousarray(keys[:, :count]), np.ascontiguousarray(sets[:, :count])


def with_joined_chunks(segment: Any) -> Any:
    """Join the last chunks of a segment by the rule by which segments are merged; large ones stay where they are."""
    chunks: list[ChunkData | PlacedChunk] = []
    for chunk in segment.chunks:
        chunks.append(chunk)
        while len(chunks) > 1:
            a, b = (_size(one) for one in chunks[-2:])
            if a > RATIO * b or a + b > CHUNK_BYTES:
                break
            chunks[-2:] = [joined_chunks([chunk_data(one) for one in chunks[-2:]])]
    return replace(segment, chunks=chunks)


def _size(chunk: ChunkData | PlacedChunk) -> int:
    return chunk.entry.bytes if isinstance(chunk, PlacedChunk) else chunk.size


def chunk_data(chunk: ChunkData | PlacedChunk) -> ChunkData:
    """Return the data of a chunk, wherever it is."""
    return chunk.data if isinstance(chunk, PlacedChunk) else chunk


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


def compacted(segment: SegmentData) -> tuple[SegmentData, list[Thinning]]:
    """Return a segment without removed rows and without sets that no row has, and what becomes of its chunks."""
    live = ~segment.dead_rows()
    of = segment.unit_of_rows()
    used = np.zeros(segment.units, bool)
    used[of[live]] = True
    new = np.where(used, np.cumsum(used) - 1, GONE).astype(np.uint32)
    none = np.zeros((segment.keys.shape[0], 0), np.uint32)
    keys, sets = merged_tables((segment.keys, segment.sets, new), (none, none, new))
    shingles, owners = merged_tables((segment.shingles, segment.owners, new), (none[:1], none[:1], new))
    units, rows = int(used.sum()), int(live.sum())
    remaining = new[of[live]].astype(np.int64)
    plain = units == rows and bool((remaining == np.arange(rows)).all())
    groups, members = (None, None) if plain else _grouped(remaining, units)
    plan: list[Thinning] = []
    row = unit = 0
    for chunk in map(chunk_data, segment.chunks):
        here = np.flatnonzero(live[row : row + chunk.rows]), np.flatnonzero(used[unit : unit + chunk.units])
        plan.append((chunk, *here))
        row, unit = row + chunk.rows, unit + chunk.units
    kept = live[segment.id_rows]
    small = SegmentData(
        rows,
        units,
        keys,
        sets,
        segment.digests[used],
        segment.id_hashes[kept],
        (np.cumsum(live) - 1)[segment.id_rows[kept]].astype(np.uint32),
        shingles,
        owners,
        groups,
        members,
    )
    return small, plan


def all_merged(segments: list[Any]) -> list[Any]:
    """Return segments as few as can be, merged from the last one on."""
    found: list[Any] = []
    for segment in reversed([one for one in segments if one.rows]):
        if found:
            table = segment.table + found[-1].table
            if segment.rows + found[-1].rows <= MOST_ROWS and table <= MOST_TABLE:
                found[-1] = segment.merged(found[-1])
                continue
        found.append(segment)
    return found[::-1]
