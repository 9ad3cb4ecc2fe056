"""`dedup`: find near-duplicates, keep one document of each group, and explain every removal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.base.runlog import RunLog
from likewise.errors import InputError, ParameterError
from likewise.io.disk import is_url
from likewise.io.read import ReadOptions, Source
from likewise.io.seals import changed_files
from likewise.io.workspace import OVER, STEPS, WORK, Workspace
from likewise.jobs.addition import Addition, NewDocuments
from likewise.jobs.against import Against, Joined
from likewise.jobs.inputs import FolderRequest, check_distance
from likewise.jobs.reference_items import Growing
from likewise.jobs.result import Dedup
from likewise.jobs.rows import DISTANCES
from likewise.jobs.settings import HASHING
from likewise.kernels.hashing import mix
from likewise.search.cluster import NONE, RULES, Keep, Removal, note_unlisted, removals
from likewise.search.items import Items, TextItems
from likewise.search.load import Collection, collect
from likewise.search.local import Search
from likewise.search.matches import Sides, VerifiedPairs, count_different
from likewise.shingle import Shingler

OWNER = "dedup"
MEASURES = ("jaccard", "containment")

FORECAST_FROM = 200_000_000
"""Bytes of input from which a run is forecast: below this the forecast itself is a noticeable part of the run."""

COMPARED = 100_000
"""Documents of which it is said what other rules would keep."""

mix(np.uint64(0))  # the first call of a kernel takes Numba a third of a second: let it be part of the import


@dataclass(frozen=True, kw_only=True)
class DedupRequest(FolderRequest):
    """What `dedup` is asked for; see there."""

    owner: str = OWNER
    keep: str | Keep | None = None
    group: str | None = None
    fresh: bool = False
    against: tuple[Any, ...] = ()
    add: bool = False
    state: bool = True
    within: float | None = None
    vector: str = "vector"

    def __post_init__(self) -> None:
        checks.choice(self.owner, "measure", self.measure, (*MEASURES, *DISTANCES))
        super().__post_init__()
        if self.group is not None:
            why = "with 'group', whose names are the ids" if not self.of_vectors else "for vectors"
            checks.unused(self.owner, self.given("id") if not self.of_vectors else self.given("group"), why)
        checks.flag(self.owner, "add", self.add)
        if not self.against:
            checks.unused(self.owner, self.given("add"), "without an index in 'against'")
        if self.of_vectors:
            return
        checks.unused(self.owner, self.given("within", "vector"), f"with measure={self.measure!r}")
        check_distance(self.source)
        if self.against:
            checks.unused(self.owner, self.given("estimate"), "with 'against', which compares documents")
        if self.measure != "jaccard":
            why = f"with measure={self.measure!r}, which is an exact search"
            if self.method == "lsh":
                raise ParameterError.of(self.owner, "method", f"'auto' or 'exact' {why}", self.method)
            checks.unused(self.owner, self.given(*HASHING), why)
            if self.against:
                raise ParameterError(
                    f"The 'against' parameter of {self.owner} needs measure='jaccard', by which earlier documents are"
                    " compared. To find what they contain, give them and the new ones to one run."
                )

    @property
    def of_vectors(self) -> bool:
        """Whether vectors are compared."""
        return self.measure in DISTANCES

    @cached_property
    def policy(self) -> Keep:
        """Which document of a group is kept: the first, or by containment the longest, unless the user says it."""
        default = "longest" if self.measure == "containment" else "first"
        return Keep.parse(default if self.keep is None else self.keep)

    @property
    def score(self) -> tuple[str, ...]:
        """The columns of the keep policy."""
        return self.policy.columns

    @cached_property
    def options(self) -> ReadOptions:
        """How the input is read: with a group, its name is the id."""
        return replace(super().options, id=self.group or self.id, group=self.group, lowest=self.policy.lowest)

    def reported(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return the parameters, for run.json, but for what is known in `against`."""
        chosen = {"measure": self.measure, "keep": str(self.policy), "group": self.group}
        return {**super().reported(shingler), **chosen, "against": None, "add": self.add}


def dedup(request: DedupRequest, known: Against) -> Dedup:
    """Do what was asked for in this process; compare with what is known, too."""
    log = RunLog.of(request.progress)
    if request.out is None:
        checks.unused(OWNER, request.given("fresh", "state"), "without 'out'")
    earlier = known if request.against else None
    target = earlier.target() if earlier is not None and request.add else None
    if earlier is not None:
        request = earlier.agreed(request)
    return _Run(request, request.opened()[0], earlier, target, log).done()


