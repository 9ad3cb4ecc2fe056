"""What an index holds, whether it is sound, and how it is mended."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.words import counted
from likewise.errors import DamagedError
from likewise.index.change import Change, written
from likewise.index.chunk import ChunkData, sets_of_units
from likewise.index.segment import Segment, unit_of_rows
from likewise.index.store import (
    COMMON,
    HEADER,
    MANIFEST,
    Manifest,
    SegmentEntry,
    Snapshot,
    Store,
    Transaction,
    Write,
    read_manifest,
)
from likewise.index.view import as_array, chunk_view

OWN_VALUES = {HEADER, MANIFEST, COMMON}
"""Values that do not belong to a segment."""


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
    used = sum(size for size, _ in manifest.values().values())
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


def check_index(change: Change, repair: bool) -> Report:
    """Check every value against its checksum; with `repair`, keep what is sound."""
    store = change.store
    with store.read(fresh=True) as snapshot:
        manifest = read_manifest(snapshot, store.where)
        facts = manifest.values()
        damaged = {name for name, stored in facts.items() if not _is_sound(snapshot.get(name), stored)}
        unused = [name for name in snapshot.names() if name not in facts and name not in OWN_VALUES]
    if damaged and not repair:
        lost = _lost(manifest, damaged)
        raise DamagedError(
            f"{store.where}: {counted(len(damaged), 'value')} of {len(facts):,} damaged, such as {min(damaged)}; "
            f"check with repair=True keeps all items but {lost:,} of {manifest.live:,}"
        )
    before = manifest.live
    if damaged:
        _salvage(change, damaged)
        with store.read() as snapshot:
            manifest = read_manifest(snapshot, store.where)
        facts, unused = manifest.values(), []
    elif unused and repair:
        store.write(partial(_delete, unused))
        unused = []
    size = sum(size for size, _ in facts.values())
    return Report(manifest.live, len(facts), size, len(unused), before - manifest.live)


def _delete(names: list[str], transaction: Transaction) -> None:
    for name in names:
        transaction.delete(name)


def _is_sound(data: memoryview | None, stored: list[int]) -> bool:
    return data is not None and len(data) == stored[0] and zlib.crc32(data) == stored[1]


def _is_groupless(entry: SegmentEntry, damaged: set[str]) -> bool:
    """Tell whether it is not known any more which sets the rows have."""
    return entry.grouped and bool(damaged & {f"{entry.name}/groups", f"{entry.name}/members"})


def _lost(manifest: Manifest, damaged: set[str]) -> int:
    """Return about how many items cannot be kept: removed ones and those with a set in another chunk not counted."""
    lost = 0
    for segment in manifest.segments:
        gone = sum(chunk.rows for chunk in segment.chunks if damaged & set(chunk.names))
        lost += segment.live if _is_groupless(segment, damaged) else min(gone, segment.live)
    return lost


def _salvage(change: Change, damaged: set[str]) -> None:
    """Write the index anew from the chunks that are sound: their sets, ids and documents, and tables made from them.

    If the list of removed items is damaged, it is used as it is.
    """

    def rewritten(old: Snapshot, write: Write) -> None:
        manifest = read_manifest(old, change.store.where)
        segments: list[Segment] = []
        for entry in manifest.segments:
            for made in _sound_segments(change, old, entry, damaged):
                chunks = [written(one, write) for one in made.chunks if isinstance(one, ChunkData)]
                segments.append(replace(made, chunks=list(chunks)))
        change.finish(old, write, manifest, segments)

    change.store.rewrite(rewritten)


def _sound_segments(change: Change, old: Snapshot, entry: SegmentEntry, damaged: set[str]) -> Iterator[Segment]:
    """Yield a segment for each sound chunk: of the rows that were not removed and whose sets are in a sound chunk."""
    if _is_groupless(entry, damaged):
        return
    where, grouping = change.store.where, None
    if entry.grouped:
        groups, members = (
            as_array(old.get(f"{entry.name}/{name}"), entry, name, np.uint32, where, set())
            for name in ("groups", "members")
        )
        grouping = groups, members
    of = unit_of_rows(entry.rows, grouping)
    first_rows, first_units = (
        np.cumsum([0, *(getattr(chunk, name) for chunk in entry.chunks)]) for name in ("rows", "units")
    )
    sound = {
        number: chunk_view(old, chunk, where, set())
        for number, chunk in enumerate(entry.chunks)
        if not damaged & set(chunk.names)
    }
    live = _live_rows(old, entry) & np.isin(np.searchsorted(first_units, of, side="right") - 1, list(sound))
    chunks = [(int(first_units[number]), chunk) for number, chunk in sound.items()]
    for number, chunk in sound.items():
        first = int(first_rows[number])
        rows = np.flatnonzero(live[first : first + chunk.rows])
        if len(rows):
            sets = partial(sets_of_units, chunks, of[first + rows])
            yield change.scheme.salvaged(chunk, rows, sets, change.threads)


def _live_rows(snapshot: Snapshot, entry: SegmentEntry) -> NDArray[np.bool_]:
    """Return which rows were not removed."""
    live = np.ones(entry.rows, bool)
    dead = snapshot.get(f"{entry.name}/dead")
    if entry.dead and dead is not None:
        flags = np.unpackbits(np.frombuffer(dead, np.uint8), bitorder="little")[: entry.rows]
        live[: len(flags)] = flags == 0
    return live
