"""A batch of documents against the index of test items: the runs of words they share, and where these are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.apps.decontaminate.item_sets import WindowIndex
from likewise.base.arrays import Ints, TextChunk
from likewise.kernels.literal_runs import LiteralItems, place_runs, search_documents
from likewise.shingle import Words

RUNS, MARKS = 1 << 10, 1 << 14
"""Runs and windows for which there is room at first; it doubles when a document needs more."""
LOW = (1 << 32) - 1
DOCUMENT, ITEM, AT, ITEM_AT, WORDS = range(5)
"""Columns of runs: document, item, first word in the document, first word in the item, number of words."""
START, END, FIRST_CHARACTER, END_CHARACTER, ALL_WORDS = range(5)
"""Columns of places: bytes and characters of the document, and how many words it has."""


@dataclass(frozen=True)
class SharedRuns:
    """The runs that some documents share with items, where they are, and their text.

    seen: for every document with a window of an item, the counter of that window.
    """

    documents: int
    runs: Ints
    places: Ints
    texts: list[bytes]
    seen: Ints


def search_chunk(first: int, chunk: TextChunk, index: WindowIndex, common: int, rare: int) -> SharedRuns:
    """Search documents, of which the first has the number `first`.

    What is counted so far may leave out runs of windows that are already known to be frequent.
    """
    units = Words(1).recipe().units
    known = LiteralItems(index.words, index.offsets, index.windows, index.short, index.counts, common, rare)
    runs, seen = np.empty((RUNS, 5), np.int64), np.empty((MARKS, 2), np.int64)
    found, marks = [np.empty((0, 5), np.int64)], [np.empty(0, np.int64)]
    row = 0
    while row < len(chunk):
        done, count, marked = search_documents(chunk.data, chunk.offsets, row, units, known, runs, seen)
        found.append(runs[:count].copy())
        marks.append(np.unique(seen[:marked, 0] << 32 | seen[:marked, 1]) & LOW)
        if done == row:
            runs, seen = np.empty((2 * len(runs), 5), np.int64), np.empty((2 * len(seen), 2), np.int64)
        row = done
    shared = np.unique(np.concatenate(found), axis=0)
    places = np.empty((len(shared), 5), np.int64)
    if len(shared):
        place_runs(chunk.data, chunk.offsets, shared, units, places)
    begins = chunk.offsets[shared[:, DOCUMENT]]
    bounds = zip((begins + places[:, START]).tolist(), (begins + places[:, END]).tolist(), strict=True)
    texts = [chunk.data[start:end].tobytes() for start, end in bounds]
    shared[:, DOCUMENT] += first
    return SharedRuns(len(chunk), shared, places, texts, np.concatenate(marks))
