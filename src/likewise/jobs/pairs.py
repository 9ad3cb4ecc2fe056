"""`pairs`: all similar pairs of documents, sets or vectors, within one collection or across two."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, to_arrow
from likewise.base.runlog import RunLog, run_json
from likewise.errors import InputError, ParameterError
from likewise.io.workspace import Workspace
from likewise.jobs.explain.traces import SetTrace, VectorTrace
from likewise.jobs.inputs import SearchRequest, check_distance
from likewise.jobs.result import Pairs
from likewise.jobs.rows import Rows, estimate_table, pair_table
from likewise.jobs.settings import HASHING, Given
from likewise.jobs.vectors import VectorSettings, aimed, distance_table, read_vectors, settings_of
from likewise.search import plan
from likewise.search.estimate import standard_errors
from likewise.search.exact.bounds import MEASURES as SET_MEASURES
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.explain import explain as explain_filters
from likewise.search.exact.listing import HeldPairs, PairList, pairs_below
from likewise.search.exact.pairs import JoinTask, join_sets
from likewise.search.expand import listed_pairs, nearest_rows
from likewise.search.items import Items
from likewise.search.load import Collection, collect, joined
from likewise.search.local import LocalExecutor
from likewise.search.matches import Sides, VerifiedPairs
from likewise.search.scored import Scores, no_pairs
from likewise.search.vectors.pairs import joined as joined_vectors
from likewise.search.vectors.spaces import SPACES
from likewise.shingle import Shingler

OWNER = "pairs"


@dataclass(frozen=True, kw_only=True)
class PairsRequest(SearchRequest):
    """What `pairs` is asked for; see there."""

    owner: str = OWNER
    other: Any = None
    within: float | None = None
    below: float | None = None
    beyond: float | None = None
    k: int | None = None
    vector: str = "vector"
    explain: bool = False

    def __post_init__(self) -> None:
        checks.choice(OWNER, "measure", self.measure, (*SET_MEASURES, *SPACES))
        if self.k is not None:
            checks.whole(OWNER, "k", self.k)
        super().__post_init__()

    @property
    def sources(self) -> list[Any]:
        """One collection or two."""
        return [self.source] if self.other is None else [self.source, self.other]

    @property
    def only_local(self) -> Given:
        """Also what the filters of an exact join leave."""
        return {**super().only_local, **self.given("explain")}

    @property
    def exact(self) -> bool:
        """Also if its filters are to be explained."""
        return self.explain or super().exact

    @property
    def of_vectors(self) -> bool:
        """Whether vectors are compared."""
        return self.measure in SPACES

    def check_sets(self) -> None:
        """Raise if what was given has no effect on sets, or if hashing is asked for where it cannot serve."""
        check_distance(self.source)
        distances = self.given("within", "beyond", "vector")
        checks.unused(OWNER, distances, f"with measure={self.measure!r}, which compares sets")
        if self.below is not None:
            least = self.threshold
            rule = f"above the threshold, {least:g}, and at most 1"
            checks.number(OWNER, "below", self.below, least, 1, open_left=True, rule=rule)
        if self.exact:
            why = "explain=True" if self.measure == "jaccard" else f"measure={self.measure!r}"
            if self.method == "lsh":
                raise ParameterError.of(OWNER, "method", f"'auto' or 'exact' with {why}", self.method)
            checks.unused(OWNER, self.given(*HASHING), f"with {why}, which is an exact search")

    @property
    def vector_settings(self) -> VectorSettings:
        """The settings of a search for vectors; raise if one is missing, or given and has no effect."""
        return settings_of(self, self.given("shingle", "threshold", *HASHING[1:], "ignore_common", "explain", "below"))

    def reported(self, shingler: Shingler | None) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        return {"measure": self.measure, **super().reported(shingler), "below": self.below, "k": self.k}


def pairs(request: PairsRequest) -> Pairs:
    """Do what was asked for in this process."""
    log = RunLog.of(request.progress)
    if request.of_vectors:
        return _vector_pairs(request, log)
    request.check_sets()
    space = Workspace.temporary(request.resources.spill)
    try:
        parts = _read(request, space, log)
        whole = _whole(parts)
        found = _found(request, whole, space, log)
    finally:
        space.finish()
    log.counts["pairs"] = len(found)
    parameters = {**request.reported(parts[0].shingler), **request.resources.used}
    result = Pairs(named_pairs(found, parts[0].name, parts[-1].name), run_json(OWNER, parameters, parts, log))
    result.traced(SetTrace.of(parts, whole.common))
    return result


def named_pairs(found: PairList, name_a: Callable[[Ints], Any], name_b: Callable[[Ints], Any]) -> Any:
    """Return the table of the pairs with the ids of their items; of pairs in a file, as rows made when needed."""
    if isinstance(found, EstimatedPairs):
        return estimate_table(name_a(found.left), name_b(found.right), found.similarity, found.error)
    if isinstance(found, HeldPairs):
        return pair_table(name_a(found.left), name_b(found.right), found.similarity)
    return Rows(
        len(found),
        {
            "id_a": lambda part: name_a(found.part(part)[0]),
            "id_b": lambda part: name_b(found.part(part)[1]),
            "similarity": lambda part: to_arrow(found.part(part)[2]),
        },
    )


def _read(request: PairsRequest, space: Workspace, log: RunLog) -> list[Collection]:
    """Read one collection or two; the second is shingled like the first."""
    options, resources, shingle, inputs = request.options, request.resources, request.shingle, request.opened()
    limit = resources.budget.texts // len(inputs)
    parts: list[Collection] = []
    for number, source in enumerate(inputs):
        step = "read-other" if number else "read"
        parts.append(collect(source, options, shingle, log, resources.threads, space, limit, step))
        shingle = parts[0].shingler or shingle
    return parts


@dataclass(frozen=True)
class EstimatedPairs(HeldPairs):
    """Pairs whose similarity is estimated, with the standard error of each; 0 for equal sets."""

    error: Scores


class WholeItems:
    """The items of one collection or two, end to end; the second begins at row `split`. common: shingles left out."""

    def __init__(self, items: Items, split: int | None = None) -> None:
        self.across = split is not None
        self.split = split or 0
        self.items = items
        self.sides = Sides(self.split, across=True) if self.across else None
        self.one_sided = self.across and not 0 < self.split < len(self.items)
        self.common: Hashes | None = None

    def sets(self, items: Items, threads: int, log: RunLog) -> list[Sets]:
        """Return the sets of each collection."""
        with log.stage("sets", len(items)) as tick:
            every = items.sets(np.arange(len(items)), threads)
            tick(len(items))
        if not self.across:
            return [every]
        cut = every.offsets[self.split]
        here = Sets(every.values[:cut], every.offsets[: self.split + 1])
        return [here, Sets(every.values[cut:], every.offsets[self.split :] - cut)]


def _whole(parts: list[Collection]) -> WholeItems:
    items = [part.items for part in parts if part.items is not None]
    return WholeItems(joined(*items), parts[0].rows) if len(parts) == 2 else WholeItems(items[0])


def _found(request: PairsRequest, whole: WholeItems, space: Workspace, log: RunLog) -> PairList:
    """Search in the way that is asked for or cheaper; by another measure than Jaccard similarity, by an exact join."""
    k, below, jaccard = request.k, request.below, request.measure == "jaccard"
    if whole.one_sided:
        nothing = no_pairs()
        return EstimatedPairs(*nothing, np.zeros(0)) if request.estimate else HeldPairs(*nothing)
    search = request.search(request.resources)
    executor = LocalExecutor(search, whole.items, log, space, whole.sides)
    tuning = plan.prepare(executor)
    whole.common = executor.common
    request.note_method(log)
    if not jaccard or (k is not None and below is None and tuning.banding is None):
        return joined_pairs(request, whole, executor.items, space, log)
    matches = plan.find(executor, tuning)
    if request.explain:
        _explain(request, whole.sets(executor.items, request.resources.threads, log), log)
    return _listed(request, whole, matches, log)


def _listed(request: PairsRequest, whole: WholeItems, matches: VerifiedPairs, log: RunLog) -> PairList:
    """List the pairs of rows: all of them, or the k best of each row. Copies are pairs unless `below` is given."""
    k, below = request.k, request.below
    if below is not None:
        kept = matches.similarity < below
        left, right, similarity = matches.left[kept], matches.right[kept], matches.similarity[kept]
        matches = replace(matches, left=left, right=right, similarity=similarity)
    copies = not whole.across and below is None
    if k is None:
        left, right, similarity, abridged = listed_pairs(matches, within=copies)
        if abridged:
            log.details["abridged"] = abridged
    else:
        here = int(np.searchsorted(matches.groups.first, whole.split)) if whole.across else len(matches.groups)
        left, right, similarity = nearest_rows(
            matches.groups, matches.left, matches.right, matches.similarity, k, here,
            across=not copies, same=1.0, both=not whole.across,
        )  # fmt: skip
    if request.estimate:
        errors = standard_errors(similarity, log.details["estimate"]["slots"])
        error = np.where(matches.same_sets(left, right), 0.0, errors)
        return EstimatedPairs(left, right - whole.split, similarity, error)
    return HeldPairs(left, right - whole.split, similarity)


def joined_pairs(request: PairsRequest, whole: WholeItems, items: Items, space: Workspace, log: RunLog) -> PairList:
    """Join the sets. Pairs that do not fit in memory are in files; with k, never more than k of each item are kept."""
    resources, k, below = request.resources, request.k, request.below
    sets = whole.sets(items, resources.threads, log)
    if request.explain:
        _explain(request, sets, log)
    bounds = Bounds(request.measure, request.threshold, OWNER)
    task = JoinTask(bounds, resources.threads, resources.budget.total, k=k if below is None else None)
    with log.stage("join", len(whole.items)) as tick:
        found = join_sets(sets[0], sets[1] if whole.across else None, task, space, tick)
    log.counts["groups"] = found.groups
    log.counts["candidates"] = found.counts["compared"]
    log.counts["verified"] = found.counts["pairs"]
    log.details["filters"] = {name: found.counts[name] for name in ("length", "suffix", "bitmap")}
    log.details["predicted_recall"] = 1.0
    both = not whole.across and bounds.symmetric
    return found.pairs if below is None else pairs_below(found.pairs, below, k, both)


def _explain(request: PairsRequest, sets: list[Sets], log: RunLog) -> None:
    """Count the pairs that each filter of the exact join leaves."""
    if not all(map(len, sets)):
        raise InputError("nothing to explain: the input is empty")
    other = sets[1] if len(sets) == 2 else None
    threshold, threads = request.threshold, request.resources.threads
    with log.stage("explain"):
        table = explain_filters(sets[0], threshold, request.measure, other=other, threads=threads)
    log.details["explained"] = table.to_pylist()
    log.details["explained_sets"] = json.loads(table.schema.metadata[b"likewise"])


def _vector_pairs(request: PairsRequest, log: RunLog) -> Pairs:
    """Find the pairs of vectors within a distance."""
    settings, resources, across = request.vector_settings, request.resources, request.other is not None
    parts, space, split = read_vectors(request.source, request.other, settings, resources, log)
    aim = aimed(settings, resources, space)
    with threadpool_limits(1, "blas"):
        left, right, distance = joined_vectors(space, split, across, aim, log, settings.k, settings.beyond)
    log.counts["pairs"] = len(left)
    parameters = {**settings.to_dict(), "within": aim.within, **request.resources.used}
    found = Pairs(distance_table(parts, split, left, right, distance), run_json(OWNER, parameters, parts, log))
    found.traced(VectorTrace(tuple(parts)))
    return found
