"""What new vectors are compared with besides each other: those that a finished run kept, or those of an index.

All vectors of a run take part in the search. An index is asked: only what is near a new vector takes part, and the
pairs that the index found are pairs of the run. They are stored in the workspace, as answers about documents are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import RunLog, Tick
from likewise.errors import DamagedError, IncompatibleError, ParameterError
from likewise.io.publish import MANIFEST
from likewise.io.read import Files
from likewise.io.seals import checksum
from likewise.io.upload import named
from likewise.io.workspace import Workspace
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.reference_items import Growing, KnownItems, KnownPart, Reference, save_ids, stored_ids
from likewise.jobs.vectors import VectorSettings
from likewise.search.vectors.load import Vectors, vectors
from likewise.search.vectors.pairs import VectorAim
from likewise.search.vectors.spaces import Space

OWNER = "dedup"
TOGETHER = 1 << 26
"""Bytes of vectors that are handed to an index at a time."""


@dataclass(frozen=True)
class NearVectors:
    """Vectors of an index that are near new ones. known, new: the pairs, by their places here and the rows there."""

    ids: Any
    table: NDArray[Any]
    known: Ints
    new: Ints


@dataclass(frozen=True)
class VectorPart(KnownPart):
    """Known vectors that take part in a search.

    count: how many are known. known, new: pairs that were found. numbered: the first number that an index had free for
    vectors without ids; None if the ids there are strings.
    """

    vectors: Vectors
    count: int
    known: Ints
    new: Ints
    numbered: int | None = None


class ReferenceVectors(Reference):
    """Vectors that new ones are compared with, and that are never removed. within: the largest distance, if it has one.

    measure, within: those that new vectors must share.
    """

    measure: str
    within: float | None

    @abstractmethod
    def part(self, space: Space, aim: VectorAim, work: Workspace, log: RunLog, step: str) -> VectorPart:
        """Return the vectors that take part in the search for these new ones; `step` of the workspace is its own."""


class EarlierVectors(ReferenceVectors):
    """The vectors that a finished run kept."""

    def __init__(self, folder: Any) -> None:
        self._run = run = FinishedRun.load(folder, OWNER)
        run.must_be(OWNER)
        self.where = str(run.folder)
        self.within = run.parameters.get("within")
        if self.within is None:
            raise IncompatibleError(f"{run.folder}: this run compared documents; name one of vectors")
        self.measure = run.parameters["measure"]

    @property
    def place(self) -> str:
        """The folder."""
        return named(str(self._run.folder.absolute()))

    @property
    def identity(self) -> list[Any]:
        """The folder, and the checksum of run.json."""
        return [self.place, checksum(self._run.folder / MANIFEST)]

    def part(self, space: Space, aim: VectorAim, work: Workspace, log: RunLog, step: str) -> VectorPart:
        """Read all vectors, and their ids."""
        run = self._run
        files = [run.folder / "kept" / name for name in run.details["kept_files"]]
        found = vectors(Files(files), run.parameters["vector"], None, *aim.room, OWNER)
        names = _kept_ids(run)
        if len(names) != len(found.table):
            raise DamagedError(f"{run.folder}: kept/ and clusters.parquet do not fit together; run it again")
        none = np.zeros(0, np.int64)
        return VectorPart(self.where, names, found, len(names), none, none)


class QueriedVectors(ReferenceVectors, Growing):
    """A collection that is asked for the vectors near new ones, and to which vectors can be added."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of vectors."""

    @property
    @abstractmethod
    def numbered(self) -> int | None:
        """The first number that is free for vectors without ids; None if the ids there are strings."""

    @abstractmethod
    def check_type(self, table: NDArray[Any]) -> None:
        """Raise if vectors like these cannot be added."""

    @abstractmethod
    def near(self, space: Space, aim: VectorAim, tick: Tick) -> NearVectors:
        """Return the vectors that are near one or more of these, the nearest ones of each."""

    def part(self, space: Space, aim: VectorAim, work: Workspace, log: RunLog, step: str) -> VectorPart:
        """Ask for the vectors near these, and store them; or take those of the interrupted run."""
        if work.has(step):
            log.restore(work.notes(step))
        else:
            count, numbered = self.count, self.numbered
            with work.making(step) as draft:
                with log.stage("ask", len(space)) as tick:
                    near = self.near(space, aim, tick)
                draft.save(table=near.table, known=near.known, new=near.new)
                save_ids(draft, [near.ids])
                draft.commit({"count": count, "numbered": numbered, **log.snapshot()})
        table, known, new = (work.array(step, name) for name in ("table", "known", "new"))
        found = Vectors(table, None, [{"object": self.where, "rows": len(table)}])
        notes = work.notes(step)
        return VectorPart(self.where, stored_ids(work, step), found, notes["count"], known, new, notes["numbered"])


