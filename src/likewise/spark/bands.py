"""Band keys to candidate pairs: buckets meet in one shuffle; those of too many documents never travel.

`buckets` counts. The sizes of the first band's buckets say which are heavy, by the rule of the local engine. A bucket
of so many documents that it would make a task much larger than others is a *giant*; it is counted where its documents
are. Giants are heavy, so nothing is paired in them, and their documents are named to the driver without a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.kernels.graph import components
from likewise.search.candidates import cap_of_sizes
from likewise.search.scored import packed, unpacked
from likewise.spark import steps
from likewise.spark.context import partition_count
from likewise.spark.corpus import Corpus
from likewise.spark.exchange import (
    HELD,
    KIND,
    SCHEMA,
    Outbox,
    addresses,
    collected,
    nothing,
    opened,
    parcel,
    partitions,
    shuffled,
)
from likewise.spark.node import ready
from likewise.spark.rowset import RowSet
from likewise.spark.store import Checkpoints

ENTRY, GIANT, SIZES, PAIR, CROWD, MEMBER, BRIDGE, ITEMS = range(8)
"""Kinds of parcels: a bucket's key or word with rows; buckets that may be giants; sizes of buckets; pairs; rows beside
the lowest one they are connected with; rows beside a giant they are in; two giants with a row in common; documents."""
SHARE = 2
"""A giant has more than one in so many of the entries that a task gets on average."""


@dataclass(frozen=True)
class Bucketing:
    """How the documents of a task are bucketed: which are left out, and where buckets go."""

    skipped: RowSet
    bands: int
    targets: Any
    giants: Hashes
    cap: int
    low: int
    high: int


@dataclass(frozen=True)
class BandCandidates:
    """Candidate pairs of rows, each once, left < right, sorted; and the crowds, largest first, with their rows.

    frame: of a large corpus, the pairs on the cluster instead, as parcels, some of them several times.
    """

    left: Ints
    right: Ints
    crowds: list[Ints]
    items: int
    frame: Any = None


def candidates(
    corpus: Corpus, sketches: Any, skipped: RowSet, bands: int, most: Any, checkpoints: Checkpoints
) -> BandCandidates:  # fmt: skip
    """Pair the documents that share a bucket. `most` returns, for a number of documents, the affordable pairs."""
    session = corpus.session
    parts = partitions(session, len(corpus) * bands)
    targets = addresses(parts)
    keys = sketches.select("rows", "units", "keys")
    low, high = (corpus.split, corpus.split) if corpus.split else (corpus.earlier, 1 << 62)
    no_giants = np.zeros(0, np.uint64)

    def count() -> Any:
        few = partitions(session, len(corpus))
        known = corpus.broadcast(Bucketing(skipped, bands, addresses(few), no_giants, 0, low, high))
        tasks = partition_count(keys)
        least = max(2, len(corpus) * bands // (SHARE * parts * max(1, tasks)))
        sent = keys.mapInArrow(partial(_counted, known=known, least=least), SCHEMA)
        return shuffled(sent, few).mapInArrow(_summed, SCHEMA)

    counted = collected(checkpoints.table("buckets", count))
    items = int(counted.get(ITEMS, nothing())[0].sum())
    if items < 2:
        return BandCandidates(steps.NOTHING, steps.NOTHING, [], items)
    sizes, numbers = counted.get(SIZES, nothing())
    levels, place = np.unique(sizes, return_inverse=True)
    counts = np.bincount(place, weights=numbers.astype(np.float64)).astype(np.int64)
    cap = cap_of_sizes(levels, counts, bands, most(items))
    giants = _giants(*counted.get(GIANT, nothing()), cap)

    def pair() -> Any:
        known = corpus.broadcast(Bucketing(skipped, bands, targets, giants, cap, low, high))
        sent = keys.mapInArrow(partial(_bucketed, known=known), SCHEMA)
        return shuffled(sent, parts).mapInArrow(partial(_paired, known=known), SCHEMA)

    if corpus.large:
        frame = checkpoints.frame("candidates", pair)
        found = collected(checkpoints.kinds("candidates", (CROWD, MEMBER, BRIDGE)))
        pairs = frame.where(f"{KIND} = {PAIR}")
        return BandCandidates(steps.NOTHING, steps.NOTHING, _crowds(found, len(giants)), items, pairs)
    found = collected(checkpoints.table("candidates", pair))
    left, right = found.get(PAIR, nothing())
    crowds = _crowds(found, len(giants))
    return BandCandidates(*distinct_pairs(left, right.view(np.int64)), crowds, items)


def distinct_pairs(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return every pair once, sorted."""
    rows = np.unique(np.concatenate([left, right]))
    a, b = unpacked(np.unique(packed(np.searchsorted(rows, left), np.searchsorted(rows, right))))
    return rows[a], rows[b]


def _chosen(batches: Iterator[Any], plan: Bucketing, most: int) -> Iterator[tuple[Ints, Any]]:
    """Yield the rows and the band keys of a task's documents, about `most` at a time: one for each set, none empty."""
    held: list[tuple[Ints, Any]] = []
    count = 0
    for batch in batches:
        for row, unit, key in zip(*(batch.column(place) for place in range(3)), strict=True):
            numbers = np.frombuffer(row.as_buffer(), np.int64)
            filled = (np.frombuffer(unit.as_buffer(), np.uint64).reshape(-1, 2) != 0).any(axis=1)
            chosen = filled & ~plan.skipped.has(numbers)
            held.append((numbers[chosen], np.frombuffer(key.as_buffer(), np.uint32).reshape(-1, plan.bands)[chosen]))
            count += len(held[-1][0])
            if count >= most:
                yield _joined(held)
                held, count = [], 0
    if count:
        yield _joined(held)


