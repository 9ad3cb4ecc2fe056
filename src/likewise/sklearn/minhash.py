"""`MinHashNeighbors`: neighbours by Jaccard distance, from band tables, by an exact join, or by counting.

`MinHashTransformer`: sets as minhash signatures, or as the features of a linear model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.base import ClassNamePrefixFeaturesOutMixin as NumberedOutputs
from sklearn.utils.validation import check_is_fitted

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.base.parallel import in_order
from likewise.base.random import mix
from likewise.errors import ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.running import FamilyIndex
from likewise.families.tuning import fits
from likewise.kernels.overlap import verify_overlap
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import NO_FLOORS
from likewise.search.exact.listing import BestPartners
from likewise.search.exact.pairs import pairs as exact_pairs
from likewise.search.prepare import SAMPLE, SearchSettings, choose, lowest, similar_pairs, tuned
from likewise.search.scored import ScoredPairs, best_first, concatenated, no_pairs
from likewise.search.sketch import agreement_counts, sample_signatures
from likewise.sklearn.neighbors import ApproximateNeighbors, seed_of, sets_of, tags_of_sets, threads_of, value_errors

LEAST = 2.0**-29
"""The least similarity of two sets that have anything in common: no set has more elements."""
ROUNDING = 1 - 1e-12
"""Sets are sought a little below 1 − radius, which may be rounded up; what is too far is dropped by its distance."""
QUERIES = 1 << 12
"""Sets that are sketched, or looked up in the tables at a time, by each thread."""
MOST_BITS = 16
"""More bits make one column of every slot and value: no more alike than the signatures themselves."""
ENTRIES = 1 << 22
"""Entries of the lists of postings that a thread visits at a time: some 50 MB of pairs."""
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
        self._sets, self._postings = samples, SetPostings(samples)
        self.banding_ = _banding(samples, 1 - float(self.radius), self.recall, self.method, minhash, threads)
        self._tables: FamilyIndex | None = None
        if self.banding_ is not None:
            self._tables = minhash.all_of(self.banding_.r).any_of(self.banding_.b).index(samples)

    def _within(self, samples: Sets | None, radius: float) -> ScoredPairs:
        asked, count = self._sets if samples is None else samples, len(self._sets)
        if radius >= 1:
            some = self._joined(asked, LEAST)
            left, right = np.divmod(np.arange(len(asked) * count), count)
            distance = np.ones(len(left))
            distance[some[0] * count + some[1]] = self._distances(asked, some)
        else:
            threshold = (1 - radius) * ROUNDING
            quick = self._tables is not None and radius <= self.radius
            found = self._looked_up(asked, threshold) if quick else self._joined(asked, threshold)
            left, right, distance = *found[:2], self._distances(asked, found)
        kept = distance <= radius
        return _others((left[kept], right[kept], distance[kept]), samples)

    def _nearest(self, samples: Sets | None, k: int) -> ScoredPairs:
        asked = self._sets if samples is None else samples
        rows, found = np.arange(len(asked)), no_pairs()
        if self._tables is not None:
            threshold = (1 - float(self.radius)) * ROUNDING
            left, right, similarity = _others(self._looked_up(asked, threshold), samples)
            enough = np.bincount(left, minlength=len(asked)) >= k
            kept = enough[left]
            found, rows = (left[kept], right[kept], similarity[kept]), np.flatnonzero(~enough)
        parts = [found]
        if len(rows):
            few = self._postings.best(asked.take(rows), k + (samples is None), threads_of(self.n_jobs))
            parts.append(_others((rows[few[0]], *few[1:]), samples))
        best = best_first(*concatenated(parts), k)
        return *best[:2], self._distances(asked, best)

    def _joined(self, asked: Sets, threshold: float) -> ScoredPairs:
        """Return all pairs of a set and a fitted set at or above a similarity."""
        table = exact_pairs(asked, threshold, other=self._sets, threads=threads_of(self.n_jobs))
        left, right, similarity = (table.column(name).to_numpy() for name in ("id_a", "id_b", "similarity"))
        return left, right, similarity

    def _looked_up(self, asked: Sets, threshold: float) -> ScoredPairs:
        """Return the pairs of a set and a fitted set that share a bucket and reach the threshold, verified."""
        tables, bounds = self._tables, Bounds("jaccard", threshold)
        assert tables is not None
        rows = np.arange(max(len(self._sets), QUERIES))
        there = self._sets.values, self._sets.offsets, rows

        def work(start: int) -> ScoredPairs:
            some = asked.take(np.arange(start, min(start + QUERIES, len(asked))))
            left, right = tables.query_many(some)
            scores = np.ones(len(left))  # an empty set shares buckets with empty sets, and its similarity is 1
            filled = some.sizes[left] > 0
            exact, here = np.empty(int(filled.sum())), (some.values, some.offsets, rows)
            floors = NO_FLOORS, NO_FLOORS
            verify_overlap(left[filled], right[filled], here, there, bounds.code, floors, 0, NO_ROWS, exact)
            scores[filled] = exact
            reached = scores >= 0
            return left[reached] + start, right[reached], scores[reached]

        return concatenated(list(in_order(work, range(0, len(asked), QUERIES), threads_of(self.n_jobs))))

    def _distances(self, asked: Sets, pairs: ScoredPairs) -> NDArray[np.float64]:
        """Return |a Δ b| / |a ∪ b|, a ratio of whole numbers rounded once, which 1 − similarity is not."""
        left, right, similarity = pairs
        both = asked.sizes[left] + self._sets.sizes[right]
        shared = np.rint(similarity * both / (1 + similarity)).astype(np.int64)
        return np.asarray((both - 2 * shared) / np.maximum(both - shared, 1))

    def __sklearn_tags__(self) -> Any:
        """Return what the estimator takes."""
        return tags_of_sets(self, super().__sklearn_tags__())


def _others(pairs: ScoredPairs, samples: Sets | None) -> ScoredPairs:
    """Return pairs without those of a set with itself, if the fitted sets are asked for their own neighbours."""
    left, right, scores = pairs
    other = left != right if samples is None else np.ones(len(left), bool)
    return left[other], right[other], scores[other]


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
    counts = agreement_counts(sample_signatures(sample, minhash), threads)
    mean = float(sample.sizes.mean()) if len(sample) else 1.0
    tuning = tuned(settings, counts, len(sample), len(sets), mean)
    if method == "lsh":
        return tuning.banding
    similar = similar_pairs(counts, len(sample), len(sets), threshold)
    return None if choose(sample, len(sets), tuning, similar).exact else tuning.banding


class SetPostings:
    """For each element the sets that have it: what a set has in common with all others is counted, for its nearest.

    Filters and tables need a threshold; for the nearest sets of any there is none. A product of sparse matrices counts
    how often each set appears among the lists of the elements of a set.
    """

    def __init__(self, sets: Sets) -> None:
        self.sizes = sets.sizes
        self.elements, columns = np.unique(sets.values, return_inverse=True)
        ones = np.ones(len(columns), np.int32)
        self.lists = csr_matrix((ones, columns, sets.offsets), shape=(len(sets), len(self.elements))).T.tocsr()

    def best(self, asked: Sets, k: int, threads: int) -> ScoredPairs:
        """Return the k most similar sets of each of these, of the sets that have anything in common with it.

        In no particular order; ties go to the lower number.
        """
        place = np.minimum(np.searchsorted(self.elements, asked.values), max(0, len(self.elements) - 1))
        known = self.elements[place] == asked.values if len(self.elements) else np.zeros(len(place), bool)
        columns, offsets = place[known], np.concatenate([[0], np.cumsum(known)])[asked.offsets]
        ones = np.ones(len(columns), np.int32)
        matrix = csr_matrix((ones, columns, offsets), shape=(len(asked), len(self.elements)))
        visits = np.concatenate([[0], np.cumsum(np.diff(self.lists.indptr)[columns])])[offsets]

        def work(block: tuple[int, int]) -> ScoredPairs:
            start, stop = block
            counts = matrix[start:stop] @ self.lists
            rows = np.repeat(np.arange(stop - start), np.diff(counts.indptr))
            partners = counts.indices.astype(np.int64)
            union = asked.sizes[start:stop][rows] + self.sizes[partners] - counts.data
            best = BestPartners(stop - start, k)
            best.offer(rows, partners, counts.data / union)
            left, right, similarity = best.pairs()
            return left + start, right, similarity

        parts = list(in_order(work, _blocks(visits), threads))
        empty, others = np.flatnonzero(asked.sizes == 0), np.flatnonzero(self.sizes == 0)[:k]
        equal = np.repeat(empty, len(others)), np.tile(others, len(empty)), np.ones(len(empty) * len(others))
        return concatenated([*parts, equal])


def _blocks(visits: Ints) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks of about so many visits; visits[i] are those of the rows before row i."""
    start = 0
    while start < len(visits) - 1:
        stop = int(np.searchsorted(visits, visits[start] + ENTRIES, side="right")) - 1
        stop = min(max(stop, start + 1), len(visits) - 1)
        yield start, stop
        start = stop


