"""The exact way to search: copies joined, then every pair at or above the threshold by `exact`, none missed (E6)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.copies import Groups, labels
from likewise.base.runlog import RunLog
from likewise.errors import InputError
from likewise.io.disk import disk_errors
from likewise.io.workspace import Workspace
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import pair_order
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import Join
from likewise.search.exact.pairs import MAP_WORDS, survey_of
from likewise.search.exact.prefixes import Counts, Lengths, Side, Strings, concatenated, empty_counts, survey, written
from likewise.search.matches import Drawn, Matches, Sides, Sketched, add_empty_pair
from likewise.search.prepare import Aim, Prepared, with_sides
from likewise.search.verify import Scored, compare, map_words

EXACT = "exact"
PAIR_BYTES = 48
TIMES = 2
NO_ROWS = np.zeros(0, np.int64)


def find_exactly(
    aim: Aim, prepared: Prepared, log: RunLog, space: Workspace, sides: Sides | None, begun: float
) -> Matches:
    """Find all similar pairs; those that count for `sides`."""
    bounds = Bounds("jaccard", aim.threshold, "dedup")
    known: _Known = _Held(aim, prepared, log) if _fits(aim, prepared) else _Streamed(aim, prepared, log)
    of = labels(with_sides(known.units, prepared.first, sides))[prepared.copies]
    groups = Groups.by_label(of)
    leaders = prepared.copies[groups.first]  # the first of the different items in each group
    units = known.units[leaders]
    filled = np.flatnonzero((units != 0).any(axis=1))
    log.counts["groups"] = len(groups)
    group_of = of[prepared.first]
    join = Join(bounds, known.counts, "auto", aim.threads, aim.budget.sets, TIMES)
    parts: list[Scored] = [(NO_ROWS, NO_ROWS, np.zeros(0))]
    total = 0
    with log.stage("join", len(filled)) as join.tick:
        for a, b in _sides(leaders[filled], groups.first[filled], sides):
            for left, right, similarity in known.pairs(join, a, b, space):
                parts.append((group_of[left], group_of[right], similarity))
                total += len(left)
                if total * PAIR_BYTES > aim.budget.total:
                    raise InputError(
                        f"more than {total:,} pairs are similar, too many to list them all; use --method lsh, which"
                        " lists crowds by the documents that stand for them, or raise the threshold"
                    )
        left, right, similarity = (np.concatenate([part[i] for part in parts]) for i in range(3))
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
    if space.lasting and time.perf_counter() - begun > aim.patience:
        with space.making(EXACT) as draft:
            draft.save(copies=prepared.copies, of=of, filled=filled, units=units, common=prepared.common)
            draft.save(left=left, right=right, similarity=similarity)
            draft.commit(log.snapshot())
    return _matches(prepared.copies, groups, filled, units, prepared.common, left, right, similarity)


def restored(space: Workspace, log: RunLog) -> Matches:
    """Take the pairs that an interrupted run had found from the workspace."""
    log.restore(space.notes(EXACT))

    def array(name: str) -> Any:
        return space.array(EXACT, name)

    groups = Groups.by_label(array("of"))
    pairs = array("left"), array("right"), array("similarity")
    return _matches(array("copies"), groups, array("filled"), array("units"), array("common"), *pairs)


def _matches(
    copies: Ints,
    groups: Groups,
    filled: Ints,
    units: Hashes,
    common: Hashes,
    left: Ints,
    right: Ints,
    similarity: Any,
) -> Matches:
    """Return the pairs, with keys of no bands."""
    count = int(copies.max()) + 1 if len(copies) else 0
    keys = [HeldKeys(np.empty((size, 0), np.uint32)) for size in (count, len(filled))]
    drawn = Drawn(NO_ROWS, NO_ROWS, NO_ROWS)
    sketched = Sketched(copies, groups, filled, units, keys[0], keys[1], None, common, drawn)
    return Matches(groups, copies, left, right, similarity, sketched)


def _sides(chosen: Ints, first: Ints, sides: Sides | None) -> Iterator[tuple[Ints, Ints | None]]:
    """Yield the joins to make: of some items with themselves, or with others. first: the first row of each item."""
    if sides is None:
        yield chosen, None
        return
    old = first < sides.split
    yield chosen[old], chosen[~old]
    if not sides.across:
        yield chosen[~old], None


def _fits(aim: Aim, prepared: Prepared) -> bool:
    """Tell whether all sets fit in memory."""
    return int(prepared.items.set_bytes(prepared.first).sum()) <= 2 * aim.budget.sets


class _Known(ABC):
    """What is known of the different items: a fingerprint of each one's set, how frequent the symbols are."""

    units: Hashes
    counts: Counts

    @abstractmethod
    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[Scored]:
        """Yield the similar pairs of these items, or of them with others."""


