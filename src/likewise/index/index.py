"""`Index`: a collection on disk that is asked, again and again, for what is similar to new items."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import Progress, RunLog
from likewise.base.words import counted
from likewise.errors import InputError, LikewiseError, OutputError, ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.index.change import Change, check_found
from likewise.index.create import AnyScheme, KeptRun, index_place, new_scheme, store_at, stored_scheme
from likewise.index.inspect import Report, check_index, describe
from likewise.index.item_ids import as_ids, check_kind, check_unique, kind_of_ids, new_ids
from likewise.index.scheme import ItemBatch, admitted
from likewise.index.segment import Segment
from likewise.index.set_scheme import DEFAULT_ITEMS
from likewise.index.store import (
    COMMON,
    HEADER,
    Manifest,
    Snapshot,
    Store,
    Transaction,
    pack,
    read_header,
    read_manifest,
    write_manifest,
)
from likewise.index.view import OF_IDS, OF_QUERIES, IndexView
from likewise.shingle import Shingler

T = TypeVar("T")
OWNER = "Index"
STREAMED = 1 << 14
"""Items of a stream that are added at a time, each time as a segment of their own."""


class Index:
    """A persistent index of documents, sets or vectors, in a folder or on a Redis server: what is similar to this item?

    Make one with `Index.create` and open it with `Index.open`, in as many processes as you like; one at a time changes
    it. Every change is durable when the call returns. Use it in a `with` statement, or `close` it.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Index.create(f"{folder}/index", shingle="words:2", threshold=0.5) as index:
    ...     index.add(["a", "b"], ["one two three four", "five six seven"])
    ...     index.query(["one two three four five"]).to_pylist()
    2
    [{'id_a': 0, 'id_b': 'a', 'similarity': 0.75}]
    >>> with Index.create(f"{folder}/vectors", measure="l2") as index:
    ...     index.add(["a", "b"], [[0, 0, 1], [3, 4, 1]])
    ...     index.query([[3, 3, 1]], k=1).to_pylist()
    2
    [{'id_a': 0, 'id_b': 'b', 'distance': 1.0}]
    """

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self.where = store.where
        self.threads = threads
        self._lock = threading.Lock()
        self._cached: IndexView | None = None
        with store.read() as snapshot:
            self._header = read_header(snapshot, store.where)
            self.scheme: AnyScheme = stored_scheme(self._header, snapshot, store.where)
        self._change = Change(store, self.scheme, threads)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        measure: str = "jaccard",
        shingle: str | Shingler | None = "words:5",
        threshold: float = 0.8,
        within: float | None = None,
        recall: float = 0.99,
        seed: int = 1,
        sketch: str = "fast",
        bands: int | None = None,
        rows: int | None = None,
        max_slots: int = DEFAULT_MAX_SLOTS,
        items: int = DEFAULT_ITEMS,
        containment: bool = False,
        texts: bool | None = None,
        dimension: int | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> Index:
        """Make an empty index in a new folder, or in an empty one, and open it.

        path: the folder; or the URL of a Redis server with the name of the index, redis://host:6379/0?name=library.
        measure: "jaccard" for documents and sets; for vectors their distance, "angle" (degrees), "l2", "l1", "hamming".

        Documents and sets:
        shingle: how a document becomes a set, as in `dedup`; None for an index of sets.
        threshold, recall: an item with this Jaccard similarity to a query is found with at least this probability;
            queries may ask for a higher threshold, not for a lower one.
        seed, sketch, max_slots: of the signatures, as in `dedup`. items: how many items to expect, by which bands and
            rows are chosen; more can be added. bands, rows: this banding instead.
        containment: also keep a table of all shingles, which queries with measure="containment" need.
        texts: keep the documents, compressed, for `get`; by default they are, in an index of documents.

        Vectors:
        within: the largest distance of an answer; by default there is no limit, and queries must say `k` or `within`.
        recall: the share of the nearest vectors, or of those within a distance, that a query finds on average, if
            queries are distributed as the vectors of the index are.
        dimension, dtype ("float32" or "float64"): of the vectors; by default those of the first ones that are added.
        """
        owner = f"{OWNER}.create"
        place, count = index_place(owner, path), checks.threads(owner, threads)
        scheme, manifest = new_scheme(
            owner, measure, recall, seed, shingle=shingle, threshold=threshold, within=within, sketch=sketch,
            bands=bands, rows=rows, max_slots=max_slots, items=items, containment=containment, texts=texts,
            dimension=dimension, dtype=dtype,
        )  # fmt: skip
        return cls._created(place, scheme, manifest, count)

    @classmethod
    def _created(cls, place: str | Path, scheme: AnyScheme, manifest: Manifest, threads: int) -> Index:
        store = store_at(f"{OWNER}.create", place, create=True)

        def change(transaction: Transaction) -> None:
            if transaction.get(HEADER) is not None:
                raise OutputError(f"{store.where}: there is an index already")
            transaction.put(HEADER, pack(scheme.header()))
            if len(scheme.common):
                transaction.put(COMMON, scheme.common.tobytes())
            write_manifest(transaction, manifest)

        store.write(change)
        return cls(store, threads)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        measure: str | None = None,
        shingle: str | Shingler | None = None,
        threshold: float | None = None,
        within: float | None = None,
        recall: float | None = None,
        seed: int | None = None,
        sketch: str | None = None,
        bands: int | None = None,
        rows: int | None = None,
        containment: bool | None = None,
        texts: bool | None = None,
        threads: int | None = None,
    ) -> Index:
        """Open an index. Its settings are those with which it was made; if one is given and differs, it is an error."""
        owner = f"{OWNER}.open"
        store = store_at(owner, index_place(owner, path))
        try:
            index = cls(store, checks.threads(owner, threads))
            given = {
                "measure": measure, "shingle": shingle, "threshold": threshold, "within": within, "recall": recall,
                "seed": seed, "sketch": sketch, "bands": bands, "rows": rows, "containment": containment,
                "texts": texts,
            }  # fmt: skip
            index.scheme.check_same(store.where, given, owner)
        except BaseException:
            store.close()
            raise
        return index

    @classmethod
    def from_run(
        cls,
        run: str | Path,
        path: str | Path,
        *,
        containment: bool = False,
        texts: bool | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Index:
        """Make an index of the documents that a finished `dedup` kept, in a new folder, with the settings of the run.

        run: the folder of the run. The other parameters are those of `create`. progress: called with (stage, done,
        total).
        """
        owner = f"{OWNER}.from_run"
        place, count = index_place(owner, path), checks.threads(owner, threads)
        log = RunLog.of(progress)
        kept = KeptRun(run)
        index = cls._created(place, kept.scheme(owner, containment, texts), Manifest(), count)
        try:
            with log.stage("add", kept.count) as tick:
                index.add_batches(kept.batches(count, tick))
        except BaseException:
            index.close()
            index._store.destroy()
            raise
        return index

    def close(self) -> None:
        """Close the index; it is opened again if it is used again."""
        with self._lock:
            self._cached = None
            self._store.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _view(self, ahead: Container[str] = ()) -> Iterator[IndexView]:
        """Yield what the index holds now; it stays the same until the end. ahead: arrays that will be read."""
        with self._store.read() as snapshot:
            yield self._seen(snapshot, ahead)

    def _seen(self, snapshot: Snapshot, ahead: Container[str]) -> IndexView:
        """Return what a snapshot holds."""
        view = self._cached
        if view is None or view.place != snapshot.place:
            self._cached = view = self._change.view(snapshot, ahead)
        return view

    def snapshot(self) -> AbstractContextManager[IndexView]:
        """Return what the index holds now, for the other files of this room."""
        return self._view()

    @property
    def address(self) -> str:
        """By which another process opens the index, wherever it runs; that on a server may have a password."""
        return self._store.address

    @property
    def _manifest(self) -> Manifest:
        with self._store.read() as snapshot:
            return read_manifest(snapshot, self.where)

    def __len__(self) -> int:
        return self._manifest.live

    def __contains__(self, id: object) -> bool:
        if not isinstance(id, str | int | np.integer) or isinstance(id, bool):
            return False
        try:
            wanted = as_ids([id], OWNER)
        except (ParameterError, InputError):
            return False
        with self._view(OF_IDS) as view:
            return bool(view.find(wanted)[0] >= 0)

    def __repr__(self) -> str:
        scheme = self.scheme
        return f"<Index {self.where}: {counted(self._manifest.live, 'item')}, {scheme.kind}, {scheme.aim}>"

    def add(self, ids: Any, items: Any, *, replace: bool = False) -> int:
        """Add items, all of them or, if there is an error, none; return how many.

        ids: integers or strings, one kind in an index; None to number the items, from the first number that is free.
        items: documents; for an index of sets lists of tokens or `Sets`; for one of vectors an array with one vector
        per row, lists of numbers, or an Arrow array of lists, for hamming bool or bits packed in unsigned integers. An
        iterator of items, with one of ids or None, is read some at a time.
        replace: items with the same ids are replaced; without it, they are an error.
        """
        owner = f"{OWNER}.add"
        checks.flag(owner, "replace", replace)
        parts = _parts(ids, items, owner) if isinstance(items, Iterator) else [(ids, items)]
        return self.add_batches(parts, replace=replace)

    def add_batches(self, batches: Iterable[tuple[Any, Any]], *, replace: bool = False) -> int:
        """Add items that are given in parts, pairs of ids and items; all become part of the index at once."""
        owner = f"{OWNER}.add"
        segments = self._segments(batches, owner)
        first = next(segments, None)
        if first is None:
            return 0
        second = next(segments, None)
        if second is None:
            return self._add_one(first, replace, owner)
        numbered, rows = self._manifest.numbered, 0
        staged, ids = [], list[Any]()
        for batch in chain([first, second], segments):
            names = new_ids(numbered + rows, batch.rows) if batch.ids is None else batch.ids
            if ids:
                check_kind(kind_of_ids(ids[0]), names, owner)
            staged.append(self._change.stage(batch.segment(names)))
            ids.append(names)
            rows += batch.rows
        names = pa.concat_arrays(ids)
        check_unique(names, owner)
        self._change.publish(staged, names, numbered if first.ids is None else None, first.shape, replace, owner)
        return rows

    def _add_one(self, batch: ItemBatch, replace: bool, owner: str) -> int:
        """Add a single batch in one transaction; ids that are not given depend on what it finds."""
        made: dict[int, tuple[Segment, Any]] = {}
        if batch.ids is not None:
            check_unique(batch.ids, owner)

        def make(numbered: int) -> tuple[Segment, Any]:
            start = numbered if batch.ids is None else 0
            if start not in made:
                ids = new_ids(start, batch.rows) if batch.ids is None else batch.ids
                made[start] = batch.segment(ids), ids
            return made[start]

        make(self._manifest.numbered)
        self._change.add(make, replace, owner)
        return batch.rows

    def _segments(self, batches: Iterable[tuple[Any, Any]], owner: str) -> Iterator[ItemBatch]:
        """Yield the batches, cut where they are too large for one transaction; later vectors must be like earlier."""
        manifest = self._manifest
        for ids, items in batches:
            names = None if ids is None else as_ids(ids, owner)
            for batch in self.scheme.batches(names, items, manifest, self.threads, owner):
                manifest = admitted(manifest, batch.shape, owner)
                yield batch

    def query(
        self,
        items: Any,
        k: int | None = None,
        threshold: float | None = None,
        measure: str | None = None,
        *,
        within: float | None = None,
        ids: Any = None,
    ) -> Any:
        """Return the items of the index that are similar to these, as an Arrow table: id_a, id_b, similarity, or for
        vectors distance.

        id_a is the number of a query, or its id if `ids` are given; id_b is the id of an item of the index. Answers
        are in the order of the queries, the most similar first, ties in the order in which items were added. Every
        similarity or distance is exact.
        items: as in `add`; a single document or vector may be given as it is.
        k: the most answers to each query. threshold: the least similarity; by default that of the index.
        within: for vectors, the largest distance; by default that of the index, if it has one.
        measure: by default that of the index; for documents and sets "jaccard", or "containment", the share of the
            query's shingles that an item has, for which the index must be made with containment=True. Every such item
            is found; an empty query has none.
        """
        names = None if ids is None else as_ids(ids, f"{OWNER}.query")
        query, found, value = self.answers(items, k, threshold, measure, within, names, IndexView.ids)
        left = to_arrow(query) if names is None else names.take(to_arrow(query))
        return pa.Table.from_arrays([left, found, to_arrow(value)], ["id_a", "id_b", self.scheme.measured])

    def answers(
        self,
        items: Any,
        k: int | None,
        threshold: float | None,
        measure: str | None,
        within: float | None,
        ids: Any,
        named: Callable[[IndexView, Ints], T],
    ) -> tuple[Ints, T, NDArray[np.float64]]:
        """Return what `query` makes a table of: the numbers of queries, the ids of items as `named` returns them,
        similarities or distances."""
        owner = f"{OWNER}.query"
        best, scheme = 0 if k is None else checks.whole(owner, "k", k), self.scheme
        question = scheme.question(owner, self.where, best, threshold, measure, within)
        with self._store.read() as snapshot:
            view = self._seen(snapshot, OF_QUERIES)
            query, row, value = scheme.answers(view, items, question, ids, owner, self.threads)
            return query, named(view, row), value

    def remove(self, ids: Any, *, missing: str = "error") -> int:
        """Remove the items with these ids, all of them or, if there is an error, none; return how many.

        missing: what to do with an id that is not in the index, "error" or "skip". The space is used again after
        `compact`.
        """
        owner = f"{OWNER}.remove"
        checks.choice(owner, "missing", missing, ("error", "skip"))
        wanted = as_ids(ids, owner)
        if not len(wanted):
            return 0
        return self._change.remove(wanted, missing == "skip", owner)

    def get(self, ids: Any) -> Any:
        """Return the documents with these ids, as they were added; or the vectors, as an array with a row for each,
        those of bits packed in 64-bit words."""
        owner = f"{OWNER}.get"
        if self.scheme.measured == "similarity" and not self.scheme.texts:
            raise LikewiseError(f"{owner}: {self.where} was made without texts=True, and has no documents")
        wanted = as_ids(ids, owner)
        with self._view(OF_IDS) as view:
            rows = view.find(wanted)
            check_found(wanted, rows, owner, self.where)
            return self.scheme.items(view, rows)

    def info(self) -> dict[str, Any]:
        """Return what the index is and holds: its settings, numbers of items, segments, and bytes."""
        with self._view() as view:
            return describe(self._header, view.manifest, self._store)

    def check(self, *, repair: bool = False) -> Report:
        """Read everything, and verify its checksums; raise DamagedError if something is damaged.

        repair: rebuild the index from its undamaged parts; items whose own data is damaged are lost, and counted.
        """
        checks.flag(f"{OWNER}.check", "repair", repair)
        return check_index(self._change, repair)

    def compact(self) -> dict[str, Any]:
        """Free the space of removed items, and merge all segments; return `info`. Needs space for a second copy."""
        self._change.compact()
        return self.info()


def _parts(ids: Any, items: Iterator[Any], owner: str) -> Iterator[tuple[Any, Any]]:
    """Yield the items of a stream, `STREAMED` at a time, with their ids."""
    names = None if ids is None else iter(ids)
    while part := list(islice(items, STREAMED)):
        yield None if names is None else list(islice(names, len(part))), part
    if names is not None and next(names, None) is not None:
        raise ParameterError(f"The 'ids' parameter of {owner} must have one id for each item. It has more.")
