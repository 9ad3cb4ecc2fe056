"""Changes of an index: items added and removed, segments merged, space given back. Each is one transaction."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Ints, to_arrow
from likewise.errors import InputError, LikewiseError
from likewise.index.chunk import ChunkData, joined_chunks, thinned
from likewise.index.item_ids import INT64, check_kind, check_unique, hashes_of
from likewise.index.manifest import (
    COMMON,
    HEADER,
    MANIFEST,
    ChunkEntry,
    Manifest,
    SegmentEntry,
    Values,
    part_values,
    read_manifest,
    write_manifest,
)
from likewise.index.segment import (
    CHUNK_BYTES,
    PlacedChunk,
    Thinning,
    all_merged,
    how_many_to_merge,
    with_joined_chunks,
)
from likewise.index.store import Snapshot, Store, Transaction, Write
from likewise.index.vector_scheme import VectorScheme
from likewise.index.vector_segment import VectorSegment, forgetting
from likewise.index.view import AnyScheme, AnySegment, IndexView, SegmentView, Sound, chunk_view, fetched_ahead

OWN_VALUES = {HEADER, MANIFEST, COMMON}
"""Values that do not belong to a segment."""
EMPTY_CHUNK = ChunkData(0, 0, {})
"""Stands for the data of a chunk that is written and not needed any more."""

LAST = 2**63 - 1
"""The highest id."""


@dataclass(frozen=True)
class Change:
    """Where an index is stored, and what its changes need to know of it."""

    store: Store
    scheme: AnyScheme
    threads: int = 1
    sound: set[Sound] = field(default_factory=set)
    """Values that were compared with their checksums since the index was opened."""

    def view(self, snapshot: Snapshot, ahead: Container[str] = ()) -> IndexView:
        """Return what a snapshot holds. ahead: arrays that will be read, which a remote store fetches at once."""
        held = fetched_ahead(snapshot, ahead)
        view = self._view_of(snapshot, read_manifest(snapshot, self.store.where))
        del held
        return view

    def _view_of(self, snapshot: Snapshot, manifest: Manifest) -> IndexView:
        return IndexView(snapshot, manifest, self.scheme, self.store.where, self.threads, self.sound)

    def add(self, make: Callable[[int], tuple[AnySegment, Any]], replacing: bool, owner: str) -> None:
        """Add the items of a new segment; `make` returns it and its ids, given the first number for new ids."""

        def change(transaction: Transaction) -> None:
            view = self.view(transaction)
            segment, ids = make(view.manifest.numbered)
            manifest, segments = _with_ids(view, ids, replacing, owner)
            manifest = self._admitted(manifest, segment, owner)
            entries = manifest.segments
            sizes = [*(entry.rows for entry in entries), segment.rows]
            tables = [*(entry.table for entry in entries), segment.table]
            count = how_many_to_merge(sizes, tables) - 1
            _publish(transaction, manifest, segments, len(entries) - count, segment, _removed(view))

        with forgetting():
            self.store.write(change)

    def _admitted(self, manifest: Manifest, segment: AnySegment, owner: str) -> Manifest:
        """Return the manifest of an index with such items; raise if its vectors are others."""
        if not isinstance(self.scheme, VectorScheme) or not isinstance(segment, VectorSegment):
            return manifest
        return self.scheme.admitted(manifest, segment.width, segment.dtype, owner)

    def stage(self, segment: AnySegment) -> SegmentEntry:
        """Store a segment that the manifest does not list yet."""
        return self.store.write(lambda transaction: _put_segment(transaction, segment, staged=True))

    def publish(
        self, staged: list[SegmentEntry], ids: Any, numbered: int | None, like: AnySegment, replacing: bool, owner: str
    ) -> None:
        """Add staged segments, all at once. numbered: where new ids began, if the items were given without. like: one
        of them."""

        def change(transaction: Transaction) -> None:
            view = self.view(transaction)
            if numbered is not None and view.manifest.numbered != numbered:
                raise LikewiseError(f"{owner}: items were added by another process in the meantime; add these again")
            if any(transaction.get(name) is None for entry in staged for name in part_values(entry)):
                raise LikewiseError(
                    f"{owner}: the index was compacted by another process in the meantime; add these again"
                )
            manifest, segments = _with_ids(view, ids, replacing, owner)
            manifest = self._admitted(manifest, like, owner)
            first = len(manifest.segments)
            more = replace(manifest, segments=[*manifest.segments, *staged])
            both = self._view_of(transaction, more)
            segments += both.segments[first:]
            _publish_merged(transaction, more, segments, _removed(view))

        with forgetting():
            self.store.write(change)

    def remove(self, ids: Any, skip: bool, owner: str) -> int:
        """Remove the items with these ids; return how many there were."""

        def change(transaction: Transaction) -> int:
            view = self.view(transaction)
            rows = view.find(ids)
            if not skip and (rows < 0).any():
                missing = ids[int(np.argmax(rows < 0))].as_py()
                raise InputError(f"{owner}: there is no item with the id {missing!r} in {self.store.where}")
            rows = np.unique(rows[rows >= 0])
            if not len(rows):
                return 0
            manifest, segments = _without(view, rows)
            both = zip(manifest.segments, segments, strict=True)
            entries = [_with_dead(transaction, entry, segment, _removed(view)) for entry, segment in both]
            write_manifest(transaction, manifest.changed(segments=entries))
            return len(rows)

        return self.store.write(change)

    def compact(self) -> None:
        """Copy what is not removed to a new store, as few segments, and remove the old one."""

        def change(old: Snapshot, write: Write) -> None:
            view = self.view(old)
            segments = []
            for segment in view.segments:
                small, plan = segment.data().compacted()
                chunks: list[ChunkData | PlacedChunk] = list(_rewritten(plan, write))
                segments.append(replace(small, chunks=chunks))
            self.finish(old, write, view.manifest, segments)

        with forgetting():
            self.store.rewrite(change)

    def finish(self, old: Snapshot, write: Write, manifest: Manifest, segments: list[Any]) -> None:
        """Complete a store that is written anew: segments whose chunks are written are merged, and become the index."""
        final = all_merged(segments)

        def change(transaction: Transaction) -> None:
            for name in (HEADER, COMMON):
                value = old.get(name)
                if value is not None:
                    transaction.put(name, bytes(value))
            entries = [_put_segment(transaction, _with_data(transaction, one, self.store.where)) for one in final]
            write_manifest(transaction, manifest.changed(segments=entries))

        write(change)


def _with_data(transaction: Transaction, segment: AnySegment, where: str) -> AnySegment:
    """Return a segment whose chunks are written with their data, if that is needed to make its tables."""
    if not isinstance(segment, VectorSegment):
        return segment
    entries = [one.entry for one in segment.chunks if isinstance(one, PlacedChunk)]
    return replace(segment, chunks=[PlacedChunk(one, chunk_view(transaction, one, where)) for one in entries])


def _rewritten(plan: list[Thinning], write: Write) -> Iterator[PlacedChunk]:
    """Write what is kept of chunks, several small ones as one."""
    waiting: list[ChunkData] = []
    for number, (chunk, rows, units) in enumerate(plan, 1):
        if len(rows) or len(units):
            waiting.append(thinned(chunk, rows, units))
        if waiting and (number == len(plan) or sum(one.size for one in waiting) >= CHUNK_BYTES // 2):
            whole = joined_chunks(waiting)
            waiting = []
            yield PlacedChunk(write(partial(put_chunk, chunk=whole)), EMPTY_CHUNK)


def _with_ids(view: IndexView, ids: Any, replacing: bool, owner: str) -> tuple[Manifest, list[SegmentView]]:
    """Return the manifest and the segments ready for new items: items with the same ids are removed, or an error."""
    manifest = view.manifest
    kind = check_kind(manifest.ids, ids, owner)
    rows = view.find(ids)
    known = np.flatnonzero(rows >= 0)
    if len(known) and not replacing:
        again = ids[int(known[0])].as_py()
        raise InputError(
            f"{owner}: the id {again!r} is in the index already; remove the item first, or add with replace=True"
        )
    numbered = manifest.numbered
    if kind == INT64 and len(ids):
        numbered = max(numbered, min(int(ids.to_numpy().max()), LAST - 1) + 1)
    manifest, segments = _without(view, np.sort(rows[known]))
    return replace(manifest, ids=kind, numbered=numbered), segments


def _without(view: IndexView, rows: Ints) -> tuple[Manifest, list[SegmentView]]:
    """Return the manifest and the segments with these rows marked as removed; nothing is written."""
    segments = []
    cuts = np.searchsorted(rows, view.starts)
    for number, segment in enumerate(view.segments):
        mine = rows[cuts[number] : cuts[number + 1]] - view.starts[number]
        if len(mine):
            dead = segment.dead_rows()
            dead[mine] = True
            segment = segment.with_dead(dead)
        segments.append(segment)
    return replace(view.manifest, segments=[segment.entry for segment in segments]), segments


def _removed(view: IndexView) -> dict[str, int]:
    """Return how many rows of each segment were removed."""
    return {entry.name: entry.dead for entry in view.manifest.segments}


def _folded(segments: list[Any]) -> Any:
    """Merge segments, the last two first: they are the smallest."""
    whole = segments[-1]
    for segment in reversed(segments[:-1]):
        whole = segment.merged(whole)
    return whole


def _publish(
    transaction: Transaction,
    manifest: Manifest,
    segments: list[SegmentView],
    kept: int,
    new: AnySegment,
    before: dict[str, int],
) -> None:
    """Write the first `kept` segments as they are, the others and the new one as one."""
    whole = with_joined_chunks(_folded([*(segment.data() for segment in segments[kept:]), new]))
    gone = manifest.segments[kept:]
    both = zip(manifest.segments[:kept], segments, strict=False)
    entries = [_with_dead(transaction, entry, segment, before) for entry, segment in both]
    entry = _put_segment(transaction, whole)
    _drop(transaction, gone, entry)
    write_manifest(transaction, manifest.changed(segments=[*entries, entry]))


def _publish_merged(
    transaction: Transaction, manifest: Manifest, segments: list[SegmentView], before: dict[str, int]
) -> None:
    """Write segments that are all stored already, those that are to be merged as one."""
    groups: list[list[int]] = []
    rows: list[int] = []
    tables: list[int] = []
    for number, entry in enumerate(manifest.segments):
        groups.append([number])
        rows.append(entry.rows)
        tables.append(entry.table)
        count = how_many_to_merge(rows, tables)
        groups[-count:] = [[one for group in groups[-count:] for one in group]]
        rows[-count:], tables[-count:] = [sum(rows[-count:])], [sum(tables[-count:])]
    entries = []
    for group in groups:
        if len(group) == 1 and not _is_plain(manifest.segments[group[0]]):
            entries.append(_with_dead(transaction, manifest.segments[group[0]], segments[group[0]], before))
        else:
            whole = with_joined_chunks(_folded([segments[number].data() for number in group]))
            entries.append(_put_segment(transaction, whole))
            _drop(transaction, [manifest.segments[number] for number in group], entries[-1])
    write_manifest(transaction, manifest.changed(segments=entries))


def _with_dead(
    transaction: Transaction, entry: SegmentEntry, segment: SegmentView, before: dict[str, int]
) -> SegmentEntry:
    """Write which rows of a segment were removed, if that has changed. before: how many there were, by segment."""
    if not entry.dead or entry.dead == before.get(entry.name, 0):
        return entry
    facts = _put(transaction, entry.name, dead=segment.array("dead"))
    return replace(entry, values={**entry.values, **facts})


def _put(transaction: Transaction, part: str, **arrays: NDArray[Any]) -> Values:
    """Write arrays as values of a part; return their sizes and checksums."""
    facts: Values = {}
    for name, array in arrays.items():
        data = np.ascontiguousarray(array).data.cast("B") if array.size else b""
        transaction.put(f"{part}/{name}", data)
        facts[name] = [len(data), zlib.crc32(data)]
    return facts


def _is_plain(entry: SegmentEntry) -> bool:
    """Tell whether a segment of vectors has no cells yet: it was staged."""
    return "keys" not in entry.values and "order" not in entry.values


def _put_segment(transaction: Transaction, segment: AnySegment, staged: bool = False) -> SegmentEntry:
    """Write a segment and those of its chunks that are not stored yet; return its entry. staged: it is part of the
    index later, and may be merged before."""
    arrays = segment.plain_arrays() if staged and isinstance(segment, VectorSegment) else segment.arrays()
    chunks = [put_chunk(transaction, one) if isinstance(one, ChunkData) else one.entry for one in segment.chunks]
    name = uuid4().hex
    return SegmentEntry(
        name,
        segment.rows,
        segment.units,
        segment.entries,
        segment.shingle_entries,
        segment.groups is not None,
        0 if segment.dead is None else int(segment.dead_rows().sum()),
        _put(transaction, name, **arrays),
        chunks,
    )


def put_chunk(transaction: Transaction, chunk: ChunkData) -> ChunkEntry:
    """Write a chunk; return its entry."""
    name, elements = uuid4().hex, chunk.main
    values = _put(transaction, name, **chunk.arrays)
    return ChunkEntry(name, chunk.rows, chunk.units, len(elements), elements.itemsize, chunk.size, values)


def _drop(transaction: Transaction, gone: Iterable[SegmentEntry], entry: SegmentEntry) -> None:
    """Delete the values of segments, and of their chunks that are not part of the new one."""
    kept = {chunk.name for chunk in entry.chunks}
    for segment in gone:
        parts: list[SegmentEntry | ChunkEntry] = [segment]
        parts += [chunk for chunk in segment.chunks if chunk.name not in kept]
        for part in parts:
            for name in part_values(part):
                transaction.delete(name)


def all_ids(parts: list[Any], owner: str) -> Any:
    """Return the ids of several batches as one array; raise if one is given twice."""
    ids = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    check_unique(ids, hashes_of(ids), owner)
    return ids


def new_ids(start: int, count: int) -> Any:
    """Return the ids of items that are given without."""
    if start + count >= LAST:
        raise InputError(f"Index.add: items cannot be numbered from {start:,} on: ids end at {LAST:,}; give them ids")
    return to_arrow(np.arange(start, start + count))
