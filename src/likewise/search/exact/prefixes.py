"""Sets as strings, rarest symbol first (MMDS §3.9.2), and the index of their prefixes (§3.9.4–3.9.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets
from likewise.base.parallel import in_order
from likewise.errors import InputError, ParameterError
from likewise.kernels import overlap
from likewise.kernels import prefix_join as probing
from likewise.kernels import strings as writing
from likewise.kernels.hashtable import table_bits
from likewise.search.exact.bounds import Bounds

STRINGS = "exact.strings"
SURVEYED = 1 << 14
"""Sets that a thread surveys in one call."""
WRITTEN = 1 << 12
"""Sets whose prefixes a thread writes in one call."""
FEWEST, CACHED, MOST_COUNTS = 1 << 14, 1 << 20, 1 << 27
"""Counters of symbols: at least the first number, ample up to the second (it fits in a cache), at most the third."""
SIXTY_FOUR = 64
"""One symbol in 64 is looked at to estimate how many different ones there are."""
Numbers = NDArray[np.int32]
SymbolCounts = NDArray[np.uint16]


def strings(sets: Iterable[Iterable[Any]], order: Iterable[Any] | None = None) -> list[str] | list[list[Any]]:
    """Write each set as its elements in a fixed order, as the exact join does.

    order: all symbols, in their order. Without it the order is that of the join: the rarest symbol of the collection
    first, which makes prefixes selective (MMDS §3.9.4); symbols of equal frequency by their first occurrence.
    Returns texts if `order` is one, or if all symbols are single characters; otherwise lists.

    >>> strings([{"d", "a", "b"}], order="abcdefghijklmnopqrstuvwxyz")
    ['abd']
    >>> strings([["milk", "tea"], ["rum", "milk"], ["milk"]])
    [['tea', 'milk'], ['rum', 'milk'], ['milk']]
    """
    rows = []
    for number, one in enumerate(checks.listed(STRINGS, "sets", sets, "a list of sets")):
        try:
            rows.append(list(dict.fromkeys(one)))
        except TypeError as error:
            raise InputError(f"{STRINGS}: set {number} is not a set of symbols: {error}") from error
        if any(symbol != symbol for symbol in rows[-1]):
            raise InputError(f"{STRINGS}: set {number} contains NaN, which is not equal to itself")
    if order is None:
        counts = Counter(symbol for row in rows for symbol in row)
        listed = sorted(counts, key=lambda symbol: counts[symbol])
    else:
        listed = checks.listed(STRINGS, "order", list(order) if isinstance(order, str) else order, "a list of symbols")
    try:
        place = {symbol: number for number, symbol in enumerate(listed)}
    except TypeError as error:
        raise ParameterError.of(STRINGS, "order", "a list of symbols", order) from error
    if len(place) < len(listed):
        twice = next(symbol for number, symbol in enumerate(listed) if place[symbol] != number)
        raise ParameterError.of(STRINGS, "order", "distinct symbols", f"{twice!r} twice")
    for number, row in enumerate(rows):
        unknown = [symbol for symbol in row if symbol not in place]
        if unknown:
            raise InputError(f"{STRINGS}: set {number} has the symbol {unknown[0]!r}, which is not in 'order'")
        row.sort(key=place.__getitem__)
    if isinstance(order, str) or (listed and all(isinstance(one, str) and len(one) == 1 for one in listed)):
        return ["".join(row) for row in rows]
    return rows


@dataclass(frozen=True)
class Survey:
    """The symbols of some collections, counted, and a bitmap and a fingerprint of each of their sets."""

    counts: SymbolCounts
    maps: list[Hashes]
    digests: list[Hashes]


def empty_counts(different: int) -> SymbolCounts:
    """Return counters for about this many different symbols, ample as long as they fit in a processor's cache."""
    ample, enough = 1 << table_bits(2 * different), 1 << table_bits(different // 2)
    return np.zeros(max(FEWEST, min(ample, CACHED), min(enough, MOST_COUNTS)), np.uint16)


def survey(collections: list[Sets], words: int, threads: int, counts: SymbolCounts | None = None) -> Survey:
    """Count the symbols of all sets, and make a bitmap of `words` 64-bit words and a fingerprint of each set.

    With `counts`, the symbols are added to those, by one thread.
    """
    if counts is None:
        total = sum(len(sets.values) for sets in collections)
        shares = max(1, threads if total > SURVEYED else 1)
        tables = [empty_counts(_different(collections)) for _ in range(shares)]
    else:
        tables = [counts]
    maps = [np.empty((len(sets), words), np.uint64) for sets in collections]
    digests = [np.empty((len(sets), 2), np.uint64) for sets in collections]

    def share(number: int) -> None:
        for sets, drawn, known in zip(collections, maps, digests, strict=True):
            for start in range(number * SURVEYED, len(sets), len(tables) * SURVEYED):
                part = slice(start, start + SURVEYED)
                cut = sets.offsets[start : start + SURVEYED + 1]
                writing.survey(sets.values, cut, tables[number], drawn[part], known[part])

    for _ in in_order(share, range(len(tables)), threads):
        pass
    for more in tables[1:]:
        writing.add_counts(tables[0], more)
    return Survey(tables[0], maps, digests)


def digests_of(sets: Sets, threads: int) -> Hashes:
    """Return a fingerprint of each set, as `survey` makes it."""
    digests = np.empty((len(sets), 2), np.uint64)

    def share(start: int) -> None:
        part = slice(start, start + SURVEYED)
        nothing = np.empty((len(digests[part]), 1), np.uint64)
        writing.survey(sets.values, sets.offsets[start : start + SURVEYED + 1], empty_counts(0), nothing, digests[part])

    for _ in in_order(share, range(0, len(sets), SURVEYED), threads):
        pass
    return digests


def _different(collections: list[Sets]) -> int:
    """Estimate the number of different symbols: those in one sixty-fourth of all hashes, times 64."""
    few = []
    for sets in collections:
        room = np.empty(len(sets.values) // 32 + 1000, np.uint64)
        count = writing.sample_symbols(sets.values, room)
        few.append(room[:count])
    return SIXTY_FOUR * len(np.unique(np.concatenate(few)))


@dataclass(frozen=True)
class PrefixStrings:
    """The prefixes of some sets: the symbols that other sets may have too, with their positions."""

    symbols: Hashes
    positions: Numbers
    offsets: Ints

    def cut(self, start: int, stop: int) -> PrefixStrings:
        """Return the prefixes of the sets from `start` to `stop`."""
        low, high = self.offsets[start], self.offsets[stop]
        return PrefixStrings(self.symbols[low:high], self.positions[low:high], self.offsets[start : stop + 1] - low)

    def take(self, rows: Ints) -> PrefixStrings:
        """Return the prefixes of these sets, in this order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        index = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return PrefixStrings(self.symbols[index], self.positions[index], offsets)


def joined_strings(parts: list[PrefixStrings]) -> PrefixStrings:
    """Put prefixes end to end."""
    if len(parts) == 1:
        return parts[0]
    bases = np.cumsum([0, *(len(part.symbols) for part in parts)])
    offsets = [part.offsets[1:] + base for part, base in zip(parts, bases, strict=False)]
    symbols = np.concatenate([np.zeros(0, np.uint64), *(part.symbols for part in parts)])
    positions = np.concatenate([np.zeros(0, np.int32), *(part.positions for part in parts)])
    return PrefixStrings(symbols, positions, np.concatenate([np.zeros(1, np.int64), *offsets]))


def written(sets: Sets, rows: Ints, prefix: Ints, counts: SymbolCounts, least: int) -> PrefixStrings:
    """Write the prefixes of these sets, without symbols that were counted fewer than `least` times."""
    room = int(prefix.sum())
    symbols, positions = np.empty(room, np.uint64), np.empty(room, np.int32)
    offsets = np.empty(len(rows) + 1, np.int64)
    out = symbols, positions, offsets
    count = writing.strings(sets.values, sets.offsets, rows, prefix, counts, np.uint64(least), *out)
    return PrefixStrings(symbols[:count], positions[:count], offsets)


@dataclass(frozen=True)
class JoinSide:
    """Sets to join, from the smallest to the largest: `rows` of a collection; none is empty."""

    sets: Sets
    rows: Ints
    sizes: Ints
    maps: Hashes

    @classmethod
    def of(cls, sets: Sets, rows: Ints, maps: Hashes) -> JoinSide:
        """Return a side of these rows, which may come in any order."""
        rows = rows[np.argsort(sets.sizes[rows], kind="stable")]
        return cls(sets, rows, sets.sizes[rows], maps[rows])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The elements of all sets of the collection, where each begins, and the rows: as kernels take them."""
        return self.sets.values, self.sets.offsets, self.rows

    def strings(self, start: int, stop: int, prefix: Ints, counts: SymbolCounts) -> PrefixStrings:
        """Write the prefixes of the sets from `start` to `stop`; prefix: the length of each."""
        return written(self.sets, self.rows[start:stop], prefix[start:stop], counts, 2)

    def all_strings(self, start: int, stop: int, prefix: Ints, counts: SymbolCounts, threads: int) -> PrefixStrings:
        """Write the prefixes with several threads."""
        cuts = [(low, min(low + WRITTEN, stop)) for low in range(start, stop, WRITTEN)]
        return joined_strings(list(in_order(lambda cut: self.strings(*cut, prefix, counts), cuts, threads)))


@dataclass(frozen=True)
class Lengths:
    """For each set of a side: the prefix as a probe, the prefix in the index, and the least size of a partner."""

    probe: Ints
    index: Ints
    shortest: Ints

    @classmethod
    def of(cls, sizes: Ints, bounds: Bounds, textbook: bool, times: int = 1) -> Lengths:
        """Compute the lengths for sets of these sizes.

        An indexed set is the smaller one of a pair, so its prefix can be shorter than the probe's; `textbook`: both
        have the length of MMDS §3.9.4. For containment the other set may have any size, and is indexed whole. To be
        sure that a pair shares `times` symbols of its prefixes instead of one, they must be longer by times − 1.
        """
        if not len(sizes):
            return cls(sizes, sizes, sizes)
        kinds = np.unique(sizes)
        table = np.empty((3, len(kinds)), np.int64)
        for i, size in enumerate(kinds.tolist()):
            if bounds.symmetric:
                shortest = overlap.shortest_partner(*bounds.code, size)
                probe = size - overlap.least_overlap(*bounds.code, size, shortest) + 1
                index = probe if textbook else size - overlap.least_overlap(*bounds.code, size, size) + 1
            else:
                shortest = overlap.least_overlap(*bounds.code, size, size)
                probe, index = size - shortest + 1, size
            table[:, i] = min(size, probe + times - 1), min(size, index + times - 1), shortest
        place = np.searchsorted(kinds, sizes)
        probes, indexed, least = (np.ascontiguousarray(row[place]) for row in table)
        return cls(probes, indexed, least)


class Postings:
    """The inverted index: for each symbol the sets of a block that have it in their prefix."""

    def __init__(self, strings: PrefixStrings, prefix: Ints, classes: Numbers, class_sizes: Ints) -> None:
        room = 1 << table_bits(max(1, len(strings.symbols)))
        self._table = np.zeros(room, np.uint64)
        self._numbers = np.full(room, -1, np.int32)
        self.numbered: Numbers = np.empty(len(strings.symbols), np.int32)
        text, table = (strings.symbols, strings.positions, strings.offsets), (self._table, self._numbers)
        count = probing.number_symbols(*text, 0, prefix, *table, self.numbered)
        self.starts = np.zeros(count + 1, np.int64)
        probing.count_lists(self.numbered, self.starts)
        entries = int(self.starts.sum())
        self.sets, self.rests, self.classes = (np.empty(entries, np.int32) for _ in range(3))
        lists = self.starts, self.sets, self.rests, self.classes
        probing.fill_lists(self.numbered, strings.positions, strings.offsets, classes, class_sizes, *lists)

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Which slots of the table of symbols are filled."""
        filled: NDArray[np.bool_] = self._numbers >= 0
        return filled

    def look_up(self, symbols: Hashes) -> Numbers:
        """Return the number of each symbol in this index, -1 if it is not there."""
        out = np.empty(len(symbols), np.int32)
        probing.look_up(symbols, self._table, self._numbers, out)
        return out


def blocks(prefix: Ints, low: int, high: int, most: int) -> Iterator[tuple[int, int]]:
    """Cut a side into blocks of sets whose prefixes have at most `most` symbols together."""
    total = np.concatenate([[0], np.cumsum(prefix[low:high])])
    start = 0
    while start < high - low:
        stop = max(start + 1, int(np.searchsorted(total, total[start] + most, side="right")) - 1)
        yield low + start, low + min(stop, high - low)
        start = stop