def _joined(held: list[tuple[Ints, Any]]) -> tuple[Ints, Any]:
    return np.concatenate([rows for rows, _ in held]), np.concatenate([keys for _, keys in held])


def _counted(batches: Iterator[Any], known: Any, least: int) -> Iterator[Any]:
    """Count the buckets of a task: those of the first band to find their sizes, large ones to find giants."""
    ready()
    plan = known.value
    for rows, keys in _chosen(batches, plan, 1 << 62):
        target = int(plan.targets[int(rows[0]) % len(plan.targets)])
        yield from parcel(target, ITEMS, np.array([len(rows)]), np.zeros(1, np.uint64))
        for band in range(plan.bands):
            values, counts = np.unique(keys[:, band], return_counts=True)
            words = values.astype(np.uint64) + (np.uint64(band) << steps.BAND)
            if band == 0:
                outbox = Outbox(plan.targets, ENTRY)
                yield from outbox.add(steps.scattered(words, len(plan.targets)), counts, words)
                yield from outbox.sent()
            large = counts >= least
            yield from parcel(target, GIANT, counts[large], words[large])


def _summed(batches: Iterator[Any]) -> Iterator[Any]:
    """Add up the counts of buckets; yield how many there are of each size."""
    found = opened(batches)
    counts, words = found.get(ENTRY, nothing())
    if len(counts):
        _, place = np.unique(words, return_inverse=True)
        sizes = np.bincount(place, weights=counts.astype(np.float64)).astype(np.int64)
        levels, numbers = np.unique(sizes, return_counts=True)
        yield from parcel(0, SIZES, levels, numbers.astype(np.uint64))
    for kind in (GIANT, ITEMS):
        yield from parcel(0, kind, *found.get(kind, nothing()))


def _giants(counts: Ints, words: Hashes, cap: int) -> Hashes:
    """Return the buckets of which more than `cap` documents are known, ascending: they are heavy."""
    different, place = np.unique(words, return_inverse=True)
    total = np.bincount(place, weights=counts.astype(np.float64), minlength=len(different))
    return different[total > cap]


def _bucketed(batches: Iterator[Any], known: Any) -> Iterator[Any]:
    """Send the entries of a task's documents to their buckets; of giants, only name the documents."""
    ready()
    plan = known.value
    outbox = Outbox(plan.targets, ENTRY)
    for rows, keys in _chosen(batches, plan, max(1, HELD // plan.bands)):
        target = int(plan.targets[int(rows[0]) % len(plan.targets)])
        words, owners = steps.bucket_words(keys), np.repeat(rows, plan.bands)
        if len(plan.giants):
            place = np.minimum(np.searchsorted(plan.giants, words), len(plan.giants) - 1)
            giant = plan.giants[place] == words
            yield from _named(owners[giant], place[giant], target)
            words, owners = words[~giant], owners[~giant]
        yield from outbox.add(steps.scattered(words, len(plan.targets)), owners, words)
    yield from outbox.sent()


def _named(members: Ints, giants: Ints, target: int) -> Iterator[Any]:
    """Yield each document of giants beside one of them, and the giants that have a document in common."""
    if not len(members):
        return
    first = np.flatnonzero(np.diff(members, prepend=-1))
    yield from parcel(target, MEMBER, members[first], giants[first].astype(np.uint64))
    beside = np.repeat(giants[first], np.diff(np.append(first, len(giants))))
    bridges = np.unique(np.stack([beside, giants], axis=1), axis=0)
    yield from parcel(target, BRIDGE, bridges[:, 0].astype(np.int64), bridges[:, 1].astype(np.uint64))


def _paired(batches: Iterator[Any], known: Any) -> Iterator[Any]:
    """Pair the documents of the buckets that meet in a task."""
    ready()
    plan = known.value
    found = opened(batches)
    rows, words = found.get(ENTRY, nothing())
    left, right, crowd, label = steps.bucket_pairs(words, rows, plan.cap, plan.low, plan.high)
    yield from parcel(0, PAIR, left, right.view(np.uint64))
    yield from parcel(0, CROWD, crowd, label.view(np.uint64))
    for kind in (MEMBER, BRIDGE):
        yield from parcel(0, kind, *found.get(kind, nothing()))


def _crowds(found: dict[int, tuple[Ints, Hashes]], giants: int) -> list[Ints]:
    """Return the rows that are connected through heavy buckets, largest crowd first."""
    crowd, label = found.get(CROWD, nothing())
    member, giant = found.get(MEMBER, nothing())
    bridges = found.get(BRIDGE, nothing())
    rows = np.unique(np.concatenate([crowd, label.view(np.int64), member]))
    if not len(rows):
        return []
    a = [np.searchsorted(rows, crowd), np.searchsorted(rows, member), bridges[0] + len(rows)]
    b = [
        np.searchsorted(rows, label.view(np.int64)),
        giant.view(np.int64) + len(rows),
        bridges[1].view(np.int64) + len(rows),
    ]
    labels = components(len(rows) + giants, np.concatenate(a), np.concatenate(b))[: len(rows)]
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(rows[order], cuts), key=lambda one: (-len(one), int(one[0])))
