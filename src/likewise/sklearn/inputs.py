"""What an estimator is given: rows of a matrix as sets, texts as sets of shingles, seeds and threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from likewise.base.arrays import Sets
from likewise.base.random import mix
from likewise.errors import InputError, ParameterError
from likewise.shingle import parse_shingler


def sets_of(estimator: Any, X: Any, reset: bool) -> Sets:
    """Return the samples as sets: the columns of a matrix that are not 0, or the shingles of texts.

    `reset`: X is what the estimator is fitted to.
    """
    if estimator.shingle is not None:
        return _shingled(estimator, X)
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


def _shingled(estimator: Any, X: Any) -> Sets:
    owner = type(estimator).__name__
    if isinstance(X, str | bytes) or not hasattr(X, "__iter__"):
        raise ParameterError.of(owner, "X", "a list of texts with shingle given", X)
    texts = list(X)
    if not texts:
        raise ParameterError(f"{owner}: found 0 texts; a minimum of 1 is needed")
    strange = next((text for text in texts if not isinstance(text, str)), None)
    if strange is not None:
        raise ParameterError.of(owner, "X", "a list of texts with shingle given", strange)
    return parse_shingler(estimator.shingle, owner=owner).sets(texts)


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
