"""The items of a finished run, read from its inputs once more, to explain its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, to_arrow
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.families.minhash import MinHash
from likewise.io.read import Files, Source, open_source
from likewise.io.workspace import Workspace
from likewise.jobs.finished_run import FinishedRun
from likewise.jobs.pair_traces import NOTHING, ItemReader, SetTrace, VectorTrace
from likewise.jobs.run_inputs import all_texts, input_files, reading_of_run, unchanged
from likewise.jobs.set_reason import SetReason
from likewise.jobs.state import State
from likewise.jobs.vector_reason import VectorReason
from likewise.search.load import collect, joined
from likewise.search.local import LocalExecutor
from likewise.search.matches import Sides
from likewise.search.plan import prepare
from likewise.search.prepare import SearchSettings
from likewise.search.vectors.load import vectors
from likewise.shingle import Shingler, shingler_of

OWNER = "explain"


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
        if self.run.command == "nearest" or self.run.parameters.get("within") is not None:
            return self.vectors().explain(ids, stats, found)
        return self.sets(ids).explain(ids, stats, found)

    def vectors(self) -> VectorTrace:
        """Read all vectors, or map their files."""
        column, id = self.run.parameters["vector"], self.run.parameters["id"]
        room = Budget.of(OWNER, None).texts
        return VectorTrace(tuple(vectors(Files(files), column, id, room, None, OWNER) for files in self.parts))

    def sets(self, ids: tuple[Any, Any]) -> SetTrace:
        """Open the documents, among them those with these ids."""
        run, files = self.run, self.parts
        if all_texts(run) and not run.state:  # run.json does not name all of many files, but an id is a path
            there = [str(id) for id in ids if unchanged(run, str(id))]
            files = [list(dict.fromkeys([*one, *there])) for one in files]
        options, shingler = reading_of_run(run, OWNER), shingler_of(run.parameters)
        sources = [open_source(Files(one), options) for one in files]
        whole = not run.counts.get("set_aside")
        parts = tuple(_reader(source, whole) for source in sources)
        return SetTrace(parts, shingler, _common(run, sources, shingler))


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
        parts = [collect(one, options, shingler, log, 2, space, budget.texts // len(sources), f"read-{number}")
                 for number, one in enumerate(sources)]  # fmt: skip
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
