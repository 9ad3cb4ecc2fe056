"""What an index holds, whether it is sound, and how it is mended."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Sets, TextChunk, concatenate
from likewise.base.words import counted
from likewise.errors import DamagedError
from likewise.index.change import EMPTY_CHUNK, OWN_VALUES, Change, put_chunk
from likewise.index.chunk import ChunkData, thinned
from likewise.index.manifest import Manifest, SegmentEntry, part_values, read_manifest
from likewise.index.segment import PlacedChunk, make_segment
from likewise.index.store import Snapshot, Store, Transaction, Write
from likewise.index.vector_scheme import VectorScheme
from likewise.index.vector_segment import segment_of_chunk
from likewise.index.view import AnyScheme, chunk_view, stored_array


@dataclass(frozen=True)
class Report:
    """The result of a check: what was read, what is not part of the index, and what was lost in a repair."""

    items: int
    values: int
    bytes: int
    unused: int
    lost: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return asdict(self)

    def __str__(self) -> str:
        sound = f"{counted(self.items, 'item')}: {counted(self.values, 'value')} of {self.bytes:,} bytes, all intact"
        unused = (
            f"; {counted(self.unused, 'value')} of an interrupted add, which compact removes" if self.unused else ""
        )
        return sound + unused + (f"; {counted(self.lost, 'item')} lost in the repair" if self.lost else "")


def describe(header: Mapping[str, Any], manifest: Manifest, store: Store) -> dict[str, Any]:
    """Return the settings of an index, and what it holds."""
    rows = sum(entry.rows for entry in manifest.segments)
    used = sum(facts[0] for _, facts in manifest.parts())
    return {
        **{name: value for name, value in header.items() if name not in ("common", "common_checksum")},
        "count": manifest.live,
        "removed": rows - manifest.live,
        "different": sum(entry.entries for entry in manifest.segments),
        "ids": manifest.ids,
        **({"dimension": manifest.dimension, "dtype": manifest.dtype} if header["items"] == "vectors" else {}),
        "segments": [entry.rows for entry in manifest.segments],
        "generation": manifest.generation,
        "bytes_used": used,
        "bytes_on_disk": store.size(),
        "bytes_per_item": round(used / rows, 1) if rows else None,
    }


def check_index(change: Change, scheme: AnyScheme, threads: int, repair: bool) -> Report:
    """Check every value against its checksum; with `repair`, keep what is sound."""
    store = change.store
    with store.read(fresh=True) as snapshot:
        manifest = read_manifest(snapshot, store.where)
        facts = dict(manifest.parts())
        damaged = {name for name, stored in facts.items() if not _is_sound(snapshot.get(name), stored)}
        unused = [name for name in snapshot.names() if name not in facts and name not in OWN_VALUES]
    if damaged and not repair:
        lost = _lost(manifest, damaged)
        raise DamagedError(
            f"{store.where}: {counted(len(damaged), 'value')} of {len(facts):,} damaged, such as {min(damaged)}; "
            f"check with repair=True keeps all items but {lost:,} of {manifest.live:,}"
        )
    report = Report(manifest.live, len(facts), sum(size for size, _ in facts.values()), len(unused))
    if not repair:
        return report
    if damaged:
        salvage(change, scheme, damaged, threads)
        with store.read() as snapshot:
            now = read_manifest(snapshot, store.where)
        facts = dict(now.parts())
        size = sum(size for size, _ in facts.values())
        return Report(now.live, len(facts), size, 0, manifest.live - now.live)
    if unused:
        store.write(partial(_delete, unused))
    return replace(report, unused=0)


def _delete(names: list[str], transaction: Transaction) -> None:
    for name in names:
        transaction.delete(name)


def _is_sound(data: memoryview | None, stored: list[int]) -> bool:
    return data is not None and len(data) == stored[0] and zlib.crc32(data) == stored[1]


def _lost(manifest: Manifest, damaged: set[str]) -> int:
    """Return about how many items cannot be kept: removed ones and those with a set in another chunk not counted."""
    lost = 0
    for segment in manifest.segments:
        if segment.grouped and damaged & {f"{segment.name}/groups", f"{segment.name}/members"}:
            lost += segment.live
        else:
            gone = sum(chunk.rows for chunk in segment.chunks if damaged & set(part_values(chunk)))
            lost += min(gone, segment.live)
    return lost


def salvage(change: Change, scheme: AnyScheme, damaged: set[str], threads: int) -> None:
    """Write the index anew from the chunks that are sound: their sets, ids and documents, and tables made from them.

    If the list of removed items is damaged, it is used as it is.
    """
    where = change.store.where

    def rewritten(old: Snapshot, write: Write) -> None:
        manifest = read_manifest(old, where)
        segments: list[Any] = []
        for entry in manifest.segments:
            if isinstance(scheme, VectorScheme):
                for chunk in _sound_vectors(old, entry, damaged, where):
                    part = segment_of_chunk(scheme, chunk, threads)
                    segments.append(
                        replace(part, chunks=[PlacedChunk(write(partial(put_chunk, chunk=chunk)), EMPTY_CHUNK)])
                    )
                continue
            for sets, ids, texts in _sound_items(old, entry, damaged, where):
                made = make_segment(scheme, sets, ids, texts, threads)
                chunks: list[ChunkData | PlacedChunk] = [
                    PlacedChunk(write(partial(put_chunk, chunk=one)), EMPTY_CHUNK)
                    for one in made.chunks
                    if isinstance(one, ChunkData)
                ]
                segments.append(replace(made, chunks=chunks))
        change.finish(old, write, manifest, segments)

    change.store.rewrite(rewritten)


def _sound_items(
    snapshot: Snapshot, entry: SegmentEntry, damaged: set[str], where: str
) -> Iterator[tuple[Sets, Any, TextChunk | None]]:
    """Yield the items of the sound chunks of a segment that were not removed and whose sets are in a sound chunk."""
    of = np.arange(entry.rows)
    if entry.grouped:
        if damaged & {f"{entry.name}/groups", f"{entry.name}/members"}:
            return
        groups, members = (stored_array(snapshot, entry, name, np.uint32, where) for name in ("groups", "members"))
        of[members] = np.repeat(np.arange(entry.units), groups[1:] - groups[:-1])
    live = _live_rows(snapshot, entry)
    sound = {
        number: chunk_view(snapshot, chunk, where)
        for number, chunk in enumerate(entry.chunks)
        if not damaged & set(part_values(chunk))
    }
    firsts = np.cumsum([0, *(chunk.units for chunk in entry.chunks)])
    home = np.searchsorted(firsts, of, side="right") - 1
    live &= np.isin(home, list(sound))
    row = 0
    for number, chunk in enumerate(entry.chunks):
        rows = np.flatnonzero(live[row : row + chunk.rows])
        if number in sound and len(rows):
            units, homes = of[row + rows], home[row + rows]
            parts = [sound[int(one)].sets.take(units[homes == one] - firsts[one]) for one in np.unique(homes)]
            places = np.argsort(np.concatenate([np.flatnonzero(homes == one) for one in np.unique(homes)]))
            data = sound[number]
            texts = data.some_texts(rows) if "texts" in data.arrays else None
            yield _wide(concatenate(parts).take(places)), data.ids(rows), texts
        row += chunk.rows


def _live_rows(snapshot: Snapshot, entry: SegmentEntry) -> NDArray[np.bool_]:
    """Return which rows were not removed."""
    live = np.ones(entry.rows, bool)
    dead = snapshot.get(f"{entry.name}/dead")
    if entry.dead and dead is not None:
        flags = np.unpackbits(np.frombuffer(dead, np.uint8), bitorder="little")[: entry.rows]
        live[: len(flags)] = flags == 0
    return live


def _sound_vectors(snapshot: Snapshot, entry: SegmentEntry, damaged: set[str], where: str) -> Iterator[ChunkData]:
    """Yield the sound chunks of a segment of vectors, without rows that were removed."""
    live = _live_rows(snapshot, entry)
    row = 0
    for chunk in entry.chunks:
        rows = np.flatnonzero(live[row : row + chunk.rows])
        if len(rows) and not damaged & set(part_values(chunk)):
            yield thinned(chunk_view(snapshot, chunk, where), rows, rows)
        row += chunk.rows


def _wide(sets: Sets) -> Sets:
    return Sets(sets.values.astype(np.uint64), sets.offsets)
