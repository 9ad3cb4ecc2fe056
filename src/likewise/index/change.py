"""Changes of an index: items added and removed, segments merged, space given back. Each is one transaction."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.errors import InputError, LikewiseError
from likewise.index.chunk import ChunkData, joined_chunks, thinned
from likewise.index.item_ids import INT64, LAST, check_kind
from likewise.index.scheme import IndexScheme, admitted
from likewise.index.segment import (
    CHUNK_BYTES,
    PlacedChunk,
    Segment,
    Thinning,
    VectorSegment,
    VectorShape,
    all_merged,
    forgetting,
    how_many_to_merge,
    with_joined_chunks,
)
from likewise.index.store import (
    COMMON,
    HEADER,
    ChunkEntry,
    Manifest,
    SegmentEntry,
    Snapshot,
    Store,
    StoredPart,
    Transaction,
    Values,
    Write,
    read_manifest,
    write_manifest,
)
from likewise.index.view import IndexView, SegmentView, Sound, chunk_view, fetched_ahead

EMPTY_CHUNK = ChunkData(0, 0, {})
"""Stands for the data of a chunk that is written and not needed any more."""


@dataclass(frozen=True)
class Change:
    """Where an index is stored, and what its changes need to know of it."""

    store: Store
    scheme: IndexScheme
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
        return IndexView(snapshot, manifest, self.store.where, self.threads, self.sound)

    def add(self, make: Callable[[int], tuple[Segment, Any]], replacing: bool, owner: str) -> None:
        """Add the items of a new segment; `make` returns it and its ids, given the first number for new ids."""

        def change(transaction: Transaction) -> None:
            view = self.view(transaction)
            segment, ids = make(view.manifest.numbered)
            manifest, segments = _with_ids(view, ids, replacing, owner)
            self._publish(transaction, view, admitted(manifest, segment.shape, owner), [*segments, segment])

        with forgetting():
            self.store.write(change)

    def stage(self, segment: Segment) -> SegmentEntry:
        """Store a segment that the manifest does not list yet."""
        return self.store.write(lambda transaction: _put_segment(transaction, segment, segment.staged_arrays()))

    def publish(
        self,
        staged: list[SegmentEntry],
        ids: Any,
        numbered: int | None,
        shape: VectorShape | None,
        replacing: bool,
        owner: str,
    ) -> None:
        """Add staged segments, all at once. numbered: where new ids began, if the items were given without. shape: of
        their vectors."""

        def change(transaction: Transaction) -> None:
            view = self.view(transaction)
            if numbered is not None and view.manifest.numbered != numbered:
                raise LikewiseError(f"{owner}: items were added by another process in the meantime; add these again")
            if any(transaction.get(name) is None for entry in staged for name in entry.names):
                raise LikewiseError(
                    f"{owner}: the index was compacted by another process in the meantime; add these again"
                )
            manifest, segments = _with_ids(view, ids, replacing, owner)
            new = self._view_of(transaction, replace(manifest, segments=staged)).segments
            self._publish(transaction, view, admitted(manifest, shape, owner), [*segments, *new])

        with forgetting():
            self.store.write(change)

    def _publish(
        self, transaction: Transaction, view: IndexView, manifest: Manifest, segments: list[SegmentView | Segment]
    ) -> None:
        """Write segments, those that are to be merged as one, and the manifest. view: what was stored before."""
        groups: list[list[SegmentView | Segment]] = []
        rows: list[int] = []
        tables: list[int] = []
        for segment in segments:
            known = segment.entry if isinstance(segment, SegmentView) else segment
            groups.append([segment])
            rows.append(known.rows)
            tables.append(known.table)
            count = how_many_to_merge(rows, tables)
            groups[-count:] = [[one for group in groups[-count:] for one in group]]
            rows[-count:], tables[-count:] = [sum(rows[-count:])], [sum(tables[-count:])]
        entries = []
        for group in groups:
            first = group[0]
            if len(group) == 1 and isinstance(first, SegmentView) and not _is_plain(first.entry):
                entries.append(_with_dead(transaction, first, view))
                continue
            whole = None
            for segment in reversed(group):  # the last two first: they are the smallest
                data = self.scheme.stored(segment, self.threads) if isinstance(segment, SegmentView) else segment
                whole = data if whole is None else data.merged(whole)
            assert whole is not None
            whole = with_joined_chunks(whole)
            entries.append(_put_segment(transaction, whole, whole.arrays()))
            _drop(transaction, [one.entry for one in group if isinstance(one, SegmentView)], entries[-1])
        write_manifest(transaction, manifest.changed(segments=entries))

    def remove(self, ids: Any, skip: bool, owner: str) -> int:
        """Remove the items with these ids; return how many there were."""

        def change(transaction: Transaction) -> int:
            view = self.view(transaction)
            rows = view.find(ids)
            if not skip:
                check_found(ids, rows, owner, self.store.where)
            rows = np.unique(rows[rows >= 0])
            if len(rows):
                entries = [_with_dead(transaction, segment, view) for segment in _without(view, rows)]
                write_manifest(transaction, view.manifest.changed(segments=entries))
            return len(rows)

        return self.store.write(change)

    def compact(self) -> None:
        """Copy what is not removed to a new store, as few segments, and remove the old one."""

        def change(old: Snapshot, write: Write) -> None:
            view = self.view(old)
            segments = []
            for segment in view.segments:
                small, plan = self.scheme.stored(segment, self.threads).compacted()
                segments.append(replace(small, chunks=list(_rewritten(plan, write))))
            self.finish(old, write, view.manifest, segments)

        with forgetting():
            self.store.rewrite(change)

    def finish(self, old: Snapshot, write: Write, manifest: Manifest, segments: list[Segment]) -> None:
        """Complete a store that is written anew: segments whose chunks are written are merged, and become the index."""
        final = all_merged(segments)

        def change(transaction: Transaction) -> None:
            for name in (HEADER, COMMON):
                value = old.get(name)
                if value is not None:
                    transaction.put(name, bytes(value))
            entries = []
            for segment in final:
                if isinstance(segment, VectorSegment):  # its cells are made of what is in its chunks
                    placed = [one.entry for one in segment.chunks if isinstance(one, PlacedChunk)]
                    data = [chunk_view(transaction, one, self.store.where, self.sound) for one in placed]
                    segment = replace(segment, chunks=list(map(PlacedChunk, placed, data)))
                entries.append(_put_segment(transaction, segment, segment.arrays()))
            write_manifest(transaction, manifest.changed(segments=entries))

        write(change)


def check_found(ids: Any, rows: Ints, owner: str, where: str) -> None:
    """Raise if an id is not in the index. rows: of the ids, -1 where there is none."""
    if (rows < 0).any():
        missing = ids[int(np.argmax(rows < 0))].as_py()
        raise InputError(f"{owner}: there is no item with the id {missing!r} in {where}")


def _rewritten(plan: list[Thinning], write: Write) -> Iterator[PlacedChunk]:
    """Write what is kept of chunks, several small ones as one."""
    waiting: list[ChunkData] = []
    for number, (chunk, rows, units) in enumerate(plan, 1):
        if len(rows) or len(units):
            waiting.append(thinned(chunk, rows, units))
        if waiting and (number == len(plan) or sum(one.size for one in waiting) >= CHUNK_BYTES // 2):
            yield written(joined_chunks(waiting), write)
            waiting = []


def written(chunk: ChunkData, write: Write) -> PlacedChunk:
    """Write a chunk in a transaction of its own; its data is not needed any more."""
    return PlacedChunk(write(partial(_put_chunk, chunk=chunk)), EMPTY_CHUNK)


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
    return replace(manifest, ids=kind, numbered=numbered), _without(view, np.sort(rows[known]))


def _without(view: IndexView, rows: Ints) -> list[SegmentView]:
    """Return the segments with these rows marked as removed; nothing is written."""
    segments = []
    cuts = np.searchsorted(rows, view.starts)
    for number, segment in enumerate(view.segments):
        mine = rows[cuts[number] : cuts[number + 1]] - view.starts[number]
        if len(mine):
            dead = segment.dead_rows()
            dead[mine] = True
            segment = segment.with_dead(dead)
        segments.append(segment)
    return segments


def _with_dead(transaction: Transaction, segment: SegmentView, before: IndexView) -> SegmentEntry:
    """Write which rows of a segment were removed, if that has changed; return its entry."""
    entry = segment.entry
    if not entry.dead or any(one.name == entry.name and one.dead == entry.dead for one in before.manifest.segments):
        return entry
    return replace(entry, values={**entry.values, **_put(transaction, entry.name, dead=segment.array("dead"))})


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


def _put_segment(transaction: Transaction, segment: Segment, arrays: dict[str, NDArray[Any]]) -> SegmentEntry:
    """Write these arrays of a segment and those of its chunks that are not stored yet; return its entry."""
    chunks = [_put_chunk(transaction, one) if isinstance(one, ChunkData) else one.entry for one in segment.chunks]
    name, dead = uuid4().hex, int(segment.dead_rows().sum())
    values = _put(transaction, name, **arrays)
    return SegmentEntry(name=name, rows=segment.rows, **segment.counts, dead=dead, values=values, chunks=chunks)


def _put_chunk(transaction: Transaction, chunk: ChunkData) -> ChunkEntry:
    """Write a chunk; return its entry."""
    name, elements = uuid4().hex, chunk.main
    values = _put(transaction, name, **chunk.arrays)
    return ChunkEntry(name, chunk.rows, chunk.units, len(elements), elements.itemsize, chunk.size, values)


def _drop(transaction: Transaction, gone: Iterable[SegmentEntry], entry: SegmentEntry) -> None:
    """Delete the values of segments, and of their chunks that are not part of the new one."""
    kept = {chunk.name for chunk in entry.chunks}
    for segment in gone:
        parts: list[StoredPart] = [segment, *(chunk for chunk in segment.chunks if chunk.name not in kept)]
        for name in [name for part in parts for name in part.names]:
            transaction.delete(name)
