"""`Index`: a collection on disk that is asked, again and again, for what is similar to new items."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Hashes, to_arrow
from likewise.base.runlog import Progress, RunLog
from likewise.base.words import counted
from likewise.errors import InputError, LikewiseError, OutputError, ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.index.answers import IndexQuestion, answers
from likewise.index.change import Change, all_ids, new_ids
from likewise.index.from_run import KeptRun
from likewise.index.inspect import Report, check_index, describe
from likewise.index.item_ids import as_ids, check_kind, kind_of_ids
from likewise.index.manifest import (
    COMMON,
    HEADER,
    Manifest,
    SegmentEntry,
    pack,
    read_header,
    read_manifest,
    write_manifest,
)
from likewise.index.places import index_place, store_at
from likewise.index.scheme import DEFAULT_ITEMS, Scheme, text_chunk
from likewise.index.segment import SegmentData, make_segment
from likewise.index.store import Store, Transaction
from likewise.index.view import IndexView
from likewise.shingle import Shingler

OWNER = "Index"
BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 27
"""Items, and bytes of them, that are stored in one transaction; more are stored in several, and become part of the
index in the last one."""
MEASURES = ("jaccard", "containment")


class Index:
    """A persistent index of documents or sets, in a folder or on a Redis server: what is similar to this item?

    Make one with `Index.create` and open it with `Index.open`, in as many processes as you like; one at a time changes
    it. Every change is durable when the call returns. Use it in a `with` statement, or `close` it.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Index.create(f"{folder}/index", shingle="words:2", threshold=0.5) as index:
    ...     index.add(["a", "b"], ["one two three four", "five six seven"])
    ...     index.query(["one two three four five"]).to_pylist()
    2
    [{'id_a': 0, 'id_b': 'a', 'similarity': 0.75}]
    """

    def __init__(self, store: Store, threads: int) -> None:
        self._store = store
        self.where = store.where
        self.threads = threads
        self._lock = threading.Lock()
        self._cached: IndexView | None = None
        with store.read() as snapshot:
            self._header = read_header(snapshot, store.where)
            common = snapshot.get(COMMON)
            left_out: Hashes = np.frombuffer(bytes(common or b""), np.uint64)
            self.scheme = Scheme.restored(self._header, left_out, store.where)
        self._change = Change(store, self.scheme.banding.b)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        shingle: str | Shingler | None = "words:5",
        threshold: float = 0.8,
        recall: float = 0.99,
        seed: int = 1,
        sketch: str = "fast",
        bands: int | None = None,
        rows: int | None = None,
        max_slots: int = DEFAULT_MAX_SLOTS,
        items: int = DEFAULT_ITEMS,
        containment: bool = False,
        texts: bool | None = None,
        threads: int | None = None,
    ) -> Index:
        """Make an empty index in a new folder, or in an empty one, and open it.

        path: the folder; or the URL of a Redis server with the name of the index, redis://host:6379/0?name=library.
        shingle: how a document becomes a set, as in `dedup`; None for an index of sets.
        threshold, recall: an item with this Jaccard similarity to a query is found with at least this probability;
            queries may ask for a higher threshold, not for a lower one.
        seed, sketch, max_slots: of the signatures, as in `dedup`. items: how many items to expect, by which bands and
            rows are chosen; more can be added. bands, rows: this banding instead.
        containment: also keep a table of all shingles, which queries with measure="containment" need.
        texts: keep the documents, compressed, for `get`; by default they are, in an index of documents.
        """
        owner = f"{OWNER}.create"
        place = index_place(owner, path)
        scheme = Scheme.of(
            owner, shingle, threshold, recall, seed, sketch, bands, rows, max_slots, items, containment, texts
        )
        count = checks.threads(owner, threads)
        return cls._created(place, scheme, count)

    @classmethod
    def _created(cls, place: str | Path, scheme: Scheme, threads: int) -> Index:
        store = store_at(f"{OWNER}.create", place, create=True)

        def change(transaction: Transaction) -> None:
            if transaction.get(HEADER) is not None:
                raise OutputError(f"{store.where}: there is an index already")
            transaction.put(HEADER, pack(scheme.header()))
            if len(scheme.common):
                transaction.put(COMMON, scheme.common.tobytes())
            write_manifest(transaction, Manifest())

        store.write(change)
        return cls(store, threads)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        shingle: str | Shingler | None = None,
        threshold: float | None = None,
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
                "shingle": shingle, "threshold": threshold, "recall": recall, "seed": seed, "sketch": sketch,
                "bands": bands, "rows": rows, "containment": containment, "texts": texts,
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
        index = cls._created(place, kept.scheme(owner, containment, texts), count)
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
    def _view(self) -> Iterator[IndexView]:
        """Yield what the index holds now; it stays the same until the end."""
        with self._store.read() as snapshot:
            view = self._cached
            if view is None or view.place != snapshot.place:
                self._cached = view = self._change.view(snapshot)
            yield view

    def snapshot(self) -> AbstractContextManager[IndexView]:
        """Return what the index holds now, for the other files of this room."""
        return self._view()

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
        with self._view() as view:
            return bool(view.find(wanted)[0] >= 0)

    def __repr__(self) -> str:
        what = "sets" if self.scheme.shingler is None else str(self.scheme.shingler)
        manifest = self._manifest
        return f"<Index {self.where}: {counted(manifest.live, 'item')}, {what}, jaccard ≥ {self.scheme.threshold}>"

    def add(self, ids: Any, items: Any, *, replace: bool = False) -> int:
        """Add items, all of them or, if there is an error, none; return how many.

        ids: integers or strings, one kind in an index; None to number the items, from the first number that is free.
        items: documents, or for an index of sets lists of tokens or `Sets`. replace: items with the same ids are
        replaced; without it, they are an error.
        """
        owner = f"{OWNER}.add"
        checks.flag(owner, "replace", replace)
        return self.add_batches([(ids, items)], replace=replace)

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
        staged: list[SegmentEntry] = []
        ids: list[Any] = []
        rows, auto = 0, first.ids is None
        numbered = self._manifest.numbered
        for part in _chain(first, second, segments):
            names = new_ids(numbered + rows, part.rows) if part.ids is None else part.ids
            if ids and kind_of_ids(names) != kind_of_ids(ids[0]):
                check_kind(kind_of_ids(ids[0]), names, owner)
            staged.append(self._change.stage(part.segment(names)))
            ids.append(names)
            rows += part.rows
        self._change.publish(staged, all_ids(ids, owner), numbered if auto else None, replace, owner)
        return rows

    def _add_one(self, part: _Part, replace: bool, owner: str) -> int:
        """Add a single batch in one transaction; ids that are not given depend on what it finds."""
        made: dict[int, tuple[SegmentData, Any]] = {}
        if part.ids is not None:
            all_ids([part.ids], owner)

        def make(numbered: int) -> tuple[SegmentData, Any]:
            start = numbered if part.ids is None else 0
            if start not in made:
                ids = new_ids(start, part.rows) if part.ids is None else part.ids
                made[start] = part.segment(ids), ids
            return made[start]

        make(self._manifest.numbered)
        self._change.add(make, replace, owner)
        return part.rows

    def _segments(self, batches: Iterable[tuple[Any, Any]], owner: str) -> Iterator[_Part]:
        """Yield the batches, cut where they are too large for one transaction."""
        for ids, items in batches:
            yield from _parts(self.scheme, None if ids is None else as_ids(ids, owner), items, self.threads, owner)

    def query(
        self,
        items: Any,
        k: int | None = None,
        threshold: float | None = None,
        measure: str = "jaccard",
        *,
        ids: Any = None,
    ) -> Any:
        """Return the items of the index that are similar to these, as an Arrow table: id_a, id_b, similarity.

        id_a is the number of a query, or its id if `ids` are given; id_b is the id of an item of the index. Answers
        are in the order of the queries, the most similar first, ties in the order in which items were added. Every
        similarity is exact.
        items: documents, or lists of tokens or `Sets`; a single document may be given as it is.
        k: the most answers to each query. threshold: the least similarity; by default that of the index.
        measure: "jaccard", or "containment", the share of the query's shingles that an item has, for which the index
            must be made with containment=True. Every such item is found; an empty query has none.
        """
        owner = f"{OWNER}.query"
        checks.choice(owner, "measure", measure, MEASURES)
        best = 0 if k is None else checks.whole(owner, "k", k)
        scheme = self.scheme
        least = scheme.threshold if threshold is None else checks.threshold(owner, threshold)
        if measure == "containment" and not scheme.containment:
            raise ParameterError(
                f"The 'measure' parameter of {owner} cannot be 'containment': {self.where} was not made for it, "
                "which is an option of create."
            )
        if measure == "jaccard" and least < scheme.threshold:
            rule = f"at least {scheme.threshold:g}, that of the index: below it, items would be missed"
            raise ParameterError.of(owner, "threshold", rule, threshold)
        names = None if ids is None else as_ids(ids, owner)
        sets = scheme.sets(items, owner, self.threads)
        if names is not None and len(names) != len(sets):
            raise ParameterError(f"{owner}: there are {len(names):,} ids and {len(sets):,} items")
        question = IndexQuestion(measure, least, best)
        with self._view() as view:
            query, row, similarity = answers(view, scheme, sets, question, self.threads)
            found = view.ids(row)
        left = to_arrow(query) if names is None else names.take(to_arrow(query))
        return pa.table({"id_a": left, "id_b": found, "similarity": to_arrow(similarity)})

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

    def get(self, ids: Any) -> list[str]:
        """Return the documents with these ids, as they were added."""
        owner = f"{OWNER}.get"
        if not self.scheme.texts:
            raise LikewiseError(f"{owner}: {self.where} was made without texts=True, and has no documents")
        wanted = as_ids(ids, owner)
        with self._view() as view:
            rows = view.find(wanted)
            if (rows < 0).any():
                missing = wanted[int(np.argmax(rows < 0))].as_py()
                raise InputError(f"{owner}: there is no item with the id {missing!r} in {self.where}")
            places = [view.chunk_at(int(row)) for row in rows]
            return [chunk.text(row) for chunk, row in places]

    def info(self) -> dict[str, Any]:
        """Return what the index is and holds: its settings, numbers of items, segments, and bytes."""
        with self._view() as view:
            return describe(self._header, view.manifest, self._store)

    def check(self, *, repair: bool = False) -> Report:
        """Read everything, and compare it with its checksums; raise DamagedError if something is damaged.

        repair: write the index anew from what is sound; items whose own data is damaged are lost, and counted.
        """
        checks.flag(f"{OWNER}.check", "repair", repair)
        return check_index(self._change, self.scheme, self.threads, repair)

    def compact(self) -> dict[str, Any]:
        """Free the space of removed items, and merge all segments; return `info`. Needs room for a second copy."""
        self._change.compact()
        return self.info()


def _chain(first: _Part, second: _Part, rest: Iterator[_Part]) -> Iterator[_Part]:
    yield first
    yield second
    yield from rest


class _Part:
    """Some items to be added: their ids, or None, and their sets."""

    def __init__(self, scheme: Scheme, ids: Any, sets: Any, texts: Any, threads: int) -> None:
        self.ids = ids
        self.rows = len(sets)
        self._made = scheme, sets, texts, threads

    def segment(self, ids: Any) -> SegmentData:
        """Return the segment."""
        scheme, sets, texts, threads = self._made
        return make_segment(scheme, sets, ids, texts, threads)


def _parts(scheme: Scheme, ids: Any, items: Any, threads: int, owner: str) -> Iterator[_Part]:
    """Yield items in parts that fit in a transaction."""
    documents = scheme.documents(items, owner)
    whole = text_chunk(documents) if documents is not None else None
    sets = scheme.sets(items, owner, threads) if whole is None else None
    count = len(whole) if whole is not None else len(sets or ())
    if ids is not None and len(ids) != count:
        raise ParameterError(f"{owner}: there are {len(ids):,} ids and {count:,} items")
    offsets = whole.offsets if whole is not None else sets.offsets * 8 if sets is not None else np.zeros(1, np.int64)
    start = 0
    while start < count:
        stop = int(np.searchsorted(offsets, offsets[start] + BATCH_BYTES, side="right")) - 1
        stop = min(count, max(start + 1, stop), start + BATCH_ROWS)
        some = None if ids is None else ids.slice(start, stop - start)
        if whole is not None:
            texts = type(whole)(whole.data, whole.offsets[start : stop + 1])
            yield _Part(scheme, some, scheme.chunk_sets(texts, threads), texts if scheme.texts else None, threads)
        elif sets is not None:
            yield _Part(scheme, some, sets.take(np.arange(start, stop)), None, threads)
        start = stop
