"""Search by an exact join: every pair at or above the threshold, none missed (MMDS §3.9)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints, Sets, map_words
from likewise.base.copies import Groups, labels
from likewise.base.runlog import RunLog
from likewise.errors import InputError
from likewise.io.disk import disk_errors
from likewise.io.workspace import Workspace
from likewise.search.band_keys import HeldKeys
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import Join
from likewise.search.exact.pairs import MAP_WORDS, survey_of
from likewise.search.exact.prefixes import (
    JoinSide,
    Lengths,
    PrefixStrings,
    SymbolCounts,
    empty_counts,
    joined_strings,
    survey,
    written,
)
from likewise.search.matches import Drawn, Sides, Sketched, VerifiedPairs, add_empty_pair
from likewise.search.prepare import PreparedSearch, SearchSettings, with_sides
from likewise.search.scored import ScoredPairs, concatenated, pair_order
from likewise.search.verify import compare

STEP = "exact"
"""The step of the workspace with the pairs."""
PAIR_BYTES = 48
"""Bytes that a pair takes until it is in its group; as many pairs are held as the budget allows."""
TIMES = 2
"""Prefix elements that two sets must share: two instead of one rule out most pairs for slightly longer prefixes."""
NO_ROWS = np.zeros(0, np.int64)


def find(
    settings: SearchSettings, prepared: PreparedSearch, log: RunLog, space: Workspace, sides: Sides | None, begun: float
) -> VerifiedPairs:
    """Find all similar pairs that count for `sides`; commit them if that took long since `begun`."""
    bounds = Bounds("jaccard", settings.threshold)
    known: _JoinInput = (
        _HeldInput(settings, prepared, log) if _fits(settings, prepared) else _StreamedInput(settings, prepared, log)
    )
    of = labels(with_sides(known.units, prepared.first, sides))[prepared.copies]
    groups = Groups.by_label(of)
    leaders = prepared.copies[groups.first]  # the first different item of each group
    units = known.units[leaders]
    filled = np.flatnonzero((units != 0).any(axis=1))
    log.counts["groups"] = len(groups)
    group_of = of[prepared.first]
    join = Join(bounds, known.counts, "auto", settings.threads, settings.budget.sets, TIMES)
    parts: list[ScoredPairs] = []
    total = 0
    with log.stage("join", len(filled)) as join.tick:
        for a, b in _sides(leaders[filled], groups.first[filled], sides):
            for left, right, similarity in known.pairs(join, a, b, space):
                parts.append((group_of[left], group_of[right], similarity))
                total += len(left)
                if total * PAIR_BYTES > settings.budget.total:
                    raise InputError(
                        f"more than {total:,} pairs are similar, too many to list them all; use --method lsh, which"
                        " pairs documents that are all alike with a few representatives, or raise the threshold"
                    )
        left, right, similarity = concatenated(parts)
        left, right = np.minimum(left, right), np.maximum(left, right)
        order = pair_order(left, right, max(2, len(groups)))
        left, right, similarity = left[order], right[order], similarity[order]
    if sides and sides.across:
        left, right, similarity = add_empty_pair(groups, filled, left, right, similarity)
    facts = join.facts
    log.details["filters"] = {"length": facts.length, "suffix": facts.position, "bitmap": facts.bitmap}
    log.details["predicted_recall"] = 1.0
    log.counts["candidates"] = facts.bitmap
    log.counts["verified"] = len(left)
    if space.lasting and time.perf_counter() - begun > settings.patience:
        with space.making(STEP) as draft:
            draft.save(copies=prepared.copies, of=of, filled=filled, units=units, common=prepared.common)
            draft.save(left=left, right=right, similarity=similarity)
            draft.commit(log.snapshot())
    return _result(prepared.copies, groups, filled, units, prepared.common, left, right, similarity)


def restored(space: Workspace, log: RunLog) -> VerifiedPairs:
    """Return the pairs that an interrupted run committed."""
    log.restore(space.notes(STEP))

    def array(name: str) -> Any:
        return space.array(STEP, name)

    groups = Groups.by_label(array("of"))
    pairs = array("left"), array("right"), array("similarity")
    return _result(array("copies"), groups, array("filled"), array("units"), array("common"), *pairs)


def _result(
    copies: Ints,
    groups: Groups,
    filled: Ints,
    units: Hashes,
    common: Hashes,
    left: Ints,
    right: Ints,
    similarity: Any,
) -> VerifiedPairs:
    """Return the pairs, with band keys of no bands."""
    count = int(copies.max()) + 1 if len(copies) else 0
    keys = [HeldKeys(np.empty((size, 0), np.uint32)) for size in (count, len(filled))]
    drawn = Drawn(NO_ROWS, NO_ROWS, NO_ROWS)
    sketched = Sketched(copies, groups, filled, units, keys[0], keys[1], None, common, drawn)
    return VerifiedPairs(groups, copies, left, right, similarity, sketched)


def _sides(chosen: Ints, first: Ints, sides: Sides | None) -> Iterator[tuple[Ints, Ints | None]]:
    """Yield the joins to make: of items with themselves, or with others. first: the first row of each item."""
    if sides is None:
        yield chosen, None
        return
    old = first < sides.split
    yield chosen[old], chosen[~old]
    if not sides.across:
        yield chosen[~old], None


def _fits(settings: SearchSettings, prepared: PreparedSearch) -> bool:
    """Return whether all sets fit in memory."""
    return int(prepared.items.set_bytes(prepared.first).sum()) <= 2 * settings.budget.sets


class _JoinInput(ABC):
    """The different items as a join needs them: a fingerprint of each set, and how frequent the symbols are."""

    units: Hashes
    counts: SymbolCounts

    @abstractmethod
    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[ScoredPairs]:
        """Yield the similar pairs of items a, or of items a with items b."""


class _HeldInput(_JoinInput):
    """All sets are in memory."""

    def __init__(self, settings: SearchSettings, prepared: PreparedSearch, log: RunLog) -> None:
        with log.stage("sets", len(prepared.first)) as tick:
            self.sets = prepared.items.sets(prepared.first, settings.threads)
            survey = survey_of([self.sets], settings.threads)
            tick(len(prepared.first))
        self.counts, self.maps, self.units = survey.counts, survey.maps[0], survey.digests[0]

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[ScoredPairs]:
        """Join them."""
        here = JoinSide.of(self.sets, a, self.maps)
        there = here if b is None else JoinSide.of(self.sets, b, self.maps)
        for left, right, similarity in join.pairs(here, None if b is None else there):
            yield here.rows[left], there.rows[right], similarity


@dataclass(frozen=True)
class _WrittenSide(JoinSide):
    """Sets of which only the prefixes are in memory."""

    text: PrefixStrings

    def strings(self, start: int, stop: int, prefix: Ints, counts: SymbolCounts) -> PrefixStrings:
        """Return the prefixes written before."""
        return self.text.cut(start, stop)


class _StreamedInput(_JoinInput):
    """The sets are made twice, in batches: once to count their symbols, and once to write their prefixes."""

    def __init__(self, settings: SearchSettings, prepared: PreparedSearch, log: RunLog) -> None:
        self.settings, self.items, self.first = settings, prepared.items, prepared.first
        size = prepared.items.set_bytes(prepared.first)
        symbols = int(size.sum()) // 8
        mean = symbols / max(1, len(size))
        words = min(MAP_WORDS, map_words(mean), max(1, settings.budget.total // 16 // 8 // max(1, len(size))))
        self.counts = empty_counts(min(symbols, settings.budget.total // 32))
        self.maps = np.empty((len(size), words), np.uint64)
        self.units = np.empty((len(size), 2), np.uint64)
        self.sizes = np.empty(len(size), np.int64)
        with log.stage("sets", 2 * len(size)) as tick:
            for place, sets in self.items.set_batches(self.first, settings.threads):
                known = survey([sets], words, 1, self.counts)
                self.maps[place], self.units[place], self.sizes[place] = known.maps[0], known.digests[0], sets.sizes
                tick(len(sets))
            lengths = Lengths.of(np.maximum(self.sizes, 1), Bounds("jaccard", settings.threshold), False, TIMES)
            prefix = lengths.probe * (self.sizes > 0)
            parts = []
            for place, sets in self.items.set_batches(self.first, settings.threads):
                parts.append(written(sets, np.arange(len(sets)), prefix[place], self.counts, 2))
                tick(len(sets))
            self.text = joined_strings(parts)

    def _side(self, chosen: Ints) -> JoinSide:
        rows = chosen[np.argsort(self.sizes[chosen], kind="stable")]
        nothing = Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64))
        return _WrittenSide(nothing, rows, self.sizes[rows], self.maps[rows], self.text.take(rows))

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[ScoredPairs]:
        """Find the candidates, and verify them portion by portion."""
        here = self._side(a)
        there = here if b is None else self._side(b)
        held: list[tuple[Ints, Ints]] = []
        most = max(1, self.settings.budget.pairs // 32)
        for left, right in join.candidates(here, None if b is None else there):
            held.append((here.rows[left], there.rows[right]))
            if sum(len(part) for part, _ in held) > most:
                yield self._verified(held, space)
                held = []
        yield self._verified(held, space)

    def _verified(self, held: list[tuple[Ints, Ints]], space: Workspace) -> ScoredPairs:
        left, right = (np.concatenate([NO_ROWS, *(part[i] for part in held)]) for i in range(2))
        left, right = np.minimum(left, right), np.maximum(left, right)
        order = pair_order(left, right, max(2, len(self.first)))
        settings = self.settings

        def folder() -> Path:
            return space.large / "scratch"

        with disk_errors(space.folder or Path()):
            return compare(
                self.items,
                self.first,
                left[order],
                right[order],
                settings.threshold,
                settings.threads,
                settings.budget.sets,
                folder,
            )
