"""Which way to search is cheaper, exact or by locality-sensitive hashing: predicted from a sample (E6).

The prediction depends on the items, the threshold and the recall alone, not on the machine, its memory or the number of
threads, so that the same run gives the same answer everywhere. Its seconds are those of one core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.arrays import Ints, Sets
from likewise.exact.bounds import Bounds
from likewise.exact.strings import Lengths
from likewise.families.banding import Banding

NANO = 1e-9
LITTLE = 0.25
"""Seconds of one core for which an exact answer is always taken."""

# What one of each takes, in nanoseconds (benchmarks/methods.py measures them).
SYMBOL = 45.0  # exact: to count a symbol of a set, and to put it in order
RARE = 80.0  # exact: and more if hardly another set has it, because the table of counts is large then
STRING = 60.0  # exact: to index and look up a symbol of a prefix
ENTRY = 12.0  # exact: to meet an entry of the index
SHINGLE = 35.0  # lsh: to sketch an element of a set
SLOT = 20.0  # lsh: a slot of a signature
KEY = 100.0  # lsh: to sort a band's key
CANDIDATE = 250.0  # lsh: to find and verify a candidate


@dataclass(frozen=True)
class Choice:
    """The cheaper way, the seconds that each would take, and how many entries of its index an exact join would meet."""

    exact: bool
    exact_seconds: float
    lsh_seconds: float
    entries: float

    def to_dict(self) -> dict[str, Any]:
        """Say what was chosen and why, for run.json."""
        taken, other = ("exact", "lsh") if self.exact else ("lsh", "exact")
        seconds = {"exact": float(f"{self.exact_seconds:.3g}"), "lsh": float(f"{self.lsh_seconds:.3g}")}
        why = f"predicted to take {seconds[taken]:g} s of one core, {other} {seconds[other]:g} s"
        if self.exact and self.exact_seconds < LITTLE:
            why = f"predicted to take less than {LITTLE:g} s of one core"
        return {
            "asked": "auto",
            "taken": taken,
            "why": why,
            "predicted_seconds": seconds,
            "predicted_entries": float(f"{self.entries:.3g}"),
        }


def choose(sets: Sets, items: int, threshold: float, banding: Banding, candidates: float) -> Choice:
    """Compare the two ways for so many items like these; candidates: those the banding is expected to make."""
    mean = float(sets.sizes.mean()) if len(sets) else 1.0
    entries, prefix, rare = _expected(sets, items, threshold)
    exact = items * (mean * (SYMBOL + rare * RARE) + prefix * STRING) + entries * ENTRY
    lsh = items * (mean * SHINGLE + banding.slots * SLOT + banding.b * KEY) + candidates * CANDIDATE
    return Choice(exact <= max(lsh, LITTLE / NANO), exact * NANO, lsh * NANO, entries)


def _expected(sets: Sets, items: int, threshold: float) -> tuple[float, float, float]:
    """Return how many entries of the index a join of so many items meets, the mean length of a probe's prefix, and the
    part of the symbols that only one set of the sample has.

    Within the sample they are counted: pairs of sets, similar in length, that share a symbol of their prefixes. Of a
    collection a hundred times as large there are ten thousand times as many.
    """
    n = len(sets)
    if n < 2:
        return 0.0, 1.0, 1.0
    lengths = Lengths.of(sets.sizes, Bounds("jaccard", threshold), False, 2)
    owner = np.repeat(np.arange(n), sets.sizes)
    _, symbol, counts = np.unique(sets.values, return_inverse=True, return_counts=True)
    order = np.lexsort((symbol, counts[symbol], owner))
    symbol, owner = symbol[order], owner[order]
    place = np.arange(len(symbol)) - sets.offsets[owner]
    shared = counts[symbol] > 1
    probing, indexed = shared & (place < lengths.probe[owner]), shared & (place < lengths.index[owner])
    met = _meetings(symbol[probing], owner[probing], symbol[indexed], owner[indexed], sets.sizes, threshold)
    return met * (items / n) ** 2, float(lengths.probe.mean()), 1.0 - float(shared.mean())


def _meetings(symbol: Ints, probe: Ints, indexed: Ints, other: Ints, sizes: Ints, threshold: float) -> float:
    """Count the entries that probes meet: of the same symbol, a set that is no larger and not much smaller."""
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(sizes, kind="stable")] = np.arange(len(sizes))
    ordered = np.sort(sizes)
    low = np.searchsorted(ordered, threshold * sizes)
    keys = np.sort(indexed * len(sizes) + rank[other])
    base = symbol * len(sizes)
    ends = np.searchsorted(keys, base + rank[probe]), np.searchsorted(keys, base + low[probe])
    return float(np.maximum(ends[0] - ends[1], 0).sum())
