"""`exact.Index`: the sets that are similar to one set (MMDS §3.9.4, the many-one problem), and sets added later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, concatenate, to_arrow
from likewise.base.parallel import in_order
from likewise.base.words import counted
from likewise.errors import ParameterError
from likewise.kernels import overlap
from likewise.kernels import prefix_join as growing
from likewise.kernels.hashtable import move_numbers, table_bits
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import NO_FLOORS
from likewise.search.exact.pairs import as_sets
from likewise.search.exact.prefixes import Lengths, PrefixStrings, survey, written
from likewise.search.scored import ScoredPairs, Scores, best_first, concatenated, no_pairs

OWNER = "exact.Index"
WORDS = 4
"""64-bit words of the bitmap of each set."""
CHUNK = 1 << 12
"""Queries that a thread answers in one call."""
ROOM = 1 << 16
"""Candidates for which there is room beyond one per indexed set."""
NO_ROWS = np.zeros(0, np.int32)
GROWTH = 2
"""The order of symbols is taken anew when the index has grown by this factor, so that rare symbols stay first."""


class ExactIndex:
    """An index of sets that finds all sets similar to a query, exactly.

    sets: lists of tokens, an Arrow column of lists, or `Sets`; more can be added. Sets are numbered from 0 in the order
    in which they were added. threshold, measure and bag are those of `exact.pairs`; containment is that of the query in
    the sets of the index.

    >>> from likewise.exact import Index
    >>> index = Index([["milk", "bread", "eggs"], ["tea"]], threshold=0.5)
    >>> index.query(["milk", "bread"]).to_pylist()
    [{'id_b': 0, 'similarity': 0.6666666666666666}]
    >>> index.add([["bread", "milk"]])
    range(2, 3)
    >>> index.query(["milk", "bread"], k=1).to_pylist()
    [{'id_b': 2, 'similarity': 1.0}]
    """

    def __init__(
        self,
        sets: Any = (),
        threshold: float = 0.8,
        *,
        measure: str = "jaccard",
        bag: bool = False,
        threads: int | None = None,
    ) -> None:
        self.bounds = Bounds(measure, threshold, OWNER)
        self.threads = checks.threads(OWNER, threads)
        self._bag = bag
        self._sets = Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64))
        self._maps: Hashes = np.zeros((0, WORDS), np.uint64)
        self._empty: list[int] = []
        self._order(self._sets)
        self.add(sets)

    def __len__(self) -> int:
        return len(self._sets)

    def __repr__(self) -> str:
        return f"<Index of {counted(len(self), 'set')}: {self.bounds.measure} of {self.bounds.threshold} or more>"

    def add(self, sets: Any) -> range:
        """Add sets to the index; return their numbers."""
        more = as_sets(OWNER, sets, self.threads, self._bag)
        first = len(self)
        self._take(more, ask=False)
        return range(first, len(self))

    def query_and_add(self, sets: Any) -> Any:
        """Find for each set the similar ones before it, then add it: the one-pass way to find all pairs of a stream.

        Return an Arrow table (id_a, id_b, similarity) of the pairs of a new set id_a and an earlier one id_b < id_a, by
        id_a, the most similar first.
        """
        first = len(self)
        left, right, similarity = self._take(as_sets(f"{OWNER}.query_and_add", sets, self.threads, self._bag), ask=True)
        return _table(left + first, right, similarity, None)

    def query(self, tokens: Any, k: int | None = None) -> Any:
        """Return an Arrow table (id_b, similarity) of the sets similar to this one, the most similar first.

        k: the largest number of sets to return.
        """
        if isinstance(tokens, str | bytes | Sets) or not isinstance(tokens, Iterable):
            raise ParameterError.of(f"{OWNER}.query", "tokens", "a list of tokens", tokens)
        return self._answers(f"{OWNER}.query", [tokens], k).drop_columns(["id_a"])

    def query_many(self, sets: Any, k: int | None = None) -> Any:
        """Return an Arrow table (id_a, id_b, similarity): for each set id_a the similar sets id_b of the index.

        By id_a, the most similar first. k: the largest number of sets to return for each.
        """
        return self._answers(f"{OWNER}.query_many", sets, k)

    def _answers(self, owner: str, sets: Any, k: int | None) -> Any:
        if k is not None:
            checks.whole(owner, "k", k)
        return _table(*self._ask(as_sets(owner, sets, self.threads, self._bag), k), k)

    def _order(self, sets: Sets) -> None:
        """Order symbols by their frequency in these sets, and begin with an empty index."""
        self._counts = survey([sets], WORDS, self.threads).counts
        self._ordered_at = len(sets)
        self._table = np.zeros(32, np.uint64)
        self._heads = np.full(32, -1, np.int64)
        self._nexts = np.empty(0, np.int64)
        self._entry_sets, self._entry_places = np.empty(0, np.int32), np.empty(0, np.int32)
        self._used = np.zeros(2, np.int64)

    def _take(self, more: Sets, ask: bool) -> ScoredPairs:
        """Add sets; if `ask`, find for each, before it is added, the similar ones."""
        if not len(more):
            return no_pairs()
        first = len(self)
        before = self._sets
        self._sets = concatenate([before, more])
        self._maps = np.concatenate([self._maps, self._drawn(more)])
        empty = (np.flatnonzero(more.sizes == 0) + first).tolist()
        if len(self) > GROWTH * self._ordered_at:
            self._order(self._sets)
            if first:
                self._enter(before, 0, ask=False)
        found = self._enter(more, first, ask)
        if ask:
            found = concatenated([found, self._empty_pairs(more.sizes, first)])
        self._empty += empty
        return found

    def _enter(self, more: Sets, first: int, ask: bool) -> ScoredPairs:
        lengths = self._lengths(more)
        indexed = lengths.index
        prefix = np.maximum(lengths.probe, indexed) if ask else indexed
        text = written(more, np.arange(len(more)), prefix, self._counts, 0)
        self._make_room(int(indexed.sum()))
        if not ask:
            growing.enter_strings(text.symbols, text.positions, text.offsets, first, self._lists)
            return no_pairs()
        return self._consulted(more, self._maps[first:], text, first, indexed)

    def _ask(self, queries: Sets, k: int | None) -> ScoredPairs:
        lengths = self._lengths(queries)
        maps = self._drawn(queries)

        def work(start: int) -> ScoredPairs:
            stop = min(start + CHUNK, len(queries))
            text = written(queries, np.arange(start, stop), lengths.probe[start:stop], self._counts, 0)
            part = Sets(queries.values, queries.offsets[start : stop + 1])
            left, right, similarity = self._consulted(part, maps[start:stop], text, -1, text.offsets, k)
            return left + start, right, similarity

        parts = list(in_order(work, range(0, len(queries), CHUNK), self.threads))
        empty = np.flatnonzero(queries.sizes == 0)
        partners = np.arange(len(self)) if not self.bounds.symmetric else np.array(self._empty, np.int64)
        partners = partners[:k]
        more = np.repeat(empty, len(partners)), np.tile(partners, len(empty)), np.ones(len(empty) * len(partners))
        return concatenated([*parts, more])

    def _consulted(
        self, queries: Sets, maps: Hashes, text: PrefixStrings, add_from: int, added: Ints, k: int | None = None
    ) -> ScoredPairs:
        """Look up candidates and verify them, and keep the k best of each query, by default all.

        add_from ≥ 0: each query is added to the index afterwards.
        """
        seen = np.zeros(len(self), np.int32)
        room = ROOM + len(self)
        left, right = np.empty(room, np.int32), np.empty(room, np.int32)
        rows = np.arange(max(len(self), len(queries)))
        asked = text.symbols, text.positions, text.offsets, queries.sizes, maps
        mine, theirs = ((sets.values, sets.offsets, rows) for sets in (queries, self._sets))
        indexed = self._sets.sizes, self._maps
        parts, x = [], 0
        while x < len(queries):
            facts = np.zeros(3, np.int64)
            pairs = growing.JoinRoom(seen, left, right, NO_ROWS, facts)
            x = growing.consult(x, asked, indexed, self._lists, self.bounds.code, add_from, added, pairs)
            a, b = left[: facts[0]].astype(np.int64), right[: facts[0]].astype(np.int64)
            scores = np.empty(len(a))
            floors = NO_FLOORS, NO_FLOORS
            overlap.verify_overlap(a, b, mine, theirs, self.bounds.code, floors, 0, NO_ROWS, scores)
            found = scores >= 0
            some = a[found], b[found], scores[found]
            parts.append(some if k is None else best_first(*some, k))
        return concatenated(parts)

    def _empty_pairs(self, sizes: Ints, first: int) -> ScoredPairs:
        """Return the pairs of each new empty set with the earlier sets that are similar to it."""
        parts: list[ScoredPairs] = []
        empty = list(self._empty)
        for i in np.flatnonzero(sizes == 0).tolist():
            partners = np.array(empty, np.int64) if self.bounds.symmetric else np.arange(first + i)
            parts.append((np.full(len(partners), i), partners, np.ones(len(partners))))
            empty.append(first + i)
        return concatenated(parts)

    @property
    def _lists(self) -> growing.GrowingLists:
        entries = self._nexts, self._entry_sets, self._entry_places
        return growing.GrowingLists(self._table, self._heads, *entries, self._used)

    def _lengths(self, sets: Sets) -> Lengths:
        """Return the prefix lengths of these sets; that of an empty set is 0."""
        lengths = Lengths.of(np.maximum(sets.sizes, 1), self.bounds, textbook=True)
        filled = sets.sizes > 0
        return Lengths(lengths.probe * filled, lengths.index * filled, lengths.shortest)

    def _drawn(self, sets: Sets) -> Hashes:
        return survey([Sets(sets.values, sets.offsets)], WORDS, self.threads).maps[0]

    def _make_room(self, more: int) -> None:
        """Make room for more entries."""
        needed = int(self._used[0]) + more
        if needed > len(self._nexts):
            grown = max(2 * len(self._nexts), needed)
            for name in ("_nexts", "_entry_sets", "_entry_places"):
                old = getattr(self, name)
                new = np.empty(grown, old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)
        room = 1 << table_bits(int(self._used[1]) + more)
        if room > len(self._table):
            table, heads = np.zeros(room, np.uint64), np.full(room, -1, np.int64)
            move_numbers(self._table, self._heads, table, heads)
            self._table, self._heads = table, heads


def _table(left: Ints, right: Ints, similarity: Scores, k: int | None) -> Any:
    """Return a table of pairs by id_a, the most similar first, at most k for each."""
    left, right, similarity = best_first(left, right, similarity, k)
    return pa.table({"id_a": to_arrow(left), "id_b": to_arrow(right), "similarity": to_arrow(similarity)})
