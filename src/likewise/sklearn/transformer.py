"""`MinHashTransformer`: sets as minhash signatures, or as the features of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.base import ClassNamePrefixFeaturesOutMixin as NumberedOutputs
from sklearn.utils.validation import check_is_fitted

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.parallel import in_order
from likewise.base.random import mix
from likewise.families.minhash import MinHash
from likewise.sklearn.inputs import seed_of, sets_of, tags_of_sets, threads_of, value_errors

MOST_BITS = 16
"""More bits make one column of every slot and value: no more alike than the signatures themselves."""
ROWS = 1 << 12
"""Sets that a thread sketches at a time."""


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
            some = sets.take(np.arange(start, min(start + ROWS, len(sets))))
            return self._minhash.hashes(some, self.n_components)

        return np.concatenate(list(in_order(work, range(0, len(sets), ROWS), threads_of(self.n_jobs))))

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
