"""`nearest`: the k nearest neighbours of every vector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.jobs.result import Nearest
from likewise.jobs.settings import Resources, VectorSettings
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.nearest import neighbours
from likewise.search.vectors.pairs import VectorAim
from likewise.search.vectors.spaces import Space

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
    recall: each neighbour is found with at least this probability; method="exact" compares all vectors and misses none,
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
    aim = VectorAim(0.0, settings.recall, seed, method, resources.threads, resources.budget.total, resources.spill)
    with threadpool_limits(1, "blas"):
        left, right, distance = neighbours(space, split, other is not None, int(k), aim, log)
    log.counts["pairs"] = len(left)
    parameters = {**settings.to_dict(), "threads": resources.threads, "memory": resources.budget.total}
    del parameters["within"]
    return Nearest(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))


def read_vectors(
    source: Any, other: Any, settings: VectorSettings, resources: Resources, log: RunLog
) -> tuple[list[Vectors], Space, int]:
    """Read one collection of vectors or two; also return them as one space, and the row at which the second begins."""
    sources = [source] if other is None else [source, other]
    if all(isinstance(one, np.ndarray) for one in sources):
        checks.unused(settings.owner, {"vector": (settings.vector, "vector")}, "for arrays, which have no columns")
    room, folder = resources.budget.texts, resources.spill
    with log.stage("read"):
        parts = [vectors(one, settings.vector, settings.id, room, folder, settings.owner) for one in sources]
        space = space_of(settings.measure, parts, room, folder)
    return parts, space, 0 if other is None else len(parts[0].table)


def distance_table(parts: list[Vectors], split: int, left: Ints, right: Ints, distance: Any) -> Any:
    """Return the table id_a, id_b, distance of these rows."""
    names = {"id_a": parts[0].name(left), "id_b": parts[-1].name(right - split)}
    return pa.table({**names, "distance": to_arrow(np.asarray(distance, np.float64))})
