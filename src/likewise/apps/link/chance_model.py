"""The Fellegi–Sunter model with non-matches known: what agrees by chance is counted in random pairs of records.

Candidates are selected for what they share, so that a model whose non-matches are learned from them may explain the
selection instead of the matches. Here the levels of non-matches are those of random pairs, nearly all of which are no
matches; the prior is over all pairs of records; and only the levels of matches are learned (EM). Fields that agree
together among random pairs (dependent fields) share their weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.agreement import ALL_TEXT, EQUAL, LEVELS, STEPS, Agreement, FieldAgreement
from likewise.apps.link.fields import Field, Floats
from likewise.apps.link.model import LOWEST_ABSENT, ROUNDS, STABLE, MatchModel, chance, rising, sample
from likewise.base.arrays import Ints
from likewise.base.parallel import all_at_once
from likewise.kernels import linking as kernels

RANDOM, MORE, SMALL = 200_000, 500_000, 10_000
"""Random pairs in which chance agreement is counted: a level of one in ten thousand is seen twenty times. Of up to
SMALL records more are drawn: a few of them match, or nearly do, and must not decide which fields agree together."""

EQUAL_AT_FIRST, ALIKE_AT_FIRST = 0.85, 0.1
"""Part of the values of matches taken to be identical, and similar, before anything is learned."""

TRUSTED = 20.0
"""Matches that the values before learning count for, beside those learned from: a level that no match has is not
impossible."""

USUAL, LEARNT = 0.5, 400
"""Part of what matches look like that is not learned but taken as before, up to this many matches; less in proportion
if there are more. A class of pairs that agree in one field and in no other, such as namesakes, is not learned so."""

ELSEWHERE = 0.5
"""Part of the weight of a value found in another field that counts: if two fields are swapped, both find theirs in the
other, which is one event."""

DOUBT = 0.5
"""The similarity taken for a value found in another field."""

FEW = 100
"""Random pairs with both fields that a correlation needs."""

TINY = 1e-12
"""Variances up to this are rounding errors of a constant."""

NO_MATCH = 1e-5
"""A random pair that is a match with this probability at most is none."""

AT_ONCE = 1 << 16
"""Random pairs that are added up at a time."""

JUDGED = 1 << 15
"""Pairs that one thread judges at a time, or up to twice as many: what is known of them stays in the cache."""

TEXT_WORDS = 8
"""Words of a text, on average, from which on pairs that agree in all but this text may be related instead of matches:
parts of a long text change, not all of it."""

LEAST_RELATED = 0.05
"""Pairs that are related, as a fraction of the matches, if that is taken to occur at all."""

LEAST_ROUNDS = 5
"""Rounds in which the number of matches is estimated if nothing else is learned."""


def random_pairs(records: int, border: int, seed: int) -> tuple[Ints, Ints]:
    """Return random pairs of different records, one of each table if there are two; all pairs if they are few."""
    most = MORE if records <= SMALL else RANDOM
    if border and border * (records - border) <= most:
        left, right = np.divmod(np.arange(border * (records - border)), records - border)
        return left, right + border
    if not border and records * (records - 1) // 2 <= most:
        left, right = np.triu_indices(records, 1)
        return left.astype(np.int64), right.astype(np.int64)
    dice = np.random.default_rng(seed)
    if border:
        return dice.integers(0, border, most), dice.integers(border, records, most)
    left = dice.integers(0, records, most)
    right = (left + dice.integers(1, records, most)) % records
    return np.minimum(left, right), np.maximum(left, right)


def level_sums(level: NDArray[np.int8], worth: Floats) -> Floats:
    """Return what the pairs of each level are worth together."""
    sums = np.zeros(LEVELS)
    kernels.sums_by_level(level, worth, sums)
    return sums


@dataclass(frozen=True)
class ByChance:
    """One field of random pairs: the `level` of each, the pairs that have the `same` value, and what that would be by
    chance.

    That follows from the counts of values: `equal` is the part of all pairs that have the same value, `least` the least
    that it can be, `known` how many of the random pairs have two values in their places.
    """

    level: NDArray[np.int8]
    same: Ints
    equal: float
    least: float
    known: float

    @classmethod
    def of(cls, one: FieldAgreement, field: Field) -> ByChance:
        """Count what does not depend on which pairs match."""
        present = max(2, field.present)
        equal = float((field.counts * (field.counts - 1.0)).sum()) / (present * (present - 1.0))
        known = float(((one.level >= 0) & (one.level <= STEPS)).sum())
        return cls(one.level, np.flatnonzero(one.level == EQUAL), equal, 0.5 / present**2, max(1.0, known))

    def frequencies(self, others: Floats) -> Floats:
        """Return the frequency of each level, given the probability that each pair is no match.

        With many records per entity, most identical values may be those of matches.
        """
        counts = level_sums(self.level, others)
        equal = self.equal * (float(others[self.same].sum() + 1) / (len(self.same) + 1))
        counts[EQUAL] = max(equal, self.least) * self.known
        smooth = counts + 0.5 / LEVELS
        found: Floats = smooth / smooth.sum()
        return found


@dataclass(frozen=True)
class Together:
    """How random pairs agree in several fields together, from which follow the parts of their weights that count.

    A value found in another field counts only if it is short: long texts share words by chance. `whole` are the sums
    over all pairs; of each round only the pairs that are matches by more than NO_MATCH are taken out of these.
    """

    names: list[str]
    levels: NDArray[np.int8]
    highest: Ints
    whole: Floats

    @classmethod
    def of(cls, compared: Sequence[FieldAgreement], fields: Sequence[Field]) -> Together:
        """Add up all pairs."""
        levels = np.stack([one.level for one in compared], axis=1).astype(np.int8)
        highest = np.array([STEPS if field.long else LEVELS for field in fields])
        parts = (levels[start : start + AT_ONCE] for start in range(0, len(levels), AT_ONCE))
        whole = np.sum([_sums(part, highest, np.ones(len(part))) for part in parts], axis=0)
        return cls([one.name for one in compared], levels, highest, whole)

    def shares(self, matches: Floats) -> dict[str, float]:
        """Return the part of each field's weight that counts: 1 / (the sum of its correlations with all fields).

        matches: the probability that each pair is a match, by which it is left out; in matches, all fields agree.
        """
        likely = np.flatnonzero(matches > NO_MATCH)
        sums = self.whole - _sums(self.levels[likely], self.highest, matches[likely])
        totals = 1 + np.maximum(_correlations(*sums), 0.0).sum(axis=1)
        return {name: float(1 / total) for name, total in zip(self.names, totals, strict=True)}


def _sums(levels: NDArray[np.int8], highest: Ints, weights: Floats) -> Floats:
    """Return sums over pairs, for each two fields: of pairs that have both, of the one value, its square, both."""
    known = ((levels >= 0) & (levels <= highest)).astype(np.float64)
    values = np.where(levels > STEPS, DOUBT, levels / STEPS) * known
    there, filled = known * weights[:, None], values * weights[:, None]
    return np.stack([there.T @ known, filled.T @ known, (filled * values).T @ known, filled.T @ values])


def _correlations(whole: Floats, sums: Floats, squares: Floats, products: Floats) -> Floats:
    """Return the correlation of each two fields in pairs that have both, 0 if that is in FEW pairs or for itself."""
    count = np.maximum(whole, 1e-12)
    mean = sums / count
    spread = squares / count - mean**2
    product = products / count - mean * mean.T
    size = np.sqrt(np.maximum(spread * spread.T, 0.0))
    enough = (whole > FEW) & (size > TINY) & ~np.eye(len(size), dtype=bool)
    found: Floats = np.divide(product, size, where=enough, out=np.zeros_like(size))
    return found


def at_first(chances: Floats) -> Floats:
    """Return the levels of matches before anything is learned: most values identical, some similar, few neither."""
    found = chances.copy()
    found[: STEPS + 1] = 0.05 * chances[: STEPS + 1]
    alike = np.arange(LEVELS) >= STEPS // 2
    alike[STEPS:] = False
    found[alike] += ALIKE_AT_FIRST * np.arange(1, alike.sum() + 1) / np.arange(1, alike.sum() + 1).sum()
    found[EQUAL] += EQUAL_AT_FIRST
    found /= found.sum()
    return found


def _logs(matches: Floats, chances: Floats) -> Floats:
    logs: Floats = np.log(matches / chances)
    logs[: STEPS + 1] = rising(logs[: STEPS + 1], (matches + chances)[: STEPS + 1])
    logs[STEPS + 1 :] = np.maximum(rising(logs[STEPS + 1 :], (matches + chances)[STEPS + 1 :]), LOWEST_ABSENT)
    logs[STEPS + 1 :] *= np.where(logs[STEPS + 1 :] > 0, ELSEWHERE, 1.0)
    return logs


def _still_related(relatives: dict[tuple[str, ...], Floats], matches: float) -> dict[tuple[str, ...], float]:
    """Return the log-odds of pairs that are related, against matches, by the fields that tell, where there are any."""
    counts = {names: float(found.sum()) for names, found in relatives.items()}
    matches = max(1.0, matches)
    return {name: float(np.log(count / matches)) for name, count in counts.items() if count > LEAST_RELATED * matches}


def mostly_short(fields: list[Field]) -> bool:
    """Return whether most values are short, compared by edits, rather than texts compared by the terms they share.

    Texts of few different values are categories, however many words these have.
    """
    short = sum(one.present for one in fields if not one.long or one.category)
    return 2 * short >= sum(one.present for one in fields)


def learn_anchored(
    candidates: Sequence[Agreement],
    random: list[FieldAgreement],
    fields: list[Field],
    pairs: float,
    never: NDArray[np.bool_],
    personal: Sequence[tuple[str, ...]] = (),
    rounds: int = ROUNDS,
    seed: int = 1,
    threads: int = 1,
) -> MatchModel:
    """Return the model learned from candidates, given random pairs and the number of all pairs.

    Pairs in `never` are no matches. Related pairs may differ in a long text, or in some `personal` fields. Without
    rounds, nothing is learned of what matches look like, but how many there are. Of more than `SAMPLE` candidates, a
    random sample is used.
    """
    size = len(never)
    chosen = sample(size, seed)
    compared, never = [one.part(chosen) for one in candidates if one.name != ALL_TEXT], never[chosen]
    scale = size / max(1, len(never))
    random = [one for one in random if one.name != ALL_TEXT]
    model, expected, drawn = None, np.zeros(len(never)), np.zeros(len(random[0].level))
    texts = [(one.name,) for one in fields if one.long and one.words >= TEXT_WORDS]
    related = dict.fromkeys([*texts, *personal] if rounds else [], 0.0)
    part, done, moved = float(np.sqrt(size)) / pairs, 0, 1.0
    together = Together.of(random, fields)
    pieces, first = [*_pieces(compared), *_pieces(random)], len(_pieces(compared))
    lucky = [ByChance.of(some, field) for some, field in zip(random, fields, strict=True)]
    while moved >= STABLE and done < max(rounds, LEAST_ROUNDS):
        weights, typical = {}, {}
        shares, others = together.shares(drawn), 1 - drawn
        by_luck = all_at_once([partial(one.frequencies, others) for one in lucky], threads)
        sums = all_at_once([partial(level_sums, one.level, expected) for one in compared], threads)
        for one, chances, seen in zip(compared, by_luck, sums, strict=True):
            usual = at_first(chances)
            if rounds and done:
                seen += TRUSTED * usual
                kept = USUAL * min(1.0, LEARNT / max(1.0, part * pairs))
                usual = kept * usual + (1 - kept) * seen / seen.sum()
            weights[one.name] = _logs(usual, chances)
            typical[one.name] = -float(np.log(chances[EQUAL]))
        model = MatchModel(weights, typical, float(np.log(part / (1 - part))), done, shares, related)
        judged = all_at_once([partial(model.judged, some) for some in pieces], threads)
        scores, lucky_scores = (np.concatenate([some for some, _ in side]) for side in (judged[:first], judged[first:]))
        relatives = {names: np.concatenate([some[names] for _, some in judged[:first]]) for names in related}
        after = np.where(never, 0.0, chance(scores))
        drawn = chance(lucky_scores)
        moved = float(np.abs(after - expected).max(initial=0.0))
        expected = after
        related = _still_related(relatives, float(expected.sum()))
        part = min(0.5, max(1.0, scale * float(expected.sum())) / pairs)
        done += 1
    assert model is not None
    return model


def _pieces(compared: Sequence[FieldAgreement]) -> list[list[FieldAgreement]]:
    """Return pairs in pieces of JUDGED or more, or one piece of fewer."""
    whole = len(compared[0].level)
    count = max(1, whole // JUDGED)
    spans = [slice(whole * place // count, whole * (place + 1) // count) for place in range(count)]
    return [[one.part(some) for one in compared] for some in spans]


FLAT = STEPS // 2
"""Values below this level (similarity 0.5) differ clearly, by more than a typing error."""

OWN = 0.7
"""A name or date is personal if this part of the pairs that agree in the others agree in it, too. The date of the last
visit is not."""

MOST = 4
"""Personal fields, at most, of which all combinations are considered: eleven of them."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Households:
    """The personal names and dates (`own`), and the pairs in which most of these differ clearly (`apart`).

    People who live together share surname, address and phone, but not given name and date of birth. To EM such pairs
    look like a class of matches, often larger than the true one, so they are not learned from.
    """

    own: list[Agreement]
    apart: Mask

    def kinds(self) -> list[tuple[str, ...]]:
        """Return the personal fields in which related people may differ: any two or more, if there are at most MOST."""
        names = [one.name for one in self.own]
        sizes = range(2, len(names) + 1) if len(names) <= MOST else ()
        return [some for size in sizes for some in combinations(names, size)]


def households(compared: Sequence[Agreement], start: Floats) -> Households:
    """Return the personal fields and the pairs that differ in them; none without a personal name and a personal date.

    `start` are rough probabilities that pairs match.
    """
    own = [one for one in compared if one.kind in ("name", "date")]
    likely = start > 0.5
    while {"name", "date"} <= {one.kind for one in own}:
        flat = [_flat(one) for one in own]
        differ = np.sum(flat, axis=0, dtype=np.int8)
        kept = [one for one, here in zip(own, flat, strict=True) if _agreeing(one, likely & (differ == here)) >= OWN]
        if len(kept) == len(own):
            known = np.sum([one.level >= 0 for one in own], axis=0, dtype=np.int8)
            return Households(own, (known >= 2) & (2 * differ > known))
        own = kept
    return Households([], np.zeros(len(start), bool))


def _flat(one: Agreement) -> Mask:
    return (one.level >= 0) & (one.level < FLAT)


def _agreeing(one: Agreement, among: Mask) -> float:
    known = among & (one.level >= 0)
    return float((one.level[known] >= FLAT).mean()) if known.any() else 0.0
