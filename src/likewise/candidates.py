"""Band keys to candidate pairs (L1): items that share a bucket in at least one band, each pair once.

Each band is sorted and scanned on its own. With all keys in memory a pair is taken from the first band in which it
agrees. With keys on disk each band writes its own sorted run of pairs, and the runs are merged, some rows at a time.

A bucket is *heavy* when writing out the pairs of all buckets of its size would make the work quadratic (P7). Its items
are not paired here; they are returned as crowds, to be compared in a way that suits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints
from likewise.errors import InputError
from likewise.kernels.graph import components
from likewise.kernels.pairs import heavy_buckets, radix_argsort, radix_sort32, scan_band
from likewise.keys import Keys
from likewise.parallel import in_order

PAIRS_AN_ITEM = 10
PAIRS_AT_LEAST = 1_000_000
SORT_BYTES = 32
MERGE_BYTES = 40
BINS = 4096
LOW32 = np.uint64(0xFFFFFFFF)
U32 = np.uint64(32)

Packed = NDArray[np.uint64]
Members = NDArray[np.int32]
Tick = Callable[[int], None]


@dataclass(frozen=True)
class Wanted:
    """Which pairs count: not those of two items below `low`, nor those of two from `high` on."""

    low: int
    high: int


@dataclass
class Candidates:
    """Candidate pairs in portions, left < right, sorted, each once; and the crowds: rows that share heavy buckets.

    `cap` is the size up to which buckets were written out.
    """

    count: int
    crowds: list[Ints]
    cap: int
    portions: Callable[[], Iterator[tuple[Ints, Ints]]] = field(repr=False)
    bins: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)


def candidates(
    keys: Keys,
    threads: int,
    wanted: Wanted | None = None,
    tick: Tick = lambda done: None,
    *,
    folder: Path | None = None,
    sort_bytes: int = 1 << 40,
    merge_bytes: int = 1 << 40,
) -> Candidates:
    """Find the pairs of items whose keys agree in a band. `tick` is told of every band done.

    Keys that are on disk need a `folder` for the runs; `sort_bytes` bounds the memory a thread takes to sort, and
    `merge_bytes` that of a portion.
    """
    n = keys.items
    if n >= 1 << 31:
        raise InputError(f"{n:,} different documents are more than one run can pair (2,147,483,647); split the input")
    wanted = wanted or Wanted(0, n)
    if n < 2:
        return Candidates(0, [], n, lambda: iter(()))
    cap = bucket_cap(keys.column(0), n)
    if keys.matrix is not None:
        return _in_memory(keys, threads, wanted, cap, tick)
    assert folder is not None
    return _on_disk(keys, threads, wanted, cap, tick, folder, sort_bytes, merge_bytes)


def bucket_cap(column: NDArray[np.uint32], n: int) -> int:
    """Return the largest bucket to be written out as pairs, judged by one band; all bands are alike.

    Buckets up to that size give at most ten pairs an item (or a million) in that band, and no single bucket gives more.
    """
    budget = max(PAIRS_AT_LEAST, PAIRS_AN_ITEM * n)
    _, ordered = radix_sort32(column)
    edges = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    sizes = np.diff(np.concatenate([[0], edges, [n]]))
    levels, counts = np.unique(sizes, return_counts=True)
    total = np.cumsum(counts * (levels * (levels - 1) // 2))
    within = levels[total <= budget]
    single = (1 + isqrt(1 + 8 * budget)) // 2
    if len(within) == len(levels):
        return single
    return int(max(2, min(single, within[-1] if len(within) else 2)))


def _in_memory(keys: Keys, threads: int, wanted: Wanted, cap: int, tick: Tick) -> Candidates:
    matrix = keys.matrix
    assert matrix is not None
    nothing = np.zeros(0, np.int32)

    def band_pairs(band: int) -> tuple[Members, Members, Members, Members]:
        members, ordered = radix_sort32(keys.column(band))
        count = scan_band(ordered, members, matrix, band, wanted.low, wanted.high, cap, False, nothing, nothing)
        left, right = np.empty(count, np.int32), np.empty(count, np.int32)
        scan_band(ordered, members, matrix, band, wanted.low, wanted.high, cap, True, left, right)
        return left, right, *_heavy(ordered, members, cap)

    bands = []
    for band in in_order(band_pairs, range(keys.bands), threads):
        bands.append(band)
        tick(1)
    left = np.concatenate([band[0] for band in bands])
    right = np.concatenate([band[1] for band in bands])
    crowds = _crowds(keys.items, [band[2:] for band in bands])
    del bands
    order = pair_order(left, right, keys.items)
    both = left[order].astype(np.int64), right[order].astype(np.int64)
    return Candidates(len(order), crowds, cap, lambda: iter([both]))


def _on_disk(
    keys: Keys,
    threads: int,
    wanted: Wanted,
    cap: int,
    tick: Tick,
    folder: Path,
    sort_bytes: int,
    merge_bytes: int,
) -> Candidates:
    n = keys.items
    parts = max(1, -(-SORT_BYTES * n // max(1, sort_bytes)))
    nothing, no_keys = np.zeros(0, np.int32), np.zeros((0, 0), np.uint32)

    def band_runs(band: int) -> tuple[int, list[Packed], list[tuple[Members, Members]]]:
        column = keys.column(band)
        runs, heavy = [], []
        for part in range(parts):
            members, ordered = _part(column, part, parts)
            count = scan_band(ordered, members, no_keys, 0, wanted.low, wanted.high, cap, False, nothing, nothing)
            left, right = np.empty(count, np.int32), np.empty(count, np.int32)
            scan_band(ordered, members, no_keys, 0, wanted.low, wanted.high, cap, True, left, right)
            packed = (left.astype(np.uint64) << U32) | right.astype(np.uint64)
            packed.sort()
            runs.append(packed)
            heavy.append(_heavy(ordered, members, cap))
        return band, runs, heavy

    heavies: list[tuple[Members, Members]] = []
    bins = np.zeros(BINS, np.int64)
    paths = []
    for band, runs, heavy in in_order(band_runs, range(keys.bands), threads):
        for part, run in enumerate(runs):
            path = folder / f"run-{band:04d}-{part:04d}"
            run.tofile(path)
            paths.append(path)
            bins += np.bincount(((run >> U32) * np.uint64(BINS) // np.uint64(n)).astype(np.int64), minlength=BINS)
        heavies.extend(heavy)
        tick(1)
    return merged(paths, bins, n, _crowds(n, heavies), cap, merge_bytes)


def merged(paths: list[Path], bins: Ints, n: int, crowds: list[Ints], cap: int, merge_bytes: int) -> Candidates:
    """Merge sorted runs of pairs in portions of rows, so that a portion takes at most `merge_bytes`.

    `bins` tells how many pairs the runs have for each 1/4096 of the rows.
    """
    most = max(1, merge_bytes // MERGE_BYTES)
    cuts, held = [0], 0
    for place, count in enumerate(bins.tolist()):
        if held and held + count > most:
            cuts.append(-(-place * n // BINS))
            held = 0
        held += count
    cuts.append(n)

    def portions() -> Iterator[tuple[Ints, Ints]]:
        files = [np.memmap(path, np.uint64, "r") if path.stat().st_size else np.zeros(0, np.uint64) for path in paths]
        for low, high in pairwise(cuts):
            edges = np.array([low, high], np.uint64) << U32
            slices = []
            for run in files:
                start, stop = np.searchsorted(run, edges)
                slices.append(np.array(run[start:stop]))
            pairs = np.unique(np.concatenate(slices)) if slices else np.zeros(0, np.uint64)
            yield (pairs >> U32).astype(np.int64), (pairs & LOW32).astype(np.int64)

    return Candidates(int(bins.sum()), crowds, cap, portions, bins)


def _part(column: NDArray[np.uint32], part: int, parts: int) -> tuple[Members, NDArray[np.uint32]]:
    """Sort the items whose keys lie in one of `parts` equal ranges."""
    if parts == 1:
        members, ordered = radix_sort32(column)
        return members, ordered
    low, high = (part << 32) // parts, ((part + 1) << 32) // parts
    rows = np.flatnonzero((column >= low) & (column < high)).astype(np.int32)
    order, ordered = radix_sort32(column[rows])
    return rows[order], ordered


def _heavy(ordered: NDArray[np.uint32], members: Members, cap: int) -> tuple[Members, Members]:
    """Return the items of heavy buckets, each beside the first item of its bucket."""
    nothing = np.zeros(0, np.int32)
    count = heavy_buckets(ordered, members, cap, False, nothing, nothing)
    first, rest = np.empty(count, np.int32), np.empty(count, np.int32)
    if count:
        heavy_buckets(ordered, members, cap, True, first, rest)
    return first, rest


def _crowds(n: int, heavies: Sequence[tuple[Members, ...]]) -> list[Ints]:
    """Return the rows that are connected through heavy buckets, largest crowd first."""
    first = np.concatenate([heavy[0] for heavy in heavies]).astype(np.int64)
    rest = np.concatenate([heavy[1] for heavy in heavies]).astype(np.int64)
    if not len(first):
        return []
    rows = np.unique(rest)
    labels = components(n, first, rest)[rows]
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(rows[order], cuts), key=lambda crowd: (-len(crowd), int(crowd[0])))


def pair_order(left: NDArray[np.integer], right: NDArray[np.integer], n: int) -> Ints:
    """Return the order that sorts pairs of numbers below n by left, then by right."""
    bits = max(1, int(n - 1).bit_length())
    order: Ints = radix_argsort((left.astype(np.uint64) << np.uint64(bits)) | right.astype(np.uint64), 2 * bits)
    return order
