"""Why two documents of a finished run are a pair or not, from its folder and its input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from likewise.base.words import shortened
from likewise.errors import IncompatibleError, MissingInput
from likewise.io.publish import MANIFEST
from likewise.io.seals import read_sealed
from likewise.jobs.explained import ItemReader, SetTrace
from likewise.jobs.rethreshold import options_of_run, unchanged_source
from likewise.jobs.set_reason import SetReason
from likewise.jobs.state import State
from likewise.shingle import shingler_of

ELSEWHERE = {
    "link": "say likewise link … --explain ID_A ID_B",
    "pairs": "compare two of its documents as FILE#ID",
}
"""How the pairs of other commands are explained."""


def explain_run(directory: str | Path, id_a: Any, id_b: Any) -> SetReason:
    """Explain two documents of a finished run of `dedup` or `rethreshold`, by their ids.

    Documents are read from the input of the run, which must be there, unchanged.
    """
    folder = Path(directory)
    try:
        run, _ = read_sealed(folder / MANIFEST, "run it again")
    except FileNotFoundError as error:
        raise MissingInput(f"{folder}: there is no finished run in this folder (no {MANIFEST})") from error
    command = run.get("command")
    if command not in ("dedup", "rethreshold"):
        advice = ELSEWHERE.get(str(command), "explain takes the folder of a run of likewise dedup")
        raise IncompatibleError(f"{folder}: this is the result of likewise {command}; {advice}")
    state = State.load(folder, "explain")
    parameters, ids = run["parameters"], state.ids
    source = unchanged_source(state, options_of_run(parameters))
    trace = SetTrace((ItemReader(len(ids), ids, source),), shingler_of(parameters), state.common)
    rows = trace.rows(id_a, id_b)
    kept = {"columns": ["id", "kept_id"], "filters": pc.field("id").isin(ids.take(pa.array(rows)))}
    removed = {row["id"]: row["kept_id"] for row in pq.read_table(folder / "removed.parquet", **kept).to_pylist()}
    names = [ids[row].as_py() for row in rows]
    notes = tuple(
        f"{shortened(name, 40)} is removed; {shortened(removed[name], 40)} is kept for it"
        if name in removed
        else f"{shortened(name, 40)} is kept"
        for name in names
    )
    of = state.groups.of[np.array(rows)]
    left, right = state.array("left"), state.array("right")
    pair = (left == of.min()) & (right == of.max()) & (state.array("similarity") >= parameters["threshold"])
    return trace.explain((names[0], names[1]), run, bool(of[0] == of[1] or pair.any()), notes=notes)
