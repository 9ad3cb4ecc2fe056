"""How an index of documents or sets is asked: tables of addresses for the kernels, room for answers, their order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likewise.base.parallel import in_order
from likewise.index.segment import directory_bits
from likewise.index.view import IndexView
from likewise.kernels import lookup
from likewise.kernels.lookup import (
    CHUNK_FIELDS,
    SEGMENT_FIELDS,
    IndexAim,
    IndexHits,
    IndexQueries,
    IndexTables,
    answer,
)
from likewise.search.scored import ScoredPairs, concatenated

QUERIES = 256
"""Queries that a thread answers in one call."""
ROOM = 1 << 10
"""Answers for which there is room at first."""
ADDRESSED = ("keys", "sets", "starts", "shingles", "owners", "shingle_starts", "groups", "members", "dead")
"""Arrays of a segment whose addresses kernels take."""


def best_first(found: ScoredPairs) -> ScoredPairs:
    """Return answers in the order of queries, the most similar first, ties by their rows."""
    query, row, similarity = found
    if len(query) < 2:
        return found
    order = np.lexsort((row, -similarity, query))
    return query[order], row[order], similarity[order]


def answers_of(queries: IndexQueries, tables: IndexTables, aim: IndexAim, threads: int) -> ScoredPairs:
    """Answer queries, some of them in each thread."""
    count = len(queries.offsets) - 1

    def work(first: int) -> ScoredPairs:
        last = min(first + QUERIES, count)
        return in_room(lambda hits, done: answer(queries, done, last, tables, aim, hits), first, last, aim)

    return best_first(concatenated(list(in_order(work, range(0, count, QUERIES), threads if count > QUERIES else 1))))


def in_room(ask: Callable[[IndexHits, int], tuple[int, int, int]], first: int, last: int, aim: IndexAim) -> ScoredPairs:
    """Ask for the answers to queries; where the room for them is too small, for the rest of them in a larger one.

    ask: called with the room and the first query; returns the next query, the answers written, and the room it needs.
    """
    parts: list[ScoredPairs] = []
    room = max(ROOM, aim.best)
    while first < last:
        hits = IndexHits(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
        first, written, needed = ask(hits, first)
        parts.append((hits.query[:written], hits.row[:written], hits.similarity[:written]))
        room = max(2 * room, needed)
    return concatenated(parts)


def tables_of(view: IndexView) -> IndexTables:
    """Return the addresses of all arrays that queries read."""
    segments = np.zeros((len(view.segments), SEGMENT_FIELDS), np.int64)
    chunks: list[list[int]] = []
    first_unit = 0
    for row, first_row, segment in zip(segments, view.starts, view.segments, strict=False):
        entry = segment.entry
        for name in ADDRESSED:
            row[getattr(lookup, name.upper())] = segment.address(name)
        row[lookup.ENTRIES], row[lookup.BITS] = entry.entries, directory_bits(entry.entries)
        row[lookup.SHINGLE_ENTRIES], row[lookup.SHINGLE_BITS] = entry.shingles, directory_bits(entry.shingles)
        row[lookup.UNITS], row[lookup.FIRST_UNIT] = entry.units, first_unit
        row[lookup.ROWS], row[lookup.FIRST_ROW] = entry.rows, first_row
        for chunk in segment.chunks:
            elements, offsets = chunk.arrays["elements"], chunk.arrays["offsets"]
            addresses = offsets.ctypes.data, elements.ctypes.data
            chunks.append([first_unit, chunk.units, *addresses, len(elements), elements.itemsize])
            first_unit += chunk.units
    return IndexTables(segments, np.array(chunks, np.int64).reshape(-1, CHUNK_FIELDS))
