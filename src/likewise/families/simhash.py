"""Text as vectors: SimHash, random hyperplanes in a space with one dimension per term (MMDS §3.7.2)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.random import Floats, bell, fraction, sign, token_bits
from likewise.errors import InputError
from likewise.families.algebra import Family
from likewise.families.given_directions import angle_from_sketches
from likewise.families.weighted import Bags, Ints

NORMALS = ("gaussian", "signs")
WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters, digits and underscores, in lower case.

    >>> words("To be, or not to be.")
    ['to', 'be', 'or', 'not', 'to', 'be']
    """
    return WORD.findall(text.lower())


@dataclass(frozen=True)
class SimHash(Family):
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", checks.seed("SimHash", self.seed))
        checks.choice("SimHash", "normals", self.normals, NORMALS)

    def collision(self, d: Any) -> Any:
        """Return 1 − d/180."""
        return 1 - checks.numbers("SimHash.probability", "d", d, 0, 180) / 180

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