class KnownVectors(KnownItems[ReferenceVectors, VectorPart]):
    """The finished runs and the indexes that new vectors are compared with."""

    @property
    def vectors(self) -> list[Vectors]:
        """Those that take part in the search."""
        return [part.vectors for part in self.parts]

    def check(self, settings: VectorSettings) -> None:
        """Raise if new vectors would be compared in another way than the known ones."""
        for one in self.known:
            for name, before in (("measure", one.measure), ("within", one.within)):
                now = getattr(settings, name)
                if before is not None and before != now:
                    raise IncompatibleError(
                        f"{one.where} was made with {name} {before!r} and this run has {now!r};"
                        " new vectors are compared in the same way"
                    )

    @property
    def places(self) -> list[str] | None:
        """Where they are, for run.json."""
        return [one.place for one in self.known] or None

    @property
    def numbered(self) -> int | None:
        """The first number that the index among them had free."""
        return next((part.numbered for part in self.parts if part.numbered is not None), None)

    def ask(self, space: Space, aim: VectorAim, work: Workspace, log: RunLog) -> tuple[Ints, Ints]:
        """Find out which known vectors take part in the search for these; return the pairs that are found already."""
        for number, one in enumerate(self.known, 1):
            self.parts.append(one.part(space, aim, work, log, f"known-{number}"))
        starts = self._starts
        none = [np.zeros(0, np.int64)]
        known = np.concatenate(none + [part.known + start for part, start in zip(self.parts, starts, strict=False)])
        return known, np.concatenate(none + [part.new for part in self.parts]) + self.count


@dataclass(frozen=True)
class NewVectors:
    """Vectors of a run, as an index takes them; those without ids are numbered from the first number that it has free,
    which is that of row 0."""

    vectors: Vectors
    numbered: int | None

    def check(self, target: Growing, log: RunLog) -> None:
        """Raise if the index cannot have these vectors with their ids; note how they are numbered if they have none."""
        assert isinstance(target, QueriedVectors)
        target.check_type(self.items)
        if self.vectors.ids is not None:
            target.fitting(self.vectors.ids)
        elif self.numbered is None:
            raise ParameterError(
                f"The 'add' parameter of dedup needs vectors with ids, as those of {target.where} are strings. Name "
                "their column with 'id'."
            )
        else:
            log.details["added_from"] = self.numbered

    @property
    def items(self) -> NDArray[Any]:
        """The vectors."""
        return self.vectors.table

    def ids(self, rows: Ints) -> Any:
        """Return the ids of these rows."""
        return self.vectors.name(rows) if self.vectors.ids is not None else to_arrow(rows + (self.numbered or 0))

    def parts(self, rows: Ints) -> Iterator[tuple[Ints, NDArray[Any]]]:
        """Yield these rows with their vectors, many at a time."""
        table = self.items
        step = max(1, TOGETHER // max(1, table.nbytes // max(1, len(table))))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            yield some, table[some]


def _kept_ids(run: FinishedRun) -> Any:
    """Return the ids of the rows that a run kept, in their order."""
    clusters, removed = run.table("clusters"), run.table("removed")
    if clusters is None:
        return pa.array([], pa.int64())
    gone = [] if removed is None else [batch.column(0) for batch in removed.batches(["id"])]
    ids = pa.chunked_array([batch.column(0) for batch in clusters.batches(["id"])], clusters.type_of("id"))
    return ids.filter(pc.invert(pc.is_in(ids, pa.chunked_array(gone, ids.type)))).combine_chunks()