class MinHashTransformer(NumberedOutputs, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Minhash signatures of sets: vectors of one length that keep the Jaccard similarity (MMDS §3.3).

    A sample is a row of a matrix, dense or sparse, and the set of its columns that are not 0; or with `shingle`, a
    text and the set of its shingles.

    bits=None: `transform` returns the signatures, a table of n_components unsigned 32-bit integers per set. They are
        names, not amounts: two sets agree in a component with a probability equal to their Jaccard similarity, so the
        "hamming" distance of two rows estimates their Jaccard distance. An empty set has 2**32 − 1 everywhere.
    bits=b: features for linear models (Li, Shrivastava, Moore, König, 2011). Of every component b bits are kept, 1 to
        16, and written as one 1 among 2**b columns: n_components · 2**b columns in all, sparse. Values are scaled so
        that the inner product of two rows estimates C + (1 − C)·J, C = 2**−b, of sets with Jaccard similarity J.

    n_components: the number of minhash values; the standard error of an estimate is √(J (1 − J) / n_components).
    shingle: None, or how texts become sets, such as "words:5" or "chars:9".
    sparse_output: with bits, whether to return a sparse matrix or an array.
    n_jobs: threads; None is 1, -1 all cores. random_state: the seed, as in `likewise.MinHash`.

    >>> baskets = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    >>> signatures = MinHashTransformer(n_components=64).fit_transform(baskets)
    >>> signatures.shape, (signatures[0] == signatures).mean(axis=1).tolist()
    ((3, 64), [1.0, 1.0, 0.0])
    """

    def __init__(
        self,
        n_components: int = 128,
        *,
        bits: int | None = None,
        shingle: Any = None,
        sparse_output: bool = True,
        n_jobs: int | None = None,
        random_state: Any = 1,
    ) -> None:
        self.n_components = n_components
        self.bits = bits
        self.shingle = shingle
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> MinHashTransformer:
        """Check the parameters and the samples; nothing is learned from either X or y."""
        owner = type(self).__name__
        checks.whole(owner, "n_components", self.n_components, 1, checks.MOST_FUNCTIONS)
        if self.bits is not None:
            checks.whole(owner, "bits", self.bits, 1, MOST_BITS)
        with value_errors():
            sets_of(self, X, reset=True)
        self._minhash = MinHash(seed_of(self.random_state))
        return self

    def transform(self, X: Any) -> Any:
        """Return the signatures of these sets, or their features if `bits` are given."""
        check_is_fitted(self)
        with value_errors():
            sets = sets_of(self, X, reset=False)
        signatures = self._signatures(sets)
        if self.bits is None:
            return signatures
        kept = mix(signatures.astype(np.uint64)) & np.uint64((1 << self.bits) - 1)
        columns = (kept.astype(np.int64) + (np.arange(self.n_components) << self.bits)).ravel()
        offsets = np.arange(len(sets) + 1) * self.n_components
        values = np.full(len(columns), self.n_components**-0.5)
        features = csr_matrix((values, columns, offsets), shape=(len(sets), self._n_features_out))
        return features if self.sparse_output else features.toarray()

    def _signatures(self, sets: Sets) -> Any:
        def work(start: int) -> Any:
            some = sets.take(np.arange(start, min(start + QUERIES, len(sets))))
            return self._minhash.hashes(some, self.n_components)

        return np.concatenate(list(in_order(work, range(0, len(sets), QUERIES), threads_of(self.n_jobs))))

    @property
    def _n_features_out(self) -> int:
        return self.n_components << (self.bits or 0)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_minhash")

    def __sklearn_tags__(self) -> Any:
        """Return what the transformer takes: the type of its output is its own."""
        tags = tags_of_sets(self, super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = []
        return tags
