"""Why two items of a finished run are a pair or not, from its folder and its input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.base.words import shortened
from likewise.errors import IncompatibleError
from likewise.jobs.finished_run import FinishedRun, StoredTable
from likewise.jobs.pair_traces import ExplainedPairs, ItemReader, SetTrace
from likewise.jobs.rethreshold import options_of_run, unchanged_source
from likewise.jobs.run_items import OWNER, RunItems
from likewise.jobs.set_reason import SetReason
from likewise.jobs.state import State
from likewise.jobs.vector_reason import VectorReason
from likewise.shingle import shingler_of

ELSEWHERE = {"link": "use likewise link … --explain ID_A ID_B"}
"""How the pairs of other commands are explained."""
OF_PAIRS = ("pairs", "nearest")


def explain_run(directory: str | Path, id_a: Any, id_b: Any) -> SetReason | VectorReason:
    """Explain two items of a finished run of `dedup`, `rethreshold`, `pairs` or `nearest`, by their ids.

    Documents and vectors are read from the input of the run, which must be there, unchanged. A run on Spark may have
    been anywhere, but its folder and its input must be on this machine.
    """
    run = FinishedRun.load(directory, OWNER)
    if run.command in OF_PAIRS:
        return RunPairs(run).explain(id_a, id_b)
    if run.command not in ("dedup", "rethreshold"):
        advice = ELSEWHERE.get(run.command, "explain takes the folder of a run of dedup, pairs or nearest")
        raise IncompatibleError(f"{run.folder}: this is the result of likewise {run.command}; {advice}")
    if not run.on_spark and "state" in run.details and not run.parameters.get("against"):
        return _with_state(run, id_a, id_b)
    return _of_tables(run, id_a, id_b)


class RunPairs(ExplainedPairs):
    """The pairs in the folder of a run of `pairs` or `nearest`."""

    def __init__(self, run: FinishedRun) -> None:
        self.stats = run.stats
        self._table = run.table("neighbours" if run.command == "nearest" else "pairs")
        self._trace = RunItems(run)
        self._batches = self._listed

    def _listed(self) -> Iterator[Any]:
        return iter(()) if self._table is None else self._table.batches(["id_a", "id_b"])


def _with_state(run: FinishedRun, id_a: Any, id_b: Any) -> SetReason:
    """Explain documents of a run whose `state/` knows every pair, also those of copies and crowds."""
    state = State.load(run.folder, OWNER)
    parameters, ids = run.parameters, state.ids
    source = unchanged_source(state, options_of_run(parameters))
    trace = SetTrace((ItemReader(len(ids), ids, source),), shingler_of(parameters), state.common)
    rows = trace.rows(id_a, id_b)
    names = [ids[row].as_py() for row in rows]
    of = state.groups.of[np.array(rows)]
    left, right = state.array("left"), state.array("right")
    pair = (left == of.min()) & (right == of.max()) & (state.array("similarity") >= parameters["threshold"])
    notes = _outcomes(run, names)
    return trace.explain((names[0], names[1]), run.stats, bool(of[0] == of[1] or pair.any()), notes=notes)


def _of_tables(run: FinishedRun, id_a: Any, id_b: Any) -> SetReason:
    """Explain documents of a run that left no state, or one of Spark.

    Pairs of large crowds are not all listed: of one that is not, and is similar enough, it is not known whether it was
    found.
    """
    trace = RunItems(run).sets((id_a, id_b))
    ids = trace.parts[0].ids
    names = [row if ids is None else ids[row].as_py() for row in trace.rows(id_a, id_b)]
    told = trace.explain((names[0], names[1]), run.stats, None, notes=_outcomes(run, names))
    same = told.shared == told.sizes[0] == told.sizes[1]
    listed = same or any(_rows_with(run.table("pairs"), ("id_a", "id_b"), names))
    below = told.similarity < told.scheme.threshold
    return replace(told, found=True if listed else False if below or "abridged" not in run.details else None)


def _outcomes(run: FinishedRun, names: list[Any]) -> tuple[str, ...]:
    """Say what became of documents."""
    rows = (row for row in _rows_with(run.table("removed"), ("id", "kept_id"), names, every=False))
    removed = {row["id"]: row["kept_id"] for row in rows}
    return tuple(
        f"{shortened(name, 40)} is removed; {shortened(removed[name], 40)} is kept in its place"
        if name in removed
        else f"{shortened(name, 40)} is kept"
        for name in names
    )


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