@dataclass(frozen=True)
class _Run:
    """One run: what it is asked for, what it works on, and what it is compared with."""

    request: DedupRequest
    source: Source | Sets
    earlier: Against | None
    target: Growing | None
    log: RunLog

    def done(self) -> Dedup:
        """Do all of it, or what an interrupted run has left to do."""
        threads, out = self.request.resources.threads, self.out
        addition = Addition(self.target, self.identity) if self.target is not None else None
        known = self.inputs is not None and self.request.shingler.restorable
        files = self.source.files if isinstance(self.source, Source) else []
        with workspace(self.request, self.identity, files, known, self.log) as space:
            if addition and out is not None and not self.request.fresh and not space.resumed:
                addition.check_new(out)
            self.forecast(space)
            collection = self.read(space)
            new = NewDocuments(collection)
            if addition:
                new.check(addition.target)
            if self.earlier is not None:
                self.earlier.ask(_items(collection), space, self.log, threads)
            ranks = self.ranks(collection)
            matches = self.search(collection, ranks, space)
            removal = self.remove(collection, matches, ranks)
            result = self.result(collection, matches, removal, space)
            rows = addition.prepared(new, result.keep_mask, threads) if addition else None
            if out is not None:
                check_unchanged(self.source, self.inputs)
                result.write(out, space)
            if addition and rows is not None:
                addition.make(new, rows, result, self.log, out)
            if out is not None:
                space.finish()
        if isinstance(self.source, Source) and not _in_memory(collection):
            self.source.hold_texts(None)  # which were packed in files that are gone
        return result

    @property
    def out(self) -> Path | None:
        """The folder of the result."""
        return None if self.request.out is None else Path(self.request.out)

    @cached_property
    def inputs(self) -> dict[str, list[int]] | None:
        """The size, time and a sample of each input file; None for objects in memory, and if nothing is written."""
        return self.source.identity() if self.out is not None and isinstance(self.source, Source) else None

    @property
    def leaves_state(self) -> bool:
        """Whether later runs can go on from this one: it reads files, and has a folder for what they need."""
        return bool(self.request.state and self.inputs)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the user set, for run.json."""
        against = [one.place for one in self.earlier.known] if self.earlier else None
        return {**self.request.reported(self.request.shingler), "against": against}

    @property
    def identity(self) -> dict[str, Any]:
        """What a run in a folder must share with the one that was interrupted there."""
        parameters = {**self.parameters, "shingle": str(self.request.shingle)}
        if self.earlier is not None:
            parameters["against"] = [one.identity for one in self.earlier.known]
        return {"parameters": parameters, "inputs": self.inputs or {}}

    @property
    def searching(self) -> Search:
        """The search that the settings describe; common shingles are those of earlier runs, if there are any."""
        search = self.request.search(self.request.resources)
        return replace(search, ignore_common=None, common=self.earlier.common) if self.earlier else search

    def forecast(self, space: Workspace) -> None:
        """Predict what a large new run needs, and refuse to start it where the disk is too small."""
        source, out = self.source, self.out
        if out is None or space.resumed or self.earlier or not isinstance(source, Source):
            return
        if self.request.measure != "jaccard" or self.request.group:  # the model of the costs knows no other
            return
        if (source.total_bytes or 0) < FORECAST_FROM:
            return
        from likewise.jobs.plan import predicted

        with self.log.stage("forecast"):
            forecast = predicted(source, self.request.shingle, self.searching, out)
        self.log.details["forecast"] = forecast.to_dict()
        space.check_room(forecast.spill, "what does not fit in memory")
        space.check_room(forecast.answer, "the answer", out)

    def read(self, space: Workspace) -> Collection:
        """Read the documents."""
        request, resources = self.request, self.request.resources
        room = resources.budget.texts
        return collect(self.source, request.options, request.shingle, self.log, resources.threads, space, room)

    def ranks(self, collection: Collection) -> Ints:
        """Return the order in which documents are kept; those of earlier runs come first."""
        items = _items(collection)
        policy = self.request.policy
        lengths = items.lengths if policy.by_length else np.zeros(len(items), np.int64)
        ranks = policy.ranks(lengths, collection.scores)
        if self.earlier is None:
            return ranks
        return np.concatenate([np.arange(self.earlier.count), ranks + self.earlier.count])

    def search(self, collection: Collection, ranks: Ints, space: Workspace) -> VerifiedPairs:
        """Find the similar pairs; with earlier runs, those that have a new document."""
        items, sides = _items(collection), None
        if self.earlier is not None:
            items = Joined([*(part.items for part in self.earlier.parts), items])
            sides = Sides(self.earlier.count, across=False)
        found = self.searching.find(items, self.log, space, sides, ranks)
        self.log.counts["different"] = count_different(found, sides)
        self.request.note_method(self.log)
        return found if self.leaves_state else found.without_keys()

    def remove(self, collection: Collection, matches: VerifiedPairs, ranks: Ints) -> Removal:
        """Choose which documents to remove, and the document that is kept for each."""
        log, items = self.log, _items(collection)
        with log.stage("cluster"):
            pairs = matches.left, matches.right, matches.similarity
            none = self.request.policy.rule == NONE
            removal = removals(matches.groups, *pairs, ranks, matches.copies, matches.empty, none, matches.directed)
            note_unlisted(self.request.policy, log)
            if self.earlier is None:
                self.compare_policies(items, matches, removal)
            else:
                removal = _of_new(removal, self.earlier, items, self.request.resources.threads)
                log.counts["items"] = len(items)
                log.counts["earlier"] = sum(part.count for part in self.earlier.parts)
        return removal

    def compare_policies(self, items: Items, matches: VerifiedPairs, removal: Removal) -> None:
        """Note what other rules would keep of these documents, where that takes no time."""
        complete = self.log.details.get("crowds", {}).get("complete", True)
        small = len(items) <= COMPARED and self.log.counts.get("bytes", 0) <= FORECAST_FROM
        if not (complete and small and len(removal.rows)):
            return
        lengths, gone = items.lengths, np.zeros(len(items), bool)
        gone[removal.rows] = True
        found = [{"keep": str(self.request.policy), "kept": int((~gone).sum()), "length": int(lengths[~gone].sum())}]
        pairs = matches.left, matches.right, matches.similarity
        for rule in (one for one in (*RULES, NONE) if one != str(self.request.policy)):
            ranks, none = Keep(rule).ranks(lengths), rule == NONE
            other = removals(matches.groups, *pairs, ranks, matches.copies, matches.empty, none, matches.directed)
            kept = np.ones(len(items), bool)
            kept[other.rows] = False
            numbers = {"kept": int(kept.sum()), "length": int(lengths[kept].sum())}
            found.append({"keep": rule, **numbers, "removed_here": int((kept & gone).sum())})
        self.log.details["policies"] = found

    def result(self, collection: Collection, matches: VerifiedPairs, removal: Removal, space: Workspace) -> Dedup:
        """Put the result together, and what later runs need if they shall have it."""
        if space.resumed:
            self.log.details["resumed"] = space.resumed
        shingled = collection.shingler.to_dict() if collection.shingler else {"shingle": None}
        about = None
        if self.leaves_state and isinstance(self.source, Source):
            about = {
                "threshold": None if self.earlier else self.request.threshold,
                "complete": self.log.details.get("crowds", {}).get("complete", True),
                "given": [path if is_url(path) else os.path.abspath(path) for path in self.source.given],
                "inputs": self.inputs,
                "source": self.source.state(),
            }
        if isinstance(self.source, Source) and isinstance(collection.items, TextItems):
            self.source.hold_texts(collection.items.texts)
        parameters = {**self.parameters, **shingled, **self.request.resources.used, "spilled_bytes": space.disk}
        return Dedup(collection, matches, removal, self.log, parameters, self.earlier, about)


def _in_memory(collection: Collection) -> bool:
    return not isinstance(collection.items, TextItems) or collection.items.texts.in_memory


def check_unchanged(source: Any, inputs: Mapping[str, list[int]] | None, again: str = " with fresh=True") -> None:
    """Raise if an input file has another size or time than when the run began; `again` says how to run it again."""
    if not inputs or not isinstance(source, Source):
        return
    now = source.identity(content=False) or {}
    before = {name: [size, time, 0] for name, (size, time, _) in inputs.items()}
    for change in changed_files(before, {name: [*facts[:2], 0] for name, facts in now.items()}):
        raise InputError(f"{change}: it changed during the run; leave it alone and run again{again}")


def _items(collection: Collection) -> Items:
    assert collection.items is not None
    return collection.items


def _of_new(removal: Removal, earlier: Against, items: Items, threads: int) -> Removal:
    """Keep the removals of new documents, and find which of them are byte for byte one that was kept earlier."""
    new = removal.since(earlier.count)
    old = np.flatnonzero((new.keepers < earlier.count) & (new.similarity == 1.0))
    if len(old) and isinstance(items, TextItems):
        new.identical[old] |= earlier.same_bytes(new.keepers[old], new.rows[old] - earlier.count, items, threads)
    return new


@contextmanager
def workspace(
    request: DedupRequest, identity: dict[str, Any], files: list[Path], known: bool, log: RunLog
) -> Iterator[Workspace]:
    """Open the workspace of a run; what is done stays there when the run is interrupted.

    known: whether a later run can tell that it has the same inputs.
    """
    spill, out = request.resources.spill, None if request.out is None else Path(request.out)
    if out is None:
        space = Workspace.temporary(spill)
    else:
        Dedup.check_folder(out, files)
        begun = (out / WORK / STEPS).exists()
        space = Workspace.open(out, identity, spill, request.fresh or not known)
        log.notes.extend(space.warnings)
        if begun and not known and not request.fresh:
            log.notes.append(f"{OVER}: only runs of files, with a shingler that has a name, can be resumed")
    try:
        yield space
    except BaseException:
        space.discard()
        raise
    finally:
        if out is None:
            space.finish()
        space.close()
