"""What comes before a search: copies are found, common shingles left out, samples drawn, and the method is chosen.

`method="auto"` compares the predicted costs of the exact join and of locality-sensitive hashing on a sample. The
prediction depends on the items and the settings alone, not on the machine, so the answer is the same everywhere.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.random import mix
from likewise.base.runlog import RunLog
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash, seed_sequence
from likewise.families.tuning import CROWD, DEFAULT_MAX_SLOTS, SampleBuckets, Similarities, Tuning, fits, tune_for
from likewise.kernels.hashtable import number_values
from likewise.search.candidates import most_candidates
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.prefixes import Lengths
from likewise.search.expand import most_listed
from likewise.search.items import Items
from likewise.search.matches import Sides
from likewise.search.recall.sample import Probe, make_sample, quick_sample, sample_size
from likewise.search.sketch import agreement_counts, sample_signatures

METHODS = ("auto", "exact", "lsh")


class SomeRows(Protocol):
    """An array of rows, or what has a length and can be asked for some of them."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: Ints, /) -> Ints: ...


SAMPLE = 1000
"""Items on which bands and rows are tuned and costs predicted: half a million pairs, in a fraction of a second."""
FEWEST_SAMPLED, SAMPLE_BYTES = 200, 16_000_000
"""Of documents so long that the sets of the sample would take more than these bytes, fewer are sampled, but not fewer
than 200: twenty thousand pairs."""
SPELLED = 200
"""Documents that are searched for the text of a common shingle."""
SET_BYTES = 12
"""Bytes of `Items.set_bytes` that a shingle takes on average, to tell how large sets are without making them."""
CERTIFY_SALT = 0xCE27
"""Keeps the sample of the certificate independent of the sample used for tuning."""
PATIENCE = float(os.environ.get("LIKEWISE_PATIENCE", "2"))
"""Seconds of work that a kill may cost: a step that took longer is committed."""
BLOCK = 1 << 24
"""Rows for which pseudo-random numbers are made at a time: 128 MiB of them."""
NOTHING = np.zeros(0, np.uint64)
NO_ROWS = np.zeros(0, np.int64)
FEW_ROWS_BANDS = 12
"""Bands of one or two rows, at least. They are chosen where nearly all documents are alike; a document without a bucket
in common with them would then miss them all, and with three bands one in a hundred has none."""
CERTAIN = 4
"""An exact search is not even tried where this many times the pairs that can be listed are predicted."""


@dataclass(frozen=True)
class SearchSettings:
    """What to look for, and how: a pair at the threshold is found with a probability of at least `recall`.

    banding: given bands and rows, or None to tune them. common: shingles to leave out. certify: the size of the sample
    whose recall is measured; None for the default. patience: a step that takes longer, in seconds, is committed.
    estimate: similarities are estimated from signatures (see estimate.py), not computed. measure: another one than
    Jaccard similarity needs the method "exact".
    """

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
    estimate: bool = False
    measure: str = "jaccard"


def crowded_search(settings: SearchSettings, items: Items, rows: Ints) -> bool:
    """Tell whether an exact search of these items would find far more pairs than can be listed."""
    return _predicted_pairs(settings, items, rows) > CERTAIN * most_listed(len(rows))


def tune_search(
    settings: SearchSettings, items: Items, rows: SomeRows, log: RunLog, sides: Sides | None
) -> tuple[Ints, Banding | None, Probe]:
    """Draw a sample of the different items to choose the method, and one of all items for the certificate.

    Return the rows of the certificate's sample, the banding (None for an exact search), and the probe.
    """
    seed = settings.minhash.seed
    chosen = NO_ROWS if settings.banding else sampled_rows(items, rows, seed)
    start = sides.split if sides and not sides.across else 0
    count = settings.certify
    if count is None:
        typical = rows[lowest(seed, len(rows), SAMPLE)]
        mean = float(items.set_bytes(np.sort(typical)).mean()) / SET_BYTES if len(typical) else 1.0
        count = sample_size(len(items) - start, mean, settings.threshold)
    drawn = lowest(seed ^ CERTIFY_SALT, len(items) - start, count) + start
    both, place = np.unique(np.concatenate([chosen, drawn]), return_inverse=True)
    sets = items.sets(both, settings.threads)
    banding, exact = _method(settings, sets.take(np.unique(place[: len(chosen)])), len(rows), log)
    if exact:
        return NO_ROWS, None, no_probe(settings)
    sampled = sets.take(place[len(chosen) :])
    if settings.certify is not None:
        return drawn, banding, Probe(make_sample(sampled, settings.threshold))
    probe, count = quick_sample(sampled, settings.threshold, len(rows))
    return drawn[:count], banding, probe


