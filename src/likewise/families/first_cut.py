"""The first-cut scheme: count, for every pair of items, the minhash functions on which it agrees.

For each function, items are sorted by its value; each two items of a run of equal values are an entry; the entries of
all functions are merged and counted. A pair with Y entries under M functions has the estimated similarity Y/M. Banding
replaced it, since a frequent value makes a long run, with a number of entries quadratic in its length: here more than
`most` entries are an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.errors import InputError, ParameterError
from likewise.families.signatures import check_finished, slots_of

Ints = NDArray[np.int64]
OWNER = "MinHash.pair_estimates"
MOST_ENTRIES = 100_000_000
"""More entries of one function than this are an error by default: they take 1.6 GB."""
WAITING = 1 << 22
"""Entries collected before they are counted, 32 MB."""


@dataclass(frozen=True, eq=False)
class PairEstimates:
    """The pairs that agree somewhere, left < right, sorted; `agree`: in how many of the functions."""

    left: Ints
    right: Ints
    agree: Ints
    functions: int

    def __len__(self) -> int:
        return len(self.left)

    @property
    def similarity(self) -> NDArray[np.float64]:
        """The estimated similarities, Y/M."""
        return self.agree / self.functions

    @property
    def error(self) -> NDArray[np.float64]:
        """The standard errors of the estimates, √(s·(1 − s)/M)."""
        s = self.similarity
        return np.sqrt(s * (1 - s) / self.functions)


def pair_estimates(signatures: Any, least: float = 0.0, most: int = MOST_ENTRIES) -> PairEstimates:
    """Return the pairs of a table of signatures that agree somewhere, and in at least the fraction `least` of it."""
    table = slots_of(OWNER, "signatures", signatures)
    if table.ndim != 2 or not table.shape[1]:
        raise ParameterError.of(OWNER, "signatures", "a table with one row per item and a column per function", table)
    check_finished(OWNER, signatures)
    checks.number(OWNER, "least", least, 0, 1)
    most = checks.whole(OWNER, "most", most)
    n, functions = table.shape
    codes, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    waiting: list[Ints] = []
    for number, column in enumerate(table.T):
        waiting.append(_entries(column, most, number))
        if sum(map(len, waiting)) >= WAITING:
            codes, counts, waiting = *_counted(codes, counts, waiting), []
    codes, counts = _counted(codes, counts, waiting)
    kept = counts >= least * functions - 1e-9
    left, right = np.divmod(codes[kept], max(1, n))
    return PairEstimates(left, right, counts[kept], functions)


def _entries(column: NDArray[Any], most: int, number: int) -> Ints:
    """Return the pairs of items with equal values, as left·n + right."""
    n, order = len(column), np.argsort(column, kind="stable")
    ordered = column[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[:n])
    sizes = np.diff(np.append(starts, n))
    total = int((sizes * (sizes - 1) // 2).sum())
    if total > most:
        raise InputError(
            f"function {number} has {total:,} pairs of equal values, more than {most:,}: {int(sizes.max()):,} items "
            "share one; remove identical items first, use bands of several functions (`tune`, `pairs`), or raise `most`"
        )
    after = np.repeat(starts + sizes, sizes) - np.arange(n) - 1
    left = np.repeat(np.arange(n), after)
    right = left + 1 + np.arange(total) - np.repeat(np.cumsum(after) - after, after)
    codes: Ints = order[left] * n + order[right]  # the sort is stable, so that the left one is the earlier item
    return codes


def _counted(codes: Ints, counts: Ints, more: list[Ints]) -> tuple[Ints, Ints]:
    """Merge further entries, each of which counts once, into those counted so far."""
    added = np.concatenate([np.zeros(0, np.int64), *more])
    every, weights = np.concatenate([codes, added]), np.concatenate([counts, np.ones_like(added)])
    order = np.argsort(every, kind="stable")
    every, weights = every[order], weights[order]
    begins = np.flatnonzero(np.diff(every, prepend=-1))
    return every[begins], np.add.reduceat(weights, begins) if len(begins) else weights
