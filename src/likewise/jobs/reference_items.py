"""What new documents are compared with besides each other: a finished run, or an index, which stands above the jobs.

A run has its band keys at hand, and all its documents take part in the search. An index can be asked: only the items
that are similar to a new document take part, and they are stored in the workspace, so that a run that is resumed
continues with the same ones, whatever has become of the index.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, to_arrow
from likewise.base.runlog import RunLog, Tick
from likewise.errors import IncompatibleError, ParameterError
from likewise.io.disk import write_array
from likewise.io.workspace import Draft, Workspace
from likewise.search.items import Items
from likewise.search.load import Collection
from likewise.search.sketch import SketchPlan, key_sets

MOST = 100
"""The most items of an index that a new document brings into the search, the most similar first: an index may hold any
number of near-duplicates, and one is enough to remove the document."""
BATCH_BYTES = 1 << 25
"""Bytes of sets that are read or written at a time."""
MARK = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class KnownPart:
    """Known items that take part in a search, by their ids, and where they are."""

    where: str
    ids: Any


@dataclass(frozen=True)
class ReferencePart(KnownPart):
    """Known documents as a search sees them. count: how many are known, whether they take part or not.

    digests: returns the fingerprints of the documents of some rows, which ascend, with this many threads.
    """

    count: int
    items: Items
    digests: Callable[[Ints, int], Hashes]


class Reference(ABC):
    """What new items are compared with: a finished run or an index. where: what the user calls it."""

    where: str

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, whatever the current folder, for run.json."""

    @property
    def identity(self) -> list[Any]:
        """What a resumed run must share with the one that was interrupted."""
        return [self.place]

    def close(self) -> None:  # noqa: B027 - of a finished run nothing is open
        """Let go of it."""


class Growing(Reference):
    """A collection to which items can be added."""

    @abstractmethod
    def fitting(self, ids: Any) -> Any:
        """Return ids as those of the collection are; raise if they cannot be."""

    @abstractmethod
    def absent(self, ids: Any, items: Any, rows: Ints, threads: int) -> NDArray[np.bool_]:
        """Return which of these rows, with these ids, are not there; raise if an id is there with another item."""

    @abstractmethod
    def add(self, batches: Iterable[tuple[Any, Any]]) -> None:
        """Add ids and items, all or none."""


R = TypeVar("R", bound=Reference)
P = TypeVar("P", bound=KnownPart)


class KnownItems(Generic[R, P]):
    """What new items are compared with: rows that come before theirs, with ids of their own."""

    def __init__(self, given: Sequence[Any], opened: Callable[[Any], R]) -> None:
        self.parts: list[P] = []
        self.known: list[R] = []
        try:
            for one in given:
                self.known.append(opened(one))
            self.check_together()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of indexes."""
        for one in self.known:
            one.close()

    def check_together(self) -> None:
        """Raise if new items cannot be compared with all of these in one way."""

    @property
    def grows(self) -> bool:
        """Whether an index is among them."""
        return any(isinstance(one, Growing) for one in self.known)

    def target(self) -> Growing:
        """Return the index to which items are added."""
        indexes = [one for one in self.known if isinstance(one, Growing)]
        if len(indexes) != 1:
            rule = f"False unless 'against' names exactly one index; it names {len(indexes) or 'none'}"
            raise ParameterError.of("dedup", "add", rule, True)
        return indexes[0]

    @property
    def count(self) -> int:
        """The number of known items that take part in the search."""
        return int(self._starts[-1])

    def names(self, collection: Collection) -> Any:
        """Return the ids of all items, the known ones first; as text if their types differ."""
        ids = [part.ids for part in self.parts if len(part.ids)]
        ids.append(to_arrow(np.arange(collection.rows)) if collection.ids is None else collection.ids)
        if len({str(part.type) for part in ids}) > 1:
            ids = [part.cast(pa.large_string()) for part in ids]
        return pa.concat_arrays(ids)

    @property
    def _starts(self) -> Ints:
        return np.cumsum([0, *(len(part.ids) for part in self.parts)])

    def origins(self, rows: Ints) -> Any:
        """Return for each row the run or the index that has it; null for new items."""
        places = pa.array([part.where for part in self.parts] + [None], pa.string())
        return places.take(to_arrow(np.searchsorted(self._starts, rows, side="right") - 1))


class ReferenceItems(Reference):
    """Documents that new ones are compared with, and that are never removed.

    settings: those that new documents must share. common: shingles that are left out.
    """

    settings: dict[str, Any]

    @property
    @abstractmethod
    def common(self) -> Hashes:
        """The shingles that are left out as too common."""

    @abstractmethod
    def part(self, items: Items, space: Workspace, log: RunLog, threads: int, step: str) -> ReferencePart:
        """Return the items that take part in the search for these new ones; `step` of the workspace is its own."""

    @abstractmethod
    def document(self, row: int) -> str:
        """Return one of the documents that take part in the search."""


@dataclass(frozen=True)
class SimilarItems:
    """Some items of an index: their ids, their sets, and fingerprints of their documents and of the shingles of these.

    Where these are not known, or no new document is equal, fingerprints are such as nothing else has.
    """

    ids: Any
    sets: Sets
    digests: Hashes
    units: Hashes


class AskedItems(Protocol):
    """A collection as the tasks of a cluster have it: each process opens it by itself, and raises if it has changed."""

    @property
    def rows(self) -> int:
        """The number of places of items, those of removed ones too."""

    @property
    def live(self) -> int:
        """The number of items."""

    @property
    def strings(self) -> bool:
        """Whether ids are text."""

    @property
    def state(self) -> str:
        """What tells the state of the collection from others."""

    def check(self) -> None:
        """Raise if it cannot be opened here, or is in another state."""

    def similar(self, batches: Iterable[Sets], most: int) -> Iterator[tuple[Ints, NDArray[np.bool_]]]:
        """Yield for each batch of sets the rows of similar items, some several times, and which equal a set."""

    def items(self, rows: Ints, equal: NDArray[np.bool_]) -> Iterator[SimilarItems]:
        """Yield the items of these rows, which ascend. equal: those whose documents may be identical to a new one."""


class QueriedItems(ReferenceItems, Growing):
    """A collection that is asked for the items that are similar to new ones, and to which items can be added."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of items."""

    @abstractmethod
    def similar(self, batches: Iterable[Sets], most: int, threads: int) -> Iterator[SimilarItems]:
        """Yield the items that are similar to one or more of these sets, in the order in which they were added.

        Of each set, those of its `most` most similar items. All batches are taken before the first answer.
        """

    @abstractmethod
    def asked(self) -> AskedItems:
        """Return the collection as it is now, for the tasks of a cluster."""

    def document(self, row: int) -> str:
        """Raise: the sets of similar items were kept, and their documents are in the index."""
        raise IncompatibleError(
            f"{self.where}: an item of an index cannot be explained; get its text (Index.get) and explain two texts"
        )

    def part(self, items: Items, space: Workspace, log: RunLog, threads: int, step: str) -> ReferencePart:
        """Ask for the items that are similar to these, and store them; or take those of the interrupted run."""
        if space.has(step):
            log.restore(space.notes(step))
        else:
            with log.stage("ask", len(items)) as tick:
                self._store(items, space, log, threads, step, tick)
        path, offsets = space.path(step, "values"), space.array(step, "offsets")
        values = np.memmap(path, np.uint64, "r") if offsets[-1] else np.zeros(0, np.uint64)
        digests, units = space.array(step, "digests"), space.array(step, "units")
        found, known = FoundItems(self.place, Sets(values, offsets), units), space.notes(step)["known"]
        return ReferencePart(self.where, stored_ids(space, step), known, found, lambda rows, _: digests[rows])

    def _store(self, items: Items, space: Workspace, log: RunLog, threads: int, step: str, tick: Tick) -> None:
        """Ask, and commit the answers as a step."""

        def batches() -> Iterator[Sets]:
            for _, sets in items.set_batches(np.arange(len(items)), threads):
                yield sets
                tick(len(sets))

        count = self.count
        none = np.zeros((0, 2), np.uint64)
        sizes, digests, units, ids = [np.zeros(1, np.int64)], [none], [none], []
        with space.making(step) as draft:
            values = draft.file("values")
            for some in self.similar(batches(), MOST, threads):
                write_array(values, np.ascontiguousarray(some.sets.values, np.uint64))
                sizes.append(some.sets.sizes)
                digests.append(some.digests)
                units.append(some.units)
                ids.append(some.ids)
            draft.save(offsets=np.cumsum(np.concatenate(sizes)))
            draft.save(digests=np.concatenate(digests), units=np.concatenate(units))
            save_ids(draft, ids)
            draft.commit({"known": count, **log.snapshot()})


