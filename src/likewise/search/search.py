"""The heart of every run: items in, verified pairs out (identical → tune → sketch → candidates → verify)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups, labels
from likewise.base.runlog import RunLog
from likewise.families.banding import Banding
from likewise.io.disk import disk_errors
from likewise.io.workspace import Draft, Workspace
from likewise.search.band_keys import HeldKeys, Keys, StoredKeys
from likewise.search.by_join import EXACT, find_exactly, restored
from likewise.search.candidates import Candidates, Wanted, candidates, few_candidates, merged
from likewise.search.common_shingles import value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.items import Items
from likewise.search.matches import Drawn, Matches, Sides, Sketched, add_empty_pair, first_of_each
from likewise.search.prepare import Aim, Prepared, prepare, with_sides
from likewise.search.recall.certificate import certified
from likewise.search.verify import Scored, compare


@dataclass(frozen=True)
class Search(Aim):
    """A search for similar pairs: by locality-sensitive hashing, or exact, as is asked for or cheaper."""

    def find(
        self,
        items: Items,
        log: RunLog,
        space: Workspace | None = None,
        sides: Sides | None = None,
        ranks: Ints | None = None,
    ) -> Matches:
        """Find the similar pairs, all of them or those that count for `sides`.

        Where too many documents are alike for all pairs to be listed, each is listed with those that stand for it;
        `ranks` says in which order they are wanted, the lowest first; by default that of the rows.
        """
        space = space or Workspace.temporary()
        if space.has(EXACT):
            return restored(space, log)
        if space.has("sketch"):
            sketched = self._restored(space, log)
        else:
            begun = time.perf_counter()
            prepared = prepare(self, items, log, sides)
            if prepared.banding is None:
                return find_exactly(self, prepared, log, space, sides, begun)
            sketched = self._sketched(prepared, prepared.banding, log, space, sides, begun)
        if len(sketched.common):
            items = items.ignoring(value_table(sketched.common))
        banding = sketched.banding
        assert banding is not None
        log.details["banding"] = {"bands": banding.b, "rows": banding.r, "slots": banding.slots}
        log.details["predicted_recall"] = banding.probability(self.threshold)
        left, right, similarity, crowd_of = self._verified(items, sketched, log, space, sides, ranks)
        if len(sketched.drawn.rows):
            with log.stage("certify"):
                certificate = certified(sketched, (left, right, similarity), crowd_of, sides, len(items))
            log.certificate = certificate.to_dict()
        return Matches(sketched.groups, sketched.copies, left, right, similarity, sketched)

    def _restored(self, space: Workspace, log: RunLog) -> Sketched:
        """Take the band keys from the workspace."""
        step = "sketch"
        log.restore(space.notes(step))
        copies, of, filled = (space.array(step, name) for name in ("copies", "of", "filled"))
        units, common = space.array(step, "units"), space.array(step, "common")
        drawn = Drawn(*(space.array(step, name) for name in ("drawn", "neighbour_of", "neighbour")))
        known = space.notes(step)["keys"]
        keys: Keys = StoredKeys(space.path(step, "keys"), known["items"], known["bands"])
        if 4 * keys.items * keys.bands <= self.budget.keys:
            keys = HeldKeys(np.stack([keys.column(band) for band in range(keys.bands)], axis=1))
        return _selected(copies, of, filled, units, keys, Banding(known["bands"], known["rows"]), common, drawn)

    def _sketched(
        self, prepared: Prepared, banding: Banding, log: RunLog, space: Workspace, sides: Sides | None, begun: float
    ) -> Sketched:
        """Write the band keys of everything different."""
        step = "sketch"
        copies, first, common = prepared.copies, prepared.first, prepared.common
        keys: Keys
        stored = 4 * len(first) * banding.b > self.budget.keys
        if stored:
            space.check_room(4 * len(first) * banding.b, "the band keys")
        with ExitStack() as stack:
            draft: Draft | None = stack.enter_context(space.making(step)) if stored else None
            with log.stage("sketch", len(first)) as tick:
                if draft:
                    keys = StoredKeys.create(draft.place / "keys", len(first), banding.b)
                else:
                    keys = HeldKeys(np.empty((len(first), banding.b), np.uint32))
                units = prepared.items.keys(first, self.minhash, banding, self.threads, keys, tick, prepared.probe)
            drawn = Drawn(prepared.rows, *prepared.probe.result())
            of = labels(with_sides(units, first, sides))[copies]
            leaders = copies[first_of_each(of)]
            units = units[leaders]
            filled = np.flatnonzero((units != 0).any(axis=1))
            log.counts["groups"] = len(leaders)
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
                draft.commit({"keys": size, **log.snapshot()})
        return _selected(copies, of, filled, units, keys, banding, common, drawn)

    def _verified(
        self,
        items: Items,
        sketched: Sketched,
        log: RunLog,
        space: Workspace,
        sides: Sides | None,
        ranks: Ints | None,
    ) -> tuple[Ints, Ints, NDArray[np.float64], Ints]:
        """Pair the buckets and keep the pairs at or above the threshold; or take them from the workspace.

        Also returned: for each group the crowd it is in whose pairs are not all listed, or -1; empty if there is none.
        """
        step = "verify"
        if space.has(step):
            log.restore(space.notes(step))
            left, right, crowd_of = (space.array(step, name) for name in ("left", "right", "crowd_of"))
            return left, right, space.array(step, "similarity"), crowd_of
        begun = time.perf_counter()
        groups, filled = sketched.groups, sketched.filled
        wanted = _wanted(groups.first[filled], sides)
        with log.stage("candidates", sketched.group_keys.bands) as tick:
            found = self._candidates(sketched.group_keys, wanted, space, log, tick)
        rows = groups.first[filled]
        parts: list[Scored] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        met = 0
        with log.stage("verify", found.count) as tick:
            for number, (a, b) in enumerate(found.portions()):
                met += len(a)
                name = "-".join(map(str, found.cuts[number : number + 2]))
                parts.append(self._portion(items, rows, a, b, name, space, tick))
            a, b, similarity = (np.concatenate([part[i] for part in parts]) for i in range(3))
        crowd_of = np.zeros(0, np.int64)
        if found.crowds:
            with log.stage("crowds"):
                best, seed = _best_ranks(groups, ranks)[filled], self.minhash.seed
                gathering = Gathering(
                    items, rows, found.crowds, best, wanted, self.threshold, self.recall, seed, self.threads
                )
                (a, b, similarity), log.details["crowds"], abridged = gathering.pairs((a, b, similarity))
                if not log.details["crowds"]["complete"]:
                    crowd_of = np.full(len(groups), -1)
                    crowd_of[filled] = abridged
        left, right = filled[a], filled[b]
        if sides and sides.across:
            left, right, similarity = add_empty_pair(groups, filled, left, right, similarity)
        log.counts["candidates"] = met
        log.counts["verified"] = len(left)
        if space.lasting and time.perf_counter() - begun > self.patience:
            with space.making(step) as draft:
                draft.save(left=left, right=right, similarity=similarity, crowd_of=crowd_of)
                draft.commit(log.snapshot())
            space.forget("candidates", *(name for name in space.steps if name.startswith("verify-")))
        return left, right, similarity, crowd_of

    def _candidates(self, keys: Keys, wanted: Wanted, space: Workspace, log: RunLog, tick: Any) -> Candidates:
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
                draft.commit({"cap": found.cap, **log.snapshot()})
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

        with disk_errors(space.folder or Path()):
            a, b, similarity = compare(
                items, rows, left, right, self.threshold, self.threads, self.budget.sets, folder, tick
            )
        if name and space.lasting and time.perf_counter() - begun > self.patience:
            with space.making(step) as draft:
                draft.save(left=a, right=b, similarity=similarity)
                draft.commit()
        return a, b, similarity


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
