"""What remains of a run to explain its pairs and to report on it: where its items are, and which have which id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Hashes, Ints, Sets, Texts
from likewise.base.words import shortened
from likewise.errors import IncompatibleError, InputError, shown
from likewise.io.ids import matching
from likewise.io.read import Source
from likewise.jobs.against import Against
from likewise.jobs.explain.reasons import SetReason, SetScheme, VectorReason, explain_sets, explain_vectors
from likewise.jobs.reference_items import KnownItems
from likewise.jobs.rows import Rows
from likewise.jobs.state import State
from likewise.search.cluster import NONE, Removal
from likewise.search.common_shingles import value_table
from likewise.search.items import SetItems, TextItems
from likewise.search.load import Collection
from likewise.search.matches import VerifiedPairs
from likewise.search.vectors.load import Vectors
from likewise.shingle import Shingler, shingler_of

SAMPLE = 1000
"""Documents, the first of the collection, that show how rare a shingle is."""
NO_TRACE = "this result cannot explain its pairs: it does not know the items that were compared"
NOTHING = np.zeros(0, np.uint64)


def row_of(ids: Any | None, rows: int, value: Any) -> int:
    """Return the row with this id, or with this number if there are no ids; an id may be given as text."""
    if ids is None:
        try:
            row = int(value)
        except (TypeError, ValueError):
            row = -1
        if not 0 <= row < rows or isinstance(value, bool):
            raise InputError(f"there is no item {shown(value)}; items are numbered from 0 to {rows - 1}")
        return row
    try:
        row = pc.index(ids, pa.scalar(value).cast(ids.type)).as_py()
    except (pa.ArrowException, OverflowError, UnicodeError):
        row = -1
    if row < 0:
        raise InputError(f"there is no item with the id {shown(value)}")
    return int(row)


@dataclass(frozen=True)
class ItemReader:
    """One collection of a run: its rows by id, and the documents or sets of some of them, read again."""

    rows: int
    ids: Any | None
    source: Source | None
    sets: Sets | None = None

    @classmethod
    def of(cls, collection: Collection) -> ItemReader:
        """Keep what is needed of a collection: not the text, which is where it was read from."""
        held = collection.items.all if isinstance(collection.items, SetItems) else None
        return cls(collection.rows, collection.ids, collection.source, held)

    def texts(self, rows: set[int], sample: int = 0) -> tuple[dict[int, str], list[str]]:
        """Return the documents in these rows, and the first few of the collection."""
        assert self.source is not None
        known = self.source.state()
        documents: dict[int, str] = {}
        first: list[str] = []
        start = 0
        try:
            for batch in self.source.batches():
                column, stop = batch.column("text"), start + batch.num_rows
                if len(first) < sample:
                    first += column.slice(0, sample - len(first)).to_pylist()
                documents |= {row: str(column[row - start].as_py()) for row in rows if start <= row < stop}
                start = stop
                if len(documents) == len(rows) and len(first) >= min(sample, self.rows):
                    break
        finally:
            self.source.restore(known)  # what was set aside in the run, not in this reading
        if len(documents) < len(rows):
            raise InputError("the input has changed since the run: it has fewer rows; run it again")
        return documents, first


@dataclass(frozen=True)
class CachedDocuments:
    """What is still in memory of a run that has just ended: a report need not read it.

    The tables of the result, the source, and the documents, unless they were too large or are not text from files.
    """

    collection: Collection
    source: Source | None
    tables: Mapping[str, Rows]
    _texts: Texts | None
    _seekable: bool

    @classmethod
    def of(cls, collection: Collection, tables: Mapping[str, Rows]) -> CachedDocuments:
        """Return what there is of a collection."""
        items, source = collection.items, collection.source
        texts = items.texts if isinstance(items, TextItems) else None
        if texts is None or source is None or not source.files:
            return cls(collection, source, tables, None, False)
        return cls(collection, source, tables, texts if texts.in_memory else None, source.seekable)

    def texts(self, wanted: set[str]) -> Iterator[tuple[str, Any]] | None:
        """Return the ids and the texts of the documents with these ids; None if all documents had to be read."""
        ids, rows, texts = self.collection.ids, self.collection.rows, self._texts
        if texts is None and not self._seekable:
            return None
        numbered = ((int(id), id) for id in wanted if id.isdecimal() and int(id) < rows)
        found = sorted(numbered if ids is None else matching(ids, wanted))
        if texts is not None:
            return ((id, texts[row]) for row, id in found)
        assert self.source is not None
        keep = np.zeros(rows, bool)
        keep[[row for row, _ in found]] = True
        return zip((id for _, id in found), self.source.some_texts(keep), strict=True)


@dataclass(frozen=True)
class SetTrace:
    """What explains the pairs of documents or sets: one collection or two, the shingler, and shingles left out."""

    parts: tuple[ItemReader, ...]
    shingler: Shingler | None
    common: Hashes

    @classmethod
    def of(cls, parts: list[Collection], common: Hashes | None) -> SetTrace:
        """Keep what is needed of the collections of a run."""
        shingler = parts[0].shingler
        return cls(tuple(map(ItemReader.of, parts)), shingler, NOTHING if common is None else common)

    def rows(self, id_a: Any, id_b: Any) -> tuple[int, int]:
        """Return the rows of two items, each in its own collection."""
        here, there = self.parts[0], self.parts[-1]
        return row_of(here.ids, here.rows, id_a), row_of(there.ids, there.rows, id_b)

    def explain(self, ids: tuple[Any, Any], stats: dict[str, Any], found: bool | None, **known: Any) -> SetReason:
        """Compare two items by the scheme of the run."""
        rows = self.rows(*ids)
        scheme, here, there = SetScheme.of_run(stats), self.parts[0], self.parts[-1]
        if here.sets is not None and there.sets is not None:
            both = [here.sets[rows[0]], there.sets[rows[1]]]
            sets = Sets(np.concatenate(both).astype(np.uint64), np.cumsum([0, *map(len, both)]).astype(np.int64))
            return explain_sets(ids, sets, scheme, None, None, found=found, **known)
        if self.shingler is None:
            raise IncompatibleError(NO_TRACE)
        mine, first = here.texts({*rows} if here is there else {rows[0]}, SAMPLE)
        other = mine if here is there else there.texts({rows[1]})[0]
        return self.compare(ids, (mine[rows[0]], other[rows[1]]), first, scheme, found=found, **known)

    def compare(
        self, ids: tuple[Any, Any], texts: tuple[str, str], first: list[str], scheme: SetScheme, **known: Any
    ) -> SetReason:
        """Compare two documents; `first`: the first of the collection, which show how rare a shingle is."""
        sets, sample = self._sets(list(texts)), self._sets(first)
        return explain_sets(ids, sets, scheme, self.shingler, sample, texts=texts, **known)

    def _sets(self, texts: list[str]) -> Sets:
        assert self.shingler is not None
        items = TextItems(Texts.of(texts), self.shingler)
        if len(self.common):
            items = items.ignoring(value_table(self.common))
        return items.sets(np.arange(len(texts)), 1)


@dataclass(frozen=True)
class VectorTrace:
    """What explains pairs of vectors: one collection or two."""

    parts: tuple[Vectors, ...]

    def explain(self, ids: tuple[Any, Any], stats: dict[str, Any], found: bool) -> VectorReason:
        """Compare two vectors by the settings of the run."""
        here, there = self.parts[0], self.parts[-1]
        rows = row_of(here.ids, len(here.table), ids[0]), row_of(there.ids, len(there.table), ids[1])
        return explain_vectors(ids, here.table[rows[0]], there.table[rows[1]], stats, found)


class PairTrace(Protocol):
    """What explains the pairs of a run."""

    @property
    def parts(self) -> Sequence[Any]:
        """The collections, one or two."""

    def explain(self, ids: tuple[Any, Any], stats: dict[str, Any], found: bool) -> SetReason | VectorReason:
        """Compare two items by the settings of the run."""


class ExplainedPairs:
    """Gives a table of pairs the method `explain`."""

    stats: dict[str, Any]
    batches: Callable[[], Iterable[Any]]
    _trace: PairTrace | None = None

    def traced(self, trace: PairTrace) -> Any:
        """Return itself, able to explain its pairs."""
        self._trace = trace
        return self

    def explain(self, id_a: Any, id_b: Any) -> SetReason | VectorReason:
        """Return why two items are a pair or not: what they share, how similar they are, how probably they are found.

        Documents are read again from where they came. `print` shows the explanation, `to_html` makes a page of it.
        """
        if self._trace is None:
            raise IncompatibleError(NO_TRACE)
        found = self._has(id_a, id_b)
        if not found and len(self._trace.parts) == 1 and self._symmetric:
            found = self._has(id_b, id_a)
        told = self._trace.explain((id_a, id_b), self.stats, found)
        return told if found else replace(told, notes=(*told.notes, *self._left_out(told)))

    def _left_out(self, told: SetReason | VectorReason) -> list[str]:
        """Say why a pair that is similar enough is not listed, if it was not asked for."""
        asked = self.stats["parameters"]
        if not told.near or self.stats["command"] != "pairs":
            return []
        if isinstance(told, SetReason) and asked["below"] is not None and told.similarity >= asked["below"]:
            return [f"only pairs with a similarity below {asked['below']:g} were asked for"]
        if isinstance(told, VectorReason) and asked["beyond"] is not None and told.distance <= asked["beyond"]:
            return [f"only pairs with a distance above {asked['beyond']:g} were asked for"]
        k = asked["k"]
        return [] if k is None else [f"only the {k} most similar partners of each item were asked for"]

    @property
    def _symmetric(self) -> bool:
        """Whether a pair is listed once, in either order."""
        return bool(
            self.stats["command"] in ("pairs", "dedup") and self.stats["parameters"]["measure"] != "containment"
        )

    def _has(self, id_a: Any, id_b: Any) -> bool:
        """Tell whether the table has this pair."""
        for batch in self.batches():
            try:
                same = [
                    pc.equal(batch.column(name), pa.scalar(value).cast(batch.column(name).type))
                    for name, value in (("id_a", id_a), ("id_b", id_b))
                ]
            except (pa.ArrowException, OverflowError, UnicodeError):
                return False
            if pc.any(pc.and_(*same)).as_py():
                return True
        return False


class ExplainedRemovals:
    """Gives the result of `dedup` the method `explain`."""

    stats: dict[str, Any]
    _collection: Collection
    _matches: VerifiedPairs
    _removal: Removal
    _against: KnownItems[Any, Any] | None
    _about: Any
    _ids: Any
    _name: Callable[[Ints], Any]
    _rows: Callable[[str], Rows]
    _offset: int

    def explain(self, id_a: Any, id_b: Any) -> SetReason | VectorReason:
        """Return why two documents are a pair or not: what they share, how similar they are, what became of them.

        The documents are read again from where they came. `print` shows the explanation, `to_html` makes a page of it.

        >>> from likewise import dedup
        >>> rose = "a rose is a rose is a rose"
        >>> texts = [rose, f"{rose} said she", "to be or not to be"]
        >>> told = dedup(texts, shingle="words:2", threshold=0.5).explain(0, 1)
        >>> told.shared, told.sizes, round(told.similarities["jaccard"], 2), told.found
        (3, (3, 5), 0.6, True)
        """
        against, matches = self._against, self._matches
        trace = SetTrace.of([self._collection], self._common())
        if trace.shingler is None and self.stats["parameters"]["shingle"] is not None:
            trace = replace(trace, shingler=shingler_of(self.stats["parameters"]))
        if against is None:
            a, b = trace.rows(id_a, id_b)
        else:
            a, b = (row_of(self._ids, len(self._ids), value) for value in (id_a, id_b))
        groups = matches.groups.of[[a, b]]
        low, high = groups if matches.directed else np.sort(groups)
        found = bool(low == high or ((matches.left == low) & (matches.right == high)).any())
        notes = tuple(self._outcome(value, row) for value, row in ((id_a, a), (id_b, b)))
        if not isinstance(against, Against):
            return trace.explain((id_a, id_b), self.stats, found, notes=notes)
        texts, first = trace.parts[0].texts({row - self._offset for row in (a, b) if row >= self._offset}, SAMPLE)
        both = [texts[row - self._offset] if row >= self._offset else against.document(row) for row in (a, b)]
        scheme = SetScheme.of_run(self.stats)
        return trace.compare((id_a, id_b), (both[0], both[1]), first, scheme, found=found, notes=notes)

    @property
    def held(self) -> CachedDocuments:
        """What is in memory of the run."""
        return CachedDocuments.of(
            self._collection, {name: self._rows(name) for name in ("pairs", "removed", "clusters")}
        )

    def _common(self) -> Hashes | None:
        """Return the shingles that the run left out."""
        sketched = self._matches.sketched
        if sketched is not None:
            return sketched.common
        return self._about.common if isinstance(self._about, State) else None

    def _outcome(self, value: Any, row: int) -> str:
        place = np.flatnonzero(self._removal.rows == row)
        keeper = self._name(self._removal.keepers[place[:1]])[0].as_py() if len(place) else None
        return outcome(value, keeper, self.stats["parameters"].get("keep"))


def outcome(name: Any, keeper: Any | None, keep: str | None) -> str:
    """Say what became of a document: the one that is kept in its place, if it is removed; or only similar to it."""
    if keeper is None:
        return f"{shortened(name, 40)} is kept"
    if keep == NONE:
        return f"{shortened(name, 40)} is removed, because {shortened(keeper, 40)} is similar to it (keep=none)"
    return f"{shortened(name, 40)} is removed; {shortened(keeper, 40)} is kept in its place"
