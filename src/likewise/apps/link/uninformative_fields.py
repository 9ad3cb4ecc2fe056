"""Uninformative fields: row numbers, hashes, random values, columns that are nearly empty.

Records that share more in the other fields than chance explains are the same. If a field agrees no more in such pairs
than in the same records paired at random, it is uninformative, and comparing it only does harm.
Where there are too few such pairs, as in a table of hardly any duplicates, nothing can be said, and the field stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.blocking import is_rich
from likewise.apps.link.comparison import similarity_of
from likewise.apps.link.fields import Field, Floats, among, rarity
from likewise.apps.link.terms import hashed, in_parts, named, row_hashes
from likewise.base.arrays import Ints
from likewise.base.parallel import all_at_once
from likewise.kernels import linking as kernels
from likewise.kernels import record_terms

RARE = 4
"""Records that share a rare value or word, at most."""

PAIRS = 20_000
"""Pairs of records with a rare value in common that are looked at; the agreement of a field is measured in those that
share enough."""

LEAST, LEAST_FREQUENT = 30, 10
"""Pairs with both values from which the agreement of a field is judged, and of one in which many pairs agree."""

SIGNIFICANT = 2.5
"""Standard errors by which a field must agree more often than by chance: one field of 160 that tells nothing does."""

SMALL = 100
"""Records from which on fields are judged."""

EMPTY = 0.1
"""Part of the records of a table with a value below which a field that cannot be judged is left out."""

FURTHER = 0.5
"""Part of the values of a field that are values of another if it has further ones of the same, such as second names;
it is then not left out."""

DENSE = 1.1
"""Whole numbers that are all different are row numbers if their range is at most this many times their number."""

KEYS = 100_000
"""Records by whose rare values pairs are found, about; of more records, a part of the values is used."""

FREQUENT = 0.05
"""Part of all pairs that agree in a field from which on it says little of who a record is: it is then judged in the
pairs that share most, if too few share enough; as are all fields of two tables, which have matches, or one would not
link them."""

BEST = 200
"""These pairs."""

SPIKE = 0.05
"""Part of the records that have a value from which on it may be a placeholder."""

SEEN = 100
"""Values, in pairs of records that share enough, from which on one may be a placeholder."""

TWICE = 2
"""How many times as frequent a placeholder is as the values that are none."""

HALF = 0.5
"""A placeholder agrees less than this times as often, beyond chance, as another frequent value of the field does, or
the rare ones do together."""

DRAWN = 40_000
"""Random pairs, at least, of the records of pairs, so that what chance makes of them is no chance itself."""

SHARED_NAME = 0.3
"""Different values per record, at most, of a name that many records share: those of the patents of a company."""

SURE_NAME = 0.5
"""How much more alike such names are, at least, in records that share the other fields than by chance."""

VARIES = 0.65
"""An attribute of the record, not of its entity, is less than this times as much more alike as the name is."""

VARYING = "different in records that share the name"
UNTOLD = "equal no more often than by chance in records that share everything else"
NEVER_SEEN = "hardly any two records that share everything else have a value"
NEARLY_EMPTY = "hardly any record has a value"
NUMBER = re.compile(r"\d{1,15}", re.ASCII)
MIX = np.uint64(0x9E3779B97F4A7C15)
Keys = np.ndarray[tuple[int], np.dtype[np.uint64]]
NO_KEYS = np.zeros(0, np.uint64)
Pairs = tuple[Ints, Ints]


@dataclass(frozen=True)
class Uninformative:
    """The fields that are better left out, with the reason, and values of others that mean none, as places in `texts`.

    A placeholder, such as 0.0 or 1900-01-01, agrees no more often than by chance in records that share everything
    else, while other values of its field do.
    """

    fields: dict[str, str]
    values: dict[str, Ints]


def uninformative(fields: Sequence[Field], border: int, seed: int = 1, threads: int = 1) -> Uninformative:
    """Return the fields and values that say nothing of who a record is; one field always remains.

    Texts of many different values are not judged. The least telling are judged first: row numbers, whose values must be
    equal to agree, then those that connect the fewest records. Fields that agree often are judged again at the end, by
    those that are kept: attributes of a service agree together.
    """
    found = Uninformative({}, {})
    if len(fields[0].codes) < SMALL:
        return found
    evidence = _Evidence.of(fields, border, seed, threads)
    numbered = {one.name for one in fields if not one.long and is_numbered(one, border)}
    often = {one.name for one in fields if _agreeing(one) >= FREQUENT}
    order = sorted(fields, key=lambda one: (is_rich(one), one.name not in numbered, evidence.links_by(one)))
    kept, means = list(fields), dict[str, float]()
    for field in [*order, *(one for one in order if one.name in often)]:
        others = [one for one in kept if one is not field]
        if not others:
            break
        if field.name in found.fields:
            continue
        frequent, rich = field.name in often, is_rich(field)
        left, right = evidence.sharing(field, others, bool(border) or frequent or rich)
        judged = replace(field, kind="exact") if field.name in numbered else field
        alike = _MoreAlike.of(judged, left, right, border, seed)
        if alike.pairs >= LEAST:
            means[field.name] = alike.mean
        why = None if rich else _why_not(field, others, border, alike, frequent)
        if why is not None:
            found.fields[field.name] = why
            kept = others
        elif not rich and len(values := _placeholders(field, border, left, right)):
            found.values[field.name] = values
    if not border:
        found.fields.update(dict.fromkeys(_varying(kept, means), VARYING))
    return found


@dataclass(frozen=True)
class _Evidence:
    """Pairs of records that share a rare value, and what it is worth if they share the values of a field.

    links: the pairs by the fields whose values they share. needed: what a pair must share so that chance does not
    explain it.
    """

    links: dict[tuple[str, ...], Pairs]
    worth: dict[str, Callable[[Ints, Ints], Floats]]
    needed: float
    seed: int

    @classmethod
    def of(cls, fields: Sequence[Field], border: int, seed: int, threads: int) -> _Evidence:
        records = len(fields[0].codes)
        linked = [*((one,) for one in fields), *combinations([one for one in fields if not one.long], 2)]
        found = all_at_once([partial(row_hashes, one) for one in fields], threads)
        hashes = {one.name: some for one, some in zip(fields, found, strict=True)}
        tasks = [partial(_links, some, [hashes[one.name] for one in some], border) for some in linked]
        pairs = all_at_once(tasks, threads)
        linked_by = np.zeros(records, bool)
        for side in (side for found in pairs for side in found):
            linked_by[side] = True
        used = np.flatnonzero(linked_by)
        weighed = all_at_once([partial(_worth, one, used) for one in fields], threads)
        return cls(
            {tuple(one.name for one in some): found for some, found in zip(linked, pairs, strict=True)},
            {one.name: found for one, found in zip(fields, weighed, strict=True)},
            float(np.log(border * (records - border) if border else records * (records - 1) / 2)),
            seed,
        )

    def links_by(self, field: Field) -> int:
        """Return how many pairs share a rare value of a field."""
        return len(self.links[field.name,][0])

    def sharing(self, field: Field, others: Sequence[Field], best: bool) -> Pairs:
        """Return the pairs that share enough in the others; with `best`, those that share most if these are few."""
        known = {one.name for one in others}
        left, right = _some([pairs for keys, pairs in self.links.items() if known.issuperset(keys)], self.seed)
        shared = np.sum([self.worth[one.name](left, right) for one in others], axis=0)
        both = (field.codes[left] >= 0) & (field.codes[right] >= 0)
        sure = shared >= self.needed
        if best and np.count_nonzero(sure & both) < LEAST:
            sure = np.argsort(-np.where(both, shared, -1), kind="stable")[:BEST]
        return left[sure], right[sure]


def _varying(fields: Sequence[Field], means: dict[str, float]) -> list[str]:
    """Return all fields but the name if they vary among the records of an entity, in a table of few different names.

    means: how much more alike the values are than by chance, in records that share the other fields.
    """
    names = [one for one in fields if one.long and len(one.texts) <= SHARED_NAME * one.present]
    best = max(names, key=lambda one: means.get(one.name, 0.0), default=None)
    if best is None or means.get(best.name, 0.0) < SURE_NAME:
        return []
    others = [one.name for one in fields if one is not best]
    return others if all(means.get(name, 1.0) < VARIES * means[best.name] for name in others) else []


def _placeholders(field: Field, border: int, left: Ints, right: Ints) -> Ints:
    """Return the frequent values that, in these pairs, agree by chance, unlike the other values of the field.

    Of two tables, they are frequent in both: values that the other writes differently do not agree either.
    """
    a, b = field.codes[left], field.codes[right]
    known = (a >= 0) & (b >= 0)
    a, b = a[known], b[known]
    size = len(field.texts)
    sides = (np.bincount(a, minlength=size) + np.bincount(b, minlength=size)) / 2
    part = sides / max(1, len(a))
    more = np.bincount(a[a == b], minlength=size) - part * sides
    most = np.maximum(1e-9, sides - part * sides)
    share = more / most
    rare = sides < SEEN
    if rare.all():
        return np.zeros(0, np.int64)
    best = max(float(share[~rare].max(initial=0.0)), float(more[rare].sum() / max(1.0, most[rare].sum())))
    asked = (sides >= SEEN) & (share + SIGNIFICANT / np.sqrt(2 * np.maximum(1, sides)) < HALF * best)
    for codes in (field.codes[:border], field.codes[border:]) if border else (field.codes,):
        there = codes[codes >= 0]
        asked &= np.bincount(there, minlength=size) >= SPIKE * len(there)
    usual = int(field.counts[~asked].max(initial=0))
    return np.flatnonzero(asked & (field.counts >= TWICE * usual))


def _why_not(field: Field, others: Sequence[Field], border: int, alike: _MoreAlike, frequent: bool) -> str | None:
    """Return why a field is left out, or None."""
    if alike.pairs >= (LEAST_FREQUENT if frequent else LEAST):
        return UNTOLD if alike.mean <= SIGNIFICANT * alike.error else None
    if border and frequent:
        return NEVER_SEEN
    there = field.codes >= 0
    parts = (there[:border], there[border:]) if border else (there,)
    if min(float(part.mean()) for part in parts) >= EMPTY:
        return None
    further = (pc.mean(pc.is_in(field.texts, one.texts)).as_py() >= FURTHER for one in others)
    return None if any(further) else NEARLY_EMPTY


def _agreeing(field: Field) -> float:
    """Return the part of the pairs that have the same value."""
    return float(((field.counts / max(1, field.present)) ** 2).sum())


def is_numbered(field: Field, border: int) -> bool:
    """Return whether the values of each table are whole numbers, all different, nearly without gaps."""
    for part in (field.codes[:border], field.codes[border:]) if border else (field.codes,):
        codes = part[part >= 0]
        if not len(codes) or not NUMBER.fullmatch(field.texts[int(codes[0])].as_py()):
            return False
        used = field.texts.take(pa.array(np.flatnonzero(np.bincount(codes))))
        if len(used) < len(codes) or not pc.all(pc.match_substring_regex(used, f"^{NUMBER.pattern}$")).as_py():
            return False
        ends = pc.min_max(used.cast(pa.int64())).as_py()
        if ends["max"] - ends["min"] + 1 > DENSE * len(used):
            return False
    return True


def _links(fields: Sequence[Field], hashes: Sequence[Keys], border: int) -> Pairs:
    """Return the pairs of records that share a rare value, rare word of a text, or rare combination of two values.

    hashes: of the values of records in each field.
    """
    part = np.uint64(max(1, len(fields[0].codes) // KEYS))
    if len(fields) == 1 and fields[0].long:
        sizes, words = _some_words(fields[0], part)
        counts = np.append(sizes, 0)[fields[0].codes]
        starts = np.append(np.cumsum(sizes) - sizes, 0)[fields[0].codes]
        owners = np.repeat(np.arange(len(counts)), counts)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        return _within_groups(words[np.repeat(starts, counts) + within], owners, border)
    keys, owners = np.empty(len(hashes[0]), np.uint64), np.empty(len(hashes[0]), np.int64)
    size = record_terms.joint_keys(hashes[0], hashes[-1] if len(hashes) > 1 else NO_KEYS, part, keys, owners)
    return _within_groups(keys[:size], owners[:size], border)


def _one_in(keys: Keys, part: np.uint64) -> NDArray[np.bool_]:
    """Return which keys are among one of so many; equal keys are together."""
    found: NDArray[np.bool_] = ((keys * MIX) >> np.uint64(40)) % part == 0
    return found


def _some_words(field: Field, part: np.uint64) -> tuple[Ints, Keys]:
    """Return the words of all values that are among one of so many, and how many of them each value has."""
    sizes, words = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for some in in_parts(field.folded):
        every = hashed(some, False)
        chosen = _one_in(every.terms, part)
        sizes.append(np.diff(np.append(0, np.cumsum(chosen))[every.offsets]))
        words.append(every.terms[chosen])
    return np.concatenate(sizes), np.concatenate(words)


def _within_groups(keys: Keys, owners: Ints, border: int) -> Pairs:
    """Return the pairs of records, of different tables, in groups of two to RARE with the same key."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.append(True, keys[order][1:] != keys[order][:-1]))
    sizes = np.diff(np.append(begins, len(keys)))
    lefts, rights = [], []
    for first, second in combinations(range(RARE), 2):
        some = begins[(sizes > second) & (sizes <= RARE)]
        lefts.append(owners[order[some + first]])
        rights.append(owners[order[some + second]])
    left, right = np.concatenate(lefts), np.concatenate(rights)
    apart = (left < border) & (right >= border) if border else left < right
    return left[apart], right[apart]


