"""Checksums of what a run stores: a later command builds on a file only if it is, byte for byte, what was stored.

A sealed JSON file ends with a checksum of itself. Other files have their size and CRC-32 in a sealed JSON file.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from likewise.errors import DamagedError, InputError
from likewise.io.disk import atomic, is_url
from likewise.io.mirror import object_of

BLOCK = 1 << 20
"""Bytes of a file that are read at a time: few enough to stay in the cache of a core."""
DIGITS = 16
"""Hexadecimal digits of the checksum of a JSON file: 64 bits, so that no two runs share one by chance."""
CLOSINGS = ('"}\n', '"\n}\n')
"""What follows the checksum at the end of a JSON file: without and with indentation."""

Facts = list[int]
"""The size of a file and its CRC-32."""


def checksum(path: Path) -> int:
    """Return the CRC-32 of a file."""
    total = 0
    with open(path, "rb", buffering=0) as content:
        block = memoryview(bytearray(max(1, min(BLOCK, os.fstat(content.fileno()).st_size))))
        while count := content.readinto(block):
            total = zlib.crc32(block[:count], total)
    return total


def facts(path: Path) -> Facts:
    """Return the size of a file and its CRC-32."""
    return [path.stat().st_size, checksum(path)]


def fault(path: Path, stored: Facts) -> str:
    """Return how a file differs from what was stored, as the end of a sentence; "" if it does not."""
    try:
        if not path.is_file():
            return "is missing"
        size = path.stat().st_size
        if size != stored[0]:
            return f"is damaged: it has {size:,} bytes and was stored with {stored[0]:,}"
        if checksum(path) != stored[1]:
            return "is damaged: its checksum is not that of what was stored"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return ""


class SealedFiles:
    """Stored files of a folder, by name, with their sizes and checksums; each is checked when it is first used."""

    def __init__(self, folder: Path, stored: Mapping[str, Facts], remedy: str) -> None:
        self._folder = folder
        self._stored = stored
        self._remedy = remedy
        self._sound: set[str] = set()

    def path(self, name: str) -> Path:
        """Return the path of a file; raise DamagedError, which says what to do, if it is not what was stored."""
        path = self._folder / name
        if name not in self._sound:
            wrong = fault(path, self._stored[name]) if name in self._stored else "is not a file that the run stored"
            if wrong:
                raise DamagedError(f"{path} {wrong}; {self._remedy}")
            self._sound.add(name)
        return path

    def facts(self, names: Iterable[str]) -> dict[str, Facts]:
        """Return what was stored of these files, unchecked."""
        return {name: self._stored[name] for name in names}

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)


class SealedFile(io.FileIO):
    """A file that is written from beginning to end and knows the checksum of what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "wb")
        self.size = 0
        self.sum = 0

    def write(self, data: Any, /) -> int:
        """Write some bytes; return how many of them were written."""
        count = super().write(data)
        if count:
            self.sum = zlib.crc32(memoryview(data).cast("B")[:count], self.sum)
            self.size += count
        return count

    def seekable(self) -> bool:
        """Return False: a checksum is that of bytes in their order."""
        return False


def write_sealed(value: Mapping[str, Any], path: Path, indent: int | None = None) -> str:
    """Write an object as JSON that ends with its checksum, atomically; return the checksum."""
    text = json.dumps(value, indent=indent, ensure_ascii=indent is None, default=str)
    head, closing = (text[:-1], CLOSINGS[0]) if indent is None else (text[:-2], CLOSINGS[1])
    head += (", " if indent is None else ",\n" + " " * indent) + '"checksum": "'
    digest = _digest(head.encode(), closing)
    with atomic(path) as out:
        out.write((head + digest + closing).encode())
    return digest


def read_sealed(path: Path, remedy: str) -> tuple[dict[str, Any], str]:
    """Return the object in a JSON file that `write_sealed` wrote, and its checksum.

    Raises FileNotFoundError if there is no file, and DamagedError, which says what to do, if it was changed.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}; {remedy}") from error
    for closing in CLOSINGS:
        end = len(data) - len(closing) - DIGITS
        if end > 0 and data[end:] == (_digest(data[:end], closing) + closing).encode():
            content = json.loads(data)
            return content, content.pop("checksum")
    raise DamagedError(f"{path} is damaged: it does not end with the checksum of its content; {remedy}")


def _digest(head: bytes, closing: str) -> str:
    """Return the checksum of what comes before and after it."""
    return blake2b(head + closing.encode(), digest_size=DIGITS // 2).hexdigest()


PIECE = 1 << 16
"""Bytes read at the beginning, in the middle and at the end of a file for its checksum."""

SAMPLED = 1000
"""Files whose content is sampled, at most: opening a file costs more than reading its pieces."""

FACTS = ("size", "modification time", "content")


def identity(files: Iterable[Path], content: bool = True) -> dict[str, list[int]]:
    """Return [size, modification time, checksum of a sample] for each file, by its absolute path.

    Of a remote object, by its URL, the second is a checksum of its version, and nothing is sampled.

    The sample is the beginning, the middle and the end of a file; of more than a thousand files about a thousand, at
    equal distances, are sampled. Without `content` no file is opened.
    """
    paths = list(files)
    step = -(-len(paths) // SAMPLED) or 1
    facts = {}
    for place, path in enumerate(paths):
        known = object_of(path)
        if known is not None:
            facts[known.url] = [known.size or 0, zlib.crc32(known.version.encode()), 0]
            continue
        try:
            about = path.stat()
            sample = _sampled(path, about.st_size) if content and place % step == 0 else 0
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        facts[os.path.abspath(path)] = [about.st_size, about.st_mtime_ns, sample]
    return facts


def _sampled(path: Path, size: int) -> int:
    total = 0
    with open(path, "rb") as raw:
        for place in sorted({0, max(0, size // 2 - PIECE // 2), max(0, size - PIECE)}):
            raw.seek(place)
            total = zlib.crc32(raw.read(PIECE), total)
    return total


def changed_files(old: dict[str, list[Any]], new: dict[str, list[Any]]) -> Iterator[str]:
    """Yield a sentence for each input file that was added, removed or changed."""
    for name in {**old, **new}:
        if name not in new:
            yield f"the input {name} is no longer given"
        elif name not in old:
            yield f"the input {name} is new"
        elif old[name] != new[name]:
            which = next((what for what, a, b in zip(FACTS, old[name], new[name], strict=False) if a != b), "content")
            which = "version" if which == FACTS[1] and is_url(name) else which
            yield f"the input {name} has changed since (its {which} differs)"
