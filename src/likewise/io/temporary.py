"""Temporary files and folders: they go with their owner, and all of them when an interrupted process ends."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

_places: set[Path] = set()


def register(place: Path, owner: object) -> None:
    """Remove a file or folder when its owner goes, or with `remove_temporary`."""
    _places.add(place)
    weakref.finalize(owner, _forget, place)


def temporary_file(owner: object) -> tuple[int, Path]:
    """Open a new temporary file, which is removed with its owner; return its descriptor and its path."""
    handle, name = tempfile.mkstemp(prefix="likewise-")
    register(Path(name), owner)
    return handle, Path(name)


def remove_temporary() -> None:
    """Remove all temporary files and folders of this process, which is about to end."""
    for place in list(_places):
        _forget(place)


def remove(path: Path) -> None:
    """Remove a file, or a folder with everything in it; nothing happens if a file is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _forget(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(OSError):
            place.unlink(missing_ok=True)
    _places.discard(place)