def _some(pairs: Sequence[Pairs], seed: int) -> Pairs:
    """Return up to PAIRS of these pairs."""
    left, right = (np.concatenate([np.zeros(0, np.int64), *side]) for side in zip(*pairs, strict=True))
    chosen = np.random.default_rng(seed).permutation(len(left))[:PAIRS]
    return left[chosen], right[chosen]


def _worth(field: Field, used: Ints) -> Callable[[Ints, Ints], Floats]:
    """Return the function that gives the logarithm of how improbable it is that pairs share by chance what they do.

    Of texts, that is the sum over the words that they share. The pairs are of records among `used`.
    """
    rare = np.append(rarity(field), 0.0)

    def equal(left: Ints, right: Ints) -> Floats:
        a, b = field.codes[left], field.codes[right]
        found: Floats = np.where((a >= 0) & (a == b), rare[a], 0.0)
        return found

    if not field.long:
        return equal
    there = np.zeros(len(field.texts) + 1, bool)
    there[field.codes[used]] = True
    values = np.flatnonzero(there[:-1])
    places = np.full(len(field.texts) + 1, -1)
    places[values] = np.arange(len(values))
    words = hashed(field.folded.take(pa.array(values)), False)
    terms, counts = np.empty_like(words.terms), np.empty(len(words.terms), np.int64)
    offsets = np.zeros(len(words.offsets), np.int64)
    size = record_terms.bag(words.offsets, words.terms, terms, counts, offsets)
    terms = terms[:size]
    different, place = np.unique(terms, return_inverse=True)
    frequency, start = np.zeros(len(different), np.int64), 0
    for part in in_parts(field.folded):
        every = hashed(part, False)
        frequency += record_terms.records_having(
            different, every.offsets, every.terms, field.counts[start : start + len(part)]
        )
        start += len(part)
    weights = np.sqrt(np.log(np.maximum(1.0, field.present / np.maximum(1, frequency))))[place]

    def shared(left: Ints, right: Ints) -> Floats:
        a, b = places[field.codes[left]], places[field.codes[right]]
        known = (a >= 0) & (b >= 0)
        found = np.zeros(len(a))
        found[known] = kernels.cosines(offsets, terms, weights, a[known], b[known])
        return found

    return shared


