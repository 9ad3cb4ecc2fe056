"""`nearest`: the k nearest neighbours of every vector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.jobs.explain.traces import VectorTrace
from likewise.jobs.result import Nearest
from likewise.jobs.settings import Resources
from likewise.jobs.vectors import VectorSettings, aim_of, distance_table, read_vectors
from likewise.search.vectors.nearest import neighbours

OWNER = "nearest"


def nearest(
    source: Any,
    k: int = 10,
    *,
    other: Any = None,
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
    """Find the k nearest neighbours of every vector of `source`: among the others, or in the collection `other`.

    The table has the columns id_a, id_b, distance: for every vector id_a of `source` its k nearest vectors id_b, the
    nearest first, ties by row. With `other`, id_b is of that collection, as in `pairs(source, other, k=…)`.
    measure: "angle" (degrees), "l2", "l1" or "hamming".
    recall: the share of neighbours to find, on average; method="exact" compares all vectors and misses none,
        and is what "auto" takes for small or spread-out collections.
    The other parameters are those of `pairs` for vectors.

    >>> nearest([[0, 0], [0, 1], [5, 5], [5, 6]], k=1, measure="l2").to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'id_a': 0, 'id_b': 1, 'distance': 1.0}, {'id_a': 1, 'id_b': 0, 'distance': 1.0},
     {'id_a': 2, 'id_b': 3, 'distance': 1.0}, {'id_a': 3, 'id_b': 2, 'distance': 1.0}]
    >>> nearest([[0, 2]], k=1, other=[[9, 9], [0, 1]], measure="l2").to_pylist()
    [{'id_a': 0, 'id_b': 1, 'distance': 1.0}]
    """
    checks.whole(OWNER, "k", k)
    settings = VectorSettings(OWNER, measure, vector, id, recall, seed, method, int(k))
    resources = Resources.of(OWNER, threads, memory, spill)
    log = RunLog.of(progress)
    parts, space, split = read_vectors(source, other, settings, resources, log)
    aim = aim_of(settings, resources, 0.0)
    with threadpool_limits(1, "blas"):
        left, right, distance = neighbours(space, split, other is not None, int(k), aim, log)
    log.counts["pairs"] = len(left)
    parameters = {**settings.to_dict(), "threads": resources.threads, "memory": resources.budget.total}
    del parameters["within"], parameters["beyond"]
    found = Nearest(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))
    found.traced(VectorTrace(tuple(parts)))
    return found
