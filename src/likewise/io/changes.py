"""Whether input files have changed since they were read: by size, modification time, and a sample of the content."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from likewise.errors import InputError

PIECE = 1 << 16
"""Bytes read at the beginning, in the middle and at the end of a file for its checksum."""

SAMPLED = 1000
"""Files whose content is sampled, at most: opening a file costs more than reading its pieces."""

FACTS = ("size", "modification time", "content")


def identity(files: Iterable[Path], content: bool = True) -> dict[str, list[int]]:
    """Return [size, modification time, checksum of a sample] for each file, by its absolute path.

    The sample is the beginning, the middle and the end of a file; of more than a thousand files about a thousand, at
    equal distances, are sampled. Without `content` no file is opened.
    """
    paths = list(files)
    step = -(-len(paths) // SAMPLED) or 1
    facts = {}
    for place, path in enumerate(paths):
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
            yield f"the input {name} has changed since (its {which} differs)"
