"""Comparison: how well the fields of candidate pairs agree, as levels that can be counted (MMDS §3.8.2).

The similarity of two values, from 0 to 1, is prepared once for each field and then evaluated for millions of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.agreement import (
    ALL_TEXT,
    PARTS,
    STEPS,
    CandidateAgreement,
    FieldAgreement,
    Halves,
    Levels,
    alikeness,
    joined_parts,
)
from likewise.apps.link.fields import Codes, Field, Floats, rarity
from likewise.apps.link.points import INITIAL, letters_in, pair_points, penalised
from likewise.apps.link.synonyms import KINDS, Nicknames, Synonyms, synonyms_for
from likewise.apps.link.terms import WeightedTerms, all_codes, numbered_words
from likewise.base.arrays import Hashes, Ints, TextChunk
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.parallel import all_at_once, in_order
from likewise.base.runlog import Tick
from likewise.kernels import linking as kernels
from likewise.kernels import record_terms, record_words
from likewise.kernels.linking import PairLevels

BATCH = 1 << 17
"""Pairs compared at a time: enough for the kernels, few enough for the memory of one thread."""

MANY = 300_000
"""With more candidate pairs than this, only pairs with two identical fields are searched for values in the wrong field,
and only if both records have a value: the search is the most expensive part of a comparison."""

DOUBTFUL = 0.5
"""Values less similar than this are searched for in the other fields."""

BETTER = 0.3
"""A value counts as found elsewhere if the part found exceeds its similarity in place by this much."""

Compared = tuple[list[Levels], Halves]
"""The levels of every field, and of all text, of all candidates, and how alike they are."""


@dataclass(frozen=True)
class _Prepared:
    """What the comparison of one field needs: the similarity of values, and the rarity of each."""

    field: Field
    similarity: Similarity
    rarity: Halves


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
    ) -> None:
        self._codes = all_codes(fields)
        self._starts = np.cumsum([0, *(len(field.texts) for field in fields)])
        self._rows = rows
        self._threads = threads
        room = budget.sets // max(1, sum(field.long for field in fields))

        def number() -> None:
            self._words = numbered_words(fields)

        def prepare(field: Field) -> _Prepared:
            return _Prepared(field, similarity_of(field, nicknames, room), rarity(field).astype(np.float32))

        largest = sorted(fields, key=lambda field: (not field.long, -len(field.texts)))
        tasks: list[Callable[[], _Prepared | None]] = [partial(prepare, field) for field in largest]
        tasks.insert(sum(field.long for field in fields), number)
        prepared = {one.field.name: one for one in all_at_once(tasks, threads) if one is not None}
        self._fields = [prepared[field.name] for field in fields]

    def compare(self, left: Ints, right: Ints, strict: bool | None = None) -> list[FieldAgreement]:
        """Return the agreement of every field and of all text.

        `strict` limits the search for values in the wrong field; without it, it is limited for more than MANY pairs.
        """
        parts = zip(*self._batches(left, right, strict), strict=True)
        return [joined_parts(list(some)) for some in parts]

    def candidates(
        self, left: Ints, right: Ints, tick: Tick = lambda done: None, strict: bool | None = None
    ) -> Compared:
        """Return what is kept of all candidates."""
        levels = [np.empty(len(left), np.int8) for _ in range(len(self._fields) + (self._rows is not None))]
        alike = np.empty(len(left), np.float32)
        start = 0
        for found in self._batches(left, right, strict):
            span = slice(start, start + len(found[0].level))
            for level, one in zip(levels, found, strict=True):
                level[span] = one.level
            alike[span] = alikeness(found)
            tick(span.stop - start)
            start = span.stop
        return levels, alike

    def kept(self, left: Ints, levels: list[Levels]) -> list[CandidateAgreement]:
        """Return the agreement of candidates, given their records and their levels."""
        found = [
            CandidateAgreement(one.field.name, one.field.kind, level, left, one.field.codes, one.rarity)
            for one, level in zip(self._fields, levels, strict=False)
        ]
        if self._rows is not None:
            nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
            found.append(CandidateAgreement(ALL_TEXT, ALL_TEXT, levels[-1], left, *nothing))
        return found

    def _batches(self, left: Ints, right: Ints, strict: bool | None = None) -> Iterator[list[FieldAgreement]]:
        """Yield the agreement of some pairs after others; there is one batch if there are no pairs."""
        batches = [(left[at : at + BATCH], right[at : at + BATCH]) for at in range(0, len(left), BATCH)]
        strict = len(left) > MANY if strict is None else strict
        return in_order(lambda pairs: self._batch(*pairs, strict), batches or [(left, right)], self._threads)

    def _batch(self, left: Ints, right: Ints, strict: bool) -> list[FieldAgreement]:
        values = np.empty((len(self._fields), 2, len(left)), np.int32)
        same = np.empty(len(left), np.int8)
        kernels.paired_values(self._codes, self._starts, left, right, values, same)
        likely = same >= 2 if strict else np.ones(len(left), bool)
        found: list[FieldAgreement] = []
        doubtful = np.zeros((len(self._fields), len(left)), bool)
        for one, sides, doubts in zip(self._fields, values, doubtful, strict=True):
            similar = one.similarity(*kernels.different_values(sides))
            level, halves = np.empty(len(left), np.int8), np.empty((2, len(left)), np.float32)
            out = PairLevels(halves[0], level, halves[1], doubts)
            kernels.value_levels(sides, similar, one.rarity, STEPS, DOUBTFUL, likely, not strict, out)
            found.append(FieldAgreement(one.field.name, one.field.kind, halves[0], level, halves[1]))
        if len(self._fields) > 1:
            self._search_elsewhere(found, left, right, doubtful)
        if self._rows is not None:
            rows = self._rows
            similarity = np.minimum(kernels.cosines(rows.offsets, rows.terms, rows.weights, left, right), 1.0)
            level = np.minimum(similarity * STEPS, STEPS - 1).astype(np.int8)
            nothing = np.full(len(left), np.nan, np.float32)
            found.append(FieldAgreement(ALL_TEXT, ALL_TEXT, similarity.astype(np.float32), level, nothing))
        return found

    def _search_elsewhere(
        self, found: list[FieldAgreement], left: Ints, right: Ints, doubtful: NDArray[np.bool_]
    ) -> None:
        """Give the levels of values in the wrong field to doubtful values that are found in one."""
        words = self._words
        stamps = np.zeros(len(words.rarity), np.int32)
        rows = np.flatnonzero(doubtful.any(axis=0))
        values = (self._codes, words.offsets, words.numbers, words.rarity)
        parts = record_words.found_elsewhere(doubtful[:, rows].T.copy(), *values, left[rows], right[rows], stamps)
        for one, part in zip(found, parts.T, strict=True):
            here, missing = one.similarity[rows], one.level[rows] < 0
            taken = ~np.isnan(part) & (missing | (part > np.nan_to_num(here) + BETTER))
            one.level[rows[taken]] = (STEPS + 1 + np.minimum(part[taken] * PARTS, PARTS - 1)).astype(np.int8)


HELPED = 50_000
"""Of each batch, at most this many pairs of values of several words are compared word by word, which is slow; the most
similar ones first, as the others gain too little to become matches."""

SLOTS = 1 << 16, 1 << 24
"""Least and greatest number of slots in which terms are counted: eight or more per term, up to 128 MB. Two terms in one
slot count as equally frequent."""

VALUES_AT_ONCE = 1 << 16
"""Values whose terms are made at a time if they are not kept."""

PAIRS_AT_ONCE = 1 << 14
"""Pairs of values whose terms are made at a time if they are not kept."""

TERM_BYTES = 40
"""Bytes per term of the values of a field: its hash twice while terms are sorted, its count, its weight, its row."""

SPREAD = 10
"""Numbers of which the largest is more than this many times the median are compared as logarithms."""

STEEPNESS = 4
"""Numbers an interquartile range apart have similarity 1 / (1 + 4): far below equal ones, yet not 0."""

Similarity = Callable[[Ints, Ints], Floats]
Letters = NDArray[np.uint8] | NDArray[np.uint32]


def similarity_of(field: Field, nicknames: Nicknames = None, room: int = UNLIMITED.total) -> Similarity:
    """Return the function that gives the similarity of values, which are indices into `field.texts`.

    Texts of several words are compared by the terms they share, numbers by their difference relative to the spread of
    all values, and everything else by points (`likewise.apps.link.points`), of which 100 are a similarity of 1. Terms
    that take more than `room` bytes are made again for every batch of pairs.
    """
    if field.long:
        return _by_terms(field, room)
    if field.kind == "number":
        return _by_difference(field)
    if field.kind == "exact":
        return lambda a, b: (a == b).astype(np.float64)
    return _by_edits(field, nicknames)


def _by_terms(field: Field, room: int) -> Similarity:
    """Return the cosine of the weighted terms of values; the terms are kept if `room` bytes are enough for them."""
    starts = range(0, len(field.folded), VALUES_AT_ONCE)
    spans = [slice(start, start + VALUES_AT_ONCE) for start in starts]
    whole = int(field.term_counts.sum())
    kept = whole * TERM_BYTES <= room
    if kept:
        spans = [slice(0, len(field.folded))]
    bags = [_bagged(field, spans[0])] if kept else None
    slots = np.zeros(_slots(len(part.terms) for part in bags or map(partial(_bagged, field), spans)), np.int64)
    for part, span in zip(bags or map(partial(_bagged, field), spans), spans, strict=True):
        record_terms.frequencies(part.offsets, part.terms, field.counts[span], slots)
    weighed = slots.view(np.float64)
    record_terms.slot_weights(slots, float(max(1, field.present)), weighed)

    def weigh(part: _Bags) -> Floats:
        found: Floats = record_terms.weigh(part.offsets, part.terms, part.counts, weighed)
        return found

    known = None if bags is None else (bags[0], weigh(bags[0]))

    def alike(a: Ints, b: Ints) -> Floats:
        if known is not None:
            part, weights = known
        elif len(a) > PAIRS_AT_ONCE:
            cuts = range(0, len(a), PAIRS_AT_ONCE)
            return np.concatenate([alike(a[at : at + PAIRS_AT_ONCE], b[at : at + PAIRS_AT_ONCE]) for at in cuts])
        else:
            used, places = np.unique(np.concatenate([a, b]), return_inverse=True)
            part = _bagged(field, used)
            weights, a, b = weigh(part), places[: len(a)], places[len(a) :]
        found: Floats = np.minimum(kernels.cosines(part.offsets, part.terms, weights, a, b), 1.0)
        return found

    return alike


def _slots(sizes: Iterable[int]) -> int:
    """Return the number of slots for so many terms of values; no more of them are counted than it takes.

    >>> _slots([10_000]), _slots([100_000, 100_000]), _slots([1 << 20, 1 << 20])
    (131072, 2097152, 16777216)
    """
    found, terms = SLOTS[0], 0
    for size in sizes:
        terms += size
        found = min(max(SLOTS[0], 1 << (8 * terms).bit_length()), SLOTS[1])
        if found == SLOTS[1]:
            break
    return found


@dataclass(frozen=True)
class _Bags:
    """The distinct terms of each value, sorted, and how often the value has each."""

    offsets: Ints
    terms: Hashes
    counts: Codes


def _bagged(field: Field, chosen: slice | Ints) -> _Bags:
    """Return the terms of some of the values of a field."""
    folded = field.folded[chosen] if isinstance(chosen, slice) else field.folded.take(pa.array(chosen))
    whole = int(field.term_counts[chosen].sum())
    values = TextChunk.from_arrow(folded)
    terms, counts = np.empty(whole, np.uint64), np.empty(whole, np.int32)
    offsets = np.zeros(len(values.offsets), np.int64)
    most = 2 * int(np.diff(values.offsets).max(initial=0))
    n = record_terms.bag_values(values.data, values.offsets, most, terms, counts, offsets)
    return _Bags(offsets, terms[:n], counts[:n])


def as_numbers(field: Field) -> Floats:
    """Return the values of a number field, as logarithms if they span orders of magnitude."""
    numbers: Floats = np.concatenate([np.zeros(0), *(np.array(list(map(float, some))) for some in field.batches())])
    if len(numbers) and numbers.min() > 0 and numbers.max() > SPREAD * np.median(numbers):
        numbers = np.log(numbers)
    return numbers


def _by_difference(field: Field) -> Similarity:
    numbers = as_numbers(field)
    spread = np.subtract(*np.quantile(np.repeat(numbers, np.minimum(field.counts, 100)), [0.75, 0.25])) or 1.0

    def alike(a: Ints, b: Ints) -> Floats:
        near: Floats = 1 / (1 + STEEPNESS * np.abs(numbers[a] - numbers[b]) / abs(float(spread)))
        return near

    return alike


def _by_edits(field: Field, nicknames: Nicknames) -> Similarity:
    text, offsets = letters_in(field.texts)
    way = record_words.WAYS.get(field.kind, record_words.TEXT)
    helped = _help(field, nicknames, text, offsets) if field.kind in KINDS else None
    swapped = _swapped(field.texts) if field.kind == "date" else None

    def alike(a: Ints, b: Ints) -> Floats:
        distance, letters = record_words.edits(text, offsets, a, b, way)
        if swapped is not None:
            distance[(swapped[a] == b) & (distance > 1)] = 1
        points = penalised(distance, letters) / 100
        return points if helped is None else helped(a, b, distance, letters, points)

    return alike


def _swapped(dates: pa.Array) -> Ints:
    """Return for each date the index of the date with day and month swapped, -1 if there is none."""
    parts = [pc.utf8_slice_codeunits(dates, start, stop) for start, stop in ((0, 4), (6, None), (4, 6))]
    return _places(pc.binary_join_element_wise(*parts, ""), dates)


def _places(asked: pa.Array, values: pa.Array) -> Ints:
    """Return the index of each text in an array of distinct values, -1 if it is not there."""
    found: Ints = pc.index_in(asked, values).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _having(values: list[str], synonyms: Synonyms) -> NDArray[np.bool_]:
    """Return which values have a word with synonyms."""
    return np.array([any(word in synonyms for word in value.split()) for value in values], bool)


def _help(field: Field, nicknames: Nicknames, text: Letters, offsets: Ints) -> Callable[..., Floats]:
    """Return the function that raises the similarity of pairs by nicknames, abbreviations and initials.

    Single words are looked up in a sorted list of pairs of synonyms. Values of several words are compared by
    `pair_points`, which is slow, and only if each of them has a word with synonyms.
    """
    synonyms = synonyms_for(field.kind, nicknames)
    size = len(field.texts)
    there = np.concatenate([np.zeros(0, bool), *(_having(some, synonyms) for some in field.batches())])
    single: NDArray[np.bool_] = pc.invert(pc.match_substring(field.texts, " ")).to_numpy(zero_copy_only=False)
    owners = np.flatnonzero(there & single)
    sets = [synonyms.partners(value) for value in field.texts.take(pa.array(owners)).to_pylist()]
    others = _places(pa.array([other for some in sets for other in some], pa.string()), field.texts)
    pairs = np.repeat(owners, [len(some) for some in sets]) * size + others
    partners = np.sort(np.append(pairs[others >= 0], -1))
    lengths = np.diff(offsets)
    first = text[np.minimum(offsets[:-1], len(text) - 1)]

    def helped(a: Ints, b: Ints, distance: NDArray[np.int32], letters: NDArray[np.int32], points: Floats) -> Floats:
        low = np.flatnonzero((points < 0.9) & (distance > 1))
        x, y = a[low], b[low]
        both = single[x] & single[y]
        keys = x * size + y
        equivalent = both & (partners[np.minimum(np.searchsorted(partners, keys), len(partners) - 1)] == keys)
        better = distance[low].copy()
        if field.kind == "name":
            initial = both & (first[x] == first[y]) & (np.minimum(lengths[x], lengths[y]) == 1)
            better[initial] = np.minimum(better[initial], INITIAL)
        better[equivalent] = 1
        points[low] = np.maximum(points[low], penalised(better, letters[low]) / 100)
        asked = low[~both & there[x] & there[y]]
        if len(asked):
            asked = asked[np.argsort(-points[asked], kind="stable")[:HELPED]]
            sides = [field.texts.take(pa.array(side[asked])).to_pylist() for side in (a, b)]
            points[asked] = np.maximum(points[asked], pair_points(sides[0], sides[1], field.kind, nicknames) / 100)
        return points

    return helped
