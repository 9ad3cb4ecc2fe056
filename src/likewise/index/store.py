"""What an index needs of a store: large values by name, read in snapshots, changed in transactions; and what it says
of itself there.

A store is any class with these methods; tests/index/test_store_contract.py says what it must do. Values of a snapshot
are buffers that are valid until the snapshot ends, and may be views of the store's own memory.

The header never changes, every change replaces the manifest; both are JSON with a checksum before it. The manifest
lists the segments and, of every value, its size and checksum.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, TypeVar

from likewise.errors import DamagedError, IncompatibleError

R = TypeVar("R")
FORMAT = 1
"""Version of what is stored of documents and sets."""
VECTOR_FORMAT = 2
"""Version of what is stored of vectors; an index of a later version is not opened."""
HEADER, MANIFEST, COMMON = "header", "manifest", "common"
Values = dict[str, list[int]]
"""The values of a part by name: bytes and CRC-32."""


class Snapshot(Protocol):
    """The values of a store at one moment, whatever is written meanwhile."""

    place: object
    """Equal to that of another snapshot only if all values are the same, and what one has returned stays valid."""
    lasting: bool
    """Whether reading takes a while and is possible after the snapshot has ended: then values are read late."""

    def known(self, name: str) -> memoryview | None:
        """Return a value that can be had without delay; None if it must be fetched, or if there is none."""
        return self.get(name)

    def get_many(self, names: Iterable[str]) -> dict[str, memoryview | None]:
        """Return values by name, as `get` does; a remote store fetches them together."""
        return {name: self.get(name) for name in names}

    def get(self, name: str) -> memoryview | None:
        """Return a value, at an address divisible by eight; None if there is none of this name."""

    def get_range(self, name: str, begin: int, end: int) -> bytes | None:
        """Return some bytes of a value; None if there is none of this name. A remote store fetches no others."""

    def names(self) -> Iterator[str]:
        """Yield the names of all values, in order."""


class Transaction(Snapshot, Protocol):
    """Changes that are all made or not at all; it reads what it has written."""

    def put(self, name: str, value: Any) -> None:
        """Set a value: anything that has the buffer protocol."""

    def delete(self, name: str) -> None:
        """Remove a value, if there is one of this name."""


class Write(Protocol):
    """Makes a change in a transaction and commits it."""

    def __call__(self, change: Callable[[Transaction], R], /) -> R:
        """Return what the change returns."""


class Store(Protocol):
    """A place that keeps values."""

    where: str
    """What error messages call it."""

    @property
    def address(self) -> str:
        """By which another process opens it, whatever its folder and environment; may have a password."""

    def read(self, fresh: bool = False) -> AbstractContextManager[Snapshot]:
        """Return a snapshot of what is committed. fresh: read values where they are stored, whatever is in memory."""

    def write(self, change: Callable[[Transaction], R]) -> R:
        """Make a change and commit it durably; nothing is changed if it raises. It may be called several times.

        There is one writer at a time; others wait.
        """

    def rewrite(self, change: Callable[[Snapshot, Write], R]) -> R:
        """Replace everything by what `change` writes, and give the space back. Nothing is replaced if it raises.

        `change` is given the old values and a function that writes new ones, in as many transactions as it likes. There
        is no other writer meanwhile. It may be called several times.
        """

    def size(self) -> int:
        """Return the bytes that the store takes on disk, or on its server."""

    def destroy(self) -> None:
        """Remove the store, and what it holds."""

    def close(self) -> None:
        """Let go of the store."""


class StoredPart:
    """A segment or a chunk: a name, and values with their sizes and checksums."""

    name: str
    values: Values

    @property
    def names(self) -> dict[str, list[int]]:
        """The full names of its values, with their sizes and checksums."""
        return {f"{self.name}/{name}": facts for name, facts in self.values.items()}


@dataclass(frozen=True)
class ChunkEntry(StoredPart):
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
class SegmentEntry(StoredPart):
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

    @property
    def live(self) -> int:
        """Items that were not removed."""
        return sum(segment.live for segment in self.segments)

    def changed(self, **values: Any) -> Manifest:
        """Return the next state."""
        return replace(self, generation=self.generation + 1, **values)

    def values(self) -> dict[str, list[int]]:
        """Return the full names of all values, with their sizes and checksums."""
        parts = [part for segment in self.segments for part in (segment, *segment.chunks)]
        return {name: facts for part in parts for name, facts in part.names.items()}


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
