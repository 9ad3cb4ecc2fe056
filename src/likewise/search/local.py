"""The search in this process: what each step of the plan does with items in memory and files beside them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups, labels
from likewise.base.runlog import RunLog, Tick
from likewise.families.banding import Banding
from likewise.io.disk import disk_errors
from likewise.io.workspace import Draft, Workspace
from likewise.search import by_join, plan
from likewise.search.band_keys import HeldKeys, Keys, StoredKeys
from likewise.search.candidates import CandidatePairs, candidates, few_candidates, merged, wanted_pairs
from likewise.search.common_shingles import SAMPLE as COMMON_SAMPLE
from likewise.search.common_shingles import described, find_common, value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.estimate import banded, estimated
from likewise.search.items import Items
from likewise.search.matches import Drawn, Sides, Sketched, VerifiedPairs, add_empty_pair, best_ranks, first_of_each
from likewise.search.plan import JOINED, SKETCHED, VERIFIED, ChosenSearch
from likewise.search.prepare import NO_ROWS, SPELLED, SearchSettings, crowded_search, lowest, no_probe, with_sides
from likewise.search.recall.certificate import Certificate, certified, expected_recall
from likewise.search.scored import ScoredPairs, concatenated
from likewise.search.sketch import SketchPlan
from likewise.search.verify import compare


@dataclass(frozen=True)
class Search(SearchSettings):
    """A search for similar pairs: by LSH or exact, as requested or as is predicted to be cheaper."""

    def find(
        self,
        items: Items,
        log: RunLog,
        space: Workspace | None = None,
        sides: Sides | None = None,
        ranks: Ints | None = None,
    ) -> VerifiedPairs:
        """Find the similar pairs, all of them or those that count for `sides`; continue an interrupted search.

        Where too many documents are alike for all pairs to be listed, each is paired with a few representatives.
        `ranks` gives the order in which documents are preferred as such, the lowest first; by default that of the rows.
        """
        return plan.find(LocalExecutor(self, items, log, space, sides, ranks))


class LocalExecutor:
    """The items of a search in this process, and what its steps have found.

    copies: the number of the different item that each row is a copy of. Steps that took longer than the patience of the
    settings, or whose result does not fit in memory, are kept in the workspace.
    """

    counts_tasks = False
    tuning: ChosenSearch
    crowded = 0
    _joined: VerifiedPairs | None = None
    _sketched: Sketched
    _candidates: CandidatePairs
    _pairs: ScoredPairs

    def __init__(
        self,
        settings: SearchSettings,
        items: Items,
        log: RunLog,
        space: Workspace | None = None,
        sides: Sides | None = None,
        ranks: Ints | None = None,
    ) -> None:
        self._given = settings.budget
        self.settings = replace(settings, budget=settings.budget.beside(len(items)))
        self.items, self.log, self.sides = items, log, sides
        self._space = space or Workspace.temporary()
        self._ranks = ranks
        self._begun = time.perf_counter()
        self._crowd_of = NO_ROWS

    def _lasts(self) -> bool:
        """Tell whether what was done since the last step is worth keeping."""
        return self._space.lasting and time.perf_counter() - self._begun > self.settings.patience

    def resume(self, step: str) -> bool:
        """Take up a step of the workspace."""
        if not self._space.has(step):
            return False
        self.log.restore(self._space.notes(step))
        if step == JOINED:
            self._joined = by_join.restored(self._space, self.settings)
        elif step == SKETCHED:
            self._restore_sketches()
        else:
            left, right, similarity, self._crowd_of = self._arrays(step, "left", "right", "similarity", "crowd_of")
            self._pairs = left, right, similarity
        self._begun = time.perf_counter()
        return True

    def keep(self, step: str) -> None:
        """Commit the verified pairs; sketches are committed as they are made."""
        if step == VERIFIED and self._lasts():
            left, right, similarity = self._pairs
            with self._space.making(step) as draft:
                draft.save(left=left, right=right, similarity=similarity, crowd_of=self._crowd_of)
                draft.commit(self.log.snapshot())
            self._space.forget("candidates", *(name for name in self._space.steps if name.startswith("verify-")))
        self._begun = time.perf_counter()

    def _arrays(self, step: str, *names: str) -> list[Any]:
        return [self._space.array(step, name) for name in names]

    def identical(self) -> None:
        """Number the different items."""
        if (note := self._given.too_many(len(self.items))) is not None:
            self.log.notes.append(note)
        digests = self.items.digests(self.settings.threads)
        self.copies = labels(with_sides(digests, None, self.sides))
        self.first = first_of_each(self.copies)

    def find_common(self, fraction: float) -> Hashes:
        """Count shingles, those of a sample first."""
        rows, threads = self.first, self.settings.threads
        order = lowest(self.settings.minhash.seed, len(rows), COMMON_SAMPLE)
        common = find_common(self.items, rows, fraction, order, threads)
        self.log.details["ignored"] = described(self.items, rows[np.sort(order[:SPELLED])], common, len(rows))
        return common.values

    def leave_out(self, common: Hashes) -> None:
        """Go on with items that do not have these shingles."""
        self.common = common
        if len(common):
            self.items = self.items.ignoring(value_table(common))

    def join(self) -> VerifiedPairs:
        """Join the sets."""
        settings = self.settings
        jaccard = settings.method == "exact" and settings.measure == "jaccard"
        crowded = jaccard and crowded_search(settings, self.items, self.first)
        given = by_join.DifferentItems(self.items, self.copies, self.first, self.common, crowded)
        return by_join.find(settings, given, self.log, self._space, self.sides, self._ranks, self._begun)

    def sketch(self, tuning: ChosenSearch, tick: Tick) -> None:
        """Write the band keys of every different item; commit them if they are large or took long."""
        banding, written, space, first = tuning.banding, tuning.written, self._space, self.first
        assert banding is not None
        assert written is not None
        keys: Keys
        stored = self._held_bytes(len(first), written.b, banding) > self.settings.budget.keys
        if stored:
            space.check_room(4 * len(first) * written.b, "the band keys")
        with ExitStack() as stack:
            draft: Draft | None = stack.enter_context(space.making(SKETCHED)) if stored else None
            if draft:
                keys = StoredKeys.create(draft.place / "keys", len(first), written.b)
            else:
                keys = HeldKeys(np.empty((len(first), written.b), np.uint32))
            sketching = SketchPlan(self.settings.minhash, written, keys, self.settings.threads, tick, tuning.probe)
            units = self.items.keys(first, sketching)
            drawn = Drawn(tuning.drawn, *tuning.probe.result())
            of = labels(with_sides(units, first, self.sides))[self.copies]
            units = units[self.copies[first_of_each(of)]]
            filled = np.flatnonzero((units != 0).any(axis=1))
            if draft is None and self._lasts():
                draft = stack.enter_context(space.making(SKETCHED))
                keys.save(draft.place / "keys")
            if draft is not None:
                draft.save(copies=self.copies, of=of, filled=filled, units=units, common=self.common)
                draft.save(drawn=drawn.rows, neighbour_of=drawn.sample, neighbour=drawn.items)
                size = {"items": keys.items, "columns": written.b, "bands": banding.b, "rows": banding.r}
                if isinstance(keys, StoredKeys):
                    keys.close()
                    keys = keys.moved(space.large / SKETCHED / "keys")
                draft.commit({"keys": size, **self.log.snapshot()})
        self._take(of, filled, units, keys, banding, drawn)

    @property
    def groups(self) -> int:
        """The number of different sets, empty ones included."""
        return len(self._sketched.groups)

    def _restore_sketches(self) -> None:
        """Take up the band keys of an interrupted run."""
        self.copies, of, filled, units = self._arrays(SKETCHED, "copies", "of", "filled", "units")
        self.leave_out(self._space.array(SKETCHED, "common"))
        drawn = Drawn(*self._arrays(SKETCHED, "drawn", "neighbour_of", "neighbour"))
        size = self._space.notes(SKETCHED)["keys"]
        keys: Keys = StoredKeys(self._space.path(SKETCHED, "keys"), size["items"], size["columns"])
        banding = Banding(size["bands"], size["rows"])
        if self._held_bytes(keys.items, keys.bands, banding) <= self.settings.budget.keys:
            keys = HeldKeys(np.stack([keys.column(band) for band in range(keys.bands)], axis=1))
        self._take(of, filled, units, keys, banding, drawn)

    def _held_bytes(self, items: int, columns: int, banding: Banding) -> int:
        """Return the memory of the keys: of estimates, the slots and the band keys made from them."""
        return 4 * items * (columns + (banding.b if self.settings.estimate else 0))

    def _take(self, of: Ints, filled: Ints, units: Hashes, keys: Keys, banding: Banding, drawn: Drawn) -> None:
        """Go on with sketches: from here on only those of groups that are not empty matter."""
        groups = Groups.by_label(of)
        chosen = keys.chosen(self.copies[groups.first[filled]])
        self._sketched = Sketched(self.copies, groups, filled, units, keys, chosen, banding, self.common, drawn)
        written = Banding(keys.bands, 1) if self.settings.estimate else banding
        self.tuning = ChosenSearch(banding, written, drawn.rows, no_probe(self.settings))
        self._rows = groups.first[filled]
        self._wanted = wanted_pairs(self._rows, self.sides)
        self._slots = chosen if self.settings.estimate else None

    def pair(self, tick: Tick) -> int:
        """Pair the buckets; if the pairs do not fit in memory, they become a step of the workspace."""
        banding, step, space, budget = self._sketched.banding, "candidates", self._space, self.settings.budget
        assert banding is not None
        keys = self._sketched.group_keys if self._slots is None else banded(self._slots, banding)
        most, threads = plan.affordable(keys.items, self.log), self.settings.threads
        found = None
        if keys.matrix is not None and not space.has(step):
            found = few_candidates(keys, threads, self._wanted, tick, 4 * budget.pairs, most)
        if found is None and not space.has(step):
            with space.making(step) as draft:
                found = candidates(
                    keys, threads, self._wanted, tick, folder=draft.place, sort_bytes=budget.sort,
                    merge_bytes=budget.pairs, most=most,
                )  # fmt: skip
                ends = np.cumsum([len(crowd) for crowd in found.crowds]).astype(np.int64)
                rows = np.concatenate([np.zeros(0, np.int64), *found.crowds])
                draft.save(bins=found.bins, crowds=rows, ends=ends)
                draft.commit({"cap": found.cap, **self.log.snapshot()})
        if space.has(step):
            bins, rows, ends = self._arrays(step, "bins", "crowds", "ends")
            paths, crowds = sorted(space.path(step, "").glob("run-*")), np.split(rows, ends)[:-1]
            found = merged(paths, bins, keys.items, crowds, space.notes(step)["cap"], budget.pairs)
        assert found is not None
        self._candidates = found
        self.crowded = len(self._rows) if found.crowds else 0
        return found.count

    def verify(self, tick: Tick) -> int:
        """Compare the pairs, portion by portion."""
        parts: list[ScoredPairs] = []
        seen = 0
        for number, (left, right) in enumerate(self._candidates.portions()):
            seen += len(left)
            name = "-".join(map(str, self._candidates.cuts[number : number + 2]))
            parts.append(self._portion(left, right, name, tick))
        self._pairs = concatenated(parts)
        return seen

    def _portion(self, left: Ints, right: Ints, name: str, tick: Tick) -> ScoredPairs:
        """Compare sets, or slots for an estimate; commit the result if it took long."""
        settings, space, step = self.settings, self._space, f"verify-{name}"
        if space.has(step):
            a, b, similarity = self._arrays(step, "left", "right", "similarity")
            return a, b, similarity
        begun = time.perf_counter()
        with disk_errors(space.folder or Path()):
            if self._slots is not None:
                a, b, similarity = estimated(self._slots, left, right, settings.threshold, settings.threads, tick)
            else:
                a, b, similarity = compare(
                    self.items, self._rows, left, right, settings.threshold, settings.threads, settings.budget.sets,
                    self._scratch, tick,
                )  # fmt: skip
        if name and space.lasting and time.perf_counter() - begun > settings.patience:
            with space.making(step) as draft:
                draft.save(left=a, right=b, similarity=similarity)
                draft.commit()
        return a, b, similarity

    def _scratch(self) -> Path:
        return self._space.large / "scratch"

    def gather(self, tick: Tick) -> dict[str, Any]:
        """Compare the crowds; where their pairs are not all listed, note which group is in which crowd."""
        settings, groups, filled = self.settings, self._sketched.groups, self._sketched.filled
        with disk_errors(self._space.folder or Path()):
            gathering = Gathering(
                self.items, self._rows, self._candidates.crowds, best_ranks(groups, self._ranks)[filled], self._wanted,
                settings.threshold, settings.minhash.seed, settings.threads, settings.budget, self._scratch,
            )  # fmt: skip
            self._pairs, notes, abridged = gathering.pairs(self._pairs, tick)
            if self._slots is not None:
                self._pairs = estimated(self._slots, *self._pairs[:2], settings.threshold, settings.threads)
        if not notes["complete"]:
            self._crowd_of = np.full(len(groups), -1)
            self._crowd_of[filled] = abridged
        return notes

    def complete(self) -> int:
        """Turn numbers of filled groups into numbers of groups."""
        groups, filled = self._sketched.groups, self._sketched.filled
        left, right, similarity = filled[self._pairs[0]], filled[self._pairs[1]], self._pairs[2]
        if self.sides and self.sides.across:
            left, right, similarity = add_empty_pair(groups, filled, left, right, similarity)
        self._pairs = left, right, similarity
        return len(left)

    def expected_recall(self, banding: Banding) -> float | None:
        """Return the recall that the similarities imply."""
        return expected_recall(banding, self._pairs[2])

    def certify(self) -> Certificate:
        """Look the neighbours of the sample up among the pairs."""
        ranks = best_ranks(self._sketched.groups, self._ranks)
        return certified(self._sketched, self._pairs, self._crowd_of, ranks, self.sides, len(self.items))

    def answer(self) -> VerifiedPairs:
        """Return the pairs of groups; signatures are of no use to later runs, which compare documents."""
        if self._joined is not None:
            return self._joined
        found = VerifiedPairs(self._sketched.groups, self._sketched.copies, *self._pairs, self._sketched)
        return found.without_keys() if self.settings.estimate else found
