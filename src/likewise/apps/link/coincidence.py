"""How much the agreement of two values can prove: how improbable it is by chance (Good and Turing, Robbins 1956).

A value that occurs once in a table of n records has not the frequency 1 / n: if nearly all values of the table occur
once, it is far rarer. Of a sample in which N1 values occur once and N2 twice, a value seen once is expected
2 · N2 / N1 times in another sample of that size. In each of two tables, other records that have the value are chance;
the partner in the other table may be a match, so each table is counted by itself.
"""

from __future__ import annotations

import numpy as np

from likewise.apps.link.fields import Field, Floats, rarity

UNSEEN = 0.5
"""Values that occur twice, beside those that do: a table in which none does is not proof that none can."""

LEAST = 1e-12
"""The least frequency of a value."""

PLACES = ("address",)
"""Kinds of fields that say where something is, not which: that two records agree in nothing else proves little."""


def evidence(field: Field, border: int) -> Floats:
    """Return for each value the most that agreement in it can prove, the negative logarithm of its frequency.

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
