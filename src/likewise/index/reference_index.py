"""An index as what new documents are compared with: `dedup(against=index)` asks it, and adds what was kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, Texts
from likewise.base.copies import set_digests
from likewise.errors import IncompatibleError, InputError
from likewise.index.chunk import ChunkData, sets_of_units
from likewise.index.index import Index
from likewise.index.item_ids import as_ids, fitted_ids
from likewise.index.scheme import IndexQuestion
from likewise.index.segment import unit_of_rows
from likewise.index.set_scheme import MinHashScheme
from likewise.index.view import IndexView, SegmentView
from likewise.jobs.reference_items import QueriedItems, SimilarItems, chunk_digests, marks
from likewise.kernels.lookup import sort_sets
from likewise.search.band_keys import HeldKeys
from likewise.search.items import Items, TextItems
from likewise.search.sketch import SketchPlan

OWNER = "dedup"
ROWS = 1 << 13
"""Items whose sets are read at a time."""


class ReferenceIndex(QueriedItems):
    """An index of documents, for a run."""

    def __init__(self, given: Any) -> None:
        self._own = not isinstance(given, Index)
        self._index = Index.open(given) if self._own else given
        self.where = self._index.where
        try:
            self.settings = self._settings()
        except BaseException:
            self.close()
            raise

    @property
    def _scheme(self) -> MinHashScheme:
        scheme = self._index.scheme
        if not isinstance(scheme, MinHashScheme) or scheme.shingler is None:
            raise IncompatibleError(f"{self.where}: this index does not hold documents, which dedup compares")
        return scheme

    def _settings(self) -> dict[str, Any]:
        scheme = self._scheme
        minhash, banding = scheme.minhash, scheme.banding
        tables = {"seed": minhash.seed, "sketch": minhash.method, "bands": banding.b, "rows": banding.r}
        more = {"ignore_common": None, "method": "lsh"}
        return {"threshold": scheme.threshold, "shingle": scheme.shingler, **tables, **more}

    @property
    def common(self) -> Hashes:
        """The shingles that the index leaves out."""
        return self._scheme.common

    @property
    def place(self) -> str:
        """The folder or the URL."""
        return self.where if "://" in self.where else os.path.abspath(self.where)

    @property
    def count(self) -> int:
        """The number of items."""
        return len(self._index)

    def similar(self, batches: Iterable[Sets], most: int, threads: int) -> Iterator[SimilarItems]:
        """Yield the items that are similar to one or more of these sets; all are of one snapshot."""
        scheme = self._scheme
        question = IndexQuestion("jaccard", scheme.threshold, most)
        with self._index.snapshot() as view:
            found, equal = np.zeros((2, int(view.starts[-1])), bool)
            for sets in batches:
                _, rows, similarity = scheme.similar(view, _sorted(sets), question, threads)
                found[rows] = True
                equal[rows[similarity == 1.0]] = True
            for segment, start in zip(view.segments, view.starts, strict=False):
                here = found[start : start + segment.entry.rows]
                same = equal[start : start + segment.entry.rows]
                yield from self._some(view, segment, int(start), np.flatnonzero(here), same)

    def _some(
        self, view: IndexView, segment: SegmentView, start: int, rows: Ints, same: NDArray[np.bool_]
    ) -> Iterator[SimilarItems]:
        """Yield some rows of a segment; documents are read if they may be identical to one that was asked about."""
        of = _units(segment) if len(rows) else rows
        for at in range(0, len(rows), ROWS):
            some = rows[at : at + ROWS]
            sets = _sets(segment, of[some])
            digests, units = marks(f"{self.place}#{start}", len(some), at), set_digests(sets)
            if self._scheme.texts:
                for place, texts in _documents(segment.chunks, some, np.flatnonzero(same[some])):
                    digests[place] = chunk_digests(texts, np.arange(len(texts)))
                    units[place] = self._shingles(texts)
            yield SimilarItems(view.ids(some + start), sets, digests, units)

    def _shingles(self, texts: TextChunk) -> Hashes:
        """Return the fingerprints of the shingles of documents, by which a search finds equal ones."""
        scheme = self._scheme
        assert scheme.shingler is not None
        items = TextItems(Texts([texts]), scheme.shingler, common=scheme.left_out)
        keys = HeldKeys(np.empty((len(texts), scheme.banding.b), np.uint32))
        return items.keys(np.arange(len(texts)), SketchPlan(scheme.minhash, scheme.banding, keys))

    def fitting(self, ids: Any) -> Any:
        """Return ids as those of the index are."""
        try:
            return fitted_ids(as_ids(ids, OWNER), self._index.info()["ids"])
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from error

    def absent(self, ids: Any, items: Items, rows: Ints, threads: int) -> NDArray[np.bool_]:
        """Return which of these rows are not in the index; raise if an id is there with another set."""
        with self._index.snapshot() as view:
            places = view.find(ids)
            there = np.flatnonzero(places >= 0)
            for place, sets in items.set_batches(rows[there], threads):
                known = np.zeros((len(sets), 2), np.uint64)
                wanted = places[there[place]]
                for segment, start in zip(view.segments, view.starts, strict=False):
                    mine = np.flatnonzero((wanted >= start) & (wanted < start + segment.entry.rows))
                    if len(mine):
                        known[mine] = set_digests(_sets(segment, _units(segment)[wanted[mine] - start]))
                differ = np.flatnonzero((known != set_digests(sets)).any(axis=1))
                if len(differ):
                    name = ids[int(there[place][differ[0]])].as_py()
                    raise InputError(
                        f"{self.where}: the id {name!r} is in the index already, with another document; nothing was "
                        "written or added: name a column with ids of their own, or remove that item first"
                    )
        absent: NDArray[np.bool_] = places < 0
        return absent

    def add(self, batches: Iterable[tuple[Any, Any]]) -> None:
        """Add ids and documents, all or none."""
        self._index.add_batches(batches)

    def close(self) -> None:
        """Close the index, unless it is the user's."""
        if self._own:
            self._index.close()


def _sorted(sets: Sets) -> Sets:
    """Return sets with their elements in ascending order, as queries need them."""
    values = np.array(sets.values, np.uint64)
    sort_sets(values, sets.offsets)
    return Sets(values, sets.offsets)


def _units(segment: SegmentView) -> Ints:
    """Return the set of every row."""
    return unit_of_rows(segment.entry.rows, segment.grouping())


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
