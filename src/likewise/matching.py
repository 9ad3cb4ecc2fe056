"""The heart of every run: items in, verified pairs out (identical → tune → sketch → candidates → verify)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Hashes, Ints
from likewise.candidates import candidate_pairs, pair_order
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash, seed_sequence
from likewise.families.tuning import DEFAULT_MAX_SLOTS, Similarities, tune_for
from likewise.groups import Groups
from likewise.items import Items
from likewise.kernels.pairs import spell_out
from likewise.sketch import agreement_counts
from likewise.verify import similarities

SAMPLE = 1000
SAMPLE_SLOTS = 512
MAX_LISTED = 1_000_000
LISTED_PER_ITEM = 10

Observer = Callable[[str, int, int], None]


@dataclass
class Record:
    """What a run says of itself: counts and seconds by stage, and whatever else is worth telling."""

    observer: Observer = lambda stage, done, total: None
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, total: int = 0) -> Iterator[Callable[[int], None]]:
        """Time a stage; the value is a function to call with the number of items done."""
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            done += more
            self.observer(name, done, total)

        self.observer(name, 0, total)
        start = time.perf_counter()
        try:
            yield tick
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True)
class Matches:
    """Groups of copies and the verified pairs between them, left < right, sorted; digests are of the raw items."""

    groups: Groups
    left: Ints
    right: Ints
    similarity: NDArray[np.float64]
    digests: Hashes
    banding: Banding


@dataclass(frozen=True)
class Search:
    """What to look for: every pair at the threshold is found with at least this probability."""

    threshold: float
    recall: float
    minhash: MinHash
    banding: Banding | None = None
    max_slots: int = DEFAULT_MAX_SLOTS
    threads: int = 1

    def find(self, items: Items, record: Record, split: int = 0) -> Matches:
        """Find the similar pairs; with split > 0, those of an item before `split` with one from `split` on."""
        with record.stage("identical"):
            digests = items.digests(self.threads)
            copies = Groups.by_digest(_with_sides(digests, np.arange(len(digests)), split))
        record.counts["items"] = len(items)
        record.counts["different"] = len(copies)
        with record.stage("tune"):
            banding = self.banding or self._tune(items, copies.first, record)
        with record.stage("sketch", len(copies)) as tick:
            keys, units = items.keys(copies.first, self.minhash, banding, self.threads, tick)
            groups = copies.merged(_with_sides(units, copies.first, split))
            if len(groups) < len(copies):
                leaders = copies.of[groups.first]
                keys, units = keys[leaders], units[leaders]
        record.counts["groups"] = len(groups)
        filled = np.flatnonzero((units != 0).any(axis=1))
        if len(filled) < len(keys):
            keys = keys[filled]
        with record.stage("candidates", banding.b) as tick:
            group_split = int(np.searchsorted(groups.first, split)) if split else 0
            filled_split = int(np.searchsorted(filled, group_split)) if split else None
            left, right = candidate_pairs(keys, self.threads, filled_split, tick)
            del keys
        record.counts["candidates"] = len(left)
        record.notes["banding"] = {"bands": banding.b, "rows": banding.r, "slots": banding.slots}
        record.notes["predicted_recall"] = banding.probability(self.threshold)
        with record.stage("verify", len(left)):
            left, right, similarity = self._verify(items, groups.first[filled], left, right)
            left, right = filled[left], filled[right]
            if split:
                left, right, similarity = _add_empty_pair(units, group_split, left, right, similarity)
        record.counts["verified"] = len(left)
        return Matches(groups, left, right, similarity, digests, banding)

    def _tune(self, items: Items, rows: Ints, record: Record) -> Banding:
        """Measure the similarity of the pairs of a sample, and take the cheapest banding for such a corpus."""
        sample = rows
        if len(rows) > SAMPLE:
            order = np.argsort(seed_hashes(self.minhash.seed, len(rows)), kind="stable")
            sample = rows[np.sort(order[:SAMPLE])]
        sets = items.sets(sample, self.threads)
        sets = sets.take(np.flatnonzero(sets.sizes > 0))
        counts = agreement_counts(sets, self.minhash, SAMPLE_SLOTS, self.threads)
        mean = float(sets.sizes.mean()) if len(sets) else 1.0
        corpus = Similarities.sampled(counts, len(sets), max(2, len(rows)), mean, self.threshold)
        tuning = tune_for(self.threshold, self.recall, corpus, self.max_slots)
        record.notes["tuning"] = {
            "sample": len(sets),
            "mean_set_size": round(mean, 1),
            "predicted_false_candidates": round(tuning.predicted_candidates),
        }
        return tuning.banding

    def _verify(self, items: Items, first: Ints, left: Ints, right: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """Make the sets of the items that stand in a candidate pair, and keep the pairs at or above the threshold."""
        involved = np.zeros(len(first), bool)
        involved[left] = True
        involved[right] = True
        place = np.cumsum(involved) - 1
        sets = items.sets(first[involved], self.threads)
        similarity = similarities(place[left], place[right], sets, self.threshold, self.threads)
        found = similarity >= 0
        return left[found], right[found], similarity[found]


def seed_hashes(seed: int, n: int) -> Hashes:
    """Return a pseudo-random number for each of n rows that depends on nothing but the seed and the row."""
    base = int(seed_sequence(seed ^ 0x5A17, 1)[0])
    x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(base)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _with_sides(digests: Hashes, rows: Ints, split: int) -> Hashes:
    """Make the fingerprints of the two sides of a join differ, so that groups never cross."""
    if not split:
        return digests
    marked = digests.copy()
    marked[rows >= split] ^= np.uint64(0xC2B2AE3D27D4EB4F)
    return marked


def _add_empty_pair(
    units: Hashes, group_split: int, left: Ints, right: Ints, similarity: NDArray[np.float64]
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Add the pair of the two groups of empty items, one on each side of a join: identical, though in no band."""
    empty = np.flatnonzero((units == 0).all(axis=1))
    if len(empty) < 2:
        return left, right, similarity
    left, right = np.append(left, empty[0]), np.append(right, empty[1])
    order = pair_order(left, right, len(units))
    return left[order], right[order], np.append(similarity, 1.0)[order]