class FoundItems(Items):
    """Items that were found in an index: their sets, which are in a file, and fingerprints of their shingles."""

    def __init__(self, place: str, sets: Sets, units: Hashes) -> None:
        self._place = place
        self._sets = sets
        self._units = units

    def __len__(self) -> int:
        return len(self._sets)

    @property
    def lengths(self) -> Ints:
        """Unknown, and not needed: known items are not chosen among."""
        return np.zeros(len(self), np.int64)

    def digests(self, threads: int) -> Hashes:
        """Return fingerprints that are all different: items of an index are not documents to the byte."""
        return marks(self._place, np.arange(len(self)))

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Write the band keys; the sample of the certificate is shown new documents only."""
        for place, sets in self.set_batches(rows, plan.threads):
            key_sets(sets, plan.shifted(place.start, len(sets)))
        return self._units[rows]

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Take these sets, some megabytes at a time."""
        ends = np.cumsum(self._sets.sizes[rows])
        start = 0
        while start < len(rows):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES // 8, side="right")))
            some = self._sets.take(rows[start:stop])
            yield slice(start, stop), Sets(np.array(some.values), some.offsets)
            start = stop

    def set_bytes(self, rows: Ints) -> Ints:
        """Eight bytes per element."""
        return self._sets.sizes[rows] * 8 + 64

    def ignoring(self, common: Hashes) -> FoundItems:
        """Return itself: the index has left these shingles out."""
        return self


def save_ids(draft: Draft, ids: list[Any]) -> None:
    """Write ids as a file of a step."""
    table = pa.record_batch([pa.concat_arrays(ids) if ids else pa.array([], pa.int64())], ["id"])
    with pa.ipc.new_file(draft.file("ids.arrow"), table.schema) as out:
        out.write_batch(table)


def stored_ids(space: Workspace, step: str) -> Any:
    """Return the ids of a committed step."""
    with pa.OSFile(str(space.path(step, "ids.arrow"))) as stored:
        ids = pa.ipc.open_file(stored).read_all().column(0).combine_chunks()
    return pa.concat_arrays(ids.chunks) if isinstance(ids, pa.ChunkedArray) else ids


def marks(place: str, rows: Ints) -> Hashes:
    """Return fingerprints that differ from each other and, but for chance, from those of all documents."""
    numbers = (rows + 1).astype(np.uint64)
    return np.stack([numbers * MARK, np.full(len(rows), np.uint64(zlib.crc32(place.encode())))], axis=1)
