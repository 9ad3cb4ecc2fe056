"""How well the fields of pairs agree: levels that can be counted, of some pairs with all that is known, or of millions.

Of all candidates only the levels are kept, a byte each; what else a score needs is found again for some at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Codes
from likewise.base.arrays import Ints

STEPS = 20
EQUAL = STEPS
PARTS = 5
LEVELS = STEPS + 1 + PARTS
"""Levels 0 to 19 are similarities in steps of 0.05, 20 identical values, 21 to 25 the part of a value that is found
elsewhere in the other record: fine enough to be monotone, coarse enough to be counted from a few hundred pairs."""

ALL_TEXT = "all text"
Levels = NDArray[np.int8]
Halves = NDArray[np.float32]
Some = Ints | NDArray[np.bool_] | slice
"""Which of the pairs: their places, a flag for each, or a range."""


class Agreement(Protocol):
    """One field of pairs: their level (-1: missing)."""

    @property
    def name(self) -> str:
        """The field."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def level(self) -> Levels:
        """The level of each pair."""

    def part(self, chosen: Some) -> FieldAgreement:
        """Return all that is known of some of the pairs."""


@dataclass(frozen=True)
class FieldAgreement:
    """One field of some pairs: similarity (NaN: missing), level (-1: missing), rarity of identical values."""

    name: str
    kind: str
    similarity: Halves
    level: Levels
    rarity: Halves

    def part(self, chosen: Some) -> FieldAgreement:
        """Return the same for some of the pairs."""
        return FieldAgreement(self.name, self.kind, self.similarity[chosen], self.level[chosen], self.rarity[chosen])


@dataclass(frozen=True)
class CandidateAgreement:
    """One field of all candidates, whose records are `left` and whose levels are kept.

    rarity: of each value of the field, to which `codes` lead from records; of all text there is none.
    """

    name: str
    kind: str
    level: Levels
    left: Ints
    codes: Codes
    rarity: Halves

    def part(self, chosen: Some) -> FieldAgreement:
        """Return some of the pairs, with the rarity of identical values, but without similarities."""
        level = self.level[chosen]
        unknown = np.full(len(level), np.nan, np.float32)
        rarity = unknown.copy()
        equal = np.flatnonzero(level == EQUAL)
        if len(equal):
            rarity[equal] = self.rarity[self.codes[self.left[chosen][equal]]]
        return FieldAgreement(self.name, self.kind, unknown, level, rarity)


def alikeness(found: list[FieldAgreement]) -> Halves:
    """Return how alike pairs are: all their text, or else all fields together."""
    texts = [one for one in found if one.name == ALL_TEXT]
    if texts:
        return texts[0].similarity
    alike = np.zeros(len(found[0].level), np.float32)
    for one in found:
        alike += np.nan_to_num(one.similarity)
    return alike


def joined_parts(parts: list[FieldAgreement]) -> FieldAgreement:
    """Return one field of some pairs and of others after them."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((one.similarity, one.level, one.rarity) for one in parts), strict=True)
    similarity, level, rarity = (np.concatenate(some) for some in columns)
    return FieldAgreement(parts[0].name, parts[0].kind, similarity, level, rarity)
