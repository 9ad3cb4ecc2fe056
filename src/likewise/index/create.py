"""What an index is made of: a place, in a folder or on a server, and settings, given, stored, or those of a run."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import TextChunk, Texts, to_arrow
from likewise.base.runlog import Tick
from likewise.errors import DamagedError, ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.index.lmdb_store import LmdbStore
from likewise.index.redis_server import EXAMPLE, SCHEMES, is_url
from likewise.index.set_scheme import DEFAULT_ITEMS, MinHashScheme
from likewise.index.store import COMMON, Manifest, Snapshot, Store
from likewise.index.vector_scheme import VectorScheme, empty_manifest
from likewise.io.stores import PACKAGES
from likewise.jobs.against import EarlierRun
from likewise.search.vectors.spaces import SPACES

AnyScheme = MinHashScheme | VectorScheme
OF_SETS: dict[str, Any] = {
    "shingle": "words:5", "threshold": 0.8, "sketch": "fast", "bands": None, "rows": None,
    "max_slots": DEFAULT_MAX_SLOTS, "items": DEFAULT_ITEMS, "containment": False, "texts": None,
}  # fmt: skip
"""Settings of documents and sets only, and their defaults."""
OF_VECTORS: dict[str, Any] = {"within": None, "dimension": None, "dtype": None}
"""Settings of vectors only, and their defaults."""
TOGETHER, ROWS = 1 << 26, 1 << 17
"""Bytes of documents, and documents, that are added in one transaction; that takes a few times as much memory."""


def index_place(owner: str, path: object) -> str | Path:
    """Return the URL or the folder of an index.

    >>> index_place("Index.open", "redis://localhost/0?name=library")
    'redis://localhost/0?name=library'
    >>> index_place("Index.open", "library")
    PosixPath('library')
    """
    if isinstance(path, str) and is_url(path):
        scheme = path.partition("://")[0].lower()
        if scheme in PACKAGES:
            raise ParameterError(
                f"The 'path' parameter of {owner} must be a folder on this machine or the URL of a Redis server, such "
                f"as {EXAMPLE}; an index cannot be in a store ({scheme}://)."
            )
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


def new_scheme(owner: str, measure: str, recall: float, seed: int, **given: Any) -> tuple[AnyScheme, Manifest]:
    """Check what the user gave; return the settings of an index, and its manifest while it is empty."""
    checks.choice(owner, "measure", measure, ("jaccard", *SPACES))
    sets = measure == "jaccard"
    others, why = (OF_VECTORS, "for documents and sets") if sets else (OF_SETS, "for vectors")
    checks.unused(owner, {name: (given[name], default) for name, default in others.items()}, why)
    mine = {name: given[name] for name in (OF_SETS if sets else OF_VECTORS)}
    if sets:
        return MinHashScheme.of(owner, recall=recall, seed=seed, **mine), Manifest()
    scheme = VectorScheme.of(owner, measure, mine["within"], recall, seed, mine["dimension"])
    return scheme, empty_manifest(owner, measure, mine["dimension"], mine["dtype"])


def stored_scheme(header: Mapping[str, Any], snapshot: Snapshot, where: str) -> AnyScheme:
    """Return the settings of an index that was made before."""
    common = bytes(snapshot.get(COMMON) or b"")
    if zlib.crc32(common) != header.get("common_checksum", zlib.crc32(common)):
        raise DamagedError(
            f"{where}: the list of common shingles of the index is damaged; restore a copy of the index, or make it "
            "again from its items"
        )
    if header["family"] == "cells":
        return VectorScheme.restored(header)
    return MinHashScheme.restored(header, np.frombuffer(common, np.uint64), where)


class KeptRun:
    """The documents that a finished run kept."""

    def __init__(self, directory: Any) -> None:
        self._run = EarlierRun(directory)
        self._state = self._run.state
        self.count = len(self._run.items)

    def scheme(self, owner: str, containment: bool, texts: bool | None) -> MinHashScheme:
        """Return the settings of the run; bands and rows are chosen here if its search was exact."""
        parameters = self._state.run["parameters"]
        known = {name: self._run.settings[name] for name in ("shingle", "threshold", "seed", "sketch", "bands", "rows")}
        slots = DEFAULT_MAX_SLOTS if known["bands"] else parameters["max_slots"]
        more = {"recall": parameters["recall"], "max_slots": slots, "items": DEFAULT_ITEMS}
        scheme = MinHashScheme.of(owner, containment=containment, texts=texts, **known, **more)
        return replace(scheme, common=self._state.common)

    def batches(self, threads: int, tick: Tick) -> Iterator[tuple[Any, Texts]]:
        """Yield the ids and the documents, many at a time."""
        items = self._run.items
        ids = self._state.ids.take(to_arrow(self._state.kept))
        waiting: list[TextChunk] = []
        done = rows = size = 0
        for chunk, _, place in items.chunks(np.arange(len(items)), threads):
            waiting.append(chunk)
            rows, size = place.stop - done, size + int(chunk.offsets[-1] - chunk.offsets[0])
            if size >= TOGETHER or rows >= ROWS or place.stop == len(items):
                yield ids.slice(done, rows), Texts(waiting)
                tick(rows)
                waiting, done, rows, size = [], place.stop, 0, 0
