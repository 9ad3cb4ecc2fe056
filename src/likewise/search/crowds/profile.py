"""What the documents of crowds share: the heavy shingles of each crowd, and a bitmap of those of each document.

Call a shingle heavy if many documents of its crowd have it. Let A have a heavy shingles, let |A| be its size and
τ = θ / (1 + θ). J(A, B) ≥ θ says |A ∩ B| ≥ τ(|A| + |B|), and at most min(a, b) ≤ (a + b) / 2 of that is heavy. So the
two share at least lack(A) + lack(B) shingles that are not heavy, where lack(A) = τ|A| − a/2. Pairs that share a light
shingle, one that is not heavy, are found by an inverted index; none is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.copies import labels
from likewise.base.parallel import in_order
from likewise.base.random import mix
from likewise.families.minhash import seed_sequence
from likewise.io.disk import write_array
from likewise.kernels import crowds as kernels
from likewise.kernels.hashtable import move_numbers
from likewise.kernels.sorting import sort_words
from likewise.search.candidates import BINS, Wanted, merged
from likewise.search.exact.bounds import least_fraction
from likewise.search.items import Items
from likewise.search.scored import unpacked

Flags = NDArray[np.bool_]

BUDGET_PER_SET = 50
"""Comparisons per document that an inverted index of light shingles may cause; beyond them a shingle is heavy."""
LIGHTEST = 16
"""A shingle of at most this many documents is always light."""
SAMPLE = 4096
"""Sets on which the work of an inverted index is estimated."""
MOST_BITS = 2048
"""Bits of a bitmap at most; a crowd with more heavy shingles has several to a bit, and its bitmaps only bound."""
RARE = 16
"""A heavy shingle of less than one document in 16 is rare: rows that must share one are looked up by it."""
COUNTER_BITS = 20, 24
"""Binary logarithms of the least and the greatest number of counters."""
SEED_LIGHT = 0x7E51D0A1
PARTS = 256
"""Ranges of keys, each sorted on its own."""
WORD_BYTES = 24
"""Memory to sort a word."""
MOST_COPIES = 4
"""Threads that count in arrays of their own, at most; the sets themselves are made on all."""

T = TypeVar("T")


@dataclass(frozen=True)
class CrowdProfile:
    """The members of crowds: rows of items, ascending, and the crowd of each. limit: bytes of sets to hold in memory.

    budget: comparisons that the inverted index of light shingles may cause, by default fifty for each member.
    """

    items: Items
    rows: Ints
    crowds: NDArray[np.int32]
    threshold: float
    seed: int
    threads: int
    limit: int
    budget: int | None = None
    _kept: list[tuple[slice, Sets]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self) -> Iterator[tuple[slice, Sets]]:
        """Yield the sets, some at a time, and their places; the first are kept, as many as fit in memory."""
        yield from self._kept
        done = self._kept[-1][0].stop if self._kept else 0
        room = self.limit - sum(sets.values.nbytes for _, sets in self._kept)
        for part, made in self.items.set_batches(self.rows[done:], self.threads):
            place, sets = slice(done + part.start, done + part.stop), _wide(made)
            room -= sets.values.nbytes
            if room >= 0:
                self._kept.append((place, sets))
            yield place, sets

    def each(self, work: Callable[[slice, Sets], T], threads: int | None = None) -> Iterator[T]:
        """Yield work(place, sets) for some sets at a time, in order, on all threads."""
        return in_order(lambda part: work(*part), self.batches(), threads or self.threads)

    @cached_property
    def crowd_sizes(self) -> Ints:
        """The number of members of each crowd."""
        return np.bincount(self.crowds, minlength=1)

    @cached_property
    def counted(self) -> tuple[NDArray[np.uint32], np.uint64, Ints]:
        """Counters of shingles, by the high bits of their hashes; the shift to these bits; the sizes of the sets."""
        least, greatest = COUNTER_BITS
        whole = int(self.items.set_bytes(self.rows).sum()) // 8
        down = np.uint64(64 - min(greatest, max(least, whole.bit_length() - 3)))
        size = 1 << (64 - int(down))
        sizes = np.empty(len(self), np.int64)
        own = Copies(lambda: np.zeros(size, np.uint32))

        def count(place: slice, sets: Sets) -> None:
            with own.one() as counts:
                kernels.count_values(sets.values, sets.offsets, self.crowds[place], down, counts)
            sizes[place] = sets.sizes

        for _ in self.each(count, self.copies(4 * size)):
            pass
        counts, *others = own.made
        for other in others:
            counts += other
        return counts, down, sizes

    def copies(self, size: int) -> int:
        """Return how many threads may each fill an array of so many bytes."""
        return max(1, min(self.threads, MOST_COPIES, self.limit // size))

    @property
    def sizes(self) -> Ints:
        """The number of shingles of every member."""
        return self.counted[2]

    @cached_property
    def most(self) -> int:
        """The count up to which a shingle is light: the highest for which comparing all sets that share it is cheap."""
        counts, down, _ = self.counted
        n = len(self)
        places = np.sort(np.argsort(_scattered(n, self.seed), kind="stable")[:SAMPLE])
        sets = _wide(self.items.sets(self.rows[places], self.threads))
        counted = np.empty(len(sets.values), np.int64)
        kernels.value_counts(sets.values, sets.offsets, self.crowds[places], down, counts, counted)
        counted = np.sort(counted)
        other = np.median(counts[:: max(1, len(counts) // 10007)])  # other shingles with the same counter
        work = np.cumsum(np.maximum(0, counted - 1 - other) / 2) * (n / max(1, len(sets)))
        budget = BUDGET_PER_SET * n if self.budget is None else self.budget
        most = LIGHTEST
        while most < n // 8 and work[: np.searchsorted(counted, 2 * most, side="right")].max(initial=0) <= budget:
            most *= 2
        return int(most + 2 * other)

    @cached_property
    def vocabulary(self) -> HeavyShingles:
        """The heavy shingles."""
        counts, down, _ = self.counted
        most = self.most
        own = Copies(HeavyShingles)

        def collect(place: slice, sets: Sets) -> None:
            with own.one() as found:
                found.collect(sets, self.crowds[place], down, counts, most)

        for _ in self.each(collect, self.copies(counts.nbytes)):
            pass
        found, *others = own.made
        for other in others:
            found.add(other)
        found.number(self.crowd_sizes)
        return found

    @cached_property
    def drawn(self) -> tuple[Hashes, Ints, Ints]:
        """A bitmap of the heavy shingles of every member; their number; the number of those that are not rare."""
        known = self.vocabulary
        maps = np.zeros((len(self), known.words), np.uint64)
        heavy, dense = np.empty(len(self), np.int64), np.empty(len(self), np.int64)

        def draw(place: slice, sets: Sets) -> None:
            shingles = known.table, known.numbers, known.bits, known.dense
            drawn = maps[place], heavy[place], dense[place]
            kernels.draw_heavy(sets.values, sets.offsets, self.crowds[place], *shingles, *drawn)

        for _ in self.each(draw):
            pass
        return maps, heavy, dense

    @property
    def maps(self) -> Hashes:
        """A bitmap of the heavy shingles of every member."""
        return self.drawn[0]

    @property
    def heavy(self) -> Ints:
        """The number of heavy shingles of every member."""
        return self.drawn[1]

    def lack(self, shared: Ints) -> NDArray[np.float64]:
        """lack(A) of every member A that has this many of the shingles that need not be shared otherwise."""
        lack: NDArray[np.float64] = self.threshold / (1 + self.threshold) * self.sizes - shared / 2
        return lack

    @cached_property
    def least_sum(self) -> NDArray[np.float64]:
        """The least lack(A) + lack(B) of every member A and any member B of its crowd."""
        lack = self.lack(self.heavy)
        lowest = np.full(len(self.crowd_sizes), np.inf)
        np.minimum.at(lowest, self.crowds, lack)
        least: NDArray[np.float64] = lack + lowest[self.crowds]
        return least

    @cached_property
    def kinds(self) -> Ints:
        """Numbers of members, equal for those of one crowd with equal bitmaps and sizes."""
        hashes = np.zeros((len(self), 2), np.uint64)
        for values in (*self.maps.T, self.sizes, self.crowds):
            column = values.astype(np.uint64)
            hashes[:, 0] = mix(hashes[:, 0] ^ column)
            hashes[:, 1] = mix(hashes[:, 1] + column * np.uint64(0xD6E8FEB86659FD93) + np.uint64(1))
        return labels(hashes)

    def common(self, crowd: int, most: int) -> tuple[Hashes, Ints]:
        """Return the shingles of more than half of the members of a crowd, and the number of members with each."""
        return self.vocabulary.common(crowd, int(self.crowd_sizes[crowd]), most)


class HeavyShingles:
    """Heavy shingles, numbered: a hash table, and for each its crowd, the number of members that have it, and its bit.

    exact: for each crowd, whether each of its heavy shingles has a bit of its own; the lowest bits are then those of
    its rare shingles, `rare_bits` of them.
    """

    def __init__(self) -> None:
        self.table, self.numbers = np.zeros(1 << 12, np.uint64), np.full(1 << 12, -1)
        self._used = np.zeros(1, np.int64)
        self._raw = np.empty(1 << 11, np.uint64)
        self._owners = np.empty(1 << 11, np.int32)
        self._carriers = np.empty(1 << 11, np.int64)
        self.words = 1

    def __len__(self) -> int:
        return int(self._used[0])

    def collect(self, sets: Sets, crowds: NDArray[np.int32], down: np.uint64, counts: Any, most: int) -> None:
        """Add the heavy shingles of these sets."""
        largest = int(sets.sizes.max(initial=0))
        done = 0
        while done < len(sets):
            shingles = self.table, self.numbers, self._used, self._raw, self._owners, self._carriers
            done = kernels.collect_heavy(done, sets.values, sets.offsets, crowds, down, counts, most, *shingles)
            if done < len(sets):
                self._grow(largest)

    def add(self, other: HeavyShingles) -> None:
        """Add the heavy shingles of other sets."""
        while len(self.table) // 2 < 2 * (len(self) + len(other)):
            self._grow(len(other))
        theirs = other._raw, other._owners, other._carriers
        shingles = self.table, self.numbers, self._used, self._raw, self._owners, self._carriers
        kernels.add_heavy(*(part[: len(other)] for part in theirs), *shingles)

    def _grow(self, largest: int) -> None:
        size = len(self.table)
        while size // 2 < 2 * (len(self) + largest):
            size *= 2
        table, numbers = np.zeros(size, np.uint64), np.full(size, -1)
        move_numbers(self.table, self.numbers, table, numbers)
        self.table, self.numbers = table, numbers
        self._raw, self._owners, self._carriers = (
            np.concatenate([old, np.empty(size // 2 - len(old), old.dtype)])
            for old in (self._raw, self._owners, self._carriers)
        )

    def number(self, crowd_sizes: Ints) -> None:
        """Give every heavy shingle a bit, those of fewest members of a crowd first."""
        count = len(self)
        owners, carriers, raw = self._owners[:count], self._carriers[:count], self._raw[:count]
        order = np.lexsort((raw, carriers, owners))
        in_crowd = np.bincount(owners, minlength=len(crowd_sizes))
        starts = np.concatenate([[0], np.cumsum(in_crowd)])
        place = np.empty(count, np.int64)
        place[order] = np.arange(count) - starts[owners[order]]
        self.exact: Flags = in_crowd <= MOST_BITS
        bits = min(MOST_BITS, max(1, int(in_crowd.max(initial=1))))
        self.words = -(-bits // 64)
        self.bits = (place % (64 * self.words)).astype(np.int32)
        rare = (carriers * RARE < crowd_sizes[owners]) & self.exact[owners]
        self.dense: Flags = ~rare
        self.rare_bits: Ints = np.bincount(owners[rare], minlength=len(crowd_sizes))

    def common(self, crowd: int, members: int, most: int) -> tuple[Hashes, Ints]:
        """Return at most this many of the shingles that more than half of the members have, most frequent first."""
        count = len(self)
        own = np.flatnonzero((self._owners[:count] == crowd) & (2 * self._carriers[:count] > members))
        order = own[np.lexsort((self._raw[own], -self._carriers[own]))[:most]]
        return self._raw[order], self._carriers[order]


class Copies(Generic[T]):
    """Objects that threads fill, one at a time each: as many as are filled at once."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._free: SimpleQueue[T] = SimpleQueue()
        self.made = [make()]
        self._free.put(self.made[0])

    @contextmanager
    def one(self) -> Iterator[T]:
        """Lend an object that nobody else has."""
        try:
            copy = self._free.get_nowait()
        except Empty:
            copy = self._make()
            self.made.append(copy)
        yield copy
        self._free.put(copy)


