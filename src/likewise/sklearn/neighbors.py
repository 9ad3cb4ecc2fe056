"""What estimators share: their input, and the interface of `sklearn.neighbors.NearestNeighbors` over any search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.base import ClassNamePrefixFeaturesOutMixin as NumberedOutputs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.base.random import mix
from likewise.errors import InputError, ParameterError
from likewise.search.scored import ScoredPairs, best_first, concatenated
from likewise.shingle import parse_shingler

GRAPHS = ("kneighbors", "radius")
MODES = ("connectivity", "distance")
METHODS = ("auto", "exact", "lsh")
CELLS = 1 << 22
"""Cells of the table in which rows at the largest distance are chosen, at a time: 4 MB."""


def sets_of(estimator: Any, X: Any, reset: bool) -> Sets:
    """Return the samples as sets: the columns of a matrix that are not 0, or the shingles of texts.

    `reset`: X is what the estimator is fitted to.
    """
    if estimator.shingle is not None:
        owner = type(estimator).__name__
        texts = None if isinstance(X, str | bytes) or not hasattr(X, "__iter__") else list(X)
        strange = X if texts is None else next((text for text in texts if not isinstance(text, str)), None)
        if strange is not None or texts is None:
            raise ParameterError.of(owner, "X", "a list of texts with shingle given", strange)
        if not texts:
            raise ParameterError(f"{owner}: found 0 texts; a minimum of 1 is needed")
        return parse_shingler(estimator.shingle, owner=owner).sets(texts)
    matrix = validate_data(estimator, X, accept_sparse="csr", dtype="numeric", reset=reset)
    if hasattr(matrix, "indptr"):
        if not matrix.has_canonical_format or not matrix.data.all():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        columns, offsets = matrix.indices, matrix.indptr.astype(np.int64)
    else:
        rows, columns = np.nonzero(matrix)
        offsets = np.searchsorted(rows, np.arange(len(matrix) + 1)).astype(np.int64)
    # A bijection of column numbers, so there are no collisions; kernels expect elements that look random.
    return Sets(mix(columns.astype(np.uint64) + np.uint64(1)), offsets)


def tags_of_sets(estimator: Any, tags: Any) -> Any:
    """Complete the tags of an estimator for sets: which input it takes."""
    texts = estimator.shingle is not None
    tags.input_tags.sparse = not texts
    tags.input_tags.two_d_array = not texts
    tags.input_tags.string = texts
    return tags


def seed_of(random_state: Any) -> int:
    """Return a seed: an integer as it is, so that it gives the same hash functions as elsewhere in likewise."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def threads_of(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means, in scikit-learn's sense: None is 1, -1 all cores."""
    return int(effective_n_jobs(n_jobs))


@contextmanager
def value_errors() -> Iterator[None]:
    """Raise what is wrong with an input as the ValueError that users of scikit-learn expect."""
    try:
        yield
    except InputError as error:
        raise ParameterError(str(error)) from error