def _method(settings: SearchSettings, sets: Sets, items: int, log: RunLog) -> tuple[Banding | None, bool]:
    """Choose the banding, and whether the exact join is cheaper; log the choice and the reason."""
    if settings.banding:
        log.method = {"asked": settings.method, "taken": "lsh", "why": "bands and rows were given"}
        return settings.banding, False
    if (
        settings.method == "auto"
        and not settings.estimate
        and not fits(settings.threshold, settings.recall, settings.max_slots)
    ):
        log.method = {"asked": "auto", "taken": "exact", "why": unreachable(settings)}
        return None, True
    sets = sets.take(np.flatnonzero(sets.sizes > 0))
    signatures = sample_signatures(sets, settings.minhash)
    counts = agreement_counts(signatures, settings.threads)
    mean = float(sets.sizes.mean()) if len(sets) else 1.0
    tuning = tuned(settings, counts, len(sets), items, mean, SampleBuckets(signatures))
    exact = False
    similar = similar_pairs(counts, len(sets), items, settings.threshold)
    if settings.method == "lsh":
        log.method = {"asked": "lsh", "taken": "lsh", "why": "requested"}
    elif settings.estimate:
        log.method = {"asked": "auto", "taken": "lsh", "why": "similarities are estimated from signatures"}
    else:
        choice = choose(sets, items, tuning, similar)
        log.method = choice.to_dict()
        exact = choice.exact
    if not exact:
        log.details["tuning"] = {
            "sample": len(sets),
            "mean_set_size": round(mean, 1),
            "predicted_false_candidates": round(tuning.predicted_candidates),
            "predicted_crowds": round(tuning.crowded, 3),
            "predicted_pairs": round(similar),
        }
    return tuning.banding, exact


