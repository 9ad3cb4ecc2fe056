"""New documents against those that earlier runs kept, on Spark: these are read from kept/ and sketched again.

An earlier run may have been made by either engine. Its documents come first, in the order of its rows, and are never
removed. The local engine takes their band keys from the state; here they are made anew, which is a map without a
shuffle, because keys would have to be brought together with the documents that candidates need anyway.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints, TextChunk, to_arrow
from likewise.base.copies import chunk_digests
from likewise.errors import IncompatibleError
from likewise.io.publish import MANIFEST
from likewise.io.read import Files, ReadOptions
from likewise.jobs.against import Against, check_runs, check_settings, kept_ids, run_settings
from likewise.jobs.reference_items import QueriedItems
from likewise.jobs.state import State
from likewise.search.cluster import Removal
from likewise.search.expand import listed_pairs
from likewise.search.items import BYTES_A_BYTE
from likewise.search.matches import VerifiedPairs
from likewise.shingle import Shingler
from likewise.spark.asked import SparkIndex
from likewise.spark.context import check_machines, is_connect, one_machine
from likewise.spark.corpus import ROW, Corpus, numbered
from likewise.spark.direct import TEXT
from likewise.spark.folder import folder_at, located
from likewise.spark.in_place import deposited
from likewise.spark.known_sets import KnownSets, MixedShingler
from likewise.spark.members import VALUE, LargeMembers, positions_of
from likewise.spark.rowset import RowSet
from likewise.spark.run import ClusterRun
from likewise.spark.session import quiet, session_of, spark_errors
from likewise.spark.source import Deposit, SparkInput, open_input
from likewise.spark.state import SparkState
from likewise.spark.store import Checkpoints
from likewise.spark.tables import DriverTables
from likewise.spark.universe import Universe

SCHEME = "://"
Opening = Callable[[Any], QueriedItems | None]
"""Returns an index; None if what is given is none."""


@dataclass(frozen=True)
class SparkRun:
    """A finished run on Spark, as `Against` sees a run."""

    directory: str
    state: SparkState

    @property
    def about(self) -> dict[str, Any]:
        """How the run was made."""
        return self.state.about

    @property
    def run(self) -> dict[str, Any]:
        """The content of run.json."""
        return self.state.run

    @cached_property
    def common(self) -> Hashes:
        """The shingles that the run left out as too common."""
        return np.array(self.state.about["common"], np.uint64)

    @property
    def count(self) -> int:
        """The number of documents that were kept."""
        return self.state.gone.total - len(self.state.gone)


@dataclass(frozen=True)
class _RunSettings:
    """What `check_settings` asks of a finished run."""

    state: Any

    @property
    def where(self) -> str:
        return str(self.state.directory)

    @property
    def settings(self) -> dict[str, Any]:
        return run_settings(self.state)

    @property
    def common(self) -> Hashes:
        found: Hashes = self.state.common
        return found


class SparkAgainst(Against):
    """The finished runs and the indexes that new documents are compared with on Spark.

    opened: returns an index, or None if this is none.
    """

    def __init__(self, session: Any, given: list[Any], opened: Opening) -> None:
        self.session = session
        self.states: list[Any] = []
        super().__init__(given, partial(self._known, opened=opened))
        self.shingler: Shingler = self.settings["shingle"]
        self.mixed: MixedShingler | None = None
        if indexes := [one for one in self.states if isinstance(one, SparkIndex)]:
            self.mixed = MixedShingler.of(self.shingler, KnownSets([one.asked.state for one in indexes]))

    def _known(self, given: Any, opened: Opening) -> Any:
        """Open a run or an index; return what has its settings."""
        index = opened(given)
        self.states.append(_opened(self.session, given) if index is None else SparkIndex(index))
        return _RunSettings(self.states[-1]) if index is None else index

    def close(self) -> None:
        """Let go of indexes."""
        for one in self.states:
            if isinstance(one, SparkIndex):
                one.items.close()

    def check_together(self) -> None:
        """Raise if new documents cannot be compared with all of these in one way."""
        check_runs([one for one in self.states if not isinstance(one, SparkIndex)])
        for one in self.known[1:]:
            check_settings(self.known[0], one)

    def check_seen(self) -> None:
        """Raise unless the machines of tasks see the indexes as they are here."""
        indexes = [one for one in self.states if isinstance(one, SparkIndex)]
        if indexes and (is_connect(self.session) or not one_machine(self.session)):
            check_machines(self.session)
        for one in indexes:
            one.check_seen(self.session)

    @property
    def places(self) -> list[str]:
        """The runs and the indexes, for run.json."""
        return [one.items.place if isinstance(one, SparkIndex) else str(one.directory) for one in self.states]

    @property
    def total(self) -> int:
        """The number of documents that the runs kept and the indexes hold, whether they take part or not."""
        return sum(one.asked.live if isinstance(one, SparkIndex) else _count(one) for one in self.states)

    @property
    def count(self) -> int:
        """The number of documents that take part."""
        return sum(map(_count, self.states))

    @property
    def identity(self) -> list[list[Any]]:
        """What tells these from others: the folders and the checksums of the states of runs and of indexes."""
        states = [
            one.asked.state if isinstance(one, SparkIndex) else one.run["details"]["state"] for one in self.states
        ]
        return [list(one) for one in zip(self.places, states, strict=True)]

    def means(self) -> tuple[int | None, ...]:
        """Return the bytes that a set of each run is taken to have: what the local engine takes."""
        each, found = BYTES_A_BYTE[self.shingler.name], list[int | None]()
        for state in self.states:
            counts = {} if isinstance(state, SparkIndex) else state.run["counts"]
            found.append(int(counts.get("bytes", 0) / max(1, counts["items"])) * each + 64 if counts else None)
        return tuple(found)

    def deposits(self, checkpoints: Checkpoints, new: Corpus) -> list[Deposit]:
        """Write the documents to the folder of this run, with their numbers."""
        found = []
        for number, state in enumerate(self.states):
            if isinstance(state, SparkIndex):
                assert self.mixed is not None
                found.append(state.deposit(new, self.mixed.known_sets, number + 1, checkpoints))
                continue
            given, options = self._input(state)
            layout = state.state.layout if isinstance(state, SparkRun) else None
            if layout is not None and np.array_equal(*layout):
                layout = None
            part = deposited(given, options, checkpoints, f"earlier-{number + 1}", 0, layout)
            if part.numbering.rows != _count(state):
                raise IncompatibleError(
                    f"{state.directory}: kept/ has {part.numbering.rows} documents and the run kept {_count(state)};"
                    " the folder has changed since; run it again"
                )
            found.append(part)
        return found

    def _input(self, state: Any) -> tuple[SparkInput, ReadOptions]:
        parameters = state.run["parameters"]
        if parameters.get("group"):
            raise IncompatibleError(f"{state.directory}: this run is one of groups, which Spark does not have yet")
        options = ReadOptions(
            text=parameters["text"],
            html=parameters.get("html", False),
            encoding_errors=parameters["encoding_errors"],
            owner="dedup",
        )
        if isinstance(state, SparkRun):
            folder = state.state.folder / "kept"
            files = [(folder / name).path for name in folder.names() if name.endswith(".parquet")]
        else:
            files = [str(path) for path in state.kept_files(1)]
        return open_input(self.session, Files(files), options), options

    def ids(self, number: int, places: Ints, corpus: Corpus) -> Any:
        """Return the ids of some documents of a run, by their places among those kept."""
        state = self.states[number]
        if isinstance(state, SparkIndex):
            return corpus.column(places, VALUE, number)
        if not isinstance(state, SparkRun):
            return kept_ids(state).take(to_arrow(places))
        column = state.run["parameters"]["id"]
        return to_arrow(state.state.names(places)) if column is None else corpus.column(places, column, number)

    def ids_of(self, members: LargeMembers, column: str | None) -> tuple[Any, bool]:
        """Return (row, value): the ids of the members of a large corpus, earlier and new ones; and whether they are
        text because those of the runs have several types."""
        parts = [self._ids_of(number, members) for number, state in enumerate(self.states) if _count(state)]
        new = len(self.states)
        parts.append(members.ids(column, new, f"names-{new + 1}"))
        text = len({dict(part.dtypes)[VALUE] for part in parts}) > 1
        if text:
            parts = [part.selectExpr(ROW, f"cast({VALUE} as string) as {VALUE}") for part in parts]
        return reduce(lambda one, other: one.unionAll(other), parts), text

    def _ids_of(self, number: int, members: LargeMembers) -> Any:
        """Return (row, value): the ids of the members that a run kept. Those of a run on Spark stay on the cluster."""
        state = self.states[number]
        if isinstance(state, SparkIndex):
            return members.ids(VALUE, number, f"names-{number + 1}")
        if not isinstance(state, SparkRun):
            start, stop = self.starts[number : number + 2].tolist()
            places = np.arange(start, stop)
            places = places[members.rows.has(places)]
            found = pa.table({ROW: to_arrow(places), VALUE: kept_ids(state).take(to_arrow(places - start))})
            return members.corpus.session.createDataFrame(found)
        column = state.run["parameters"]["id"]
        if column is None:
            return positions_of(members.corpus, members.frame.select(ROW), number, state.state.missing)
        return members.ids(column, number, f"names-{number + 1}")

    def origin(self, row: str) -> str:
        """Return an expression of Spark for the folder of the run that kept a row; null for new documents."""
        names = (one.where.replace("\\", "\\\\").replace("'", "\\'") for one in self.known)
        cases = (f"when {row} < {stop} then '{name}'" for stop, name in zip(self.starts[1:], names, strict=True))
        return f"case {' '.join(cases)} end"

    @property
    def starts(self) -> Ints:
        """The first row of each run, and of the new documents."""
        return np.cumsum([0, *map(_count, self.states)])

    def origins(self, rows: Ints) -> Any:
        """Return for each row the folder of the run that kept it; null for new documents."""
        folders = pa.array([one.where for one in self.known] + [None], pa.string())
        return folders.take(to_arrow(np.searchsorted(self.starts, rows, side="right") - 1))


def _count(state: Any) -> int:
    """Return how many documents a run kept, or an index found."""
    return state.count if isinstance(state, SparkRun | SparkIndex) else len(state.kept)


def _opened(session: Any, directory: str | Path) -> Any:
    """Return a finished run: of the local engine, or of this one."""
    path = os.fspath(directory)
    folder = folder_at(session, located(session, path))
    if SCHEME in path or '"engine": "spark"' in ((folder / MANIFEST).read() or ""):
        state = SparkState.load(folder)
        if state.about.get("bands") is None:
            raise IncompatibleError(f"{path}: the files of kept/ are not in a known order; run it again")
        return SparkRun(path, state)
    return State.load(directory)


class AgainstTables(DriverTables):
    """The tables of a run against earlier ones: of new documents only, and where the other one is."""

    def __init__(
        self, run: ClusterRun, corpus: Corpus, universe: Universe, matches: VerifiedPairs, removal: Removal,
        earlier: SparkAgainst,
    ) -> None:  # fmt: skip
        self.earlier = earlier
        super().__init__(run, corpus, universe, matches, self._of_new(corpus, universe, removal))
        run.log.counts["items"] = len(corpus) - corpus.earlier
        run.log.counts["earlier"] = earlier.total

    def _of_new(self, corpus: Corpus, universe: Universe, removal: Removal) -> Removal:
        """Keep the removals of new documents, and find which of them are byte for byte one that was kept earlier."""
        old = universe.place(np.array([corpus.earlier]))[0]
        new = removal.since(old)
        asked = np.flatnonzero((new.keepers < old) & (new.similarity == 1.0))
        if len(asked):
            both = np.unique(universe.rows[np.concatenate([new.rows[asked], new.keepers[asked]])])
            found = printed(corpus, RowSet(len(corpus), [both]), self.earlier.mixed, both).toArrow()
            order = np.argsort(np.asarray(found.column(ROW), np.int64))
            digests = np.array(found.column(VALUE).to_pylist(), dtype=object)[order]
            one, other = (np.searchsorted(both, universe.rows[side[asked]]) for side in (new.rows, new.keepers))
            new.identical[asked] |= (digests[one] == digests[other]).astype(bool)
        return new

    def _listed(self, matches: VerifiedPairs) -> Any:
        left, right, similarity, abridged = listed_pairs(matches, items=len(self.corpus))
        new = self.universe.rows[right] >= self.corpus.earlier
        return left[new], right[new], similarity[new], abridged

    def _named_rows(self) -> Any:
        """Return the ids of the universe; as text if those of the runs have several types."""
        rows, starts = self.universe.rows, self.earlier.starts
        cuts = np.searchsorted(rows, starts)
        parts = [
            self.earlier.ids(number, rows[cuts[number] : cuts[number + 1]] - starts[number], self.corpus)
            for number in np.flatnonzero(np.diff(starts)).tolist()
        ]
        fresh = rows[cuts[-1] :] - starts[-1]
        column = self.run.request.id
        part = self.corpus.parts[-1]
        parts.append(
            to_arrow(part.positions(fresh))
            if column is None
            else self.corpus.column(fresh, column, len(self.earlier.states))
        )
        plain = [part.cast(pa.large_string()) if pa.types.is_string(part.type) else part for part in parts]
        self.as_text = len({str(part.type) for part in plain}) > 1
        return pa.concat_arrays([part.cast(pa.large_string()) for part in plain] if self.as_text else plain)

    def pairs(self) -> Any:
        """Return the pairs, and where the first document of each is."""
        origins = self.earlier.origins(self.universe.rows[self._pairs[0]])
        return self._pair_table().append_column("a_in", origins)

    def removed(self) -> Any:
        """Return the removed documents, and where the one kept for each is."""
        origins = self.earlier.origins(self.universe.rows[self.removal.keepers])
        return self._removed_table().append_column("kept_in", origins)


def printed(corpus: Corpus, wanted: RowSet, mixed: MixedShingler | None, rows: Ints | None = None) -> Any:
    """Return (row, value): fingerprints of the documents of some rows, equal if they are, byte for byte.

    rows: the same rows, ascending, if the driver has them.
    """
    known = corpus.broadcast((wanted, mixed))
    sender = partial(_printed, numbering=corpus.shared_numbering, known=known)
    return corpus.map_texts(sender, f"{ROW} bigint, {VALUE} binary", rows)


def _printed(batches: Iterator[Any], numbering: Any, known: Any) -> Iterator[Any]:
    wanted, mixed = known.value
    for batch in batches:
        rows, rest = numbered(batch, numbering.value)
        chosen = np.flatnonzero(wanted.has(rows))
        if len(chosen):
            chunk = TextChunk.from_arrow(rest.column(rest.schema.get_field_index(TEXT)).take(to_arrow(chosen)))
            digests = chunk_digests(chunk, np.arange(len(chunk))) if mixed is None else mixed.digests(chunk)
            values = pa.array([one.tobytes() for one in digests], pa.binary())
            yield pa.RecordBatch.from_arrays([to_arrow(rows[chosen]), values], [ROW, VALUE])


def settings_of(given: list[Any], master: str | None, opened: Opening) -> dict[str, Any]:
    """Return the settings that new documents must share with these runs and indexes, for the command line."""
    session = session_of("dedup", [], master)
    with spark_errors(), quiet(), SparkAgainst(session, given, opened) as known:
        return known.settings
