"""An index as what new documents are compared with: `dedup(against=index)` asks it, and adds what was kept."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts
from likewise.base.copies import chunk_digests, set_digests
from likewise.base.runlog import Tick
from likewise.errors import IncompatibleError, InputError, LikewiseError
from likewise.index.chunk import ChunkData, sets_of_units
from likewise.index.index import Index
from likewise.index.item_ids import STRING, as_ids, fitted_ids
from likewise.index.scheme import IndexQuestion
from likewise.index.segment import unit_of_rows
from likewise.index.set_scheme import MinHashScheme
from likewise.index.vector_scheme import VectorScheme
from likewise.index.view import IndexView, SegmentView
from likewise.jobs.reference_items import MOST, Growing, QueriedItems, SimilarItems, marks
from likewise.jobs.reference_vectors import NearVectors, QueriedVectors
from likewise.kernels.lookup import sort_sets
from likewise.search.band_keys import HeldKeys
from likewise.search.items import TextItems
from likewise.search.scored import ScoredPairs, concatenated
from likewise.search.sketch import SketchPlan
from likewise.search.vectors.pairs import PairLimit, VectorAim
from likewise.search.vectors.spaces import Space

OWNER = "dedup"
ROWS = 1 << 13
"""Items that are read or asked about at a time."""


class _GrowingIndex(Growing):
    """An index that new items are compared with, and to which they are added. item: what it calls one of them."""

    item: str

    def __init__(self, given: Any) -> None:
        self._own = not isinstance(given, Index)
        self._index = Index.open(given) if self._own else given
        self.where = self._index.where
        try:
            self._take_settings()
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _take_settings(self) -> None:
        """Note the settings that new items must share; raise if it has other items."""

    @property
    def place(self) -> str:
        """The folder or the URL."""
        return self.where if "://" in self.where else os.path.abspath(self.where)

    @property
    def count(self) -> int:
        """The number of items."""
        return len(self._index)

    def fitting(self, ids: Any) -> Any:
        """Return ids as those of the index are."""
        try:
            return fitted_ids(as_ids(ids, OWNER), self._index.info()["ids"])
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from error

    def absent(self, ids: Any, items: Any, rows: Ints, threads: int) -> NDArray[np.bool_]:
        """Return which of these rows are not in the index; raise if an id is there with another item."""
        with self._index.snapshot() as view:
            places = view.find(ids)
            there = np.flatnonzero(places >= 0)
            for place, differ in self._differing(view, places[there], items, rows[there], threads):
                if differ.any():
                    name = ids[int(there[place][np.argmax(differ)])].as_py()
                    raise InputError(
                        f"{self.where}: the id {name!r} is in the index already, with another {self.item}; nothing was "
                        "written or added: name a column with ids of their own, or remove that item first"
                    )
        absent: NDArray[np.bool_] = places < 0
        return absent

    @abstractmethod
    def _differing(
        self, view: IndexView, places: Ints, items: Any, rows: Ints, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Yield which of these items of the index differ from those of a run in these rows, some at a time."""

    def add(self, batches: Iterable[tuple[Any, Any]]) -> None:
        """Add ids and items, all or none."""
        self._index.add_batches(batches)

    def snapshot(self) -> AbstractContextManager[IndexView]:
        """Return what the index holds now."""
        return self._index.snapshot()

    def close(self) -> None:
        """Close the index, unless it is the user's."""
        if self._own:
            self.shut()

    def shut(self) -> None:
        """Close the index, whoever opened it."""
        self._index.close()