def listed_pairs(matches: Matches, within: bool = True) -> tuple[Ints, Ints, NDArray[np.float64], dict[str, int]]:
    """Write the pairs of groups out as pairs of rows, sorted; `within`: copies of one group are pairs too.

    A group of g copies makes g(g-1)/2 pairs. While all pairs are at most a million, or ten an item, they are all
    listed.
    Beyond that the largest groups are abridged: each copy is listed with the first of its group only, and only the
    first
    stands for the group in other pairs. What was abridged is in the dictionary returned.
    """
    groups = matches.groups
    sizes = groups.sizes
    budget = max(MAX_LISTED, LISTED_PER_ITEM * len(groups.of))
    cap = _largest_listed(matches, within, budget)
    big = sizes > cap
    listed = np.where(big, 1, sizes)
    left, right = matches.left, matches.right
    total = int((listed[left] * listed[right]).sum())
    inner = np.flatnonzero(sizes > 1) if within else np.zeros(0, np.int64)
    whole = inner[~big[inner]]
    stars = inner[big[inner]]
    total += int((sizes[whole] * (sizes[whole] - 1) // 2).sum())
    out_left, out_right = np.empty(total, np.int64), np.empty(total, np.int64)
    out_similarity = np.empty(total, np.float64)
    members, offsets = groups.members, groups.offsets
    if big.any():
        first_only = np.repeat(~big, sizes) | np.isin(np.arange(len(members)), offsets[:-1])
        members = members[first_only]
        offsets = np.concatenate([[0], np.cumsum(listed)]).astype(np.int64)
    both_left = np.concatenate([left, whole])
    both_right = np.concatenate([right, whole])
    both = np.concatenate([matches.similarity, np.ones(len(whole))])
    spell_out(both_left, both_right, both, members, offsets, out_left, out_right, out_similarity)
    if len(stars):
        copies = np.flatnonzero(np.isin(groups.of, stars))
        copies = copies[groups.first[groups.of[copies]] != copies]
        out_left = np.concatenate([out_left, groups.first[groups.of[copies]]])
        out_right = np.concatenate([out_right, copies])
        out_similarity = np.concatenate([out_similarity, np.ones(len(copies))])
    order = pair_order(out_left, out_right, max(2, len(groups.of)))
    abridged = {"groups": int(big.sum()), "items": int(sizes[big].sum())} if big.any() else {}
    return out_left[order], out_right[order], out_similarity[order], abridged


def _largest_listed(matches: Matches, within: bool, budget: int) -> int:
    """Return the largest group size such that listing groups up to it in full stays within the budget."""
    sizes = matches.groups.sizes
    levels = np.unique(sizes)

    def total(cap: int) -> float:
        listed = np.where(sizes > cap, 1, sizes).astype(float)
        pairs = float((listed[matches.left] * listed[matches.right]).sum())
        return pairs + (float((listed * (listed - 1) / 2).sum()) if within else 0.0)

    low, high = 0, len(levels)
    while low < high:
        middle = (low + high) // 2
        if total(int(levels[middle])) <= budget:
            low = middle + 1
        else:
            high = middle
    return int(levels[low - 1]) if low else 1
