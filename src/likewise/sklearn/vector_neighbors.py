"""`LSHNeighbors`: neighbours of vectors, by hash tables, cells, or comparing all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.memory import Budget
from likewise.base.runlog import RunLog
from likewise.errors import ParameterError
from likewise.search.expand import row_pairs
from likewise.search.scored import ScoredPairs, concatenated, no_pairs
from likewise.search.vectors.load import Vectors, space_of
from likewise.search.vectors.nearest import neighbours
from likewise.search.vectors.pairs import VectorAim, different, found_pairs
from likewise.search.vectors.spaces import Space, farthest
from likewise.sklearn.neighbors import ApproximateNeighbors, seed_of, threads_of

WIDER = 1 + 1e-12
"""A converted radius may be rounded down: pairs are sought within a little more, and dropped by their distance."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Metric:
    """A distance in scikit-learn's unit: the measure of likewise, and the conversions from it and to it.

    Both get the number of components.
    """

    measure: str
    distance: Callable[[Floats, int], Floats] = lambda found, width: found
    within: Callable[[float, int], float] = lambda radius, width: radius


METRICS = {
    "l2": Metric("l2"),
    "euclidean": Metric("l2"),
    "l1": Metric("l1"),
    "manhattan": Metric("l1"),
    "angle": Metric("angle"),
    "cosine": Metric(
        "angle",
        lambda found, width: 2 * np.sin(np.radians(found) / 2) ** 2,
        lambda radius, width: float(np.degrees(2 * np.arcsin(np.sqrt(min(1.0, radius / 2))))),
    ),
    "hamming": Metric("hamming", lambda found, width: found / width, lambda radius, width: radius * width),
}


class LSHNeighbors(ApproximateNeighbors):
    """Nearest neighbours of vectors by locality-sensitive hashing, with exact distances and a given recall.

    n_neighbors: the default of `kneighbors`. radius: the default of `radius_neighbors`, in the unit of the metric.
    metric: "l2" or "euclidean"; "l1" or "manhattan"; "cosine" (1 − cos); "angle" (degrees, from 0 to 180); "hamming"
        (the fraction of components that differ; they are 0 or 1). The values are scikit-learn's, which has no "angle".
        Vectors of zeros have no direction, and are an error with "cosine" and "angle".
    recall: the fraction of neighbours that is found, on average; a neighbour at the distance `radius` is found with at
        least this probability.
    method: "lsh", "exact" (no neighbour is missed), or "auto": for every call, what is predicted to be cheapest.
    graph, mode: what `transform` returns: the graph of "kneighbors" or of "radius", with "distance" or "connectivity".
    n_jobs: threads; None is 1, -1 all cores. random_state: the seed of the hash functions.

    `fit` only keeps the vectors. How they are searched is planned for every call, by the number of samples and the
    distances among them.

    Attributes: n_samples_fit_, n_features_in_, feature_names_in_.

    >>> points = [[0, 0], [0, 1], [5, 5], [5, 7]]
    >>> LSHNeighbors(n_neighbors=1).fit(points).kneighbors()[0].ravel().tolist()
    [1.0, 1.0, 2.0, 2.0]
    >>> LSHNeighbors(radius=2, metric="l1").fit(points).radius_neighbors([[0, 2]])[1][0].tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "l2",
        recall: float = 0.95,
        method: str = "auto",
        graph: str = "kneighbors",
        mode: str = "distance",
        n_jobs: int | None = None,
        random_state: Any = 1,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.recall = recall
        self.method = method
        self.graph = graph
        self.mode = mode
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read(self, X: Any, reset: bool) -> NDArray[Any]:
        checks.choice(type(self).__name__, "metric", self.metric, METRICS)
        table: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset)
        if self.metric == "hamming":
            if not np.isin(table, (0, 1)).all():
                raise ParameterError("LSHNeighbors: metric='hamming' compares bits; X must hold only 0 and 1")
            table = table.astype(bool)
        return table

    def _learn(self, samples: NDArray[Any]) -> None:
        self._seed = seed_of(self.random_state)
        self._vectors = samples
        if METRICS[self.metric].measure == "angle":
            self._space(None).look(threads_of(self.n_jobs))

    def _space(self, samples: NDArray[Any] | None) -> Space:
        """Return the samples and the fitted vectors, one after the other, or the fitted vectors alone."""
        tables = [self._vectors] if samples is None else [samples, self._vectors]
        parts = [Vectors(table, None, []) for table in tables]
        aim = self._aim(0)
        space = space_of(METRICS[self.metric].measure, parts, aim.memory, aim.spill)
        space.titles = ("sample {}", "sample {} of the fitted ones")
        return space

    def _aim(self, within: float) -> VectorAim:
        memory = Budget.of(type(self).__name__, None).total
        return VectorAim(within, self.recall, self._seed, self.method, threads_of(self.n_jobs), memory, None)

    def _nearest(self, samples: NDArray[Any] | None, k: int) -> ScoredPairs:
        split = 0 if samples is None else len(samples)
        space = self._space(samples)
        with threadpool_limits(1, "blas"):
            left, right, found = neighbours(space, split, samples is not None, k, self._aim(0), RunLog())
        return left, right - split, METRICS[self.metric].distance(found, space.dimensions)

    def _within(self, samples: NDArray[Any] | None, radius: float) -> ScoredPairs:
        metric, split = METRICS[self.metric], 0 if samples is None else len(samples)
        space = self._space(samples)
        width = space.dimensions
        within = min(metric.within(radius, width) * WIDER, farthest(metric.measure, width))
        left, right, found = _all_within(space, split, self._aim(within))
        distance = metric.distance(found, width)
        kept = distance <= radius
        left, right, distance = left[kept], right[kept] - split, distance[kept]
        if samples is not None:
            return left, right, distance
        return np.concatenate([left, right]), np.concatenate([right, left]), np.concatenate([distance, distance])


def _all_within(space: Space, split: int, aim: VectorAim) -> ScoredPairs:
    """Return all pairs of rows within a distance, those of copies written out; below `split` and from it on, if given.

    Within one collection every pair is there once.
    """
    groups, here, one_each = different(space, split, bool(split), aim, RunLog())
    parts = [no_pairs()]
    if one_each is not None:
        with threadpool_limits(1, "blas"):
            parts.append(found_pairs(one_each, here, aim, RunLog()))
    if not split:
        several = np.flatnonzero(groups.sizes > 1)
        parts.append((several, several, np.zeros(len(several))))
    return row_pairs(concatenated(parts), groups)
