"""`exact.pairs`: lists of tokens or `Sets` in, a table of pairs out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Ints, Sets, check_sets, map_words, to_arrow
from likewise.base.copies import Groups
from likewise.base.memory import free_memory, memory_limit
from likewise.errors import InputError, ParameterError
from likewise.search.exact.bounds import LARGEST, Bounds
from likewise.search.exact.join import FILTERS, Facts, Join
from likewise.search.exact.prefixes import JoinSide, Survey, survey
from likewise.search.expand import row_pairs
from likewise.search.scored import ScoredPairs, Scores, concatenated, pair_order

OWNER = "exact.pairs"
MAP_WORDS = 16
"""The most 64-bit words of a bitmap: every set has one, not only those in a candidate pair."""
PAIR_BYTES = 64
"""Bytes that a pair takes until it is in the table."""


def pairs(
    sets: Any,
    threshold: float,
    index: str = "auto",
    measure: str = "jaccard",
    *,
    other: Any = None,
    bag: bool = False,
    threads: int | None = None,
    memory: str | int | None = None,
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
    memory: the size of the index, such as "1GiB"; a larger one is made in blocks.
    The schema metadata of the table has statistics as JSON under b"likewise": the pairs that each filter let through.

    >>> pairs([["a", "b"], ["b", "c", "a"], ["d"]], 0.6).to_pylist()
    [{'id_a': 0, 'id_b': 1, 'similarity': 0.6666666666666666}]
    """
    started = time.perf_counter()
    bounds = Bounds(measure, threshold, OWNER)
    checks.choice(OWNER, "index", index, ("auto", *FILTERS))
    count = checks.threads(OWNER, threads)
    budget = memory_limit(OWNER, memory)
    here = as_sets(OWNER, sets, count, bag)
    there = None if other is None else as_sets(OWNER, other, count, bag, "other")
    read = time.perf_counter()
    found = join_sets(here, there, bounds, index, count, budget)
    columns = {"id_a": found.left, "id_b": found.right, "similarity": found.similarity}
    table = pa.table({name: to_arrow(column) for name, column in columns.items()})
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
class JoinedPairs:
    """The pairs of rows that reach the threshold, sorted, and the number of pairs that each filter let through."""

    left: Ints
    right: Ints
    similarity: Scores
    counts: dict[str, int]


def survey_of(collections: list[Sets], threads: int) -> Survey:
    """Survey all sets, with bitmaps of a size that suits them."""
    values, rows = sum(len(sets.values) for sets in collections), sum(map(len, collections))
    return survey(collections, min(MAP_WORDS, map_words(values / max(1, rows))), threads)


def join_sets(here: Sets, there: Sets | None, bounds: Bounds, index: str, threads: int, memory: int) -> JoinedPairs:
    """Join the different sets, then write out the pairs of their copies."""
    known = survey_of([here] if there is None else [here, there], threads)
    groups = [Groups.by_digest(digests) for digests in known.digests]
    sides = [
        JoinSide.of(sets, group.first[sets.sizes[group.first] > 0], maps)
        for sets, group, maps in zip([here] if there is None else [here, there], groups, known.maps, strict=True)
    ]
    join = Join(bounds, known.counts, index, threads, memory)
    a, b = sides[0], sides[-1]
    parts, total, most = [], 0, max(1, free_memory() // PAIR_BYTES)
    ga, gb = groups[0], groups[-1]
    for left, right, similarity in join.pairs(a, None if there is None else b):
        left, right = ga.of[a.rows[left]], gb.of[b.rows[right]]
        total += int((ga.sizes[left] * gb.sizes[right]).sum())
        parts.append((left, right, similarity))
        _check_room(total, most)
    left, right, similarity = _with_copies(parts, here, there, groups, bounds)
    total = int((ga.sizes[left] * gb.sizes[right]).sum())
    _check_room(total, most)
    left, right, similarity = row_pairs(
        (left, right, similarity), ga, None if there is None else gb, symmetric=bounds.symmetric
    )
    order = pair_order(left, right, len(ga.of), len(gb.of))
    left, right, similarity = left[order], right[order], similarity[order]
    return JoinedPairs(left, right, similarity, _counts(there, bounds, index, join.facts, groups, len(left)))


def _check_room(total: int, most: int) -> None:
    if total > most:
        raise InputError(
            f"more than {total:,} pairs are similar, too many for the available memory; raise the threshold, or use"
            " likewise.pairs or likewise.dedup, which list copies once"
        )


def _with_copies(
    parts: list[ScoredPairs], here: Sets, there: Sets | None, groups: list[Groups], bounds: Bounds
) -> ScoredPairs:
    """Add the pairs within a group of copies (as pairs of a group with itself), and those of empty sets."""
    first, last = groups[0], groups[-1]
    if there is None:
        alike = np.flatnonzero(first.sizes > 1)
        parts = [*parts, (alike, alike, np.ones(len(alike)))]
    sizes = here.sizes[first.first], (here if there is None else there).sizes[last.first]
    empty = [np.flatnonzero(size == 0) for size in sizes]
    if bounds.symmetric and there is not None and len(empty[0]) and len(empty[1]):
        parts = [*parts, (empty[0], empty[1], np.ones(1))]
    if not bounds.symmetric and len(empty[0]):
        others = np.arange(len(last)) if there is not None else np.delete(np.arange(len(last)), empty[0])
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
