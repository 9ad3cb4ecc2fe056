"""Test sets: their items, read from files or objects, and the index of their windows of words.

An item takes about 120 bytes of memory for each of its words while the index is made, besides its text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.base.memory import Budget
from likewise.base.words import size
from likewise.errors import ColumnError, InputError, MissingInput, ParameterError
from likewise.io.read import Aside, Files, ReadOptions, Source, open_source
from likewise.io.read.find import files_of, looks_like_files
from likewise.io.streams import spooled
from likewise.kernels.hashtable import table_bits
from likewise.kernels.literal_runs import WindowTable, enter_windows, item_words, window_hashes
from likewise.kernels.sorting import radix_argsort
from likewise.shingle import Words

OWNER = "decontaminate"
COLUMNS = ("question", "answer", "text", "prompt", "problem", "solution", "query", "input", "target", "completion")
"""Columns that hold the items of a test set, if the user names none: those of them that it has."""
SHORTEST = 5
"""Fewest words of an item that is looked for: four words in a row are in some document by chance."""
MOST_PLACES, MOST_IN_ITEM = 100, 4
"""A window that is in more places than this is a template of the tests, such as a common instruction, and tells nothing
about an item. Of one item the first few places are enough: a run is followed from any of them."""
BYTES_A_WORD = 120
"""Memory that the index takes for each word of the tests while it is made: 100,000 items of 34 words took 0.39 GB."""
COARSE = 1 << 20
"""Bytes of the coarse filter: what a core's own cache holds."""
Numbers = NDArray[np.int32]


@dataclass
class ItemSets:
    """The items of all test sets: texts that differ in their words, and which items of which sets have these words.

    names: of the test sets. texts: the different texts. Of all items, in their order: `sets`, `columns` and `ids` say
    what they are, `text_of` which text they have.
    """

    names: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    text_of: list[int] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    @cached_property
    def chunk(self) -> TextChunk:
        """The different texts."""
        return TextChunk.from_arrow(pa.array(self.texts, pa.large_binary()).view(pa.large_string()))

    @property
    def aside(self) -> list[Aside]:
        """The rows that were set aside as broken, each once."""
        return list(dict.fromkeys(entry for source in self.sources for entry in source.aside))

    @property
    def notes(self) -> list[str]:
        """Sentences for the user about what was found."""
        return [note for source in self.sources for note in source.notes]

    def describe(self) -> list[dict[str, Any]]:
        """Return what was read, each file once."""
        entries = (entry for source in self.sources for entry in source.describe())
        return list({str(entry): entry for entry in entries}.values())

    def add(self, number: int, column: str, source: Source, threads: int) -> int:
        """Read one column of a test set; return how many bytes it has."""
        first, ids = len(self.ids), []
        read = 0
        self.sources.append(source)
        for batch in source.batches(threads):
            chunk = TextChunk.from_arrow(batch.column("text"))
            words, offsets = words_of(chunk)
            read += len(words) * BYTES_A_WORD + int(chunk.offsets[-1] - chunk.offsets[0])
            raw, begin = words.tobytes(), int(chunk.offsets[0])
            data = chunk.data[begin : chunk.offsets[-1]].tobytes()
            for spans in zip(pairwise((offsets * 8).tolist()), pairwise((chunk.offsets - begin).tolist()), strict=True):
                (first_word, last_word), (start, end) = spans
                key = blake2b(raw[first_word:last_word], digest_size=16).digest()
                place = self._known.setdefault(key, len(self.texts))
                if place == len(self.texts):
                    self.texts.append(data[start:end])
                self.text_of.append(place)
            if "id" in batch.schema.names:
                ids.append(batch.column("id").cast(pa.string()))
        rows = len(self.text_of) - first
        positions = source.positions()
        if ids:
            self.ids += pa.chunked_array(ids).to_pylist()
        else:
            self.ids += map(str, range(rows) if positions is None else positions.tolist())
        self.sets += [number] * rows
        self.columns += [column] * rows
        return read


