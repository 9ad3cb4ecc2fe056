"""People who live together: their records share surname, address and phone, but not given name and day of birth.

To EM such pairs look like a class of matches of its own, and often the larger one. What sets them apart are the names
and dates that are a person's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.comparing import ALL_TEXT, LEVELS, STEPS, Compared
from likewise.apps.link.fields import Floats

FLAT = STEPS // 2
"""Values of lower levels differ flatly: more than a typing error."""

OWN = 0.7
"""A name or date is a person's own if so many of the pairs that agree in the others agree in it, too."""

TOGETHER = 5.0
"""Errors come together: two in a record so many times as often as if they knew nothing of each other."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Persons:
    """The names and dates that are a person's own, and the pairs in most of which these differ flatly (`apart`)."""

    own: list[Compared]
    apart: Mask

    def strangers(self, compared: list[Compared], matches: Floats) -> Mask:
        """Tell which of the pairs apart are of two people, given how probably each pair is a match by its score.

        Errors in one own field tell how many matches must be expected to have errors in two. If more pairs that look
        like matches are apart than that, the others are of people who live together; and whatever these share, the rest
        of their fields does not speak for a match any more, only where matches agree in it more often than they do.
        """
        flat = [_flat(one) for one in self.own]
        known = np.logical_and.reduce([one.level >= 0 for one in self.own])
        differ = np.sum(flat, axis=0)
        sure = matches * ~self.apart
        clean = float(sure[known & (differ == 0)].sum())
        single = [float(sure[known & (differ == 1) & one].sum()) for one in flat]
        expected = TOGETHER * sum(x * y for x, y in combinations(single, 2)) / max(1.0, clean)
        seen = float(matches[known & self.apart].sum())
        if seen <= expected + 2 * np.sqrt(expected) + 1:
            return np.zeros(len(matches), bool)
        odds = np.full(int(self.apart.sum()), np.log((expected + 0.5) / (seen - expected)))
        names = {one.name for one in self.own} | {ALL_TEXT}
        for one in compared:
            if one.name not in names:
                odds += _log_ratio(one, sure, matches * self.apart)[one.level[self.apart]]
        strangers = self.apart.copy()
        strangers[self.apart] = odds < 0
        return strangers


def persons(compared: list[Compared], start: Floats) -> Persons:
    """Return what tells people apart; without a name and a date that are a person's own, no pair is apart.

    `start` are probabilities that pairs match, however rough.
    """
    own = [one for one in compared if one.kind in ("name", "date")]
    likely = start > 0.5
    while {"name", "date"} <= {one.kind for one in own}:
        flat = [_flat(one) for one in own]
        differ = np.sum(flat, axis=0)
        kept = [one for one, here in zip(own, flat, strict=True) if _agreeing(one, likely & (differ == here)) >= OWN]
        if len(kept) == len(own):
            known = np.sum([one.level >= 0 for one in own], axis=0)
            return Persons(own, (known >= 2) & (2 * differ > known))
        own = kept
    return Persons([], np.zeros(len(start), bool))


def _flat(one: Compared) -> Mask:
    return (one.level >= 0) & (one.level < FLAT)


def _agreeing(one: Compared, among: Mask) -> float:
    known = among & (one.level >= 0)
    return float((one.level[known] >= FLAT).mean()) if known.any() else 0.0


def _log_ratio(one: Compared, matches: Floats, others: Floats) -> Floats:
    """Return for each level, and 0 for a missing value, how much more often matches have it than others."""
    known = one.level >= 0
    level = one.level[known]
    base = np.bincount(level, minlength=LEVELS) / max(1, len(level))
    same, other = (np.bincount(level, some[known], LEVELS) + base for some in (matches, others))
    ratio = np.log(np.maximum(same, 1e-12) / same.sum() * other.sum() / np.maximum(other, 1e-12))
    return np.append(ratio, 0.0)
