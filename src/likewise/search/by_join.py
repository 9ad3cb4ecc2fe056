"""Search by an exact join: every pair at or above the threshold, none missed (MMDS §3.9)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints, Sets, map_words
from likewise.base.copies import Groups, labels
from likewise.base.parallel import all_at_once
from likewise.base.runlog import RunLog
from likewise.errors import InputError
from likewise.io.disk import disk_errors
from likewise.io.workspace import Workspace
from likewise.kernels import strings as writing
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import wanted_pairs
from likewise.search.common_shingles import value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import Facts, Join
from likewise.search.exact.pairs import MAP_WORDS, survey_of
from likewise.search.exact.prefixes import (
    SURVEYED,
    JoinSide,
    Lengths,
    PrefixStrings,
    SymbolCounts,
    digests_of,
    empty_counts,
    joined_strings,
    survey,
    written,
)
from likewise.search.expand import MAX_LISTED, most_listed
from likewise.search.items import Items
from likewise.search.matches import Drawn, Sides, Sketched, VerifiedPairs, add_empty_pair, best_ranks
from likewise.search.plan import JOINED
from likewise.search.prepare import NO_ROWS, SearchSettings, with_sides
from likewise.search.scored import ScoredPairs, concatenated, no_pairs, pair_order
from likewise.search.verify import compare

PART = "join-"
"""Steps of the workspace with some of the pairs."""
PAIR_BYTES = 24
"""Bytes of a pair in memory."""
ENOUGH = 2.5
"""Of how many times the symbols that a set may have alone it is looked whether any other set has them."""
TIMES = 2
"""Prefix elements that two sets must share: two instead of one rule out most pairs for slightly longer prefixes."""


@dataclass(frozen=True)
class DifferentItems:
    """The items to join, without common shingles.

    copies: the number of the different item that each row is a copy of. first: the first row of each different item.
    crowded: far more pairs than can be listed are predicted.
    """

    items: Items
    copies: Ints
    first: Ints
    common: Hashes
    crowded: bool


def find(
    settings: SearchSettings,
    given: DifferentItems,
    log: RunLog,
    space: Workspace,
    sides: Sides | None,
    ranks: Ints | None,
    begun: float,
) -> VerifiedPairs:
    """Find all similar pairs that count for `sides`; commit them if that took long since `begun`.

    If there are more than `most_listed` allows, all documents are compared as one crowd: see crowds/gather.py. By other
    measures than Jaccard similarity all sets are held in memory, and so are the pairs, as many as it has room for.
    """
    bounds = Bounds(settings.measure, settings.threshold)
    jaccard = settings.measure == "jaccard"
    held = not jaccard or _fits(settings, given)
    kind = _ContainedInput if not bounds.symmetric and sides is None else _HeldInput if held else _StreamedInput
    known: _JoinInput = kind(settings, given, log)
    of = labels(with_sides(known.units, given.first, sides))[given.copies]
    groups = Groups.by_label(of)
    leaders = given.copies[groups.first]  # the first different item of each group
    units = known.units[leaders]
    filled = np.flatnonzero((units != 0).any(axis=1))
    log.counts["groups"] = len(groups)
    sequence = [(a, b) for a, b in _sides(leaders[filled], groups.first[filled], sides)]
    if isinstance(known, _ContainedInput):
        with log.stage("narrow"):
            sequence = [known.narrow(leaders[filled], bounds, settings.threads)]
    join = Join(bounds, known.counts, "auto", settings.threads, settings.budget.sets, TIMES)
    with log.stage("join", sum(len(a) + (0 if b is None else len(b)) for a, b in sequence)) as join.tick:
        join.most = most_listed(len(given.first)) if jaccard else max(MAX_LISTED, settings.budget.pairs // PAIR_BYTES)
        found = None if given.crowded else _joined(settings, known, join, sequence, join.most, space)
    del known
    if found is None and not jaccard:
        raise InputError(
            f"there are more than {join.most:,} pairs by {settings.measure}; use a higher threshold, leave out common"
            " shingles (ignore_common), or give more memory"
        )
    if found is None:
        left, right, similarity = _crowded(settings, given, groups, filled, log, space, sides, ranks)
    else:
        group_of = of[given.first]
        left, right, similarity = group_of[found[0]], group_of[found[1]], found[2]
        if bounds.symmetric:
            left, right = np.minimum(left, right), np.maximum(left, right)
        order = pair_order(left, right, max(2, len(groups)))
        left, right, similarity = left[order], right[order], similarity[order]
        log.details["predicted_recall"] = 1.0
    if sides and sides.across:
        left, right, similarity = add_empty_pair(groups, filled, left, right, similarity)
    facts = join.facts
    log.details["filters"] = {"length": facts.length, "suffix": facts.position, "bitmap": facts.bitmap}
    log.counts["candidates"] = facts.bitmap
    log.counts["verified"] = len(left)
    if space.lasting and time.perf_counter() - begun > settings.patience:
        with space.making(JOINED) as draft:
            draft.save(copies=given.copies, of=of, filled=filled, units=units, common=given.common)
            draft.save(left=left, right=right, similarity=similarity)
            draft.commit(log.snapshot())
        space.forget(*(name for name in space.steps if name.startswith(PART)))
    return _result(given.copies, groups, filled, units, given.common, left, right, similarity, not bounds.symmetric)


def _joined(
    settings: SearchSettings,
    known: _JoinInput,
    join: Join,
    sequence: list[tuple[Ints, Ints | None]],
    most: int,
    space: Workspace,
) -> ScoredPairs | None:
    """Return the pairs of the joins, or None if there are more than `most`; commit some from time to time.

    Parts that an interrupted run committed are taken over if it had the same memory, which determines the units.
    """
    parts: list[ScoredPairs] = []
    number = 0
    while space.has(f"{PART}{number}") and space.notes(f"{PART}{number}")["memory"] == join.memory:
        step = f"{PART}{number}"
        parts.append((space.array(step, "left"), space.array(step, "right"), space.array(step, "similarity")))
        notes = space.notes(step)
        join.skip, join.facts = notes["units"], Facts(**notes["facts"])
        join.facts.length = 0
        number += 1
    total = sum(len(part[0]) for part in parts)
    saved, whole, reached, last = len(parts), len(parts), join.skip, time.perf_counter()
    for a, b in sequence:
        for found, position, before in known.pairs(join, a, b, space):
            if before and position > reached:
                whole, reached = len(parts), position
            parts.append(found)
            if not before:
                whole, reached = len(parts), position
            total += len(found[0])
            if space.lasting and whole > saved and time.perf_counter() - last > settings.patience:
                left, right, similarity = concatenated(parts[saved:whole])
                with space.making(f"{PART}{number}") as draft:
                    draft.save(left=left, right=right, similarity=similarity)
                    draft.commit({"memory": join.memory, "units": reached, "facts": asdict(join.facts)})
                number, saved, last = number + 1, whole, time.perf_counter()
            if total > most:
                return None
    return None if join.overflow else concatenated(parts)


def _crowded(
    settings: SearchSettings,
    given: DifferentItems,
    groups: Groups,
    filled: Ints,
    log: RunLog,
    space: Workspace,
    sides: Sides | None,
    ranks: Ints | None,
) -> ScoredPairs:
    """Compare all documents as one crowd."""
    rows = groups.first[filled]
    with log.stage("crowds", len(rows)) as tick, disk_errors(space.folder or Path()):
        gathering = Gathering(
            given.items,
            rows,
            [np.arange(len(rows))],
            best_ranks(groups, ranks)[filled],
            wanted_pairs(rows, sides),
            settings.threshold,
            settings.minhash.seed,
            settings.threads,
            settings.budget,
            lambda: space.large / "scratch",
        )
        (left, right, similarity), notes, _ = gathering.pairs(no_pairs(), tick)
    log.details["crowds"] = notes
    log.details["predicted_recall"] = None if notes["unchecked"] else 1.0
    return filled[left], filled[right], similarity


def restored(space: Workspace, settings: SearchSettings) -> VerifiedPairs:
    """Return the pairs that an interrupted run committed."""
    names = ("copies", "of", "filled", "units", "common", "left", "right", "similarity")
    copies, of, filled, units, common, left, right, similarity = (space.array(JOINED, name) for name in names)
    directed = not Bounds(settings.measure, settings.threshold).symmetric
    return _result(copies, Groups.by_label(of), filled, units, common, left, right, similarity, directed)


def _result(
    copies: Ints,
    groups: Groups,
    filled: Ints,
    units: Hashes,
    common: Hashes,
    left: Ints,
    right: Ints,
    similarity: Any,
    directed: bool,
) -> VerifiedPairs:
    """Return the pairs, with band keys of no bands."""
    count = int(copies.max()) + 1 if len(copies) else 0
    keys = [HeldKeys(np.empty((size, 0), np.uint32)) for size in (count, len(filled))]
    drawn = Drawn(NO_ROWS, NO_ROWS, NO_ROWS)
    sketched = Sketched(copies, groups, filled, units, keys[0], keys[1], None, common, drawn)
    return VerifiedPairs(groups, copies, left, right, similarity, sketched, directed)


def _sides(chosen: Ints, first: Ints, sides: Sides | None) -> Iterator[tuple[Ints, Ints | None]]:
    """Yield the joins to make: of items with themselves, or with others. first: the first row of each item."""
    if sides is None:
        yield chosen, None
        return
    old = first < sides.split
    yield chosen[old], chosen[~old]
    if not sides.across:
        yield chosen[~old], None


def _fits(settings: SearchSettings, given: DifferentItems) -> bool:
    """Return whether all sets fit in memory."""
    return int(given.items.set_bytes(given.first).sum()) <= 2 * settings.budget.sets


class _JoinInput(ABC):
    """The different items as a join needs them: a fingerprint of each set, and how frequent the symbols are."""

    units: Hashes
    counts: SymbolCounts

    @abstractmethod
    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[tuple[ScoredPairs, int, bool]]:
        """Yield the similar pairs of items a, or of items a with items b, some at a time.

        Each comes with the number of units of the join whose pairs have all been yielded, before these pairs (True) or
        with them.
        """


class _HeldInput(_JoinInput):
    """All sets are in memory."""

    def __init__(self, settings: SearchSettings, given: DifferentItems, log: RunLog) -> None:
        with log.stage("sets", len(given.first)) as tick:
            self.sets = given.items.sets(given.first, settings.threads)
            survey = survey_of([self.sets], settings.threads)
            tick(len(given.first))
        self.counts, self.maps, self.units = survey.counts, survey.maps[0], survey.digests[0]

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[tuple[ScoredPairs, int, bool]]:
        """Join them."""
        here = JoinSide.of(self.sets, a, self.maps)
        there = here if b is None else JoinSide.of(self.sets, b, self.maps)
        for left, right, similarity in join.pairs(here, None if b is None else there):
            yield (here.rows[left], there.rows[right], similarity), join.position, True


class _ContainedInput(_JoinInput):
    """All sets are in memory at first, and then those that another one may contain, and what may contain them."""

    def __init__(self, settings: SearchSettings, given: DifferentItems, log: RunLog) -> None:
        with log.stage("sets", len(given.first)) as tick:
            self.sets = given.items.sets(given.first, settings.threads)
            self.units = digests_of(self.sets, settings.threads)
            tick(len(given.first))

    def narrow(self, rows: Ints, bounds: Bounds, threads: int) -> tuple[Ints, Ints]:
        """Return the sets that another one may contain, and those that may contain one of them; forget the others.

        Most sets have too many symbols that no other set has. Those left must share enough symbols with the other set.
        """
        sizes, arrays = self.sets.sizes[rows], (self.sets.values, self.sets.offsets, rows)
        least = Lengths.of(sizes, bounds, False).shortest
        eighths = enough_eighths(bounds)
        own = np.empty((eighths, len(rows)), np.int64)

        def count(part: int) -> None:
            counts = np.zeros(2 * len(empty_counts(len(self.sets.values) // 8)), np.uint8)
            writing.count_own(*arrays, np.uint64(part), counts, own[part])

        all_at_once([partial(count, part) for part in range(eighths)], threads)
        inner = own.sum(axis=0) <= sizes - least
        outer = np.ones(len(rows), bool)
        if 2 * sizes[inner].sum() < sizes.sum():
            table = value_table(self.sets.take(rows[inner]).values)
            fewest = int(least[inner].min(initial=1 << 40))

            def look_up(part: slice) -> None:
                writing.with_symbols(*arrays[:2], rows[part], table, fewest, outer[part])

            parts = (slice(start, start + SURVEYED) for start in range(0, len(rows), SURVEYED))
            all_at_once([partial(look_up, part) for part in parts], threads)
        self.rows = rows[inner | outer]
        self.sets = self.sets.take(self.rows)
        known = survey_of([self.sets], threads)
        self.counts, self.maps = known.counts, known.maps[0]
        return rows[inner], rows[outer]

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[tuple[ScoredPairs, int, bool]]:
        """Join them."""
        assert b is not None
        order = np.argsort(self.rows)
        here, there = (
            JoinSide.of(self.sets, order[np.searchsorted(self.rows, side, sorter=order)], self.maps) for side in (a, b)
        )
        for left, right, similarity in join.pairs(here, there):
            yield (self.rows[here.rows[left]], self.rows[there.rows[right]], similarity), join.position, True


def enough_eighths(bounds: Bounds) -> int:
    """Return of how many eighths of all symbols it is looked whether any other set has them."""
    return int(min(8, np.ceil(8 * ENOUGH * (1 - bounds.threshold)))) or 1


@dataclass(frozen=True)
class _WrittenSide(JoinSide):
    """Sets of which only the prefixes are in memory."""

    text: PrefixStrings

    def strings(self, start: int, stop: int, prefix: Ints, counts: SymbolCounts) -> PrefixStrings:
        """Return the prefixes written before."""
        return self.text.cut(start, stop)


class _StreamedInput(_JoinInput):
    """The sets are made twice, in batches: once to count their symbols, and once to write their prefixes."""

    def __init__(self, settings: SearchSettings, given: DifferentItems, log: RunLog) -> None:
        self.settings, self.items, self.first = settings, given.items, given.first
        size = given.items.set_bytes(given.first)
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

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[tuple[ScoredPairs, int, bool]]:
        """Find the candidates, and verify them portion by portion."""
        here = self._side(a)
        there = here if b is None else self._side(b)
        held: list[tuple[Ints, Ints]] = []
        most = max(1, self.settings.budget.pairs // 32)
        size, reached = 0, join.position
        for left, right in join.candidates(here, None if b is None else there):
            if size > most and join.position > reached:
                yield self._verified(held, space), join.position, False
                held, size, reached = [], 0, join.position
            held.append((here.rows[left], there.rows[right]))
            size += len(left)
        yield self._verified(held, space), join.position, False

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