def tuned(
    settings: SearchSettings,
    agreements: NDArray[Any],
    sample: int,
    items: int,
    mean: float,
    buckets: SampleBuckets | None = None,
) -> Tuning:
    """Return the cheapest banding for `items` like a sample, and what it is predicted to do.

    agreements: the number of pairs of the sample that agree in 0, 1, … slots. mean: of the sizes of the sets. buckets:
    how those of the sample meet in bands.
    """
    items = max(2, items)
    most = most_candidates(items)
    corpus = Similarities.sampled(agreements, sample, items, mean, settings.threshold, most, buckets)
    tuning = tune_for(settings.threshold, settings.recall, corpus, settings.max_slots)
    banding = tuning.banding
    if banding.r <= 2 and settings.threshold < 1:
        bands = max(banding.b, min(FEW_ROWS_BANDS, settings.max_slots // banding.r))
        return replace(tuning, banding=Banding(bands, banding.r))
    return tuning


def sampled_rows(items: Items, rows: SomeRows, seed: int) -> Ints:
    """Return the rows on which the search is tuned: fewer of long documents."""
    chosen = rows[lowest(seed, len(rows), SAMPLE)]
    total = np.cumsum(items.set_bytes(chosen))
    return chosen[: max(FEWEST_SAMPLED, int(np.searchsorted(total, SAMPLE_BYTES)))]


def _predicted_pairs(settings: SearchSettings, items: Items, rows: Ints) -> float:
    """Predict the number of similar pairs from a sample, if there may be too many to list."""
    if len(rows) * (len(rows) - 1) // 2 <= most_listed(len(rows)):
        return 0.0
    sets = items.sets(np.sort(sampled_rows(items, rows, settings.minhash.seed)), settings.threads)
    sets = sets.take(np.flatnonzero(sets.sizes > 0))
    counts = agreement_counts(sample_signatures(sets, settings.minhash), settings.threads)
    return similar_pairs(counts, len(sets), len(rows), settings.threshold)


def similar_pairs(agreements: NDArray[Any], sample: int, items: int, threshold: float) -> float:
    """Predict the number of similar pairs of `items` from the number of slots in which pairs of a sample agree."""
    slots = len(agreements) - 1
    similar = float(agreements[int(np.ceil(threshold * slots)) :].sum())
    return similar * items * (items - 1) / max(1, sample * (sample - 1))


def no_probe(settings: SearchSettings) -> Probe:
    """Return a probe of an empty sample."""
    return Probe(make_sample(Sets(NOTHING, np.zeros(1, np.int64)), settings.threshold))


def unreachable(settings: SearchSettings) -> str:
    """Say why locality-sensitive hashing cannot be chosen at a threshold that is too low for it."""
    return f"signatures of {settings.max_slots:,} slots do not find pairs at so low a threshold with that recall"


def seed_hashes(seed: int, n: int, start: int = 0) -> Hashes:
    """Return a pseudo-random number for each row from `start` to n; it depends on the seed and the row only."""
    base = int(seed_sequence(seed ^ 0x5A17, 1)[0])
    x = np.arange(start + 1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(base)
    return mix(x)


def lowest(seed: int, n: int, count: int) -> Ints:
    """Return the rows of n with the `count` lowest pseudo-random numbers, lowest first: a sample of the rows."""
    best, hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        rows, values = np.arange(start, stop), seed_hashes(seed, stop, start)
        if count < len(values):
            first = np.sort(np.argpartition(values, count)[:count])
            rows, values = rows[first], values[first]
        best, hashes = np.concatenate([best, rows]), np.concatenate([hashes, values])
        order = np.argsort(hashes, kind="stable")[:count]
        best, hashes = best[order], hashes[order]
    return best


def with_sides(digests: Hashes, rows: Ints | None, sides: Sides | None) -> Hashes:
    """Make the fingerprints of the two sides of a join differ, so that no group has rows of both."""
    if sides is None or not sides.across:
        return digests
    marked = digests.copy()
    start = sides.split if rows is None else int(np.searchsorted(rows, sides.split))
    marked[start:] ^= np.uint64(0xC2B2AE3D27D4EB4F)
    return marked


# Costs of the two methods, in nanoseconds of one core, measured by benchmarks/methods.py.

NANO = 1e-9
LITTLE = 0.25
"""Seconds of one core below which the exact join is always chosen."""
SYMBOL = 45.0
"""Exact: to count an element of a set and put it in order."""
RARE = 80.0
"""Exact: in addition, if hardly any other set has it, since the table of counts is large then."""
STRING_BYTES, MOST_HELD = 52.0, 200e6
"""Exact: bytes that an element of a prefix takes, in its string and in the index; and the most for all of them.
Prefixes stay in memory whatever the budget, and the method must not depend on it."""
STRING = 60.0
"""Exact: to index and look up an element of a prefix."""
ENTRY = 12.0
"""Exact: to visit an entry of the index."""
SHINGLE = 35.0
"""LSH: to sketch an element of a set."""
SLOT = 20.0
"""LSH: a slot of a signature."""
KEY = 100.0
"""LSH: to sort the key of one band."""
CANDIDATE = 250.0
"""To find and verify a candidate pair; similar pairs are candidates of both methods."""


@dataclass(frozen=True)
class Choice:
    """The cheaper method, the predicted seconds of both, the index entries that an exact join would visit, the number
    of similar pairs, that of items, and the bytes of prefixes that an exact join would hold."""

    exact: bool
    exact_seconds: float
    lsh_seconds: float
    entries: float
    similar: float
    items: int
    held: float

    def to_dict(self) -> dict[str, Any]:
        """Return the choice and the reason, for run.json."""
        taken, other = ("exact", "lsh") if self.exact else ("lsh", "exact")
        seconds = {"exact": float(f"{self.exact_seconds:.3g}"), "lsh": float(f"{self.lsh_seconds:.3g}")}
        why = f"predicted to take {seconds[taken]:g} s of one core, {other} {seconds[other]:g} s"
        if self.similar > most_listed(self.items):
            why = f"predicted to find {self.similar:.2g} similar pairs, more than an exact search lists one by one"
        elif self.held > MOST_HELD and self.exact_seconds <= self.lsh_seconds:
            why = f"an exact search would hold {self.held / 1e6:,.0f} MB of prefixes in memory"
        elif self.exact and self.exact_seconds < LITTLE:
            why = f"predicted to take less than {LITTLE:g} s of one core"
        return {
            "asked": "auto",
            "taken": taken,
            "why": why,
            "predicted_seconds": seconds,
        }


def choose(sets: Sets, items: int, tuning: Tuning, similar: float = 0.0) -> Choice:
    """Predict the costs of both methods for a collection of `items` like these sets.

    tuning: the banding of the other method, and what it is predicted to do. similar: the number of similar pairs; where
    they are too many to list, the exact join is not chosen.
    """
    threshold, banding = tuning.threshold, tuning.banding
    mean = float(sets.sizes.mean()) if len(sets) else 1.0
    entries, prefix, rare = _expected(sets, items, threshold)
    exact = items * (mean * (SYMBOL + rare * RARE) + prefix * STRING) + entries * ENTRY
    candidates = min(tuning.predicted_candidates, most_candidates(items))
    shingle = SHINGLE + tuning.crowded * CROWD
    lsh = items * (mean * shingle + banding.slots * SLOT + banding.b * KEY) + candidates * CANDIDATE
    found = min(similar, most_listed(items)) * CANDIDATE
    exact, lsh = exact + found, lsh + found
    held = items * prefix * STRING_BYTES
    possible = similar <= most_listed(items) and held <= MOST_HELD
    return Choice(
        possible and exact <= max(lsh, LITTLE / NANO), exact * NANO, lsh * NANO, entries, similar, items, held
    )


def _expected(sets: Sets, items: int, threshold: float) -> tuple[float, float, float]:
    """Return the expected number of index entries that a join visits, the mean length of a probe's prefix, and the
    fraction of elements that only one set of the sample has.

    Within the sample the entries are counted: pairs of sets of similar size that share an element of their prefixes. In
    a collection a hundred times as large there are ten thousand times as many.
    """
    n = len(sets)
    if n < 2:
        return 0.0, 1.0, 1.0
    lengths = Lengths.of(sets.sizes, Bounds("jaccard", threshold), False, 2)
    ordered = np.sort(sets.values)
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    counts = np.diff(first, append=len(ordered))
    known, counts = ordered[first[counts > 1]], counts[counts > 1]
    symbol = np.empty(len(ordered), np.int64)
    number_values(known, sets.values, symbol)
    shared = np.flatnonzero(symbol >= 0)
    owner, symbol = np.repeat(np.arange(n), sets.sizes)[shared], symbol[shared]
    # elements of no other set come first in a prefix; the others are put in order as numbers of three digits
    order = np.sort((owner * (n + 1) + counts[symbol]) * len(known) + symbol)
    owner, symbol = order // max(1, len(known) * (n + 1)), order % max(1, len(known))
    own = sets.sizes - np.bincount(owner, minlength=n)
    place = np.arange(len(owner)) - np.searchsorted(owner, np.arange(n))[owner] + own[owner]
    probing, indexed = place < lengths.probe[owner], place < lengths.index[owner]
    visited = _visits(symbol[probing], owner[probing], symbol[indexed], owner[indexed], sets.sizes, threshold)
    return visited * (items / n) ** 2, float(lengths.probe.mean()), 1.0 - len(shared) / max(1, len(ordered))


def _visits(symbol: Ints, probe: Ints, indexed: Ints, other: Ints, sizes: Ints, threshold: float) -> float:
    """Count the entries that probes visit: same symbol, and a set that is no larger and not much smaller."""
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(sizes, kind="stable")] = np.arange(len(sizes))
    ordered = np.sort(sizes)
    low = np.searchsorted(ordered, threshold * sizes)
    keys = np.sort(indexed * len(sizes) + rank[other])
    base = symbol * len(sizes)
    ends = np.searchsorted(keys, base + rank[probe]), np.searchsorted(keys, base + low[probe])
    return float(np.maximum(ends[0] - ends[1], 0).sum())