def words_of(chunk: TextChunk) -> tuple[Hashes, Ints]:
    """Return the hashes of the words of documents, end to end, and where each document begins."""
    lengths = np.diff(chunk.offsets)
    words, offsets = np.empty(int((lengths // 2 + 1).sum()), np.uint64), np.empty(len(chunk) + 1, np.int64)
    count = item_words(chunk.data, chunk.offsets, Words(1).recipe().units, words, offsets)
    return words[:count], offsets


def read_sets(
    tests: Any, options: ReadOptions, columns: tuple[str, ...] | None, budget: Budget, threads: int
) -> ItemSets:
    """Read all test sets; `options` says how, and `columns` which columns hold items."""
    found, taken = ItemSets(), 0
    for number, (name, given) in enumerate(_named(tests)):
        found.names.append(name)
        for column, source in _opened(name, given, options, columns):
            taken += found.add(number, column, source, threads)
            if taken > budget.total // 2:
                raise InputError(
                    f"{name}: the test sets take more than {size(budget.total // 2)} of memory, half of what may be "
                    "used; allow more with memory='SIZE', or check fewer at a time"
                )
    return found


def _named(tests: Any) -> Iterator[tuple[str, Any]]:
    """Yield the test sets: each value of a dictionary, each file, each entry of a folder, or one object."""
    if isinstance(tests, Mapping):
        if not tests or not all(isinstance(name, str) for name in tests):
            raise ParameterError.of(OWNER, "tests", "test sets by their names", tests)
        for name, one in tests.items():
            yield name, files_of(one) or one
        return
    files = files_of(tests)
    if files is None and isinstance(tests, list | tuple) and tests and all(isinstance(one, str) for one in tests):
        files = Files(tests) if looks_like_files(tests) else None
    if files is None:
        yield "tests", tests
        return
    names: dict[str, int] = {}
    for path in files.paths:
        for one in _entries(os.fspath(path)):
            name = os.path.basename(one)
            names[name] = names.get(name, 0) + 1
            yield name if names[name] == 1 else f"{name} ({names[name]})", Files([one])


def _entries(path: str) -> list[str]:
    """Return the files and folders in a folder, and of any other path the path."""
    if not os.path.isdir(path):
        return [path]
    inside = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
    if not inside:
        raise MissingInput(f"{path}: there are no test sets in this folder")
    return [os.path.join(path, name) for name in inside]


def _opened(
    name: str, given: Any, options: ReadOptions, columns: tuple[str, ...] | None
) -> Iterator[tuple[str, Source]]:
    """Yield the columns of a test set that hold items; text files and lists of strings have one."""
    given = spooled(given, "text", options.spool) or given
    if isinstance(given, Files):
        texts = not any(file.is_table for file in given.find(options.plain, options.hidden).files)
    else:
        texts = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    if texts:
        yield "text", open_source(given, replace(options, text="text", id=None))
        return
    found, there = 0, ""
    for column in columns or COLUMNS:
        try:
            source = open_source(given, replace(options, text=column))
        except ColumnError as error:
            if columns is not None or f"no column '{column}'" not in str(error):
                raise
            there = str(error).partition("the columns are: ")[2].partition(";")[0]
            continue
        found += 1
        yield column, source
    if not found:
        raise ColumnError(
            f"{name}: no column is known to hold the items of a test set; name some with columns=['COLUMN']; "
            f"the columns are: {there}"
        )


@dataclass(frozen=True)
class WindowIndex:
    """The words of the different texts of items, and their windows in a table that documents are looked up in.

    `counters` has for every word the counter of the window, or of the short item, that begins there; else -1.
    """

    words: Hashes
    offsets: Ints
    windows: WindowTable
    short: WindowTable
    counters: Numbers
    counts: Numbers

    @classmethod
    def of(cls, chunk: TextChunk, length: int) -> WindowIndex:
        """Make the index of these texts, for windows of `length` words."""
        words, offsets = words_of(chunk)
        sizes = np.diff(offsets)
        counters = np.full(len(words) + 1, -1, np.int32)
        hashes, items, places = _windows(words, offsets, length, False)
        group, nth = _repeated(hashes, items)
        several = np.bincount(group[nth < MOST_IN_ITEM])
        numbers = np.where(several <= MOST_PLACES, np.cumsum(several <= MOST_PLACES) - 1, -1).astype(np.int32)
        counters[offsets[items] + places] = numbers[group]
        used = (nth < MOST_IN_ITEM) & (numbers[group] >= 0)
        windows = _table(length, hashes[used], items[used], places[used])
        few = np.where(sizes < length, sizes, 0)
        short = _table(SHORTEST, *_windows(words[np.repeat(few > 0, sizes)], _ends(few), SHORTEST, True))
        first = len(windows.values)
        numbers = np.arange(first, first + len(short.items), dtype=np.int32)
        counters[offsets[short.items]] = numbers
        counts = np.zeros(first + len(short.items), np.int32)
        return cls(words, offsets, windows, short._replace(counters=numbers), counters, counts)


def _ends(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _windows(words: Hashes, offsets: Ints, k: int, first_only: bool) -> tuple[Hashes, Numbers, Numbers]:
    """Return the windows of k words of all items, or the first of each, ordered by hash: hashes, items and places."""
    hashes, items, places = np.empty(len(words) + 1, np.uint64), *np.empty((2, len(words)), np.int32)
    count = window_hashes(words, offsets, k, first_only, hashes, items, places)
    order = radix_argsort(hashes[:count], 64)
    return hashes[order], items[order], places[order]


def _repeated(hashes: Hashes, items: Numbers) -> tuple[Ints, Ints]:
    """Return the number of the hash of each window, and how often its item has had it before."""
    new = np.diff(hashes, prepend=~hashes[:1]) != 0
    again = ~new & (np.diff(items, prepend=items[:1]) == 0)
    rows = np.arange(len(hashes))
    return np.cumsum(new) - 1, rows - np.maximum.accumulate(np.where(again, 0, rows))


def _table(k: int, hashes: Hashes, items: Numbers, places: Numbers) -> WindowTable:
    """Return windows, ordered by hash, as a table."""
    values, begins = np.unique(hashes, return_index=True)
    slots = np.full(1 << table_bits(len(values)), -1, np.int32)
    marks = np.zeros(1 << table_bits(len(values)), np.uint8)
    coarse = np.zeros(min(len(marks), COARSE), np.uint8)
    enter_windows(values, slots, coarse, marks)
    return WindowTable(
        k, coarse, marks, slots, values, np.append(begins, len(hashes)), items, places, np.zeros(0, np.int32)
    )
