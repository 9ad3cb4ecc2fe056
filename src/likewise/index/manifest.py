"""What an index says of itself: the header, which never changes, and the manifest, which every change replaces.

Both are JSON with a checksum before it. The manifest lists the segments and, of every value, its size and checksum.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from likewise.errors import DamagedError, IncompatibleError
from likewise.index.store import Snapshot, Transaction

FORMAT = 1
"""Version of what is stored of documents and sets."""
VECTOR_FORMAT = 2
"""Version of what is stored of vectors; an index of a later version is not opened."""
HEADER, MANIFEST, COMMON = "header", "manifest", "common"
Values = dict[str, list[int]]
"""The values of a part by name: bytes and CRC-32."""


@dataclass(frozen=True)
class ChunkEntry:
    """Some of the sets of a segment, and the ids and texts of some of its rows."""

    name: str
    rows: int
    units: int
    elements: int
    width: int
    bytes: int
    values: Values

    @property
    def codes(self) -> int:
        """The bytes of the codes of its vectors, if it has vectors."""
        if "vectors" in self.values:
            return self.elements
        return self.values.get("bits", [0])[0]


@dataclass(frozen=True)
class SegmentEntry:
    """Items that were added together or merged: tables of their sets, and chunks with the data.

    rows: items, the removed ones included. units: different sets, or sets that were different when they were added.
    entries: sets in a band of the table. shingles: entries of the table of shingles. dead: rows that were removed.
    """

    name: str
    rows: int
    units: int
    entries: int
    shingles: int
    grouped: bool
    dead: int
    values: Values
    chunks: list[ChunkEntry]

    @property
    def live(self) -> int:
        """Items that were not removed."""
        return self.rows - self.dead

    @property
    def table(self) -> int:
        """The bytes of the largest table."""
        codes = sum(chunk.codes for chunk in self.chunks)
        return max(codes, *(self.values.get(name, [0])[0] for name in ("keys", "shingles")))


@dataclass(frozen=True)
class Manifest:
    """The state of an index. generation: how often it was changed. numbered: the next id of items that are added
    without ids. ids: their type, "int64", "string" or None if there are none yet. dimension, dtype: of vectors, if it
    has any or they were said before; dtype "bits" for those that are compared by hamming distance.
    """

    generation: int = 0
    numbered: int = 0
    ids: str | None = None
    segments: list[SegmentEntry] = field(default_factory=list)
    dimension: int | None = None
    dtype: str | None = None

    def with_vectors(self, dimension: int | None, dtype: str | None) -> Manifest:
        """Return the state of an index with such vectors."""
        return replace(self, dimension=dimension, dtype=dtype)

    @property
    def live(self) -> int:
        """Items that were not removed."""
        return sum(segment.live for segment in self.segments)

    def changed(self, **values: Any) -> Manifest:
        """Return the next state."""
        return replace(self, generation=self.generation + 1, **values)

    def parts(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the full name of every value, and its size and checksum."""
        for segment in self.segments:
            parts: list[SegmentEntry | ChunkEntry] = [segment, *segment.chunks]
            for part in parts:
                for name, facts in part.values.items():
                    yield f"{part.name}/{name}", facts


def pack(content: dict[str, Any]) -> bytes:
    """Return an object as JSON with its checksum before it."""
    data = json.dumps(content, separators=(",", ":")).encode()
    return zlib.crc32(data).to_bytes(4, "little") + data


def unpack(data: Any, what: str) -> dict[str, Any]:
    """Return the object that `pack` packed."""
    whole = bytes(data)
    if len(whole) < 6 or zlib.crc32(whole[4:]).to_bytes(4, "little") != whole[:4]:
        raise DamagedError(f"{what} is damaged: its checksum is not that of its content; run index check")
    content: dict[str, Any] = json.loads(whole[4:])
    return content


def read_header(snapshot: Snapshot, where: str) -> dict[str, Any]:
    """Return the header of an index."""
    data = snapshot.get(HEADER)
    if data is None:
        raise DamagedError(f"{where}: the index was not finished: remove it and make it again")
    header = unpack(data, f"{where}: the header of the index")
    if header["format"] > VECTOR_FORMAT:
        raise IncompatibleError(
            f"{where}: the index has format {header['format']}, made by likewise {header['likewise']}; this version "
            f"knows formats up to {VECTOR_FORMAT}: install a newer one"
        )
    return header


def read_manifest(snapshot: Snapshot, where: str) -> Manifest:
    """Return the manifest of an index."""
    data = snapshot.get(MANIFEST)
    if data is None:
        raise DamagedError(f"{where}: the index has no manifest: remove it and make it again")
    content = unpack(data, f"{where}: the manifest of the index")
    segments = [
        SegmentEntry(**{**one, "chunks": [ChunkEntry(**chunk) for chunk in one["chunks"]]})
        for one in content.pop("segments")
    ]
    return Manifest(segments=segments, **content)


def write_manifest(transaction: Transaction, manifest: Manifest) -> None:
    """Replace the manifest."""
    content = asdict(manifest)
    if manifest.dimension is None and manifest.dtype is None:
        del content["dimension"], content["dtype"]  # format 1 does not have them
    transaction.put(MANIFEST, pack(content))


def part_values(part: SegmentEntry | ChunkEntry) -> list[str]:
    """Return the full names of the values of a part."""
    return [f"{part.name}/{name}" for name in part.values]
