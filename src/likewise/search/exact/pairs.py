"""`exact.pairs`: lists of tokens or `Sets` in, a table of pairs out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Ints, Sets, to_arrow
from likewise.base.copies import Groups
from likewise.base.memory import free_memory, parse_size
from likewise.errors import InputError, ParameterError
from likewise.kernels.pairs import radix_argsort, spell_all
from likewise.search.exact.bounds import LARGEST, Bounds
from likewise.search.exact.join import FILTERS, Facts, Found, Join
from likewise.search.exact.prefixes import Side, Survey, survey
from likewise.search.verify import map_words

OWNER = "exact.pairs"
MAP_WORDS = 16
"""The most 64-bit words of a bitmap: every set has one, not only those in a candidate pair."""
PAIR_BYTES = 64
"""Bytes that a pair takes until it stands in the table."""


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
    """Return an Arrow table (i, j, similarity) of all pairs at or above the threshold, sorted; none is missed.

    sets: lists of tokens (or sets, tuples), an Arrow column of lists, or `Sets`. i and j are row numbers, i < j.
    other: join with this collection instead; then i is a row of `sets` and j one of `other`.
    measure: "jaccard" |a ∩ b| / |a ∪ b|, "dice" 2|a ∩ b| / (|a| + |b|), "cosine" |a ∩ b| / √(|a|·|b|), "overlap"
        |a ∩ b| / min(|a|, |b|), or "containment" |a ∩ b| / |a| of set i in set j; there i may be greater than j.
        Two empty sets are alike (1); an empty set is contained in every set; beyond that it is like no other (0).
    index: which pairs are compared: "length", "prefix", "position" or "suffix" take the filter of that name of
        the chapter (Sections 3.9.3 to 3.9.6) and "auto" all of them and more. The answer is the same.
    bag: tokens count as often as they stand in a list: numbered repetitions, so that |a ∩ b| is Σ min of the counts.
    memory: how much the index may take, such as "1GiB"; it is made in blocks when it is larger.
    The table's schema metadata key b"likewise" holds as JSON how many pairs each filter let through.
    """
    started = time.perf_counter()
    bounds = Bounds(measure, threshold, OWNER)
    if index != "auto" and index not in FILTERS:
        raise ParameterError.of(OWNER, "index", "'auto', 'length', 'prefix', 'position' or 'suffix'", index)
    count = checks.threads(OWNER, threads)
    budget = free_memory() // 2 if memory is None else parse_size(OWNER, "memory", memory)
    here = as_sets(sets, count, bag)
    there = None if other is None else as_sets(other, count, bag, "other")
    read = time.perf_counter()
    found = join_sets(here, there, bounds, index, count, budget)
    table = pa.table({"i": to_arrow(found.left), "j": to_arrow(found.right), "similarity": to_arrow(found.similarity)})
    stats = {
        "measure": measure,
        "threshold": bounds.threshold,
        "index": index,
        "counts": {"sets": len(here), **({} if there is None else {"other": len(there)}), **found.counts},
        "seconds": {"read": read - started, "join": time.perf_counter() - read},
    }
    return table.replace_schema_metadata({"likewise": json.dumps(stats)})


def as_sets(sets: Any, threads: int, bag: bool = False, name: str = "sets") -> Sets:
    """Return what the user gave as `Sets`, checked."""
    if isinstance(sets, Sets):
        if bag:
            raise ParameterError(f"'{name}' are Sets: make them of bags with Sets.from_lists(..., bag=True)")
        offsets = sets.offsets
        if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(sets.values) or (np.diff(offsets) < 0).any():
            raise ParameterError(f"'{name}' are broken Sets: offsets must ascend from 0 to the number of values")
        values = sets.values
        if values.dtype.kind not in "iu":
            raise ParameterError(f"'{name}' are Sets of {values.dtype}: values must be whole numbers")
        plain = np.ascontiguousarray(values if values.dtype == np.uint64 else values.astype(np.int64).view(np.uint64))
        result = Sets(plain, np.ascontiguousarray(offsets, np.int64))
    else:
        if isinstance(sets, dict) or not isinstance(sets, Iterable | pa.Array | pa.ChunkedArray):
            raise ParameterError.of(OWNER, name, "a list of lists of tokens, an Arrow list column or Sets", sets)
        result = Sets.from_lists(sets, bag=bag, threads=threads)
    if len(result) and int(result.sizes.max()) > LARGEST:
        raise InputError(f"set {int(result.sizes.argmax())} of '{name}' has more than {LARGEST:,} elements")
    return result


@dataclass(frozen=True)
class Pairs:
    """The pairs of rows that reach the threshold, sorted, and how many pairs each filter let through."""

    left: Ints
    right: Ints
    similarity: NDArray[np.float64]
    counts: dict[str, int]


def survey_of(collections: list[Sets], threads: int) -> Survey:
    """Look at all sets once."""
    values, rows = sum(len(sets.values) for sets in collections), sum(map(len, collections))
    return survey(collections, min(MAP_WORDS, map_words(values / max(1, rows))), threads)


def join_sets(here: Sets, there: Sets | None, bounds: Bounds, index: str, threads: int, memory: int) -> Pairs:
    """Join copies as one, and write the pairs of copies out at the end."""
    known = survey_of([here] if there is None else [here, there], threads)
    groups = [Groups.by_digest(digests) for digests in known.digests]
    sides = [
        Side.of(sets, group.first[sets.sizes[group.first] > 0], maps)
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
    left, right, similarity = _spelled(left, right, similarity, groups, there is None, bounds.symmetric)
    return Pairs(left, right, similarity, _counts(here, there, bounds, index, join.facts, groups, len(left)))


def _check_room(total: int, most: int) -> None:
    if total > most:
        raise InputError(
            f"more than {total:,} pairs are similar, too many for the memory there is; raise the threshold, or use"
            " likewise.pairs or likewise.dedup, which list copies once"
        )


def _with_copies(parts: list[Found], here: Sets, there: Sets | None, groups: list[Groups], bounds: Bounds) -> Found:
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
    left = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in parts)])
    right = np.concatenate([np.zeros(0, np.int64), *(part[1] for part in parts)])
    return left, right, np.concatenate([np.zeros(0), *(part[2] for part in parts)])


def _spelled(
    left: Ints, right: Ints, similarity: NDArray[np.float64], groups: list[Groups], within: bool, symmetric: bool
) -> Found:
    """Write pairs of groups out as pairs of rows, sorted."""
    a, b = groups[0], groups[-1]
    if len(a) < len(a.of) or len(b) < len(b.of):
        total = int((a.sizes[left] * b.sizes[right]).sum())
        rows, others, scores = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total)
        out = within, symmetric, rows, others, scores
        count = spell_all(left, right, similarity, a.members, a.offsets, b.members, b.offsets, *out)
        left, right, similarity = rows[:count], others[:count], scores[:count]
    else:
        left, right = a.first[left], b.first[right]
    if within and symmetric:
        left, right = np.minimum(left, right), np.maximum(left, right)
    bits = max(1, len(b.of) - 1).bit_length()
    key = (left.astype(np.uint64) << np.uint64(bits)) | right.astype(np.uint64)
    order = radix_argsort(key, bits + max(1, len(a.of) - 1).bit_length())
    return left[order], right[order], similarity[order]


def _counts(
    here: Sets, there: Sets | None, bounds: Bounds, index: str, facts: Facts, groups: list[Groups], found: int
) -> dict[str, int]:
    """Say how many pairs there were after each filter."""
    n = len(groups[0])
    every = n * (n - 1) // (2 if bounds.symmetric else 1) if there is None else n * len(groups[1])
    counts = {"different": n, "all_pairs": every, "length": facts.length}
    if index == "auto":
        counts |= {"entries": facts.entries, "suffix": facts.position, "bitmap": facts.bitmap}
    elif index != "length":
        counts |= {"entries": facts.entries, index: facts.bitmap}
    return {**counts, "compared": facts.bitmap, "pairs": found}