@dataclass(frozen=True)
class _MoreAlike:
    """How much more alike values of pairs are on average than by chance, its standard error, and how many pairs."""

    mean: float
    error: float
    pairs: int

    @classmethod
    def of(cls, field: Field, left: Ints, right: Ints, border: int, seed: int) -> _MoreAlike:
        """Compare the values of pairs with those of the same records paired at random, in whatever order they are."""
        a, b = field.codes[left].astype(np.int64), field.codes[right].astype(np.int64)
        known = (a >= 0) & (b >= 0)
        a, b = a[known], b[known]
        if len(a) < LEAST_FREQUENT:
            return cls(0.0, 0.0, 0)
        few, (a, b) = among(field, a, b)
        hashes, dice = named(few.hashes, few.name), np.random.default_rng(seed)
        sides = (some[np.argsort(hashes[some])] for some in ((a, b) if border else [np.append(a, b)] * 2))
        one, other = (
            np.concatenate([dice.permutation(some)[: len(a)] for _ in range(-(-DRAWN // len(a)))]) for some in sides
        )
        alike = similarity_of(few)
        found, chance = (np.where(x == y, 1.0, alike(x, y)) for x, y in ((a, b), (one, other)))
        error = float(np.sqrt(found.var() / len(a) + chance.var() / len(one)))
        return cls(float(found.mean() - chance.mean()), error, len(a))