class ReferenceIndex(_GrowingIndex, QueriedItems):
    """An index of documents, for a run."""

    item = "document"

    @property
    def _scheme(self) -> MinHashScheme:
        scheme = self._index.scheme
        if isinstance(scheme, VectorScheme):
            raise IncompatibleError(f"{self.where}: this index holds vectors; use measure={scheme.measure!r}")
        if scheme.shingler is None:
            raise IncompatibleError(f"{self.where}: this index does not hold documents, which dedup compares")
        return scheme

    def _take_settings(self) -> None:
        scheme = self._scheme
        minhash, banding = scheme.minhash, scheme.banding
        tables = {"seed": minhash.seed, "sketch": minhash.method, "bands": banding.b, "rows": banding.r}
        more = {"ignore_common": None, "method": "lsh"}
        self.settings = {"threshold": scheme.threshold, "shingle": scheme.shingler, **tables, **more}

    @property
    def common(self) -> Hashes:
        """The shingles that the index leaves out."""
        return self._scheme.common

    def similar(self, batches: Iterable[Sets], most: int, threads: int) -> Iterator[SimilarItems]:
        """Yield the items that are similar to one or more of these sets; all are of one snapshot."""
        with self._index.snapshot() as view:
            found, equal = np.zeros((2, int(view.starts[-1])), bool)
            for rows, same in self.similar_rows(view, batches, most, threads):
                found[rows] = True
                equal[rows[same]] = True
            rows = np.flatnonzero(found)
            yield from self.items(view, rows, equal[rows])

    def similar_rows(
        self, view: IndexView, batches: Iterable[Sets], most: int, threads: int
    ) -> Iterator[tuple[Ints, NDArray[np.bool_]]]:
        """Yield for each batch of sets the rows of similar items, some several times, and which equal a set."""
        scheme = self._scheme
        question = IndexQuestion("jaccard", scheme.threshold, most)
        for sets in batches:
            _, rows, similarity = scheme.similar(view, _sorted(sets), question, threads)
            yield rows, similarity == 1.0

    def items(self, view: IndexView, rows: Ints, equal: NDArray[np.bool_]) -> Iterator[SimilarItems]:
        """Yield the items of these rows, which ascend; documents are read if they may be identical to a new one."""
        cuts = np.searchsorted(rows, view.starts)
        for segment, start, (low, high) in zip(view.segments, view.starts.tolist(), pairwise(cuts), strict=False):
            yield from self._some(view, segment, start, rows[low:high] - start, equal[low:high])

    def _some(
        self, view: IndexView, segment: SegmentView, start: int, rows: Ints, equal: NDArray[np.bool_]
    ) -> Iterator[SimilarItems]:
        """Yield some rows of a segment."""
        of = _units(segment, rows)
        for at in range(0, len(rows), ROWS):
            part = slice(at, at + ROWS)
            some = rows[part]
            sets = _sets(segment, of[part])
            digests, units = marks(self.place, some + start), set_digests(sets)
            if self._scheme.texts:
                for place, texts in _documents(segment.chunks, some, np.flatnonzero(equal[part])):
                    digests[place] = chunk_digests(texts, np.arange(len(texts)))
                    units[place] = self._shingles(texts)
            yield SimilarItems(view.ids(some + start), sets, digests, units)

    def asked(self) -> AskedIndex:
        """Return the index as it is now, for the tasks of a cluster."""
        with self._index.snapshot() as view:
            found, rows = view.manifest, int(view.starts[-1])
            return AskedIndex(self._index.address, self.where, rows, found.live, found.ids == STRING, _state(view))

    def _shingles(self, texts: TextChunk) -> Hashes:
        """Return the fingerprints of the shingles of documents, by which a search finds equal ones."""
        scheme = self._scheme
        assert scheme.shingler is not None
        items = TextItems(Texts([texts]), scheme.shingler, common=scheme.left_out)
        keys = HeldKeys(np.empty((len(texts), scheme.banding.b), np.uint32))
        return items.keys(np.arange(len(texts)), SketchPlan(scheme.minhash, scheme.banding, keys))

    def _differing(
        self, view: IndexView, places: Ints, items: Any, rows: Ints, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        for place, sets in items.set_batches(rows, threads):
            known = np.zeros((len(sets), 2), np.uint64)
            for segment, start in zip(view.segments, view.starts, strict=False):
                mine = np.flatnonzero((places[place] >= start) & (places[place] < start + segment.entry.rows))
                if len(mine):
                    known[mine] = set_digests(_sets(segment, _units(segment, places[place][mine] - start)))
            yield place, (known != set_digests(sets)).any(axis=1)


_OPENED: dict[str, ReferenceIndex] = {}
"""The indexes that this process of tasks has open."""


@dataclass(frozen=True)
class AskedIndex:
    """An index for the tasks of a cluster. address: how to open it, which may have a password and is not shown."""

    address: str = field(repr=False)
    where: str
    rows: int
    live: int
    strings: bool
    state: str

    @contextmanager
    def _view(self) -> Iterator[tuple[ReferenceIndex, IndexView]]:
        """Yield the index and a snapshot; raise if it is in another state."""
        known = self._opened()
        with known.snapshot() as view:
            if _state(view) != self.state:
                raise InputError(
                    f"{self.where}: the index has changed since the run began; leave it alone and run again"
                )
            yield known, view

    def _opened(self) -> ReferenceIndex:
        """Return the index, opened anew if what is open here is in another state: it may be a folder that is gone."""
        known = _OPENED.pop(self.address, None)
        if known is not None:
            with suppress(LikewiseError), known.snapshot() as view:
                if _state(view) == self.state:
                    _OPENED[self.address] = known
                    return known
            known.shut()
        _OPENED[self.address] = known = ReferenceIndex(Index.open(self.address, threads=1))
        return known

    def check(self) -> None:
        """Raise if the index cannot be opened here, or is in another state."""
        with self._view():
            pass

    def similar(self, batches: Iterable[Sets], most: int) -> Iterator[tuple[Ints, NDArray[np.bool_]]]:
        """Yield for each batch of sets the rows of similar items, some several times, and which equal a set."""
        with self._view() as (known, view):
            yield from known.similar_rows(view, batches, most, 1)

    def items(self, rows: Ints, equal: NDArray[np.bool_]) -> Iterator[SimilarItems]:
        """Yield the items of these rows, which ascend. equal: those whose documents may be identical to a new one."""
        with self._view() as (known, view):
            yield from known.items(view, rows, equal)


def _state(view: IndexView) -> str:
    """Return a checksum of all that an index holds, by the checksums of its values."""

    def made() -> str:
        content = json.dumps(asdict(view.manifest), sort_keys=True)
        return blake2b(content.encode(), digest_size=16).hexdigest()

    return view.prepared("state", made)


class ReferenceVectorIndex(_GrowingIndex, QueriedVectors):
    """An index of vectors, for a run."""

    item = "vector"

    @property
    def _scheme(self) -> VectorScheme:
        scheme = self._index.scheme
        if not isinstance(scheme, VectorScheme):
            raise IncompatibleError(f"{self.where}: this index does not hold vectors, which this run compares")
        return scheme

    def _take_settings(self) -> None:
        self.measure, self.within = self._scheme.measure, self._scheme.within

    @property
    def numbered(self) -> int | None:
        """The first number that is free for vectors without ids; None if the ids there are strings."""
        with self._index.snapshot() as view:
            return None if view.manifest.ids == STRING else view.manifest.numbered

    def check_type(self, table: NDArray[Any]) -> None:
        """Raise if vectors like these cannot be added."""
        with self._index.snapshot() as view:
            self._scheme.space(table[:1], view.manifest, self.where, 1, adding=True)

    def near(self, space: Space, aim: VectorAim, tick: Tick) -> NearVectors:
        """Return the vectors that are near one or more of these, at most `MOST` for each; all are of one snapshot."""
        space.look(aim.threads)
        room, found = PairLimit(space, aim), list[ScoredPairs]()
        with self._index.snapshot() as view:
            for start in range(0, len(space), ROWS):
                some = space.chosen(np.arange(start, min(start + ROWS, len(space))), *aim.room)
                query, row, distance = self._scheme.near(view, some, MOST, aim.within, self.where, aim.threads)
                room.take(len(query))
                found.append((query + start, row, distance))
                tick(len(some))
            new, row, _ = concatenated(found)
            rows, known = np.unique(row, return_inverse=True)
            table = self._scheme.unpacked(view.vectors(rows), view.manifest.dimension)
            return NearVectors(view.ids(rows), table, known, new)

    def _differing(
        self, view: IndexView, places: Ints, items: Any, rows: Ints, threads: int
    ) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        for start in range(0, len(rows), ROWS):
            some = slice(start, start + ROWS)
            new = self._scheme.space(items[rows[some]], view.manifest, self.where, threads, adding=True).table
            yield some, (view.vectors(places[some]) != new).any(axis=1)


def _sorted(sets: Sets) -> Sets:
    """Return sets with their elements in ascending order, as queries need them."""
    values = np.array(sets.values, np.uint64)
    sort_sets(values, sets.offsets)
    return Sets(values, sets.offsets)


def _units(segment: SegmentView, rows: Ints) -> Ints:
    """Return the sets of some rows."""
    grouping = segment.grouping() if len(rows) else None
    return rows if grouping is None else unit_of_rows(segment.entry.rows, grouping)[rows]


def _sets(segment: SegmentView, units: Ints) -> Sets:
    """Return sets of a segment, in this order."""
    firsts = np.cumsum([0, *(chunk.units for chunk in segment.chunks)]).tolist()
    return sets_of_units(zip(firsts, segment.chunks, strict=False), units)


def _documents(chunks: list[ChunkData], rows: Ints, wanted: Ints) -> Iterator[tuple[Ints, TextChunk]]:
    """Yield the documents of the wanted ones of these rows of a segment, with their places among the rows."""
    first = 0
    for chunk in chunks:
        low, high = np.searchsorted(rows[wanted], [first, first + chunk.rows])
        mine = wanted[low:high]
        for place, texts in chunk.texts_of(rows[mine] - first):
            yield mine[place], texts
        first += chunk.rows
