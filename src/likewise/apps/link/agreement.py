"""Comparison vectors: how well the fields of candidate pairs agree, as levels that can be counted (MMDS §3.8.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.coincidence import evidence
from likewise.apps.link.fields import Field, Floats, rarity
from likewise.apps.link.similarity import Similarity, similarity_of
from likewise.apps.link.synonyms import Nicknames
from likewise.apps.link.terms import HashedTerms, WeightedTerms, all_codes, hashed, joined, tokens
from likewise.base.arrays import Ints
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.parallel import all_at_once, in_order
from likewise.base.runlog import Tick
from likewise.kernels import linking as kernels
from likewise.kernels import record_words

BATCH = 1 << 17
"""Pairs compared at a time: enough for the kernels, few enough for the memory of one thread."""

MANY = 300_000
"""With more candidate pairs than this, only pairs with two identical fields are searched for values in the wrong field,
and only if both records have a value: the search is the most expensive part of a comparison."""

STEPS = 20
EQUAL = STEPS
PARTS = 5
LEVELS = STEPS + 1 + PARTS
"""Levels 0 to 19 are similarities in steps of 0.05, 20 identical values, 21 to 25 the part of a value that is found
elsewhere in the other record: fine enough to be monotone, coarse enough to be counted from a few hundred pairs."""

DOUBTFUL = 0.5
"""Values less similar than this are searched for in the other fields."""

BETTER = 0.3
"""A value counts as found elsewhere if the part found exceeds its similarity in place by this much."""

ALL_TEXT = "all text"
Levels = NDArray[np.int8]
Halves = NDArray[np.float32]


@dataclass(frozen=True)
class FieldAgreement:
    """One field of all candidate pairs: similarity (NaN: missing), level (-1: missing), rarity of identical values."""

    name: str
    kind: str
    similarity: Halves
    level: Levels
    rarity: Halves

    def part(self, chosen: Ints | NDArray[np.bool_]) -> FieldAgreement:
        """Return the same for some of the pairs."""
        return FieldAgreement(self.name, self.kind, self.similarity[chosen], self.level[chosen], self.rarity[chosen])


Compared = tuple[list[FieldAgreement], Floats]
"""How well every field, and all text, agree, and the most evidence that the fields could give."""


@dataclass(frozen=True)
class _Prepared:
    """What the comparison of one field needs: the similarity of values, the rarity of each, and what it can prove."""

    field: Field
    similarity: Similarity
    rarity: Floats
    evidence: Floats


class FieldComparer:
    """The fields of all records, prepared for comparing any pairs of them.

    A value that is missing on one side, or dissimilar, may be in another field of the other record: a year in the
    address of a citation, given name and surname swapped. The part of it found there has levels of its own.
    """

    def __init__(
        self,
        fields: list[Field],
        rows: WeightedTerms | None = None,
        threads: int = 1,
        nicknames: Nicknames = None,
        budget: Budget = UNLIMITED,
        border: int = 0,
    ) -> None:
        self._codes = all_codes(fields)
        self._words: HashedTerms = joined([hashed(one.folded, False) for one in fields])
        self._rows = rows
        self._threads = threads
        room = budget.sets // max(1, sum(field.long for field in fields))
        counts = np.concatenate([field.counts for field in fields])

        def number() -> None:
            self._numbers, self._rare = tokens(self._words, counts, len(self._codes))

        def prepare(field: Field) -> _Prepared:
            return _Prepared(field, similarity_of(field, nicknames, room), rarity(field), evidence(field, border))

        tasks: list[Callable[[], _Prepared | None]] = [number, *(partial(prepare, field) for field in fields)]
        done = all_at_once(tasks, threads)
        self._fields = [one for one in done if one is not None]

    def compare(self, left: Ints, right: Ints, tick: Tick = lambda done: None, strict: bool | None = None) -> Compared:
        """Return the agreement of every field and of all text, and the most evidence that the fields could give.

        `strict` limits the search for values in the wrong field; without it, it is limited for more than MANY pairs.
        """
        batches = [(left[at : at + BATCH], right[at : at + BATCH]) for at in range(0, len(left), BATCH)]
        strict = len(left) > MANY if strict is None else strict
        found: list[FieldAgreement] = []
        proof = np.zeros(len(left))
        start = 0
        for part, some in in_order(
            lambda pairs: self._batch(*pairs, strict), batches or [(left, right)], self._threads
        ):
            found = found or [_room_for(one, len(left)) for one in part]
            span = slice(start, start + len(some))
            for whole, one in zip(found, part, strict=True):
                whole.similarity[span], whole.level[span], whole.rarity[span] = one.similarity, one.level, one.rarity
            proof[span] = some
            start += len(some)
            tick(len(some))
        return found, proof

    def _batch(self, left: Ints, right: Ints, strict: bool) -> Compared:
        proof = np.zeros(len(left))
        codes = (one.field.codes for one in self._fields)
        sides = [(column[left].astype(np.int64), column[right].astype(np.int64)) for column in codes]
        likely = np.ones(len(left), bool)
        if strict:
            likely = np.sum([(a >= 0) & (a == b) for a, b in sides], axis=0) >= 2
        found: list[FieldAgreement] = []
        doubtful = np.zeros((len(left), len(sides)), bool)
        for place, (one, (a, b)) in enumerate(zip(self._fields, sides, strict=True)):
            missing = (a < 0) | (b < 0)
            equal = ~missing & (a == b)
            similarity = np.where(missing, np.nan, 1.0)
            differ = np.flatnonzero(~missing & ~equal)
            similarity[differ] = one.similarity(a[differ], b[differ])
            level = np.minimum(np.nan_to_num(similarity) * STEPS, STEPS - 1).astype(np.int8)
            level[equal] = EQUAL
            level[missing] = -1
            absent = missing & ((a >= 0) | (b >= 0)) & (not strict)
            doubtful[:, place] = likely & (absent | (~missing & (similarity < DOUBTFUL)))
            worth = np.where(equal, one.rarity[a], np.nan).astype(np.float32)
            found.append(FieldAgreement(one.field.name, one.field.kind, similarity.astype(np.float32), level, worth))
            proof += np.where(missing, 0.0, np.minimum(one.evidence[a], one.evidence[b]))
        if len(self._fields) > 1:
            self._search_elsewhere(found, left, right, doubtful)
        if self._rows is not None:
            rows = self._rows
            similarity = np.minimum(kernels.cosines(rows.offsets, rows.terms, rows.weights, left, right), 1.0)
            level = np.minimum(similarity * STEPS, STEPS - 1).astype(np.int8)
            nothing = np.full(len(left), np.nan, np.float32)
            found.append(FieldAgreement(ALL_TEXT, ALL_TEXT, similarity.astype(np.float32), level, nothing))
        return found, proof

    def _search_elsewhere(
        self, found: list[FieldAgreement], left: Ints, right: Ints, doubtful: NDArray[np.bool_]
    ) -> None:
        """Give the levels of values in the wrong field to doubtful values that are found in one."""
        stamps = np.zeros(len(self._rare), np.int32)
        rows = np.flatnonzero(doubtful.any(axis=1))
        words = (self._codes, self._words.offsets, self._numbers, self._rare)
        parts = record_words.found_elsewhere(doubtful[rows], *words, left[rows], right[rows], stamps)
        for one, part in zip(found, parts.T, strict=True):
            here, missing = one.similarity[rows], one.level[rows] < 0
            taken = ~np.isnan(part) & (missing | (part > np.nan_to_num(here) + BETTER))
            one.level[rows[taken]] = (STEPS + 1 + np.minimum(part[taken] * PARTS, PARTS - 1)).astype(np.int8)


def _room_for(one: FieldAgreement, pairs: int) -> FieldAgreement:
    """Return an agreement of this many pairs that is not filled in yet."""
    columns = (np.empty(pairs, column.dtype) for column in (one.similarity, one.level, one.rarity))
    return FieldAgreement(one.name, one.kind, *columns)
