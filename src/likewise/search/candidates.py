"""Band keys to candidate pairs (MMDS §3.4.1): items that share a bucket in at least one band, each pair once.

Each band is sorted and scanned on its own. With all keys in memory, a pair is taken from the first band in which it
agrees. With keys on disk, each band writes a sorted run of pairs, and the runs are merged, some rows at a time.

A bucket is *heavy* if writing out the pairs of all buckets of its size would make the work quadratic. Its items are not
paired here; they are returned as crowds, which crowds/ compares without listing all their pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.errors import InputError
from likewise.io.disk import write_array
from likewise.kernels.graph import components
from likewise.kernels.hashing import U32
from likewise.kernels.pairs import heavy_buckets, scan_band
from likewise.kernels.sorting import radix_sort32
from likewise.search.band_keys import Keys
from likewise.search.matches import Sides
from likewise.search.scored import packed, pair_order, unpacked

PAIRS_AN_ITEM = 50
PAIRS_AT_LEAST = 2_000_000
"""Candidate pairs that are always affordable: two million, and fifty per item. Beyond them buckets are heavy."""
SORT_BYTES = 32
"""Memory to sort the keys of a band, per item."""
MERGE_BYTES = 40
"""Memory to merge runs of pairs, per pair."""
BINS = 4096
"""Ranges of rows in which pairs are counted, so that portions of bounded size can be merged."""

Packed = NDArray[np.uint64]
Members = NDArray[np.int32]


@dataclass(frozen=True)
class Wanted:
    """Which pairs count: not those of two items below `low`, nor those of two from `high` on."""

    low: int
    high: int


def wanted_pairs(first: Ints, sides: Sides | None) -> Wanted:
    """Return which pairs of groups count; `first` is the first row of each."""
    if sides is None:
        return Wanted(0, len(first))
    split = int(np.searchsorted(first, sides.split))
    return Wanted(split, split if sides.across else len(first))


@dataclass
class CandidatePairs:
    """Candidate pairs in portions, left < right, sorted, each once; and the crowds: rows that share heavy buckets.

    Buckets of up to `cap` items were written out as pairs. A portion on disk has the rows between two `cuts`.
    """

    count: int
    crowds: list[Ints]
    cap: int
    portions: Callable[[], Iterator[tuple[Ints, Ints]]] = field(repr=False)
    cuts: list[int] = field(default_factory=list)
    bins: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)


def candidates(
    keys: Keys,
    threads: int,
    wanted: Wanted | None = None,
    tick: Tick = lambda done: None,
    *,
    folder: Path | None = None,
    sort_bytes: int = 1 << 60,
    merge_bytes: int = 1 << 60,
    most: int | None = None,
) -> CandidatePairs:
    """Find the pairs of items whose keys agree in a band; `tick` is called after every band.

    most: the number of pairs beyond which buckets are heavy, by default `most_candidates`. Without a folder everything
    is done in memory. With one, each band writes its pairs there; `sort_bytes` bounds the memory in which a thread
    sorts, and `merge_bytes` the memory of a portion.
    """
    if folder is None:
        found = few_candidates(keys, threads, wanted, tick, 1 << 60, most)
        assert found is not None
        return found
    wanted = _checked(keys, wanted)
    if keys.items < 2:
        return _none(keys.items)
    cap = bucket_cap(keys.column(0), keys.items, keys.bands, most)
    return _on_disk(keys, threads, wanted, cap, tick, folder, sort_bytes, merge_bytes)


def few_candidates(
    keys: Keys, threads: int, wanted: Wanted | None, tick: Tick, most_bytes: int, most: int | None = None
) -> CandidatePairs | None:
    """Find the pairs in memory; return None if they need more than `most_bytes`."""
    wanted = _checked(keys, wanted)
    if keys.items < 2:
        return _none(keys.items)
    cap = bucket_cap(keys.column(0), keys.items, keys.bands, most)
    return _in_memory(keys, threads, wanted, cap, tick, most_bytes // MERGE_BYTES)


def _checked(keys: Keys, wanted: Wanted | None) -> Wanted:
    if keys.items >= 1 << 31:
        raise InputError(f"{keys.items:,} different documents are more than one run can pair; split the input")
    return wanted or Wanted(0, keys.items)


def _none(items: int) -> CandidatePairs:
    return CandidatePairs(0, [], items, lambda: iter(()), [0, items])


def most_candidates(items: int) -> int:
    """Return the number of candidate pairs beyond which buckets are heavy."""
    return 2 * (PAIRS_AT_LEAST + PAIRS_AN_ITEM * items)


def bucket_cap(column: NDArray[np.uint32], n: int, bands: int, most: int | None = None) -> int:
    """Return the size of the largest bucket to write out as pairs, judged by one band; all bands are alike.

    Buckets up to that size yield at most `most` pairs in all bands together (by default `most_candidates`), and no
    single bucket yields more than its band's share.
    """
    _, ordered = radix_sort32(column)
    edges = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    sizes = np.diff(np.concatenate([[0], edges, [n]]))
    levels, counts = np.unique(sizes, return_counts=True)
    return cap_of_sizes(levels, counts, bands, most_candidates(n) if most is None else most)


def cap_of_sizes(levels: Ints, counts: Ints, bands: int, most: int) -> int:
    """Return what `bucket_cap` does, from the sizes of buckets, ascending, and the number of buckets of each size."""
    budget = most // bands
    total = np.cumsum(counts * (levels * (levels - 1) // 2))
    within = levels[total <= budget]
    single = (1 + isqrt(1 + 8 * budget)) // 2
    if len(within) == len(levels):
        return single
    return int(max(2, min(single, within[-1] if len(within) else 2)))


def _in_memory(keys: Keys, threads: int, wanted: Wanted, cap: int, tick: Tick, most: int) -> CandidatePairs | None:
    """Pair in memory; None if there are more than `most` pairs."""
    matrix = keys.matrix
    if matrix is None:
        matrix = np.stack([keys.column(band) for band in range(keys.bands)], axis=1)
    nothing = np.zeros(0, np.int32)
    heavy = np.zeros((0, 0), np.bool_)

    def band_pairs(band: int) -> tuple[Members, Members, Members, Members]:
        members, ordered = radix_sort32(keys.column(band))
        where = wanted.low, wanted.high, cap
        count = scan_band(ordered, members, matrix, heavy, band, *where, False, nothing, nothing)
        left, right = np.empty(count, np.int32), np.empty(count, np.int32)
        scan_band(ordered, members, matrix, heavy, band, *where, True, left, right)
        return left, right, *_heavy(ordered, members, cap)

    def all_bands(tick: Tick) -> list[tuple[Members, Members, Members, Members]] | None:
        bands, total = [], 0
        for band in in_order(band_pairs, range(keys.bands), threads):
            bands.append(band)
            total += len(band[0])
            if total > most:
                return None
            tick(1)
        return bands

    bands = all_bands(tick)
    if bands is None:
        return None
    if any(len(band[2]) for band in bands):  # a pair passed over in a heavy bucket may share a light one, too
        heavy = np.zeros(matrix.shape, np.bool_)
        for number, band in enumerate(bands):
            heavy[band[3], number] = True
        bands = all_bands(lambda done: None)
        if bands is None:
            return None
    left = np.concatenate([band[0] for band in bands])
    right = np.concatenate([band[1] for band in bands])
    crowds = _crowds(keys.items, [band[2:] for band in bands])
    del bands
    order = pair_order(left, right, keys.items)
    both = left[order].astype(np.int64), right[order].astype(np.int64)
    return CandidatePairs(len(order), crowds, cap, lambda: iter([both]))


def _on_disk(
    keys: Keys,
    threads: int,
    wanted: Wanted,
    cap: int,
    tick: Tick,
    folder: Path,
    sort_bytes: int,
    merge_bytes: int,
) -> CandidatePairs:
    n = keys.items
    parts = max(1, -(-SORT_BYTES * n // max(1, sort_bytes)))
    nothing, no_keys, light = np.zeros(0, np.int32), np.zeros((0, 0), np.uint32), np.zeros((0, 0), np.bool_)

    def band_runs(band: int) -> tuple[int, list[Packed], list[tuple[Members, Members]]]:
        column = keys.column(band)
        runs, heavy = [], []
        for part in range(parts):
            members, ordered = _part(column, part, parts)
            where = wanted.low, wanted.high, cap
            count = scan_band(ordered, members, no_keys, light, 0, *where, False, nothing, nothing)
            left, right = np.empty(count, np.int32), np.empty(count, np.int32)
            scan_band(ordered, members, no_keys, light, 0, *where, True, left, right)
            words = packed(left, right)
            words.sort()
            runs.append(words)
            heavy.append(_heavy(ordered, members, cap))
        return band, runs, heavy

    heavies: list[tuple[Members, Members]] = []
    bins = np.zeros(BINS, np.int64)
    paths = []
    for band, runs, heavy in in_order(band_runs, range(keys.bands), threads):
        for part, run in enumerate(runs):
            path = folder / f"run-{band:04d}-{part:04d}"
            with open(path, "wb") as out:
                write_array(out, run)
            paths.append(path)
            bins += np.bincount(((run >> U32) * np.uint64(BINS) // np.uint64(n)).astype(np.int64), minlength=BINS)
        heavies.extend(heavy)
        tick(1)
    return merged(paths, bins, n, _crowds(n, heavies), cap, merge_bytes)


def merged(paths: list[Path], bins: Ints, n: int, crowds: list[Ints], cap: int, merge_bytes: int) -> CandidatePairs:
    """Merge sorted runs of pairs in portions of rows, so that a portion takes at most `merge_bytes`.

    `bins` has the number of pairs for each 1/4096 of the rows.
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
            yield unpacked(pairs)

    return CandidatePairs(int(bins.sum()), crowds, cap, portions, cuts, bins)


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
    involved = np.zeros(n, np.bool_)
    involved[rest] = True
    rows = np.flatnonzero(involved)
    labels = components(n, first, rest)[rows]
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(rows[order], cuts), key=lambda crowd: (-len(crowd), int(crowd[0])))
