"""Blocking: the pairs worth comparing, by identical fields and by shared terms (MMDS §3.8.2).

The candidates are the union of
- records with an identical field, found by sorting. A block of more than LIMIT records is not paired; its records are
  sorted again by that field combined with each other field.
- the nearest neighbours by all text: the NEAREST best of every record, and further ones with similarity ENOUGH.
- in one table, each record and the first one with its value, of values that more have: an entity may be frequent.
- the nearest neighbours by each text of many different values alone, NEAREST_BY_TEXT of every record: a long text, such
  as a description, would outweigh a short one, such as a title, in all text.
- in tables too large for nearest neighbours, records that share bands of MinHash over the words and trigrams of all
  fields. A pair must then share two bands; or one band and an identical field; or two fields whose agreement by chance
  is improbable; or names and dates that agree but for an error in each, twice, or once in records that are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.comparison import similarity_of
from likewise.apps.link.equal_keys import LIMIT, Blocks, banded, identical_fields, loose_blocks, room_for_keys
from likewise.apps.link.fields import Field, Floats, among, rarity
from likewise.apps.link.terms import WeightedTerms, all_codes, joined, of_records, weighted
from likewise.base.arrays import Ints
from likewise.base.memory import MIB, UNLIMITED, Budget
from likewise.base.parallel import all_at_once, in_order
from likewise.base.runlog import Tick
from likewise.io.workspace import Workspace
from likewise.kernels import linking as kernels
from likewise.kernels.linking import nearest

ALIKE = 0.2
"""Least estimated similarity of a pair that shares bands: leaves out those that share one by chance."""

ALIKE_BY_CHANCE = 0.1
"""The same of a pair whose names and dates agree, but for errors, in two ways."""

MORE_ALIKE = 0.3
"""The same of a pair whose names and dates agree, but for errors, in one way, as those of many different people do."""

NEAREST = 10
"""Nearest neighbours of every record that are always candidates."""

NEAREST_ALONE = 30
"""The same if there is only one field: no other finds what it misses, and nothing is learned from the candidates."""

NEAREST_BY_TEXT = 5
"""Nearest neighbours of every record by one of several texts that are candidates."""

DIFFERENT = 0.5
"""Different values per record with a value, at least, in a text by which neighbours are searched."""

ENOUGH = 0.2
"""Further neighbours are candidates from this cosine similarity on, for records with many duplicates."""

MOST = 300
"""Neighbours of one record at most, so that a text that many records share does not pair them all."""

PAIRS = 6_000_000
"""Candidates from further neighbours, over all records: bounds the time and memory of the comparison."""

VISITS = 100_000_000
"""Postings read in the search for nearest neighbours, over all records, rarest terms first: bounds its time."""

LEAST_VISITS = 3_000
"""Postings read for each record in any case."""

SLOWEST = 10
"""Neighbours by one text are searched if LEAST_VISITS for each record are at most this many times VISITS: of 333,000
records."""

MORE_TERMS = 2
"""A text with up to this many times TERMS is searched alone: its terms are no longer in memory with those of others."""

TERMS = 6_000_000
"""Tables with more terms in all their fields are blocked by bands of MinHash, not by nearest neighbours."""

ROWS_AT_ONCE = 2_000
"""Records whose neighbours are searched at a time by one thread."""

LEAST_ROOM = 32 * MIB
"""Bytes for pairs of blocks at a time, however little memory there is: fewer would mean many passes over the keys."""


@dataclass(frozen=True)
class RecordPairs:
    """Distinct sorted pairs to compare, left < right; the number found by each method (`ways`); notes for the user."""

    left: Ints
    right: Ints
    ways: dict[str, int]
    notes: list[str]

    def __len__(self) -> int:
        return len(self.left)

    def with_pairs(self, pairs: Ints, records: int) -> RecordPairs:
        """Return these pairs and those given (two columns, left < right)."""
        keys = np.concatenate([self.left * records + self.right, pairs[:, 0] * records + pairs[:, 1]])
        keys = np.unique(keys)
        return RecordPairs(keys // records, keys % records, self.ways, self.notes)


def block(
    fields: list[Field],
    border: int,
    seed: int = 1,
    threads: int = 1,
    most: int = TERMS,
    budget: Budget = UNLIMITED,
    tick: Tick = lambda done: None,
    space: Workspace | None = None,
    since: int = 0,
) -> tuple[RecordPairs, WeightedTerms | None]:
    """Return the candidate pairs, and the weighted terms of records if the tables are small enough for them.

    `border` is the number of the first record of the second table, 0 for one table; tables with more than `most` terms
    are blocked by bands. `tick` is called twice for every record. `space` is where keys are put that do not fit in the
    budget. Of one table, pairs of two records before `since` are left out.
    """
    records = len(fields[0].codes)
    sizes = all_at_once([partial(_terms_in, field) for field in fields], threads)
    whole = sum(sizes)
    kinds: dict[str, Ints] = {}
    notes: list[str] = []
    rows: WeightedTerms | None = None
    room = _room(budget)
    identical, crowded = identical_fields(fields, border, threads, notes, room, since)
    texts = [
        one
        for one, size in zip(fields, sizes, strict=True)
        if _searched(one, size, len(fields) > 1 or whole > most, most)
    ]
    if whole <= most:
        rows = weighted(of_records(all_codes(fields), joined([one.grams for one in fields])))
        least = NEAREST if len(fields) > 1 else NEAREST_ALONE
        kinds["all_text"] = _nearest(rows, records, border, threads, tick, least, since=since)
        parts = (some for part in identical.parts(room, tick) for some in in_order(sorted_unique, part, threads))
        kinds["identical_fields"] = _concatenated(list(parts))
        if crowded and not border:
            kinds["frequent_values"] = sorted_unique(_concatenated([_with_first(one, since) for one in crowded]))
    else:
        kinds = _many(fields, identical, crowded, border, seed, threads, budget, tick, space, since)
        notes.append(f"{whole:,} terms: candidates by bands of MinHash instead of nearest neighbours by all text")
    if texts:
        kinds["each_text"] = _by_each(texts, records, border, threads, since)
    ways = {way: len(keys) for way, keys in kinds.items()}
    merged = sorted_unique(_concatenated([kinds.pop(way) for way in ways]))
    return RecordPairs(merged // records, merged % records, ways, notes), rows


def _terms_in(field: Field) -> int:
    """Return the number of terms of all records in a field."""
    return int(np.append(field.term_counts, 0)[field.codes].sum())


def _with_first(field: Field, since: int) -> Ints:
    """Return the pairs of each record from `since` on and the first that has its value, if more than LIMIT have it.

    A value may be frequent because its entity is: then these pairs connect its records.
    """
    values, first = np.unique(field.codes, return_index=True)
    frequent = values[(values >= 0) & (field.counts[values] > LIMIT)]
    rows = since + np.flatnonzero(np.isin(field.codes[since:], frequent))
    home = first[np.searchsorted(values, field.codes[rows])]
    return home[home < rows] * len(field.codes) + rows[home < rows]


def _room(budget: Budget) -> int:
    return max(LEAST_ROOM, budget.total // 8)


def _concatenated(parts: list[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def sorted_unique(keys: Ints) -> Ints:
    """Return the distinct keys in order; the keys themselves are sorted in place."""
    keys.sort()
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _searched(field: Field, size: int, several: bool, most: int) -> bool:
    """Return whether neighbours are searched by this field alone: a text of many different values.

    `several` if that finds more than all text does: there are other fields, or too many terms in all.
    """
    fast = len(field.codes) * LEAST_VISITS <= SLOWEST * VISITS
    return several and fast and size <= MORE_TERMS * most and is_rich(field)


def is_rich(field: Field) -> bool:
    """Return whether a field is a text of several words with many different values, such as a title."""
    return field.kind in ("text", "tokens") and field.long and len(field.texts) >= DIFFERENT * field.present


def _by_each(texts: list[Field], records: int, border: int, threads: int, since: int) -> Ints:
    """Return the pairs of each record and its nearest neighbours by each of these fields alone."""
    found: list[Ints] = []
    for field in texts:
        rows = weighted(of_records(all_codes([field]), field.grams))
        few = NEAREST_BY_TEXT
        found.append(_nearest(rows, records, border, threads, lambda done: None, few, few, since))
    return sorted_unique(_concatenated(found))


def _nearest(
    rows: WeightedTerms,
    records: int,
    border: int,
    threads: int,
    tick: Tick,
    least: int = NEAREST,
    cap: int | None = None,
    since: int = 0,
) -> Ints:
    """Return the pairs of each record and its nearest neighbours by these terms, in the other table if there are two.

    `least` are the neighbours of every record from `since` on, `cap` those of records with many that are alike.
    """
    cap = max(least, min(MOST, PAIRS // max(1, records))) if cap is None else cap
    visits = max(LEAST_VISITS, VISITS // records)
    sides = [(since, records, 0, records)]
    if border:
        sides = [(0, border, border, records), (border, records, 0, border)]
    found: list[Ints] = []
    for start, stop, first, last in sides:
        span = slice(rows.offsets[first], rows.offsets[last])
        order = np.argsort(rows.terms[span], kind="stable")
        starts = np.searchsorted(rows.terms[span][order], np.arange(rows.size + 1)).astype(np.int64)
        owners = np.repeat(np.arange(last - first), np.diff(rows.offsets[first : last + 1]))[order]
        weights = rows.weights[span][order]

        def near(
            some: Ints,
            posted: tuple[Ints, Ints, Floats] = (starts, owners, weights),
            size: int = last - first,
            shift: int = first,
        ) -> Ints:
            left, right = nearest(
                some, rows.offsets, rows.terms, rows.weights, *posted, size, shift, least, cap, ENOUGH, visits
            )
            keys: Ints = np.minimum(left, right) * records + np.maximum(left, right)
            return keys

        some = np.arange(start, stop)
        batches = [some[at : at + ROWS_AT_ONCE] for at in range(0, len(some), ROWS_AT_ONCE)]
        for batch, keys in zip(batches, in_order(near, batches, threads), strict=True):
            found.append(keys)
            tick(len(batch))
    return sorted_unique(_concatenated(found))


def _many(
    fields: list[Field],
    identical: Blocks,
    crowded: list[Field],
    border: int,
    seed: int,
    threads: int,
    budget: Budget,
    tick: Tick,
    space: Workspace | None,
    since: int,
) -> dict[str, Ints]:
    """Return the pairs of large tables by the method that found them."""
    codes = all_codes(fields)
    records = len(codes)
    rare = np.concatenate([rarity(field) for field in fields])

    def alike(keys: Ints, least: float = ALIKE) -> Ints:
        left = keys // records
        near: NDArray[np.bool_] = kernels.agreement(marks, left, keys - left * records) >= least
        return keys[near]

    def half_met(keys: Ints) -> Ints:
        if len(fields) >= 3:
            keys = keys[kernels.equal_worth(codes, rare, keys, records)[0] >= 1]
        return alike(keys)

    def rarely_equal(pairs: Ints) -> Ints:
        keys = sorted_unique(pairs)
        count, worth = kernels.equal_worth(codes, rare, keys, records)
        chosen: NDArray[np.bool_] = (count >= min(2, len(fields) - 1)) & (worth >= np.log(records / 2))
        return keys[chosen]

    def kept(blocks: Blocks, function: Callable[[Ints], Ints], tick: Tick = lambda done: None) -> Ints:
        parts = blocks.parts(room, tick)
        return _concatenated([keys for part in parts for keys in in_order(function, part, threads)])

    def met(blocks: Blocks, twice: Callable[[Ints], Ints], once: Callable[[Ints], Ints]) -> Ints:
        def chosen(pairs: Ints) -> Ints:
            pairs.sort()
            again = np.append(False, pairs[1:] == pairs[:-1]) if len(pairs) else np.zeros(0, bool)
            alone = ~again & ~np.append(again[1:], False) if len(pairs) else again
            keys = np.concatenate([twice(sorted_unique(pairs[again])), once(pairs[alone])])
            keys.sort()
            return keys

        return kept(blocks, chosen)

    room = _room(budget)
    with room_for_keys(records, budget, space) as keys:
        blocks, marks = banded(fields, border, seed, threads, tick, keys, room, since)
        kinds = {"bands": met(blocks, alike, half_met)}
    del blocks, keys
    loose = loose_blocks(crowded, border, threads, room, since)
    if loose is not None:
        barely, clearly = partial(alike, least=ALIKE_BY_CHANCE), partial(alike, least=MORE_ALIKE)
        kinds["similar_fields"] = met(loose, barely, clearly)
    return kinds | {"identical_fields": kept(identical, rarely_equal, tick)}


def completeness(candidates: RecordPairs, truth: Ints, records: int) -> float:
    """Return the fraction of the true pairs (two columns, left < right) that are candidates."""
    if not len(truth):
        return 1.0
    keys = np.append(candidates.left * records + candidates.right, -1)
    wanted = truth[:, 0] * records + truth[:, 1]
    return float((keys[np.searchsorted(keys[:-1], wanted)] == wanted).mean())


AGREE = 0.5
"""Similarity from which on two values agree, so that the pair would be found by this field."""

LEAST_MATCHES = 30
"""Matches from which the number of all is estimated, and matches that must agree in both fields."""

MOST_MATCHES = 20_000
"""Matches that are looked at: the error of a share is below 1 %."""

FILLED = 0.9
"""Part of the records that have a value of a field, at least: matches that miss it are not seen by it."""

CAPTURES = 3
"""Fields that most matches agree in; each two of them give an estimate."""

DEPENDENT = 0.2
"""Correlation of agreement among the matches from which on two fields do not err independently."""

WIDTH = 1.96
"""Standard errors on each side of the estimate: an interval of 95 %."""


def estimated_blocking_recall(
    fields: Sequence[Field], pairs: Ints, ways: Container[str] = (), seed: int = 1
) -> dict[str, Any]:
    """Return the part of all matches that were found as candidates, with an interval, or why it is not known.

    By capture and recapture (Lincoln and Petersen, Chapman): the captures are two fields that most matches agree in. If
    they err independently, the part that agree in the first is the same among those that agree in the second as among
    all. Of the three fields that most matches agree in, each two give an estimate, unless they agree together; the
    lowest counts, as fields that err together make it too high.

    ways: how candidates were found. Bands find what is alike in several fields together: of the matches that agree in
    one field they miss more, the more errors there are in the others, and the fields that are seen tell nothing of it.
    """
    if "bands" in ways:
        return {"unknown": "tables as large as these are blocked by several fields together, not by one at a time"}
    if len(fields) < 2:
        return {"unknown": "it takes two fields that err independently"}
    if len(pairs) < LEAST_MATCHES:
        return {"unknown": f"it takes {LEAST_MATCHES} matches"}
    if len(pairs) > MOST_MATCHES:
        pairs = pairs[np.random.default_rng(seed).choice(len(pairs), MOST_MATCHES, replace=False)]
    agree = {one.name: _agree(one, pairs[:, 0], pairs[:, 1]) for one in fields}
    names = sorted(agree, key=lambda name: -int(agree[name].sum()))[:CAPTURES]
    sparse = [one.name for one in fields if one.name in names and one.present < FILLED * len(one.codes)]
    if sparse:
        return {"unknown": f"many records have no {', '.join(sparse)}, and matches may be missed for it"}
    found = [_captured(one, other, agree[one], agree[other]) for one, other in combinations(names, 2)]
    known = [one for one in found if one is not None]
    if not known:
        return {"unknown": f"{', '.join(names)} agree together in matches, or too rarely"}
    lowest = min(known, key=lambda one: float(one["estimate"]))
    return {**lowest, "low": min(one["low"] for one in known), "high": max(one["high"] for one in known)}


def _captured(one: str, other: str, first: Any, second: Any) -> dict[str, Any] | None:
    """Return the estimate by two fields, None if they agree together in matches, or in few."""
    both, size = int((first & second).sum()), len(first)
    spread = float(np.sqrt(first.var() * second.var()))
    together = (both / size - float(first.mean() * second.mean())) / spread if spread else 0.0
    if both < LEAST_MATCHES or together > DEPENDENT:
        return None
    ends = chapman(int(first.sum()), int(second.sum()), both)
    low, middle, high = (round(min(1.0, size / max(1.0, number)), 4) for number in reversed(ends))
    return {"estimate": middle, "low": low, "high": high, "fields": [one, other]}


def chapman(first: int, second: int, both: int) -> tuple[float, float, float]:
    """Return the number of all from the numbers in two captures and in both, between the ends of its interval.

    >>> [round(number) for number in chapman(80, 60, 48)]
    [92, 100, 108]
    """
    found = (first + 1) * (second + 1) / (both + 1) - 1
    spread = (first + 1) * (second + 1) * (first - both) * (second - both) / ((both + 1) ** 2 * (both + 2))
    margin = WIDTH * float(np.sqrt(spread))
    return found - margin, found, found + margin


def _agree(field: Field, left: Ints, right: Ints) -> Any:
    """Return in which pairs both values are known and alike."""
    a, b = field.codes[left].astype(np.int64), field.codes[right].astype(np.int64)
    known = np.flatnonzero((a >= 0) & (b >= 0))
    found = np.zeros(len(left), bool)
    if len(known):
        few, (a, b) = among(field, a[known], b[known])
        found[known] = np.where(a == b, 1.0, similarity_of(few)(a, b)) >= AGREE
    return found
