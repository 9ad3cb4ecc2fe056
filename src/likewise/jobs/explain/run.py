"""Why two items of a finished run are a pair or not, from its folder and its inputs, which are read once more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.arrays import Hashes, to_arrow
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.errors import IncompatibleError
from likewise.families.minhash import MinHash
from likewise.io.read import Files, Source, open_source
from likewise.io.workspace import Workspace
from likewise.jobs.explain.reasons import SetReason, VectorReason
from likewise.jobs.explain.traces import NOTHING, ExplainedPairs, ItemReader, SetTrace, VectorTrace, outcome
from likewise.jobs.finished_run import FinishedRun, StoredTable, all_texts, input_files, reading_of_run, unchanged
from likewise.jobs.rethreshold import options_of_run, unchanged_source
from likewise.jobs.state import State
from likewise.search.load import collect, joined
from likewise.search.local import LocalExecutor
from likewise.search.matches import Sides
from likewise.search.plan import prepare
from likewise.search.prepare import SearchSettings
from likewise.search.vectors.load import vectors
from likewise.shingle import Shingler, shingler_of

OWNER = "explain"
ELSEWHERE = {"link": "use likewise link … --explain ID_A ID_B"}
"""How the pairs of other commands are explained."""


def explain_run(directory: str | Path, id_a: Any, id_b: Any) -> SetReason | VectorReason:
    """Explain two items of a finished run of `dedup`, `rethreshold`, `pairs` or `nearest`, by their ids.

    Documents and vectors are read from the input of the run, which must be there, unchanged. A run on Spark may have
    been anywhere, but its folder and its input must be on this machine.
    """
    run = FinishedRun.load(directory, OWNER)
    if run.command in ("pairs", "nearest"):
        return RunPairs(run).explain(id_a, id_b)
    if run.command == "dedup" and run.parameters.get("within") is not None:
        if run.parameters.get("against"):
            raise IncompatibleError(
                f"{run.folder}: this run was compared with others; result.explain has their vectors"
            )
        told, removed, names = RunPairs(run).explain(id_a, id_b), run.table("removed"), [id_a, id_b]
        if removed is not None:
            names = pa.array(names).cast(removed.type_of("id")).to_pylist()
        return replace(told, notes=(*told.notes, *_outcomes(run, names)))
    if run.command not in ("dedup", "rethreshold"):
        advice = ELSEWHERE.get(run.command, "explain takes the folder of a run of dedup, pairs or nearest")
        raise IncompatibleError(f"{run.folder}: this is the result of likewise {run.command}; {advice}")
    if run.parameters.get("unit"):
        raise IncompatibleError(
            f"{run.folder}: this run cut {run.parameters['unit']}; cuts.parquet says of each which document has it, too"
        )
    if not run.on_spark and "state" in run.details and not run.parameters.get("against"):
        return _with_state(run, id_a, id_b)
    return _of_tables(run, id_a, id_b)


class RunPairs(ExplainedPairs):
    """The pairs in the folder of a run of `pairs` or `nearest`, or of `dedup` of vectors."""

    def __init__(self, run: FinishedRun) -> None:
        self.stats = run.stats
        self._table = run.table("neighbours" if run.command == "nearest" else "pairs")
        self._trace = RunItems(run)
        self.batches = lambda: () if self._table is None else self._table.batches(["id_a", "id_b"])


@dataclass(frozen=True)
class RunItems:
    """What explains the pairs of a run that is known by its run.json alone."""

    run: FinishedRun

    @cached_property
    def parts(self) -> list[list[str]]:
        """The files of each collection, which are there, unchanged."""
        return input_files(self.run)

    def explain(self, ids: tuple[Any, Any], stats: dict[str, Any], found: bool) -> SetReason | VectorReason:
        """Compare two items by the settings of the run."""
        parameters = self.run.parameters
        if self.run.command != "nearest" and parameters.get("within") is None:
            return self.sets(ids).explain(ids, stats, found)
        column, id, room = parameters["vector"], parameters["id"], Budget.of(OWNER, None).texts
        tables = (vectors(Files(files), column, id, room, None, OWNER) for files in self.parts)
        return VectorTrace(tuple(tables)).explain(ids, stats, found)

    def sets(self, ids: tuple[Any, Any]) -> SetTrace:
        """Open the documents, among them those with these ids."""
        run, collections = self.run, self.parts
        if all_texts(run) and not run.state:  # run.json does not name all of many files, but an id is a path
            there = [str(id) for id in ids if unchanged(run, str(id))]
            collections = [list(dict.fromkeys([*files, *there])) for files in collections]
        options, shingler = reading_of_run(run, OWNER), shingler_of(run.parameters)
        sources = [open_source(Files(files), options) for files in collections]
        whole = not run.counts.get("set_aside")
        return SetTrace(tuple(_reader(source, whole) for source in sources), shingler, _common(run, sources, shingler))


def _reader(source: Source, whole: bool) -> ItemReader:
    """Read the ids of a collection, if it has others than row numbers, or if its rows must be counted."""
    if source.ids == "row" and whole and source.total_rows is not None:
        return ItemReader(source.total_rows, None, source)
    rows, ids = 0, []
    for batch in source.batches(threads=2):
        rows += batch.num_rows
        if "id" in batch.schema.names:
            ids.append(batch.column("id"))
    if ids:
        return ItemReader(rows, source.finish_ids(pa.chunked_array(ids)), source)
    positions = source.positions()
    return ItemReader(rows, None if positions is None else to_arrow(positions), source)


def _common(run: FinishedRun, sources: list[Source], shingler: Shingler) -> Hashes:
    """Return the shingles that the run left out; if it did not store them, they are found again in all documents."""
    parameters, known = run.parameters, run.state.get("common")
    if parameters.get("ignore_common") is None:
        return NOTHING
    if run.on_spark and known is not None:
        return np.array(known, np.uint64)
    if "state" in run.details and not run.on_spark:
        return State.load(run.folder, OWNER).common
    space, budget, log = Workspace.temporary(), Budget.of(OWNER, None), RunLog()
    try:
        options = reading_of_run(run, OWNER)
        parts = [collect(source, options, shingler, log, 2, space, budget.texts // len(sources), f"read-{number}")
                 for number, source in enumerate(sources)]  # fmt: skip
        items = [part.items for part in parts if part.items is not None]
        sides = Sides(parts[0].rows, across=True) if len(parts) == 2 else None
        search = SearchSettings(
            parameters["threshold"], parameters["recall"], MinHash(parameters["seed"], parameters["sketch"]),
            threads=2, ignore_common=parameters["ignore_common"], method="exact",
        )  # fmt: skip
        executor = LocalExecutor(search, joined(*items) if sides else items[0], log, space, sides)
        prepare(executor)
        return executor.common
    finally:
        space.finish()


def _with_state(run: FinishedRun, id_a: Any, id_b: Any) -> SetReason:
    """Explain documents of a run whose `state/` knows every pair, also those of copies and crowds."""
    state = State.load(run.folder, OWNER)
    parameters, ids = run.parameters, state.ids
    source = unchanged_source(state, options_of_run(parameters))
    trace = SetTrace((ItemReader(len(ids), ids, source),), shingler_of(parameters), state.common)
    rows = trace.rows(id_a, id_b)
    a, b = (ids[row].as_py() for row in rows)
    of = state.groups.of[np.array(rows)]
    left, right = state.array("left"), state.array("right")
    low, high = of if parameters.get("measure") == "containment" else np.sort(of)
    pair = (left == low) & (right == high) & (state.array("similarity") >= parameters["threshold"])
    return trace.explain((a, b), run.stats, bool(of[0] == of[1] or pair.any()), notes=_outcomes(run, [a, b]))


def _of_tables(run: FinishedRun, id_a: Any, id_b: Any) -> SetReason:
    """Explain documents of a run that left no state, or one of Spark.

    Pairs of large crowds are not all listed: of one that is not, and is similar enough, it is not known whether it was
    found.
    """
    trace = RunItems(run).sets((id_a, id_b))
    ids = trace.parts[0].ids
    a, b = (row if ids is None else ids[row].as_py() for row in trace.rows(id_a, id_b))
    told = trace.explain((a, b), run.stats, None, notes=_outcomes(run, [a, b]))
    same = told.shared == told.sizes[0] == told.sizes[1]
    if same or any(_rows_with(run.table("pairs"), ("id_a", "id_b"), [a, b])):
        return replace(told, found=True)
    return replace(told, found=None if told.near and "abridged" in run.details else False)


def _outcomes(run: FinishedRun, names: list[Any]) -> tuple[str, ...]:
    """Say what became of documents."""
    rows = _rows_with(run.table("removed"), ("id", "kept_id"), names, every=False)
    removed = {row["id"]: row["kept_id"] for row in rows}
    return tuple(outcome(name, removed.get(name), run.parameters.get("keep")) for name in names)


def _rows_with(
    table: StoredTable | None, columns: tuple[str, str], names: list[Any], every: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rows whose first column has one of these values, and if `every`, the second too."""
    for batch in table.batches(columns) if table is not None else ():
        wanted = pa.array(names).cast(batch.column(0).type)
        flags = pc.is_in(batch.column(0), wanted)
        if every:
            flags = pc.and_(flags, pc.is_in(batch.column(1), wanted))
        if pc.any(flags).as_py():
            yield from batch.filter(flags).to_pylist()
