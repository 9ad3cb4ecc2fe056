"""What comes before a search: copies found, common shingles left out, a sample drawn, and the way to search chosen."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.copies import labels
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.random import mix
from likewise.base.runlog import Record
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash, seed_sequence
from likewise.families.tuning import DEFAULT_MAX_SLOTS, Similarities, tune_for
from likewise.search.common_shingles import SAMPLE as COMMON_SAMPLE
from likewise.search.common_shingles import described, find_common, value_table
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.prefixes import Lengths
from likewise.search.items import Items
from likewise.search.matches import Sides, first_of_each
from likewise.search.recall.sample import Probe, make_sample, quick_sample, sample_size
from likewise.search.sketch import agreement_counts

SAMPLE = 1000
SPELLED = 200
SET_BYTES = 12  # of what set_bytes says, for each shingle: it is meant to be enough
CERTIFY_SALT = 0xCE27
NOTHING = np.zeros(0, np.uint64)
SAMPLE_SLOTS = 512
PATIENCE = float(os.environ.get("LIKEWISE_PATIENCE", "2"))
"""Seconds of work that a kill may cost: a step that took longer is committed."""
METHODS = ("auto", "exact", "lsh")


@dataclass(frozen=True)
class Aim:
    """What to look for, and how: every pair at the threshold is found with at least this probability."""

    threshold: float
    recall: float
    minhash: MinHash
    banding: Banding | None = None
    max_slots: int = DEFAULT_MAX_SLOTS
    threads: int = 1
    budget: Budget = UNLIMITED
    ignore_common: float | None = None
    common: Hashes | None = None
    certify: int | None = None
    patience: float = PATIENCE
    method: str = "lsh"


@dataclass(frozen=True)
class Prepared:
    """The items to search, without what is common to too many: `first` of all that are copies of each other.

    `rows` are those drawn for the certificate, whose neighbours the probe seeks. The banding is None if the search is
    exact.
    """

    items: Items
    copies: Ints
    first: Ints
    common: Hashes
    rows: Ints
    banding: Banding | None
    probe: Probe


def prepare(aim: Aim, items: Items, record: Record, sides: Sides | None) -> Prepared:
    """Find copies, leave out what is common, draw samples, and choose how to search."""
    with record.stage("identical"):
        copies = labels(with_sides(items.digests(aim.threads), None, sides))
        first = first_of_each(copies)
    record.counts["items"] = len(items)
    record.counts["different"] = len(first)
    common = NOTHING if aim.common is None else aim.common
    if aim.ignore_common is not None:
        with record.stage("common"):
            common = _find_common(aim, items, first, record)
    if len(common):
        items = items.ignoring(value_table(common))
    with record.stage("tune"):
        rows, banding, probe = _tune(aim, items, first, record, sides)
    return Prepared(items, copies, first, common, rows, banding, probe)


def _find_common(aim: Aim, items: Items, rows: Ints, record: Record) -> Hashes:
    """Find the shingles to be left out, and say which they are."""
    assert aim.ignore_common is not None
    order = lowest(aim.minhash.seed, len(rows), COMMON_SAMPLE)
    common = find_common(items, rows, aim.ignore_common, order, aim.threads)
    record.notes["ignored"] = described(items, rows[np.sort(order[:SPELLED])], common, len(rows))
    return common.values


def _tune(
    aim: Aim, items: Items, rows: Ints, record: Record, sides: Sides | None
) -> tuple[Ints, Banding | None, Probe]:
    """Draw two samples: of the different items, to choose how to search, and of all, whose neighbours are sought."""
    nobody = np.zeros(0, np.int64)
    if aim.method == "exact":
        record.notes["method"] = {"asked": "exact", "taken": "exact", "why": "it was asked for"}
        return nobody, None, Probe(make_sample(_no_sets(), aim.threshold))
    seed = aim.minhash.seed
    chosen = rows[lowest(seed, len(rows), 0 if aim.banding else SAMPLE)]
    start = sides.split if sides and not sides.across else 0
    count = aim.certify
    if count is None:
        typical = rows[lowest(seed, len(rows), SAMPLE)]
        mean = float(items.set_bytes(np.sort(typical)).mean()) / SET_BYTES if len(typical) else 1.0
        count = sample_size(len(items) - start, mean, aim.threshold)
    drawn = lowest(seed ^ CERTIFY_SALT, len(items) - start, count) + start
    both, place = np.unique(np.concatenate([chosen, drawn]), return_inverse=True)
    sets = items.sets(both, aim.threads)
    banding, exact = _chosen(aim, sets.take(np.unique(place[: len(chosen)])), len(rows), record)
    if exact:
        return nobody, None, Probe(make_sample(_no_sets(), aim.threshold))
    sampled = sets.take(place[len(chosen) :])
    if aim.certify is not None:
        return drawn, banding, Probe(make_sample(sampled, aim.threshold))
    sample, count = quick_sample(sampled, aim.threshold)
    return drawn[:count], banding, Probe(sample)


def _chosen(aim: Aim, sets: Sets, items: int, record: Record) -> tuple[Banding, bool]:
    """Choose the banding, and whether the exact join is cheaper than it; say why."""
    if aim.banding:
        record.notes["method"] = {"asked": aim.method, "taken": "lsh", "why": "bands and rows were given"}
        return aim.banding, False
    sets = sets.take(np.flatnonzero(sets.sizes > 0))
    counts = agreement_counts(sets, aim.minhash, SAMPLE_SLOTS, aim.threads)
    mean = float(sets.sizes.mean()) if len(sets) else 1.0
    corpus = Similarities.sampled(counts, len(sets), max(2, items), mean, aim.threshold)
    tuning = tune_for(aim.threshold, aim.recall, corpus, aim.max_slots)
    choice = choose(sets, items, aim.threshold, tuning.banding, tuning.predicted_candidates)
    record.notes["method"] = choice.to_dict() if aim.method == "auto" else {"asked": "lsh", "taken": "lsh"}
    if aim.method == "lsh":
        record.notes["method"]["why"] = "it was asked for"
    if aim.method == "lsh" or not choice.exact:
        record.notes["tuning"] = {
            "sample": len(sets),
            "mean_set_size": round(mean, 1),
            "predicted_false_candidates": round(tuning.predicted_candidates),
        }
        return tuning.banding, False
    return tuning.banding, True


def _no_sets() -> Sets:
    return Sets(NOTHING, np.zeros(1, np.int64))


def seed_hashes(seed: int, n: int) -> Hashes:
    """Return a pseudo-random number for each of n rows that depends on nothing but the seed and the row."""
    base = int(seed_sequence(seed ^ 0x5A17, 1)[0])
    x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(base)
    return mix(x)


def lowest(seed: int, n: int, count: int) -> Ints:
    """Return the rows of n with the `count` lowest pseudo-random numbers, lowest first: a sample of the rows."""
    hashes = seed_hashes(seed, n)
    if count >= n:
        return np.argsort(hashes, kind="stable")
    first = np.sort(np.argpartition(hashes, count)[:count])
    return first[np.argsort(hashes[first], kind="stable")]


def with_sides(digests: Hashes, rows: Ints | None, sides: Sides | None) -> Hashes:
    """Make the fingerprints of the two sides of a join differ, so that groups never cross."""
    if sides is None or not sides.across:
        return digests
    marked = digests.copy()
    start = sides.split if rows is None else int(np.searchsorted(rows, sides.split))
    marked[start:] ^= np.uint64(0xC2B2AE3D27D4EB4F)
    return marked


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
