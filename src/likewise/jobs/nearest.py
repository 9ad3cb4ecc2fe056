"""`nearest`: the k nearest neighbours of every vector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.jobs.result import Nearest
from likewise.search.prepare import METHODS
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.nearest import neighbours
from likewise.search.vectors.pairs import VectorAim
from likewise.search.vectors.spaces import check_measure

OWNER = "nearest"


def nearest(
    source: Any,
    k: int = 10,
    *,
    queries: Any = None,
    measure: str = "angle",
    vector: str = "vector",
    id: str | None = None,
    recall: float = 0.99,
    method: str = "auto",
    threads: int | None = None,
    seed: int = 1,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    progress: Progress | None = None,
) -> Nearest:
    """Return a table (id_a, id_b, distance): for every vector its k nearest others, the nearest first, ties by row.

    With `queries`, for every vector of those its k nearest of `source`. Each of them is found with probability `recall`
    at least; method="exact" compares all and misses none, and is what "auto" takes for small or spread-out collections.
    The other parameters are those of `pairs` for vectors.

    >>> nearest([[0, 0], [0, 1], [5, 5], [5, 6]], k=1, measure="l2").to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'id_a': 0, 'id_b': 1, 'distance': 1.0}, {'id_a': 1, 'id_b': 0, 'distance': 1.0},
     {'id_a': 2, 'id_b': 3, 'distance': 1.0}, {'id_a': 3, 'id_b': 2, 'distance': 1.0}]
    """
    check_measure(OWNER, measure)
    checks.seed(OWNER, seed)
    checks.recall(OWNER, recall)
    checks.whole(OWNER, "k", k)
    checks.choice(OWNER, "method", method, METHODS)
    budget, count = Budget.of(OWNER, memory), checks.threads(OWNER, threads)
    log = RunLog.of(progress)
    folder = Path(spill) if spill is not None else None
    with log.stage("read"):
        targets = vectors(source, vector, id, budget.texts, folder, OWNER)
        asked = targets if queries is None else vectors(queries, vector, id, budget.texts, folder, OWNER)
        parts = [targets] if queries is None else [asked, targets]
        space = space_of(measure, parts, budget.texts, folder)
        space.titles = ("vector {}" if queries is None else "vector {} of the queries", "vector {}")
    split = 0 if queries is None else len(asked.table)
    aim = VectorAim(0.0, recall, seed, method, count, budget.total, folder)
    with threadpool_limits(1, "blas"):
        left, right, distance = neighbours(space, split, queries is not None, int(k), aim, log)
    log.counts["pairs"] = len(left)
    parameters = {
        "measure": measure, "k": int(k), "recall": recall, "method": method, "seed": seed, "vector": vector, "id": id,
        "threads": count, "memory": budget.total,
    }  # fmt: skip
    return Nearest(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))


def distance_table(parts: list[Vectors], split: int, left: Ints, right: Ints, distance: Any) -> Any:
    """Return the table id_a, id_b, distance of these rows."""
    names = {"id_a": parts[0].name(left), "id_b": parts[-1].name(right - split)}
    return pa.table({**names, "distance": to_arrow(np.asarray(distance, np.float64))})
