"""The scores of all pairs that a run compared, in its folder: another threshold then needs no second run.

scored.parquet has the pairs in the order in which they were decided, with what decided besides the score: labels, and
whether there is enough evidence. copies.parquet has the further copies of records, which were not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.decision import KnownPairs
from likewise.apps.link.fields import Floats
from likewise.apps.link.further_copies import KEPT, FurtherCopies
from likewise.apps.link.pair_reason import LinkageTrace
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import POINTS, ScoredRecords
from likewise.apps.link.scoring import UNIT
from likewise.base.arrays import Ints
from likewise.errors import DamagedError, MissingInput
from likewise.jobs.finished_run import FinishedRun, numbers

SCORED, COPIES = "scored.parquet", "copies.parquet"
COLUMNS = ("id_a", "id_b", "score", "match_probability", "match", "enough_evidence", "label")
UNITS = {"points": 1.0, "likeness": UNIT}
"""Points per unit of the scores, by how they were found; those of a model have POINTS."""


def stored_tables(scored: pa.Table, trace: LinkageTrace) -> dict[str, pa.Table | None]:
    """Return the files that keep the scores of a run; `scored` has its pairs, their scores and probabilities."""
    match = np.zeros(len(scored), bool)
    match[trace.decision.chosen] = True
    unlabelled, label = np.ones(len(scored), bool), np.zeros(len(scored), bool)
    unlabelled[trace.known.places], label[trace.known.places] = False, trace.known.match
    match, usable, label, unlabelled = (some[trace.by_row] for some in (match, trace.scored.usable, label, unlabelled))
    more = (pa.array(match), pa.array(usable), pa.array(label, mask=unlabelled))
    for name, column in zip(COLUMNS[4:], more, strict=True):
        scored = scored.append_column(name, column)
    return {SCORED: scored, COPIES: _copies_table(trace.records, trace.copies)}


def _copies_table(records: RecordTable, copies: FurtherCopies) -> pa.Table | None:
    """Return the further copies of records of each table, and those copies of them that were compared; None for none.

    A row has a record of one of the tables: the ids of two tables may be of different types.
    """
    columns = {}
    second = copies.rest >= records.border if records.border else np.zeros(len(copies.rest), bool)
    for side, here in (("a", ~second), ("b", second)):
        if here.any():
            places = pa.array(np.cumsum(here) - 1, mask=~here)
            compared = records.names(copies.kept[copies.copies[here].ravel()])
            offsets = pa.array(np.arange(0, len(compared) + 1, KEPT), pa.int32())
            columns[f"id_{side}"] = records.names(copies.rest[here]).take(places)
            columns[f"copies_{side}"] = pa.ListArray.from_arrays(offsets, compared).take(places)
    return pa.table(columns) if columns else None


@dataclass(frozen=True)
class StoredScores:
    """What a run stored: its pairs, of records that are numbered anew, and what was decided of them.

    The records have only their ids. In one table, the first record of a cluster has the lowest number: it is the left
    one of a pair, and left records have their order and come first. `match`: the pairs that were matches.
    """

    records: RecordTable
    copies: FurtherCopies
    pairs: RecordPairs
    scored: ScoredRecords
    probable: Floats
    known: KnownPairs
    match: NDArray[np.bool_]

    @classmethod
    def load(cls, run: FinishedRun) -> StoredScores:
        """Read them; raise if the run is of another command, or stored none."""
        run.must_be("link")
        if not (run.folder / SCORED).is_file():
            raise MissingInput(
                f"{run.folder}: there is no {SCORED} with the scores of all pairs; run link with scored=True"
            )
        table = _read(run.folder / SCORED)
        if tuple(table.column_names) != COLUMNS:
            raise DamagedError(f"{run.folder / SCORED}: this is another table; run link with scored=True again")
        further = _read(run.folder / COPIES) if "abridged" in run.details else pa.table({})
        two = "records_a" in run.counts
        ids = [table["id_a"], table["id_b"]]
        a, b = _IdColumn.of(ids[:1] if two else ids, further, "a"), _IdColumn.of(ids[1:] if two else [], further, "b")
        right = b.places(ids[1]) + len(a.kept) if two else a.places(ids[1])
        label, value = table["label"].combine_chunks(), _floats(table["score"])
        places = np.flatnonzero(numbers(label.is_valid()))
        unit = UNITS.get(run.stats["method"]["taken"], POINTS)
        return cls(
            _records(run, [a, b] if two else [a]),
            _copies(a, b, two),
            RecordPairs(a.places(ids[0]), right, run.details["candidates_by"], []),
            ScoredRecords(value / unit, numbers(table["enough_evidence"].combine_chunks()), unit),
            _floats(table["match_probability"]),
            KnownPairs(places, numbers(label)[places]),
            numbers(table["match"].combine_chunks()),
        )


@dataclass(frozen=True)
class _IdColumn:
    """The ids of one table: of the records that were compared, and of further copies with `copies` of those."""

    kept: pa.Array
    rest: pa.Array
    copies: Ints

    @classmethod
    def of(cls, ids: list[pa.ChunkedArray], further: pa.Table, side: str) -> _IdColumn:
        """Number the ids in these columns, and those of further copies, in the order in which they come first."""
        if f"id_{side}" not in further.column_names:
            kept = _unique(ids)
            return cls(kept, kept[:0], np.zeros((0, KEPT), np.int64))
        here = further.filter(pc.is_valid(further[f"id_{side}"]))
        compared = pc.list_flatten(here[f"copies_{side}"])
        kept = _unique([*ids, compared])
        return cls(kept, here[f"id_{side}"].combine_chunks(), _places(compared, kept).reshape(-1, KEPT))

    def places(self, ids: pa.ChunkedArray) -> Ints:
        """Return the numbers of records among the kept ones."""
        return _places(ids, self.kept)


def _unique(columns: list[pa.ChunkedArray]) -> pa.Array:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, columns[0].type if columns else pa.int64()).unique()


def _places(ids: pa.ChunkedArray, among: pa.Array) -> Ints:
    found: Ints = pc.index_in(ids, among).to_numpy().astype(np.int64)
    return found


def _records(run: FinishedRun, sides: list[_IdColumn]) -> RecordTable:
    """Return the records of both sides, of which nothing but the ids is known."""
    ids = [pa.chunked_array([side.kept, side.rest]) for side in sides]
    tables = [pa.table({run.details["id"] or "row": one}) for one in ids]
    border, count = len(ids[0]) if len(ids) > 1 else 0, sum(map(len, ids))
    wheres = [str(run.folder / SCORED)] * len(ids)
    return RecordTable(tables, wheres, border, count, run.details["id"], ids, [], [], run.stats["inputs"])


def _copies(a: _IdColumn, b: _IdColumn, two: bool) -> FurtherCopies:
    """Return the further copies, numbered after the compared records of their table."""
    first, last = len(a.kept), len(a.kept) + len(a.rest)
    end = last + len(b.kept)
    kept = np.concatenate([np.arange(first), np.arange(last, end)])
    rest = np.concatenate([np.arange(first, last), np.arange(end, end + len(b.rest))])
    return FurtherCopies(kept, rest, np.concatenate([a.copies, b.copies + first]), first if two else 0)


def _floats(column: pa.ChunkedArray) -> Floats:
    """Return numbers, NaN for null."""
    found: Floats = column.combine_chunks().cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"{path}: cannot be read ({error}); run link with scored=True again") from error
