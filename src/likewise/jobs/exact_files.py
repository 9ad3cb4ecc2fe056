"""`exact.pairs` and `exact.explain` on files and tables, with ids: what `likewise exact` runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.memory import free_memory, parse_size, peak_memory
from likewise.base.runlog import RunLog
from likewise.errors import InputError
from likewise.io.read import ReadOptions
from likewise.io.workspace import Workspace
from likewise.jobs.result import pair_table
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.explain import explain as explain_sets
from likewise.search.exact.pairs import join_sets
from likewise.search.load import Collection, collect
from likewise.shingle import Shingler, Tokens, parse_shingler


@dataclass(frozen=True)
class Exact:
    """The pairs (id_a, id_b, similarity), if they were asked for, and what is to be said of them."""

    table: Any | None
    stats: dict[str, Any]


def exact_files(
    source: Any,
    other: Any = None,
    *,
    threshold: float,
    measure: str = "jaccard",
    index: str = "auto",
    shingle: str | Shingler = "tokens",
    text: str = "text",
    id: str | None = None,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    pairs: bool = True,
    explain: bool = False,
) -> Exact:
    """Read sets from files or tables, find all similar pairs, and name them by their ids."""
    bounds = Bounds(measure, threshold, "exact")
    shingler = parse_shingler(shingle, owner="exact")
    count = checks.threads("exact", threads)
    budget = free_memory() // 2 if memory is None else parse_size("exact", "memory", memory)
    sets = isinstance(shingler, Tokens)
    options = ReadOptions(
        text=text, id=id, on_error=on_error, encoding_errors=encoding_errors, lines=True, sets=sets, owner="exact"
    )
    log = RunLog()
    space = Workspace.temporary()
    parts = [collect(source, options, shingle, log, count, space)]
    if other is not None:
        parts.append(collect(other, options, parts[0].shingler or shingle, log, count, space, None, "read-other"))
    made = [_sets(part, count, log) for part in parts]
    aside = [entry for part in parts for entry in part.aside]
    counts: dict[str, Any] = {"sets": len(made[0]), **({"other": len(made[1])} if other is not None else {})}
    stats: dict[str, Any] = {
        "command": "exact",
        "parameters": {"threshold": threshold, "measure": measure, "index": index, "shingle": str(shingle)},
        "counts": counts,
        "set_aside": [vars(entry) for entry in aside[:100]],
    }
    if explain:
        if not all(map(len, made)):
            raise InputError("there are no sets to explain anything with: the input is empty")
        whole = None if other is None else made[1]
        stats["explained"] = explain_sets(made[0], threshold, measure, other=whole, threads=count).to_pylist()
    table = None
    if pairs:
        with log.stage("join"):
            found = join_sets(made[0], None if other is None else made[1], bounds, index, count, budget)
        counts.update(found.counts)
        table = pair_table(parts[0].name(found.left), parts[-1].name(found.right), found.similarity)
    space.finish()
    counts["set_aside"] = len(aside)
    stats["seconds"] = {stage: round(seconds, 4) for stage, seconds in log.seconds.items()}
    stats["peak_memory_bytes"] = peak_memory()
    return Exact(table, stats)


def _sets(part: Collection, threads: int, log: RunLog) -> Sets:
    assert part.items is not None
    with log.stage("sets"):
        return part.items.sets(np.arange(part.rows), threads)
