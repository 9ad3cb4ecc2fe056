"""Households: people who live together share surname, address and phone, but not given name and date of birth.

To EM such pairs look like a class of matches, often larger than the true one. They are distinguished by the names and
dates that are personal.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.agreement import ALL_TEXT, LEVELS, STEPS, FieldAgreement
from likewise.apps.link.fields import Floats

FLAT = STEPS // 2
"""Values below this level (similarity 0.5) differ clearly, by more than a typing error."""

OWN = 0.7
"""A name or date is personal if this part of the pairs that agree in the others agree in it, too. The date of the last
visit is not."""

TOGETHER = 5.0
"""Errors cluster: two in one record are this many times as frequent as if they were independent."""

MOST = 4
"""Personal fields, at most, of which all combinations are considered: eleven of them."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Households:
    """The personal names and dates (`own`), and the pairs in which most of these differ clearly (`apart`)."""

    own: list[FieldAgreement]
    apart: Mask

    def kinds(self) -> list[tuple[str, ...]]:
        """Return the personal fields in which related people may differ: any two or more, if there are at most MOST."""
        names = [one.name for one in self.own]
        sizes = range(2, len(names) + 1) if len(names) <= MOST else ()
        return [some for size in sizes for some in combinations(names, size)]

    def strangers(self, compared: list[FieldAgreement], matches: Floats) -> Mask:
        """Return which of the pairs in `apart` are of two people, given the probability that each pair is a match.

        The matches with an error in one personal field give the expected number with errors in two. If more pairs that
        look like matches are in `apart`, the excess are people of one household. Their shared fields are then evidence
        for a match only as far as matches agree in them more often than households do.
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


def households(compared: list[FieldAgreement], start: Floats) -> Households:
    """Return the personal fields and the pairs that differ in them; none without a personal name and a personal date.

    `start` are rough probabilities that pairs match.
    """
    own = [one for one in compared if one.kind in ("name", "date")]
    likely = start > 0.5
    while {"name", "date"} <= {one.kind for one in own}:
        flat = [_flat(one) for one in own]
        differ = np.sum(flat, axis=0)
        kept = [one for one, here in zip(own, flat, strict=True) if _agreeing(one, likely & (differ == here)) >= OWN]
        if len(kept) == len(own):
            known = np.sum([one.level >= 0 for one in own], axis=0)
            return Households(own, (known >= 2) & (2 * differ > known))
        own = kept
    return Households([], np.zeros(len(start), bool))


def _flat(one: FieldAgreement) -> Mask:
    return (one.level >= 0) & (one.level < FLAT)


def _agreeing(one: FieldAgreement, among: Mask) -> float:
    known = among & (one.level >= 0)
    return float((one.level[known] >= FLAT).mean()) if known.any() else 0.0


def _log_ratio(one: FieldAgreement, matches: Floats, others: Floats) -> Floats:
    """Return for each level the log-ratio of its frequencies among matches and among others; 0 for a missing value."""
    known = one.level >= 0
    level = one.level[known]
    base = np.bincount(level, minlength=LEVELS) / max(1, len(level))
    same, other = (np.bincount(level, some[known], LEVELS) + base for some in (matches, others))
    ratio = np.log(np.maximum(same, 1e-12) / same.sum() * other.sum() / np.maximum(other, 1e-12))
    return np.append(ratio, 0.0)
