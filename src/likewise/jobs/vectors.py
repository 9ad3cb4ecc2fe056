"""`nearest`, the k nearest neighbours of every vector, and what `pairs` of vectors shares with it."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import ParameterError
from likewise.io.disk import with_spill
from likewise.io.read import Files
from likewise.io.read.find import notes_on
from likewise.jobs.explain.traces import VectorTrace
from likewise.jobs.result import Nearest
from likewise.jobs.rows import distances_table
from likewise.jobs.settings import Given, Resources
from likewise.search.prepare import METHODS
from likewise.search.vectors.load import Vectors, space_of, vectors
from likewise.search.vectors.nearest import neighbours
from likewise.search.vectors.pairs import VectorAim
from likewise.search.vectors.spaces import Space, check_measure, check_within

OWNER = "nearest"


@dataclass(frozen=True)
class VectorSettings:
    """The settings of a search for similar vectors; `within` is checked when the vectors are known."""

    owner: str
    measure: str
    vector: str = "vector"
    id: str | None = None
    recall: float = 0.99
    seed: int = 1
    method: str = "auto"
    k: int | None = None
    within: float | None = None
    beyond: float | None = None

    def __post_init__(self) -> None:
        owner = self.owner
        check_measure(owner, self.measure)
        checks.column(owner, "vector", self.vector)
        if self.id is not None:
            checks.column(owner, "id", self.id)
        checks.seed(owner, self.seed)
        checks.choice(owner, "method", self.method, METHODS)
        object.__setattr__(self, "recall", checks.recall(owner, self.recall))
        if self.method == "exact":
            checks.unused(owner, {"recall": (self.recall, 0.99)}, "with method='exact'")
        if self.k is not None:
            checks.whole(owner, "k", self.k)

    def to_dict(self) -> dict[str, Any]:
        """Return all parameters, for run.json."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "owner"}


def settings_of(request: Any, unused: Given) -> VectorSettings:
    """Return the settings of a request for vectors; raise if one is missing, or given and has no effect."""
    if request.within is None:
        raise ParameterError(
            f"The 'within' parameter of {request.owner} is needed with measure={request.measure!r}: the largest "
            "distance of a pair."
        )
    unused = {**unused, **request.reading}
    checks.unused(request.owner, unused, f"with measure={request.measure!r}, which compares vectors")
    known = {
        field.name: getattr(request, field.name) for field in fields(VectorSettings) if hasattr(request, field.name)
    }
    return VectorSettings(**known)


def aim_of(settings: VectorSettings, resources: Resources, within: float) -> VectorAim:
    """Return what the search is for, and what it may use."""
    means = resources.threads, resources.budget.total, resources.spill
    return VectorAim(within, settings.recall, settings.seed, settings.method, *means)


def aimed(settings: VectorSettings, resources: Resources, space: Space) -> VectorAim:
    """Return what a search for pairs is for, with its distances checked."""
    within = check_within(settings.owner, settings.measure, settings.within, space.dimensions)
    aim = aim_of(settings, resources, within)
    if settings.beyond is not None:
        rule = f"at least 0 and below 'within', {aim.within:g}"
        checks.number(settings.owner, "beyond", settings.beyond, 0, aim.within, open_right=True, rule=rule)
    return aim


def read_vectors(
    source: Any,
    other: Any,
    settings: VectorSettings,
    resources: Resources,
    log: RunLog,
    scores: tuple[str, ...] = (),
) -> tuple[list[Vectors], Space, int]:
    """Read one collection of vectors or two; also return them as one space, and the row at which the second begins.

    scores: columns by which rows are preferred.
    """
    sources = [source] if other is None else [source, other]
    _check_images(settings.owner, sources)
    if not any(map(_has_columns, sources)):
        checks.unused(settings.owner, {"vector": (settings.vector, "vector")}, "for arrays, which have no columns")
    room, folder = resources.budget.texts, resources.spill
    with log.stage("read"):
        parts = [vectors(one, settings.vector, settings.id, room, folder, settings.owner, scores) for one in sources]
        log.notes += notes_on(*sources)
        space = space_of(settings.measure, parts, room, folder)
    return parts, space, 0 if other is None else len(parts[0].table)


def _check_images(owner: str, sources: list[Any]) -> None:
    """Raise if two stacks have images of different shapes: their pixels do not correspond, even if equally many."""
    shapes = [one.shape[1:] for one in sources if isinstance(one, np.ndarray) and one.ndim > 2]
    if len(shapes) == 2 and shapes[0] != shapes[1]:
        raise ParameterError(
            f"{owner}: images of shape {shapes[0]} cannot be compared with images of shape {shapes[1]};"
            " they have other components"
        )


def _has_columns(source: Any) -> bool:
    """Return whether vectors come in a column of a table, and not as an array, a list or .npy files."""
    if isinstance(source, str | os.PathLike | Files):
        paths = source.paths if isinstance(source, Files) else [source]
    elif isinstance(source, list | tuple):
        paths = [one for one in source if isinstance(one, str | os.PathLike)]
    else:
        return not isinstance(source, np.ndarray)
    return any(not os.fspath(path).lower().endswith(".npy") for path in paths)


def distance_table(parts: list[Vectors], split: int, left: Ints, right: Ints, distance: Any) -> Any:
    """Return the table id_a, id_b, distance of these rows."""
    return distances_table(parts[0].name(left), parts[-1].name(right - split), distance)


@with_spill
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
    parameters = {**settings.to_dict(), **resources.used}
    del parameters["within"], parameters["beyond"]
    found = Nearest(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))
    found.traced(VectorTrace(tuple(parts)))
    return found