class ApproximateNeighbors(NumberedOutputs, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Neighbours in the fitted collection, of other samples or of its own; as arrays and as sparse graphs."""

    n_neighbors: int
    radius: float
    graph: str
    mode: str
    recall: float
    method: str
    n_samples_fit_: int
    _farthest = np.inf
    """The distance of samples that have nothing in common, where there is such a distance."""

    @abstractmethod
    def _read(self, X: Any, reset: bool) -> Any:
        """Check samples, and return them as the search takes them; they have a length."""

    @abstractmethod
    def _learn(self, samples: Any) -> None:
        """Keep the samples to be found."""

    @abstractmethod
    def _nearest(self, samples: Any | None, k: int) -> ScoredPairs:
        """Return up to k neighbours of each of these samples, of the fitted ones if None; the nearest first."""

    @abstractmethod
    def _within(self, samples: Any | None, radius: float) -> ScoredPairs:
        """Return the neighbours within a distance of each of these samples, of the fitted ones if None."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Take the samples among which neighbours are found; y is ignored."""
        owner = type(self).__name__
        checks.whole(owner, "n_neighbors", self.n_neighbors)
        checks.number(owner, "radius", self.radius, 0)
        checks.recall(owner, self.recall)
        checks.choice(owner, "method", self.method, METHODS)
        checks.choice(owner, "graph", self.graph, GRAPHS)
        checks.choice(owner, "mode", self.mode, MODES)
        with value_errors():
            samples = self._read(X, reset=True)
            self.n_samples_fit_ = len(samples)
            self._learn(samples)
        return self

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return the distances and the row numbers of the nearest neighbours, one row per sample, the nearest first.

        X: the samples, or None for the fitted ones, none of which is its own neighbour. n_neighbors: by default that of
        the estimator. Without return_distance only the row numbers are returned. Ties are broken by row number.
        """
        check_is_fitted(self)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        distances, rows = self._table(X, checks.whole(f"{type(self).__name__}.kneighbors", "n_neighbors", k))
        return (distances, rows) if return_distance else rows

    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Return the distances and the row numbers of all neighbours within a radius: arrays of one array per sample.

        X and return_distance are those of `kneighbors`. radius: by default that of the estimator. sort_results: the
        nearest first, otherwise by row number.
        """
        offsets, rows, distances = self._ragged(X, radius, sort_results)
        if sort_results and not return_distance:
            raise ParameterError("return_distance must be True if sort_results is True.")
        found = _cut(rows, offsets)
        return (_cut(distances, offsets), found) if return_distance else found

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """Return a sparse matrix of the nearest neighbours: a row per sample, a column per fitted sample.

        mode: "connectivity" has 1 for every neighbour, "distance" the distance, 0 included. X and n_neighbors are those
        of `kneighbors`.
        """
        checks.choice(f"{type(self).__name__}.kneighbors_graph", "mode", mode, MODES)
        distances, rows = self.kneighbors(X, n_neighbors)
        offsets = np.arange(len(rows) + 1) * rows.shape[1]
        return self._graph(distances.ravel(), rows.ravel(), offsets, mode)

    def radius_neighbors_graph(
        self, X: Any = None, radius: float | None = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """Return a sparse matrix of the neighbours within a radius; see `kneighbors_graph` and `radius_neighbors`."""
        checks.choice(f"{type(self).__name__}.radius_neighbors_graph", "mode", mode, MODES)
        offsets, rows, distances = self._ragged(X, radius, sort_results)
        return self._graph(distances, rows, offsets, mode)

    def transform(self, X: Any) -> Any:
        """Return the graph of the neighbours of X, as `graph` and `mode` say, the nearest first in every row.

        As in `sklearn.neighbors.KNeighborsTransformer`, there is one neighbour more than `n_neighbors` if mode is
        "distance": a fitted sample is its own neighbour at distance 0.
        """
        check_is_fitted(self)
        if self.graph == "radius":
            return self.radius_neighbors_graph(X, mode=self.mode, sort_results=True)
        return self.kneighbors_graph(X, self.n_neighbors + (self.mode == "distance"), self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X, and return the graph of its own neighbours, each sample being one of its own."""
        return self.fit(X).transform(X)

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def __sklearn_tags__(self) -> Any:
        """Return what kind of estimator this is: not one whose output has the type of the input."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _samples(self, X: Any) -> Any:
        with value_errors():
            return None if X is None else self._read(X, reset=False)

    def _table(self, X: Any, k: int) -> tuple[NDArray[np.float64], Ints]:
        """Return the k nearest neighbours of every sample: distances and rows."""
        samples = self._samples(X)
        others = self.n_samples_fit_ - (samples is None)
        if k > others:
            raise ParameterError(
                f"Expected n_neighbors <= {'n_samples_fit' if X is not None else 'n_samples_fit - 1'}, but "
                f"n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, n_samples = "
                f"{self.n_samples_fit_ if samples is None else len(samples)}"
            )
        with value_errors():
            left, right, distance = self._nearest(samples, k)
        n = self.n_samples_fit_ if samples is None else len(samples)
        if len(left) < n * k:
            left, right, distance = self._filled(left, right, distance, n, k, samples is None)
        return distance.reshape(n, k), right.reshape(n, k)

    def _filled(self, left: Ints, right: Ints, distance: Any, n: int, k: int, own: bool) -> ScoredPairs:
        """Add to rows with fewer than k neighbours the first samples that are at the largest distance."""
        counts = np.bincount(left, minlength=n)
        lacking = np.flatnonzero(counts < k)
        width = min(self.n_samples_fit_, 2 * k + 1)  # as many of the first samples are neighbours already, or itself
        place = np.full(n, -1)
        place[lacking] = np.arange(len(lacking))
        near = (place[left] >= 0) & (right < width)
        parts = [(left, right, -distance)]
        step = max(1, CELLS // width)
        for start in range(0, len(lacking), step):
            some = lacking[start : start + step]
            free = np.ones((len(some), width), bool)
            here = near & (place[left] >= start) & (place[left] < start + step)
            free[place[left[here]] - start, right[here]] = False
            if own:
                itself = np.flatnonzero(some < width)
                free[itself, some[itself]] = False
            free &= free.cumsum(axis=1) <= (k - counts[some])[:, None]
            row, column = np.nonzero(free)
            parts.append((some[row], column, np.full(len(row), -self._farthest)))
        left, right, closeness = best_first(*concatenated(parts), k)
        return left, right, 0 - closeness

    def _ragged(self, X: Any, radius: float | None, sort: bool) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Return where the neighbours of each sample begin, their rows, and their distances."""
        check_is_fitted(self)
        owner = f"{type(self).__name__}.radius_neighbors"
        within = checks.number(owner, "radius", self.radius if radius is None else radius, 0)
        samples = self._samples(X)
        with value_errors():
            left, right, distance = self._within(samples, within)
        order = np.lexsort((right, distance, left) if sort else (right, left))
        n = self.n_samples_fit_ if samples is None else len(samples)
        offsets = np.searchsorted(left[order], np.arange(n + 1))
        return offsets, right[order], distance[order]

    def _graph(self, distances: Any, rows: Ints, offsets: Ints, mode: str) -> Any:
        values = distances if mode == "distance" else np.ones(len(rows))
        return csr_matrix((values, rows, offsets), shape=(len(offsets) - 1, self.n_samples_fit_))


def _cut(values: NDArray[Any], offsets: Ints) -> NDArray[np.object_]:
    """Return an array of arrays."""
    cut = np.empty(len(offsets) - 1, object)
    cut[:] = np.split(values, offsets[1:-1])
    return cut
