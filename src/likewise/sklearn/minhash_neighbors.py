"""`MinHashNeighbors`: neighbours by Jaccard distance, from band tables or by an exact join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints, Sets
from likewise.base.parallel import in_order
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.running import FamilyIndex
from likewise.families.tuning import fits
from likewise.kernels.overlap import verify_overlap
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import NO_FLOORS
from likewise.search.exact.pairs import pairs as exact_pairs
from likewise.search.prepare import SAMPLE, SAMPLE_SLOTS, SearchSettings, choose, lowest, similar_pairs, tuned
from likewise.search.scored import ScoredPairs, best_first, concatenated, no_pairs
from likewise.search.sketch import agreement_counts
from likewise.sklearn.inputs import seed_of, sets_of, tags_of_sets, threads_of
from likewise.sklearn.neighbors import ApproximateNeighbors
from likewise.sklearn.postings import SetPostings

LEAST = 2.0**-29
"""The least similarity of two sets that have anything in common: no set has more elements."""
ROUNDING = 1 - 1e-12
"""Sets are sought a little below 1 − radius, which may be rounded up; what is too far is dropped by its distance."""
QUERIES = 1 << 12
"""Sets that are looked up in the tables at a time, by each thread."""
NO_ROWS = np.zeros(0, np.int32)


class MinHashNeighbors(ApproximateNeighbors):
    """Nearest neighbours by the Jaccard distance of sets, 1 − |a ∩ b| / |a ∪ b|.

    A sample is a row of a matrix, dense or sparse, and the set of its columns that are not 0; or with `shingle`, a
    text and the set of its shingles. Two empty sets have distance 0.

    n_neighbors: the default of `kneighbors`.
    radius: the default of `radius_neighbors`, and the distance for which tables are made.
    recall: the probability with which each neighbour within `radius` is found. What is found has its exact distance.
    method: "lsh" (tables of minhash bands, MMDS §3.4), "exact" (no neighbour is missed), or "auto", whichever is
        predicted to be cheaper for these samples.
    shingle: None, or how texts become sets, such as "words:5" or "chars:9".
    graph, mode: what `transform` returns: the graph of "kneighbors" or of "radius", with "distance" or "connectivity".
    n_jobs: threads; None is 1, -1 all cores. random_state: the seed of the hash functions.

    Tables are made for `radius` by `fit`. A larger radius is answered by an exact join, and the nearest neighbours of
    samples that do not have n_neighbors within `radius` by counting what they have in common with all others.

    Attributes: banding_ (the bands and rows of the tables, None if the search is exact), n_samples_fit_,
    n_features_in_, feature_names_in_.

    >>> texts = ["a rose is a rose", "a rose is a rose is a rose", "to be or not to be"]
    >>> neighbors = MinHashNeighbors(n_neighbors=1, radius=0.5, shingle="words:2").fit(texts)
    >>> neighbors.radius_neighbors_graph(texts).toarray().astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """

    _farthest = 1.0

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 0.5,
        recall: float = 0.95,
        method: str = "auto",
        shingle: Any = None,
        graph: str = "kneighbors",
        mode: str = "distance",
        n_jobs: int | None = None,
        random_state: Any = 1,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.recall = recall
        self.method = method
        self.shingle = shingle
        self.graph = graph
        self.mode = mode
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read(self, X: Any, reset: bool) -> Sets:
        return sets_of(self, X, reset)

    def _learn(self, samples: Sets) -> None:
        threads = threads_of(self.n_jobs)
        minhash = MinHash(seed_of(self.random_state))
        self._sets, self._postings = samples, SetPostings.of(samples)
        self.banding_ = _banding(samples, 1 - float(self.radius), self.recall, self.method, minhash, threads)
        self._tables = None
        if self.banding_ is not None:
            self._tables = SetTables.of(samples, minhash, self.banding_)

    def _within(self, samples: Sets | None, radius: float) -> ScoredPairs:
        asked = self._sets if samples is None else samples
        if radius >= 1:
            some = self._joined(samples, LEAST)
            left, right = np.divmod(np.arange(len(asked) * len(self._sets)), len(self._sets))
            distance = np.ones(len(left))
            distance[some[0] * len(self._sets) + some[1]] = _distances(asked, self._sets, *some)
        else:
            threshold = (1 - radius) * ROUNDING
            if self._tables is not None and radius <= self.radius:
                left, right, similarity = self._tables.query(asked, threshold, threads_of(self.n_jobs))
            else:
                left, right, similarity = self._joined(samples, threshold)
            distance = _distances(asked, self._sets, left, right, similarity)
        kept = distance <= radius
        if samples is None:
            kept &= left != right
        return left[kept], right[kept], distance[kept]

    def _nearest(self, samples: Sets | None, k: int) -> ScoredPairs:
        asked = self._sets if samples is None else samples
        rows, found = np.arange(len(asked)), no_pairs()
        if self._tables is not None:
            threshold = (1 - float(self.radius)) * ROUNDING
            left, right, similarity = self._tables.query(asked, threshold, threads_of(self.n_jobs))
            if samples is None:
                other = left != right
                left, right, similarity = left[other], right[other], similarity[other]
            enough = np.bincount(left, minlength=len(asked)) >= k
            kept = enough[left]
            found, rows = (left[kept], right[kept], similarity[kept]), np.flatnonzero(~enough)
        parts = [found]
        if len(rows):
            threads = threads_of(self.n_jobs)
            left, right, similarity = self._postings.best(asked.take(rows), k + (samples is None), threads)
            left = rows[left]
            if samples is None:
                other = left != right
                left, right, similarity = left[other], right[other], similarity[other]
            parts.append((left, right, similarity))
        left, right, similarity = best_first(*concatenated(parts), k)
        return left, right, _distances(asked, self._sets, left, right, similarity)

    def _joined(self, samples: Sets | None, threshold: float) -> ScoredPairs:
        """Return all pairs at or above a similarity; both ways, and with itself, if they are of the fitted sets."""
        asked = self._sets if samples is None else samples
        return _columns(exact_pairs(asked, threshold, other=self._sets, threads=threads_of(self.n_jobs)))

    def __sklearn_tags__(self) -> Any:
        """Return what the estimator takes."""
        return tags_of_sets(self, super().__sklearn_tags__())


@dataclass(frozen=True, eq=False)
class SetTables:
    """Band tables of minhash signatures, and the sets themselves, to measure what the tables propose."""

    sets: Sets
    index: FamilyIndex

    @classmethod
    def of(cls, sets: Sets, minhash: MinHash, banding: Banding) -> SetTables:
        """Sketch the sets and sort their band keys."""
        return cls(sets, minhash.all_of(banding.r).any_of(banding.b).index(sets))

    def query(self, asked: Sets, threshold: float, threads: int) -> ScoredPairs:
        """Return the pairs of a set and a set of the tables that share a bucket and reach the threshold, verified."""
        bounds = Bounds("jaccard", threshold)
        rows = np.arange(max(len(self.sets), QUERIES))

        def work(start: int) -> ScoredPairs:
            some = asked.take(np.arange(start, min(start + QUERIES, len(asked))))
            left, right = self.index.query_many(some)
            scores = np.ones(len(left))  # an empty set shares buckets with empty sets, and its similarity is 1
            filled = some.sizes[left] > 0
            exact = np.empty(int(filled.sum()))
            here, there = (some.values, some.offsets, rows), (self.sets.values, self.sets.offsets, rows)
            floors = NO_FLOORS, NO_FLOORS
            verify_overlap(left[filled], right[filled], here, there, bounds.code, floors, 0, NO_ROWS, exact)
            scores[filled] = exact
            found = scores >= 0
            return left[found] + start, right[found], scores[found]

        return concatenated(list(in_order(work, range(0, len(asked), QUERIES), threads)))


def _banding(
    sets: Sets, threshold: float, recall: float, method: str, minhash: MinHash, threads: int
) -> Banding | None:
    """Return the bands and rows of the tables; None for an exact search."""
    if method == "exact":
        return None
    settings = SearchSettings(min(1.0, max(LEAST, threshold)), recall, minhash)
    if threshold <= 0 or not fits(threshold, recall, settings.max_slots):
        if method == "lsh":
            raise ParameterError(
                f"MinHashNeighbors: no tables of moderate size find neighbours at Jaccard distance {1 - threshold:g} "
                f"with recall {recall:g}; use a smaller radius, or method='exact'"
            )
        return None
    sample = sets.take(np.sort(lowest(minhash.seed, len(sets), SAMPLE)))
    sample = sample.take(np.flatnonzero(sample.sizes > 0))
    counts = agreement_counts(sample, minhash, SAMPLE_SLOTS, threads)
    mean = float(sample.sizes.mean()) if len(sample) else 1.0
    banding, false = tuned(settings, counts, len(sample), len(sets), mean)
    if method == "lsh":
        return banding
    similar = similar_pairs(counts, len(sample), len(sets), threshold)
    return None if choose(sample, len(sets), threshold, banding, false, similar).exact else banding


def _columns(table: Any) -> ScoredPairs:
    left, right, similarity = (table.column(name).to_numpy() for name in ("id_a", "id_b", "similarity"))
    return left, right, similarity


def _distances(a: Sets, b: Sets, left: Ints, right: Ints, similarity: Any) -> NDArray[np.float64]:
    """Return |a Δ b| / |a ∪ b|, a ratio of whole numbers rounded once, which 1 − similarity is not."""
    both = a.sizes[left] + b.sizes[right]
    shared = np.rint(similarity * both / (1 + similarity)).astype(np.int64)
    return np.asarray((both - 2 * shared) / np.maximum(both - shared, 1))