class _Held(_Known):
    """All sets are in memory."""

    def __init__(self, aim: Aim, prepared: Prepared, log: RunLog) -> None:
        with log.stage("sets", len(prepared.first)) as tick:
            self.sets = prepared.items.sets(prepared.first, aim.threads)
            survey = survey_of([self.sets], aim.threads)
            tick(len(prepared.first))
        self.counts, self.maps, self.units = survey.counts, survey.maps[0], survey.digests[0]

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[Scored]:
        """Join them."""
        here = Side.of(self.sets, a, self.maps)
        there = here if b is None else Side.of(self.sets, b, self.maps)
        for left, right, similarity in join.pairs(here, None if b is None else there):
            yield here.rows[left], there.rows[right], similarity


@dataclass(frozen=True)
class _Written(Side):
    """Sets of which only the strings are known."""

    text: Strings

    def strings(self, start: int, stop: int, prefix: Ints, counts: Counts) -> Strings:
        """Return what was written."""
        return self.text.cut(start, stop)


class _Streamed(_Known):
    """The sets are made twice, some at a time: once to count their symbols, once to write the strings of them."""

    def __init__(self, aim: Aim, prepared: Prepared, log: RunLog) -> None:
        self.aim, self.items, self.first = aim, prepared.items, prepared.first
        size = prepared.items.set_bytes(prepared.first)
        symbols = int(size.sum()) // 8
        mean = symbols / max(1, len(size))
        words = min(MAP_WORDS, map_words(mean), max(1, aim.budget.total // 16 // 8 // max(1, len(size))))
        self.counts = empty_counts(min(symbols, aim.budget.total // 32))
        self.maps = np.empty((len(size), words), np.uint64)
        self.units = np.empty((len(size), 2), np.uint64)
        self.sizes = np.empty(len(size), np.int64)
        with log.stage("sets", 2 * len(size)) as tick:
            for place, sets in self.items.set_batches(self.first, aim.threads):
                known = survey([sets], words, 1, self.counts)
                self.maps[place], self.units[place], self.sizes[place] = known.maps[0], known.digests[0], sets.sizes
                tick(len(sets))
            lengths = Lengths.of(np.maximum(self.sizes, 1), Bounds("jaccard", aim.threshold), False, TIMES)
            prefix = lengths.probe * (self.sizes > 0)
            parts = []
            for place, sets in self.items.set_batches(self.first, aim.threads):
                parts.append(written(sets, np.arange(len(sets)), prefix[place], self.counts, 2))
                tick(len(sets))
            self.text = concatenated(parts)

    def _side(self, chosen: Ints) -> Side:
        rows = chosen[np.argsort(self.sizes[chosen], kind="stable")]
        nothing = Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64))
        return _Written(nothing, rows, self.sizes[rows], self.maps[rows], self.text.take(rows))

    def pairs(self, join: Join, a: Ints, b: Ints | None, space: Workspace) -> Iterator[Scored]:
        """Find the candidates, and compare them portion by portion."""
        here = self._side(a)
        there = here if b is None else self._side(b)
        held: list[tuple[Ints, Ints]] = []
        most = max(1, self.aim.budget.pairs // 32)
        for left, right in join.candidates(here, None if b is None else there):
            held.append((here.rows[left], there.rows[right]))
            if sum(len(part) for part, _ in held) > most:
                yield self._compared(held, space)
                held = []
        yield self._compared(held, space)

    def _compared(self, held: list[tuple[Ints, Ints]], space: Workspace) -> Scored:
        left, right = (np.concatenate([NO_ROWS, *(part[i] for part in held)]) for i in range(2))
        left, right = np.minimum(left, right), np.maximum(left, right)
        order = pair_order(left, right, max(2, len(self.first)))
        aim = self.aim

        def folder() -> Path:
            return space.large / "scratch"

        with disk_errors(space.folder or Path()):
            return compare(
                self.items,
                self.first,
                left[order],
                right[order],
                aim.threshold,
                aim.threads,
                aim.budget.sets,
                folder,
            )
