"""`exact.pairs`: lists of tokens or `Sets` in, a table of pairs out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Ints, Sets, check_sets, map_words
from likewise.base.copies import Groups
from likewise.base.memory import memory_limit
from likewise.errors import InputError, ParameterError
from likewise.io.workspace import Workspace
from likewise.search.exact.bounds import FILTERS, LARGEST, Bounds
from likewise.search.exact.join import Facts, Join
from likewise.search.exact.listing import BestPartners, HeldPairs, Listing, PairList
from likewise.search.exact.prefixes import JoinSide, Survey, survey
from likewise.search.expand import nearest_rows
from likewise.search.scored import ScoredPairs, concatenated

OWNER = "exact.pairs"
MAP_WORDS = 16
"""The most 64-bit words of a bitmap: every set has one, not only those in a candidate pair."""
SHARES = 4
"""The index gets a quarter of the memory, and the pairs another; threads and intermediate results have the rest."""


def pairs(
    sets: Any,
    threshold: float,
    index: str = "auto",
    measure: str = "jaccard",
    *,
    other: Any = None,
    k: int | None = None,
    bag: bool = False,
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
) -> Any:
    """Return an Arrow table (id_a, id_b, similarity) of all pairs at or above the threshold, sorted; none is missed.

    sets: lists of tokens (or sets, tuples), an Arrow column of lists, or `Sets`. The ids are row numbers, id_a < id_b.
    other: join with this collection instead; then id_a is a row of `sets` and id_b a row of `other`.
    measure: "jaccard" |a ∩ b| / |a ∪ b|, "dice" 2|a ∩ b| / (|a| + |b|), "cosine" |a ∩ b| / √(|a|·|b|), "overlap"
        |a ∩ b| / min(|a|, |b|), or "containment" |a ∩ b| / |a| of set a in set b; there id_a may exceed id_b.
        Two empty sets have similarity 1; an empty set is contained in every set; all its other similarities are 0.
    index: which pairs are verified. "length", "prefix", "position" and "suffix" use the filter of that name (MMDS
        §3.9.3 to §3.9.6), "auto" all of them and more. The answer is the same.
    bag: repeated tokens count: repetitions are numbered, so that |a ∩ b| is the sum of the smaller counts. A mapping,
        such as a `Counter`, is then a bag of elements with their counts.
    k: only the k most similar partners of each set of `sets`, best first (a pair within one collection is then listed
        from both sides); memory is needed for k partners of each, not for all pairs.
    memory: how much to use, such as "1GiB"; a larger index is made in blocks, and more pairs are kept in a temporary
        file (in the folder `spill`), to which the columns of the table are mapped.
    The schema metadata of the table has statistics as JSON under b"likewise": the pairs that each filter let through.

    >>> pairs([["a", "b"], ["b", "c", "a"], ["d"]], 0.6).to_pylist()
    [{'id_a': 0, 'id_b': 1, 'similarity': 0.6666666666666666}]
    """
    started = time.perf_counter()
    bounds = Bounds(measure, threshold, OWNER)
    checks.choice(OWNER, "index", index, ("auto", *FILTERS))
    count = checks.threads(OWNER, threads)
    budget = memory_limit(OWNER, memory)
    if k is not None:
        checks.whole(OWNER, "k", k)
    here = as_sets(OWNER, sets, count, bag)
    there = None if other is None else as_sets(OWNER, other, count, bag, "other")
    read = time.perf_counter()
    space = Workspace.temporary(Path(spill) if spill is not None else None)
    try:
        found = join_sets(here, there, JoinTask(bounds, count, budget, index, k), space)
        table = found.pairs.table()
    finally:
        space.finish()
    stats = {
        "measure": measure,
        "threshold": bounds.threshold,
        "index": index,
        "counts": {"sets": len(here), **({} if there is None else {"other": len(there)}), **found.counts},
        "seconds": {"read": read - started, "join": time.perf_counter() - read},
    }
    return table.replace_schema_metadata({"likewise": json.dumps(stats)})


def as_sets(owner: str, sets: Any, threads: int, bag: bool = False, name: str = "sets") -> Sets:
    """Return what the user gave as `Sets`, checked; `owner` is the function the user called."""
    checks.flag(owner, "bag", bag)
    if isinstance(sets, Sets):
        if bag:
            raise ParameterError(
                f"The 'bag' parameter of {owner} needs lists, and '{name}' are Sets; use Sets.from_lists(bag=True)."
            )
        check_sets(owner, name, sets)
        values, offsets = sets.values, sets.offsets
        plain = np.ascontiguousarray(values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64))
        result = Sets(plain, np.ascontiguousarray(offsets, np.int64))
    else:
        if isinstance(sets, Mapping | str | bytes) or not isinstance(sets, Iterable | pa.Array | pa.ChunkedArray):
            raise ParameterError.of(owner, name, "a list of lists of tokens, an Arrow list column or Sets", sets)
        result = Sets.from_lists(sets, bag=bag, threads=threads)
    if len(result) and int(result.sizes.max()) > LARGEST:
        raise InputError(f"set {int(result.sizes.argmax())} of '{name}' has more than {LARGEST:,} elements")
    return result


@dataclass(frozen=True)
class JoinTask:
    """What to join for, and with what: the bounds, threads and bytes of memory, filters, and k if only k are wanted."""

    bounds: Bounds
    threads: int
    memory: int
    index: str = "auto"
    k: int | None = None


@dataclass(frozen=True)
class JoinedPairs:
    """The pairs of rows that reach the threshold, and how many pairs each filter let through.

    Sorted, or with k by the row on the left, the most similar first. `groups`: how many different sets there are.
    """

    pairs: PairList
    counts: dict[str, int]
    groups: int


def survey_of(collections: list[Sets], threads: int) -> Survey:
    """Survey all sets, with bitmaps of a size that suits them."""
    values, rows = sum(len(sets.values) for sets in collections), sum(map(len, collections))
    return survey(collections, min(MAP_WORDS, map_words(values / max(1, rows))), threads)


def join_sets(
    here: Sets, there: Sets | None, task: JoinTask, space: Workspace, tick: Callable[[int], None] = lambda done: None
) -> JoinedPairs:
    """Join the different sets, and write out the pairs of their copies.

    `tick` is called with numbers of sets; they add up to the number of all sets.
    """
    known = survey_of([here] if there is None else [here, there], task.threads)
    groups = [Groups.by_digest(digests) for digests in known.digests]
    sides = [
        JoinSide.of(sets, group.first[sets.sizes[group.first] > 0], maps)
        for sets, group, maps in zip([here] if there is None else [here, there], groups, known.maps, strict=True)
    ]
    del known.maps[:]
    tick(sum(len(group.of) for group in groups) - sum(map(len, sides)))
    join = Join(task.bounds, known.counts, task.index, task.threads, task.memory // SHARES, tick=tick)
    more = _with_copies(here, there, groups, task)
    found = (_all if task.k is None else _best)(join, sides, groups, more, task, space)
    counts = _counts(there, task.bounds, task.index, join.facts, groups, len(found))
    return JoinedPairs(found, counts, sum(map(len, groups)))


def _joined(join: Join, sides: list[JoinSide], groups: list[Groups]) -> Iterator[tuple[ScoredPairs, Ints, Ints]]:
    """Yield similar pairs of sets by their numbers in the sides, and the groups of both."""
    of = [group.of[side.rows] for group, side in zip(groups, sides, strict=True)]
    for pairs in join.pairs(sides[0], sides[1] if len(sides) == 2 else None):
        yield pairs, of[0][pairs[0]], of[-1][pairs[1]]


def _all(
    join: Join, sides: list[JoinSide], groups: list[Groups], more: ScoredPairs, task: JoinTask, space: Workspace
) -> PairList:
    """List all pairs of rows."""
    here, there = groups[0], groups[1] if len(groups) == 2 else None
    listing = Listing(len(here.of), len(groups[-1].of), task.memory // SHARES, lambda: _folder(space))
    listing.add_groups(more, here, there, task.bounds.symmetric)
    for (_, _, similarity), left, right in _joined(join, sides, groups):
        listing.add_groups((left, right, similarity), here, there, task.bounds.symmetric)
    return listing.finish()


def _best(
    join: Join, sides: list[JoinSide], groups: list[Groups], more: ScoredPairs, task: JoinTask, space: Workspace
) -> PairList:
    """List the k best pairs of every row; pairs that cannot be among them are left out early."""
    across = len(groups) == 2
    both = task.bounds.symmetric and not across
    k = min(task.k or 1, max(1, len(groups[-1])))
    best = BestPartners(len(sides[0]), k, task.memory // SHARES, lambda: _folder(space))
    join.best, join.floors = k, (best.floors, best.floors if both else np.full(len(sides[-1]), np.inf))
    for (a, b, similarity), left, right in _joined(join, sides, groups):
        best.offer(a, right, similarity)
        if both:
            best.offer(b, left, similarity)
    numbers, partners, similarity = best.pairs()
    left, right, similarity = concatenated([more, (groups[0].of[sides[0].rows[numbers]], partners, similarity)])
    every = groups[0]
    if across:
        every = Groups.by_label(np.concatenate([every.of, groups[1].of + len(every)]))
        right = right + len(groups[0])
    rows, others, similarity = nearest_rows(
        every, left, right, similarity, task.k or 1, len(groups[0]), across=across, same=1.0
    )
    return HeldPairs(rows, others - (len(groups[0].of) if across else 0), similarity)


def _folder(space: Workspace) -> Path:
    place = space.large / "joined"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _with_copies(here: Sets, there: Sets | None, groups: list[Groups], task: JoinTask) -> ScoredPairs:
    """Return the pairs of groups that the join does not find: those of empty sets, and of a group with itself.

    The k best of a row find copies by themselves, and need no more than k partners of an empty set.
    """
    parts: list[ScoredPairs] = []
    first, last = groups[0], groups[-1]
    if there is None and task.k is None:
        alike = np.flatnonzero(first.sizes > 1)
        parts = [(alike, alike, np.ones(len(alike)))]
    sizes = here.sizes[first.first], (here if there is None else there).sizes[last.first]
    empty = [np.flatnonzero(size == 0) for size in sizes]
    symmetric = task.bounds.symmetric
    if symmetric and there is not None and len(empty[0]) and len(empty[1]):
        parts = [*parts, (empty[0], empty[1], np.ones(1))]
    if not symmetric and len(empty[0]):
        others = np.arange(len(last)) if there is not None else np.delete(np.arange(len(last)), empty[0])
        others = others[: task.k]
        parts = [*parts, (np.repeat(empty[0], len(others)), others, np.ones(len(others)))]
    return concatenated(parts)


def _counts(
    there: Sets | None, bounds: Bounds, index: str, facts: Facts, groups: list[Groups], found: int
) -> dict[str, int]:
    """Return the number of pairs after each filter."""
    n = len(groups[0])
    every = n * (n - 1) // (2 if bounds.symmetric else 1) if there is None else n * len(groups[1])
    counts = {"different": n, "all_pairs": every, "length": facts.length}
    if index == "auto":
        counts |= {"entries": facts.entries, "suffix": facts.position, "bitmap": facts.bitmap}
    elif index != "length":
        counts |= {"entries": facts.entries, index: facts.bitmap}
    return {**counts, "compared": facts.bitmap, "pairs": found}
