"""Search by locality-sensitive hashing: sketch → candidates → verify → crowds (MMDS §3.4).

Each step is committed to the workspace if it took long, so that an interrupted run continues where it was.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.base.copies import Groups, labels
from likewise.base.runlog import RunLog, Tick
from likewise.families.banding import Banding
from likewise.io.disk import disk_errors
from likewise.io.workspace import Draft, Workspace
from likewise.search.band_keys import HeldKeys, Keys, StoredKeys
from likewise.search.candidates import (
    CandidatePairs,
    Wanted,
    candidates,
    few_candidates,
    merged,
    most_candidates,
    wanted_pairs,
)
from likewise.search.common_shingles import value_table
from likewise.search.crowds.gather import Gathering
from likewise.search.estimate import acceptance, banded, described, estimated, signature_slots
from likewise.search.expand import most_listed
from likewise.search.items import Items
from likewise.search.matches import (
    Drawn,
    Sides,
    Sketched,
    VerifiedPairs,
    add_empty_pair,
    best_ranks,
    first_of_each,
)
from likewise.search.prepare import PreparedSearch, SearchSettings, with_sides
from likewise.search.recall.certificate import certified, expected_recall
from likewise.search.scored import ScoredPairs, Scores, concatenated
from likewise.search.sketch import SketchPlan
from likewise.search.verify import compare

STEP = "sketch"
"""The step of the workspace with the band keys."""


def sketch(
    settings: SearchSettings,
    prepared: PreparedSearch,
    banding: Banding,
    log: RunLog,
    space: Workspace,
    sides: Sides | None,
    begun: float,
) -> Sketched:
    """Write the band keys of every different item; commit them if they are large or took long since `begun`."""
    copies, first, common = prepared.copies, prepared.first, prepared.common
    keys: Keys
    written = banding
    if settings.estimate:
        written = Banding(signature_slots(banding, settings.banding is not None, settings.max_slots), 1)
    stored = _held_bytes(settings, len(first), written.b, banding) > settings.budget.keys
    if stored:
        space.check_room(4 * len(first) * written.b, "the band keys")
    with ExitStack() as stack:
        draft: Draft | None = stack.enter_context(space.making(STEP)) if stored else None
        with log.stage("sketch", len(first)) as tick:
            if draft:
                keys = StoredKeys.create(draft.place / "keys", len(first), written.b)
            else:
                keys = HeldKeys(np.empty((len(first), written.b), np.uint32))
            plan = SketchPlan(settings.minhash, written, keys, settings.threads, tick, prepared.probe)
            units = prepared.items.keys(first, plan)
        drawn = Drawn(prepared.rows, *prepared.probe.result())
        of = labels(with_sides(units, first, sides))[copies]
        leaders = copies[first_of_each(of)]
        units = units[leaders]
        filled = np.flatnonzero((units != 0).any(axis=1))
        log.counts["groups"] = len(leaders)
        if draft is None and space.lasting and time.perf_counter() - begun > settings.patience:
            draft = stack.enter_context(space.making(STEP))
            keys.save(draft.place / "keys")
        if draft is not None:
            draft.save(copies=copies, of=of, filled=filled, units=units, common=common)
            draft.save(drawn=drawn.rows, neighbour_of=drawn.sample, neighbour=drawn.items)
            size = {"items": keys.items, "columns": written.b, "bands": banding.b, "rows": banding.r}
            if isinstance(keys, StoredKeys):
                keys.close()
                keys = keys.moved(space.large / STEP / "keys")
            draft.commit({"keys": size, **log.snapshot()})
    return _selected(copies, of, filled, units, keys, banding, common, drawn)


def restored(settings: SearchSettings, space: Workspace, log: RunLog) -> Sketched:
    """Return the band keys that an interrupted run committed."""
    log.restore(space.notes(STEP))
    copies, of, filled = (space.array(STEP, name) for name in ("copies", "of", "filled"))
    units, common = space.array(STEP, "units"), space.array(STEP, "common")
    drawn = Drawn(*(space.array(STEP, name) for name in ("drawn", "neighbour_of", "neighbour")))
    known = space.notes(STEP)["keys"]
    keys: Keys = StoredKeys(space.path(STEP, "keys"), known["items"], known["columns"])
    banding = Banding(known["bands"], known["rows"])
    if _held_bytes(settings, keys.items, keys.bands, banding) <= settings.budget.keys:
        keys = HeldKeys(np.stack([keys.column(band) for band in range(keys.bands)], axis=1))
    return _selected(copies, of, filled, units, keys, banding, common, drawn)


def _held_bytes(settings: SearchSettings, items: int, columns: int, banding: Banding) -> int:
    """Return the memory of the keys: of estimates, the slots and the band keys made from them."""
    return 4 * items * (columns + (banding.b if settings.estimate else 0))


def find(
    settings: SearchSettings,
    items: Items,
    sketched: Sketched,
    log: RunLog,
    space: Workspace,
    sides: Sides | None,
    ranks: Ints | None,
) -> VerifiedPairs:
    """Find the similar pairs among sketched items, and measure the recall on the sample."""
    if len(sketched.common):
        items = items.ignoring(value_table(sketched.common))
    banding = sketched.banding
    assert banding is not None
    log.details["banding"] = {"bands": banding.b, "rows": banding.r, "slots": banding.slots}
    log.details["predicted_recall"] = banding.probability(settings.threshold)
    left, right, similarity, crowd_of = _verified(settings, items, sketched, log, space, sides, ranks)
    if settings.estimate:
        slots = sketched.keys.bands
        log.details["estimate"] = described(settings.threshold, slots)
        log.details["predicted_recall"] *= acceptance(settings.threshold, slots)
    else:
        log.details["expected_recall"] = expected_recall(banding, similarity)
    if len(sketched.drawn.rows):
        with log.stage("certify"):
            certificate = certified(
                sketched,
                (left, right, similarity),
                crowd_of,
                best_ranks(sketched.groups, ranks),
                sides,
                len(items),
            )
        log.certificate = certificate.to_dict()
    if settings.estimate:  # signatures are of no use to later runs, which compare documents
        none = HeldKeys(np.empty((sketched.keys.items, 0), np.uint32))
        sketched = replace(sketched, keys=none, group_keys=none.chosen(sketched.filled[:0]), banding=None)
    return VerifiedPairs(sketched.groups, sketched.copies, left, right, similarity, sketched)


def _verified(
    settings: SearchSettings,
    items: Items,
    sketched: Sketched,
    log: RunLog,
    space: Workspace,
    sides: Sides | None,
    ranks: Ints | None,
) -> tuple[Ints, Ints, Scores, Ints]:
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
    rows = groups.first[filled]
    wanted = wanted_pairs(rows, sides)
    slots = sketched.group_keys if settings.estimate else None
    assert sketched.banding is not None
    keys = sketched.group_keys if slots is None else banded(slots, sketched.banding)
    with log.stage("candidates", keys.bands) as tick:
        found = _candidates(settings, keys, wanted, space, log, tick)
    parts: list[ScoredPairs] = []
    seen = 0
    with log.stage("verify", found.count) as tick:
        for number, (a, b) in enumerate(found.portions()):
            seen += len(a)
            name = "-".join(map(str, found.cuts[number : number + 2]))
            parts.append(_portion(settings, items, rows, slots, a, b, name, space, tick))
        a, b, similarity = concatenated(parts)
    crowd_of = np.zeros(0, np.int64)
    if found.crowds:
        with log.stage("crowds", len(rows)) as tick, disk_errors(space.folder or Path()):
            gathering = Gathering(
                items,
                rows,
                found.crowds,
                best_ranks(groups, ranks)[filled],
                wanted,
                settings.threshold,
                settings.minhash.seed,
                settings.threads,
                settings.budget,
                lambda: space.large / "scratch",
            )
            (a, b, similarity), log.details["crowds"], abridged = gathering.pairs((a, b, similarity), tick)
            if slots is not None:
                a, b, similarity = estimated(slots, a, b, settings.threshold, settings.threads)
            if not log.details["crowds"]["complete"]:
                crowd_of = np.full(len(groups), -1)
                crowd_of[filled] = abridged
    left, right = filled[a], filled[b]
    if sides and sides.across:
        left, right, similarity = add_empty_pair(groups, filled, left, right, similarity)
    log.counts["candidates"] = seen
    log.counts["verified"] = len(left)
    if space.lasting and time.perf_counter() - begun > settings.patience:
        with space.making(step) as draft:
            draft.save(left=left, right=right, similarity=similarity, crowd_of=crowd_of)
            draft.commit(log.snapshot())
        space.forget("candidates", *(name for name in space.steps if name.startswith("verify-")))
    return left, right, similarity, crowd_of


def _candidates(
    settings: SearchSettings, keys: Keys, wanted: Wanted, space: Workspace, log: RunLog, tick: Tick
) -> CandidatePairs:
    """Pair the buckets; if the pairs do not fit in memory, they become a step of the workspace.

    Where more similar pairs are predicted than can be listed, fewer buckets are written out: the rest are crowds.
    """
    step = "candidates"
    most = most_listed(keys.items)
    if log.details.get("tuning", {}).get("predicted_pairs", 0) <= most:
        most = most_candidates(keys.items)
    if keys.matrix is not None and not space.has(step):
        few = few_candidates(keys, settings.threads, wanted, tick, 4 * settings.budget.pairs, most)
        if few is not None:
            return few
    if not space.has(step):
        with space.making(step) as draft:
            found = candidates(
                keys,
                settings.threads,
                wanted,
                tick,
                folder=draft.place,
                sort_bytes=settings.budget.sort,
                merge_bytes=settings.budget.pairs,
                most=most,
            )
            ends = np.cumsum([len(crowd) for crowd in found.crowds]).astype(np.int64)
            rows = np.concatenate([np.zeros(0, np.int64), *found.crowds])
            draft.save(bins=found.bins, crowds=rows, ends=ends)
            draft.commit({"cap": found.cap, **log.snapshot()})
    paths = sorted(space.path(step, "").glob("run-*"))
    crowds = np.split(space.array(step, "crowds"), space.array(step, "ends"))[:-1]
    bins = space.array(step, "bins")
    return merged(paths, bins, keys.items, crowds, space.notes(step)["cap"], settings.budget.pairs)


def _portion(
    settings: SearchSettings,
    items: Items,
    rows: Ints,
    slots: Keys | None,
    left: Ints,
    right: Ints,
    name: str,
    space: Workspace,
    tick: Tick,
) -> ScoredPairs:
    """Verify some of the pairs, or estimate their similarity from these slots; commit the result if it took long."""
    step = f"verify-{name}"
    if space.has(step):
        return space.array(step, "left"), space.array(step, "right"), space.array(step, "similarity")
    begun = time.perf_counter()

    def folder() -> Path:
        return space.large / "scratch"

    with disk_errors(space.folder or Path()):
        if slots is not None:
            a, b, similarity = estimated(slots, left, right, settings.threshold, settings.threads, tick)
        else:
            a, b, similarity = compare(
                items, rows, left, right, settings.threshold, settings.threads, settings.budget.sets, folder, tick
            )
    if name and space.lasting and time.perf_counter() - begun > settings.patience:
        with space.making(step) as draft:
            draft.save(left=a, right=b, similarity=similarity)
            draft.commit()
    return a, b, similarity


def _selected(
    copies: Ints, of: Ints, filled: Ints, units: Hashes, keys: Keys, banding: Banding, common: Hashes, drawn: Drawn
) -> Sketched:
    """Select the keys of the groups that are not empty."""
    groups = Groups.by_label(of)
    chosen = keys.chosen(copies[groups.first[filled]])
    return Sketched(copies, groups, filled, units, keys, chosen, banding, common, drawn)
