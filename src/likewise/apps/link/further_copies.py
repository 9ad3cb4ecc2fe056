"""The records that are compared, in the order of their content, and further copies of these, which are not.

What is drawn at random, and which of two equals comes first, then follows from the records alone, so that the order of
rows does not change the answer. Records that are equal in every field stay in the order of their rows.

A block of more than LIMIT records is not paired, so that a thousand copies of a record would not meet; and if they did,
they would be half a million pairs. Of each group of more than LIMIT copies in one table, the first KEPT are compared.
What is decided of these holds for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.entities import MatchedPairs
from likewise.apps.link.equal_keys import LIMIT
from likewise.apps.link.fields import Floats
from likewise.apps.link.labels import LabelledPairs
from likewise.apps.link.records import RecordTable
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.terms import content_keys, content_order
from likewise.base.arrays import Ints

KEPT = 3
"""Copies that are compared: enough to see that copies match each other, and that a record has rivals."""


@dataclass(frozen=True)
class FurtherCopies:
    """The records that are compared (`kept`), and the `rest`: further copies of these.

    The kept are in the order of their content, those of the first table first. `copies` has a row for each of the rest:
    the places among the kept of the KEPT copies that are compared. `border` is that of the kept records.
    """

    kept: Ints
    rest: Ints
    copies: Ints
    border: int

    @classmethod
    def of(cls, records: RecordTable, more: Sequence[Ints] = ()) -> FurtherCopies:
        """Find the groups of more than LIMIT records of one table that are identical in every field, and in `more`.

        `more` are whole numbers, by which the kept are ordered first, within their table.
        """
        n = records.count
        second = np.arange(n) >= records.border
        keys = content_keys(records.fields, n)
        columns: list[NDArray[Any]] = [*(one.codes for one in records.fields), *more]
        order = np.lexsort((keys, *more, second)) if more else content_order(keys, records.border)
        parts = [some[order] for some in (keys, *more, second)]
        begins = np.flatnonzero(np.append(True, np.logical_or.reduce([some[1:] != some[:-1] for some in parts])))
        sizes = np.diff(np.append(begins, n))
        rank = np.arange(n) - np.repeat(begins, sizes)
        further = (np.repeat(sizes, sizes) > LIMIT) & (rank >= KEPT)
        rest, starts = order[further], np.repeat(begins, sizes)[further]
        copies = order[starts[:, None] + np.arange(KEPT)]
        same = np.logical_and.reduce([_equal(columns, rest, copies[:, place]) for place in range(KEPT)])
        by_row = np.argsort(rest[same])
        rest, copies = rest[same][by_row], copies[same][by_row]
        is_kept = np.ones(n, bool)
        is_kept[rest] = False
        kept = order[is_kept[order]]
        places = np.empty(n, np.int64)
        places[kept] = np.arange(len(kept))
        return cls(kept, rest, places[copies], int(np.count_nonzero(is_kept[: records.border])))

    @property
    def first(self) -> Ints:
        """The place of the first copy of each of the rest."""
        return self.copies[:, 0]

    @property
    def last(self) -> Ints:
        """The place of the last copy that is compared."""
        return self.copies[:, -1]

    @property
    def groups(self) -> int:
        """The number of groups that have further copies."""
        return len(np.unique(self.first))

    def without(self, records: RecordTable) -> RecordTable:
        """Return the records that are compared; the frequencies of values remain those of all records."""
        fields = [replace(one, codes=one.codes[self.kept]) for one in records.fields]
        return replace(records, fields=fields, count=len(self.kept), border=self.border)

    def pairs(self, candidates: RecordPairs, scored: ScoredRecords) -> tuple[Ints, Ints, Floats]:
        """Return the candidates as pairs of all records, with their scores in points."""
        left, right = self.kept[candidates.left], self.kept[candidates.right]
        return np.minimum(left, right), np.maximum(left, right), scored.value * scored.unit

    def mapped(self, labels: LabelledPairs) -> LabelledPairs:
        """Return labelled pairs with the first copy in place of a further one, numbered among the kept records."""
        places = np.empty(len(self.kept) + len(self.rest), np.int64)
        places[self.kept], places[self.rest] = np.arange(len(self.kept)), self.first
        pairs = np.sort(places[labels.pairs], axis=1)
        keys, chosen = np.unique(pairs[:, 0] * len(self.kept) + pairs[:, 1], return_index=True)
        chosen = chosen[keys // len(self.kept) != keys % len(self.kept)]
        return LabelledPairs(pairs[chosen], labels.match[chosen])

    def clusters(self, groups: Ints) -> Ints:
        """Return the clusters of all records: further copies join the first if its last copy did."""
        labels = np.empty(len(self.kept) + len(self.rest), np.int64)
        first = np.full(len(self.kept), len(labels))
        np.minimum.at(first, groups, self.kept)
        labels[self.kept] = first[groups]
        joined = groups[self.first] == groups[self.last]
        labels[self.rest] = np.where(joined, first[groups[self.first]], self.rest)
        return labels

    def matches(self, found: MatchedPairs, one_left: bool, one_right: bool) -> MatchedPairs:
        """Return the matches of all records, given those of the records that were compared.

        Within one table, further copies match the first copy. Between two, they have the partners of the first copy if
        these can be shared; otherwise they are paired, one to one, with the further copies of its partner.
        """
        if not len(self.rest):
            return replace(found, pairs=np.sort(self.kept[found.pairs], axis=1))
        if not self.border:
            rows = _rows_of(found, self.first, self.last)
            taken = np.flatnonzero(rows >= 0)
            pairs = np.stack([self.kept[self.first[taken]], self.rest[taken]], axis=1)
            return self._joined(found, rows[taken], pairs)
        parts = []
        for side, shared in ((0, not one_right), (1, not one_left)):
            if shared:
                parts.append(self._partners(found, side))
        if not parts:
            parts.append(self._in_turn(found))
        rows, pairs = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        return self._joined(found, rows, pairs)

    def _joined(self, found: MatchedPairs, rows: Ints, pairs: Ints) -> MatchedPairs:
        """Return the matches and further ones, with scores and points of the given rows."""
        return MatchedPairs(
            np.sort(np.concatenate([self.kept[found.pairs], pairs]), axis=1),
            np.append(found.scores, found.scores[rows]),
            np.append(found.probable, found.probable[rows]),
            {name: np.append(points, points[rows]) for name, points in found.points.items()},
        )

    def _partners(self, found: MatchedPairs, side: int) -> tuple[Ints, Ints]:
        """Return the further copies of one table with the partners of their first copies."""
        own = np.flatnonzero((self.first >= self.border) == bool(side))
        order = np.argsort(found.pairs[:, side], kind="stable")
        starts, stops = (
            np.searchsorted(found.pairs[order, side], self.first[own], side=end) for end in ("left", "right")
        )
        counts = stops - starts
        places = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        rows = order[places]
        pairs = self.kept[found.pairs[rows]]
        pairs[:, side] = np.repeat(self.rest[own], counts)
        return rows, pairs

    def _in_turn(self, found: MatchedPairs) -> tuple[Ints, Ints]:
        """Return the further copies of two records that match, the next of one with the next of the other."""
        at_last = {pair[0]: row for row, pair in enumerate(found.pairs.tolist())}
        group = {place: row[0] for row in self.copies.tolist() for place in row}
        members: dict[int, list[int]] = {}
        for first, row in zip(self.first.tolist(), self.rest.tolist(), strict=True):
            members.setdefault(first, []).append(row)
        rows, pairs = [], []
        for last in np.unique(self.last[self.first < self.border]).tolist():
            row = at_last.get(last, -1)
            partner = group.get(int(found.pairs[row, 1])) if row >= 0 else None
            if partner is not None:
                both = list(zip(members[group[last]], members.pop(partner, []), strict=False))
                rows += [row] * len(both)
                pairs += both
        return np.array(rows, np.int64), np.array(pairs, np.int64).reshape(-1, 2)


def _equal(columns: Sequence[NDArray[Any]], some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Return which records are identical to others in every column."""
    same = np.ones(len(some), bool)
    for codes in columns:
        same &= codes[some] == codes[others]
    return same


def _rows_of(found: MatchedPairs, left: Ints, right: Ints) -> Ints:
    """Return the row of each pair among the matches, -1 if it is none."""
    size = int(max(found.pairs.max(initial=0), right.max(initial=0))) + 1
    keys = found.pairs[:, 0] * size + found.pairs[:, 1]
    order = np.argsort(keys, kind="stable")
    asked = left * size + right
    places = np.searchsorted(keys[order], asked)
    inside = np.flatnonzero(places < len(keys))
    rows = np.full(len(asked), -1, np.int64)
    rows[inside] = np.where(keys[order[places[inside]]] == asked[inside], order[places[inside]], -1)
    return rows
