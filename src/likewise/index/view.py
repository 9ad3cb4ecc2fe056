"""What a snapshot of an index holds: its arrays, compared with their checksums, ids to rows, and rows to ids."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base.arrays import Ints, to_arrow
from likewise.base.parallel import in_order
from likewise.base.tokens import hash_column
from likewise.errors import DamagedError
from likewise.index.chunk import KINDS, ChunkData, RangedArrays
from likewise.index.item_ids import INT64, few_ids, kind_of_ids
from likewise.index.segment import Flags, PlacedChunk, unpacked
from likewise.index.store import MANIFEST, ChunkEntry, Manifest, SegmentEntry, Snapshot, StoredPart

T = TypeVar("T")
SEGMENT_KINDS: dict[str, Any] = {
    "digests": np.uint64, "id_hashes": np.uint64, "dead": np.uint8, "frame": np.float64, "centres": np.float32,
    "reach": np.float64, "codes": np.int8, "squares": np.float32, "steps": np.float64, "errors": np.float64,
    "words": np.uint64, "turns": np.int8, "turned": np.float32, "signs": np.uint64, "spreads": np.float32,
    "factors": np.float32, "doubt": np.float64,
}  # fmt: skip
"""The types of the arrays of a segment that are not uint32."""
REMEDY = "run index check, with --repair to keep what is intact"
Sound = tuple[str, str, int]
"""A part, a value of it, and its checksum."""
DOCUMENTS = ("texts", "text_offsets", "blocks", "sums")
"""Arrays that queries do not read: a remote store fetches them for `get` and merging, and they are not held."""
OF_QUERIES = (
    "keys", "sets", "starts", "shingles", "owners", "shingle_starts", "groups", "members", "dead", "elements",
    "offsets", "ids", "id_offsets", "frame", "centres", "ends", "order", "reach", "codes", "squares", "steps", "errors",
    "words", "vectors", "bits", "turns", "turned", "signs", "spreads", "factors", "doubt",
)  # fmt: skip
"""Arrays that queries read."""
FEW = 10
"""Ids up to which each is taken by itself, which takes less than the arrays of several chunks together."""
OF_IDS = ("id_hashes", "id_rows", "dead")
"""Arrays of a segment that tell where an id is."""
OF_MERGING = ("keys", "sets", "digests", "id_hashes", "id_rows", "shingles", "owners", "groups", "members", "dead")
"""Arrays of a segment that a larger one is made of."""


class SegmentView:
    """The arrays of a stored segment, each read when it is needed."""

    def __init__(self, snapshot: Snapshot, entry: SegmentEntry, where: str, sound: set[Sound]) -> None:
        self.entry = entry
        self._snapshot = snapshot
        self._dead: NDArray[np.uint8] | None = None
        self.arrays = StoredArrays(snapshot, entry, SEGMENT_KINDS, where, sound)
        self.chunks = [chunk_view(snapshot, chunk, where, sound) for chunk in entry.chunks]

    def array(self, name: str) -> NDArray[Any]:
        """Return an array; an empty one if the segment has none of this name."""
        if name == "dead" and self._dead is not None:
            return self._dead
        return self.arrays.get(name, np.zeros(0, SEGMENT_KINDS.get(name, np.uint32)))

    def with_dead(self, dead: Flags) -> SegmentView:
        """Return the segment with these rows marked as removed; nothing is written."""
        other = copy(self)
        other.entry = replace(self.entry, dead=int(dead.sum()))
        other._dead = np.packbits(dead, bitorder="little")
        return other

    def dead_rows(self) -> Flags:
        """Return which rows were removed."""
        return unpacked(self.array("dead") if self.entry.dead else None, self.entry.rows)

    def address(self, name: str) -> int:
        """Return the address of an array; 0 if the segment has none of this name."""
        return self.arrays[name].ctypes.data if name in self.arrays else 0

    def row_fields(self) -> dict[str, Any]:
        """Return what all segments have, for merging; what is needed for that is fetched."""
        fetch(self._snapshot, [self.arrays], OF_MERGING)
        chunks = [PlacedChunk(one, data) for one, data in zip(self.entry.chunks, self.chunks, strict=True)]
        dead = self.array("dead") if self.entry.dead else None
        ids = {name: self.array(name) for name in ("id_hashes", "id_rows")}
        return {"rows": self.entry.rows, "dead": dead, "chunks": chunks, **ids}

    def grouping(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return which rows have each set, if some have one in common."""
        return (self.array("groups"), self.array("members")) if self.entry.grouped else None

    def is_dead(self, rows: Ints) -> Flags:
        """Return which of these rows were removed."""
        if not self.entry.dead:
            return np.zeros(len(rows), bool)
        flags: Flags = (self.array("dead")[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(bool)
        return flags


def as_array(
    data: memoryview | None, part: StoredPart, name: str, kind: Any, where: str, sound: set[Sound]
) -> NDArray[Any]:
    """Return a value of a part as an array; raise if it is not what the manifest says.

    sound: values that were compared with their checksums before; this one is added.
    """
    size, checksum = part.values[name]
    fact = (part.name, name, checksum)
    if data is None or len(data) != size or not (fact in sound or zlib.crc32(data) == checksum):
        got = "is damaged: its checksum is not that of its content"
        if data is None or len(data) != size:
            got = "is missing" if data is None else f"has {len(data):,} bytes in place of {size:,}"
        raise DamagedError(f"{where}: the value {part.name}/{name} of the index {got}; {REMEDY}")
    sound.add(fact)
    array = np.frombuffer(data, np.uint8).view(kind) if size else np.zeros(0, kind)
    array.flags.writeable = False
    return array


class StoredArrays(RangedArrays):
    """The arrays of a part, each compared with its checksum when it is first used.

    Of a remote store each is fetched when it is needed, and then kept, but for documents.
    """

    def __init__(
        self, snapshot: Snapshot, part: StoredPart, kinds: Mapping[str, Any], where: str, sound: set[Sound]
    ) -> None:
        self._snapshot, self._part, self._kinds, self.where, self._sound = snapshot, part, kinds, where, sound
        self._here: dict[str, NDArray[Any]] = {}
        self._local: dict[str, memoryview | None] = {}
        if not snapshot.lasting:
            self._local = {name: snapshot.get(f"{part.name}/{name}") for name in part.values}
            return
        for name in part.values:
            data = snapshot.known(f"{part.name}/{name}") if name not in DOCUMENTS else None
            if data is not None:
                self.take(name, data)

    def take(self, name: str, data: memoryview | None) -> NDArray[Any]:
        """Return a value that was fetched as an array; the first of this name is kept, as its address is known."""
        array = as_array(data, self._part, name, self._kinds.get(name, np.uint32), self.where, self._sound)
        return array if name in DOCUMENTS and not self._local else self._here.setdefault(name, array)

    def some(self, name: str, begin: int, end: int) -> bytes:
        """Return some bytes of an array, not compared with anything; raise if they are not there."""
        full = f"{self._part.name}/{name}"
        if self._local:
            local = self._local[name]
            found = None if local is None else bytes(local[begin:end])
        else:
            found = self._snapshot.get_range(full, begin, end)
        if found is None or len(found) != end - begin:
            raise DamagedError(f"{self.where}: the value {full} of the index is missing, or is not whole; {REMEDY}")
        return found

    def missing(self, names: Iterable[str]) -> dict[str, tuple[StoredArrays, str]]:
        """Return which of these arrays must be fetched: full names, to whom they belong, and as what."""
        mine = [name for name in names if name in self._part.values and name not in self._here]
        return {} if self._local else {f"{self._part.name}/{name}": (self, name) for name in mine}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name in self._here:
            return self._here[name]
        if name not in self._part.values:
            raise KeyError(name)
        full = f"{self._part.name}/{name}"
        return self.take(name, self._local[name] if self._local else self._snapshot.get(full))

    def __contains__(self, name: object) -> bool:
        return name in self._part.values

    def __iter__(self) -> Iterator[str]:
        return iter(self._part.values)

    def __len__(self) -> int:
        return len(self._part.values)


def fetch(snapshot: Snapshot, parts: Iterable[Mapping[str, NDArray[Any]]], names: Iterable[str]) -> None:
    """Fetch arrays of several parts together, where they are not here already."""
    wanted: dict[str, tuple[StoredArrays, str]] = {}
    for part in parts:
        wanted |= part.missing(names) if isinstance(part, StoredArrays) else {}
    for full, data in (snapshot.get_many(wanted) if wanted else {}).items():
        arrays, name = wanted[full]
        arrays.take(name, data)


def fetched_ahead(snapshot: Snapshot, names: Container[str]) -> dict[str, memoryview | None]:
    """Fetch the manifest and all arrays of these names together, if reading takes a while: which of them there are, a
    remote store knows before the manifest is here. What is returned must be held until a view holds it."""
    if not snapshot.lasting:
        return {}
    return snapshot.get_many([MANIFEST, *(full for full in snapshot.names() if full.rpartition("/")[2] in names)])


def chunk_view(snapshot: Snapshot, chunk: ChunkEntry, where: str, sound: set[Sound]) -> ChunkData:
    """Return a stored chunk."""
    single = chunk.width == 4
    kinds = {**KINDS, "elements": np.uint32 if single else np.uint64, "vectors": np.float32 if single else np.float64}
    return ChunkData(chunk.rows, chunk.units, StoredArrays(snapshot, chunk, kinds, where, sound))


class IndexView:
    """A snapshot of an index; valid as long as the snapshot is, or another with the same place."""

    def __init__(self, snapshot: Snapshot, manifest: Manifest, where: str, threads: int, sound: set[Sound]) -> None:
        self.manifest = manifest
        self.place = snapshot.place
        self._snapshot, self._threads = snapshot, threads
        self.segments = [SegmentView(snapshot, entry, where, sound) for entry in manifest.segments]
        self.starts: Ints = np.cumsum([0, *(entry.rows for entry in manifest.segments)]).astype(np.int64)
        self._laid_out: Any = None
        self._prepared: dict[Hashable, Any] = {}

    def laid_out(self, layout: Callable[[IndexView], T]) -> T:
        """Return what kernels take: what `layout` makes, once, of the arrays that queries read, which are fetched."""
        if self._laid_out is None:
            self._fetch_all()
            self._laid_out = layout(self)
        made: T = self._laid_out
        return made

    def prepared(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what queries of one kind have in common, made for the first of them."""
        if key not in self._prepared:
            self._prepared[key] = make()
        made: T = self._prepared[key]
        return made

    def _fetch_all(self) -> None:
        """Fetch all arrays that queries read, where they are not here already."""
        parts = [part for one in self.segments for part in (one.arrays, *(chunk.arrays for chunk in one.chunks))]
        fetch(self._snapshot, parts, OF_QUERIES)
        used = [(part, name) for part in parts for name in part if name in OF_QUERIES]
        for _ in in_order(lambda one: one[0][one[1]], used, self._threads):
            pass  # compared with its checksum

    @cached_property
    def _layout(self) -> tuple[Ints, list[ChunkData]]:
        """The first row of every chunk, and the chunks."""
        chunks = [chunk for segment in self.segments for chunk in segment.chunks]
        return np.cumsum([0, *(chunk.rows for chunk in chunks)])[:-1].astype(np.int64), chunks

    @cached_property
    def _firsts(self) -> list[int]:
        """The first row of every chunk, to look up a few rows."""
        firsts: list[int] = self._layout[0].tolist()
        return firsts

    def vectors(self, rows: Ints) -> NDArray[Any]:
        """Return the vectors of rows of the whole index, in this order."""
        firsts, chunks = self._layout
        of = np.searchsorted(firsts, rows, side="right") - 1
        like = chunks[0].vectors if chunks else np.zeros((0, 1))
        out = np.empty((len(rows), like.shape[1]), like.dtype)
        for number in set(of.tolist()):
            mine = of == number
            out[mine] = chunks[number].vectors[rows[mine] - firsts[number]]
        return out

    def ids(self, rows: Ints) -> Any:
        """Return the ids of rows of the whole index, in this order."""
        if not len(rows):
            return pa.nulls(0, pa.int64() if self.manifest.ids in (INT64, None) else pa.large_string())
        if len(rows) <= FEW:
            return few_ids(self.id_list(rows), self.manifest.ids)
        firsts, chunks = self._layout
        of = np.searchsorted(firsts, rows, side="right") - 1
        order = np.argsort(of, kind="stable")
        numbers, cuts = np.unique(of[order], return_index=True)
        parts = [
            chunks[int(number)].ids(rows[here] - firsts[number])
            for number, here in zip(numbers, np.split(order, cuts[1:]), strict=True)
        ]
        back = np.empty(len(rows), np.int64)
        back[order] = np.arange(len(rows))
        return pa.concat_arrays(parts).take(to_arrow(back))

    def id_list(self, rows: Ints) -> list[int | str]:
        """Return the ids of rows of the whole index, in this order, as Python has them."""
        if len(rows) > FEW:
            many: list[int | str] = self.ids(rows).to_pylist()
            return many
        return [chunk.id(within) for chunk, within in map(self.chunk_at, rows.tolist())]

    def first_ids(self, count: int) -> Any:
        """Return the ids of the first items that were not removed."""
        rows = np.zeros(0, np.int64)
        for start, segment in zip(self.starts, self.segments, strict=False):
            if len(rows) < count:
                alive = np.flatnonzero(~segment.dead_rows())[: count - len(rows)]
                rows = np.concatenate([rows, int(start) + alive])
        return self.ids(rows)

    def chunk_at(self, row: int) -> tuple[ChunkData, int]:
        """Return the chunk that holds a row, and the row within it."""
        number = bisect_right(self._firsts, row) - 1
        return self._layout[1][number], row - self._firsts[number]

    def find(self, ids: Any) -> Ints:
        """Return the row of each id; -1 if it is not there."""
        found = np.full(len(ids), -1, np.int64)
        if self.manifest.ids is None or kind_of_ids(ids) != self.manifest.ids or not len(ids):
            return found
        hashes = hash_column(ids)
        fetch(self._snapshot, [segment.arrays for segment in self.segments], OF_IDS)
        for start, segment in zip(self.starts, self.segments, strict=False):
            known = segment.array("id_hashes")
            low, high = np.searchsorted(known, hashes, "left"), np.searchsorted(known, hashes, "right")
            queries = np.repeat(np.arange(len(ids)), high - low)
            if not len(queries):
                continue
            places = np.repeat(low - np.cumsum(high - low) + (high - low), high - low) + np.arange(len(queries))
            rows = segment.array("id_rows")[places].astype(np.int64)
            alive = ~segment.is_dead(rows)
            queries, rows = queries[alive], rows[alive] + start
            same = np.asarray(pc.equal(self.ids(rows), ids.take(to_arrow(queries))))
            found[queries[same]] = rows[same]
        return found
