"""Bags and weighted sets: their minhash signatures, and SimHash, random hyperplanes in a space with one dimension per
term (MMDS §3.7.2).

Bags are mappings from token to weight, such as a `Counter`, or lists of tokens, where the weight is the number of
occurrences. Tokens are the same if Python takes them for the same, as in `Sets.from_lists`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.random import Floats, Hashes, bell, fraction, mix, sign, token_bits
from likewise.errors import InputError, ParameterError, shown
from likewise.families.algebra import StraightFamily
from likewise.families.projections import angle_from_sketches
from likewise.families.signatures import Maker, Signatures, agreement_of

Ints = NDArray[np.int64]
Numbers = TypeVar("Numbers")
Bag = Mapping[Any, float] | Iterable[Hashable]
NORMALS = ("gaussian", "signs")
WORD = re.compile(r"\w+")
BLOCK = 1 << 18
"""Random numbers drawn at a time, tokens times functions: 2 MB per array."""
PAIRS = 1 << 14
"""Pairs of bags compared at a time, to bound the memory for their tokens."""
NOTHING = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The slot of an empty bag."""


@dataclass(frozen=True)
class Bags:
    """Many bags in three arrays: bag i is tokens and weights from offsets[i] to offsets[i + 1], sorted by token."""

    tokens: Hashes
    weights: Floats
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @classmethod
    def of(cls, owner: str, items: Any, least: float = 0.0, split: Callable[[str], list[str]] | None = None) -> Bags:
        """Convert bags of any accepted form; weights below `least` are an error, zero weights are dropped.

        With `split`, an item may be a string, which that function splits into tokens.
        """
        if isinstance(items, Bags):
            return items
        items = checks.listed(owner, "items", items, "a list of bags: mappings of weights, or lists of tokens")
        known: dict[Hashable, int] = {}
        numbers: list[int] = []
        weights: list[float] = []
        sizes = [0]
        for row, item in enumerate(items):
            bag = _counted(owner, row, split(item) if split and isinstance(item, str) else item)
            numbers += [known.setdefault(token, len(known)) for token in bag]
            weights += bag.values()
            sizes.append(len(bag))
        hashed = Sets.from_lists([[token] for token in known], threads=1).values
        try:
            heavy = np.array(weights, np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{owner}: weights must be numbers: {error}") from error
        return cls._sorted(owner, hashed[np.array(numbers, np.int64)], heavy, np.cumsum(sizes), least)

    @classmethod
    def _sorted(cls, owner: str, tokens: Hashes, weights: Floats, offsets: Ints, least: float) -> Bags:
        row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        wrong = ~(np.isfinite(weights) & (weights >= least))
        if wrong.any():
            place = int(np.argmax(wrong))
            rule = "finite" if least < 0 else "finite and 0 or more"
            raise InputError(f"{owner}: bag {row[place]} has the weight {weights[place]}; weights must be {rule}")
        order = np.lexsort((tokens, row))
        order = order[weights[order] != 0]
        sizes = np.bincount(row[order], minlength=len(offsets) - 1)
        return cls(tokens[order], weights[order], np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def take(self, rows: Ints) -> Bags:
        """Return these bags, in this order."""
        places = Sets(np.arange(len(self.tokens)), self.offsets).take(rows)
        return Bags(self.tokens[places.values], self.weights[places.values], places.offsets)

    def portions(self, most: int) -> Iterator[tuple[slice, slice]]:
        """Yield (bags, entries) for runs of whole bags with at most `most` entries together, or of a single bag."""
        start = 0
        while start < len(self):
            stop = int(np.searchsorted(self.offsets, self.offsets[start] + most, side="right")) - 1
            stop = max(stop, start + 1)
            yield slice(start, stop), slice(int(self.offsets[start]), int(self.offsets[stop]))
            start = stop

    def blocks(
        self, n: int, tokens: Hashes, draw: Callable[[Hashes, range], Numbers]
    ) -> Iterator[tuple[slice, Numbers, slice, slice]]:
        """Yield (functions, their random numbers, bags, entries) until all bags have met all of n functions.

        `draw` returns the random numbers of each of these different tokens under each of some functions.
        """
        step = max(1, min(n, BLOCK // max(1, len(tokens))))
        for first in range(0, n, step):
            functions = range(first, min(n, first + step))
            drawn = draw(tokens, functions)
            for rows, entries in self.portions(max(1, BLOCK // len(functions))):
                yield slice(functions.start, functions.stop), drawn, rows, entries

    def side_by_side(self, left: Ints, right: Ints) -> Iterator[tuple[slice, Ints, Floats, Floats]]:
        """Yield (pairs, number of the pair, weight in the left bag, weight in the right) for every token in either."""
        for start in range(0, len(left), PAIRS):
            pairs = slice(start, min(start + PAIRS, len(left)))
            sides = [self.take(np.asarray(side[pairs], np.int64)) for side in (left, right)]
            pair = np.concatenate([np.repeat(np.arange(len(side)), np.diff(side.offsets)) for side in sides])
            token = np.concatenate([side.tokens for side in sides])
            order = np.lexsort((token, pair))
            new = np.ones(len(order), bool)
            new[1:] = (np.diff(pair[order]) != 0) | (token[order][1:] != token[order][:-1])
            place = np.empty(len(order), np.int64)
            place[order] = np.cumsum(new) - 1
            split, count = len(sides[0].tokens), int(new.sum())
            mine: Any = np.bincount(place[:split], sides[0].weights, count)
            yours: Any = np.bincount(place[split:], sides[1].weights, count)
            yield pairs, pair[order][new], mine, yours


@dataclass(frozen=True)
class WeightedMinHash(StraightFamily):
    """Minhash signatures of bags: slots agree with probability Σ min / Σ max of the weights (MMDS §3.1.3).

    This is the Jaccard similarity of bags whose union has the larger weight of each token; weights are non-negative
    numbers. The method is consistent weighted sampling as improved by Ioffe (2010): each function draws a token of
    weight w with probability w/Σ w, together with a level close to ln w, and bags of nearly equal weights draw the same
    token and level as often as possible. A slot is a 64-bit hash of both; for an empty bag it is 2**64 − 1.

    >>> from collections import Counter
    >>> a, b = WeightedMinHash().signatures([Counter("aaab"), {"a": 2, "b": 2, "c": 1}], 2000)
    >>> bool(abs(WeightedMinHash.estimate(a, b) - 3 / 6) < 0.05)
    True
    """

    seed: int = 1

    unit = "bag Jaccard distance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("WeightedMinHash", self.seed))

    def signatures(self, bags: Bags | Sequence[Bag], n: int) -> Signatures:
        """Return the signatures, one row of n slots per bag, as an array that knows how it was made."""
        return Signatures(self.hashes(bags, n), Maker("WeightedMinHash", "ioffe", self.seed, n))

    def hashes(self, items: Any, n: int) -> Hashes:
        """Return the signatures as an ordinary array."""
        n, bags = checks.functions("WeightedMinHash.signatures", n), Bags.of("WeightedMinHash", items)
        out = np.full((len(bags), n), NOTHING)
        distinct, which = np.unique(bags.tokens, return_inverse=True)
        for functions, drawn, rows, entries in bags.blocks(n, distinct, self._drawn):
            sizes = np.diff(bags.offsets[rows.start : rows.stop + 1])
            filled = np.flatnonzero(sizes)
            if len(filled):
                slots = _lowest(distinct, drawn, which[entries], bags.weights[entries], sizes[filled])
                out[rows.start + filled, functions] = slots
        return out

    def _drawn(self, tokens: Hashes, functions: range) -> tuple[Floats, Floats, Floats]:
        """Return r, ln c and β per token and function: r and c are sums of two exponential numbers, β is uniform."""
        u = [fraction(token_bits(self.seed, stream, tokens, functions)) for stream in range(8, 13)]
        return -np.log(u[0] * u[1]), np.log(-np.log(u[2] * u[3])), u[4]

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return 1 − Σ min / Σ max of the weights; two empty bags have distance 0."""
        out = np.zeros(len(left))
        for pairs, pair, mine, yours in Bags.of("WeightedMinHash", items).side_by_side(left, right):
            count = pairs.stop - pairs.start
            apart, union = (np.bincount(pair, w, count) for w in (np.abs(mine - yours), np.maximum(mine, yours)))
            np.divide(apart, union, out=out[pairs], where=union > 0)
        return out

    @staticmethod
    def estimate(a: Hashes, b: Hashes) -> float:
        """Return the fraction of slots in which two signatures agree; an error if they were not made alike."""
        return agreement_of("WeightedMinHash.estimate", a, b)


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters, digits and underscores, in lower case.

    >>> words("To be, or not to be.")
    ['to', 'be', 'or', 'not', 'to', 'be']
    """
    return WORD.findall(text.lower())


@dataclass(frozen=True)
class SimHash(StraightFamily):
    """The sign of a weighted sum over the terms of a text, with a random coefficient per term (Charikar, 2002).

    An item is a mapping from term to weight, a list of terms, where the weight is the number of occurrences, or a
    string, which `words` splits into terms (for scripts without spaces supply the terms yourself). The coefficients
    form the normal of a hyperplane, so texts at an angle of d degrees agree with probability 1 − d/180.

    normals="gaussian", the default, makes that exact. normals="signs" is SimHash as usually described: a term adds or
    subtracts its weight. It is faster, and nearly the same for texts of many terms of similar weight, but not for a few
    terms (see `SignSketch`).

    >>> a, b = SimHash().fingerprints(["the quick brown fox jumps", "jumps the Quick Brown fox"])
    >>> bool(a == b)  # word order does not matter
    True
    """

    seed: int = 1
    normals: str = "gaussian"

    unit = "degrees"
    farthest = 180.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("SimHash", self.seed))
        checks.choice("SimHash", "normals", self.normals, NORMALS)

    def hashes(self, items: Any, n: int) -> NDArray[np.uint8]:
        """Return 1 or 0 for every text and function; a sum of zero counts as positive."""
        n, bags = checks.functions("SimHash", n), self._bags(items)
        out = np.empty((len(bags), n), np.uint8)
        distinct, which = np.unique(bags.tokens, return_inverse=True)
        for functions, drawn, rows, entries in bags.blocks(n, distinct, self._drawn):
            starts = bags.offsets[rows] - entries.start
            added = drawn[which[entries]] * bags.weights[entries][:, None]
            out[rows, functions] = np.add.reduceat(added, starts, axis=0) >= 0
        return out

    def _drawn(self, terms: NDArray[np.uint64], functions: range) -> Floats:
        """Return the random coefficient of each term under each function."""
        if self.normals == "signs":
            return sign(token_bits(self.seed, 2, terms, functions))
        return bell(*(fraction(token_bits(self.seed, stream, terms, functions)) for stream in (0, 1)))

    def fingerprints(self, items: Any) -> NDArray[np.uint64]:
        """Return the first 64 functions as one integer per text: function i is bit i, counted from the lowest."""
        packed = np.packbits(self.hashes(items, 64), axis=1, bitorder="little")
        return packed.view("<u8").astype(np.uint64)[:, 0]

    @staticmethod
    def estimate(a: Any, b: Any) -> float:
        """Return the angle in degrees between two texts, from their rows of `hashes`: 180 times what differs."""
        return angle_from_sketches("SimHash.estimate", a, b)

    def distances(self, items: Any, left: Ints, right: Ints) -> Floats:
        """Return the angles between the texts as vectors of weights, in degrees."""
        bags = self._bags(items)
        row = np.repeat(np.arange(len(bags)), np.diff(bags.offsets))
        largest = np.zeros(len(bags))
        np.maximum.at(largest, row, np.abs(bags.weights))
        weights = bags.weights / largest[row]
        weights /= np.sqrt(np.bincount(row, weights**2, len(bags)))[row]
        out = np.empty(len(left))
        for pairs, pair, mine, yours in Bags(bags.tokens, weights, bags.offsets).side_by_side(left, right):
            count = pairs.stop - pairs.start
            apart, along = (np.sqrt(np.bincount(pair, side**2, count)) for side in (mine - yours, mine + yours))
            out[pairs] = np.degrees(2 * np.arctan2(apart, along))
        return out

    @staticmethod
    def _bags(items: Any) -> Bags:
        bags = Bags.of("SimHash", items, least=-math.inf, split=words)
        empty = np.diff(bags.offsets) == 0
        if empty.any():
            raise InputError(f"SimHash: item {int(np.argmax(empty))} has no terms, so it has no direction")
        return bags


def _lowest(
    distinct: Hashes, drawn: tuple[Floats, Floats, Floats], which: Ints, weights: Floats, sizes: Ints
) -> Hashes:
    """Return the hash of the token and level that each function draws from each bag.

    t = ⌊ln w/r + β⌋ is the level, y = e^(r(t − β)) a weight just below w that bags of similar weights share, and the
    token with the lowest ln c − ln y − r wins.
    """
    r, log_c, beta = (table[which] for table in drawn)
    level = np.floor(np.log(weights)[:, None] / r + beta)
    rank = log_c - r * (level - beta + 1)
    value = mix(distinct[which][:, None] ^ mix(level.astype(np.int64).view(np.uint64)))
    starts = np.cumsum(sizes) - sizes
    lowest = np.minimum.reduceat(rank, starts, axis=0)
    winner = rank == np.repeat(lowest, sizes, axis=0)
    chosen: Hashes = np.maximum.reduceat(np.where(winner, value, np.uint64(0)), starts, axis=0)
    return chosen


def _counted(owner: str, row: int, item: Any) -> Mapping[Any, Any]:
    """Return one bag as a mapping."""
    if isinstance(item, Mapping):
        return item
    if isinstance(item, str | bytes) or not isinstance(item, Iterable):
        raise ParameterError(
            f"{owner}: item {row} is {shown(item)}; each must be a mapping of weights or a list of tokens"
        )
    try:
        return Counter(item)
    except TypeError as error:
        raise ParameterError(f"{owner}: item {row} has a token that is not hashable: {error}") from error
