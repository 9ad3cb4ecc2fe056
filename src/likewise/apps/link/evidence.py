"""Evidence: the most that agreement in a value can prove of two records."""

from __future__ import annotations

import numpy as np

from likewise.apps.link.fields import Field, Floats, rarity
from likewise.base.arrays import Ints

AT_ONCE = 1 << 20
"""Pairs whose evidence is added up at a time."""

UNSEEN = 0.5
"""Values that occur twice, beside those that do: a table in which none does is not proof that none can."""

LEAST = 1e-12
"""The least frequency of a value."""

PLACES = ("address",)
"""Kinds of fields that say where something is, not which: that two records agree in nothing else proves little."""


def evidence(field: Field, border: int) -> Floats:
    """Return for each value the most that agreement in it can prove, the negative logarithm of its frequency.

    A value that occurs once in a table of n records is rarer than 1 / n if nearly all values occur once (Good and
    Turing, Robbins 1956). Each table is counted by itself, as a partner in the other may be a match.
    `border` is the number of the first record of the second table; in one table (0), other records with the value may
    be matches, and all of them count.
    """
    if not border or field.kind in PLACES:
        return rarity(field)
    tables = [field.codes[:border], field.codes[border:]]
    counts = [np.bincount(codes[codes >= 0], minlength=len(field.texts)) for codes in tables]
    there = np.sum([some > 0 for some in counts], axis=0)
    whole = np.sum([np.where(some > 0, expected(some), 0.0) for some in counts], axis=0)
    found: Floats = -np.log(np.maximum(whole / np.maximum(1, there), LEAST))
    return found


def expected(counts: np.ndarray) -> Floats:
    """Return the frequency of each value in another sample, given how often it occurs in this one.

    >>> expected(np.array([1, 1, 1, 1, 1, 1, 2, 2])).round(3).tolist()  # six values once, two twice, of ten
    [0.083, 0.083, 0.083, 0.083, 0.083, 0.083, 0.2, 0.2]
    """
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    again = min(1.0, 2 * (twice + UNSEEN) / max(1, once))
    found: Floats = np.where(counts == 1, again, counts) / max(1, int(counts.sum()))
    return found


def most_evidence(fields: list[Field], border: int, left: Ints, right: Ints) -> Floats:
    """Return for pairs of records the most that all the fields that both have could prove."""
    proof = np.zeros(len(left))
    for one in fields:
        most = evidence(one, border)
        for start in range(0, len(left), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            a, b = one.codes[left[some]], one.codes[right[some]]
            proof[some] += np.where((a < 0) | (b < 0), 0.0, np.minimum(most[a], most[b]))
    return proof
