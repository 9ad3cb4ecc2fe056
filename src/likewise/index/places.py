"""Where an index is: in a folder, or on a server."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.base import checks
from likewise.errors import ParameterError
from likewise.index.lmdb_store import LmdbStore
from likewise.index.redis_server import SCHEMES, is_url
from likewise.index.store import Store


def index_place(owner: str, path: object) -> str | Path:
    """Return the URL or the folder of an index.

    >>> index_place("Index.open", "redis://localhost/0?name=library")
    'redis://localhost/0?name=library'
    >>> index_place("Index.open", "library")
    PosixPath('library')
    """
    if isinstance(path, str) and is_url(path):
        return path
    if isinstance(path, os.PathLike) and str(path).startswith(tuple(f"{scheme}:/" for scheme in SCHEMES)):
        raise ParameterError(
            f"The 'path' parameter of {owner} must be a string if it is a URL. A Path cannot hold one."
        )
    return checks.path(owner, "path", path)


def store_at(owner: str, place: str | Path, create: bool = False) -> Store:
    """Open the store of an index, or make it."""
    if isinstance(place, Path):
        return LmdbStore(place, create)
    from likewise.index.redis_store import RedisStore

    return RedisStore(place, create, owner)