def _wide(sets: Sets) -> Sets:
    return Sets(np.ascontiguousarray(sets.values, np.uint64), sets.offsets)


def _scattered(n: int, seed: int) -> Hashes:
    """Return a pseudo-random number for each of n places."""
    return mix(np.arange(1, n + 1, dtype=np.uint64) + seed_sequence(seed, 1)[0])


def light_pairs(
    profile: CrowdProfile, wanted: Wanted, memory: int, folder: Callable[[], Path]
) -> Iterator[tuple[Ints, Ints]]:
    """Yield pairs of members, left < right, sorted, some rows at a time: all that share a light shingle and that the
    bitmaps allow to be similar.

    J(A, B) ≥ θ requires lack(A) + lack(B) common light shingles, so a member that lacks much need not be entered under
    all of its own. memory: bytes to use at once; what does not fit is written to folder().
    """
    light = profile.sizes - profile.heavy
    least = np.ceil(profile.least_sum - kernels.SLACK).astype(np.int64)
    lengths = np.maximum(0, light - np.maximum(1, least) + 1)
    spill = folder() if WORD_BYTES * int(lengths.sum()) > memory else None
    words = _Words(spill, memory)
    seed, known = seed_sequence(profile.seed ^ SEED_LIGHT, 1)[0], profile.vocabulary

    def split_words(rows: slice, sets: Sets) -> tuple[Hashes, Ints]:
        out = np.empty(int(lengths[rows].sum()), np.uint64)
        members = (sets.values, sets.offsets, profile.crowds[rows])
        kernels.light_words(*members, known.table, known.numbers, seed, rows.start, lengths[rows], out)
        return _split(out)

    for found in profile.each(split_words):
        words.add(*found)
    words.finish()
    held: list[Hashes] = []
    paths: list[Path] = []
    bins = np.zeros(BINS, np.int64)
    n = max(1, len(profile))
    p, q = least_fraction(profile.threshold)
    nothing = np.zeros(0, np.uint64)

    def pairs_of(part: int) -> Hashes:
        known = sort_words(words.part(part), 32, 64)
        facts = profile.sizes, profile.heavy, profile.maps, wanted.low, wanted.high, p, q
        count = kernels.run_pairs(known, *facts, False, nothing)
        out = np.empty(count, np.uint64)
        kernels.run_pairs(known, *facts, True, out)
        out.sort()
        return out[: kernels.distinct_words(out)]

    for number, run in enumerate(in_order(pairs_of, range(PARTS), profile.threads if spill is None else 1)):
        if spill is None:
            held.append(run)
            continue
        bins += np.bincount(((run >> np.uint64(32)) * np.uint64(BINS) // np.uint64(n)).astype(np.int64), minlength=BINS)
        paths.append(spill / f"pairs-{number:04d}")
        with open(paths[-1], "wb") as file:
            write_array(file, run)
    words.forget()
    if spill is None:
        together = np.sort(np.concatenate([nothing, *held]))
        yield unpacked(together[: kernels.distinct_words(together)])
    else:
        yield from merged(paths, bins, n, [], 0, memory).portions()


class _Words:
    """Words by range of keys: in memory, or in a folder with a file for each range; some are held to write more."""

    def __init__(self, folder: Path | None, memory: int) -> None:
        self._memory, self._size = memory, 0
        self._held: list[tuple[Hashes, Ints]] = []
        self._paths = [folder / f"words-{number:04d}" for number in range(PARTS)] if folder else []
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
            self.forget()

    def add(self, words: Hashes, cuts: Ints) -> None:
        """Hold words sorted by range, or write what is held."""
        self._held.append((words, cuts))
        self._size += 8 * len(words)
        if self._size > self._memory // 4:
            self.finish()

    def finish(self) -> None:
        """Write what is held, if there are files."""
        for number, path in enumerate(self._paths):
            with open(path, "ab") as out:
                for words, cuts in self._held:
                    write_array(out, words[cuts[number] : cuts[number + 1]])
        if self._paths:
            self._held, self._size = [], 0

    def part(self, number: int) -> Hashes:
        """Return the words of a range."""
        if self._paths:
            return np.fromfile(self._paths[number], np.uint64)
        return np.concatenate([np.zeros(0, np.uint64), *(w[c[number] : c[number + 1]] for w, c in self._held)])

    def forget(self) -> None:
        """Free the memory, or remove the files."""
        self._held = []
        for path in self._paths:
            path.unlink(missing_ok=True)


def _split(words: Hashes) -> tuple[Hashes, Ints]:
    """Sort words by the range of their keys; return them and where each range begins."""
    shift = np.uint64(64 - (PARTS - 1).bit_length())
    digits = (words >> shift).astype(np.uint8)
    order = np.argsort(digits, kind="stable")
    cuts = np.concatenate([[0], np.cumsum(np.bincount(digits, minlength=PARTS))]).astype(np.int64)
    return words[order], cuts
