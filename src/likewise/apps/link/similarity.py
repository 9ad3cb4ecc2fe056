"""Similarity of two values of a field, from 0 to 1: prepared once, then evaluated for millions of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.link.edits import INITIAL, letters_in
from likewise.apps.link.fields import Field, Floats, as_numbers
from likewise.apps.link.points import pair_points, penalised
from likewise.apps.link.synonyms import KINDS, Nicknames, Synonyms, synonyms_for
from likewise.apps.link.terms import hashed, term_counts
from likewise.base.arrays import Hashes, Ints
from likewise.base.memory import UNLIMITED
from likewise.kernels import linking, record_words

HELPED = 50_000
"""Of each batch, at most this many pairs of values of several words are compared word by word, which is slow; the most
similar ones first, as the others gain too little to become matches."""

SLOTS = 1 << 16, 1 << 24
"""Least and greatest number of slots in which terms are counted: eight or more per term, up to 128 MB. Two terms in one
slot count as equally frequent."""

VALUES_AT_ONCE = 1 << 16
"""Values whose terms are made at a time if they are not kept."""

TERM_BYTES = 40
"""Bytes per term of the values of a field: its hash twice while terms are sorted, its count, its weight, its row."""

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
    whole = int(term_counts(field.folded).sum())
    kept = whole * TERM_BYTES <= room
    if kept:
        spans = [slice(0, len(field.folded))]
    parts = map(partial(_bagged, field), spans)
    bags = list(parts) if kept else None
    n = sum(len(part.terms) for part in bags or parts)
    slots = np.zeros(min(max(SLOTS[0], 1 << int(8 * n).bit_length()), SLOTS[1]), np.int64)
    for part, span in zip(bags or map(partial(_bagged, field), spans), spans, strict=True):
        rows = np.repeat(np.arange(len(part.offsets) - 1, dtype=np.int32), np.diff(part.offsets))
        record_words.frequencies(part.terms, rows, field.counts[span], slots)

    def weigh(part: _Bags) -> Floats:
        found: Floats = record_words.weigh(part.offsets, part.terms, part.counts, slots, float(max(1, field.present)))
        return found

    known = None if bags is None else (bags[0], weigh(bags[0]))

    def alike(a: Ints, b: Ints) -> Floats:
        if known is not None:
            part, weights = known
        else:
            used, places = np.unique(np.concatenate([a, b]), return_inverse=True)
            part = _bagged(field, used)
            weights, a, b = weigh(part), places[: len(a)], places[len(a) :]
        found: Floats = np.minimum(linking.cosines(part.offsets, part.terms, weights, a, b), 1.0)
        return found

    return alike


@dataclass(frozen=True)
class _Bags:
    """The distinct terms of each value, sorted, and how often the value has each."""

    offsets: Ints
    terms: Hashes
    counts: Ints


def _bagged(field: Field, chosen: slice | Ints) -> _Bags:
    """Return the terms of some of the values of a field."""
    folded = field.folded[chosen] if isinstance(chosen, slice) else field.folded.take(pa.array(chosen))
    values = hashed(folded, True)
    terms, counts = np.empty_like(values.terms), np.empty(len(values.terms), np.int64)
    offsets = np.zeros(len(values.offsets), np.int64)
    n = record_words.bag(values.offsets, values.terms, terms, counts, offsets)
    return _Bags(offsets, terms[:n], counts[:n])


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
