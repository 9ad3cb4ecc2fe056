"""The heart of every run: items in, verified pairs out (identical → tune → sketch → candidates → verify)."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Hashes, Ints, Sets
from likewise.candidates import Candidates, Wanted, candidates, few_candidates, merged, pair_order
from likewise.certificate import Probe, make_sample, quick_sample, sample_size
from likewise.certifying import certified
from likewise.common import SAMPLE as COMMON_SAMPLE
from likewise.common import described, find_common, value_table
from likewise.compare import Scored, compare
from likewise.crowding import Gathering
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash, seed_sequence
from likewise.families.tuning import DEFAULT_MAX_SLOTS, Similarities, tune_for
from likewise.groups import Groups, labels
from likewise.items import Items
from likewise.keys import HeldKeys, Keys, StoredKeys
from likewise.matches import Drawn, Matches, Sides, Sketched, first_of_each
from likewise.memory import UNLIMITED, Budget
from likewise.record import Record
from likewise.sketch import agreement_counts
from likewise.store import Draft, Workspace, told

SAMPLE = 1000
SPELLED = 200
SET_BYTES = 12  # of what set_bytes says, for each shingle: it is meant to be enough
CERTIFY_SALT = 0xCE27
NOTHING = np.zeros(0, np.uint64)
SAMPLE_SLOTS = 512
PATIENCE = float(os.environ.get("LIKEWISE_PATIENCE", "2"))
"""Seconds of work that a kill may cost: a step that took longer is committed."""


@dataclass(frozen=True)
class Search:
    """What to look for: every pair at the threshold is found with at least this probability."""

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

    def find(
        self,
        items: Items,
        record: Record,
        space: Workspace | None = None,
        sides: Sides | None = None,
        ranks: Ints | None = None,
    ) -> Matches:
        """Find the similar pairs, all of them or those that count for `sides`.

        Where too many documents are alike for all pairs to be listed, each is listed with those that stand for it;
        `ranks` says in which order they are wanted, the lowest first; by default that of the rows.
        """
        space = space or Workspace.temporary()
        sketched = self._sketched(items, record, space, sides)
        if len(sketched.common):
            items = items.ignoring(value_table(sketched.common))
        record.notes["banding"] = {
            "bands": sketched.banding.b,
            "rows": sketched.banding.r,
            "slots": sketched.banding.slots,
        }
        record.notes["predicted_recall"] = sketched.banding.probability(self.threshold)
        left, right, similarity, crowd_of = self._verified(items, sketched, record, space, sides, ranks)
        if len(sketched.drawn.rows):
            with record.stage("certify"):
                certificate = certified(sketched, (left, right, similarity), crowd_of, sides, len(items))
            record.notes["certificate"] = certificate.to_dict()
        return Matches(sketched.groups, sketched.copies, left, right, similarity, sketched)

    def _sketched(self, items: Items, record: Record, space: Workspace, sides: Sides | None) -> Sketched:
        """Find copies, tune, and write the band keys of everything different; or take all that from the workspace."""
        step = "sketch"
        if space.has(step):
            record.restore(space.notes(step))
            copies, of, filled = (space.array(step, name) for name in ("copies", "of", "filled"))
            units, common = space.array(step, "units"), space.array(step, "common")
            drawn = Drawn(*(space.array(step, name) for name in ("drawn", "neighbour_of", "neighbour")))
            known = space.notes(step)["keys"]
            keys: Keys = StoredKeys(space.path(step, "keys"), known["items"], known["bands"])
            if 4 * keys.items * keys.bands <= self.budget.keys:
                keys = HeldKeys(np.stack([keys.column(band) for band in range(keys.bands)], axis=1))
            return _selected(copies, of, filled, units, keys, Banding(known["bands"], known["rows"]), common, drawn)
        begun = time.perf_counter()
        with record.stage("identical"):
            copies = labels(_with_sides(items.digests(self.threads), None, sides))
            first = first_of_each(copies)
        record.counts["items"] = len(items)
        record.counts["different"] = len(first)
        common = NOTHING if self.common is None else self.common
        if self.ignore_common is not None:
            with record.stage("common"):
                common = self._find_common(items, first, record)
        if len(common):
            items = items.ignoring(value_table(common))
        with record.stage("tune"):
            rows, banding, probe = self._tune(items, first, record, sides)
        stored = 4 * len(first) * banding.b > self.budget.keys
        if stored:
            space.check_room(4 * len(first) * banding.b, "the band keys")
        with ExitStack() as stack:
            draft: Draft | None = stack.enter_context(space.making(step)) if stored else None
            with record.stage("sketch", len(first)) as tick:
                if draft:
                    keys = StoredKeys.create(draft.place / "keys", len(first), banding.b)
                else:
                    keys = HeldKeys(np.empty((len(first), banding.b), np.uint32))
                units = items.keys(first, self.minhash, banding, self.threads, keys, tick, probe)
            drawn = Drawn(rows, *probe.result())
            of = labels(_with_sides(units, first, sides))[copies]
            leaders = copies[first_of_each(of)]
            units = units[leaders]
            filled = np.flatnonzero((units != 0).any(axis=1))
            record.counts["groups"] = len(leaders)
            if draft is None and space.lasting and time.perf_counter() - begun > self.patience:
                draft = stack.enter_context(space.making(step))
                keys.save(draft.place / "keys")
            if draft is not None:
                draft.save(copies=copies, of=of, filled=filled, units=units, common=common)
                draft.save(drawn=drawn.rows, neighbour_of=drawn.sample, neighbour=drawn.items)
                size = {"items": keys.items, "bands": banding.b, "rows": banding.r}
                if isinstance(keys, StoredKeys):
                    keys.close()
                    keys = keys.moved(space.large / step / "keys")
                draft.commit({"keys": size, **record.snapshot()})
        return _selected(copies, of, filled, units, keys, banding, common, drawn)

    def _verified(
        self,
        items: Items,
        sketched: Sketched,
        record: Record,
        space: Workspace,
        sides: Sides | None,
        ranks: Ints | None,
    ) -> tuple[Ints, Ints, NDArray[np.float64], Ints]:
        """Pair the buckets and keep the pairs at or above the threshold; or take them from the workspace.

        Also returned: for each group the crowd it is in whose pairs are not all listed, or -1; empty if there is none.
        """
        step = "verify"
        if space.has(step):
            record.restore(space.notes(step))
            left, right, crowd_of = (space.array(step, name) for name in ("left", "right", "crowd_of"))
            return left, right, space.array(step, "similarity"), crowd_of
        begun = time.perf_counter()
        groups, filled = sketched.groups, sketched.filled
        wanted = _wanted(groups.first[filled], sides)
        with record.stage("candidates", sketched.banding.b) as tick:
            found = self._candidates(sketched.group_keys, wanted, space, record, tick)
        rows = groups.first[filled]
        parts: list[Scored] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        met = 0
        with record.stage("verify", found.count) as tick:
            for number, (a, b) in enumerate(found.portions()):
                met += len(a)
                name = "-".join(map(str, found.cuts[number : number + 2]))
                parts.append(self._portion(items, rows, a, b, name, space, tick))
            a, b, similarity = (np.concatenate([part[i] for part in parts]) for i in range(3))
        crowd_of = np.zeros(0, np.int64)
        if found.crowds:
            with record.stage("crowds"):
                best, seed = _best_ranks(groups, ranks)[filled], self.minhash.seed
                gathering = Gathering(
                    items, rows, found.crowds, best, wanted, self.threshold, self.recall, seed, self.threads
                )
                (a, b, similarity), record.notes["crowds"], abridged = gathering.pairs((a, b, similarity))
                if not record.notes["crowds"]["complete"]:
                    crowd_of = np.full(len(groups), -1)
                    crowd_of[filled] = abridged
        left, right = filled[a], filled[b]
        if sides and sides.across:
            left, right, similarity = _add_empty_pair(groups, filled, sides, left, right, similarity)
        record.counts["candidates"] = met
        record.counts["verified"] = len(left)
        if space.lasting and time.perf_counter() - begun > self.patience:
            with space.making(step) as draft:
                draft.save(left=left, right=right, similarity=similarity, crowd_of=crowd_of)
                draft.commit(record.snapshot())
            space.forget("candidates", *(name for name in space.steps if name.startswith("verify-")))
        return left, right, similarity, crowd_of

    def _candidates(self, keys: Keys, wanted: Wanted, space: Workspace, record: Record, tick: Any) -> Candidates:
        """Pair the buckets; with keys on disk the pairs are a step of the workspace."""
        step = "candidates"
        if keys.matrix is not None and not space.has(step):
            few = few_candidates(keys, self.threads, wanted, tick, 4 * self.budget.pairs)
            if few is not None:
                return few
        if not space.has(step):
            with space.making(step) as draft:
                found = candidates(
                    keys,
                    self.threads,
                    wanted,
                    tick,
                    folder=draft.place,
                    sort_bytes=self.budget.sort,
                    merge_bytes=self.budget.pairs,
                )
                ends = np.cumsum([len(crowd) for crowd in found.crowds]).astype(np.int64)
                rows = np.concatenate([np.zeros(0, np.int64), *found.crowds])
                draft.save(bins=found.bins, crowds=rows, ends=ends)
                draft.commit({"cap": found.cap, **record.snapshot()})
        paths = sorted(space.path(step, "").glob("run-*"))
        crowds = np.split(space.array(step, "crowds"), space.array(step, "ends"))[:-1]
        bins = space.array(step, "bins")
        return merged(paths, bins, keys.items, crowds, space.notes(step)["cap"], self.budget.pairs)

    def _portion(
        self, items: Items, rows: Ints, left: Ints, right: Ints, name: str, space: Workspace, tick: Any
    ) -> Scored:
        """Verify some of the pairs; what took long is committed."""
        step = f"verify-{name}"
        if space.has(step):
            return space.array(step, "left"), space.array(step, "right"), space.array(step, "similarity")
        begun = time.perf_counter()

        def folder() -> Path:
            return space.large / "scratch"

        with told(space.folder or Path()):
            a, b, similarity = compare(
                items, rows, left, right, self.threshold, self.threads, self.budget.sets, folder, tick
            )
        if name and space.lasting and time.perf_counter() - begun > self.patience:
            with space.making(step) as draft:
                draft.save(left=a, right=b, similarity=similarity)
                draft.commit()
        return a, b, similarity

    def _find_common(self, items: Items, rows: Ints, record: Record) -> Hashes:
        """Find the shingles to be left out, and say which they are."""
        assert self.ignore_common is not None
        order = lowest(self.minhash.seed, len(rows), COMMON_SAMPLE)
        common = find_common(items, rows, self.ignore_common, order, self.threads)
        record.notes["ignored"] = described(items, rows[np.sort(order[:SPELLED])], common, len(rows))
        return common.values

    def _tune(self, items: Items, rows: Ints, record: Record, sides: Sides | None) -> tuple[Ints, Banding, Probe]:
        """Draw two samples: of the different items, to choose the banding, and of all, whose neighbours are sought."""
        seed = self.minhash.seed
        chosen = rows[lowest(seed, len(rows), 0 if self.banding else SAMPLE)]
        start = sides.split if sides and not sides.across else 0
        count = self.certify
        if count is None:
            typical = rows[lowest(seed, len(rows), SAMPLE)]
            mean = float(items.set_bytes(np.sort(typical)).mean()) / SET_BYTES if len(typical) else 1.0
            count = sample_size(len(items) - start, mean, self.threshold)
        drawn = lowest(seed ^ CERTIFY_SALT, len(items) - start, count) + start
        both, place = np.unique(np.concatenate([chosen, drawn]), return_inverse=True)
        sets = items.sets(both, self.threads)
        banding = self.banding or self._cheapest(sets.take(np.unique(place[: len(chosen)])), len(rows), record)
        sampled = sets.take(place[len(chosen) :])
        if self.certify is not None:
            return drawn, banding, Probe(make_sample(sampled, self.threshold))
        sample, count = quick_sample(sampled, self.threshold)
        return drawn[:count], banding, Probe(sample)

    def _cheapest(self, sets: Sets, items: int, record: Record) -> Banding:
        """Measure the similarity of the pairs of a sample, and take the cheapest banding for such a corpus."""
        sets = sets.take(np.flatnonzero(sets.sizes > 0))
        counts = agreement_counts(sets, self.minhash, SAMPLE_SLOTS, self.threads)
        mean = float(sets.sizes.mean()) if len(sets) else 1.0
        corpus = Similarities.sampled(counts, len(sets), max(2, items), mean, self.threshold)
        tuning = tune_for(self.threshold, self.recall, corpus, self.max_slots)
        record.notes["tuning"] = {
            "sample": len(sets),
            "mean_set_size": round(mean, 1),
            "predicted_false_candidates": round(tuning.predicted_candidates),
        }
        return tuning.banding


def _best_ranks(groups: Groups, ranks: Ints | None) -> Ints:
    """Return the lowest rank of every group."""
    if ranks is None or not len(groups):
        return groups.first
    best: Ints = np.minimum.reduceat(ranks[groups.members], groups.offsets[:-1])
    return best


def _selected(
    copies: Ints, of: Ints, filled: Ints, units: Hashes, keys: Keys, banding: Banding, common: Hashes, drawn: Drawn
) -> Sketched:
    """Select the keys of the groups that are not empty."""
    groups = Groups.by_label(of)
    chosen = keys.chosen(copies[groups.first[filled]])
    return Sketched(copies, groups, filled, units, keys, chosen, banding, common, drawn)


def _wanted(first: Ints, sides: Sides | None) -> Wanted:
    """Say which pairs of groups count; `first` is the first row of each."""
    if sides is None:
        return Wanted(0, len(first))
    split = int(np.searchsorted(first, sides.split))
    return Wanted(split, split if sides.across else len(first))


def seed_hashes(seed: int, n: int) -> Hashes:
    """Return a pseudo-random number for each of n rows that depends on nothing but the seed and the row."""
    base = int(seed_sequence(seed ^ 0x5A17, 1)[0])
    x = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(base)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def lowest(seed: int, n: int, count: int) -> Ints:
    """Return the rows of n with the `count` lowest pseudo-random numbers, lowest first: a sample of the rows."""
    hashes = seed_hashes(seed, n)
    if count >= n:
        return np.argsort(hashes, kind="stable")
    first = np.sort(np.argpartition(hashes, count)[:count])
    return first[np.argsort(hashes[first], kind="stable")]


def _with_sides(digests: Hashes, rows: Ints | None, sides: Sides | None) -> Hashes:
    """Make the fingerprints of the two sides of a join differ, so that groups never cross."""
    if sides is None or not sides.across:
        return digests
    marked = digests.copy()
    start = sides.split if rows is None else int(np.searchsorted(rows, sides.split))
    marked[start:] ^= np.uint64(0xC2B2AE3D27D4EB4F)
    return marked


def _add_empty_pair(
    groups: Groups, filled: Ints, sides: Sides, left: Ints, right: Ints, similarity: NDArray[np.float64]
) -> Scored:
    """Add the pair of the two groups of empty items, one on each side of a join: identical, though in no band."""
    empty = np.setdiff1d(np.arange(len(groups)), filled)
    if len(empty) < 2:
        return left, right, similarity
    left, right = np.append(left, empty[0]), np.append(right, empty[1])
    order = pair_order(left, right, len(groups))
    return left[order], right[order], np.append(similarity, 1.0)[order]
