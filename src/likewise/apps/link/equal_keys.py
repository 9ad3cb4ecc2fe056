"""Blocks: records with equal keys, paired a range of records at a time, so that the pairs fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.fields import Field
from likewise.apps.link.points import letters_in
from likewise.base.arrays import Ints, TextChunk
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.parallel import in_order
from likewise.base.runlog import Tick
from likewise.io.disk import disk_errors, remove
from likewise.io.workspace import Workspace
from likewise.kernels import linking as kernels
from likewise.kernels import record_terms
from likewise.kernels.record_words import spelling_keys
from likewise.kernels.sorting import radix_sort
from likewise.search.band_keys import HeldKeys, StoredKeys, WrittenKeys

LIMIT = 12
"""Records of a block that are paired with each other, 66 pairs of 12; larger blocks come from frequent values, whose
agreement says little."""

BANDS, ROWS, ROUNDS = 6, 3, 4
"""MinHash: 4 rounds of 6 bands of 3 rows. By the banding formula, 98 % of the pairs with similarity 0.6 share two
bands, and 46 % of those with 0.4."""

RANGE_BITS = 12
"""Up to 2**12 ranges of records are those in which pairs are counted, to cut them into parts that fit in memory."""

PAIR_BYTES = 24
"""Bytes per pair of a part: its number, and as much again twice while the part is sorted and thinned out."""

PAIRS_AT_ONCE = 1 << 18
"""Pairs of a part that one thread sorts and thins out."""

ROWS_AT_ONCE = 1 << 12
"""Records whose terms are hashed at a time by one thread: their minima, 72 of 8 bytes each, stay in the cache."""

KEYS_FILE = "band-keys.u32"
MIX = np.uint64(0x9E3779B97F4A7C15)
Keys = NDArray[np.uint32]
Members = NDArray[np.int32]
Column = Callable[[], Keys]
"""Makes the keys of all records, 0 for none."""


class Blocks:
    """Columns of keys: two records that agree in one of them are a pair, unless more than LIMIT do.

    Records before `since` are not paired with each other; those after are new. Columns are sorted when they are added,
    and what their blocks are is kept in `room` bytes; what has no room is sorted again for every part.
    """

    def __init__(self, records: int, border: int, threads: int, since: int = 0, room: int = UNLIMITED.total) -> None:
        self._records, self._border, self._threads, self._since = records, border, threads, since
        self._room = room
        self._columns: list[Column | Members] = []
        self._shift = max(0, (records - 1).bit_length() - RANGE_BITS)
        self._counts: list[Ints] = []

    def add(self, columns: list[Column]) -> list[bool]:
        """Add columns; return for each whether it has blocks that are too large."""

        def count(column: Column) -> tuple[Members, Ints, bool]:
            members, many = self._members(column)
            counts = np.zeros((self._records >> self._shift) + 1, np.int64)
            kernels.count_block_pairs(members, self._border, self._since, self._shift, counts)
            return members, counts, many > 0

        crowded = []
        for column, (members, counts, many) in zip(columns, in_order(count, columns, self._threads), strict=True):
            kept = members.nbytes <= self._room
            self._room -= members.nbytes * kept
            self._columns.append(members if kept else column)
            self._counts.append(counts)
            crowded.append(many)
        return crowded

    def _members(self, column: Column) -> tuple[Members, int]:
        """Return the records of the blocks of a column, and how many are in blocks that are too large.

        Most keys are of one record alone, and are not sorted.
        """
        keys = column()
        chosen = kernels.sharing(keys, self._since) if self._since else kernels.repeated(keys)
        some = keys[chosen]
        bits = int(some.max(initial=0)).bit_length()
        members, many = kernels.block_members(*radix_sort(some, bits, chosen), LIMIT)
        return members, many

    def parts(self, room: int, tick: Tick) -> Iterator[list[Ints]]:
        """Yield all pairs, repeated if they agree in several columns, in parts of ascending records.

        A part takes `room` bytes, or is that of the smallest range of records. It is a list of arrays, themselves of
        ascending records. A pair is one number, the lower record times the number of records plus the higher.
        """
        if not self._counts:
            return
        ends = np.cumsum(np.sum(self._counts, axis=0))
        most = max(1, room // PAIR_BYTES)
        low = done = 0
        while low < len(ends):
            high = max(low + 1, int(np.searchsorted(ends, done + most, side="right")))
            yield self._part(low, high)
            first, last = (min(end << self._shift, self._records) for end in (low, high))
            tick(last - first)
            low, done = high, int(ends[high - 1])

    def _part(self, low: int, high: int) -> list[Ints]:
        """Return the pairs of some ranges of records, each column's after those of the columns before."""
        counts = np.array([one[low:high] for one in self._counts])
        ends = np.cumsum(counts.sum(axis=0))
        _, first, bucket = np.unique((ends - 1) // PAIRS_AT_ONCE, return_index=True, return_inverse=True)
        buckets = np.full(len(self._counts[0]), -1, np.int64)
        buckets[low:high] = bucket
        sizes = np.add.reduceat(counts, first, axis=1)
        borders = np.append(0, np.cumsum(sizes.sum(axis=0)))
        found = np.empty(int(ends[-1]), np.int64)

        def write(column: int) -> None:
            members = self._columns[column]
            if callable(members):
                members, _ = self._members(members)
            places = borders[:-1] + sizes[:column].sum(axis=0)
            kernels.block_pairs(members, self._border, self._since, self._records, self._shift, buckets, places, found)

        for _ in in_order(write, range(len(self._columns)), self._threads):
            pass
        return [found[start:stop] for start, stop in pairwise(borders.tolist())]


@contextmanager
def room_for_keys(records: int, budget: Budget, space: Workspace | None) -> Iterator[WrittenKeys]:
    """Yield where the keys of bands can be written: in memory, or in a file of the workspace if they are too large."""
    bands = ROUNDS * BANDS
    if space is None or 4 * bands * records <= budget.keys:
        yield HeldKeys(np.zeros((bands, records), np.uint32).T)
        return
    space.check_room(4 * bands * records, "the keys of bands")
    with disk_errors(space.large):
        space.large.mkdir(parents=True, exist_ok=True)
        stored = StoredKeys.create(space.large / KEYS_FILE, records, bands)
        try:
            yield stored
        finally:
            stored.close()
            remove(space.large / KEYS_FILE)


def identical_fields(
    fields: list[Field], border: int, threads: int, notes: list[str], room: int, since: int = 0
) -> tuple[Blocks, list[Field]]:
    """Return the blocks of identical fields, and the fields with blocks that are too large.

    Of these, there are also blocks by two fields together.
    """
    blocks = Blocks(len(fields[0].codes), border, threads, since, room)
    crowded = blocks.add([_one(field) for field in fields])
    many = [field for field, large in zip(fields, crowded, strict=True) if large]
    if many:
        names = ", ".join(field.name for field in many)
        notes.append(f"{names}: values shared by more than {LIMIT} records are blocked together with another field")
    blocks.add([key_of_both(one.codes, other.codes) for one, other in combinations(many, 2)])
    return blocks, many


def _one(field: Field) -> Column:
    return lambda: (field.codes + np.int32(1)).astype(np.uint32)


def key_of_both(one: NDArray[Any], other: NDArray[Any]) -> Column:
    """Return the keys of records by two of their codes; one that has no code has no key."""

    def keys() -> Keys:
        key = one.astype(np.uint64) * MIX + other.astype(np.uint64)
        key = ((key * MIX) >> np.uint64(33)) + np.uint64(1)
        return np.where((one >= 0) & (other >= 0), key, np.uint64(0)).astype(np.uint32)

    return keys


def banded(
    fields: list[Field], border: int, seed: int, threads: int, tick: Tick, keys: WrittenKeys, room: int, since: int = 0
) -> tuple[Blocks, NDArray[np.uint8]]:
    """Return the blocks of MinHash bands over the words and trigrams of all fields, and a byte of every minimum.

    keys: where those of the bands are written.
    """
    records, bins = len(fields[0].codes), BANDS * ROWS
    marks = np.zeros((records, ROUNDS * bins), np.uint8)
    salts = np.array([(seed * ROUNDS + number + 1) * int(MIX) % 2**64 for number in range(ROUNDS)], np.uint64)
    texts = [TextChunk.from_arrow(field.folded) for field in fields]
    most = [2 * int(np.diff(text.offsets).max(initial=0)) for text in texts]

    def hash_rows(start: int) -> int:
        rows = slice(start, min(start + ROWS_AT_ONCE, records))
        low = np.full((rows.stop - start, ROUNDS * bins), np.iinfo(np.uint64).max)
        for field, text, size in zip(fields, texts, most, strict=True):
            codes = field.codes[rows]  # that of a missing value, -1, leads from the end of all texts to their beginning
            starts, stops = text.offsets[codes], text.offsets[codes + 1]
            record_terms.lower_minima(text.data, starts, stops, size, salts, bins, low)
        some = np.empty((ROUNDS * BANDS, len(low)), np.uint32).T
        record_terms.band_keys(low, BANDS, ROWS, some, marks[rows])
        for band in range(ROUNDS * BANDS):
            keys.put_column(rows, band, some[:, band])
        return len(low)

    for done in in_order(hash_rows, range(0, records, ROWS_AT_ONCE), threads):
        tick(done)
    blocks = Blocks(records, border, threads, since, room)
    blocks.add([partial(keys.column, band) for band in range(ROUNDS * BANDS)])
    return blocks, marks


RARER = 10
"""A name is taken for another one, an edit away, that is at least this many times as frequent."""

MOST_NAMES = 200_000
"""Different names up to which a field is corrected: bounds the time; one of more has few frequent names."""

DATE_PARTS = (((0, 4), (4, 6)), ((0, 4), (6, 8)), ((4, 6), (6, 8)))
"""Where two of the year, the month and the day are in a date written as eight digits."""


def loose_blocks(crowded: list[Field], border: int, threads: int, room: int, since: int = 0) -> Blocks | None:
    """Return the blocks of two names, or a name and a date, that agree but for an error in each; None without any.

    Records with an error in every field have no identical values, and in large tables two fields that nearly agree are
    too little to be found by the terms of all fields. A typing error makes a rare name one edit away from a frequent
    one, and leaves two of the year, the month and the day of a date as they were.
    `crowded` are the fields with values that many records share: only these have frequent names.
    """
    names = [one for one in crowded if one.kind == "name" and len(one.texts) <= MOST_NAMES]
    dates = [one for one in crowded if one.kind == "date"]
    loose = [of_records(one, meant(one)) for one in names]
    parts = [of_records(one, some) for one in dates for some in without_a_part(one.texts)]
    pairs = [*combinations(loose, 2), *product(loose, parts)]
    if not pairs:
        return None
    blocks = Blocks(len(crowded[0].codes), border, threads, since, room)
    blocks.add([key_of_both(one, other) for one, other in pairs])
    return blocks


def of_records(field: Field, codes: Ints) -> Ints:
    """Return the codes of records, given those of values; -1 for a missing value."""
    return np.append(codes, -1)[field.codes]


def meant(field: Field) -> Ints:
    """Return for each name the place of the name it was meant for: the most frequent one an edit away, or itself.

    An edit is a letter more, less or another, or two adjacent letters swapped.
    """
    text, offsets = letters_in(field.texts)
    sizes = np.diff(offsets)
    keys, owners = np.empty(int((sizes + 1).sum()), np.uint64), np.empty(int((sizes + 1).sum()), np.int64)
    spelling_keys(text, offsets, keys, owners)
    order = np.lexsort((-field.counts[owners], keys))
    keys, owners = keys[order], owners[order]
    begins = np.append(True, keys[1:] != keys[:-1]) if len(keys) else np.zeros(0, bool)
    best = owners[begins][np.cumsum(begins) - 1]
    misspelt = np.flatnonzero(field.counts[best] >= RARER * field.counts[owners])
    misspelt = misspelt[np.argsort(field.counts[best[misspelt]], kind="stable")]
    found = np.arange(len(field.texts))
    found[owners[misspelt]] = best[misspelt]
    return found


def without_a_part(dates: pa.Array) -> list[Ints]:
    """Return codes of dates without their day, month and year, equal where the other two parts are; -1 without them."""
    whole = pc.equal(pc.utf8_length(dates), 8)
    found = []
    for spans in DATE_PARTS:
        kept = [pc.utf8_slice_codeunits(dates, start, stop) for start, stop in spans]
        parts = pc.if_else(whole, pc.binary_join_element_wise(*kept, ""), None).dictionary_encode()
        found.append(parts.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
    return found
