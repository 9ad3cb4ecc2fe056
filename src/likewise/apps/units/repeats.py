"""Which units are repeated: those of all documents, grouped by the hash of their words, and counted group by group."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.apps.passages.passages import DocumentReader
from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog
from likewise.base.words import size
from likewise.errors import InputError
from likewise.io.partitions import GroupedRows
from likewise.jobs.settings import Resources
from likewise.kernels.line_units import (
    KEY_A,
    UnitTable,
    count_units,
    place_units,
    repeated_units,
    unit_keys,
)
from likewise.shingle import Words

UNIT_COLUMNS, CUT_COLUMNS = 4, 5
LONGEST, MOST_DOCUMENTS = 2**31 - 1, 2**32
"""Bytes of a document, and documents: the kernels pack two numbers into 64 bits."""
FEWEST, MOST = 256, 8192
"""Groups of units: with the fewest, the table of a group of a gigabyte of text fits in the cache of a core."""
EXPANDED, BYTES_A_UNIT, BYTES_A_SLOT = 4, 60, 160
"""How many times a compressed input is larger when it is read, a unit of text, and a unit in the table of its group:
they choose the number of groups, on which no result depends."""
SLOTS = 1 << 18
"""Most slots of a new table; it doubles when it is half full."""


@dataclass(frozen=True)
class RepeatedUnits:
    """The units to cut, in groups of consecutive documents; how many words every document has.

    units: how many there are of enough words. different: how many different ones are cut.
    """

    cuts: GroupedRows
    groups: int
    words: Ints
    units: int
    different: int

    def in_order(self, threads: int) -> Iterator[Ints]:
        """Yield the cuts in the order of documents and of places in them."""

        def ordered(group: int) -> Ints:
            return in_documents([np.empty((0, CUT_COLUMNS), np.int64), *self.cuts.blocks(group)])

        return in_order(ordered, range(self.groups), threads)


def in_documents(blocks: list[Ints]) -> Ints:
    """Return cuts in the order of documents and of places in them."""
    rows = np.concatenate(blocks)
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def number_of_groups(total_bytes: int | None, resources: Resources) -> int:
    """Return in how many groups units are counted, so that a table for each thread takes an eighth of the memory."""
    need = EXPANDED * (total_bytes or 0) // BYTES_A_UNIT * BYTES_A_SLOT * resources.threads
    groups = FEWEST
    while groups < MOST and need > groups * (resources.budget.total // 8):
        groups *= 2
    return groups


@dataclass
class UnitStore:
    """The units of all documents, in groups by the first bits of their hash; and how many words each document has."""

    groups: int
    units: GroupedRows
    words: list[Ints] = field(default_factory=lambda: [np.zeros(0, np.int64)])

    def read(self, reader: DocumentReader, rules: Any, threads: int, log: RunLog) -> None:
        """Read the documents."""
        shift = np.uint64(64 - self.groups.bit_length() + 1)

        def hashed(task: tuple[int, TextChunk]) -> tuple[Hashes, Ints]:
            return chunk_units(*task, rules)

        with log.stage("read", reader.source.total_rows or 0) as tick:
            for rows, numbers in in_order(hashed, reader.numbered(threads), threads):
                self.units.add(rows, (rows[:, KEY_A] >> shift).astype(np.int64))
                self.words.append(numbers)
                tick(len(numbers))
        self.units.settle()


def find_repeats(store: UnitStore, cuts: GroupedRows, rules: Any, threads: int, log: RunLog) -> RepeatedUnits:
    """Find the units that are cut, and add them to `cuts`."""
    units, groups = store.units, store.groups
    words = np.concatenate(store.words)
    consecutive = max(1, -(-len(words) // groups))
    lock, different = threading.Lock(), 0

    def count(group: int) -> int:
        table = units_to_cut(counted_units(units.blocks(group), units.count(group)), rules)
        for block in units.blocks(group) if len(table.keys) else ():
            found = repeated_in(block, table, rules)
            with lock:
                cuts.add(found, found[:, 0] // consecutive)
        return len(table.keys)

    with log.stage("count", groups) as tick:
        for number in in_order(count, range(groups), threads):
            different += number
            tick(1)
    cuts.settle()
    return RepeatedUnits(cuts, groups, words, units.rows, different)


def chunk_units(first: int, chunk: TextChunk, rules: Any) -> tuple[Hashes, Ints]:
    """Return the units of some documents that have enough words, and the number of words of each document."""
    lengths = np.diff(chunk.offsets)
    if lengths.max(initial=0) > LONGEST:
        raise InputError(f"document {first + int(lengths.argmax())} has more than {size(LONGEST)}; divide it")
    if first + len(chunk) > MOST_DOCUMENTS:
        raise InputError(f"there are more than {MOST_DOCUMENTS:,} documents; divide the corpus")
    most = (int(lengths.sum()) + len(chunk)) // (2 * rules.min_words) + 1  # a word and what is behind it
    rows, words = np.empty((most, UNIT_COLUMNS), np.uint64), np.empty(len(chunk), np.int64)
    how = Words(1).recipe().units
    count = unit_keys(chunk.data, chunk.offsets, first, how, rules.paragraphs, rules.min_words, rows, words)
    return rows[:count], words


def counted_units(blocks: Iterable[Hashes], count: int) -> UnitTable:
    """Return the table of so many units, with the number of documents that have each; documents ascend."""
    table, different = _empty(min(SLOTS, 2 << count.bit_length())), 0
    for block in blocks:
        at = 0
        while at < len(block):
            at, different = count_units(block, at, table, different)
            if at < len(block):
                larger = _empty(2 * len(table.slots))
                larger.keys[:different], larger.facts[:different] = table.keys, table.facts
                place_units(larger.keys[:different], larger.slots)
                table = larger
    return UnitTable(table.slots, table.keys[:different], table.facts[:different])


def units_to_cut(table: UnitTable, rules: Any) -> UnitTable:
    """Return the table of those units that are cut."""
    cut = table.facts[:, 2] > rules.more_than
    keys, facts = table.keys[cut], table.facts[cut]
    slots = np.zeros(2 << len(keys).bit_length(), np.uint64)
    place_units(keys, slots)
    return UnitTable(slots, keys, facts)


def repeated_in(block: Hashes, table: UnitTable, rules: Any) -> Ints:
    """Return those of some units that are cut; the table has no others."""
    found = np.empty((len(block), CUT_COLUMNS), np.int64)
    return found[: repeated_units(block, table, rules.keep == "none", found)].copy()


def _empty(slots: int) -> UnitTable:
    keys, facts = np.empty((slots // 2, 2), np.uint64), np.empty((slots // 2, 3), np.int64)
    return UnitTable(np.zeros(slots, np.uint64), keys, facts)
