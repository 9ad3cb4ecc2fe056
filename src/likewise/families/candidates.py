"""From a table of signatures to candidate pairs: items that agree in all rows of at least one band (MMDS §3.4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.base import checks
from likewise.errors import InputError, ParameterError
from likewise.families.banding import Banding
from likewise.families.buckets import folded
from likewise.families.running import ADVICE, MOST_PAIRS, CollidingPairs, united
from likewise.families.signatures import check_finished, slots_of

__all__ = ["candidates"]

OWNER = "candidates"


def candidates(signatures: Any, banding: Banding, *, most: int = MOST_PAIRS) -> CollidingPairs:
    """Return the pairs of items whose signatures agree in all rows of at least one band.

    signatures: one row per item and one column per slot, as `MinHash.signatures` returns them; any table of whole
    numbers will do. (The signature matrices of the book have a column per item: give their transpose.) banding: bands
    and rows; there must be b · r slots. most: more pairs than this are an error.

    The result has two arrays of row numbers, `left` < `right`, sorted.

    >>> rows = [[1, 0, 0, 0, 2], [3, 2, 1, 2, 2], [0, 1, 3, 1, 1]]      # a band of three rows, five items
    >>> found = candidates(np.transpose(rows), Banding(b=1, r=3))
    >>> found.left.tolist(), found.right.tolist()
    ([1], [3])
    """
    if not isinstance(banding, Banding):
        raise ParameterError.of(OWNER, "banding", "a Banding, such as Banding(b=20, r=5)", banding)
    most = checks.whole(OWNER, "most", most)
    if isinstance(signatures, list | tuple) and not signatures:
        signatures = np.zeros((0, banding.slots), np.int64)
    table = slots_of(OWNER, "signatures", signatures)
    check_finished(OWNER, signatures)
    if table.ndim != 2 or table.shape[1] != banding.slots:
        rule = f"a table with one row per item and {banding.slots} columns, for {banding}"
        raise ParameterError.of(OWNER, "signatures", rule, f"an array of shape {table.shape}")
    keys = folded(np.ascontiguousarray(table), banding.r, table.dtype, None).T
    try:
        codes = united(np.ascontiguousarray(keys), most)
    except InputError as error:
        advice = "use more rows and fewer bands, or raise `most`; remove identical items first"
        raise InputError(f"candidates: {str(error).replace(ADVICE, advice)}") from error
    left, right = np.divmod(codes, max(1, len(table)))
    return CollidingPairs(left, right, len(table))
