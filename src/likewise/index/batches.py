"""Items to be added, in parts that fit in one transaction each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise.errors import ParameterError
from likewise.index.manifest import Manifest
from likewise.index.scheme import Scheme, text_chunk
from likewise.index.segment import make_segment
from likewise.index.vector_scheme import VectorScheme, dtype_of
from likewise.index.vector_segment import vector_segment
from likewise.index.view import AnyScheme, AnySegment

BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 27
"""Items, and bytes of them, that are stored in one transaction; more are stored in several, and become part of the
index in the last one."""


class ItemBatch:
    """Some items to be added: their ids, or None, and their sets or vectors."""

    def __init__(self, scheme: AnyScheme, ids: Any, items: Any, texts: Any, threads: int) -> None:
        self.ids = ids
        self.rows = len(items)
        self._made = scheme, items, texts, threads

    def admitted(self, manifest: Manifest, owner: str) -> Manifest:
        """Return the manifest as it will be: vectors that come later must be like these."""
        scheme, items, _, _ = self._made
        if not isinstance(scheme, VectorScheme):
            return manifest
        return scheme.admitted(manifest, items.dimensions, dtype_of(items), owner)

    def segment(self, ids: Any) -> AnySegment:
        """Return the segment."""
        scheme, items, texts, threads = self._made
        if isinstance(scheme, VectorScheme):
            return vector_segment(scheme, items, ids, threads)
        return make_segment(scheme, items, ids, texts, threads)


def item_parts(
    scheme: AnyScheme, ids: Any, items: Any, manifest: Manifest, threads: int, owner: str
) -> Iterator[ItemBatch]:
    """Yield items in parts that fit in a transaction."""
    if isinstance(scheme, VectorScheme):
        return _vector_parts(scheme, ids, items, manifest, threads, owner)
    return _set_parts(scheme, ids, items, threads, owner)


def _vector_parts(
    scheme: VectorScheme, ids: Any, items: Any, manifest: Manifest, threads: int, owner: str
) -> Iterator[ItemBatch]:
    space = scheme.space(items, manifest, owner, threads, adding=True)
    check_count(ids, len(space), owner)
    each = max(1, space.table.nbytes // max(1, len(space)))
    step = max(1, min(BATCH_ROWS, BATCH_BYTES // each))
    for start in range(0, len(space), step):
        rows = np.arange(start, min(start + step, len(space)))
        some = None if ids is None else ids.slice(start, len(rows))
        yield ItemBatch(scheme, some, space.chosen(rows, 1 << 62, None), None, threads)


def _set_parts(scheme: Scheme, ids: Any, items: Any, threads: int, owner: str) -> Iterator[ItemBatch]:
    documents = scheme.documents(items, owner)
    whole = text_chunk(documents) if documents is not None else None
    sets = scheme.sets(items, owner, threads) if whole is None else None
    count = len(whole) if whole is not None else len(sets or ())
    check_count(ids, count, owner)
    offsets = whole.offsets if whole is not None else sets.offsets * 8 if sets is not None else np.zeros(1, np.int64)
    start = 0
    while start < count:
        stop = int(np.searchsorted(offsets, offsets[start] + BATCH_BYTES, side="right")) - 1
        stop = min(count, max(start + 1, stop), start + BATCH_ROWS)
        some = None if ids is None else ids.slice(start, stop - start)
        if whole is not None:
            texts = type(whole)(whole.data, whole.offsets[start : stop + 1])
            yield ItemBatch(scheme, some, scheme.chunk_sets(texts, threads), texts if scheme.texts else None, threads)
        elif sets is not None:
            yield ItemBatch(scheme, some, sets.take(np.arange(start, stop)), None, threads)
        start = stop


def check_count(ids: Any, count: int, owner: str) -> None:
    """Raise if ids are given, but not one for each item."""
    if ids is not None and len(ids) != count:
        raise ParameterError(f"{owner}: there are {len(ids):,} ids and {count:,} items")
